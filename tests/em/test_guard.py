from itertools import product

import numpy as np
import pytest
from crowdwise.em.guard import _Told, predicts_truth
from crowdwise.em.temperature import ClassScores
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from crowdwise import CrowdClassifier, CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.em import Confusion
from crowdwise.em.annotators import Behaviour
from crowdwise.exceptions import CrowdWarning

MODELS = [CrowdLogisticClassifier(), CrowdClassifier(LogisticRegression())]


def answered(chance, n_each, rng):
    """A table of labels: each example has some of fifteen annotators, who say 1 with the example's chance."""
    n = len(chance)
    who = rng.permuted(np.tile(np.arange(15), (n, 1)), axis=1)[:, :n_each]
    said = (rng.random(who.shape) < chance[:, np.newaxis]).astype(int)
    table = {"example": np.repeat(np.arange(n), n_each), "annotator": who.ravel(), "label": said.ravel()}
    return CrowdLabels.from_table(table, examples=np.arange(n), classes=[0, 1])


def told(n, rng, *, of_truth):
    """What a classifier says, and labels: it predicts the truth, or what annotators are drawn to beside the truth."""
    truth, side = rng.integers(0, 2, n), rng.integers(0, 2, n)
    if of_truth:
        side = np.where(rng.random(n) < 0.8, truth, 1 - truth)
    tilt = 0.0 if of_truth else 2.0
    chance = 1 / (1 + np.exp(-(3.0 * (2 * truth - 1) + tilt * (2 * side - 1))))
    log_proba = np.log(np.where(side[:, np.newaxis] == [0, 1], 0.7, 0.3))
    return ClassScores(log_proba, np.ones(2), are_probabilities=True), answered(chance, 4, rng)


@pytest.mark.parametrize("of_truth", [True, False])
def test_a_classifier_of_the_truth_is_told_from_one_of_answers(of_truth, rng):
    scores, labels = told(600, rng, of_truth=of_truth)
    behaviour = aggregate(labels).fitted.behaviour
    assert predicts_truth(scores, labels, behaviour, np.ones(600)) == of_truth
    # The probability of the labels rises with either.
    seen = _Told.of(scores, labels, behaviour, np.ones(600))
    assert max(seen.as_truth(degree).sum() for degree in (0.3, 1.0)) > seen.as_truth(0.0).sum() + 1


def test_evidence_by_hand(rng):
    confusion = rng.dirichlet(np.ones(3), (4, 2, 3))  # of four annotators, two difficulties and three classes
    share = rng.dirichlet(np.ones(2), 3).T
    behaviour = Behaviour(confusion, share, confusion.mean(axis=0))
    matrix = [[0, 1, None, 2], [2, 2, 1, None], [None, 0, 0, 1]]
    labels = CrowdLabels.from_matrix(matrix, classes=[0, 1, 2])
    scores = ClassScores(np.log(rng.dirichlet(np.ones(3), 3)), np.ones(3), are_probabilities=True)
    seen = _Told.of(scores, labels, behaviour, np.ones(3))
    frequency, pull = np.exp(seen.log_frequency), np.exp(0.7 * seen.says)
    for i, row in enumerate(matrix):
        as_truth = as_answers = 0.0
        prior = frequency * pull[i] / (frequency * pull[i]).sum()
        for k in range(3):
            for d in range(2):
                plain = drawn = share[d, k]
                for j, said in enumerate(row):
                    if said is not None:
                        plain *= confusion[j, d, k, said]
                        drawn *= confusion[j, d, k, said] * pull[i, said] / (confusion[j, d, k] @ pull[i])
                as_truth += prior[k] * plain
                as_answers += frequency[k] * drawn
        assert_allclose(seen.as_truth(0.7)[i], np.log(as_truth))
        assert_allclose(seen.as_answers(0.7)[i], np.log(as_answers))


def test_without_several_labels_or_with_few_examples_the_classifier_is_trusted(rng):
    scores, labels = told(300, rng, of_truth=False)
    behaviour = aggregate(labels).fitted.behaviour
    assert not predicts_truth(scores, labels, behaviour, np.ones(300))
    assert predicts_truth(scores, labels, behaviour, np.full(300, 0.1))
    alone = answered(np.full(300, 0.5), 1, rng)
    assert predicts_truth(scores, alone, behaviour, np.ones(300))


@pytest.mark.parametrize("init", ["labels", "votes"])
@pytest.mark.parametrize("model", MODELS)
def test_features_that_say_nothing_leave_the_consensus_to_labels(model, init, rng):
    model = clone(model).set_params(init=init)
    labels = answered(np.where(rng.integers(0, 2, 300), 0.75, 0.25), 4, rng)
    X = rng.normal(size=(300, 3))
    with pytest.warns(CrowdWarning, match=r"does not count in the consensus \(model_weight_ is 0\).*StandardScaler"):
        model.fit(X, labels)
    assert model.model_weight_ == 0
    alone = aggregate(labels)
    assert_array_equal(model.consensus_proba_, alone.proba)
    assert_allclose(model.label_proba_, alone.proba, atol=1e-4)
    assert_allclose(model.accuracy_, alone.accuracy)
    # Nor does it count for other labels; an example without any has nothing else.
    nobody = CrowdLabels.from_table({"example": [0], "annotator": [0], "label": [1]}, examples=[0, 1], classes=[0, 1])
    proba = model.consensus(X[:2], nobody).proba
    assert_allclose(proba[0], model.consensus(X[:2], nobody, use_model=False).proba[0])
    assert_allclose(proba[1], np.exp(model.fitted_.log_prior(X[:2])[1]))


@pytest.mark.parametrize("model", MODELS)
def test_features_that_predict_the_truth_count(model, rng):
    truth = rng.integers(0, 2, 300)
    labels = answered(np.where(truth, 0.75, 0.25), 3, rng)
    model.fit(rng.normal(size=(300, 3)) + 1.5 * truth[:, np.newaxis], labels)
    assert model.model_weight_ == 1
    assert (model.consensus_ == truth).mean() > (aggregate(labels).label == truth).mean() + 0.05


@pytest.mark.parametrize("model", [None, *MODELS], ids=["aggregate", "logistic", "any"])
def test_levels_are_recommended_only_where_classes_were_not_said_to_be_levels(model, rng, monkeypatch):
    monkeypatch.setattr("crowdwise.em.labels_alone.classes_hold", lambda *arguments: False)
    labels, X = answered(rng.random(60), 4, rng), rng.normal(size=(60, 2))

    def fit(**settings):
        return aggregate(labels, **settings) if model is None else clone(model).set_params(**settings).fit(X, labels)

    with pytest.warns(CrowdWarning, match=r'use kind="ordinal" \(--kind ordinal\)'):
        fit()
    with pytest.warns(CrowdWarning, match=r"annotator_model, Ordinal\(\), uses the order") as told:
        fit(kind="ordinal", annotator_model=Confusion())
    assert not [one for one in told if "--kind ordinal" in str(one.message)]


@pytest.mark.filterwarnings("ignore:the consensus is that of the votes")
@pytest.mark.parametrize("n_examples", [2, 3])
def test_in_a_crowd_of_two_what_both_say_is_the_consensus(n_examples):
    mixed = (cells for cells in product([0, 1], repeat=2 * n_examples) if len(set(cells)) == 2)
    for cells in mixed:
        matrix = np.reshape(cells, (n_examples, 2))
        both = matrix[:, 0] == matrix[:, 1]
        label = aggregate(CrowdLabels.from_matrix(matrix, classes=[0, 1])).label
        assert_array_equal(label[both], matrix[both, 0])


def test_where_labels_say_nothing_about_the_class_votes_decide():
    with pytest.warns(CrowdWarning, match="agree no more than by chance"):
        result = aggregate(CrowdLabels.from_matrix([["yes", "no"], ["yes", "yes"]]))
    assert result.by_votes
    assert result.label.tolist()[1] == "yes"
