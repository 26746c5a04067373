"""What scikit-learn's own tools need to work with labels of many annotators: a splitter and scorers.

scikit-learn's splitters and scorers look into y and fail on missing labels (or worse, score them as NaN). These do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from crowdwise.crowd.disagreement import disagreement
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_array, as_column, encode_declared, missing_mask
from crowdwise.labels.frames import row_ids
from crowdwise.weights.criteria import easiest_examples, ranking

Metric = Literal["agreement", "ranking", "accuracy"]


class CrowdKFold:
    """Random folds of examples, for ``cv=`` of `GridSearchCV` and the like, whatever labels are missing.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int or None, default=0
        Seed; None gives other folds every time.

    Examples
    --------
    >>> from crowdwise import CrowdKFold
    >>> [len(held_out) for _, held_out in CrowdKFold(3).split(range(8))]
    [3, 3, 2]
    """

    def __init__(self, n_splits: int = 5, *, random_state: int | None = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Pairs of indices of examples to learn from and of examples held out.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features)
            Only its length is used.
        y : object, default=None
            Not used.
        groups : object, default=None
            Not used.

        Yields
        ------
        learn, held_out : ndarray of indices
        """
        n_examples = _num_samples(X)
        if not 2 <= self.n_splits <= n_examples:
            raise ValueError(f"n_splits must be from 2 to the number of examples, {n_examples}; got {self.n_splits}.")
        order = np.random.default_rng(self.random_state).permutation(n_examples)
        for part in np.array_split(order, self.n_splits):
            held_out = np.sort(part)
            yield np.setdiff1d(np.arange(n_examples), held_out), held_out

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds.

        Parameters
        ----------
        X : object, default=None
            Not used.
        y : object, default=None
            Not used.
        groups : object, default=None
            Not used.

        Returns
        -------
        n_splits : int
        """
        return self.n_splits


@dataclass(frozen=True)
class _Scorer:
    """A callable ``scorer(model, X, y)`` as scikit-learn's ``scoring=`` takes it."""

    metric: Metric
    truth: Mapping[Any, Any] | None
    n_positions: int | None = None  # of how many examples the truth is known by position

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        labels = as_labels(y)
        X, labels = align(X, labels)
        if self.truth is not None:
            if not (isinstance(y, CrowdLabels) or labels.named_examples or len(labels) == self.n_positions):
                raise LabelError(
                    f"which of the known truths belong to these {len(labels)} examples cannot be told: give y as "
                    "CrowdLabels, which keeps the identity of its examples in every fold."
                )
            return self._against_truth(model, X, labels)
        if self.metric == "ranking":
            examples = easiest_examples(disagreement(labels, scale="possible"), labels.tally)
            majority = _classes_of(labels)[labels.tally[examples].argmax(axis=1)]
            return _ranking_of(model, X, examples, majority)
        return float(model.score(X, labels))

    def _against_truth(self, model: Any, X: Any, labels: CrowdLabels) -> float:
        assert self.truth is not None
        known = np.array([i for i, name in enumerate(labels.examples.tolist()) if name in self.truth], dtype=np.intp)
        if len(known) == 0:
            raise LabelError("none of these examples has a known truth: give truth by the example's identifier.")
        truth = as_array([self.truth[name] for name in labels.examples[known].tolist()])
        if self.metric == "ranking":
            return _ranking_of(model, X, known, truth)
        return float(np.mean(_codes(np.asarray(model.predict(_take(X, known))), model) == _codes(truth, model)))


def _classes_of(labels: CrowdLabels) -> NDArray[Any]:
    assert labels.classes is not None
    return labels.classes


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return _safe_indexing(X, rows)


def _codes(classes: NDArray[Any], model: Any) -> NDArray[Any]:
    """Positions of classes among those of the model; -1 for one that the model has never seen."""
    codes = encode_declared(classes, model.classes_)
    if len(codes) and (codes < 0).all():
        raise LabelError(
            f"the truth must be in the terms of the model's classes {model.classes_.tolist()}; "
            f"found {classes[:3].tolist()}."
        )
    return codes


def _ranking_of(model: Any, X: Any, examples: NDArray[np.intp], classes: NDArray[Any]) -> float:
    codes = _codes(classes, model)
    if len(np.unique(codes)) < 2:
        raise LabelError(
            f"examples of at least two classes are needed to be ranked; the {len(codes)} examples to be ranked are of "
            f"{len(np.unique(codes))}. Use fewer folds, or another metric."
        )
    scores = np.asarray(model.decision_function(_take(X, examples)))
    return ranking(scores.reshape(len(scores), -1), codes, len(model.classes_))


def crowd_scorer(
    metric: Metric = "agreement", *, truth: ArrayLike | Mapping[Any, Any] | None = None
) -> Callable[[Any, Any, Any], float]:
    """A scorer for ``scoring=`` of `GridSearchCV` and the like: judges a classifier on labels, or on known truth.

    Parameters
    ----------
    metric : {"agreement", "ranking", "accuracy"}, default="agreement"
        "agreement": the share of labels that the model predicts. "ranking": how well the examples that annotators
        agree on most are ranked by the model's scores (area under the ROC curve, each class against the others), or
        those whose truth is known. "accuracy": the share of known truths that the model predicts.
    truth : mapping or array-like, default=None
        The truth by identifier of the example; an array is taken by position, NaN or None where it is unknown. It can
        be found again in every fold only if `y` is a `CrowdLabels`, which keeps the identity of its examples.

    Returns
    -------
    scorer : callable
        ``scorer(model, X, y)``; higher is better.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from crowdwise import CrowdKFold, CrowdRidgeClassifier, crowd_scorer, simulate_annotators
    >>> X, truth = make_blobs(100, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, missing=0.5, random_state=0)
    >>> search = GridSearchCV(
    ...     CrowdRidgeClassifier(), {"l2": [0.1, 10.0]}, cv=CrowdKFold(3), scoring=crowd_scorer("ranking")
    ... )
    >>> sorted(search.fit(X, labels).best_params_)
    ['l2']
    """
    if metric not in ("agreement", "ranking", "accuracy"):
        raise ValueError(f'metric must be "agreement", "ranking" or "accuracy"; got {metric!r}.')
    if metric == "accuracy" and truth is None:
        raise ValueError('metric="accuracy" needs truth; to judge on labels alone use "agreement" or "ranking".')
    if metric == "agreement" and truth is not None:
        raise ValueError('metric="agreement" judges on labels alone; to judge on truth use "accuracy" or "ranking".')
    if truth is None or isinstance(truth, Mapping):
        return _Scorer(metric, truth)
    values = as_column(truth, "truth")
    if (ids := row_ids(truth)) is not None:  # a series says itself which example each truth is of
        given = ~missing_mask(values)
        return _Scorer(metric, dict(zip(ids[given].tolist(), values[given].tolist(), strict=True)))
    known = np.flatnonzero(~missing_mask(values))
    by_position = dict(zip(known.tolist(), values[known].tolist(), strict=True))
    return _Scorer(metric, by_position, len(values))
