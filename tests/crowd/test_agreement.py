import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from crowds import crowd, labels_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import cohen_kappa_score

from crowdwise import CrowdLabels
from crowdwise.crowd import cohen_kappas, kappas, krippendorff_alpha
from crowdwise.exceptions import LabelError

# The reliability data of Krippendorff's own worked example: a row per observer, 0 where there is no value.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)


def slow_alpha(rows, difference):
    """Alpha from every pair of values within and between examples."""
    units = [[value for value in row if value is not None] for row in rows]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    within = sum(
        sum(difference(a, b) for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j) / (len(unit) - 1)
        for unit in units
    )
    n = len(values)
    between = sum(difference(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)
    return 1 - (within / n) / (between / (n * (n - 1)))


def test_alpha_of_the_worked_example():
    labels = CrowdLabels.from_matrix(OBSERVERS.T, missing=0)
    assert round(krippendorff_alpha(labels), 3) == 0.743
    ratings = CrowdLabels.from_matrix(np.where(OBSERVERS.T == 0, np.nan, OBSERVERS.T), scale="interval")
    assert round(krippendorff_alpha(ratings), 3) == 0.849


def test_alpha_by_hand():
    # Two pairs that agree and one that does not; two a and four b: 1 - (2 / 6) / (16 / 30).
    labels = CrowdLabels.from_matrix([["a", "a"], ["b", "b"], ["b", "b"]])
    assert krippendorff_alpha(labels) == 1
    labels = CrowdLabels.from_matrix([["a", "b"], ["b", "b"], ["a", "b"]])
    assert_allclose(krippendorff_alpha(labels), 1 - (4 / 6) / (16 / 30))


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from([0.0, 0.3, 0.6]))
def test_alpha_equals_the_slow_twin(seed, n_classes, missing):
    _, matrix = crowd(seed, n_examples=12, n_annotators=4, n_classes=n_classes, missing=missing)
    if len({value for row in matrix for value in row if value is not None and sum(v is not None for v in row) > 1}) < 2:
        return
    nominal = slow_alpha(matrix.tolist(), lambda a, b: a != b)
    assert_allclose(krippendorff_alpha(labels_of(matrix, n_classes)), nominal, atol=1e-12)
    numbers = np.array([[np.nan if value is None else value for value in row] for row in matrix])
    ratings = CrowdLabels.from_matrix(numbers, scale="interval")
    interval = slow_alpha(matrix.tolist(), lambda a, b: (a - b) ** 2)
    assert_allclose(krippendorff_alpha(ratings), interval, atol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_alpha_equals_that_of_another_library():
    agreement = pytest.importorskip("nltk.metrics.agreement", reason="nltk is not installed")
    _, matrix = crowd(1, n_examples=30, n_classes=3, missing=0.4)
    labels = labels_of(matrix, 3)
    table = labels.to_table()
    rows = zip(*(table[name].tolist() for name in ("annotator", "example", "label")), strict=True)
    assert_allclose(krippendorff_alpha(labels), agreement.AnnotationTask(data=list(rows)).alpha(), atol=1e-12)


def test_alpha_of_chance_is_about_zero(rng):
    assert abs(krippendorff_alpha(CrowdLabels.from_matrix(rng.integers(0, 3, (3000, 5))))) < 0.03


def test_alpha_says_when_it_cannot_be_told():
    with pytest.raises(LabelError, match="no example has two labels"):
        krippendorff_alpha(CrowdLabels.from_matrix([[0, None], [None, 1]]))
    assert np.isnan(krippendorff_alpha(CrowdLabels.from_matrix([[1, 1], [1, 1]])))


@pytest.mark.parametrize("missing", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_kappas_equal_those_of_scikit_learn(missing, n_classes):
    _, matrix = crowd(2, n_examples=40, n_annotators=7, n_classes=n_classes, missing=missing)
    found = cohen_kappas(labels_of(matrix, n_classes))
    expected = {}
    for a, b in combinations(range(7), 2):
        both = [i for i in range(40) if matrix[i, a] is not None and matrix[i, b] is not None]
        if both:
            one, other = matrix[both, a].astype(int), matrix[both, b].astype(int)
            constant = len({*one, *other}) == 1
            expected[a, b] = len(both), np.nan if constant else cohen_kappa_score(one, other)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == list(expected)
    assert_array_equal(found.n_shared, [n for n, _ in expected.values()])
    assert_allclose(found.kappa, [kappa for _, kappa in expected.values()], atol=1e-12)


@pytest.mark.parametrize("square", [0, 2**22])
def test_kappas_are_the_same_when_few_examples_are_counted_at_a_time(set_constants, square):
    _, matrix = crowd(3, n_examples=60, n_annotators=9, n_classes=3, missing=0.4)
    labels = labels_of(matrix, 3)
    expected = cohen_kappas(labels, min_shared=22)
    set_constants(kappas, _MOST_PAIRS=5)
    set_constants(kappas, _SQUARE=square)
    found = cohen_kappas(labels, min_shared=22)
    assert 0 < len(expected) < 36  # some pairs share too few
    for name in ("first", "second", "n_shared", "kappa"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


def test_kappas_of_many_labels_take_memory_for_some_examples_at_a_time():
    rng = np.random.default_rng(0)
    who = (rng.integers(300, size=(200_000, 1)) + np.array([0, 1, 3, 7, 20])) % 300
    table = {
        "example": np.repeat(np.arange(len(who)), 5),
        "annotator": who.ravel(),
        "label": rng.integers(2, size=10**6),
    }
    labels = CrowdLabels.from_table(table)
    tracemalloc.start()
    cohen_kappas(labels, min_shared=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20  # matrices of all labels took twice as much


def test_kappa_by_hand():
    # Agreement 3 / 4; by chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2.
    pairs = cohen_kappas(CrowdLabels.from_matrix([["n", "n"], ["y", "y"], ["n", "y"], ["y", "y"]]))
    assert (len(pairs), pairs.n_shared.tolist(), pairs.kappa.tolist()) == (1, [4], [0.5])
    assert repr(pairs) == "PairAgreement: 1 pairs of annotators who share examples; median kappa 0.50"


def test_pairs_come_as_a_frame_with_the_names_of_the_annotators():
    labels = CrowdLabels.from_matrix([[0, 0, None], [1, 1, None], [0, 1, 1]], annotators=["ann", "bob", "cat"])
    frame = cohen_kappas(labels).to_frame()
    assert list(frame) == ["first", "second", "shared", "kappa"]
    assert frame["first"].tolist() == ["ann", "ann", "bob"]
    assert frame["shared"].tolist() == [3, 1, 1]


def test_pairs_who_share_nothing_are_left_out_and_ratings_refused():
    alone = cohen_kappas(CrowdLabels.from_matrix([[0, None], [None, 1]]))
    assert len(alone) == 0
    assert len(cohen_kappas(CrowdLabels.from_matrix([[None, None]]))) == 0
    with pytest.raises(LabelError, match="needs classes"):
        cohen_kappas(CrowdLabels.from_matrix([[0.5, 1.5]], scale="interval"))
    with pytest.raises(ValueError, match="min_shared must be a whole"):
        cohen_kappas(CrowdLabels.from_matrix([[0, 1]]), min_shared=0.5)


def test_ten_thousand_annotators():
    rng = np.random.default_rng(0)
    example = np.repeat(np.arange(20_000), 4)
    table = {
        "example": example,
        "annotator": rng.integers(0, 10_000, len(example)),
        "label": rng.integers(0, 3, len(example)),
    }
    _, first = np.unique(example * 10_000 + table["annotator"], return_index=True)
    labels = CrowdLabels.from_table({name: column[first] for name, column in table.items()})
    pairs = cohen_kappas(labels)
    n = labels.labels_per_example
    assert pairs.n_shared.sum() == (n * (n - 1) // 2).sum()
    assert len(pairs) < 130_000


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_weighted_kappas_of_pairs_are_those_of_scikit_learn(weights):
    said = np.random.default_rng(0).integers(0, 4, (60, 3))
    found = cohen_kappas(CrowdLabels.from_matrix(said), weights=weights)
    expected = [cohen_kappa_score(said[:, i], said[:, j], weights=weights) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert_allclose(found.kappa, expected)
    with pytest.raises(ValueError, match="weights"):
        cohen_kappas(CrowdLabels.from_matrix(said), weights="cubic")
