import numpy as np
import pytest
from crowds import labels_of
from numpy.testing import assert_array_equal

from crowdwise import CrowdClassifier, CrowdLogisticClassifier, CrowdRidgeClassifier, CrowdRidgeClassifierCV
from crowdwise.crowd import disagreement
from crowdwise.crowd._disagreement import example_weights
from crowdwise.weights.steepness import choose_steepness


@pytest.mark.parametrize(("with_weights", "steepness"), [(1.0, 2.0), (0.3, 0.0), (-1.0, 0.0)])
def test_the_steepness_is_the_one_that_ranks_what_annotators_agree_on(with_weights, steepness):
    labels = labels_of(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]] * 30), 2)
    differs, asked = disagreement(labels), []
    right = np.where(labels.majority(), 1.0, -1.0)
    noise = np.random.default_rng(0).normal(size=len(right))

    def scores_of(weights):
        asked.append(weights)
        share = with_weights if len(asked) > 1 else 0.3
        return (share * right + (1 - abs(share)) * noise)[:, np.newaxis]

    assert choose_steepness(scores_of, labels, differs) == steepness  # of equal ones the lower
    assert_array_equal(asked, [example_weights(differs, given) for given in (0.0, 2.0)])


def test_one_class_among_the_examples_agreed_on_decides_nothing():
    labels = labels_of(np.array([[0, 0, 0], [1, 1, 0]] * 30), 2)
    scores_of = lambda weights: weights[:, np.newaxis]  # noqa: E731
    assert choose_steepness(scores_of, labels, disagreement(labels)) == 0.0


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_the_tuned_model_compares_no_weights_with_those_of_the_paper():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    truth = X @ [2.0, -1.0, 1.0, 0.0, 0.0] > 0
    labels = (truth[:, np.newaxis] ^ (rng.random((300, 5)) < 0.35)).astype(int)
    tuned = CrowdRidgeClassifierCV().fit(X, labels)
    assert tuned.cv_results_["steepness"].tolist() == [0.0, 2.0]
    assert tuned.steepness_ == tuned.cv_results_["steepness"][tuned.cv_results_["criterion"].argmax()]
    alone = CrowdRidgeClassifierCV((tuned.steepness_,)).fit(X, labels)
    assert_array_equal(tuned.coef_, alone.coef_)


@pytest.mark.parametrize(
    "model",
    [CrowdRidgeClassifier("auto"), CrowdLogisticClassifier("auto"), CrowdClassifier(steepness="auto")],
    ids=lambda model: type(model).__name__,
)
def test_a_word_is_no_steepness(model):
    with pytest.raises(ValueError, match="steepness must be a finite"):
        model.fit(np.eye(4), [[0, 0], [1, 1], [0, 1], [1, 0]])
    with pytest.raises(ValueError, match="steepnesses must be a sequence"):
        CrowdRidgeClassifierCV("auto").fit(np.eye(4), [[0, 0], [1, 1], [0, 1], [1, 0]])
