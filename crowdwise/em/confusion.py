"""Labels and a posterior over classes -> what each annotator says when the truth is this or that, and back.

A confusion matrix has a row per state that an example may be in and a column per label: ``confusion[l, k, c]`` is the
probability that annotator l says c in state k. The states are the true classes or, if classes come in several kinds,
all classes of the first kind, then all of the second. All products of probabilities are sums of logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from scipy import sparse
from scipy.special import gammaln, xlogy

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels

AnnotatorModelName = Literal["confusion", "one-coin", "shared"]

# No probability of a label is taken to be smaller: a label never seen is not impossible.
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Incidence:
    """Which (annotator, class) every label is, as a sparse matrix: sums over labels are then products with it.

    Parameters
    ----------
    matrix : sparse array of shape (n_examples, n_annotators * n_classes)
        One for every label.
    n_annotators : int
        Number of annotators.
    n_classes : int
        Number of classes.
    """

    matrix: sparse.csr_array
    n_annotators: int
    n_classes: int

    @classmethod
    def of(cls, labels: CrowdLabels) -> Incidence:
        """From labels of classes."""
        n_classes = 0 if labels.classes is None else len(labels.classes)
        columns = labels.annotator_index.astype(np.int32) * n_classes + labels.values
        shape = (len(labels), labels.n_annotators * n_classes)
        matrix = sparse.csr_array((np.ones(labels.n_labels), columns, labels.indptr), shape=shape)
        return cls(matrix, labels.n_annotators, n_classes)

    def log_likelihood(self, confusion: Floats) -> Floats:
        """Logarithm of the probability of each example's labels in every state.

        Parameters
        ----------
        confusion : ndarray of shape (n_annotators, n_states, n_classes)
            Of each annotator.

        Returns
        -------
        log_likelihood : ndarray of shape (n_examples, n_states)
        """
        table = np.log(np.maximum(confusion, _SMALLEST)).swapaxes(1, 2).reshape(-1, confusion.shape[1])
        return np.asarray(self.matrix @ table)

    def counts(self, posterior: Floats) -> Floats:
        """How often each annotator said c in state k, states counted by their posterior.

        Parameters
        ----------
        posterior : ndarray of shape (n_examples, n_states)
            Times the weight of the example, if there are weights.

        Returns
        -------
        counts : ndarray of shape (n_annotators, n_states, n_classes)
        """
        sums = np.asarray(self.matrix.T @ posterior)
        return sums.reshape(self.n_annotators, self.n_classes, -1).swapaxes(1, 2)


class AnnotatorModel(Protocol):
    """How counts become confusion matrices, and how likely these are beforehand."""

    def estimate(self, counts: Floats) -> Floats: ...

    def log_prior(self, confusion: Floats) -> float: ...

    def log_evidence(self, counts: Floats) -> float: ...


@dataclass
class Confusion:
    """A full matrix for every annotator, each row with a few labels added that are spread evenly.

    Parameters
    ----------
    strength : float
        Labels added to every row.
    """

    strength: float

    def estimate(self, counts: Floats) -> Floats:
        """Matrices from counts."""
        return _rows(counts + self.strength / counts.shape[-1])

    def log_prior(self, confusion: Floats) -> float:
        """Logarithm of the prior, up to a constant."""
        return float(self.strength / confusion.shape[-1] * np.log(confusion).sum())

    def log_evidence(self, counts: Floats) -> float:
        """Logarithm of the probability of the labels, over all matrices that the prior allows."""
        return _drawn(counts, np.full(counts.shape[-1], self.strength / counts.shape[-1]))


@dataclass
class OneCoin:
    """One number for every annotator and kind of example: how often they are right. Wrong labels are all alike.

    Parameters
    ----------
    strength : float
        Labels added, half of them right.
    """

    strength: float

    def estimate(self, counts: Floats) -> Floats:
        """Matrices from counts."""
        right, wrong = self._right_and_wrong(counts)
        accuracy = (right + self.strength / 2) / (right + wrong + self.strength)
        n_classes = counts.shape[-1]
        diagonal = np.eye(n_classes, dtype=bool)
        each = accuracy[:, :, np.newaxis, np.newaxis]
        matrices = np.where(diagonal, each, (1 - each) / max(n_classes - 1, 1))
        return matrices.reshape(counts.shape)

    def log_prior(self, confusion: Floats) -> float:
        """Logarithm of the prior, up to a constant."""
        accuracy = confusion[:, :: confusion.shape[-1], 0]
        return float(self.strength / 2 * (np.log(accuracy) + np.log1p(-accuracy)).sum())

    def log_evidence(self, counts: Floats) -> float:
        """Logarithm of the probability of the labels, over all accuracies that the prior allows."""
        right, wrong = self._right_and_wrong(counts)
        which = -np.log(max(counts.shape[-1] - 1, 1)) * wrong.sum()
        return _drawn(np.stack([right, wrong], axis=-1), np.full(2, self.strength / 2)) + float(which)

    @staticmethod
    def _right_and_wrong(counts: Floats) -> tuple[Floats, Floats]:
        """Labels of each annotator on each kind of example."""
        n_annotators, n_states, n_classes = counts.shape
        by_kind = counts.reshape(n_annotators, n_states // n_classes, n_classes, n_classes)
        right = np.einsum("ljkk->lj", by_kind)
        return right, by_kind.sum(axis=(2, 3)) - right


@dataclass
class Shared:
    """A full matrix for every annotator, drawn towards that of the crowd as a whole where labels are few.

    The crowd's matrix is made of the labels of all annotators together.

    Parameters
    ----------
    strength : float
        Labels of the crowd's quality that are added to every row.
    """

    strength: float
    crowd: Floats | None = field(default=None, init=False)

    def estimate(self, counts: Floats) -> Floats:
        """Matrices from counts; the crowd's is made anew unless the old one explains them better."""
        pooled = _rows(counts.sum(axis=0) + 1.0 / counts.shape[-1])  # a label never given is not impossible
        candidates = [pooled] if self.crowd is None else [pooled, self.crowd]
        worth = [self._explained(counts, crowd) for crowd in candidates]
        self.crowd = candidates[int(np.argmax(worth))]
        return _rows(counts + self.strength * self.crowd)

    def _explained(self, counts: Floats, crowd: Floats) -> float:
        """Log-likelihood of counts plus log prior, with the best matrices for a given one of the crowd."""
        return float(xlogy(counts, _rows(counts + self.strength * crowd)).sum()) + self._log_prior(
            _rows(counts + self.strength * crowd), crowd
        )

    def log_prior(self, confusion: Floats) -> float:
        """Minus the strength times the divergence of the crowd's rows from each annotator's."""
        assert self.crowd is not None
        return self._log_prior(confusion, self.crowd)

    def _log_prior(self, confusion: Floats, crowd: Floats) -> float:
        return float(-self.strength * (xlogy(crowd, crowd) - xlogy(crowd, confusion)).sum())

    def log_evidence(self, counts: Floats) -> float:
        """Logarithm of the probability of the labels, over all matrices around the crowd's."""
        assert self.crowd is not None
        return _drawn(counts, self.strength * self.crowd)


def _drawn(counts: Floats, prior: Floats) -> float:
    """Logarithm of the probability of labels whose frequencies are Dirichlet distributed beforehand (last axis)."""
    total = gammaln(prior.sum(axis=-1)) - gammaln((prior + counts).sum(axis=-1))
    return float(total.sum() + (gammaln(prior + counts) - gammaln(prior)).sum())


def _rows(counts: Floats) -> Floats:
    """Rows that sum to one; evenly where there is nothing to count."""
    sums = counts.sum(axis=-1, keepdims=True)
    even = np.full_like(counts, 1.0 / counts.shape[-1])
    return np.divide(counts, sums, out=even, where=sums > 0)


def model_of_annotators(name: AnnotatorModelName, strength: float) -> AnnotatorModel:
    """The model of that name."""
    models: dict[str, type[Confusion] | type[OneCoin] | type[Shared]] = {
        "confusion": Confusion,
        "one-coin": OneCoin,
        "shared": Shared,
    }
    if name not in models:
        raise ValueError(f"annotator_model must be one of {', '.join(map(repr, models))}; got {name!r}.")
    if not (np.isfinite(strength) and strength > 0):
        raise ValueError(f"strength must be a finite number of labels > 0; got {strength!r}.")
    return models[name](float(strength))
