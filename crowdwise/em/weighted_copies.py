"""A soft consensus -> weighted copies of examples, and any estimator fitted to them.

An example that is a cat with probability 0.7 and a dog with 0.3 becomes two rows with the same features: a cat of
weight 0.7 and a dog of weight 0.3. Whatever takes `sample_weight` can learn from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils.validation import _check_feature_names, has_fit_parameter

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._threads import one_blas_thread
from crowdwise.em.round_weights import SoftTargets
from crowdwise.exceptions import DataError
from crowdwise.labels.encode import encode_declared
from crowdwise.mixins import Method
from crowdwise.rows.features import check_finite, check_squares

# A class less likely than this gets no copy of an example: it would cost a row and say next to nothing.
NEGLIGIBLE = 1e-3
# No example weighs less than this share of the heaviest: estimators choke on weights that vanish.
_LIGHTEST = 1e-9


def weight_parameter(estimator: Any) -> str:
    """The name under which `estimator.fit` takes weights; the last step of a pipeline counts.

    Raises TypeError if it has no `fit` and `predict`, takes no weights, or wants distances between examples as
    features.
    """
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(
            f"estimator must be a classifier with fit and predict, such as RandomForestClassifier(); got {estimator!r}."
        )
    name, last = "", estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        name += f"{step}__"
    if not has_fit_parameter(last, "sample_weight"):
        raise TypeError(
            f"estimator must take sample_weight in fit, and {type(last).__name__} does not: uncertain examples are "
            "learned as weighted copies. Use a classifier that does, such as LogisticRegression, SVC, "
            "RandomForestClassifier or HistGradientBoostingClassifier."
        )
    if get_tags(estimator).input_tags.pairwise:
        raise TypeError(
            f"{type(last).__name__} wants a matrix of similarities between examples, and examples are copied here: "
            "use a kernel that is computed from features."
        )
    return name + "sample_weight"


def check_numbers(X: Any, estimator: Any) -> None:
    """Raise with the places of NaN or infinity in numeric features, unless the estimator takes them."""
    first = estimator
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    if hasattr(first, "__sklearn_tags__") and not get_tags(first).input_tags.allow_nan:
        _refuse(X)


def _refuse(X: Any, *, nan: bool = True) -> None:
    """Raise with the places of infinity, and of NaN unless that is fine, if there is one in features of numbers."""
    try:
        numbers = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        if numbers.dtype.kind == "O":  # a frame of several types
            numbers = numbers.astype(np.float64)
    except (TypeError, ValueError):  # texts: the estimator knows what they mean
        return
    if numbers.dtype.kind == "f" and numbers.ndim == 2:
        check_finite(numbers, nan=nan)


def tells_places(method: Method) -> Method:
    """A method of X in which an estimator's complaint about NaN or infinity, if it has one, comes with the places.

    Which numbers an estimator takes is not known before: some take NaN, few infinity, and a pipeline may fill in.
    """

    @wraps(method)
    def told(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, X, *args, **kwargs)
        except ValueError as error:
            if "contains NaN" in str(error) or "contains infinity" in str(error):
                _refuse(X, nan="contains NaN" in str(error))
            raise

    return told  # type: ignore[return-value]


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which every `random_state` that is None has a seed, so that fitting it again gives the same."""
    copy = clone(estimator)
    rng = np.random.default_rng(seed)
    for name, value in sorted(copy.get_params(deep=True).items()):
        if name.split("__")[-1] == "random_state" and value is None:
            copy.set_params(**{name: int(rng.integers(2**31 - 1))})
    return copy


def fit_around_mean(model: Any, X: Any, classes: Array, weight: Floats) -> Any:
    """A linear classifier fitted to features less their means, with the intercept that belongs to the features.

    Its penalty leaves the intercept alone, so this is the same classifier; but features far from zero, such as times
    around 1e8, would take all digits from its solver. Sparse features stay as they are.
    """
    if sparse.issparse(X):
        return model.fit(X, classes, sample_weight=weight)
    numbers = check_array(X, dtype=[np.float64, np.float32])
    mean = np.average(numbers, axis=0, weights=weight).astype(numbers.dtype)
    centred = numbers - mean
    with np.errstate(over="ignore"):
        check_squares(np.einsum("ij,ij->j", centred, centred))
    model.fit(centred, classes, sample_weight=weight)
    _check_feature_names(model, X, reset=True)
    model.intercept_ = model.intercept_ - model.coef_ @ mean
    return model


def usable_weights(easiness: Floats) -> Floats:
    """Easiness that no estimator stumbles over, however steep."""
    return np.maximum(easiness, _LIGHTEST * easiness.max())


def weighted_copies(posterior: Floats, weight: Floats) -> tuple[Positions, Positions, Floats]:
    """Which example each copy is of, as which class, and its weight: a copy for every class that is not negligible.

    The weights of copies are positive and add up to the example's. Every class keeps its likeliest example, so that a
    classifier knows all classes.
    """
    keep = posterior >= NEGLIGIBLE
    likeliest = posterior.argmax(axis=0)
    rare = ~keep.any(axis=0)
    keep[likeliest[rare], rare] = True
    kept = np.where(keep, np.maximum(posterior, np.finfo(float).eps), 0.0)
    shares = kept / kept.sum(axis=1, keepdims=True)
    example, code = np.nonzero(keep)
    return example, code, shares[example, code] * weight[example]


@dataclass(frozen=True)
class Learner:
    """An estimator that can be fitted to soft targets."""

    estimator: Any  # is cloned for every fit
    classes: Array  # (n_classes,): what the columns of a consensus mean
    X: Any  # features of the examples to learn from; anything that `estimator` takes
    n_jobs: int | None = None  # how many folds are fitted at a time; None is one, unless joblib is set otherwise
    count: Floats | None = None  # (n_examples,): how often each example counts; once by default
    around_mean: bool = False  # whether the estimator, a linear one, is fitted to features less their means

    def n_used(self, weight: Floats, rows: Positions) -> float:
        """How many of some examples are learned from, with these weights of all."""
        used = rows[weight[rows] > 0]
        return float(len(used) if self.count is None else self.count[used].sum())

    def fit(self, targets: SoftTargets, rows: Positions, seed: int) -> Any:
        """A fitted clone, from those of some examples that have a weight; None if these are of one class only."""
        rows = rows[targets.weight[rows] > 0]
        if len(rows) == 0:
            return None
        example, code, weight = weighted_copies(targets.posterior[rows], targets.weight[rows])
        present = np.bincount(code, minlength=len(self.classes)) > 0
        if present.sum() < 2:
            return None
        model = seeded(self.estimator, seed)
        features = _safe_indexing(self.X, rows[example])
        weight = weight * targets.class_weight[code]
        if self.around_mean:
            return fit_around_mean(model, features, self.classes[code], weight)
        return model.fit(features, self.classes[code], **{weight_parameter(self.estimator): weight})

    def held_out_scores(self, targets: SoftTargets, learn: Positions, held_out: Positions, seed: int) -> Floats:
        """Scores of some examples by a model of others; zero, which says nothing, if there is none."""
        with one_blas_thread():  # so that no bit depends on how many folds share the machine
            model = self.fit(targets, learn, seed)
            if model is None:
                return np.zeros((len(held_out), len(self.classes)))
            n_used = self.n_used(targets.weight, learn)
            return class_scores(model, _safe_indexing(self.X, held_out), self.classes, n_used)


def has_probabilities(model: Any) -> bool:
    """Whether `class_scores` are logarithms of probabilities."""
    return hasattr(model, "predict_proba")


def class_scores(model: Any, X: Any, classes: Array, n_used: float) -> Floats:
    """A number for every class that is larger the likelier a fitted model finds it.

    The logarithm of `predict_proba` if there is one, no probability being taken for smaller than n examples can show
    (one in n plus the number of classes); else `decision_function`; else one for the class that is predicted. The model
    may have seen fewer than the classes wanted.
    """
    if has_probabilities(model):
        given = np.asarray(model.predict_proba(X), dtype=np.float64)
        _check_finite(given, model)
        probability = probabilities_by_class(given, model, classes)
        return np.log((n_used * probability + 1) / (n_used + len(classes)))
    if hasattr(model, "decision_function"):
        given = np.asarray(model.decision_function(X), dtype=np.float64)
        _check_finite(given, model)
        if given.ndim == 1:
            given = np.column_stack([-given / 2, given / 2])
        if not _has_pairs(given, model):
            return _by_class(given, model, classes, given.min(axis=1, keepdims=True))
    codes = encode_declared(np.asarray(model.predict(X)), classes).astype(np.intp)
    return np.eye(len(classes))[codes]


def probabilities_by_class(given: Floats, model: Any, classes: Array) -> Floats:
    """The probabilities that a model gives, a column for each of these classes; zero for those it has not seen."""
    return _by_class(given, model, classes, np.zeros((1, 1)))


def scores_by_class(given: Floats, model: Any, classes: Array) -> Floats:
    """The decision function of a model as scikit-learn has it for these classes, which may be in another order.

    Two classes have one score, that of the second. Scores of pairs of classes stay as they are.
    """
    if np.array_equal(np.asarray(model.classes_), classes):
        return given
    if given.ndim == 1:
        if len(classes) == 2:
            return -given
        given = np.column_stack([-given / 2, given / 2])
    return given if _has_pairs(given, model) else _by_class(given, model, classes, given.min(axis=1, keepdims=True))


def _by_class(given: Floats, model: Any, classes: Array, absent: Floats) -> Floats:
    """Columns of the classes that a model knows as those of all classes, with `absent` where it does not know one."""
    known = np.asarray(model.classes_)
    if np.array_equal(known, classes):
        return given
    columns = np.empty((len(given), len(classes)), dtype=given.dtype)
    columns[:] = absent
    columns[:, encode_declared(known, classes).astype(np.intp)] = given
    return columns


def _has_pairs(scores: Floats, model: Any) -> bool:
    """Whether scores have a column for each pair of classes, one against one; of three classes there are three."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    of_pairs = getattr(last, "decision_function_shape", "ovr") == "ovo" and len(model.classes_) > 2
    return of_pairs or scores.shape[1] != len(model.classes_)


def _check_finite(values: Floats, model: Any) -> None:
    if not np.isfinite(values).all():
        raise DataError(f"{type(model).__name__} gave scores that are not finite: rescale the features or tame it.")
