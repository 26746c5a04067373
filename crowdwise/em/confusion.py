"""Labels and a posterior over classes -> what each annotator says when the truth is this or that, and back.

A confusion matrix has a row per state that an example may be in and a column per label: ``confusion[l, k, c]`` is the
probability that annotator l says c in state k. The states are the true classes or, if there are hard examples, all
classes of easy examples, then all of hard ones. All products of probabilities are sums of logarithms.

How counts become matrices is a part that users may pass: `Shared`, `Confusion`, `OneCoin`, or their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import gammaln, xlogy

from crowdwise.arrays import Codes, Floats
from crowdwise.checks import check_number
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.label_rows import sparse_blocks
from crowdwise.threads import run_all, run_parallel

# No probability of a label is taken to be smaller: a label never seen is not impossible.
_SMALLEST = 1e-12
# Entries of confusion matrices that are worked on at a time: many annotators of many classes take much memory.
_BLOCK = 2**20
# What a label costs, in multiplications.
_COST_PER_LABEL = 50


@dataclass(frozen=True)
class Incidence:
    """Which (annotator, class) every label is, as a sparse matrix: sums over labels are then products with it."""

    # What every label counts (one, or a part of the vote that a group of annotators has together), some examples at a
    # time, of shape (n_rows, n_annotators * n_classes): sums of parts are added in the same order, whatever the number
    # of threads.
    parts: list[tuple[slice, sparse.csr_array]]
    n_annotators: int
    n_classes: int  # one more if abstentions are answers, which come last

    @classmethod
    def of(cls, labels: CrowdLabels, part: Floats | None = None, *, abstentions: bool = False) -> Incidence:
        """From labels of classes, and from abstentions if they are answers; `part` is what each of them counts."""
        answers = answers_of(labels) if abstentions else labels
        n_answers = 0 if answers.classes is None else len(answers.classes)
        columns: Codes = answers.annotator_index.astype(np.int32)
        columns *= n_answers
        columns += answers.values
        parts = list(sparse_blocks(answers.indptr, columns, part, labels.n_annotators * n_answers))
        return cls(parts, labels.n_annotators, n_answers)

    @property
    def n_examples(self) -> int:
        return self.parts[-1][0].stop

    @property
    def _cost(self) -> int:
        return _COST_PER_LABEL * sum(matrix.nnz for _, matrix in self.parts)

    def log_likelihood(self, confusion: Floats) -> Floats:
        """Logarithm of the probability of each example's labels in every state, of shape (n_examples, n_states)."""
        n_annotators, n_states, n_classes = confusion.shape
        table = np.empty((n_annotators, n_classes, n_states))
        for some in blocks(confusion):
            np.maximum(confusion[some].swapaxes(1, 2), _SMALLEST, out=table[some])
            np.log(table[some], out=table[some])
        flat = table.reshape(-1, n_states)
        likelihood = np.empty((self.n_examples, n_states))

        def task(part: tuple[slice, sparse.csr_array]) -> None:
            rows, matrix = part
            likelihood[rows] = matrix @ flat

        run_all(task, self.parts, self._cost)
        return likelihood

    def counts(self, posterior: Floats) -> Floats:
        """How often each annotator said c in state k, states counted by their posterior of (n_examples, n_states).

        The posterior is multiplied by weights of the examples, if there are any.
        """

        def part_sums(part: tuple[slice, sparse.csr_array]) -> Floats:
            return np.asarray(part[1].T @ posterior[part[0]])

        sums = sum(run_parallel(part_sums, self.parts, self._cost), start=np.zeros(()))
        return sums.reshape(self.n_annotators, self.n_classes, -1).swapaxes(1, 2)


def answers_of(labels: CrowdLabels) -> CrowdLabels:
    """Labels, and abstentions as labels of one more class, which is the last; classes are their positions.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.em.confusion import answers_of
    >>> labels = CrowdLabels.from_matrix([["?", "b"], ["a", None]], abstain=["?"])
    >>> answers_of(labels).to_matrix().tolist()
    [[2.0, 1.0], [0.0, nan]]
    """
    assert labels.classes is not None
    n_classes, n_abstained = len(labels.classes), labels.abstentions_per_example
    codes = np.arange(n_classes + 1)
    if not labels.n_abstentions:
        return replace(labels, classes=codes)
    example = np.concatenate([labels.example_index, np.repeat(np.arange(len(labels)), n_abstained)])
    who = np.concatenate([labels.annotator_index, labels.abstentions.indices])
    values = np.concatenate([labels.values, np.full(labels.n_abstentions, n_classes)])
    order = np.lexsort([who, example])
    return replace(
        labels,
        indptr=np.concatenate([[0], np.cumsum(labels.labels_per_example + n_abstained)]),
        annotator_index=who[order],
        values=values[order],
        classes=codes,
        abstentions=None,
    )


class AnnotatorModel(Protocol):
    """How counts become confusion matrices, and how likely these are beforehand.

    `crowd` is the confusion matrix of the crowd as a whole, of shape (n_states, n_classes); a model may draw each
    annotator towards it.
    """

    def check(self) -> None:
        """Raise if a setting makes no sense."""
        ...

    def crowd(self, counts: Floats) -> Floats:
        """The crowd's matrix, from the counts of all annotators."""
        ...

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices of shape (n_annotators, n_states, n_classes) from counts of that shape."""
        ...

    def log_prior(self, confusion: Floats, crowd: Floats) -> float:
        """Logarithm of the prior of matrices, up to a constant."""
        ...

    def log_evidence(self, counts: Floats, crowd: Floats) -> float:
        """Logarithm of the probability of the labels, over all matrices that the prior allows."""
        ...


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix per annotator, each row with a few labels added that are spread evenly over the classes.

    Parameters
    ----------
    strength : float, default=3.0
        Labels added to every row; above 0.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import Confusion
    >>> aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0]], annotator_model=Confusion()).label.tolist()
    [1, 0, 1]
    """

    strength: float = 3.0

    def check(self) -> None:
        """Raise if the strength is not above 0."""
        check_number("strength", self.strength, above=True)

    def crowd(self, counts: Floats) -> Floats:
        """The matrix of all labels together."""
        return pooled(counts)

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        return _rows(counts + self.strength / counts.shape[-1])

    def log_prior(self, confusion: Floats, crowd: Floats) -> float:
        """Logarithm of the prior, up to a constant."""
        logarithms = sum(float(np.log(confusion[some]).sum()) for some in blocks(confusion))
        return float(self.strength / confusion.shape[-1] * logarithms)

    def log_evidence(self, counts: Floats, crowd: Floats) -> float:
        """Logarithm of the probability of the labels, over all matrices that the prior allows."""
        return _drawn(counts, np.full(counts.shape[-1], self.strength / counts.shape[-1]))


@dataclass(frozen=True)
class OneCoin:
    """One number per annotator (and one on hard examples): how often they are right. Wrong labels are all alike.

    Parameters
    ----------
    strength : float, default=3.0
        Labels added, half of them right; above 0.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import OneCoin
    >>> aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0]], annotator_model=OneCoin()).label.tolist()
    [1, 0, 1]
    """

    strength: float = 3.0

    def check(self) -> None:
        """Raise if the strength is not above 0."""
        check_number("strength", self.strength, above=True)

    def crowd(self, counts: Floats) -> Floats:
        """The matrix of all labels together."""
        return pooled(counts)

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        right, wrong = self._right_and_wrong(counts)
        accuracy = (right + self.strength / 2) / (right + wrong + self.strength)
        n_classes = counts.shape[-1]
        diagonal = np.eye(n_classes, dtype=bool)
        each = accuracy[:, :, np.newaxis, np.newaxis]
        matrices = np.where(diagonal, each, (1 - each) / max(n_classes - 1, 1))
        return matrices.reshape(counts.shape)

    def log_prior(self, confusion: Floats, crowd: Floats) -> float:
        """Logarithm of the prior, up to a constant."""
        accuracy = confusion[:, :: confusion.shape[-1], 0]
        return float(self.strength / 2 * (np.log(accuracy) + np.log1p(-accuracy)).sum())

    def log_evidence(self, counts: Floats, crowd: Floats) -> float:
        """Logarithm of the probability of the labels, over all accuracies that the prior allows."""
        right, wrong = self._right_and_wrong(counts)
        which = -np.log(max(counts.shape[-1] - 1, 1)) * wrong.sum()
        return _drawn(np.stack([right, wrong], axis=-1), np.full(2, self.strength / 2)) + float(which)

    @staticmethod
    def _right_and_wrong(counts: Floats) -> tuple[Floats, Floats]:
        """Labels of each annotator on easy and on hard examples."""
        n_annotators, n_states, n_classes = counts.shape
        by_difficulty = counts.reshape(n_annotators, n_states // n_classes, n_classes, n_classes)
        right = np.einsum("ljkk->lj", by_difficulty)
        return right, by_difficulty.sum(axis=(2, 3)) - right


@dataclass(frozen=True)
class Shared:
    """A confusion matrix per annotator, drawn towards that of the crowd as a whole where labels are few.

    Parameters
    ----------
    strength : float, default=3.0
        Labels of the crowd's quality that are added to every row; above 0.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import Shared
    >>> aggregate([[1, 1, 0], [0, 0, 0], [1, 1, 1]], annotator_model=Shared(strength=5.0)).label.tolist()
    [1, 0, 1]
    """

    strength: float = 3.0

    def check(self) -> None:
        """Raise if the strength is not above 0."""
        check_number("strength", self.strength, above=True)

    def crowd(self, counts: Floats) -> Floats:
        """The matrix of all labels together."""
        return pooled(counts)

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        return _rows(counts + self.strength * crowd)

    def log_prior(self, confusion: Floats, crowd: Floats) -> float:
        """Minus the strength times the divergence of the crowd's rows from each annotator's."""
        own = xlogy(crowd, crowd)
        divergence = sum(float((own - xlogy(crowd, confusion[some])).sum()) for some in blocks(confusion))
        return -self.strength * divergence

    def log_evidence(self, counts: Floats, crowd: Floats) -> float:
        """Logarithm of the probability of the labels, over all matrices around the crowd's."""
        return _drawn(counts, self.strength * crowd)


def pooled(counts: Floats) -> Floats:
    """The confusion matrix of all annotators together; a label never given is not impossible."""
    return _rows(counts.sum(axis=0) + 1.0 / counts.shape[-1])


def _drawn(counts: Floats, prior: Floats) -> float:
    """Logarithm of the probability of labels whose frequencies are Dirichlet distributed beforehand (last axis)."""
    evenly, drawn = gammaln(prior), 0.0
    for some in blocks(counts):
        seen = prior + counts[some]
        total = gammaln(prior.sum(axis=-1)) - gammaln(seen.sum(axis=-1))
        drawn += float(total.sum() + (gammaln(seen) - evenly).sum())
    return drawn


def _rows(counts: Floats) -> Floats:
    """Rows that sum to one, written over the counts; evenly where there is nothing to count."""
    sums = counts.sum(axis=-1, keepdims=True)
    if not sums.all():
        counts += sums == 0
        sums = counts.sum(axis=-1, keepdims=True)
    counts /= sums
    return counts


def blocks(matrices: Floats) -> Iterator[slice]:
    """Slices of annotators whose matrices are few enough to be worked on at a time."""
    step = max(1, _BLOCK // max(matrices[:1].size, 1))
    return (slice(start, start + step) for start in range(0, len(matrices), step))


def check_annotator_model(model: Any) -> AnnotatorModel:
    """The model of annotators, if it is one; None is `Shared()`."""
    if model is None:
        return Shared()
    needed = ("check", "crowd", "estimate", "log_prior", "log_evidence")
    if isinstance(model, type) or not all(callable(getattr(model, name, None)) for name in needed):
        raise ValueError(
            "annotator_model must be Shared(), Confusion(), OneCoin() or Ordinal() of crowdwise.em, your own object "
            f"with {', '.join(needed)}, or None for Shared(); got {model!r}."
        )
    model.check()
    return model
