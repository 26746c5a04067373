"""A perceptron fed from the easiest example to the hardest, which remembers its mistakes and knows its bounds."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import disagreement
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.theory.bounds import regions
from crowdwise.theory.counted import MistakeBound, mistake_bound, region_width
from crowdwise.theory.margins import estimate_margins
from crowdwise.theory.online import feed, weight_sum

Order = Literal["disagreement", "margin", "given", "random"]

_ORDERS = ("disagreement", "margin", "given", "random")


class EasyFirstPerceptron(ClassifierMixin, BaseEstimator):
    """Online perceptron over labels of many annotators, fed with the easiest examples first.

    The label of an example is what most of its annotators say. Examples without a label, or with as many
    labels of one class as of the other, take no part in learning. Two classes only.

    Parameters
    ----------
    order : {"disagreement", "margin", "given", "random"}, default="disagreement"
        From the least disputed example to the most; from the largest margin to the smallest; as the rows come,
        or as `curriculum` in `fit` says; or shuffled anew for every epoch.
    n_epochs : int, default=10
        The most passes over the examples; a pass without a mistake is the last.
    average : bool, default=False
        Whether to predict with the mean of the weights after every example, instead of the last weights.
    fit_intercept : bool, default=True
        Whether every example gets one more feature, always 1. Radius, margins and bounds then include it.
    max_regions : int, default=1000
        The most regions that mistakes are counted in.
    random_state : int, Generator or None, default=None
        Seed of the random order.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Weight of the constant feature.
    classes_ : ndarray of shape (2,)
        The classes.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    consensus_ : ndarray of shape (n_examples,)
        The class learnt for each example; the prediction where annotators had no majority.
    disagreement_ : ndarray of shape (n_examples,)
        How far annotators differ, in [0, 1].
    n_mistakes_ : int
        Mistakes over all epochs.
    mistake_order_ : ndarray of shape (n_mistakes_,)
        The examples that were mistakes, in the order of the mistakes. After `partial_fit`, counted over all batches.
    mistakes_per_epoch_ : ndarray of shape (n_epochs_,)
        Mistakes in every pass.
    mistakes_per_region_ : ndarray of shape (n_regions,)
        Mistakes in every region, the nearest to the boundary first. Not after `partial_fit`.
    margins_ : ndarray of shape (n_examples,)
        What decides the regions: the margins given or estimated, or else those along the final weights.
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
    >>> from crowdwise import EasyFirstPerceptron, simulate_annotators
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
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.order = order
        self.n_epochs = n_epochs
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_regions = max_regions
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, margins: ArrayLike | None = None, curriculum: ArrayLike | None = None
    ) -> EasyFirstPerceptron:
        """Learn from examples, easiest first.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features)
            Features.
        y : CrowdLabels or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels; one dimension means one annotator.
        margins : array-like of shape (n_examples,), default=None
            Known margins: they decide the regions, and the order if ``order="margin"``. By default that order
            estimates them from the annotators' balls, and regions go by the final weights.
        curriculum : array-like of int, default=None
            The examples in the order to feed them, for ``order="given"``; it need not have all of them.

        Returns
        -------
        self : EasyFirstPerceptron
        """
        self._check_parameters(curriculum)
        X, labels = self._read(X, y, reset=True)
        signs = self._consensus_signs(labels)
        if len(np.unique(labels.values)) < 2:
            raise LabelError("labels of two classes are needed to learn; all labels are of one class.")
        if not signs.any():
            raise LabelError("no example has a majority among its labels, so there is nothing to learn.")
        self.disagreement_ = disagreement(labels)
        given = self._given_margins(X, labels, margins)
        taking_part = signs != 0
        order = self._curriculum(taking_part, given, curriculum)
        self._restart(labels, X.shape[1] + self.fit_intercept)
        with threadpool_limits(1, user_api="blas"):  # the blocks are too small to share out
            self._learn(X, signs, order, self.n_epochs)
        self._remember(X, signs, taking_part, given)
        return self

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> EasyFirstPerceptron:
        """Go on learning from a batch of examples, fed once, in the order that `order` gives within the batch.

        Regions and `bound` look back at all mistakes and are not available afterwards.

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
        self._check_parameters(None)
        first = not hasattr(self, "classes_")
        X, labels = self._read(X, y, reset=first, classes=classes if first else self.classes_)
        signs = self._consensus_signs(labels)
        if first:
            self._restart(labels, X.shape[1] + self.fit_intercept)
        self.disagreement_ = disagreement(labels)
        order = self._curriculum(signs != 0, self._given_margins(X, labels, None), None)
        self._learn(X, signs, order, n_epochs=1)
        for stale in ("mistakes_per_region_", "margins_", "consensus_"):
            self.__dict__.pop(stale, None)
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
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each example.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_features)
            Features.

        Returns
        -------
        prediction : ndarray of shape (n_examples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

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
        estimates = self.margins_ if self._margins_given else None
        if u is not None:
            if X is None:
                raise DataError("bound(X, u=u) needs the examples that were given to fit; X is missing.")
            rows = self._rows(validate_data(self, X, dtype=np.float64, reset=False))
            signed = _margins(rows, self._signs, _direction(u, rows.shape[1]))
        part = np.flatnonzero(self._signs)
        position = np.searchsorted(part, self.mistake_order_)
        return mistake_bound(
            signed[part],
            position,
            self.radius_,
            estimates=None if estimates is None else estimates[part],
            n_regions=self.max_regions,
        )

    # ------------------------------------------------------------------ checks at the door

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self, curriculum: ArrayLike | None) -> None:
        if self.order not in _ORDERS:
            raise ValueError(f"order must be one of {', '.join(map(repr, _ORDERS))}; got {self.order!r}.")
        for name in ("n_epochs", "max_regions"):
            if not (isinstance(value := getattr(self, name), int | np.integer) and value >= 1):
                raise ValueError(f"{name} must be a whole number >= 1; got {value!r}.")
        if curriculum is not None and self.order != "given":
            raise ValueError(f'curriculum is for order="given"; order is {self.order!r}.')

    def _read(self, X: Any, y: Any, *, reset: bool, classes: Any = None) -> tuple[Floats, CrowdLabels]:
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
            warn(
                "A column-vector y was passed when a 1d array was expected. It is read as one annotator.",
                DataConversionWarning,
            )
        checked = validate_data(self, X, dtype=np.float64, reset=reset)
        labels = as_labels(y)
        _, labels = align(X if labels.named_examples else checked, labels)  # the order of X is kept
        if classes is not None:
            labels = _with_classes(labels, np.unique(np.asarray(classes)))
        n_classes = 0 if labels.classes is None else len(labels.classes)
        if n_classes > 2:
            raise LabelError("Only binary classification is supported. The type of the target is multiclass.")
        if n_classes < 2:
            found = "no label" if n_classes == 0 else f"one class, {labels.classes.tolist()}"  # type: ignore[union-attr]
            raise LabelError(f"labels of two classes are needed to learn; found {found}.")
        return checked, labels

    def _consensus_signs(self, labels: CrowdLabels) -> Floats:
        unlabelled = int((labels.labels_per_example == 0).sum())
        if unlabelled:
            warn(f"{unlabelled} examples have no label and take no part.")
        counts = labels.counts()
        return np.sign(counts[:, 1] - counts[:, 0]).astype(np.float64)

    def _given_margins(self, X: Floats, labels: CrowdLabels, margins: ArrayLike | None) -> Floats | None:
        if margins is None:
            return estimate_margins(X, labels, random_state=self.random_state) if self.order == "margin" else None
        given = np.asarray(margins, dtype=np.float64)
        if given.shape != (len(X),) or not np.isfinite(given).all():
            raise DataError(f"margins must be {len(X)} finite numbers, one per example; got shape {given.shape}.")
        return given

    def _curriculum(
        self, taking_part: NDArray[np.bool_], margins: Floats | None, curriculum: ArrayLike | None
    ) -> NDArray[np.intp]:
        if curriculum is not None:
            order = np.asarray(curriculum)
            if order.ndim != 1 or order.dtype.kind not in "iu" or not np.isin(order, np.arange(len(taking_part))).all():
                raise DataError(f"curriculum must be positions of examples, 0 to {len(taking_part) - 1}, in order.")
        elif self.order == "disagreement":
            order = np.argsort(self.disagreement_, kind="stable")
        elif self.order == "margin" and margins is not None:
            order = np.argsort(-margins, kind="stable")
        else:
            order = np.arange(len(taking_part))
        return order[taking_part[order]]

    # ------------------------------------------------------------------ learning

    def _rows(self, X: Floats) -> Floats:
        return np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X

    def _restart(self, labels: CrowdLabels, n_columns: int) -> None:
        self.classes_: NDArray[Any] = np.asarray(labels.classes)
        self.annotators_ = labels.annotators
        self._rng = np.random.default_rng(self.random_state)
        self._weights, self._sum, self._n_fed, self._n_seen = np.zeros(n_columns), np.zeros(n_columns), 0, 0
        self.n_mistakes_, self.n_epochs_, self.radius_ = 0, 0, 0.0
        self.mistake_order_ = np.zeros(0, dtype=np.intp)
        self.mistakes_per_epoch_ = np.zeros(0, dtype=np.int64)

    def _learn(self, X: Floats, signs: Floats, order: NDArray[np.intp], n_epochs: int) -> None:
        """Feed the examples in order until an epoch has no mistake; the counts go on from where they were."""
        signed = self._rows(X[order]) * signs[order, np.newaxis]
        self.radius_ = max(self.radius_, float(np.sqrt(np.einsum("ij,ij->i", signed, signed).max(initial=0.0))))
        made, counts = [self.mistake_order_], self.mistakes_per_epoch_.tolist()
        for _ in range(n_epochs):
            if self.order == "random":
                shuffle = self._rng.permutation(len(order))
                signed, order = signed[shuffle], order[shuffle]
            start = self._weights.copy()
            mistakes = feed(signed, self._weights)
            self._sum += weight_sum(signed, mistakes, start)
            self._n_fed += len(signed)
            made.append(order[mistakes] + self._n_seen)
            counts.append(len(mistakes))
            if len(mistakes) == 0:
                break
        self._n_seen += len(X)
        self.mistake_order_ = np.concatenate(made)
        self.n_mistakes_ = len(self.mistake_order_)
        self.mistakes_per_epoch_ = np.array(counts, dtype=np.int64)
        self.n_epochs_ = len(counts)
        final = self._sum / max(self._n_fed, 1) if self.average else self._weights
        self.coef_ = final[np.newaxis, : X.shape[1]].copy()
        self.intercept_ = final[X.shape[1] :].copy() if self.fit_intercept else np.zeros(1)

    def _remember(self, X: Floats, signs: Floats, taking_part: NDArray[np.bool_], given: Floats | None) -> None:
        """What `bound` needs to know about the examples: margins along the final weights, and the regions."""
        scores = X @ self.coef_[0] + self.intercept_[0]
        settled = np.where(taking_part, signs > 0, scores > 0)
        self.consensus_ = self.classes_[settled.astype(np.intp)]
        self._signs = signs
        direction = np.append(self.coef_[0], self.intercept_) if self.fit_intercept else self.coef_[0]
        length = float(np.linalg.norm(direction))
        self._signed_margins = signs * scores / length if length > 0 else np.zeros(len(X))
        self._margins_given = given is not None
        self.margins_ = self._signed_margins if given is None else given
        believed = self.margins_[taking_part]
        width = region_width(believed, self.radius_, self.max_regions) if self.radius_ > 0 else 1.0
        split = regions(self.margins_, self.radius_ or 1.0, margin=width)
        self.mistakes_per_region_ = np.bincount(split.region[self.mistake_order_] - 1, minlength=split.n_regions)


def _margins(rows: Floats, signs: Floats, direction: Floats) -> Floats:
    return np.asarray(signs * (rows @ direction))


def _direction(u: ArrayLike, n_columns: int) -> Floats:
    """A unit vector along u, with an intercept of zero if it was left out."""
    vector = np.asarray(u, dtype=np.float64).ravel()
    if len(vector) == n_columns - 1:
        vector = np.append(vector, 0.0)
    length = float(np.linalg.norm(vector))
    if len(vector) != n_columns or not (np.isfinite(length) and length > 0):
        raise DataError(f"u must have {n_columns} finite numbers, not all zero; got {len(vector)}.")
    return vector / length


def _with_classes(labels: CrowdLabels, classes: NDArray[Any]) -> CrowdLabels:
    """The same labels, with classes that may not all be present in this batch."""
    table = labels.to_table()
    if labels.classes is not None and np.array_equal(labels.classes, classes):
        return labels
    return CrowdLabels.from_table(table, examples=labels.examples, annotators=labels.annotators, classes=classes)
