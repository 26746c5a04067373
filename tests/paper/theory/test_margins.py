import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from crowdwise import CrowdLabels, simulate_annotators
from crowdwise.exceptions import LabelError
from crowdwise.paper.theory import (
    alignment_expertise,
    ball_radii,
    estimate_labels,
    estimate_margins,
    label_signs,
    margin_upper_bounds,
    nested_ball_margins,
    simulate_ball_annotators,
    weighted_majority,
)


def naive(given_labels, radii, estimated):
    """Open the balls from the smallest to the largest: the last before a contradiction, and the contradiction."""
    lower = 0.0
    if estimated == 0:
        return lower, np.inf
    answers = sorted((r, sign != estimated) for r, sign in zip(radii, given_labels, strict=True) if sign != 0)
    for radius in sorted({r for r, _ in answers}):
        if any(wrong for r, wrong in answers if r == radius):
            return lower, radius
        lower = radius
    return lower, np.inf


@given(st.data())
def test_nested_balls_equal_opening_them_one_by_one(data):
    L = data.draw(st.integers(1, 5))
    signs = np.array([data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=L, max_size=L)) for _ in range(6)])
    radii = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=L, max_size=L)))
    labels = CrowdLabels.from_matrix(signs, missing=0, classes=[-1, 1])
    estimated = weighted_majority(label_signs(labels), np.ones(L))
    lower, upper = nested_ball_margins(labels, radii), margin_upper_bounds(labels, radii)
    for i in range(6):
        assert (lower[i], upper[i]) == naive(signs[i], radii, estimated[i])


def test_first_last_and_tied():
    labels = [[1, 1, 1], [0, 1, 1], [1, 1, 0], [1, 0, None]]
    assert nested_ball_margins(labels, [0.2, 0.4, 0.9]).tolist() == [0.9, 0.0, 0.4, 0.0]
    assert margin_upper_bounds(labels, [0.2, 0.4, 0.9]).tolist() == [np.inf, 0.2, 0.9, np.inf]


def test_annotators_without_a_radius_have_no_ball():
    labels = [[1, 1, 0], [1, 1, 1]]
    assert nested_ball_margins(labels, [0.2, 0.4, np.nan], [1.0, 1.0, np.nan]).tolist() == [0.4, 0.4]


@pytest.mark.parametrize("seed", range(3))
def test_a_contradicting_ball_holds_an_example_of_the_other_class(seed):
    """With true radii and labels the radius of the contradicting ball is an upper bound, not a lower one."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (400, 4))
    distance = np.abs(X[:, 0] - 0.3)
    radii = np.array([0.0, 0.5, 0.7, 0.9, 1.1])
    labels = simulate_ball_annotators(X, X[:, 0] > 0.3, radii)
    upper = margin_upper_bounds(labels, radii, expertise=[1, 0, 0, 0, 0])
    assert np.isfinite(upper).sum() > 10
    assert (distance <= upper).all()
    # The last ball before it is not beyond all doubt either: a ball may cross the boundary and be right.
    lower = nested_ball_margins(labels, radii, expertise=[1, 0, 0, 0, 0])
    assert 0 < (lower > distance).mean() < 1


def test_estimated_margins_rank_true_ones_on_ball_annotators():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 5))
    true = np.abs(X[:, 0] - 0.3)
    labels = simulate_ball_annotators(X, X[:, 0] > 0.3, np.linspace(0, 1.6, 8))
    assert spearmanr(estimate_margins(X, labels).margins, true).statistic > 0.3


def test_estimated_margins_rank_true_ones_on_the_papers_simulator():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    labels = simulate_annotators(X, X[:, 0] > 0, 9, experts=1, clarity=5.0, scores=X[:, 0] / 4, random_state=0)
    assert spearmanr(estimate_margins(X, labels).margins, np.abs(X[:, 0])).statistic > 0.3


def test_estimates_are_the_three_steps():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (150, 3))
    labels = simulate_ball_annotators(X, X[:, 0] > 0.2, [0.0, 0.4, 0.8, 1.2])
    found = estimate_margins(X, labels)
    margins = found.margins
    assert margins.shape == (150,)
    expertise = alignment_expertise(X, labels)
    assert np.array_equal(margins, nested_ball_margins(labels, ball_radii(X, labels, expertise), expertise))
    assert margins.max() > margins.min() >= 0
    assert np.array_equal(found.expertise, expertise)
    assert np.array_equal(found.signs, weighted_majority(label_signs(labels), expertise))
    assert repr(found) == "MarginEstimates: 150 examples, 4 annotators"
    assert found.to_frame()["label"].tolist() == found.label.tolist()


def test_somebody_always_right_and_somebody_always_wrong_leave_no_label():
    labels = CrowdLabels.from_matrix([["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]])
    found = estimate_margins(np.array([[0.0], [1.0], [0.1], [0.9]]), labels)
    assert found.expertise[0] == pytest.approx(found.expertise[1])
    assert found.label.tolist() == [None] * 4
    assert found.margins.tolist() == [0.0] * 4


def test_annotators_who_line_up_with_nothing_are_trusted_alike():
    labels = CrowdLabels.from_matrix([[1, 0], [1, 1], [0, 0], [1, 0]])
    assert np.isfinite(estimate_margins(np.zeros((4, 1)), labels).margins).all()


def test_wrong_radii_are_reported():
    with pytest.raises(LabelError, match="radii must be 2 numbers"):
        nested_ball_margins([[1, 0], [0, 0]], [1.0])
    with pytest.raises(LabelError, match="radii must be 2 numbers"):
        nested_ball_margins([[1, 0], [0, 0]], [1.0, -1.0])


def test_kernel_and_metric_reach_both_steps():
    """A user's linear kernel and Euclidean distance are the defaults; others change what they should."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (80, 2))
    labels = simulate_ball_annotators(X, X[:, 0] > 0.1, [0.0, 0.3, 0.8])
    plain = estimate_margins(X, labels)
    same = estimate_margins(X, labels, kernel=lambda left, right: left @ right.T, metric=cdist)
    assert same.expertise == pytest.approx(plain.expertise, abs=1e-6)
    assert same.margins == pytest.approx(plain.margins)
    other = estimate_margins(X, labels, kernel=gaussian, metric="chebyshev")
    assert other.expertise == pytest.approx(alignment_expertise(X, labels, kernel=gaussian))
    assert (other.radii == ball_radii(X, labels, other.expertise, metric="chebyshev")).all()
    assert not np.allclose(other.expertise, plain.expertise)
    assert not np.array_equal(other.radii, plain.radii)
    assert (estimate_labels(X, labels, kernel=gaussian)[0] == other.expertise).all()


def gaussian(left, right):
    return np.exp(-(cdist(left, right) ** 2))
