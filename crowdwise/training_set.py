"""``fit(X, y, sample_weight)`` -> the examples and annotators that take part, checked once for every model."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, validate_data

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise._text import count
from crowdwise.crowd._disagreement import RelativeTo, disagreement
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels._align import align, as_labels, match_examples, with_ids_of
from crowdwise.labels._encode import missing_mask, shown
from crowdwise.labels._frames import is_frame, table_columns
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName, is_known
from crowdwise.labels.truth import Known
from crowdwise.results.consensus import Consensus

# Weights beyond this, or below one over it, lose digits or overflow when they are squared; they are rescaled.
_LARGEST_WEIGHT = 1e50
# An example that counts less than this share of the heaviest one takes no part.
_NEGLIGIBLE_WEIGHT = 1e-30


@dataclass(frozen=True)
class TrainingSet:
    """What `fit` was given, and who takes part.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
        Features of all examples.
    labels : CrowdLabels
        All labels, in the order of X.
    used : ndarray of bool of shape (n_examples,)
        Examples with a label and a weight: those that take part.
    active : ndarray of bool of shape (n_annotators,)
        Annotators with a label on these.
    used_labels : CrowdLabels
        Labels of the examples and annotators that take part.
    sample_weight : ndarray
        How often each example that takes part counts.
    disagreement : ndarray of shape (n_examples,)
        Of all examples, on the scale of those that take part.
    truth : ndarray of shape (n_examples,) or None, default=None
        Known answers of all examples, as `known_answers` gives them.
    """

    X: Any
    labels: CrowdLabels
    used: Bools
    active: Bools
    used_labels: CrowdLabels
    sample_weight: Floats
    disagreement: Floats
    truth: Array | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        labels: CrowdLabels,
        sample_weight: Any,
        *,
        truth: Array | None = None,
        relative_to: RelativeTo = "observed",
        weighting: bool = True,
        one_class: bool = False,
    ) -> TrainingSet:
        """From features and labels of the same rows; `weighting` is whether disagreement is going to be used.

        With `one_class`, labels of one class are enough if there is another that was declared.
        """
        weight = check_sample_weight(sample_weight, X, labels)
        labelled = labels.labels_per_example > 0
        used = labelled & (weight > 0)
        if not labelled.any():
            examples = "the only example is" if len(labels) == 1 else f"all {len(labels)} examples are"
            raise LabelError(f"there is no label: {examples} without one.")
        if not used.any():
            raise DataError("the sample_weight of every labelled example is zero: nothing is left to learn from.")
        warn_if_unlabelled(int((~labelled).sum()), len(labels))
        used_labels = labels if used.all() else labels[used]
        active = used_labels.labels_per_annotator > 0
        used_labels = used_labels.select_annotators(active)
        if used_labels.classes is not None:
            named = np.array([bool(column.any()) for column in used_labels._tally.T])
            check_named(used_labels.classes, named, declared=one_class and labels.declared_classes)
        if weighting:
            warn_if_no_disagreement(used_labels.n_annotators, int(used_labels.labels_per_example.max()))
        weight = weight if used.all() else weight[used]
        differs = disagreement(used_labels, relative_to=relative_to, sample_weight=weight)
        if not used.all():
            differs_among_used, differs = differs, disagreement(labels, relative_to=relative_to)
            differs[used] = differs_among_used
        return cls(X, labels, used, active, used_labels, weight, differs, truth)

    @cached_property
    def rows(self) -> Any:
        """Features of the examples that take part."""
        return self.X if self.used.all() else _safe_indexing(self.X, np.flatnonzero(self.used))

    @property
    def classes(self) -> Array:
        """The classes of labels that are not ratings."""
        assert self.labels.classes is not None
        return self.labels.classes

    @property
    def others(self) -> Positions:
        """Positions of the examples that take no part."""
        return np.flatnonzero(~self.used)

    @property
    def used_disagreement(self) -> Floats:
        """Disagreement of the examples that take part."""
        return self.disagreement if self.used.all() else self.disagreement[self.used]

    @property
    def used_truth(self) -> Array | None:
        """Known answers of the examples that take part, as `known_answers` gives them; None if none is known."""
        return None if self.truth is None or self.known is None else self.truth[self.used]

    @property
    def known(self) -> Known | None:
        """The examples of known answer among those that take part."""
        return None if self.truth is None else Known.of(self.truth[self.used])

    @property
    def weighing_disagreement(self) -> Floats:
        """Disagreement of the examples that take part, as it weighs them: none where the answer is known."""
        known = self.known
        if known is None:
            return self.used_disagreement
        differs = self.used_disagreement.copy()
        differs[known.at] = 0.0
        return differs

    @property
    def unknown(self) -> Bools:
        """Which examples take part and have no known answer."""
        return self.used if self.truth is None else self.used & ~is_known(self.truth)

    def with_truth(self, consensus: Any) -> Any:
        """A `Consensus` or `RatingConsensus` on all examples, the known answers being certain."""
        known = None if self.truth is None else Known.of(self.truth)
        if known is None:
            return consensus
        if isinstance(consensus, Consensus):
            return replace(consensus, proba=known.clamp_posterior(consensus.proba))
        rating, std = consensus.label.copy(), consensus.std.copy()
        rating[known.at], std[known.at] = known.answers, 0.0
        return replace(consensus, label=rating, std=std)

    @property
    def named_classes(self) -> Positions:
        """Positions of the classes that a label or a known answer has."""
        named: Bools = np.array(self.labels._tally.any(axis=0))
        if self.truth is not None:
            named[self.truth[self.truth >= 0]] = True
        return np.flatnonzero(named)

    def of_named_classes(self) -> TrainingSet:
        """The same without the classes that no label and no known answer has; with all if only one has any."""
        named = np.isin(np.arange(len(self.classes)), self.named_classes)
        if named.all() or named.sum() == 1:
            return self
        truth = None if self.truth is None else np.append(np.cumsum(named) - 1, -1)[self.truth]
        return replace(
            self, labels=self.labels._of_classes(named), used_labels=self.used_labels._of_classes(named), truth=truth
        )

    def among_all(self, values: Floats) -> Floats:
        """Values of the active annotators, with NaN for the others."""
        of_all = np.full((len(self.active), *values.shape[1:]), np.nan)
        of_all[self.active] = values
        return of_all


def check_y(estimator: Any, y: Any, scale: ScaleName = "nominal") -> CrowdLabels:
    """What `fit` was given as y, as labels."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected: it is treated as the labels of one annotator.",
            DataConversionWarning,
        )
    return as_labels(y, scale=scale)


def check_features(
    estimator: Any, X: Any, y: Any, scale: ScaleName = "nominal", *, reset: bool = True, least: int = 1
) -> tuple[Any, CrowdLabels]:
    """Numeric features as scikit-learn wants them, not yet known to be finite, and labels of the same rows.

    Without `reset`, the features must be those that the estimator has seen before; `least` is the fewest rows.
    """
    labels = check_y(estimator, y, scale)
    if hasattr(X, "shape") or hasattr(X, "__len__"):  # the next check reports what is wrong with anything else
        X, labels = align(X, labels)
        labels = with_ids_of(X, labels)  # the next check takes the index of X away
        refuse_texts_and_times(X)
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False,
        ensure_min_samples=least,
    )  # fmt: skip
    return X, labels


def refuse_texts_and_times(X: Any) -> None:
    """Times in X, or a column of texts in a data frame, which is a column of ids more often than not."""
    refuse_times(X)
    for name, column in _columns(X).items():
        first = column[~missing_mask(column)][:1].tolist() if column.dtype.kind in "OUT" else []
        if first and isinstance(first[0], str) and not _is_number(first[0]):
            raise DataError(
                f"column {name!r} of X holds texts, such as {shown(first[0])}, and features are numbers. If these are "
                f"ids, make them the index, X.set_index({name!r}), or drop the column; other texts have to become "
                "numbers first (OneHotEncoder, TfidfVectorizer)."
            )


def refuse_times(X: Any) -> None:
    """Raise if X, or a column of it, holds times, which NumPy takes for numbers in a unit of its own."""
    for place, values in (("X", X), *((f"column {name!r} of X", column) for name, column in _columns(X).items())):
        if getattr(getattr(values, "dtype", None), "kind", "") in ("M", "m"):
            raise DataError(
                f"{place} holds times, and features are numbers. Convert them first, such as to days since a date."
            )


def _columns(X: Any) -> dict[Hashable, Array]:
    return table_columns(X) if is_frame(X) else {}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_sample_weight(
    sample_weight: Any, X: Any, labels: CrowdLabels | None = None, *, rescale: bool = True
) -> Floats:
    """How often each row of X counts: finite numbers of at least 0, one for all, or by the ids of the examples.

    Those are the ids of the labels where X has none. Weights are rescaled if squares would overflow or vanish, which is
    an error if they may not be; 0 is where an example counts next to nothing.
    """
    n_rows = _num_samples(X)
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _as_weights(match_examples(sample_weight, X, labels, "sample_weight"), n_rows)
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        problem = "Negative values in data passed to `sample_weight`" if weight[row] < 0 else "not finite"
        raise ValueError(f"sample_weight must be finite and at least 0 ({problem}); got {weight[row]} for row {row}.")
    largest = weight.max(initial=0.0)
    if largest > 0 and not 1 / _LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        if not rescale:
            raise ValueError(
                f"the largest sample_weight of this block is {largest:.2g}, and sums of the squares of such weights "
                "lose all digits. Divide the weights of all blocks by the same number."
            )
        warn(f"the largest sample_weight is {largest:.2g}: weights are divided by it, so that l2 keeps its effect.")
        weight, largest = weight / largest, 1.0
    weight[weight < _NEGLIGIBLE_WEIGHT * largest] = 0.0
    return weight


def _as_weights(values: Any, n_rows: int) -> Floats:
    """One float per row; a single number is the weight of all."""
    try:
        array = np.asarray(values)
        if array.dtype == object and all(isinstance(value, Real | np.bool_) for value in array.ravel().tolist()):
            array = array.astype(np.float64)
    except (ValueError, OverflowError):  # lists of different lengths, whole numbers beyond all floats
        array = np.asarray(None)
    # Strings, times and masked values would become numbers without a word.
    if array.dtype.kind not in "biuf" or np.ma.is_masked(values):
        raise ValueError(f"sample_weight must be numbers, one per example; got {reprlib.repr(values)}.")
    if array.ndim == 0:
        array = np.full(n_rows, array)
    if array.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {array.shape}, expected {(n_rows,)}: one number per example.")
    return array.astype(np.float64)


def check_named(classes: Array, named: Bools, *, declared: bool = False) -> None:
    """Raise unless two classes at least were named by some label, or were `declared`."""
    if named.sum() < 2 and not (declared and len(classes) > 1):
        raise LabelError(
            "labels of at least two classes are needed; all labels are of the one class "
            f"{classes[named].tolist()[0]!r}. Is this the right label column?"
        )


def warn_if_unlabelled(n_unlabelled: int, n_examples: int) -> None:
    """Warn if examples have no label."""
    if n_unlabelled:
        which = f"of {n_examples} examples"
        without = count(n_unlabelled, f"{which} has no label and is", f"{which} have no label and are")
        warn(f"{without} not used in the fit.")


def warn_if_no_disagreement(n_annotators: int, most_labels: int, so: str = "steepness has no effect") -> None:
    """Warn if there is nothing in the labels that a weighting by disagreement could use."""
    if n_annotators == 1:
        warn(f"there is one annotator, so there is no disagreement: {so}.")
    elif most_labels < 2:
        warn(f"no two annotators share an example, so there is no disagreement: {so}.")


def warn_if_few_effective(weight: Floats, n_features: int, n_each: Array | None = None) -> None:
    """Warn if nearly all weight rests on fewer examples than there are features; `n_each` have the same weight."""
    effective = effective_examples(weight, n_each)
    n_examples = len(weight) if n_each is None else int(n_each.sum())
    if effective < n_features <= n_examples:
        warn(
            f"nearly all weight is on about {effective:.1f} of {n_examples} examples, fewer than the {n_features} "
            "features. Use a smaller steepness or a larger l2."
        )


def effective_examples(weight: Floats, n_each: Array | None = None) -> float:
    """How many examples of equal weight these are worth: the squared sum of weights over the sum of their squares."""
    share = weight / weight.max()
    count = np.ones(len(share)) if n_each is None else n_each
    return float((share @ count) ** 2 / (share**2 @ count))
