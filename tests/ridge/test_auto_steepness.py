import numpy as np
import pytest
from crowds import labels_of
from numpy.testing import assert_array_equal
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from crowdwise import (
    CrowdClassifier,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    simulate_annotators,
)
from crowdwise.crowd import disagreement
from crowdwise.crowd._disagreement import example_weights
from crowdwise.weights.steepness import choose_steepness, contested_examples, standard_errors_above_chance

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")


def papers_crowd(clarity, seed=0):
    """The paper's synthetic data: at clarity 1 the majority is wrong near the boundary, at 5 nowhere."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([-1, 1], 250)
    X = rng.normal(size=(500, 10)) + 0.5 * truth[:, np.newaxis]
    scores = RidgeClassifier().fit(X, truth).decision_function(X)
    scores /= np.abs(scores).max()
    return X, simulate_annotators(X, truth, 10, clarity=clarity, scores=scores, random_state=rng)


def misled_crowd(seed=0):
    """On a third of the examples most annotators are wrong, whatever the features, which tell the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 5))
    truth = X @ [2.0, -1.0, 1.0, 0.0, 0.0] > 0
    wrong = np.where(rng.random(500) < 1 / 3, 0.65, 0.02)
    return X, (truth[:, np.newaxis] ^ (rng.random((500, 10)) < wrong[:, np.newaxis])).astype(int)


MODELS = [CrowdRidgeClassifier("auto"), CrowdRidgeClassifierCV("auto")]


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_steep_where_contested_labels_teach_nothing_and_flat_where_they_do(model):
    for seed in range(3):
        assert model.fit(*misled_crowd(seed)).steepness_ == 4.0
        assert model.fit(*papers_crowd(1.0, seed)).steepness_ in (0.0, 4.0)
        assert model.fit(*papers_crowd(5.0, seed)).steepness_ == 0.0


@quiet
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_too_few_contested_examples_are_not_judged(model):
    X, labels = misled_crowd()
    assert model.fit(X[:30], labels[:30]).steepness_ == 0.0


@quiet
def test_it_equals_the_steepness_that_it_finds():
    X, labels = misled_crowd()
    found = CrowdRidgeClassifier("auto").fit(X, labels)
    given = CrowdRidgeClassifier(found.steepness_).fit(X, labels)
    assert_array_equal(found.coef_, given.coef_)
    assert given.steepness_ == found.steepness_ > 0


@pytest.mark.parametrize(("contested_scores", "steepness"), [(-1.0, 4.0), (0.0, 0.0), (1.0, 0.0)])
def test_weights_are_for_features_that_contradict_the_contested_majority(contested_scores, steepness):
    labels = labels_of(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]] * 30), 2)
    differs, asked = disagreement(labels), []
    right = np.where(labels.majority(), 1.0, -1.0)

    def scores_of(weights):
        asked.append(weights)
        return np.where(differs > 0, contested_scores * right, right)[:, np.newaxis]

    assert choose_steepness(scores_of, labels, differs) == steepness
    assert_array_equal(asked, [example_weights(differs, 4.0)])  # by a model of the easy examples, once


def test_contested_examples_are_the_quarter_with_the_highest_disagreement():
    differs = np.array([0.0, 0.1, 0.2, 0.3, 0.3, 0.5, 0.5, 1.0])
    tally = np.array([[3, 0]] * 7 + [[2, 2]])  # the last is a tie: it has no majority
    assert contested_examples(differs, tally).tolist() == [5, 6]
    assert contested_examples(np.zeros(8), tally).tolist() == []
    assert contested_examples(np.ones(1), np.array([[1, 1]])).tolist() == []


def test_standard_errors_are_those_of_mann_and_whitney(rng):
    codes = (rng.random(200) < 0.3).astype(int)
    scores = rng.normal(size=(200, 1)) + 0.3 * codes[:, np.newaxis]
    n = codes.sum()
    by_hand = (roc_auc_score(codes, scores[:, 0]) - 0.5) / np.sqrt(201 / (12 * n * (200 - n)))
    assert standard_errors_above_chance(scores, codes, 2) == pytest.approx(by_hand)
    chance = [standard_errors_above_chance(rng.normal(size=(60, 1)), codes[:60], 2) for _ in range(400)]
    assert np.std(chance) == pytest.approx(1, abs=0.15)
    assert np.isnan(standard_errors_above_chance(scores, np.zeros(200, dtype=int), 2))


def test_any_other_word_is_refused():
    X, labels = papers_crowd(5.0)
    with pytest.raises(ValueError, match="steepness must be a finite"):
        CrowdRidgeClassifier("steep").fit(X, labels)
    for model in (CrowdLogisticClassifier("auto"), CrowdClassifier(steepness="auto")):
        with pytest.raises(ValueError, match="steepness must be a finite"):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="steepnesses must be a sequence"):
        CrowdRidgeClassifierCV("steep").fit(X, labels)
