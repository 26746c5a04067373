"""What all classifiers here have in common: classes from scores, and how they compare with labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from crowdwise.inputs import align, as_labels
from crowdwise.models.scoring import label_accuracy


class CrowdClassifierMixin(ClassifierMixin):
    """Predictions and accuracy, from `decision_function` and `classes_`."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        classes : ndarray of shape (n_examples,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels that the model predicts; with one label an example this is accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels, or the truth.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        score : float
        """
        _, labels = align(X, as_labels(y))
        return label_accuracy(self.predict(X), labels, self.classes_, sample_weight)
