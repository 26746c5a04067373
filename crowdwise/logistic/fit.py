"""Features and labels, in memory or in chunks that are read -> the logistic model: one engine for all sources."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._arrays import Floats
from crowdwise._limits import L2_GRID, SCALING_EXAMPLES
from crowdwise.crowd._disagreement import example_weights, pair_sums, scaled_pair_sums
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.posterior import OfChunk
from crowdwise.em.with_features import FitData, Targets
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.logistic.softmax import SoftmaxModels, SoftmaxRows, classes_of
from crowdwise.probabilities import log_softmax
from crowdwise.results.consensus import Consensus
from crowdwise.rows.chunks import Chunk, Chunks, MemoryChunks, ReadChunks, Stored
from crowdwise.rows.features import Rows, RowSpace, is_far, linear_scores, mean_variance, row_space
from crowdwise.rows.summary import DataSummary, first_of_sample
from crowdwise.training_set import TrainingSet
from crowdwise.weights.folds import content_folds, telling_columns

# Features whose largest value is further from one, up or down, are brought to size one first: beside them, the
# intercept and the tolerance of the solver would be of another size, and far beyond, squares overflow or vanish.
_LARGEST = 1e3
# Units are no smaller or larger: coefficients of the features as they came have to be finite, and so have features in
# their unit. Features far below are next to nothing.
_LARGEST_UNIT = 2.0**1000
_FINITE = np.finfo(np.float64).min, np.finfo(np.float64).max
# No penalty is taken to be larger: coefficients are zero with it.
_LARGEST_PENALTY = 1e200


@dataclass(frozen=True)
class LogisticFeatures:
    """Features in a unit and with a shift that cost no digits, and the way back.

    Fewer rows than columns are coordinates of the space that the rows span: coefficients lie in it.
    """

    unit: float  # what all features were divided by
    rows: Rows  # the features in that unit, with their shift
    space: RowSpace | None  # how to come back from coordinates, if they are used
    variance: float  # that of an average feature in its unit

    @classmethod
    def of(cls, X: Any, weight: Floats, *, centred: bool) -> LogisticFeatures:
        """With a shift if features are dense and `centred`; variances are around zero otherwise."""
        rows = Rows.of(X, intercept=centred)
        if (unit := _unit(rows)) != 1:
            rows = Rows.of(X.astype(np.float64) / unit, intercept=centred)
        variance = mean_variance(rows, weight, centred=centred)
        return cls(unit, rows, row_space(rows), variance if variance > 0 else 1.0)

    @property
    def X(self) -> Any:
        """What is read: features, or coordinates."""
        return self.rows.X if self.space is None else self.space.rows.X

    @property
    def shift(self) -> Floats | None:
        """What is subtracted from what is read."""
        return self.rows.shift if self.space is None and self.rows.shift.any() else None

    def penalty(self, l2: float) -> float:
        """The penalty in this unit, from one on the coefficients of the features as they came."""
        return min(l2 / self.unit / self.unit, _LARGEST_PENALTY)

    def penalty_as_given(self, l2: float) -> float:
        """The penalty on the coefficients of the features as they came, from one in this unit; it stays finite."""
        return min(l2 * self.unit * self.unit, float(_FINITE[1]))

    def undo(self, theta: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Coefficients of the features as they came, intercepts, and the shift that these are at (None is zero)."""
        theta = theta if self.space is None else self.space.to_features(theta)
        with np.errstate(over="ignore"):
            coef = np.clip(theta[:-1] / self.unit, *_FINITE)
        intercept, shift, sample = theta[-1], self.rows.shift * self.unit, self.rows.X[:101]
        spread = np.ones(1) if self.rows.is_sparse else np.abs(sample - self.rows.shift).max(axis=0)
        if not is_far(shift, spread * self.unit):
            return coef, intercept - shift @ coef, None
        return coef, intercept, shift


def _unit(rows: Rows) -> float:
    """One, or the power of two next to the largest shifted feature if that is far from one."""
    if rows.is_sparse:
        largest = float(np.abs(rows.X.data).max(initial=0.0))
    elif not rows.is_shifted:
        largest = max(-float(rows.X.min(initial=0.0)), float(rows.X.max(initial=0.0)))
    else:
        ends = np.stack([rows.X.min(axis=0), rows.X.max(axis=0)]).astype(np.float64)
        with np.errstate(over="ignore"):
            largest = float(np.abs(ends - rows.shift).max(initial=0.0))
    if largest == 0 or 1 / _LARGEST < largest < _LARGEST:
        return 1.0
    largest = min(max(largest, 1 / _LARGEST_UNIT), _LARGEST_UNIT)
    return float(2.0 ** np.round(np.log2(largest)))


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
        return linear_scores(X, self.coef, self.intercept, self.shift)

    def log_prior(self, X: Any) -> Floats:
        """Logarithms of the classifier's probabilities as the consensus uses them: class weights divided out."""
        return log_softmax(classes_of(self.scores(X)) - np.log(self.class_weight))

    def consensus(self, X: Any, labels: CrowdLabels, *, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples."""
        return self.annotators.consensus(labels, self.log_prior(X), use_model=use_model)


# Steps of the optimiser at most, and how many times further from the lowest loss it may end while a penalty is chosen.
_MOST_STEPS, _TO_CHOOSE = 500, 30.0


@dataclass(frozen=True, eq=False)
class FoldScores:
    """What the models of all folds predict for rows that they leave out, what classes counted for them divided out."""

    rows: SoftmaxRows
    theta: Floats
    class_weight: Floats  # (n_classes,)
    log_prior: float = 0.0  # that of the coefficients, of one model of all rows

    def __call__(self, chunk: Chunk) -> Floats:
        make = lambda: self.rows.held_out_scores(chunk, self.theta) - np.log(self.class_weight)  # noqa: E731
        return chunk.keep("scores", make, owner=self)


@dataclass
class FoldedLogistic:
    """A logistic regression per fold, fitted to the other folds, all at once; one of all rows without folds."""

    chunks: Chunks
    rows: SoftmaxRows
    sample: Chunk  # some rows, as the chunks have them
    l2: float
    tol: float
    models: SoftmaxModels = field(init=False)

    def __post_init__(self) -> None:
        self.models = SoftmaxModels(self.chunks, self.rows, self.rows.read(self.sample.X), self.l2)

    def fit(self, targets: Targets) -> FoldScores:
        """Fit the models of all folds, from where they are."""
        theta = self.models.fit(targets, targets(self.sample)[1], max_steps=_MOST_STEPS, tol=self.tol)
        log_prior = 0.0 if self.rows.n_folds else float(self.models.log_prior[0])
        return FoldScores(self.rows, theta, targets.class_weight, log_prior)

    def choose_l2(self, targets: Targets, variance: float) -> None:
        """Take the penalty that predicts the soft classes of held-out rows of the sample best.

        The largest that is tried is about the curvature of the loss, a quarter of the weight of all rows times the
        variance of an average feature; each goes on from the last, until held-out rows are predicted less well.
        """
        models = replace(self.models, chunks=MemoryChunks([self.sample]))
        losses, tried = list[float](), list[tuple[float, Floats]]()
        posterior, weight = targets(self.sample)
        models.set_targets(targets, weight)
        for l2 in float(weight.sum()) * variance / 4 * np.array(L2_GRID):
            models.set_l2(float(l2))
            theta = models.step(max_steps=_MOST_STEPS, tol=_TO_CHOOSE * self.tol)
            scores = models.rows.held_out_scores(self.sample, theta)
            losses.append(-float(weight @ np.einsum("ik,ik->i", posterior, log_softmax(scores))))
            tried.append((float(l2), theta))
            if len(losses) > 1 and losses[-1] > losses[-2]:
                break
        self.l2, self.models.theta = tried[int(np.argmin(losses))]
        self.models.set_l2(self.l2)

    def of_all_rows(self, targets: Targets) -> Floats:
        """Coefficients of one model of all rows, of shape (n_features + 1, n_outputs)."""
        rows = replace(self.rows, n_folds=0)
        begin = None if self.models.theta is None else self.models.theta.mean(axis=1, keepdims=True)
        model = SoftmaxModels(self.chunks, rows, self.models.sample, self.l2, begin)
        return model.fit(targets, targets(self.sample)[1], max_steps=_MOST_STEPS, tol=self.tol)[:, 0]


@dataclass(frozen=True, eq=False)
class LogisticData(FitData):
    """What a logistic fit reads."""

    features: LogisticFeatures  # unit and shift, and the way back
    rows: SoftmaxRows  # how rows are read, in folds
    disagreement: OfChunk  # that of the examples of a chunk


def data_in_memory(training: TrainingSet, n_folds: int, init: Any, *, fit_intercept: bool) -> LogisticData:
    """From features and labels that are all there; `init` may be the first consensus of all examples."""
    features = LogisticFeatures.of(training.rows, training.sample_weight, centred=fit_intercept)
    labels, weight, truth = training.used_labels, training.sample_weight, training.used_truth
    fold = content_folds(training.rows, max(n_folds, 1))
    chunks = MemoryChunks.of(labels, weight, features.X, truth)
    positions = first_of_sample(training.rows, labels, SCALING_EXAMPLES)
    rows_of_sample: Any = slice(None) if positions is None else positions
    stored = {"fold": fold, "disagreement": training.weighing_disagreement, "position": np.arange(len(labels))}
    if not isinstance(init, str):
        stored["init"] = _first_consensus(init, training)
    sample = Chunk(
        labels if positions is None else labels[positions], weight[rows_of_sample], features.X[rows_of_sample],
        None if truth is None else truth[rows_of_sample],
        {name: (None, values[rows_of_sample]) for name, values in stored.items()},
    )  # fmt: skip
    for name, values in stored.items():
        chunks.put(name, values)
    present = int(fold.max(initial=0)) + 1 if n_folds else 0
    rows = SoftmaxRows(
        features.X.shape[1], shift=features.shift, n_folds=present if present > 1 else 0, fit_intercept=fit_intercept
    )
    return LogisticData(chunks, sample, training.labels, training.active, features, rows, Stored("disagreement"))


def _first_consensus(init: Any, training: TrainingSet) -> Floats:
    """Probabilities that were given for all examples, of those that take part."""
    values = np.asarray(init, dtype=np.float64)
    expected = (len(training.labels), len(training.classes))
    if values.shape != expected or not (np.isfinite(values).all() and (values >= 0).all() and values.any(axis=1).all()):
        raise ValueError(
            f'init must be "votes", "labels" or probabilities of shape {expected}, one row per example and one column '
            f"per class; got an array of shape {values.shape}."
        )
    return np.asarray((values / values.sum(axis=1, keepdims=True))[training.used])


def data_of_chunks(chunks: ReadChunks, summary: DataSummary, n_folds: int, *, fit_intercept: bool) -> LogisticData:
    """From chunks that are read in every pass, which a first pass has summarised."""
    active = summary.labels_per_annotator > 0
    assert summary.classes is not None
    chunks.names = summary.active, summary.classes
    rows_kept = summary.with_groups().in_order()
    first = slice(None, SCALING_EXAMPLES)  # those that a fit in memory would take
    sample = Chunk(rows_kept.labels[first], rows_kept.weight[first], rows_kept.X[first], memo={}).among(*chunks.names)
    centred = fit_intercept and not sparse.issparse(sample.X)
    features = replace(LogisticFeatures.of(sample.X, sample.weight, centred=centred), space=None)
    rows = SoftmaxRows(
        summary.n_features, features.unit, features.shift, n_folds, telling_columns(sample.X),
        fit_intercept=fit_intercept,
    )  # fmt: skip
    pairs, n_classes = summary.pairs, len(summary.classes)

    def differs(chunk: Chunk) -> Floats:
        n_labels = chunk.labels.labels_per_example
        return scaled_pair_sums(pair_sums(chunk.labels), n_labels, "observed", pairs, n_classes=n_classes)

    return LogisticData(chunks, sample, rows_kept.labels, active, features, rows, differs)


def easiness_of(disagreement: OfChunk, steepness: float) -> OfChunk:
    """Weights by disagreement."""
    if steepness == 0:
        return lambda chunk: np.ones(len(chunk))
    return lambda chunk: chunk.keep("easiness", lambda: example_weights(disagreement(chunk), steepness))
