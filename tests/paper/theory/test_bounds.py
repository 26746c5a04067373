import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from marks import many_examples

from crowdwise.exceptions import BoundError
from crowdwise.paper.theory import (
    break_even_spread,
    count_regions,
    deviation,
    equal_mistakes_bound,
    feed,
    improvement,
    noisy_bound,
    novikoff_bound,
    regions,
    spread_bound,
)

margins_of_unit_vectors = st.floats(0.001, 1.0)


# ---------------------------------------------------------------------- the algebra


def test_hand_cases():
    assert novikoff_bound(0.25) == 16
    assert novikoff_bound(0.5, radius=3.0, norm=2.0) == 144
    assert count_regions(0.25) == 3
    assert equal_mistakes_bound(0.25) == 4  # (2 / (0.25 * 4))²
    # K = 3: spread * 3 * 16 * sqrt(2) * 0.0625 = spread * 3 sqrt(2); with spread 5 / sqrt(2) the root is of 1 + 15.
    assert spread_bound(0.25, 5 / math.sqrt(2)) == pytest.approx(25)
    # Theorem 3: 4 (1 + 1)² / (0.5² * 0.25² * 4²)
    assert noisy_bound(0.25, 1.0, overestimation=0.5) == pytest.approx(64)


@given(
    margins_of_unit_vectors,
    st.floats(0, 1e4),
    st.floats(0.1, 10),
    st.floats(0.1, 10),
    st.floats(0, 10),
    st.floats(0.05, 1),
)
def test_the_bound_solves_the_quadratic_of_the_proof(share, spread, radius, norm, short, overestimation):
    margin = share * radius * norm
    K = count_regions(margin, radius)
    root = math.sqrt(noisy_bound(margin, short, overestimation=overestimation, spread=spread, radius=radius, norm=norm))
    moved = (root**2 / K - spread * math.sqrt(K - 1)) * (K * (K + 1) / 2) * margin * overestimation
    length = root * (radius * norm + short)
    size = root**2 * (K + 1) / 2 * margin
    assert moved == pytest.approx(length, rel=1e-9, abs=1e-9 * size)


@given(margins_of_unit_vectors, st.floats(0, 1e3), st.floats(0.1, 10))
def test_the_theorems_are_special_cases_of_each_other(share, spread, radius):
    margin = share * radius
    assert spread_bound(margin, spread, radius=radius) == noisy_bound(margin, 0.0, spread=spread, radius=radius)
    assert spread_bound(margin, 0.0, radius=radius) == equal_mistakes_bound(margin, radius=radius)
    K = count_regions(margin, radius)
    assert equal_mistakes_bound(margin, radius=radius) == pytest.approx(4 * radius**2 / (margin * (K + 1)) ** 2)
    assert noisy_bound(margin, 0.7, radius=radius) == pytest.approx(4 * (0.7 + radius) ** 2 / (margin * (K + 1)) ** 2)
    # With one region, theorem 3 is the bound of Freund and Schapire.
    assert noisy_bound(margin, 0.7, radius=radius, n_regions=1) == pytest.approx(((0.7 + radius) / margin) ** 2)


@given(st.floats(0.5, 1.0), st.floats(0, 1e3))
def test_from_half_the_radius_on_there_is_one_region_and_nothing_to_gain(margin, spread):
    assert count_regions(margin) == 1
    assert spread_bound(margin, spread) == pytest.approx(novikoff_bound(margin))
    assert break_even_spread(margin) == 0


@given(st.floats(1e-6, 1.0))
def test_equal_mistakes_allow_at_most_four_in_all(margin):
    assert equal_mistakes_bound(margin) <= 4 * (1 + 1e-9)


@given(st.floats(0.001, 0.499))
def test_theorem_2_is_the_smaller_bound_up_to_the_break_even_spread(margin):
    even = break_even_spread(margin)
    below, at, above = improvement(margin, [0.99 * even, even, 1.01 * even])
    assert below < 1 < above
    assert at == pytest.approx(1)
    # For a unit vector the break-even spread is about sqrt(radius / margin).
    K = count_regions(margin)
    assert math.sqrt(K - 1) * K / (K + 1) <= even <= math.sqrt(K - 1) * (K + 1) / K * (1 + 1e-9)


def test_improvement_has_the_shape_of_the_spread():
    ratio = improvement(0.1, np.zeros((2, 3)), radius=2.0, norm=3.0)
    assert ratio.shape == (2, 3)
    assert ratio == pytest.approx(4 / 20**2)
    assert improvement(0.1, 1.0).shape == ()


# ---------------------------------------------------------------------- regions


def test_regions_of_a_whole_quotient():
    assert count_regions(1 / 3) == 2
    assert [count_regions(0.1, radius) for radius in (0.2, 0.3, 0.1 * 3, 0.6, 0.7)] == [1, 2, 2, 5, 6]
    found = regions([0.1, 0.2, 0.1 * 3, 0.3, 0.29], radius=0.3)
    assert found.n_regions == 2
    assert found.region.tolist() == [1, 2, 2, 2, 2]


def test_a_margin_of_the_radius_and_beyond_makes_one_region():
    assert count_regions(1.0) == count_regions(5.0) == 1
    assert regions([5.0, 7.0], radius=1.0).region.tolist() == [1, 1]


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), st.floats(1.0, 3.0))
def test_every_example_reaches_the_lower_edge_of_its_region(margins, slack):
    margins = np.array(margins)
    radius = slack * margins.max()
    found = regions(margins, radius)
    assert found.margin == margins.min()
    assert found.region.min() == 1 or found.n_regions == 1
    assert found.region.max() <= found.n_regions
    assert (margins >= found.region * found.margin * (1 - 1e-11)).all()
    inner = found.region < found.n_regions
    assert (margins[inner] < (found.region[inner] + 1) * found.margin).all()


# ---------------------------------------------------------------------- counted mistakes


def run_many(signed):
    """Mistakes (n_sequences, length) of one perceptron per sequence, all at once."""
    weights = np.zeros((len(signed), signed.shape[2]))
    made = np.zeros(signed.shape[:2], dtype=bool)
    for t in range(signed.shape[1]):
        row = signed[:, t]
        made[:, t] = np.einsum("sn,sn->s", row, weights) <= 0
        weights += row * made[:, t, np.newaxis]
    return made


def separable_sequences(rng, n_sequences, length, n_features, gap):
    """Examples times labels inside the unit ball with margins of at least `gap` along a random unit vector."""
    u = rng.normal(size=(n_sequences, n_features))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    rows = rng.normal(size=(n_sequences, length, n_features))
    along = rng.uniform(gap, rng.uniform(gap, 1.0, size=(n_sequences, 1)), size=(n_sequences, length))
    across = rows - np.einsum("stn,sn->st", rows, u)[..., np.newaxis] * u[:, np.newaxis]
    across /= np.linalg.norm(across, axis=2, keepdims=True)
    width = np.sqrt(1 - along**2) * rng.uniform(0.5, 1, size=along.shape)
    return along[..., np.newaxis] * u[:, np.newaxis] + width[..., np.newaxis] * across, along


@pytest.mark.parametrize("order", ["easiest", "random", "hardest"])
@pytest.mark.parametrize(("n_features", "gap"), [(2, 0.02), (5, 0.1), (30, 0.03), (30, 0.3), (4, 0.6)])
def test_mistakes_never_exceed_the_bounds_on_random_separable_sequences(order, n_features, gap):
    rng = np.random.default_rng(n_features)
    signed, margins = separable_sequences(rng, 400, 120, n_features, gap)
    if order != "random":
        by = np.argsort(-margins if order == "easiest" else margins, axis=1)
        signed = np.take_along_axis(signed, by[..., np.newaxis], axis=1)
        margins = np.take_along_axis(margins, by, axis=1)
    made = run_many(np.concatenate([signed, signed], axis=1))  # two passes are one longer sequence
    radius = np.linalg.norm(signed, axis=2).max(axis=1)
    for s in range(len(signed)):
        found = regions(margins[s], radius[s])
        mistakes = np.bincount(np.tile(found.region, 2)[made[s]] - 1, minlength=found.n_regions)
        assert mistakes.sum() <= novikoff_bound(found.margin, radius=radius[s])
        assert mistakes.sum() <= spread_bound(found.margin, mistakes.std(), radius=radius[s])
        if order == "easiest":  # what the order does guarantee: mistakes of the far regions in the first pass
            first_pass = np.bincount(found.region[made[s, :120]] - 1, minlength=found.n_regions)
            beyond = first_pass[::-1].cumsum()[::-1]
            edges = np.arange(1, found.n_regions + 1) * found.margin
            assert (beyond <= (radius[s] / edges) ** 2 * (1 + 1e-9)).all()


whole = st.integers(-5, 5)


@many_examples(500)
@given(st.lists(st.tuples(whole, whole, whole), min_size=1, max_size=25), st.tuples(whole, whole, whole), st.data())
def test_mistakes_never_exceed_the_bounds_on_whole_numbers_and_for_any_length_of_u(rows, u, data):
    rows, u = np.array(rows, dtype=float), np.array(u, dtype=float)
    rows = rows[rows @ u != 0]
    assume(len(rows))
    length = data.draw(st.sampled_from([0.01, 0.3, 1.0, 7.0]))
    u *= length / np.linalg.norm(u)
    signed = rows * np.sign(rows @ u)[:, np.newaxis]
    if data.draw(st.booleans()):
        signed = signed[np.argsort(-(signed @ u), kind="stable")]
    made = feed(np.tile(signed, (5, 1)), np.zeros(3)) % len(signed)
    radius = np.linalg.norm(rows, axis=1).max()
    found = regions(signed @ u, radius)
    spread = np.bincount(found.region[made] - 1, minlength=found.n_regions).std()
    bound = spread_bound(found.margin, spread, radius=radius, norm=length)
    assert len(made) <= bound * (1 + 1e-9)
    assert len(made) <= novikoff_bound(found.margin, radius=radius, norm=length) * (1 + 1e-9)


def test_both_bounds_are_reached():
    """A single example at the radius is one mistake, and both bounds are one."""
    assert len(feed(np.ones((3, 1)), np.zeros(1))) == novikoff_bound(1.0) == spread_bound(1.0, 0.0) == 1


@many_examples(300)
@given(st.lists(st.tuples(whole, whole), min_size=1, max_size=40), st.lists(st.booleans(), min_size=40, max_size=40))
def test_noisy_labels_and_margins_never_exceed_theorem_3_with_regions_own_edges(rows, flips):
    u, rows = np.array([0.6, 0.8]), np.array(rows, dtype=float)
    rows = rows[np.abs(rows @ u) > 1e-9]
    assume(len(rows))
    right = rows * np.sign(rows @ u)[:, np.newaxis]
    signed = np.where(np.array(flips)[: len(rows), np.newaxis], -right, right)
    estimates = (right @ u) * np.where(np.arange(len(rows)) % 3, 1.0, 2.0)  # some are overestimated twice
    order = np.argsort(-estimates, kind="stable")
    signed, estimates = signed[order], estimates[order]
    radius = np.linalg.norm(rows, axis=1).max()
    found = regions(estimates, radius)
    made = feed(signed, np.zeros(2))
    spread = np.bincount(found.region[made] - 1, minlength=found.n_regions).std()
    short = deviation((signed @ u)[made], 0.5 * found.region[made] * found.margin)
    bound = noisy_bound(found.margin, short, overestimation=0.5, spread=spread, radius=radius)
    assert len(made) <= bound * (1 + 1e-9)


def alternating_labels():
    """Numbers 10, ..., 1, each shown 400 times with alternating labels, times these: every one is a mistake."""
    sizes = np.repeat(np.arange(10.0, 0.0, -1.0), 400)
    return sizes, sizes * np.tile([1.0, -1.0], 2000)


def test_theorem_3_without_separability_can_be_exceeded_if_regions_are_cut_by_the_unsigned_margin():
    """All regions have 400 mistakes, margins are exact, the order is from the largest: only labels are noisy."""
    sizes, signed = alternating_labels()
    made = feed(signed[:, np.newaxis], np.zeros(1))
    found = regions(sizes, radius=11.0)
    assert len(made) == 4000
    assert np.bincount(found.region[made]).tolist() == [0] + [400] * 10
    printed = noisy_bound(found.margin, deviation(signed, found.margin), radius=11.0)
    own = noisy_bound(found.margin, deviation(signed, found.region * found.margin), radius=11.0)
    assert printed == pytest.approx(4 * (math.sqrt(200 * sum((k + 1) ** 2 for k in range(1, 11))) + 11) ** 2 / 11**2)
    assert round(printed) == 3574
    assert printed < 4000 <= own


def test_the_same_sequence_keeps_to_the_bound_if_regions_are_cut_by_the_signed_margin():
    _, signed = alternating_labels()
    found = regions(signed, radius=11.0, margin=1.0)
    counts = np.bincount(found.region, minlength=11)[1:]
    assert counts.tolist() == [2200] + [200] * 9  # whatever is labelled wrongly is in the first region
    assert noisy_bound(1.0, deviation(signed, 1.0), spread=counts.std(), radius=11.0) >= 4000


@given(margins_of_unit_vectors, st.floats(0, 100), st.floats(0.01, 1), st.floats(0.1, 10))
def test_theorem_3_as_printed_follows_from_theorem_2_if_examples_are_separated(share, short, overestimation, radius):
    """Its assumption is theorem 2's, and its value is never the smaller one."""
    margin = share * radius
    as_printed = noisy_bound(margin, short, overestimation=overestimation, radius=radius)
    assert as_printed >= equal_mistakes_bound(margin, radius=radius) * (1 - 1e-12)


noisy_rows = st.lists(st.tuples(whole, whole), min_size=1, max_size=40)


@many_examples(300)
@given(noisy_rows, st.floats(0.05, 5.0), st.floats(0.1, 1.0), st.booleans())
def test_theorem_3_holds_without_separability_if_regions_are_cut_by_the_signed_margin(rows, width, under, sort):
    u, signed = np.array([0.6, 0.8]), np.array(rows, dtype=float)
    radius = np.linalg.norm(signed, axis=1).max()
    assume(radius > 0)
    if sort:
        signed = signed[np.argsort(-(signed @ u), kind="stable")]
    weights = np.zeros(2)
    made = feed(np.tile(signed, (3, 1)), weights) % len(signed)
    found = regions(signed @ u, radius, margin=width)
    near = np.maximum(0.0, width - (signed @ u)[made])  # how far from the edge of the first region
    assert weights @ u >= (found.region[made] * width - near).sum() - 1e-9
    spread = np.bincount(found.region[made] - 1, minlength=found.n_regions).std()
    short = deviation((signed @ u)[made], width / under)
    assert len(made) <= noisy_bound(width, short, spread=spread, radius=radius) * (1 + 1e-9)


@many_examples(300)
@given(noisy_rows, st.lists(st.floats(0.01, 8.0), min_size=40, max_size=40))
def test_the_two_steps_of_the_repaired_proof(rows, estimates):
    """A mistake in region k moves the weights along u by at least k margins less what it falls short of them."""
    u, signed = np.array([0.6, 0.8]), np.array(rows, dtype=float)
    radius = np.linalg.norm(signed, axis=1).max()
    assume(radius > 0)
    found = regions(estimates[: len(rows)], radius)
    weights = np.zeros(2)
    made = feed(np.tile(signed, (3, 1)), weights) % len(signed)
    edges = found.region[made] * found.margin
    short = np.maximum(0.0, edges - (signed @ u)[made])
    assert weights @ u >= (edges - short).sum() - 1e-9
    assert short.sum() <= math.sqrt(len(made)) * deviation((signed @ u)[made], edges) + 1e-9
    assert np.linalg.norm(weights) <= math.sqrt(len(made)) * radius + 1e-9


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: novikoff_bound(0.0), "margin must be a finite number > 0"),
        (lambda: novikoff_bound(1.1), "exceeds radius"),
        (lambda: spread_bound(2.1, 0.0, radius=2.0), "exceeds radius"),
        (lambda: spread_bound(0.1, -1.0), "spread must be a finite number >= 0"),
        (lambda: spread_bound(0.1, 1.0, n_regions=0), "n_regions must be a whole number >= 1; got 0"),
        (lambda: spread_bound(0.1, 1.0, radius=math.inf), "radius must be a finite number"),
        (lambda: noisy_bound(0.1, math.nan), "deviation must be a finite number >= 0"),
        (
            lambda: noisy_bound(0.1, 1.0, overestimation=1.5),
            "overestimation must be a finite number > 0 and <= 1",
        ),
        (lambda: count_regions(5e-324), "too small compared with radius"),
        (lambda: regions([0.2, -0.1], 1.0), "example 1 has -0.1"),
        (lambda: regions([], 1.0), "one per example"),
    ],
)
def test_what_no_sequence_can_have_is_reported(call, match):
    with pytest.raises(BoundError, match=match):
        call()
