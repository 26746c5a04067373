"""A perceptron fed from the easiest example to the hardest, which remembers its mistakes and knows its bounds."""

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._checks import check_choice, check_seed, check_whole
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import disagreement
from crowdwise.crowd.flags import flag_annotators
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._align import align, match_examples
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.mixins import CrowdMixin, all_or_nothing
from crowdwise.paper.theory.alignment import Kernel
from crowdwise.paper.theory.balls import Metric
from crowdwise.paper.theory.bounds import regions
from crowdwise.paper.theory.counted import MistakeBound, mistake_bound, region_width
from crowdwise.paper.theory.inputs import checked_features, label_signs, weighted_majority
from crowdwise.paper.theory.margins import estimate_labels, estimate_margins
from crowdwise.paper.theory.online import Progress
from crowdwise.training_set import (
    TrainingSet,
    check_features,
    check_y,
    refuse_texts_and_times,
    warn_if_no_disagreement,
    warn_if_unlabelled,
)

Order = Literal["disagreement", "margin", "given", "random"]

_ORDERS = ("disagreement", "margin", "given", "random")
# Attributes that stay when a batch or another fit follows.
_KEPT = ("classes_", "n_features_in_", "feature_names_in_")


class EasyFirstPerceptron(CrowdMixin, ClassifierMixin, BaseEstimator):
    """Online perceptron over labels of many annotators, fed with the easiest examples first.

    With ``order="margin"`` it learns the sequence of the paper: margins and labels estimated from features and labels,
    each label being the sign of the sum of the annotators' labels times their expertise. With any other order the
    label of an example is the one that most of its annotators gave. Examples without a label, or with a tie, take no
    part in learning. Two classes only. The perceptron and its consensus have no probabilities, and expertise is
    estimated for ``order="margin"`` only. `fit` takes no truth: the mistakes that it counts are those on the labels.

    Parameters
    ----------
    order : {"disagreement", "margin", "given", "random"}, default="disagreement"
        From the least disputed example to the most; from the largest margin to the smallest; as the rows come,
        or as `curriculum` in `fit` states; or shuffled anew for every epoch.
    n_epochs : int, default=10
        The most passes over the examples; a pass without a mistake is the last.
    average : bool, default=False
        Whether to predict with the mean of the weights after every example, instead of the last weights.
    fit_intercept : bool, default=True
        Whether every example gets one more feature, always 1. Radius, margins and bounds then include it.
    max_regions : int, default=1000
        The most regions that mistakes are counted in.
    kernel : "linear" or callable, default="linear"
        The similarity of examples that expertise is estimated from, for ``order="margin"``; see `alignment_expertise`.
    metric : {"euclidean", "cityblock", "chebyshev"} or callable, default="euclidean"
        The distance of examples that margins are estimated in, for ``order="margin"``; see `ball_radii`.
    random_state : int, Generator or None, default=None
        Seed of the random order, and of the radii tried for ``order="margin"`` with more than 1,000 examples.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Weight of the constant feature.
    classes_ : ndarray of shape (2,)
        The classes.
    examples_ : ndarray of shape (n_examples,)
        Identifiers of the examples. This and all that follows about examples and annotators is that of `fit`, and
        not available after `partial_fit`.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    consensus_ : ndarray of shape (n_examples,)
        The class learned for each example; the prediction for those that took no part.
    disagreement_ : ndarray of shape (n_examples,)
        How far annotators differ, in [0, 1].
    expertise_ : ndarray of shape (n_annotators,)
        For ``order="margin"`` only: in [0, 1], by alignment with the features, where other models have a precision.
        NaN for annotators without labels.
    radii_ : ndarray of shape (n_annotators,)
        For ``order="margin"`` without given margins only: the radii of the annotators' balls.
    annotator_flags_ : dict from annotator to tuple of str
        What is remarkable about annotators; "worse than chance" is by comparison with `consensus_`.
    margins_ : ndarray of shape (n_examples,)
        What decides the regions: the margins given or estimated, or else those along the final weights.
    mistakes_per_region_ : ndarray of shape (n_regions,)
        Mistakes in every region, the nearest to the boundary first.
    converged_ : bool
        Whether the last pass had no mistake. It never has if the learned labels cannot be separated.
    n_mistakes_ : int
        Mistakes over all epochs.
    mistake_order_ : ndarray of shape (n_mistakes_,)
        The positions of the examples that were mistakes, in the order of the mistakes. After `partial_fit`, counted
        over all batches.
    mistakes_per_epoch_ : ndarray of shape (n_epochs_,)
        Mistakes in every pass.
    radius_ : float
        The largest norm of an example that took part.
    n_epochs_ : int
        Passes made.
    n_features_in_ : int
        Number of features.

    References
    ----------
    Shankar Vembu and Sandra Zilles. Interactive learning from multiple noisy labels. ECML-PKDD 2016, section 3.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import simulate_annotators
    >>> from crowdwise.paper.theory import EasyFirstPerceptron
    >>> X, truth = make_blobs(200, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, clarity=5.0, random_state=0)
    >>> model = EasyFirstPerceptron(n_epochs=1, average=True).fit(X, labels)
    >>> bool(model.n_mistakes_ <= model.bound().value), model.score(X, truth) > 0.9
    (True, True)
    """

    def __init__(
        self,
        order: Order = "disagreement",
        *,
        n_epochs: int = 10,
        average: bool = False,
        fit_intercept: bool = True,
        max_regions: int = 1000,
        kernel: Kernel = "linear",
        metric: Metric = "euclidean",
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
    ) -> None:
        self.order = order
        self.n_epochs = n_epochs
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_regions = max_regions
        self.kernel = kernel
        self.metric = metric
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        margins: Any = None,
        curriculum: ArrayLike | None = None,
        on_round: OnRound | None = None,
    ) -> EasyFirstPerceptron:
        """Learn from examples, easiest first.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features)
            Features.
        y : CrowdLabels or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels; one dimension means one annotator.
        margins : array-like of shape (n_examples,), series or mapping, default=None
            Known margins: they decide the regions, and the order if ``order="margin"``. By default that order
            estimates them from the annotators' balls, and regions go by the final weights.
        curriculum : array-like of int, default=None
            The positions of the examples in the order to feed them, for ``order="given"``; it need not have all of
            them.
        on_round : callable, default=None
            Is given a `Round` after every epoch: number, mistakes as objective, their share as change, seconds, stage.

        Returns
        -------
        self : EasyFirstPerceptron
        """
        rng, reporter = self._check_settings(curriculum), Reporter("EasyFirstPerceptron", self.verbose, on_round)
        rows, labels = self._read(X, y, reset=True)
        data = TrainingSet.of(rows, labels, None, weighting=False)
        if margins is not None:
            margins = _check_margins(match_examples(margins, X, labels, "margins"), len(rows))
        elif self.order in ("disagreement", "margin"):
            core = data.used_labels
            warn_if_no_disagreement(
                core.n_annotators, core.labels_per_example.max(), "no example is easier than another"
            )
        self._forget()
        self.classes_, self._rng = np.asarray(labels.classes), rng
        signs, margins = self._labels_to_learn(rows, labels, data.used, margins)
        if not signs.any():
            raise LabelError("no example has a majority among its labels, so there is nothing to learn.")
        order = _feeding_order(self.order, signs, data.disagreement, margins, curriculum)
        self._learn(Progress.start(rows.shape[1] + self.fit_intercept), rows, signs, order, self.n_epochs, reporter)
        self.examples_, self.annotators_ = labels.examples, labels.annotators
        self.disagreement_ = data.disagreement
        self.converged_ = bool(self.mistakes_per_epoch_[-1] == 0)
        self._count_regions(rows, signs, margins)
        self._compare(rows, labels, signs)
        reporter.done()
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> EasyFirstPerceptron:
        """Go on learning from a batch of examples, fed once, in the order that `order` gives within the batch.

        Results about examples and annotators, regions and `bound` look back at all examples and are not available
        afterwards.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features)
            Features.
        y : CrowdLabels or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels.
        classes : array-like of shape (2,), default=None
            Both classes; needed at the first call, unless the labels declare them.

        Returns
        -------
        self : EasyFirstPerceptron
        """
        rng = self._check_settings(None)
        first = not hasattr(self, "classes_")
        known = self.classes_ if not first else None if classes is None else np.unique(np.asarray(classes))
        rows, labels = self._read(X, y, reset=first, classes=known)
        if len(labels.classes) < 2:  # type: ignore[arg-type]
            raise LabelError("both classes are needed at the first call: partial_fit(X, y, classes=[...]).")
        labelled = labels.labels_per_example > 0
        warn_if_unlabelled(int((~labelled).sum()), len(labels))
        self.classes_, self._rng = np.asarray(labels.classes), rng if first else copy.deepcopy(self._rng)
        signs, margins = self._labels_to_learn(rows, labels, labelled, None)
        order = _feeding_order(self.order, signs, disagreement(labels), margins, None)
        progress = Progress.start(rows.shape[1] + self.fit_intercept) if first else self._progress
        self._forget()
        self._learn(progress, rows, signs, order, n_epochs=1)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Scores; positive means the second class.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,)
        """
        check_is_fitted(self)
        return self._scores(self._features(X, reset=False))

    def bound(self, X: Any = None, *, u: ArrayLike | None = None) -> MistakeBound:
        """The most mistakes that could have been made, with the numbers that go into the bound.

        It holds for any data: what keeps the vector from separating them is in the deviation.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features), default=None
            The examples given to `fit`; needed with `u`.
        u : array-like of shape (n_features,) or (n_features + 1,), default=None
            A vector that separates the examples, as far as they can be, with its intercept last if there is one.
            By default the final weights.

        Returns
        -------
        bound : MistakeBound
        """
        check_is_fitted(self)
        if not hasattr(self, "margins_"):
            raise DataError("bound() looks back at every mistake, which partial_fit does not keep; use fit.")
        signed = self._signed_margins
        if u is not None:
            signed = self._margins_along(X, u)
        part = np.flatnonzero(self._signs)
        return mistake_bound(
            signed[part],
            np.searchsorted(part, self.mistake_order_),
            self.radius_,
            estimates=self.margins_[part] if self._margins_given else None,
            n_regions=self.max_regions,
        )

    def consensus_frame(self) -> Any:
        """The class learned per example of `fit`, with disagreement and margin, one row per example.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        self._check_has_results()
        columns = {"example": self.examples_, "label": self.consensus_, "disagreement": self.disagreement_}
        return make_frame(columns | {"margin": self.margins_})

    def annotators_frame(self) -> Any:
        """Labels and flags of the annotators of `fit`, and their expertise for ``order="margin"``; a row for each.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        self._check_has_results()
        columns: dict[str, Any] = {"annotator": self.annotators_, "labels": self._n_labels}
        for name in ("expertise", "radii"):
            if hasattr(self, f"{name}_"):
                columns[name.replace("radii", "radius")] = getattr(self, f"{name}_")
        flags = [self.annotator_flags_.get(name, ()) for name in self.annotators_.tolist()]
        return make_frame(columns | {"flags": np.array(["; ".join(each) for each in flags], dtype=object)})

    # ------------------------------------------------------------------ checks at the door

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.classifier_tags.multi_class = False
        return tags

    def _check_settings(self, curriculum: ArrayLike | None) -> np.random.Generator:
        check_choice("order", self.order, _ORDERS)
        check_whole("n_epochs", self.n_epochs)
        check_whole("max_regions", self.max_regions)
        check_choice("average", self.average, (True, False))
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        if curriculum is not None and self.order != "given":
            raise ValueError(f'curriculum is for order="given"; order is {self.order!r}.')
        return check_seed(self.random_state)

    def _features(self, X: Any, *, reset: bool) -> Floats:
        refuse_texts_and_times(X)
        rows = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=False)
        return checked_features(rows)

    def _read(self, X: Any, y: Any, *, reset: bool, classes: Array | None = None) -> tuple[Floats, CrowdLabels]:
        if reset and not sparse.issparse(X):
            rows, labels = check_features(self, X, y)
            rows = checked_features(rows)
        else:
            labels, rows = check_y(self, y), self._features(X, reset=False)
            _, labels = align(X if hasattr(X, "index") else rows, labels)
        if classes is not None:
            labels = labels._with_classes(classes)
        if len(labels.classes) > 2:  # type: ignore[arg-type]
            raise LabelError("Only binary classification is supported. The type of the target is multiclass.")
        return rows, labels

    def _check_has_results(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "examples_"):
            raise DataError("results about examples and annotators are those of fit; partial_fit does not keep them.")

    # ------------------------------------------------------------------ learning

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and name not in _KEPT]:
            delattr(self, name)

    def _labels_to_learn(
        self, rows: Floats, labels: CrowdLabels, used: Array, margins: Floats | None
    ) -> tuple[Floats, Floats | None]:
        """The label of every example, as -1, 0 (takes no part) or +1, and the margins if known or estimated."""
        if self.order != "margin":
            return weighted_majority(label_signs(labels)), margins
        if not used.any():
            return np.zeros(len(rows)), margins
        rows, labels = rows[used], labels[used]
        if margins is not None:
            self.expertise_, signs = estimate_labels(rows, labels, kernel=self.kernel, random_state=self._rng)
            return _among_all(signs, used), margins
        found = estimate_margins(rows, labels, kernel=self.kernel, metric=self.metric, random_state=self._rng)
        self.expertise_, self.radii_ = found.expertise, found.radii
        return _among_all(found.signs, used), _among_all(found.margins, used)

    def _rows(self, X: Floats) -> Floats:
        return np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X

    def _scores(self, rows: Floats) -> Floats:
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def _learn(
        self,
        progress: Progress,
        X: Floats,
        signs: Floats,
        order: Positions,
        n_epochs: int,
        reporter: Reporter | None = None,
    ) -> None:
        """Feed the examples in order until an epoch has no mistake; the counts go on from where they were."""
        signed = self._rows(X[order]) * signs[order, np.newaxis]
        with one_blas_thread():  # the blocks are too small to share out
            rng = self._rng if self.order == "random" else None
            report = None if reporter is None else reporter.rounds("epochs")
            done = progress.after(signed, order, len(X), n_epochs, rng, report)
        self._progress, self.radius_ = done, done.radius
        self.mistake_order_, self.n_mistakes_ = done.mistakes, len(done.mistakes)
        self.mistakes_per_epoch_ = np.array(done.per_epoch, dtype=np.int64)
        self.n_epochs_ = len(done.per_epoch)
        final = done.total / max(done.n_fed, 1) if self.average else done.weights
        self.coef_ = final[np.newaxis, : X.shape[1]].copy()
        self.intercept_ = final[X.shape[1] :].copy() if self.fit_intercept else np.zeros(1)

    # ------------------------------------------------------------------ looking back

    def _count_regions(self, X: Floats, signs: Floats, given: Floats | None) -> None:
        """What `bound` needs to know about the examples: margins along the final weights, and the regions."""
        direction = np.append(self.coef_[0], self.intercept_) if self.fit_intercept else self.coef_[0]
        length = float(np.linalg.norm(direction))
        self._signs, self._margins_given = signs, given is not None
        self._signed_margins = signs * self._scores(X) / length if length > 0 else np.zeros(len(X))
        self.margins_ = self._signed_margins if given is None else given
        width = region_width(self.margins_[signs != 0], self.radius_, self.max_regions) if self.radius_ > 0 else 1.0
        split = regions(self.margins_, self.radius_ or 1.0, margin=width)
        self.mistakes_per_region_ = np.bincount(split.region[self.mistake_order_] - 1, minlength=split.n_regions)

    def _compare(self, X: Floats, labels: CrowdLabels, signs: Floats) -> None:
        """The class of every example, and annotators whose labels go against it."""
        used = np.where(signs == 0, np.where(self._scores(X) > 0, 1.0, -1.0), signs)
        self.consensus_ = self.classes_[(used > 0).astype(np.intp)]
        self._n_labels = labels.labels_per_annotator
        self.annotator_flags_ = flag_annotators(labels, label_signs(labels).T @ used)

    def _margins_along(self, X: Any, u: ArrayLike) -> Floats:
        if X is None:
            raise DataError("bound(X, u=u) needs the examples that were given to fit; X is missing.")
        rows = self._rows(self._features(X, reset=False))
        if len(rows) != len(self._signs):
            raise DataError(f"X must be the {len(self._signs)} examples that were given to fit; got {len(rows)}.")
        return np.asarray(self._signs * (rows @ _direction(u, rows.shape[1])))


def _check_margins(margins: Any, n_examples: int) -> Floats:
    given = np.asarray(margins, dtype=np.float64)
    if given.shape != (n_examples,) or not np.isfinite(given).all():
        raise DataError(f"margins must be {n_examples} finite numbers, one per example; got shape {given.shape}.")
    return given


def _among_all(values: Floats, chosen: Array) -> Floats:
    """Values of some examples, with 0 for all others."""
    all_values = np.zeros(len(chosen))
    all_values[chosen] = values
    return all_values


def _feeding_order(
    order: Order, signs: Floats, differs: Floats, margins: Floats | None, curriculum: ArrayLike | None
) -> Positions:
    """Positions of the examples that take part, in the order to feed them."""
    positions = np.arange(len(signs))
    if curriculum is not None:
        positions = np.asarray(curriculum)
        if positions.ndim != 1 or positions.dtype.kind not in "iu" or not np.isin(positions, range(len(signs))).all():
            raise DataError(f"curriculum must be positions of examples, 0 to {len(signs) - 1}, in order.")
    elif order == "disagreement":
        positions = np.argsort(differs, kind="stable")
    elif order == "margin" and margins is not None:
        positions = np.argsort(-margins, kind="stable")
    return positions[signs[positions] != 0]


def _direction(u: ArrayLike, n_columns: int) -> Floats:
    """A unit vector along u, with an intercept of zero if it was left out."""
    vector = np.asarray(u, dtype=np.float64).ravel()
    if len(vector) == n_columns - 1:
        vector = np.append(vector, 0.0)
    length = float(np.linalg.norm(vector))
    if len(vector) != n_columns or not (np.isfinite(length) and length > 0):
        raise DataError(f"u must have {n_columns} finite numbers, not all zero; got {len(vector)}.")
    return vector / length
