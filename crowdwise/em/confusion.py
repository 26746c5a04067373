"""Labels and a posterior over classes -> what each annotator answers when the truth is this or that, and back.

A confusion matrix has a row per true class and a column per label: ``confusion[l, k, c]`` is the probability that
annotator l answers c if the class is k. All products of probabilities are sums of logarithms.

How counts become matrices is a part that users may pass: `Shared`, `Confusion`, `OneCoin`, or their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from crowdwise._arrays import Floats
from crowdwise._checks import check_number
from crowdwise._limits import ASSUMED_LABELS, ASSUMED_RIGHT, CROWD_STRENGTH
from crowdwise.labels.crowd_labels import CrowdLabels

# No probability of a label is taken to be smaller: a label never seen is not impossible.
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Incidence:
    """Which (annotator, answer) every label is, as a sparse matrix: sums over labels are then products with it."""

    matrix: sparse.csr_array  # (n_examples, n_annotators * n_answers): what every label counts
    n_annotators: int
    n_answers: int  # classes, and one more if abstentions are answers, which come last

    @classmethod
    def of(cls, labels: CrowdLabels, weight: Floats | None = None) -> Incidence:
        """From labels of classes; `weight` is what each of them counts."""
        assert labels.classes is not None
        n_answers, index = len(labels.classes), np.int32 if labels.n_labels < 2**31 else np.int64
        columns = labels.annotator_index.astype(index) * n_answers + labels.values.astype(index)
        counts = np.ones(labels.n_labels) if weight is None else weight
        shape = (len(labels), labels.n_annotators * n_answers)
        matrix = sparse.csr_array((counts, columns, labels.indptr.astype(index)), shape=shape)
        return cls(matrix, labels.n_annotators, n_answers)

    def counted(self, weight: Floats) -> Incidence:
        """The same labels, each of which counts something else; where they are is not copied."""
        entries = (weight, self.matrix.indices, self.matrix.indptr)
        return Incidence(sparse.csr_array(entries, shape=self.matrix.shape), self.n_annotators, self.n_answers)

    def log_likelihood(self, confusion: Floats) -> Floats:
        """Logarithm of the probability of each example's labels for every class, of shape (n_examples, n_classes)."""
        table = np.maximum(confusion.swapaxes(1, 2), _SMALLEST)
        np.log(table, out=table)
        return np.asarray(self.matrix @ table.reshape(-1, confusion.shape[1]))

    def counts(self, posterior: Floats) -> Floats:
        """How often each annotator answered c where the class is k, classes counted by a posterior.

        The posterior, of shape (n_examples, n_classes), is multiplied by weights of the examples, if there are any.
        """
        sums = np.asarray(self.matrix.T @ posterior)
        return sums.reshape(self.n_annotators, self.n_answers, -1).swapaxes(1, 2)


def answers_of(labels: CrowdLabels) -> CrowdLabels:
    """Labels, and abstentions as labels of one more class, which is the last; classes are their positions.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
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
    annotator = np.concatenate([labels.annotator_index, labels.abstentions.indices])
    values = np.concatenate([labels.values, np.full(labels.n_abstentions, n_classes)])
    order = np.lexsort([annotator, example])
    return replace(
        labels,
        indptr=np.concatenate([[0], np.cumsum(labels.labels_per_example + n_abstained)]),
        annotator_index=annotator[order],
        values=values[order],
        classes=codes,
        abstentions=None,
    )


class AnnotatorModel(Protocol):
    """How counts become confusion matrices, and how likely these are a priori.

    `crowd` is the confusion matrix of the crowd as a whole, of shape (n_classes, n_answers); a model may shrink each
    annotator towards it.
    """

    def check(self) -> None:
        """Raise if a setting makes no sense."""
        ...

    def crowd(self, counts: Floats, class_counts: Floats | None = None) -> Floats:
        """The crowd's matrix, from the counts of all annotators.

        `class_counts` is how often each class was given, if counts are of some labels only.
        """
        ...

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices of shape (n_annotators, n_classes, n_answers) from counts of that shape."""
        ...

    def log_prior(self, confusion: Floats, crowd: Floats) -> Floats:
        """Logarithms of the prior of the matrices, one per annotator, up to a constant."""
        ...


@dataclass(frozen=True)
class _Smoothed:
    """A model that adds labels to what was counted."""

    strength: float = CROWD_STRENGTH

    def check(self) -> None:
        """Raise if the strength is not above 0."""
        check_number("strength", self.strength, above=True)

    def crowd(self, counts: Floats, class_counts: Floats | None = None) -> Floats:
        """The matrix of all labels together."""
        return pooled(counts, class_counts)


@dataclass(frozen=True)
class Confusion(_Smoothed):
    """A confusion matrix per annotator, each row with a few labels added that are spread evenly over the classes.

    Parameters
    ----------
    strength : float, default=4.0
        Labels added to every row; above 0.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import Confusion
    >>> aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]], annotator_model=Confusion()).label.tolist()
    [1, 0, 1, 0]
    """

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        return _rows(counts + self.strength / counts.shape[-1])

    def log_prior(self, confusion: Floats, crowd: Floats) -> Floats:
        """Logarithm of the prior per annotator, up to a constant."""
        return np.asarray(self.strength / confusion.shape[-1] * np.log(confusion).sum(axis=(1, 2)))


@dataclass(frozen=True)
class OneCoin(_Smoothed):
    """One number per annotator: how often they are right. All wrong labels are equally probable.

    Parameters
    ----------
    strength : float, default=4.0
        Labels added, half of them right; above 0.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import OneCoin
    >>> aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0]], annotator_model=OneCoin()).label.tolist()
    [1, 0, 1]
    """

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        n_classes, right = counts.shape[-1], np.einsum("jkk->j", counts)
        accuracy = (right + self.strength / 2) / (counts.sum(axis=(1, 2)) + self.strength)
        wrong = (1 - accuracy) / max(n_classes - 1, 1)
        return np.where(np.eye(n_classes, dtype=bool), accuracy[:, np.newaxis, np.newaxis], wrong[:, None, None])

    def log_prior(self, confusion: Floats, crowd: Floats) -> Floats:
        """Logarithm of the prior per annotator, up to a constant."""
        accuracy = confusion[:, 0, 0]
        return np.asarray(self.strength / 2 * (np.log(accuracy) + np.log1p(-accuracy)))


@dataclass(frozen=True)
class Shared(_Smoothed):
    """A confusion matrix per annotator, shrunk towards that of the crowd as a whole where labels are few.

    Parameters
    ----------
    strength : float, default=4.0
        Labels of the crowd's quality that are added to every row; above 0.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import Shared
    >>> aggregate([[1, 1, 0], [0, 0, 0], [1, 1, 1]], annotator_model=Shared(strength=5.0)).label.tolist()
    [1, 0, 1]
    """

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        return _rows(counts + self.strength * crowd)

    def log_prior(self, confusion: Floats, crowd: Floats) -> Floats:
        """Minus the strength times the divergence of the crowd's rows from each annotator's."""
        return np.asarray(-self.strength * (xlogy(crowd, crowd) - xlogy(crowd, confusion)).sum(axis=(1, 2)))


def pooled(counts: Floats, class_counts: Floats | None = None) -> Floats:
    """The confusion matrix of all annotators together, and of labels that are assumed before any is seen."""
    return _rows(with_assumed(counts.sum(axis=0), class_counts))


def with_assumed(total: Floats, class_counts: Floats | None = None) -> Floats:
    """Counts of all labels together, and of those that are assumed before any is seen.

    These are right with some probability, beyond guessing by how often classes are given: then a rare class is a rare
    error too, and no label is improbable where nothing shows how good annotators are.
    """
    n_classes, n_answers = total.shape
    class_counts = total.sum(axis=0) if class_counts is None else class_counts
    frequency = (class_counts + 1 / n_answers) / (class_counts.sum() + 1)
    return total + ASSUMED_LABELS * (ASSUMED_RIGHT * np.eye(n_classes, n_answers) + (1 - ASSUMED_RIGHT) * frequency)


def _rows(counts: Floats) -> Floats:
    """Rows that sum to one, written over the counts; evenly where there is nothing to count."""
    sums = counts.sum(axis=-1, keepdims=True)
    if not sums.all():
        counts += sums == 0
        sums = counts.sum(axis=-1, keepdims=True)
    counts /= sums
    return counts


def check_annotator_model(model: Any) -> AnnotatorModel:
    """The model of annotators, if it is one; None is `Shared()`."""
    if model is None:
        return Shared()
    needed = ("check", "crowd", "estimate", "log_prior")
    if isinstance(model, type) or not all(callable(getattr(model, name, None)) for name in needed):
        raise ValueError(
            "annotator_model must be Shared(), Confusion(), OneCoin() or Ordinal() of crowdwise.em, your own object "
            f"with {', '.join(needed)}, or None for Shared(); got {model!r}."
        )
    model.check()
    return model


# How often someone abstains is drawn towards the crowd in the way that labels are.
_ABSTAINING = Shared()


@dataclass(frozen=True)
class Abstaining:
    """Annotators who may abstain: the last column of counts and matrices."""

    model: AnnotatorModel  # how those err who answer

    def check(self) -> None:
        """Raise if a setting of the model makes no sense."""
        self.model.check()

    def crowd(self, counts: Floats, class_counts: Floats | None = None) -> Floats:
        """The crowd's matrix."""
        return _joined(self.model.crowd(counts[..., :-1], class_counts), _pooled_abstaining(counts))

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        answers, abstains = _split(crowd)
        return _joined(self.model.estimate(counts[..., :-1], answers), _ABSTAINING.estimate(_whether(counts), abstains))

    def log_prior(self, confusion: Floats, crowd: Floats) -> Floats:
        """Logarithm of the prior per annotator, up to a constant."""
        parts = zip((self.model, _ABSTAINING), _split(confusion), _split(crowd), strict=True)
        return np.sum([model.log_prior(matrices, of_crowd) for model, matrices, of_crowd in parts], axis=0)


def _pooled_abstaining(counts: Floats) -> Floats:
    """How often all annotators together answer and abstain, of every class; before any answer the same of all."""
    total = _whether(counts).sum(axis=0)
    share = (total.sum(axis=0) + 0.5) / (total.sum() + 1)
    return _rows(total + ASSUMED_LABELS * share)


def _whether(counts: Floats) -> Floats:
    """How often someone answered, and abstained."""
    return np.stack([counts[..., :-1].sum(axis=-1), counts[..., -1]], axis=-1)


def _split(confusion: Floats) -> tuple[Floats, Floats]:
    """Probabilities of labels if an annotator answers, and of answering and abstaining."""
    answering = confusion[..., :-1].sum(axis=-1)
    return confusion[..., :-1] / answering[..., np.newaxis], np.stack([answering, confusion[..., -1]], axis=-1)


def _joined(answers: Floats, abstains: Floats) -> Floats:
    return np.concatenate([answers * abstains[..., :1], abstains[..., 1:]], axis=-1)
