"""Labels counted by another library are the labels counted in memory."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from crowds import clear_crowd
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels
from crowdwise.crowd import cohen_kappas, krippendorff_alpha, label_statistics, tally_labels
from crowdwise.exceptions import LabelError


def lazy_polars(table):
    return pl.LazyFrame(table)


def duckdb_relation(table):
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB: pip install duckdb")
    return duckdb.from_df(pd.DataFrame(table))


def dask_frame(table):
    dd = pytest.importorskip("dask.dataframe", reason="needs Dask: pip install 'crowdwise[dask]'")
    return dd.from_pandas(pd.DataFrame(table), npartitions=2)


QUICK = [pl.DataFrame, pd.DataFrame, lazy_polars, duckdb_relation]
LIBRARIES = [*QUICK, in_slow_run(dask_frame)]


def crowd_table(n_classes=3, names=("high", "low", "mid")):
    """A long table, in no order, and the same labels in memory."""
    _, labels, _ = clear_crowd(n_examples=40, n_classes=n_classes, missing=0.5)
    table = labels.to_table()
    order = np.random.default_rng(0).permutation(len(table["label"]))
    table = {name: column[order] for name, column in table.items()}
    table["label"] = np.array(names, dtype=object)[table["label"]]
    table["example"] = table["example"] + 7
    return {name: column.tolist() for name, column in table.items()}


@pytest.mark.parametrize("library", [*QUICK, dask_frame])
def test_every_library_gives_the_numbers_of_memory(library):
    table = crowd_table()
    labels = CrowdLabels.from_table(table)
    found = label_statistics(library(table))
    assert (found.n_examples, found.n_labels) == (len(labels), labels.n_labels)
    assert found.annotators.tolist() == labels.annotators.tolist()
    assert found.classes.tolist() == labels.classes.tolist()
    matrix = np.zeros((labels.n_annotators, 3), dtype=int)
    np.add.at(matrix, (labels.annotator_index, labels.values), 1)
    assert_array_equal(found.counts, matrix)
    assert found.alpha == pytest.approx(krippendorff_alpha(labels), rel=1e-12)
    pairs = cohen_kappas(labels)
    assert_array_equal(found.pairs.first, pairs.first)
    assert_array_equal(found.pairs.second, pairs.second)
    assert_array_equal(found.pairs.n_shared, pairs.n_shared)
    assert_allclose(found.pairs.kappa, pairs.kappa, rtol=1e-12, atol=1e-12)
    assert_allclose(found.confusion_counts, confusions(labels), rtol=1e-12)
    assert "40 examples, 7 annotators" in repr(found)


def confusions(labels):
    """Dawid-Skene counts, one label after the other."""
    share = labels.counts() / labels.labels_per_example[:, None]
    counts = np.zeros((labels.n_annotators, len(labels.classes), len(labels.classes)))
    for i, who, value in zip(labels.example_index, labels.annotator_index, labels.values, strict=True):
        counts[who, :, value] += share[i]
    return counts


@pytest.mark.parametrize("library", LIBRARIES)
def test_tallies_stay_in_the_library_of_the_table(library):
    table = crowd_table()
    native = library(table)
    tally = tally_labels(native)
    assert type(tally).__module__.split(".")[0].strip("_") == type(native).__module__.split(".")[0].strip("_")
    frame = pl.DataFrame(as_columns(tally)).sort("example", "label")
    labels = CrowdLabels.from_table(table)
    dense = {(e, c): n for e, row in zip(labels.examples, labels.counts(), strict=True)
             for c, n in zip(labels.classes, row, strict=True) if n}  # fmt: skip
    assert {(e, c): n for e, c, n in frame.select("example", "label", "count").rows()} == dense


def as_columns(frame):
    for method in ("collect", "compute", "df"):
        frame = getattr(frame, method)() if hasattr(frame, method) else frame
    return {name: list(frame[name]) for name in ("example", "label", "count")}


def test_known_answers_by_hand():
    table = {"item": [1, 1, 1, 2, 2, 3], "rater": list("abcaba"), "answer": ["x", "x", "y", "y", "y", "x"]}
    found = label_statistics(pl.LazyFrame(table))
    assert found.counts.tolist() == [[2, 1], [1, 1], [0, 1]]
    assert found.percent_agreement == pytest.approx((1 / 3 + 1) / 2)
    # a said x about item 1, two thirds x, and item 3, all x; and y about item 2, all y
    assert_allclose(found.confusion_counts[0], [[2 / 3 + 1, 0], [1 / 3, 1]])
    assert found.pairs.n_shared.tolist() == [2, 1, 1]
    assert found.pairs.kappa.tolist()[:2] == [1.0, 0.0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_labels_are_passed_over_and_repeated_rows_count_once(library):
    table = {"item": [1, 1, 1, 2, 2, 2], "rater": list("aabaab"), "answer": [1.0, 1.0, 2.0, 2.0, np.nan, 2.0]}
    found = label_statistics(library(table))
    assert (found.n_labels, found.classes.tolist()) == (4, [1, 2])
    assert found.counts.tolist() == [[1, 1], [0, 2]]
    texts = {"item": [1, 1, 2], "rater": list("aba"), "answer": ["x", None, "y"]}
    assert label_statistics(library(texts)).counts.tolist() == [[1, 1]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_two_different_labels_of_one_annotator_are_an_error(library):
    table = {"item": [1, 1, 2], "rater": list("aab"), "answer": ["x", "y", "x"]}
    with pytest.raises(LabelError, match="annotator 'a' gave example 1 2 different labels"):
        label_statistics(library(table))


def test_columns_are_found_or_named():
    table = crowd_table()
    renamed = {"what": table["example"], "who": table["annotator"], "said": table["label"]}
    found = label_statistics(pl.LazyFrame(renamed), example="what", annotator="who", label="said")
    assert found.alpha == label_statistics(pl.LazyFrame(table)).alpha
    with pytest.raises(LabelError, match="no column looks like example"):
        label_statistics(pl.LazyFrame(renamed))
    with pytest.raises(TypeError, match="that narwhals knows; got dict"):
        label_statistics(table)


def test_what_cannot_be_counted_is_told():
    with pytest.raises(LabelError, match="no label"):
        label_statistics(pl.LazyFrame({"item": [1], "rater": ["a"], "answer": [None]}))
    with pytest.raises(LabelError, match=r"Classes were expected and 0\.5 came"):
        label_statistics(pl.LazyFrame({"item": [1, 2], "rater": ["a", "b"], "answer": [0.5, 1.0]}))
    alone = label_statistics(pl.LazyFrame({"item": [1, 2], "rater": ["a", "b"], "answer": [0, 1]}))
    assert np.isnan(alone.alpha)
    assert len(alone.pairs) == 0
