"""Alpha, AC1, AC2 and weighted kappas: published examples, other packages, slow twins, invariances."""

from itertools import combinations

import numpy as np
import pytest
from crowds import crowd, labels_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from crowdwise import CrowdLabels, agreement
from crowdwise.crowd import krippendorff_alpha
from crowdwise.crowd._agreement import _ALPHAS, _check_weights, _on_scale
from crowdwise.crowd.coefficients import alpha_interval, chance_corrected, gwet_chance, resamples
from crowdwise.crowd.kappas import distances
from crowdwise.exceptions import LabelError

# Krippendorff (2011), Computing Krippendorff's alpha-reliability, example C; also Gwet (2014), Handbook of inter-rater
# reliability, 4th edition, page 120. A row per observer, 0 where there is no value.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)
# Gwet (2014), five observers of 15 units, 9 where there is no value.
FIVE_OBSERVERS = np.array(
    [
        [1, 1, 2, 9, 0, 0, 1, 1, 2, 2, 9, 0, 1, 3, 1],
        [1, 1, 3, 0, 0, 0, 0, 9, 2, 1, 1, 0, 2, 3, 1],
        [2, 0, 3, 0, 0, 0, 2, 2, 2, 1, 0, 0, 2, 2, 1],
        [9, 1, 3, 9, 9, 9, 9, 0, 9, 1, 0, 0, 2, 2, 9],
        [2, 9, 9, 0, 0, 0, 1, 9, 2, 9, 9, 9, 9, 3, 1],
    ]
)


def of_table(table):
    """Labels of two annotators with so many examples per pair of classes."""
    table = np.array(table)
    a, b = np.indices(table.shape)
    pairs = np.repeat(np.column_stack([a.ravel(), b.ravel()]), table.ravel(), axis=0)
    return CrowdLabels.from_matrix(pairs, classes=range(len(table)))


def made_matrix():
    """Forty examples, five annotators, five levels; NaN where there is no label."""
    i, j = np.ogrid[:40, :5]
    matrix = np.clip((7 * i + i // 5) % 5 + (3 * i + 5 * j + i // 7) % 3, 1, 5).astype(float)
    matrix[(2 * i + 3 * j) % 7 == 0] = np.nan
    return matrix


def quick(labels, scale=None, **settings):
    labels = labels if scale is None else labels.with_scale(scale)
    return agreement(labels, **({"n_resamples": 2, "min_shared": 1} | settings))


# ---------------------------------------------------------------------- published


def test_alpha_of_krippendorffs_own_example():
    labels = CrowdLabels.from_matrix(OBSERVERS.T, missing=0)
    alpha = {kind: quick(labels, kind).alpha.value for kind in ("nominal", "ordinal", "interval")}
    assert {kind: round(value, 3) for kind, value in alpha.items()} == {
        "nominal": 0.743,
        "ordinal": 0.815,
        "interval": 0.849,
    }


def test_ac1_and_ac2_of_the_examples_in_gwets_handbook():
    # AC1 as printed by Gwet's own package irrCAC; AC2 as computed with irrCAC 0.4.4 for Python.
    four = CrowdLabels.from_matrix(OBSERVERS.T, missing=0)
    five = CrowdLabels.from_matrix(FIVE_OBSERVERS.T, missing=9)
    for labels, expected in ((four, (0.77544, 0.85874, 0.914)), (five, (0.49662, 0.68964, 0.83043))):
        found = [quick(labels, "nominal"), *(quick(labels, "ordinal", weights=w) for w in ("linear", "quadratic"))]
        assert_allclose([one.ac.value for one in found], expected, atol=5.1e-6)


def test_the_three_by_three_table_in_gwets_vignette():
    # Two abstractors of 100 pregnancies: the vignette "overview" of irrCAC for R.
    found = quick(of_table([[13, 0, 0], [0, 20, 7], [0, 4, 56]]))
    assert_allclose(found.pairs.kappa, [0.7964094], atol=5e-8)
    assert_allclose(found.ac.value, 0.8493305, atol=5e-8)
    assert_allclose(found.alpha.value, 0.7972585, atol=5e-8)
    assert_allclose(found.percent.value, 0.89)


def test_the_kappa_paradox_of_feinstein_and_cicchetti():
    # Feinstein and Cicchetti (1990): both tables agree in 85 of 100, and kappa says 0.70 and 0.32.
    even, skewed = quick(of_table([[40, 9], [6, 45]])), quick(of_table([[80, 10], [5, 5]]))
    assert_allclose([even.percent.value, skewed.percent.value], [0.85, 0.85])
    assert [round(float(one.pairs.kappa[0]), 2) for one in (even, skewed)] == [0.70, 0.32]
    assert even.ac.value < skewed.ac.value


# ---------------------------------------------------------------------- other packages


def test_coefficients_equal_those_of_other_packages():
    # Computed once with krippendorff 0.9.0 (alpha) and irrCAC 0.4.4 (the rest) on `made_matrix`.
    labels = CrowdLabels.from_matrix(made_matrix())
    alphas = {"nominal": 0.13178692687380522, "ordinal": 0.6847323552018458, "interval": 0.6839724508258915}
    for kind, expected in alphas.items():
        assert_allclose(quick(labels, kind).alpha.value, expected, rtol=1e-12)
    assert_allclose(quick(labels).ac.value, 0.136663207201156, rtol=1e-12)
    assert_allclose(quick(labels).percent.value, 0.309166666666667, rtol=1e-12)
    for weights, expected in (("linear", 0.459623569826035), ("quadratic", 0.696904777670878)):
        for kind in ("ordinal", "interval"):
            assert_allclose(quick(labels, kind, weights=weights).ac.value, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "interval"])
def test_alpha_equals_that_of_the_package_krippendorff(kind):
    package = pytest.importorskip("krippendorff", reason="krippendorff is not installed")
    _, matrix = crowd(5, n_examples=60, n_classes=4, missing=0.5)
    numbers = np.array([[np.nan if value is None else value for value in row] for row in matrix])
    expected = package.alpha(numbers.T, level_of_measurement=kind)
    assert_allclose(quick(labels_of(matrix, 4), kind).alpha.value, expected, rtol=1e-10)


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_weighted_kappas_equal_those_of_scikit_learn(weights, missing):
    _, matrix = crowd(2, n_examples=40, n_annotators=6, n_classes=4, missing=missing)
    found = quick(labels_of(matrix, 4), "ordinal", weights=weights).pairs
    expected = []
    for a, b in combinations(range(6), 2):
        both = [i for i in range(40) if matrix[i, a] is not None and matrix[i, b] is not None]
        one, other = matrix[both, a].astype(int), matrix[both, b].astype(int)
        expected.append(cohen_kappa_score(one, other, labels=range(4), weights=weights))
    assert_allclose(found.kappa, expected, atol=1e-12)


# ---------------------------------------------------------------------- slow twins


def slow_ordinal_alpha(rows, n_classes):
    """From the definition: the squared number of labels between two levels, half of the levels themselves counted."""
    units = [[value for value in row if value is not None] for row in rows]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    use = [values.count(k) for k in range(n_classes)]

    def apart(a, b):
        a, b = min(a, b), max(a, b)
        return (sum(use[a : b + 1]) - (use[a] + use[b]) / 2) ** 2

    within = sum(sum(apart(a, b) for a in unit for b in unit) / (len(unit) - 1) for unit in units)
    between = sum(apart(a, b) for a in values for b in values) / (len(values) - 1)
    return 1 - within / between if between else np.nan


def slow_ac(rows, n_classes, weight):
    """From the definition, one pair of labels after the other."""
    units = [[value for value in row if value is not None] for row in rows]
    paired = [unit for unit in units if len(unit) > 1]
    alike = [np.mean([weight(a, b) for i, a in enumerate(u) for j, b in enumerate(u) if i != j]) for u in paired]
    share = [np.mean([unit.count(k) / len(unit) for unit in units]) for k in range(n_classes)]
    total = sum(weight(a, b) for a in range(n_classes) for b in range(n_classes))
    chance = total / (n_classes * (n_classes - 1)) * sum(p * (1 - p) for p in share)
    return (np.mean(alike) - chance) / (1 - chance)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.0, 0.3, 0.6]))
def test_coefficients_equal_their_slow_twins(seed, n_classes, missing):
    _, matrix = crowd(seed, n_examples=12, n_annotators=4, n_classes=n_classes, missing=missing)
    labels = labels_of(matrix, n_classes)
    if not (labels.labels_per_example > 1).any():
        return
    rows = matrix.tolist()
    assert_allclose(quick(labels, "ordinal").alpha.value, slow_ordinal_alpha(rows, n_classes), atol=1e-10)
    assert_allclose(quick(labels).alpha.value, krippendorff_alpha(labels), atol=1e-12)
    weights = {
        None: lambda a, b: float(a == b),
        "linear": lambda a, b: 1 - abs(a - b) / (n_classes - 1),
        "quadratic": lambda a, b: 1 - (a - b) ** 2 / (n_classes - 1) ** 2,
    }
    for name, weight in weights.items():
        found = quick(labels, "nominal" if name is None else "ordinal", weights=name)
        assert_allclose(found.ac.value, slow_ac(rows, n_classes, weight), atol=1e-12)


def test_ratings_of_many_values_have_the_alpha_of_the_definition(rng):
    ratings = CrowdLabels.from_matrix(rng.normal(size=(60, 1)) + rng.normal(size=(60, 4)), scale="interval")
    found = quick(ratings)
    assert_allclose(found.alpha.value, krippendorff_alpha(ratings), rtol=1e-12)
    assert found.scale == "interval"
    assert np.isnan(found.ac.value)
    assert len(found.pairs) == 0
    assert "more than 100 different values" in repr(found)
    assert "undefined" not in repr(found)  # only what applies is printed
    assert "of no pair" not in repr(found)


# ---------------------------------------------------------------------- invariances


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["nominal", "ordinal", "interval"]))
def test_order_and_names_change_nothing(seed, kind):
    _, matrix = crowd(seed, n_examples=15, n_annotators=4, n_classes=3, missing=0.3)
    rng = np.random.default_rng(seed)
    moved = matrix[rng.permutation(15)][:, rng.permutation(4)]
    one, other = quick(labels_of(matrix, 3), kind), quick(labels_of(moved, 3, annotators=list("wxyz")), kind)
    for name in ("alpha", "ac", "percent"):
        assert_allclose(getattr(one, name).value, getattr(other, name).value, atol=1e-12)
    assert_allclose(np.sort(one.pairs.kappa), np.sort(other.pairs.kappa), atol=1e-12)
    backwards = np.array([[None if value is None else 2 - value for value in row] for row in matrix], dtype=object)
    other = quick(labels_of(backwards, 3), kind)
    assert_allclose([one.alpha.value, one.ac.value], [other.alpha.value, other.ac.value], atol=1e-12)
    assert_allclose(one.pairs.kappa, other.pairs.kappa, atol=1e-12)


@pytest.mark.parametrize(("scale", "shift"), [(7.0, -3.0), (1e-120, 0.0), (1e150, 1e150), (0.001, 1e6)])
def test_the_unit_of_ratings_changes_nothing(scale, shift, rng):
    values = rng.integers(1, 6, (30, 4)) + rng.integers(0, 2, (30, 4))
    one = quick(CrowdLabels.from_matrix(values.astype(float), scale="interval"))
    other = quick(CrowdLabels.from_matrix(scale * values + shift, scale="interval"))
    assert_allclose(other.alpha.value, one.alpha.value, rtol=1e-6)
    assert_allclose(other.ac.value, one.ac.value, rtol=1e-6)
    assert_allclose(other.pairs.kappa, one.pairs.kappa, rtol=1e-6)


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "interval"])
def test_perfect_agreement_is_one_and_chance_about_zero(kind, rng):
    same = np.repeat(rng.integers(0, 4, (50, 1)), 3, axis=1)
    found = quick(CrowdLabels.from_matrix(same), kind)
    assert_allclose([found.alpha.value, found.ac.value, found.percent.value], 1)
    assert_allclose(found.pairs.kappa, 1)
    by_chance = quick(CrowdLabels.from_matrix(rng.integers(0, 4, (4000, 3))), kind)
    assert_allclose([by_chance.alpha.value, by_chance.ac.value, *by_chance.pairs.kappa], 0, atol=0.06)


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("times", [np.array([30.0, 60.0, 10.0]), np.ones(40)], ids=["patterns", "examples"])
def test_resamples_draw_as_many_examples_with_replacement(times, rng):
    drawn = np.vstack(list(resamples(times, 4000, rng)))
    n = times.sum()
    assert drawn.shape == (4000, len(times))
    assert_array_equal(drawn.sum(axis=1), n)
    share = times / n
    assert_allclose(drawn.mean(axis=0), times, rtol=0.08)
    assert_allclose(drawn.var(axis=0), n * share * (1 - share), rtol=0.15)


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "interval"])
def test_a_resample_has_the_coefficients_of_the_examples_it_repeats(kind):
    _, matrix = crowd(3, n_examples=12, n_annotators=3, n_classes=3, missing=0.2)
    classes = labels_of(matrix, 3)
    labels = classes.with_scale(kind)
    _, places, patterns = _on_scale(labels)
    first = [int((classes._tally == counts).all(axis=1).argmax()) for counts in patterns.counts]  # an example of each
    distance = distances(places, _check_weights(None, kind))
    coefficients = {"alpha": _ALPHAS[kind], "ac": chance_corrected(distance, gwet_chance)}
    (block,) = resamples(patterns.times, 4, np.random.default_rng(0))
    for times, found in zip(
        block, zip(*(one(block, patterns) for one in coefficients.values()), strict=True), strict=True
    ):
        drawn = quick(labels[np.repeat(first, times.astype(int))], kind)
        assert_allclose(found, [drawn.alpha.value, drawn.ac.value], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nominal", "ordinal", "interval"])
def test_intervals_are_those_of_a_bootstrap_over_examples(kind):
    _, matrix = crowd(3, n_examples=60, n_annotators=3, n_classes=3, missing=0.2)
    labels = labels_of(matrix, 3)
    found = agreement(labels.with_scale(kind), n_resamples=4000)
    rng = np.random.default_rng(1)
    drawn = [quick(labels[rng.integers(0, 60, 60)], kind, n_resamples=1, min_shared=61) for _ in range(400)]
    for name in ("alpha", "ac", "percent"):
        values = [getattr(one, name).value for one in drawn]
        estimate = getattr(found, name)
        spread = np.std(values)
        assert_allclose([estimate.low, estimate.high], np.quantile(values, [0.025, 0.975]), atol=0.35 * spread)
        assert estimate.low < estimate.value < estimate.high


@pytest.mark.slow
def test_intervals_of_kappas_are_those_of_a_bootstrap_over_shared_examples():
    _, matrix = crowd(3, n_examples=80, n_annotators=3, n_classes=3, missing=0.2)
    found = agreement(labels_of(matrix, 3).with_scale("ordinal"), weights="linear", n_resamples=4000).pairs
    rng = np.random.default_rng(1)
    both = [i for i in range(80) if matrix[i, 0] is not None and matrix[i, 1] is not None]
    one, other = matrix[both, 0].astype(int), matrix[both, 1].astype(int)
    draws = [rng.integers(0, len(both), len(both)) for _ in range(300)]
    values = [cohen_kappa_score(one[rows], other[rows], labels=range(3), weights="linear") for rows in draws]
    ends = np.quantile(values, [0.025, 0.975])
    assert_allclose([found.low[0], found.high[0]], ends, atol=0.35 * np.std(values))


def test_a_resample_of_equal_ratings_is_undefined_and_not_rounding():
    values = np.arange(1, 40) / 7
    labels = CrowdLabels.from_matrix(np.column_stack([values] * 3), scale="interval")
    _, _, patterns = _on_scale(labels)
    assert_array_equal(np.isnan(alpha_interval(39 * np.eye(39), patterns)), True)
    assert_allclose(alpha_interval(np.ones((1, 39)), patterns), [1])


def test_resamples_of_a_pair_know_only_the_two_of_them():
    rng = np.random.default_rng(0)
    second, third = np.full((2, 60), None, dtype=object)
    second[:40] = third[:40] = rng.integers(0, 2, 40)
    third[40:] = 1
    labels = CrowdLabels.from_matrix(np.column_stack([np.zeros(60, dtype=object), second, third]))
    found = agreement(labels).pairs
    assert (found.kappa[2], found.low[2], found.high[2]) == (1, 1, 1)


def test_intervals_are_seeded_narrower_with_more_examples_and_wider_with_more_confidence():
    _, matrix = crowd(4, n_examples=400, n_classes=2)
    few, many = labels_of(matrix[:50]), labels_of(matrix)
    one, again = agreement(few), agreement(few)
    assert (one.alpha, one.ac, one.percent) == (again.alpha, again.ac, again.percent)
    assert_array_equal(one.pairs.low, again.pairs.low)

    def width(found):
        return found.alpha.high - found.alpha.low

    assert width(agreement(many)) < width(one) < width(agreement(few, confidence=0.999))
    assert agreement(few, random_state=1).alpha != one.alpha


@pytest.mark.slow
def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60_000)
    said = np.where(rng.random((60_000, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (60_000, 3)))
    whole = quick(CrowdLabels.from_matrix(said), "ordinal").alpha.value
    levels = CrowdLabels.from_matrix(said, scale="ordinal")
    parts = [agreement(levels[i : i + 150]).alpha for i in range(0, 60_000, 150)]
    covered = sum(one.low <= whole <= one.high for one in parts)
    assert stats.binomtest(covered, len(parts), 0.94).pvalue > 1e-3


# ---------------------------------------------------------------------- undefined and wrong


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "interval"])
def test_one_category_only_is_undefined_and_says_so(kind):
    found = quick(CrowdLabels.from_matrix([[1, 1], [1, 1], [1, None]]), kind)
    for estimate in (found.alpha, found.ac):
        assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert found.percent.value == 1
    assert np.isnan(found.pairs.kappa).all()
    assert np.isnan(found.pairs.low).all()
    assert "Krippendorff's alpha  undefined" in repr(found)
    assert "note: all labels that can be compared are the same" in repr(found)


def test_ac_is_defined_if_other_classes_were_declared():
    found = quick(CrowdLabels.from_matrix([[1, 1], [1, 1]], classes=[0, 1]))
    assert found.ac.value == 1
    assert np.isnan(found.alpha.value)


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(LabelError, match="no example has two labels"):
        agreement(CrowdLabels.from_matrix([[0, None], [None, 1]]))
    with pytest.raises(LabelError, match="the interval scale needs numbers,"):
        CrowdLabels.from_matrix([["a", "b"]]).with_scale("interval")
    ratings = CrowdLabels.from_matrix(np.arange(300.0).reshape(100, 3), scale="interval")
    with pytest.raises(LabelError, match="300 different values, and labels"):
        ratings.with_scale("ordinal")
    with pytest.raises(LabelError, match="too far apart"):
        agreement(CrowdLabels.from_matrix([[-1.7e308, 1.7e308]], scale="interval"))
    with pytest.raises(ValueError, match='scale must be "nominal", "ordinal"'):
        ratings.with_scale("ratio")
    with pytest.raises(ValueError, match=r"give them one, labels.with_scale\(.ordinal.\)"):
        agreement([[0, 1], [1, 1]], weights="linear")
    with pytest.raises(ValueError, match="confidence must be a finite"):
        agreement([[0, 1], [1, 1]], confidence=95)
    with pytest.raises(ValueError, match="n_resamples must be a whole"):
        agreement([[0, 1], [1, 1]], n_resamples=0)


# ---------------------------------------------------------------------- the record


def test_the_record_says_it_in_words_and_as_frames():
    words = [["low", "low", "mid"], ["high", "mid", "high"], ["low", "low", "low"], ["mid", "high", "high"]]
    labels = CrowdLabels.from_matrix(words, classes=["low", "mid", "high"], annotators=["ann", "bob", "cat"])
    found = quick(labels, "ordinal")
    text = repr(found)
    assert text.startswith(
        "Agreement of 3 annotators on 4 examples with two labels or more (ordinal, quadratic weights"
    )
    assert "Gwet's AC2" in text
    assert "Cohen's kappa of 3 pairs: median" in text
    assert "the levels are in the order 'low' < 'mid' < 'high'" in text
    frame = found.to_frame()
    assert list(frame) == ["measure", "value", "low", "high"]
    measures = (found.alpha, found.ac, found.fleiss, found.brennan_prediger, found.percent)
    assert frame["value"].tolist() == [measure.value for measure in measures]
    pairs = found.pairs.to_frame()
    assert list(pairs) == ["first", "second", "shared", "kappa", "low", "high"]
    assert pairs["first"].tolist() == ["ann", "ann", "bob"]
    assert "Gwet's AC1" in repr(quick(labels))


def test_an_interval_without_width_comes_with_what_it_does_not_say():
    agreed = quick(CrowdLabels.from_matrix([[1, 1], [2, 2], [1, 1], [2, 2], [1, 1], [2, 2], [1, 1], [2, 2]]))
    assert (agreed.percent.low, agreed.percent.high) == (1, 1)
    # If 31.2 % of all examples were otherwise, eight that are not would come up once in twenty times: 0.688**8 is 0.05.
    assert "agree on 100% of the pairs of labels of every example" in repr(agreed)
    assert "up to 31% of other examples may still differ" in repr(agreed)
    assert "agree on 0% of the pairs" in repr(quick(CrowdLabels.from_matrix([[1, 2], [2, 1]])))
    assert "width" not in repr(quick(CrowdLabels.from_matrix([[1, 1], [2, 1]])))


def test_numbers_that_were_declared_in_another_order_are_refused():
    said = [[1, 2], [2, 3], [3, 3], [1, 1]]
    with pytest.raises(LabelError, match=r"declared in another: \[2, 1, 3\]"):
        quick(CrowdLabels.from_matrix(said, classes=[2, 1, 3]), "ordinal")
    for classes in ([1, 2, 3], [3, 2, 1]):
        assert "in the order" not in repr(quick(CrowdLabels.from_matrix(said, classes=classes), "ordinal"))


def test_many_pairs_have_kappas_without_intervals():
    rng = np.random.default_rng(0)
    found = quick(CrowdLabels.from_matrix(rng.integers(0, 2, (20, 50))))
    assert len(found.pairs) == 1225
    assert not np.isnan(found.pairs.kappa).any()
    assert np.isnan(found.pairs.low).all()
    assert "kappas have intervals for at most 1,000 pairs" in repr(found)


def test_pairs_who_share_few_examples_are_left_out():
    _, matrix = crowd(0, n_examples=20, n_annotators=4, missing=0.5)
    labels = labels_of(matrix)
    assert (agreement(labels, n_resamples=2, min_shared=6).pairs.n_shared >= 6).all()
    assert "Cohen's kappa: of no pair" in repr(agreement(labels, n_resamples=2, min_shared=21))


def test_kappas_of_many_annotators_by_hand():
    """Ten subjects, fourteen raters, five classes: Fleiss' kappa is .210 in the literature's worked example."""
    counts = np.array(
        [
            [0, 0, 0, 0, 14],
            [0, 2, 6, 4, 2],
            [0, 0, 3, 5, 6],
            [0, 3, 9, 2, 0],
            [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0],
            [3, 2, 6, 3, 0],
            [2, 5, 3, 2, 2],
            [6, 5, 2, 1, 0],
            [0, 2, 2, 3, 7],
        ]
    )
    matrix = np.array([np.repeat(np.arange(5), row) for row in counts])
    found = agreement(matrix, n_resamples=10)
    assert round(found.fleiss.value, 3) == 0.210
    observed = ((counts * (counts - 1)).sum(axis=1) / (14 * 13)).mean()
    assert found.brennan_prediger.value == pytest.approx((observed - 0.2) / 0.8)
    assert found.icc == {}
    by_name = found.as_dict()["measures"]
    assert by_name["Fleiss' kappa"]["value"] == found.fleiss.value


def test_numbers_have_intraclass_correlations():
    matrix = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    labels = CrowdLabels.from_matrix(matrix, scale="interval")
    found = agreement(labels, n_resamples=10, min_shared=2)
    assert round(found.icc["ICC(2,1)"].value, 2) == 0.29
    assert agreement(labels.with_scale("ordinal"), n_resamples=10, min_shared=2).icc == found.icc
    assert "ICC(3,k)" in repr(found)
