import numpy as np
import pytest
from sklearn.utils import Bunch

from crowdwise import CrowdLabels, simulate_annotators
from crowdwise.exceptions import DataError
from crowdwise.model_selection import balanced_subsample
from crowdwise.paper.reproduce.draws import Draw, benchmark, draw_usable, synthetic, too_noisy
from crowdwise.paper.reproduce.tuning import tuned_ridge


def test_synthetic_data_are_two_gaussians_with_twelve_annotators():
    drawn = synthetic(np.random.default_rng(0), clarity=1.0)
    assert drawn.X.shape == drawn.X_test.shape == (500, 10)
    assert drawn.labels.shape == (500, 12)
    means = [drawn.X_test[drawn.truth_test == sign].mean() for sign in (-1, 1)]
    assert means == pytest.approx([-0.5, 0.5], abs=0.1)
    assert np.abs(drawn.X_test[drawn.truth_test > 0].std(axis=0) - 1).max() < 0.15
    expert, adversary = drawn.labels.to_matrix()[:, 10:].T
    np.testing.assert_array_equal(expert, -adversary)
    np.testing.assert_array_equal(expert, np.repeat([1, -1], 250))  # class by class, as in the paper's software
    np.testing.assert_array_equal(drawn.truth_test, np.repeat([1, -1], 250))
    assert (np.corrcoef(drawn.X.sum(axis=1), expert)[0, 1]) > 0.7


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(200) < 0.3, 1, -1)
    return Bunch(X=rng.normal(size=(200, 4)) + truth[:, None], truth=truth, X_test=None, truth_test=None)


def test_without_a_test_part_a_quarter_is_held_back(data):
    drawn = benchmark(np.random.default_rng(1), data, clarity=1.0)
    assert drawn.X_test.shape == (50, 4)
    train = {tuple(row) for row in drawn.X}
    test = {tuple(row) for row in drawn.X_test}
    assert not train & test
    expert = drawn.labels.to_matrix()[:, 10]  # the truth of the training rows
    assert (expert > 0).sum() == (expert < 0).sum() == len(drawn.X) // 2


def test_with_a_test_part_all_of_it_is_used_and_training_rows_come_from_the_rest(data):
    data.X_test, data.truth_test = data.X[:20] + 100, data.truth[:20]
    drawn = benchmark(np.random.default_rng(1), data, clarity=1.0)
    np.testing.assert_array_equal(drawn.X_test, data.X_test)
    assert {tuple(row) for row in drawn.X} <= {tuple(row) for row in data.X}


def _draw(sign, rng=None):
    """Ten examples on a line whose labels are right or all wrong."""
    X = np.arange(-5.0, 5.0)[:, None] + 0.5
    truth = np.sign(X[:, 0]).astype(np.int64)
    return Draw(X, CrowdLabels.from_matrix(np.repeat(sign * truth[:, None], 3, axis=1)), X, truth)


def test_labels_that_teach_the_opposite_are_too_noisy():
    assert not too_noisy(_draw(1))
    assert too_noisy(_draw(-1))


def test_versions_are_redrawn_until_usable_and_counted():
    draws = iter([_draw(-1), _draw(-1), _draw(1)])
    drawn = draw_usable(lambda rng: next(draws), np.random.default_rng(0), redraw=True)
    assert drawn.redrawn == 2
    assert not too_noisy(drawn)


def test_without_redrawing_the_first_version_is_taken():
    drawn = draw_usable(lambda rng: _draw(-1), np.random.default_rng(0), redraw=False)
    assert drawn.redrawn == 0


def test_hopeless_noise_is_an_error_and_not_an_endless_loop(set_constants):
    set_constants("crowdwise.paper.reproduce.draws", _MOST_REDRAWS=5)
    with pytest.raises(DataError, match="none of 5 versions"):
        draw_usable(lambda rng: _draw(-1), np.random.default_rng(0), redraw=True)


def test_annotators_err_near_the_boundary_of_a_tuned_model(data):
    """The labels are those of the library's simulator, with the scores of a ridge regression tuned on the truth."""
    data.X_test, data.truth_test = data.X, data.truth
    rng, again = np.random.default_rng(4), np.random.default_rng(4)
    drawn = benchmark(rng, data, clarity=2.0)
    rows = balanced_subsample(data.truth, random_state=again)
    scores = tuned_ridge(data.X[rows], data.truth[rows]).scores(data.X[rows])
    expected = simulate_annotators(
        data.X[rows],
        data.truth[rows],
        10,
        clarity=2.0,
        experts=1,
        adversaries=1,
        scores=scores / np.abs(scores).max(),
        random_state=again,
    )
    assert drawn.labels == expected
