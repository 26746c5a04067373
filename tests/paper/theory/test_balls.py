import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import many_examples
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import cosine_distances

from crowdwise import CrowdLabels
from crowdwise.exceptions import DataError, LabelError
from crowdwise.paper.theory import (
    ball_averages,
    ball_radii,
    balls,
    label_signs,
    simulate_ball_annotators,
    weighted_majority,
)
from crowdwise.paper.theory.balls import distance_quantiles


def naive_averages(X, values, radii):
    out = np.empty((len(X), len(radii)))
    for i in range(len(X)):
        for k, radius in enumerate(radii):
            inside = [values[j] for j in range(len(X)) if np.sqrt(((X[i] - X[j]) ** 2).sum()) <= radius]
            out[i, k] = np.mean(inside)
    return out


def naive_radius(X, estimated, given, radii):
    """The smallest of the best radii, by trying all."""
    costs = []
    for radius in radii:
        averages = naive_averages(X, estimated, [radius])[:, 0]
        costs.append(sum((averages[i] - given[i]) ** 2 for i in range(len(X)) if given[i] != 0))
    return next(r for r, cost in zip(radii, costs, strict=True) if cost <= min(costs) + 1e-9)


@pytest.mark.parametrize("block", [1, 50, 2**21])
def test_ball_averages_equal_three_loops_whatever_the_block(set_constants, block):
    set_constants(balls, _BLOCK_DISTANCES=block)
    rng = np.random.default_rng(0)
    X, values, radii = rng.normal(size=(20, 3)), rng.normal(size=20), [1.5, 0.0, 0.4, 99.0, 1.5]
    assert ball_averages(X, values, radii) == pytest.approx(naive_averages(X, values, radii))


@many_examples(100)
@given(st.data())
def test_the_sweep_over_all_distances_equals_trying_each(data):
    m, L = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 4))
    # Few whole numbers: many equal distances, and examples on top of each other.
    points = st.lists(st.integers(0, 4), min_size=2, max_size=2)
    X = np.array(data.draw(st.lists(points, min_size=m, max_size=m)), dtype=float)
    signs = np.array(
        data.draw(st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=L, max_size=L), min_size=m, max_size=m))
    )
    labels = CrowdLabels.from_matrix(signs, missing=0, classes=[-1, 1])
    expertise = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=L, max_size=L)))
    estimated = weighted_majority(label_signs(labels), expertise)
    radii = np.unique(cdist(X, X))
    found = ball_radii(X, labels, expertise)
    for annotator in range(L):
        if signs[:, annotator].any():
            assert found[annotator] == naive_radius(X, estimated, signs[:, annotator], radii)
        else:
            assert np.isnan(found[annotator])


def test_a_grid_of_all_distances_equals_the_exact_sweep(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 2))
    labels = simulate_ball_annotators(X, X[:, 0] > 0.2, radii=[0.0, 0.3, 0.6, 0.9])
    exact = ball_radii(X, labels)
    monkeypatch.setattr(balls, "distance_quantiles", lambda X, *_: np.unique(cdist(X, X)))
    assert np.array_equal(ball_radii(X, labels, n_radii=2), exact)


def test_the_grid_comes_near_the_exact_sweep():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (800, 5))
    labels = simulate_ball_annotators(X, X.sum(axis=1) > 1, radii=[0.0, 0.7, 1.0, 1.3, 1.6])
    exact, grid = ball_radii(X, labels), ball_radii(X, labels, n_radii=100, random_state=0)
    assert grid == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("n_features", [5, 10])
@pytest.mark.parametrize("seed", range(3))
def test_radii_are_recovered_in_order(n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (600, n_features))
    u = rng.normal(size=n_features)
    true = np.quantile(cdist(X, X), [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    labels = simulate_ball_annotators(X, X @ u / np.linalg.norm(u) > 0.3, true)
    found = ball_radii(X, labels, expertise=[1, 0, 0, 0, 0, 0, 0])
    assert found[0] == 0.0
    assert spearmanr(true, found).statistic > 0.95


def test_simulated_annotators_answer_with_the_majority_around_them():
    rng = np.random.default_rng(0)
    X, truth, radii = rng.normal(size=(40, 2)), rng.choice(["a", "b"], 40), [0.0, 0.5, 1.5]
    labels = simulate_ball_annotators(X, truth, radii).to_matrix()
    for i in range(40):
        for annotator, radius in enumerate(radii):
            inside = truth[np.linalg.norm(X - X[i], axis=1) <= radius].tolist()
            n_a, n_b = inside.count("a"), inside.count("b")
            expected = truth[i] if n_a == n_b else "a" if n_a > n_b else "b"
            assert labels[i, annotator] == expected
    assert labels[:, 0].tolist() == truth.tolist()


def test_moving_and_turning_all_examples_changes_no_radius():
    rng = np.random.default_rng(4)
    X = rng.integers(-8, 8, (80, 2)).astype(float)
    labels = simulate_ball_annotators(X, X[:, 0] > 1, radii=[0.0, 3.0, 6.0])
    turned = np.column_stack([X[:, 1], -X[:, 0]]) + 1024.0
    assert np.array_equal(ball_radii(X, labels), ball_radii(turned, labels))
    assert 2 * ball_radii(X, labels) == pytest.approx(ball_radii(2 * X, labels))


def test_quantiles_start_at_zero_and_reach_the_largest_distance():
    X = np.random.default_rng(0).normal(size=(200, 3))
    radii = distance_quantiles(X, 40, random_state=0)
    assert radii[0] == 0
    assert radii[-1] == pytest.approx(cdist(X, X).max())
    assert (np.diff(radii) > 0).all()
    assert distance_quantiles(X[:1], 40).tolist() == [0.0]


def test_wrong_input_is_reported():
    X = np.arange(4.0)[:, np.newaxis]
    with pytest.raises(DataError, match="radii must be finite numbers"):
        simulate_ball_annotators(X, [0, 0, 1, 1], [-1.0])
    with pytest.raises(LabelError, match="truth must have two classes"):
        simulate_ball_annotators(X, [0, 1, 2, 1], [1.0])
    with pytest.raises(DataError, match="values must be one per"):
        ball_averages(X, [1.0], [1.0])
    with pytest.raises(LabelError, match="expertise must be one number"):
        ball_radii(X, [0, 0, 1, 1], expertise=[1.0, 1.0])
    with pytest.raises(LabelError, match="at least 0 for every annotator"):
        ball_radii(X, [0, 0, 1, 1], expertise=[-1.0])
    with pytest.raises(ValueError, match="n_radii must be a whole"):
        ball_radii(X, [0, 0, 1, 1], n_radii=1)


@pytest.mark.parametrize(
    "metric", ["cityblock", "chebyshev", cosine_distances], ids=["cityblock", "chebyshev", "cosine"]
)
@pytest.mark.parametrize("n_radii", [None, 12])
def test_any_metric_gives_what_a_loop_over_balls_gives(metric, n_radii):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    distances = metric(X, X) if callable(metric) else cdist(X, X, metric)
    np.fill_diagonal(distances, 0.0)
    truth, radii = rng.choice([-1, 1], 30), [0.0, float(np.quantile(distances, 0.3))]
    found = ball_averages(X, truth, radii, metric=metric)
    for i in range(30):
        for k, radius in enumerate(radii):
            assert found[i, k] == pytest.approx(truth[distances[i] <= radius].mean())
    labels = simulate_ball_annotators(X, truth, radii, metric=metric)
    tried = np.unique(distances) if n_radii is None else distance_quantiles(X, n_radii, 0, metric)
    errors = [
        ((ball_averages(X, truth, [r], metric=metric)[:, 0] - labels.to_matrix()[:, 1]) ** 2).sum() for r in tried
    ]
    radius = ball_radii(X, labels, [1.0, 0.0], metric=metric, n_radii=n_radii, random_state=0)[1]
    assert errors[int(np.flatnonzero(tried == radius)[0])] == pytest.approx(min(errors))


def test_impossible_metrics_are_reported():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="or a function of two"):
        ball_averages(X, [1, 1, 1], [1.0], metric="mahalanobis")
    with pytest.raises(DataError, match="metric must give finite distances"):
        ball_averages(X, [1, 1, 1], [1.0], metric=lambda left, right: left[:, 0])
