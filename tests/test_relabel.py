import math

import numpy as np
import pytest
from all_models import crowd, fit_quietly
from sklearn.linear_model import LogisticRegression

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeRegressor,
    aggregate,
    suggest_labels,
)
from crowdwise.exceptions import AlignmentError, LabelError
from crowdwise.paper.theory import EasyFirstPerceptron
from crowdwise.results.suggest import answer_information, information_gain

MODELS = {
    "ridge": CrowdRidgeClassifier(),
    "logistic": CrowdLogisticClassifier(),
    "any": CrowdClassifier(LogisticRegression()),
}


def entropy(probabilities):
    return -sum(p * math.log2(p) for p in probabilities if p > 0)


def information_twin(p, confusion):
    """H(p) - sum over answers of P(answer) H(p | answer), one answer after the other."""
    n, gain = len(p), entropy(p)
    for answer in range(n):
        joint = [p[k] * confusion[k][answer] for k in range(n)]
        if sum(joint) > 0:
            gain -= sum(joint) * entropy([value / sum(joint) for value in joint])
    return gain


def test_the_information_of_an_answer_equals_that_of_the_loop_over_answers(rng):
    proba, confusion = rng.dirichlet(np.ones(3), 20), rng.dirichlet(np.ones(3), 3)
    expected = [information_twin(p, confusion) for p in proba]
    np.testing.assert_allclose(answer_information(proba, confusion), expected, rtol=0, atol=1e-12)


def test_a_coin_says_nothing_and_one_who_is_always_right_says_all(rng):
    proba = rng.dirichlet(np.ones(2), 10)
    np.testing.assert_allclose(answer_information(proba, np.full((2, 2), 0.5)), 0.0, atol=1e-12)
    np.testing.assert_allclose(answer_information(proba, np.eye(2)), [entropy(p) for p in proba], rtol=1e-12)
    np.testing.assert_allclose(answer_information(proba, 1 - np.eye(2)), [entropy(p) for p in proba], rtol=1e-12)


def test_the_gain_is_that_of_an_answer_of_an_average_annotator():
    _, _, labels = crowd(n=60, n_classes=3, missing=0.4)
    found = aggregate(labels)
    expected = [information_twin(p, found.fitted.answers.crowd) for p in found.proba]
    np.testing.assert_allclose(information_gain(found, crowd=True), expected, rtol=1e-9, atol=1e-12)
    ordered = suggest_labels(found, labels, n=60, crowd=True)
    np.testing.assert_allclose(ordered.gain, sorted(expected, reverse=True), rtol=1e-9, atol=1e-12)


def test_the_gain_is_all_uncertainty_also_after_known_answers():
    _, truth, labels = crowd(n=120, missing=0.2)
    known = dict(enumerate(truth[:20].tolist()))
    found = aggregate(labels, truth=known)
    gain = information_gain(found)
    np.testing.assert_allclose(gain, [entropy(p) for p in found.proba], atol=1e-12)
    assert not set(suggest_labels(found, labels, n=100).examples.tolist()) & set(known)


@pytest.mark.parametrize("name", MODELS)
def test_the_gain_of_a_model_is_at_most_the_uncertainty_of_its_consensus(name):
    X, _, labels = crowd(n=120, missing=0.5)
    model = fit_quietly(MODELS[name], X, labels)
    gain = information_gain(model.results_, crowd=True)
    uncertainty = np.array([entropy(p) for p in model.consensus_proba_])
    assert (gain <= uncertainty + 1e-12).all()
    assert gain.max() > 0.01
    found = suggest_labels(model, labels, n=7, crowd=True)
    assert len(found) == 7
    assert (np.diff(found.gain) <= 0).all()
    np.testing.assert_array_equal(found.gain, np.sort(gain)[::-1][:7])
    assert "7 examples" in repr(found)


def test_reasons_are_given_in_words():
    matrix = [["a", "a", "a", "a"]] * 6 + [["b", "b", "b", "b"]] * 6
    matrix += [["a", "b", None, None], ["a", None, None, None], [None] * 4, ["a", "a", "b", None]]
    labels = CrowdLabels.from_matrix(matrix)
    with pytest.warns(UserWarning, match="no label"):
        found = aggregate(labels)
    frame = suggest_labels(found, labels, n=len(labels)).to_frame()
    assert list(frame.columns) == ["example", "label", "confidence", "labels", "gain", "reason"]
    reason = dict(zip(frame["example"], frame["reason"], strict=True))
    assert reason[12] == "1-1 split"
    assert reason[13] == "only one label"
    assert reason[14] == "no label yet"
    assert reason[15] == "2-1 split"
    assert reason[0] == "all 4 agree, but all 4 annotators are unreliable"
    assert frame["labels"].tolist()[frame["example"].tolist().index(15)] == 3


def test_a_model_that_overrules_the_labels_is_a_reason():
    X, _, labels = crowd(n=200, n_annotators=3, missing=0.3, experts=0)
    model = fit_quietly(CrowdLogisticClassifier(), X, labels)
    overruled = set(model.examples_[model.consensus_ != model.results_.label_consensus.label].tolist())
    found = suggest_labels(model, labels, n=200)
    said = {e for e, why in zip(found.examples.tolist(), found.reason, strict=True) if "and the labels disagree" in why}
    assert said
    assert said == overruled


def test_ratings_gain_by_how_much_an_answer_narrows_them():
    X, _, labels = crowd(n=60, missing=0.5)
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    model = fit_quietly(CrowdRidgeRegressor(), X, ratings)
    found = suggest_labels(model, ratings, n=60)
    after = 1 / (1 / model.consensus_std_**2 + model.fitted_.crowd_expertise)
    expected = 0.5 * np.log2(model.consensus_std_**2 / after)
    np.testing.assert_allclose(found.gain, np.sort(expected)[::-1], rtol=1e-12)
    assert found.n_labels[0] == labels.labels_per_example.min()
    assert found.reason[0] == "no label yet"


def test_labels_of_another_order_are_matched_by_their_ids():
    X, _, labels = crowd(n=40, missing=0.2)
    table = labels.to_table() | {"example": np.char.add("e", labels.to_table()["example"].astype(str))}
    ids = np.char.add("e", np.arange(40).astype(str))
    one = CrowdLabels.from_table(table, examples=ids)
    other = CrowdLabels.from_table(table, examples=ids[::-1])
    model = fit_quietly(CrowdLogisticClassifier(), X, one)
    np.testing.assert_array_equal(suggest_labels(model, other).reason, suggest_labels(model, one).reason)


def test_what_is_not_a_fit_or_not_its_labels_is_an_error():
    X, _, labels = crowd(n=40)
    found = aggregate(labels)
    with pytest.raises(AlignmentError, match="40"):
        suggest_labels(found, labels[:10])
    with pytest.raises(LabelError, match="fitted to"):
        suggest_labels(found, labels.select_annotators(np.arange(labels.n_annotators) > 0))
    with pytest.raises(LabelError, match="class"):
        suggest_labels(found, CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval"))
    with pytest.raises(TypeError, match=r"got CrowdLabels\. Are labels and"):
        suggest_labels(labels, found)
    with pytest.raises(TypeError, match=r"got str\.$"):
        suggest_labels("model", labels)
    with pytest.raises(TypeError, match="EasyFirstPerceptron does not estimate"):
        suggest_labels(EasyFirstPerceptron().fit(X, labels), labels)
    with pytest.raises(ValueError, match="n must be"):
        suggest_labels(found, labels, n=0)


def test_known_examples_are_not_labelled_again():
    _, truth, labels = crowd()
    known = dict(zip(labels.examples[:20].tolist(), truth[:20].tolist(), strict=True))
    found = suggest_labels(aggregate(labels, truth=known), labels, n=len(labels))
    assert not set(found.examples.tolist()) & set(known)
    at_random = suggest_labels(aggregate(labels, truth=known), labels, n=len(labels), at_random=True)
    assert sorted(at_random.examples.tolist()) == sorted(set(labels.examples.tolist()) - set(known))


def test_a_random_draw_takes_every_example_as_often_and_is_the_same_for_the_same_seed():
    labels = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"], ["a", "a"]]
    result = aggregate(labels)
    draws = [
        suggest_labels(result, labels, n=2, at_random=True, random_state=seed).examples.tolist() for seed in range(500)
    ]
    assert draws[0] == suggest_labels(result, labels, n=2, at_random=True).examples.tolist()
    times = np.bincount(np.ravel(draws), minlength=5)
    assert times.sum() == 1000
    assert abs(times - 200).max() < 50


def test_at_random_is_yes_or_no():
    labels = [["a", "a"], ["b", "b"]]
    with pytest.raises(ValueError, match="at_random must be True or"):
        suggest_labels(aggregate(labels), labels, at_random=7)


def test_the_answer_of_an_expert_gains_all_that_is_uncertain():
    _, _, labels = crowd(n=120, missing=0.2)
    found = aggregate(labels)
    asked = suggest_labels(found, labels, n=120)
    assert asked.gain.tolist() == pytest.approx(sorted((entropy(p) for p in found.proba), reverse=True), abs=1e-9)
    assert (asked.gain >= suggest_labels(found, labels, n=120, crowd=True).gain - 1e-9).all()
