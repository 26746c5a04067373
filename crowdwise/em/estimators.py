"""Any estimator -> scores of examples that it has not seen: weighted copies of examples, and who learns from whom.

An example that is a cat with probability 0.7 and a dog with 0.3 becomes two rows with the same features: a cat of
weight 0.7 and a dog of weight 0.3. Whatever takes `sample_weight` can learn from that.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import wraps
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_feature_names, has_fit_parameter

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._checks import check_whole
from crowdwise._threads import one_blas_thread
from crowdwise.em.posterior import OfChunk, shares_of
from crowdwise.em.with_features import SoftTargets, Targets
from crowdwise.exceptions import DataError
from crowdwise.labels._encode import encode_declared
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.mixins import Method
from crowdwise.rows.chunks import MemoryChunks, Stored
from crowdwise.rows.features import check_finite, check_squares
from crowdwise.training_set import TrainingSet, refuse_times
from crowdwise.weights.folds import content_folds
from crowdwise.weights.steepness import choose_steepness

# A class less likely than this gets no copy of an example: it would cost a row and carry almost no information.
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
            f"{type(last).__name__} needs a matrix of similarities between examples, but examples are copied here: "
            "use a kernel that is computed from features."
        )
    return name + "sample_weight"


def check_numbers(X: Any, estimator: Any) -> None:
    """Raise with the places of NaN or infinity in numeric features, or at times, unless the estimator takes them."""
    first = estimator
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    if type(first).__module__.startswith("sklearn.") and not hasattr(first, "transform"):
        refuse_times(X)
    if hasattr(first, "__sklearn_tags__") and not get_tags(first).input_tags.allow_nan:
        _check_finite_features(X, nan=True)


def with_places_of_nan(method: Method) -> Method:
    """A method of X in which an estimator's complaint about NaN or infinity, if it has one, comes with the places.

    Which numbers an estimator takes is not known before: some take NaN, few infinity, and a pipeline may fill in.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, X, *args, **kwargs)
        except ValueError as error:
            if "contains NaN" in str(error) or "contains infinity" in str(error):
                _check_finite_features(X, nan="contains NaN" in str(error))
            raise

    return wrapped  # type: ignore[return-value]


def _check_finite_features(X: Any, *, nan: bool) -> None:
    """Raise with the places of infinity, and of NaN unless that is fine, if there is one in features of numbers."""
    try:
        numbers = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        if numbers.dtype.kind == "O":  # a frame of several types
            numbers = numbers.astype(np.float64)
    except (TypeError, ValueError):  # texts: the estimator knows what they mean
        return
    if numbers.dtype.kind == "f" and numbers.ndim == 2:
        check_finite(numbers, nan=nan)


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
        stored = X.tocsr().data
        with np.errstate(over="ignore"):
            check_squares(np.asarray(stored @ stored, dtype=np.float64))
        return model.fit(X, classes, sample_weight=weight)
    with np.errstate(over="ignore", invalid="ignore"):  # of values near the largest number
        numbers = check_array(X, dtype=[np.float64, np.float32])
        mean = np.average(numbers, axis=0, weights=weight).astype(numbers.dtype)
        centred = numbers - mean
        check_squares(np.einsum("ij,ij->j", centred, centred))
    model.fit(centred, classes, sample_weight=weight)
    _check_feature_names(model, X, reset=True)
    model.intercept_ = model.intercept_ - model.coef_ @ mean
    return model


def usable_weights(easiness: Floats) -> Floats:
    """Easiness that no estimator stumbles over, however steep."""
    return np.maximum(easiness, _LIGHTEST * easiness.max())


def taught_classes(classes: Array) -> Array:
    """What estimators learn to predict: the classes, or their positions if scikit-learn takes no such classes.

    It takes text and whole numbers, and no fractions such as half stars, dates, bytes or numbers beyond 64 bits.
    """
    try:
        with np.errstate(invalid="ignore"), warnings.catch_warnings():  # of numbers beyond 64 bits
            warnings.simplefilter("error", FutureWarning)  # versions that still take bytes
            check_classification_targets(classes.repeat(3))  # it warns of targets of which most are different
    except (TypeError, ValueError, FutureWarning):
        return np.arange(len(classes))
    return classes


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
    one_class: bool = False  # whether all labels are of one class so far, so that there is nothing to learn

    def n_used(self, weight: Floats, rows: Positions) -> float:
        """How many of some examples are learned from, with these weights of all."""
        used = rows[weight[rows] > 0]
        return float(len(used) if self.count is None else self.count[used].sum())

    def fit(self, targets: SoftTargets, rows: Positions, seed: int) -> Any:
        """A fitted clone, from those of some examples that have a weight; None if these are of one class only."""
        rows = rows[targets.weight[rows] > 0]
        if len(rows) == 0 or self.one_class:
            return None
        example, code, weight = weighted_copies(targets.posterior[rows], targets.weight[rows])
        present = np.bincount(code, minlength=len(self.classes)) > 0
        if present.sum() < 2:
            return None
        model = seeded(self.estimator, seed)
        features = _safe_indexing(self.X, rows[example])
        weight = weight * targets.class_weight[code]
        if self.around_mean:
            return fit_around_mean(model, features, taught_classes(self.classes)[code], weight)
        return model.fit(features, taught_classes(self.classes)[code], **{weight_parameter(self.estimator): weight})

    def of_one_class(self, targets: SoftTargets) -> Any:
        """What takes the place of a classifier as long as there is one class to learn: it predicts that class."""
        code = int((targets.weight @ targets.posterior).argmax())
        return DummyClassifier().fit(self.X, np.full(len(targets.weight), taught_classes(self.classes)[code]))

    def held_out_scores(self, targets: SoftTargets, learn: Positions, held_out: Positions, seed: int) -> Floats:
        """Scores of some examples by a model of others; zero, which is no evidence, if there is none."""
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
        proba = probabilities_by_class(_finite(model.predict_proba(X), model), model, classes)
        return np.log((n_used * proba + 1) / (n_used + len(classes)))
    if hasattr(model, "decision_function"):
        scores = _finite(model.decision_function(X), model)
        if scores.ndim == 1:
            scores = np.column_stack([-scores / 2, scores / 2])
        if not _has_pairs(scores, model):
            return _by_class(scores, model, classes, scores.min(axis=1, keepdims=True))
    codes = encode_declared(np.asarray(model.predict(X)), taught_classes(classes)).astype(np.intp)
    return np.eye(len(classes))[codes]


def probabilities_by_class(proba: Floats, model: Any, classes: Array) -> Floats:
    """The probabilities that a model gives, a column for each of these classes; zero for those it has not seen."""
    return _by_class(proba, model, classes, np.zeros((1, 1)))


def scores_by_class(scores: Floats, model: Any, classes: Array) -> Floats:
    """The decision function of a model as scikit-learn has it for these classes, which may be in another order.

    Two classes have one score, that of the second. Scores of pairs of classes stay as they are.
    """
    if np.array_equal(np.asarray(model.classes_), taught_classes(classes)):
        return scores
    if scores.ndim == 1:
        if len(classes) == 2:
            return -scores
        scores = np.column_stack([-scores / 2, scores / 2])
    return scores if _has_pairs(scores, model) else _by_class(scores, model, classes, scores.min(axis=1, keepdims=True))


def _by_class(values: Floats, model: Any, classes: Array, absent: Floats) -> Floats:
    """Columns of the classes that a model knows as those of all classes, with `absent` where it does not know one."""
    known, classes = np.asarray(model.classes_), taught_classes(classes)
    if np.array_equal(known, classes):
        return values
    columns = np.empty((len(values), len(classes)), dtype=values.dtype)
    columns[:] = absent
    columns[:, encode_declared(known, classes).astype(np.intp)] = values
    return columns


def _has_pairs(scores: Floats, model: Any) -> bool:
    """Whether scores have a column for each pair of classes, one against one; of three classes there are three."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    of_pairs = getattr(last, "decision_function_shape", "ovr") == "ovo" and len(model.classes_) > 2
    return of_pairs or scores.shape[1] != len(model.classes_)


def _finite(values: Any, model: Any) -> Floats:
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(
            f"{type(model).__name__} gave scores that are not finite: rescale the features or regularise it."
        )
    return values


Splits = list[tuple[Positions, Positions]]


@dataclass(frozen=True)
class EstimatorFolds:
    """Estimators that score the examples held out from them."""

    learner: Learner  # fits an estimator
    splits: Splits  # positions among the examples that take part
    seeds: list[int]  # of the estimator of each split

    def out_of_fold(self, targets: SoftTargets) -> Floats:
        """Scores of every example by a model of others, class weights divided out; zero where there is none."""
        learner = self.learner
        held_out_scores = Parallel(n_jobs=learner.n_jobs)(
            delayed(learner.held_out_scores)(targets, learn, held_out, seed)
            for (learn, held_out), seed in zip(self.splits, self.seeds, strict=True)
        )
        scores = np.zeros(targets.posterior.shape)
        for (_, held_out), of_fold in zip(self.splits, held_out_scores, strict=True):
            scores[held_out] = of_fold
        return scores - np.log(targets.class_weight) if has_probabilities(learner.estimator) else scores

    def steepness(self, labels: CrowdLabels, disagreement: Floats, weight: Floats) -> float:
        """The steepness that suits a crowd, held-out examples being scored by the estimator itself."""
        if not self.splits:
            return 0.0
        votes = shares_of(labels._tally.astype(np.float64), labels.labels_per_example.astype(np.float64))

        def scores_of(easiness: Floats) -> Floats:
            targets = SoftTargets(votes, usable_weights(easiness) * weight, np.ones(votes.shape[1]))
            scores = self.out_of_fold(targets)
            return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

        return choose_steepness(scores_of, labels, disagreement, weight)


@dataclass(frozen=True, eq=False)
class EstimatorModels:
    """Estimators of all folds, as the rounds of labels and features fit them."""

    folds: EstimatorFolds
    chunks: MemoryChunks

    def fit(self, targets: Targets) -> OfChunk:
        """Fit all folds; what gives the scores of the examples held out from them."""
        scores = self.folds.out_of_fold(soft_targets(self.chunks, targets))
        return lambda chunk: scores[Stored("position")(chunk)]


def soft_targets(chunks: MemoryChunks, targets: Targets) -> SoftTargets:
    """Targets of all examples in one record; rounding decides nothing, as it would where a tree has to break a tie."""
    posterior: Floats = chunks.gather(targets.posterior_of).round(12)
    return SoftTargets(posterior, chunks.gather(targets.weight_of), targets.class_weight)


def splits_of(cv: Any, training: TrainingSet) -> Splits:
    """The splits that `cv` asks for, as positions among the examples that take part.

    A number of folds is dealt out by the content of the rows, so that the order of examples does not matter.
    """
    used = training.used
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        n_examples = int(used.sum())
        if check_whole("cv", cv, low=2) > max(n_examples, 10):  # the default is fine for a handful
            raise ValueError(f"cv must not be more than the {n_examples} examples that take part; got {cv}.")
        return _by_content(training.rows, n_examples, int(cv))
    position = np.cumsum(used) - 1
    majority = training.labels._tally.argmax(axis=1)
    rows = np.arange(len(used))
    splits = [(rows[learn], rows[held_out]) for learn, held_out in check_cv(cv).split(training.X, majority)]
    splits = [(position[learn[used[learn]]], position[out[used[out]]]) for learn, out in splits]
    _check_splits(splits, int(used.sum()))
    return splits


def _by_content(X: Any, n_examples: int, n_folds: int) -> Splits:
    fold = content_folds(_numbers(X), n_folds)
    if fold.max(initial=0) == 0:  # all rows are equal: nothing but their place distinguishes them
        fold = np.arange(n_examples) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]


def _numbers(X: Any) -> Any:
    """Features as numbers; a number per row that its content gives where they are texts or of several types."""
    if sparse.issparse(X):
        return X
    values = np.asarray(X)
    if values.dtype.kind in "biuf" and values.ndim == 2:
        return np.nan_to_num(values.astype(np.float64))
    rows = values.reshape(len(values), -1).tolist()
    digests = (blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=6).digest() for row in rows)
    return np.array([[int.from_bytes(digest)] for digest in digests], dtype=np.float64)


def _check_splits(splits: Splits, n_examples: int) -> None:
    """Raise unless every example is held out once, from models that do not see it."""
    times = np.zeros(n_examples, dtype=np.int64)
    for learn, held_out in splits:
        np.add.at(times, held_out, 1)
        if len(np.intersect1d(learn, held_out)):
            raise DataError("cv gave splits in which an example is both learned from and held out.")
    if (times != 1).any():
        raise DataError(
            f"cv must hold out every example once; example {int((times != 1).argmax())} of those with labels is held "
            f"out {int(times[(times != 1).argmax()])} times."
        )
