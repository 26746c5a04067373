"""Scorers for scikit-learn's own tools, on labels of many annotators or on known truth, and balanced subsamples.

``cross_val_score(model, X, labels, cv=KFold(5, shuffle=True))`` and `GridSearchCV` take `CrowdLabels`, matrices and
data frames, labels missing or not, with any splitter that does not look into y: `KFold`, `ShuffleSplit`, `GroupKFold`,
`RepeatedKFold`, ... A number of folds, ``cv=None`` and `StratifiedKFold` make scikit-learn look for one class per
example in y, which several labels do not have and which fails where labels are missing: give a splitter. Without
``scoring=`` the model's own `score` is used, the share of labels that it predicts; scikit-learn's metrics cannot take
such labels, and `crowd_scorer` gives others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from crowdwise._arrays import Array, Positions
from crowdwise._checks import check_choice, check_seed
from crowdwise.crowd._disagreement import disagreement
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import align, as_labels
from crowdwise.labels._encode import as_array, as_column, as_objects, encode, encode_declared, missing_mask
from crowdwise.labels._frames import index_of
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.weights.steepness import easiest_examples, ranking

__all__ = ["balanced_subsample", "crowd_scorer"]

Metric = Literal["agreement", "ranking", "accuracy"]


def balanced_subsample(classes: ArrayLike, *, random_state: int | np.random.Generator | None = None) -> Positions:
    """Positions of a random subsample with as many examples of every class as the smallest class has.

    The paper balanced its training sets so, by their truth. Class weights keep all examples instead.

    Parameters
    ----------
    classes : array-like of shape (n_examples,)
        The class of every example: the truth, or a majority vote.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    positions : ndarray of int
        Class by class, from the last class to the first.

    Examples
    --------
    >>> from crowdwise.model_selection import balanced_subsample
    >>> balanced_subsample(["ham", "ham", "spam", "ham"], random_state=0).tolist()
    [2, 3]
    """
    values = as_column(classes, "classes")
    if (absent := missing_mask(values)).any():
        raise LabelError(f"every example needs a class to be balanced by; example {int(absent.argmax())} has none.")
    rng, (codes, names) = check_seed(random_state), encode(values)
    members = [np.flatnonzero(codes == code) for code in reversed(range(len(names)))]
    size = min(map(len, members), default=0)
    return np.concatenate([rng.choice(of_class, size, replace=False) for of_class in members])


@dataclass(frozen=True)
class _Truth:
    """Truth by id, by position, or (a series) by either, and how to find that of the examples of a fold."""

    by_id: Mapping[Any, Any] | None
    values: Array | None

    @classmethod
    def of(cls, truth: Any) -> _Truth:
        if isinstance(truth, Mapping):
            return cls(truth, None)
        values, ids = as_column(truth, "truth"), index_of(truth)
        return cls(None if ids is None else dict(zip(ids.tolist(), values.tolist(), strict=True)), values)

    def of_rows(self, X: Any, labels: CrowdLabels, known_positions: bool) -> Array:
        """The truth of every row, None where it is unknown.

        `known_positions` means that labels without ids have the positions that their examples had in the whole.
        """
        ids = labels.examples if labels._named_examples else index_of(X)
        positions = labels.examples if known_positions and not labels._named_examples else None
        if self.by_id is not None and (ids is not None or self.values is None):
            ids = positions if ids is None else ids
            if ids is None:
                raise LabelError(_UNKNOWN_EXAMPLES)
            return as_objects([self.by_id.get(name) for name in ids.tolist()])
        assert self.values is not None
        if positions is None:
            if len(labels) != len(self.values):
                raise LabelError(_UNKNOWN_EXAMPLES)
            return as_objects(self.values.tolist())
        if len(labels) and positions.max() >= len(self.values):
            raise LabelError(f"truth has {len(self.values)} values, and example {positions.max()} none of them.")
        return as_objects(self.values[positions].tolist())


_UNKNOWN_EXAMPLES = (
    "which of the known truths belong to these examples cannot be known: give y as CrowdLabels, which keeps the "
    "identity of its examples in every fold, and truth by the ids of the examples if they have any."
)


@dataclass(frozen=True)
class _Scorer:
    """A callable ``scorer(model, X, y)`` as scikit-learn's ``scoring=`` takes it."""

    metric: Metric
    truth: _Truth | None

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        X, labels = align(X, as_labels(y))
        if self.truth is not None:
            truth = self.truth.of_rows(X, labels, isinstance(y, CrowdLabels))
            return self._against_truth(model, X, truth)
        if self.metric == "ranking":
            examples = easiest_examples(disagreement(labels, relative_to="possible"), labels._tally)
            assert labels.classes is not None
            return _ranking_of(model, X, examples, labels.classes[labels._tally[examples].argmax(axis=1)])
        return float(model.score(X, labels))

    def _against_truth(self, model: Any, X: Any, truth: Array) -> float:
        known = np.flatnonzero(~missing_mask(truth))
        if len(known) == 0:
            raise LabelError("none of these examples has a known truth: give truth by the ids of the examples.")
        classes = as_array(truth[known].tolist())
        if self.metric == "ranking":
            return _ranking_of(model, X, known, classes)
        return float(
            np.mean(_codes(np.asarray(model.predict(_safe_indexing(X, known))), model) == _codes(classes, model))
        )


def _codes(classes: Array, model: Any) -> Array:
    """Positions of classes among those of the model; -1 for one that the model has never seen."""
    codes = encode_declared(classes, model.classes_)
    if len(codes) and (codes < 0).all():
        raise LabelError(
            f"the truth must use the model's classes {model.classes_.tolist()}; found {classes[:3].tolist()}."
        )
    return codes


def _ranking_of(model: Any, X: Any, examples: Positions, classes: Array) -> float:
    codes = _codes(classes, model)
    if len(np.unique(codes)) < 2:
        raise LabelError(
            f"examples of at least two classes are needed to be ranked; the {len(codes)} examples to be ranked are of "
            f"{len(np.unique(codes))}. Use fewer folds, or another metric."
        )
    scores = np.asarray(model.decision_function(_safe_indexing(X, examples)))
    return ranking(scores.reshape(len(scores), -1), codes, len(model.classes_))


def crowd_scorer(
    metric: Metric = "agreement", *, truth: ArrayLike | Mapping[Any, Any] | None = None
) -> Callable[[Any, Any, Any], float]:
    """A scorer for ``scoring=`` of `GridSearchCV` and the like: scores a classifier on labels, or on known truth.

    Parameters
    ----------
    metric : {"agreement", "ranking", "accuracy"}, default="agreement"
        "agreement": the share of labels that the model predicts. "ranking": how well the examples that annotators
        agree on most are ranked by the model's scores (area under the ROC curve, each class against the others), or
        those whose truth is known. "accuracy": the share of known truths that the model predicts.
    truth : array-like, series or mapping, default=None
        A mapping by the id of the example (its position if it has none), a series by its index if X or the labels have
        ids, anything else by position; NaN, None or left out where it is unknown. It can be found again in every fold
        if `y` is a `CrowdLabels`, which keeps the identity of its examples, or X a data frame with the ids as index.

    Returns
    -------
    scorer : callable
        ``scorer(model, X, y)``; higher is better.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from crowdwise import CrowdRidgeClassifier, simulate_annotators
    >>> from crowdwise.model_selection import crowd_scorer
    >>> X, truth = make_blobs(100, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, missing=0.5, random_state=0)
    >>> folds = KFold(3, shuffle=True, random_state=0)
    >>> search = GridSearchCV(CrowdRidgeClassifier(), {"l2": [0.1, 10.0]}, cv=folds, scoring=crowd_scorer("ranking"))
    >>> sorted(search.fit(X, labels).best_params_)
    ['l2']
    """
    check_choice("metric", metric, ("agreement", "ranking", "accuracy"))
    if metric == "accuracy" and truth is None:
        raise ValueError('metric="accuracy" needs truth; to score on labels alone use "agreement" or "ranking".')
    if metric == "agreement" and truth is not None:
        raise ValueError('metric="agreement" is of labels alone; to score on truth use "accuracy" or "ranking".')
    return _Scorer(metric, None if truth is None else _Truth.of(truth))
