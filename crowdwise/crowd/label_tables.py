"""Long tables of labels that stay where they are -> tallies, agreement and counts of confusions.

Tables of any library that narwhals knows, lazy ones too: Polars, DuckDB, PySpark, Dask and others. Only selections,
joins and grouped sums are asked of them, and only what is grouped by annotators and classes comes into memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Array, Floats, FrozenArrays, ratio
from crowdwise.crowd.kappas import PairAgreement
from crowdwise.exceptions import LabelError
from crowdwise.labels.encode import encode, encode_declared
from crowdwise.labels.frames import find_column, table_columns
from crowdwise.labels.mistakes import refuse_fractions


@dataclass(frozen=True, repr=False, eq=False)
class LabelStatistics(FrozenArrays):
    """What a long table of labels says about annotators and classes. All arrays are read-only.

    Parameters
    ----------
    n_examples, n_labels : int
        How many examples have a label, and how many labels there are.
    annotators : ndarray of shape (n_annotators,)
        Names, sorted.
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    counts : ndarray of shape (n_annotators, n_classes)
        How many labels of each class everyone gave.
    confusion_counts : ndarray of shape (n_annotators, n_classes, n_classes)
        Dawid-Skene counts: how often everyone gave each label (last axis) to examples of each class, an example being
        of each class by the share of its labels.
    alpha : float
        Krippendorff's alpha, as `krippendorff_alpha` gives it; NaN if all labels are the same or no example has two.
    percent_agreement : float
        Share of pairs of labels of an example that are the same, averaged over examples with two labels or more.
    pairs : PairAgreement
        Cohen's kappa of every pair of annotators who share examples, as `cohen_kappas` gives it.
    """

    n_examples: int
    n_labels: int
    annotators: Array
    classes: Array
    counts: NDArray[np.int64]
    confusion_counts: Floats
    alpha: float
    percent_agreement: float
    pairs: PairAgreement

    def __repr__(self) -> str:
        return (
            f"LabelStatistics: {self.n_examples:,} examples, {len(self.annotators):,} annotators, {self.n_labels:,} "
            f"labels of {len(self.classes)} classes; Krippendorff's alpha {self.alpha:.3f}"
        )


def label_statistics(
    table: Any,
    *,
    example: Hashable | None = None,
    annotator: Hashable | None = None,
    label: Hashable | None = None,
) -> LabelStatistics:
    """Counts and agreement of the labels in a long table that need not fit into memory.

    The numbers are those of `CrowdLabels.from_table` and the functions of its labels. Rows with a missing label are
    passed over, a row that is there twice counts once. All is computed by the library of the table (Polars, DuckDB,
    PySpark, Dask, ...); what comes into memory is in proportion to the annotators, their pairs and the classes.

    Parameters
    ----------
    table : data frame, lazy or not
        A row per label: a ``polars.LazyFrame``, a DuckDB relation, a data frame of PySpark or Dask, or any other that
        narwhals knows.
    example : column name, default=None
        Column with the example's identifier; by default "example", "task", "item", ...
    annotator : column name, default=None
        Column with the annotator's name; by default "annotator", "worker", "rater", ...
    label : column name, default=None
        Column with the label; by default "label", "rating", "answer", ...

    Returns
    -------
    statistics : LabelStatistics

    Examples
    --------
    >>> import polars as pl
    >>> from crowdwise.crowd import label_statistics
    >>> table = {"task": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xxyyxy")}
    >>> found = label_statistics(pl.LazyFrame(table))
    >>> found.counts.tolist(), round(found.alpha, 3)
    ([[2, 1], [1, 2]], 0.444)
    """
    rows = _rows(table, example, annotator, label)
    _refuse_conflicts(rows)
    given = _collected(rows.group_by("annotator", "label").agg(n=nw.len()))
    if len(given["n"]) == 0:
        raise LabelError("there is no label in the table.")
    _, annotators = encode(given["annotator"], ids=True)
    _, classes = encode(given["label"])
    refuse_fractions(classes)
    counts = np.zeros((len(annotators), len(classes)), dtype=np.int64)
    counts[encode_declared(given["annotator"], annotators), encode_declared(given["label"], classes)] = given["n"]
    tally = _tally(rows)
    per_example = _per_example(tally)
    patterns = _collected(per_example.group_by("n", "same").agg(times=nw.len()))
    alpha, percent = _agreement(patterns, tally, per_example)
    return LabelStatistics(
        n_examples=int(patterns["times"].sum()),
        n_labels=int(counts.sum()),
        annotators=annotators,
        classes=classes,
        counts=counts,
        confusion_counts=_confusion_counts(rows, tally, per_example, annotators, classes),
        alpha=alpha,
        percent_agreement=percent,
        pairs=_pairs(rows, annotators, classes),
    )


def tally_labels(
    table: Any,
    *,
    example: Hashable | None = None,
    annotator: Hashable | None = None,
    label: Hashable | None = None,
) -> Any:
    """How many labels of each class every example has, as a table of the same library, lazy if it is.

    Parameters
    ----------
    table : data frame, lazy or not
        A row per label, as `label_statistics` takes it.
    example, annotator, label : column name, default=None
        Columns with the example's identifier, the annotator's name and the label, as `label_statistics` takes them.

    Returns
    -------
    tally : data frame
        With the columns "example", "label" and "count"; a row for every class that an example has a label of, in any
        order. The lazy kind of the table's library.

    Examples
    --------
    >>> import polars as pl
    >>> from crowdwise.crowd import tally_labels
    >>> table = pl.LazyFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]})
    >>> tally_labels(table).sort("example").collect().rows()
    [(1, 'x', 2), (2, 'y', 1)]
    """
    return _tally(_rows(table, example, annotator, label)).to_native()


def _rows(table: Any, example: Hashable | None, annotator: Hashable | None, label: Hashable | None) -> Any:
    """The three columns under their usual names, each row once, without rows that have no label."""
    try:
        frame = nw.from_native(table).lazy()
    except TypeError as error:
        raise TypeError(
            f"table must be a data frame, lazy or not, that narwhals knows; got {type(table).__name__}. For a mapping "
            "of columns use CrowdLabels.from_table."
        ) from error
    schema = frame.collect_schema()
    wanted = {"example": example, "annotator": annotator, "label": label}
    found = {role: find_column(list(schema), role, given) for role, given in wanted.items()}
    rows = frame.select(*(nw.col(str(name)).alias(role) for role, name in found.items()))
    if schema[str(found["label"])].is_float():
        rows = rows.filter(~nw.col("label").is_nan())
    return rows.filter(~nw.col("label").is_null()).unique()


def _refuse_conflicts(rows: Any) -> None:
    """Raise if somebody gave an example two different labels."""
    several = rows.group_by("example", "annotator").agg(n=nw.len()).filter(nw.col("n") > 1)
    found = _collected(several.head(1))
    if len(found["n"]):
        who, what = found["annotator"].tolist()[0], found["example"].tolist()[0]
        raise LabelError(
            f"annotator {who!r} gave example {what!r} {found['n'][0]} different labels. Keep one of them, such as the "
            "last, before counting."
        )


def _tally(rows: Any) -> Any:
    return rows.group_by("example", "label").agg(count=nw.len())


def _per_example(tally: Any) -> Any:
    """Per example the number of labels, and of ordered pairs of labels that are the same."""
    count = nw.col("count").cast(nw.Float64)
    pairs = tally.select("example", count.alias("n"), (count * (count - 1.0)).alias("same"))
    return pairs.group_by("example").agg(nw.col("n").sum(), nw.col("same").sum())


def _agreement(patterns: dict[Hashable, Array], tally: Any, per_example: Any) -> tuple[float, float]:
    """Krippendorff's alpha of nominal labels, and percent agreement."""
    paired = patterns["n"] > 1
    if not paired.any():
        return float("nan"), float("nan")
    order = np.lexsort([patterns["same"], patterns["n"]])  # groups come in any order, and sums are rounded
    order = order[paired[order]]
    n, same, times = (np.asarray(patterns[name], dtype=np.float64)[order] for name in ("n", "same", "times"))
    percent = float(times @ (same / (n * (n - 1))) / times.sum())
    shared = tally.join(per_example.filter(nw.col("n") > 1.0).select("example"), on="example", how="inner")
    used = shared.select("label", nw.col("count").cast(nw.Float64).alias("n"))
    use = _collected(used.group_by("label").agg(nw.col("n").sum()))["n"]
    within, total = float(times @ (n - same / (n - 1))), float(use.sum())
    at_random = total**2 - float(use @ use)
    return (1 - within * (total - 1) / at_random if at_random > 0 else float("nan")), percent


def _confusion_counts(rows: Any, tally: Any, per_example: Any, annotators: Array, classes: Array) -> Floats:
    """How often everyone gave each label to examples of each class, by the shares of labels."""
    share = nw.col("count").cast(nw.Float64) / nw.col("n")
    shares = tally.join(per_example.select("example", "n"), on="example", how="inner")
    shares = shares.select("example", nw.col("label").alias("class"), share.alias("share"))
    joined = rows.join(shares, on="example", how="inner")
    found = _collected(joined.group_by("annotator", "class", "label").agg(nw.col("share").sum()))
    counts = np.zeros((len(annotators), len(classes), len(classes)))
    who = encode_declared(found["annotator"], annotators)
    counts[who, encode_declared(found["class"], classes), encode_declared(found["label"], classes)] = found["share"]
    return counts


def _pairs(rows: Any, annotators: Array, classes: Array) -> PairAgreement:
    """Cohen's kappa of every pair of annotators who share examples."""
    others = rows.select("example", nw.col("annotator").alias("other"), nw.col("label").alias("other_label"))
    joined = rows.join(others, on="example", how="inner").filter(nw.col("annotator") < nw.col("other"))
    found = _collected(joined.group_by("annotator", "other", "label", "other_label").agg(n=nw.len()))
    first, second = (encode_declared(found[name], annotators).astype(np.int64) for name in ("annotator", "other"))
    swap = first > second  # the library may sort names in another way
    label, other = (encode_declared(found[name], classes).astype(np.int64) for name in ("label", "other_label"))
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    key, pair = np.unique(first * len(annotators) + second, return_inverse=True)
    together = np.zeros((len(key), len(classes), len(classes)))
    np.add.at(together, (pair, np.where(swap, other, label), np.where(swap, label, other)), found["n"])
    shared = together.sum(axis=(1, 2))
    by_chance = shared**2 - np.einsum("pk,pk->p", together.sum(axis=2), together.sum(axis=1))
    differ = shared - np.einsum("pkk->p", together)
    kappa = 1 - ratio(shared * differ, by_chance)
    return PairAgreement(
        annotators[key // len(annotators)], annotators[key % len(annotators)], shared.astype(np.int64), kappa
    )


def _collected(frame: Any) -> dict[Hashable, Array]:
    """The columns of a small result."""
    return table_columns(frame.collect().to_native())
