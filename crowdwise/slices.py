"""Labels and a column of slices -> the accuracy of each annotator in each slice, and where it differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from crowdwise._arrays import Array, Bools, Codes, Floats, FrozenArrays, Positions, ratio
from crowdwise._checks import check_number, check_whole
from crowdwise._text import count
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels, match_examples
from crowdwise.labels._encode import as_column, encode, encode_declared, missing_mask
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import codes_of_truth
from crowdwise.results.fit_results import results_of
from crowdwise.truths.check import share_interval


@dataclass(frozen=True, repr=False, eq=False)
class SliceAccuracy(FrozenArrays):
    """How often annotators are right per slice of the examples; an entry per annotator and slice with labels.

    Parameters
    ----------
    reference : {"truth", "consensus"}
        What "right" means.
    fdr : float
        Accepted share of false discoveries among those that differ.
    annotator, slice : ndarray of shape (n_entries,)
        Who, and where.
    n_labels : ndarray of shape (n_entries,)
        Labels of the annotator in the slice.
    accuracy, low, high : ndarray of shape (n_entries,)
        Share of these that are right, with its 95% interval (Wilson).
    elsewhere : ndarray of shape (n_entries,)
        Share of the annotator's labels in all other slices that are right; NaN if there are none.
    p_value, p_adjusted : ndarray of shape (n_entries,)
        Of the annotator being as often right here as elsewhere; the second is corrected for the number of entries. NaN
        if there is no elsewhere.
    """

    reference: Literal["truth", "consensus"]
    fdr: float
    annotator: Array
    slice: Array
    n_labels: Codes
    accuracy: Floats
    low: Floats
    high: Floats
    elsewhere: Floats
    p_value: Floats
    p_adjusted: Floats

    @property
    def differs(self) -> Bools:
        """Where an annotator is more or less often right than elsewhere, beyond chance."""
        return np.nan_to_num(self.p_adjusted, nan=1.0) <= self.fdr

    def __len__(self) -> int:
        return len(self.accuracy)

    def __repr__(self) -> str:
        n_annotators, n_slices = (len(set(column.tolist())) for column in (self.annotator, self.slice))
        worse = self.differs & (self.accuracy < self.elsewhere)
        lines = [
            f"SliceAccuracy against the {self.reference}: {count(n_annotators, 'annotator')} in "
            f"{count(n_slices, 'slice')}; accuracy lower than elsewhere in {int(worse.sum()):,} of {len(self):,} "
            f"places, higher in {int((self.differs & ~worse).sum()):,} ({100 * self.fdr:g}% false discoveries)"
        ]
        for i in np.flatnonzero(worse)[np.argsort(self.p_value[worse], kind="stable")][:5]:
            lines.append(
                f"  {self.annotator[i]!s} in {self.slice[i]!s}: accuracy {100 * self.accuracy[i]:.0f}% on "
                f"{count(int(self.n_labels[i]), 'label')}, {100 * self.elsewhere[i]:.0f}% elsewhere"
            )
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """A data frame with a row per annotator and slice.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        names = ("annotator", "slice", "n_labels", "accuracy", "low", "high", "elsewhere", "p_value", "p_adjusted")
        return make_frame({name: getattr(self, name) for name in (*names, "differs")})


def slice_accuracy(labels: Any, slices: Any, truth: Any = None, *, fdr: float = 0.05) -> SliceAccuracy:
    """The accuracy of each annotator in each slice, and where it differs from that elsewhere.

    Each annotator is compared with the same annotator in the other slices (Fisher's exact test, twice the smaller
    tail), so a slice that is hard for everybody shows in every annotator. With many annotators and slices some differ
    by chance: the Benjamini-Hochberg correction keeps the share of these among all reported ones below `fdr`.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes.
    slices : array-like of shape (n_examples,), series or mapping
        The slice of every example: a source, a language, a bin of lengths. Matched like the truth; examples without a
        slice are left out.
    truth : array-like of shape (n_examples,), series or mapping, default=None
        The right classes, NaN, None or left out where unknown; a series or a mapping is matched by the ids of the
        labels' examples. Only examples whose truth is known are counted. Without any, the consensus of `aggregate` is
        taken for the truth; annotators are then judged by a consensus that they are part of, and where all err together
        nothing is seen. An example's only label would be judged by itself, so examples of one label are left out; and
        the fewer labels the examples of a slice have, the more often each label seems right.
    fdr : float, default=0.05
        Accepted share of false discoveries.

    Returns
    -------
    found : SliceAccuracy
        Prints as a few lines; `to_frame` has a row per annotator and slice.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import CrowdLabels, slice_accuracy
    >>> truth = np.arange(80) % 2
    >>> language = np.repeat(["de", "en"], 40)
    >>> given = np.column_stack([truth, np.where((language == "de") & (np.arange(80) % 3 == 0), 1 - truth, truth)])
    >>> labels = CrowdLabels.from_matrix(given, annotators=["ann", "model"])
    >>> slice_accuracy(labels, language, truth)
    SliceAccuracy against the truth: 2 annotators in 2 slices; accuracy lower than elsewhere in 1 of 4 places, higher \
in 1 (5% false discoveries)
      model in de: accuracy 65% on 40 labels, 100% elsewhere
    """
    fdr = check_number("fdr", fdr, above=True, high=1.0)
    crowd = as_labels(labels)
    slice_of, names = _slices(slices, crowd)
    right_class = _right_classes(crowd, truth)
    known = "a known truth" if truth is not None else "two labels or more (without truth, a label needs others)"
    if not ((slice_of >= 0) & (right_class >= 0))[crowd.example_index].any():
        raise LabelError(f"no label belongs to an example with a slice and {known}: there is nothing to count.")
    reference: Literal["truth", "consensus"] = "consensus" if truth is None else "truth"
    return _counted(crowd, slice_of[crowd.example_index], names, right_class, reference, fdr)


def accuracy_over_time(
    model: Any, labels: Any, times: Any, truth: Any = None, *, periods: int = 4, fdr: float = 0.05
) -> SliceAccuracy:
    """The accuracy of each annotator in periods of time, and where it differs from that in the other periods.

    Parameters
    ----------
    model : estimator or FitResults
        A fitted model, or the result of `aggregate`.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels that it was fitted to; classes.
    times : array-like of shape (n_labels,)
        When each label was given, in the order of `labels.to_table()`: numbers or datetime64, NaN or NaT if unknown.
    truth : array-like of shape (n_examples,), series or mapping, default=None
        Known answers, as for `slice_accuracy`. Without any, labels are compared with the consensus of the fit, on
        examples of two labels or more.
    periods : int, default=4
        How many periods, with as many labels each.
    fdr : float, default=0.05
        Accepted share of false discoveries.

    Returns
    -------
    found : SliceAccuracy
        A slice is a period, named by its first time.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import CrowdLabels, aggregate
    >>> from crowdwise.slices import accuracy_over_time
    >>> truth = np.arange(200) % 2
    >>> tired = np.where((np.arange(200) >= 100) & (np.arange(200) % 3 == 0), 1 - truth, truth)
    >>> labels = CrowdLabels.from_matrix(np.column_stack([truth, truth, tired]), annotators=["ann", "bob", "eve"])
    >>> found = accuracy_over_time(aggregate(labels), labels, labels.to_table()["example"], truth, periods=2)
    >>> [str(name) for name in found.annotator[found.differs]], found.accuracy[found.differs].round(2).tolist()
    (['eve', 'eve'], [1.0, 0.67])
    """
    fdr, n_periods = check_number("fdr", fdr, above=True, high=1.0), check_whole("periods", periods, low=2)
    results, crowd = results_of(model), as_labels(labels)
    when = np.asarray(times)
    if when.shape != (crowd.n_labels,):
        raise LabelError(f"times must be one per label, {crowd.n_labels}; got shape {when.shape}.")
    if truth is None:
        place = encode_declared(crowd.examples, results.examples).astype(np.intp)
        right_class = np.where(crowd.labels_per_example > 1, results.codes[place], -1)
    else:
        right_class = codes_of_truth(truth, crowd, crowd)
    is_time = when.dtype.kind == "M"
    known = ~(np.isnat(when) if is_time else np.isnan(when))
    order = np.sort(when[known])
    first = np.unique(order[np.arange(n_periods) * len(order) // n_periods]) if len(order) else order
    period = np.where(known, np.searchsorted(first, when, side="right") - 1, -1)
    names = np.datetime_as_string(first, unit="D") if is_time else first
    return _counted(crowd, period, names, right_class, "consensus" if truth is None else "truth", fdr)


def _counted(
    crowd: CrowdLabels,
    slice_of: Positions,
    names: Array,
    right_class: Positions,
    reference: Literal["truth", "consensus"],
    fdr: float,
) -> SliceAccuracy:
    """Right labels counted by annotator and slice; slices are given per label, -1 where a label has none."""
    counted = (slice_of >= 0) & (right_class[crowd.example_index] >= 0)
    example, annotator = crowd.example_index[counted], crowd.annotator_index[counted].astype(np.int64)
    right = crowd.values[counted] == right_class[example]
    shape = (crowd.n_annotators, len(names))
    cell = annotator * shape[1] + slice_of[counted]
    n = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    n_right = np.bincount(cell, right, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)
    cells = np.nonzero(n)
    return SliceAccuracy(
        reference=reference,
        fdr=fdr,
        annotator=crowd.annotators[cells[0]],
        slice=names[cells[1]],
        **_numbers(n[cells], n_right[cells], n.sum(axis=1)[cells[0]], n_right.sum(axis=1)[cells[0]]),
    )


def _slices(slices: Any, crowd: CrowdLabels) -> tuple[Positions, Array]:
    """The slice of every example as a position among the slices, -1 where it has none, and their names."""
    values = as_column(match_examples(slices, crowd, crowd, "slices", partial=True), "slices")
    if len(values) != len(crowd):
        raise LabelError(f"slices must be one per example, {len(crowd)}; got {len(values)}.")
    present = ~missing_mask(values)
    position = np.full(len(crowd), -1, dtype=np.intp)
    position[present], names = encode(values[present], ids=True)
    return position, names


def _right_classes(crowd: CrowdLabels, truth: Any) -> Positions:
    """What counts as right, as a position among the classes; -1 where that is unknown."""
    if truth is not None:
        return codes_of_truth(truth, crowd, crowd)
    return np.where(crowd.labels_per_example > 1, aggregate(crowd).codes, -1)


def _numbers(n: Codes, right: Codes, n_all: Codes, right_all: Codes) -> dict[str, Array]:
    """The columns of the record, from counts in the slice and in all slices."""
    low, high = share_interval(right / n, n)
    rest = n_all - n
    smaller = np.minimum(
        stats.hypergeom.cdf(right, n_all, right_all, n), stats.hypergeom.sf(right - 1, n_all, right_all, n)
    )
    p_value = np.where(rest > 0, np.minimum(2 * smaller, 1.0), np.nan)
    p_adjusted = np.full(len(n), np.nan)
    if (rest > 0).any():
        p_adjusted[rest > 0] = stats.false_discovery_control(p_value[rest > 0], method="bh")
    return {
        "n_labels": n,
        "accuracy": right / n,
        "low": low,
        "high": high,
        "elsewhere": ratio(right_all - right, rest),
        "p_value": p_value,
        "p_adjusted": p_adjusted,
    }
