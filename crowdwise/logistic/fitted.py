"""Coefficients and annotators of a fit -> a record that scores examples and gives a consensus on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._arrays import Floats
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.probabilities.log_space import log_softmax
from crowdwise.results.consensus import Consensus
from crowdwise.softmax.rows import classes_of


@dataclass(frozen=True, eq=False)
class FittedLogistic:
    """Everything that a fitted model needs to score examples and to give a consensus on them.

    Parameters
    ----------
    annotators : FittedAnnotators
        How the annotators of the fit answer.
    coef : ndarray of shape (n_features, n_columns)
        Coefficients; one column for two classes, else one per class.
    intercept : ndarray of shape (n_columns,)
        Intercepts at `shift`.
    shift : ndarray of shape (n_features,) or None
        Subtracted from features that are far from zero, which would cost digits otherwise.
    class_weight : ndarray of shape (n_classes,)
        What each class counted for the classifier.
    """

    annotators: FittedAnnotators
    coef: Floats
    intercept: Floats
    shift: Floats | None
    class_weight: Floats

    def scores(self, X: Any) -> Floats:
        """Log-odds of the second of two classes, or scores of all classes, of shape (n_examples, n_columns)."""
        if self.shift is None:
            return np.asarray(X @ self.coef) + self.intercept
        if sparse.issparse(X):
            return self._sparse_scores(sparse.csr_array(X), self.shift)
        return np.asarray((X - self.shift) @ self.coef) + self.intercept

    def _sparse_scores(self, X: sparse.csr_array, shift: Floats) -> Floats:
        """Scores of sparse features, which are shifted where they are stored and stay sparse."""
        if not X.has_canonical_format:  # an entry stored in two parts would be shifted twice
            X = X.copy()
            X.sum_duplicates()
        stored = sparse.csr_array((X.data - shift[X.indices], X.indices, X.indptr), shape=X.shape)
        scores = np.asarray(stored @ self.coef) + self.intercept
        where = sparse.csr_array(((shift[X.indices] != 0).astype(np.float64), X.indices, X.indptr), shape=X.shape)
        absent = np.flatnonzero(where.sum(axis=1) < np.count_nonzero(shift))  # shifted zeros that are not stored
        scores[absent] += np.asarray(where[absent] @ (shift[:, np.newaxis] * self.coef)) - shift @ self.coef
        return scores

    @property
    def intercept_at_zero(self) -> Floats:
        """Intercepts for features that are not shifted."""
        return self.intercept if self.shift is None else self.intercept - self.shift @ self.coef

    def log_prior(self, X: Any) -> Floats:
        """Logarithms of the classifier's probabilities as the consensus uses them: class weights divided out."""
        return log_softmax(classes_of(self.scores(X)) - np.log(self.class_weight))

    def consensus(self, X: Any, labels: CrowdLabels, *, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples."""
        return self.annotators.consensus(labels, self.log_prior(X), use_model=use_model)
