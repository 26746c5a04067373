from dataclasses import replace

import numpy as np
import pytest
from crowdwise.em.together import Together
from numpy.testing import assert_allclose

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.em import OneCoin, Ordinal, Shared
from crowdwise.em.abstaining import Abstaining
from crowdwise.em.annotators import Behaviour
from crowdwise.em.confusion import Incidence
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.exceptions import CrowdWarning


def unsure_crowd(seed=0, n_examples=200, n_annotators=8):
    """Truth and labels of annotators who answer "?" to half of the examples of class b, and to few of class a."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_examples)
    right = rng.random((n_examples, n_annotators)) < 0.7
    answers = np.where(right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    unsure = rng.random(answers.shape) < np.where(truth == 1, 0.5, 0.05)[:, np.newaxis]
    words = np.where(unsure, "?", np.array(["a", "b"])[answers])
    words[:3, 0] = "a"
    return np.array(["a", "b"])[truth], CrowdLabels.from_matrix(words, abstain=["?"])


def test_an_abstention_counts_as_the_annotator_abstains():
    confusion = np.array([[[[0.4, 0.1, 0.5], [0.1, 0.8, 0.1]]]])
    behaviour = Behaviour(confusion, np.ones((1, 2)), confusion[0])
    fitted = FittedAnnotators(np.array(["ann"]), np.array(["a", "b"]), behaviour, np.array([0.5, 0.5]))
    labels = CrowdLabels.from_matrix(
        [["?"], ["a"], ["b"], [None]], annotators=["ann"], classes=["a", "b"], abstain=["?"]
    )
    assert_allclose(fitted.posterior(labels)[:, 0], [5 / 6, 4 / 5, 1 / 9, 1 / 2])
    assert_allclose(fitted.confusion[0], [[0.8, 0.2], [1 / 9, 8 / 9]])
    assert_allclose(fitted.abstention[0], [0.5, 0.1])
    assert_allclose(fitted.accuracy, [(0.8 + 8 / 9) / 2])


def test_counts_are_those_of_loops_over_answers(rng):
    _, labels = unsure_crowd(n_examples=20, n_annotators=3)
    posterior = rng.dirichlet(np.ones(2), size=20)
    counts, abstained = np.zeros((3, 2, 3)), labels.abstentions.toarray()
    for i in range(20):
        for j, label in zip(labels[[i]].annotator_index, labels[[i]].values, strict=True):
            counts[j, :, label] += posterior[i]
        for j in np.flatnonzero(abstained[i]):
            counts[j, :, 2] += posterior[i]
    assert_allclose(Incidence.of(labels, abstentions=True).counts(posterior), counts)


def test_matrices_by_hand():
    counts = np.array([[[6.0, 2.0, 2.0], [1.0, 4.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    model = Abstaining(Shared(3.0))
    crowd = model.crowd(counts)
    abstains = np.array([2.5 / 11, 0.5 / 6])  # of all, with half of an answer added to either
    answers = np.array([[6.5, 2.5], [1.5, 4.5]]) / np.array([[9.0], [6.0]])
    assert_allclose(crowd, np.column_stack([answers * (1 - abstains)[:, np.newaxis], abstains]))
    found = model.estimate(counts, crowd)
    assert_allclose(found[0, :, 2], [(2 + 3 * abstains[0]) / 13, (0 + 3 * abstains[1]) / 8])
    assert_allclose(found[0, :, :2].sum(axis=1), 1 - found[0, :, 2])
    assert_allclose(found[0, 0, :2] / found[0, 0, :2].sum(), (np.array([6, 2]) + 3 * answers[0]) / 11)
    assert_allclose(found[1], crowd)


@pytest.mark.parametrize("model", [Shared(), OneCoin(), Ordinal()])
def test_the_prior_and_the_evidence_are_those_of_both_parts(model, rng):
    counts = rng.gamma(1.0, 3.0, size=(3, 2, 3))
    with_abstentions = Abstaining(model)
    crowd = with_abstentions.crowd(counts)
    best = with_abstentions.estimate(counts, crowd)
    worth = (counts * np.log(best)).sum() + with_abstentions.log_prior(best, crowd)
    assert worth > (counts * np.log(crowd)).sum() + with_abstentions.log_prior(np.array([crowd] * 3), crowd)
    none = np.dstack([counts[..., :2], np.zeros((3, 2))])
    alone = model.log_evidence(counts[..., :2], model.crowd(counts[..., :2]))
    assert with_abstentions.log_evidence(none, with_abstentions.crowd(none)) == pytest.approx(alone, abs=3.0)


@pytest.mark.parametrize("hard_examples", [False, True])
@pytest.mark.parametrize("kind", ["class", "ordinal"])
def test_who_abstains_tells_the_class_and_results_keep_their_classes(kind, hard_examples):
    truth, labels = unsure_crowd()
    labels = labels.in_order(["a", "b"])
    settings = {"kind": kind, "hard_examples": hard_examples}
    left_out, informative = (aggregate(labels, informative_abstentions=i, **settings) for i in (False, True))
    assert (informative.label == truth).mean() > (left_out.label == truth).mean() + 0.05
    assert (informative.proba.shape, informative.confusion.shape) == ((200, 2), (8, 2, 2))
    assert_allclose(informative.confusion.sum(axis=2), 1)
    assert_allclose(informative.abstention.mean(axis=0), [0.05, 0.5], atol=0.05)
    assert left_out.abstention is None
    assert informative.objective[-1] > informative.objective[0]


def test_an_example_of_abstentions_only_has_what_they_say():
    _, labels = unsure_crowd()
    words = labels.to_matrix()
    words[labels.abstentions.toarray() == 1] = "?"
    words[-1] = "?"
    labels = CrowdLabels.from_matrix(words, abstain=["?"])
    with pytest.warns(CrowdWarning, match="1 of 200 examples has no label"):
        found = aggregate(labels, informative_abstentions=True)
    assert found.label[-1] == "b"
    assert found.confidence[-1] > 0.99
    assert_allclose(found.fitted.posterior(labels)[-1], found.proba[-1])


def test_classifiers_learn_from_abstentions():
    truth, labels = unsure_crowd(1)
    labels, truth = labels[labels.labels_per_example > 0], truth[labels.labels_per_example > 0]
    X = np.random.default_rng(0).normal(size=(len(truth), 2)) + (truth == "b")[:, np.newaxis]
    model = CrowdLogisticClassifier(informative_abstentions=True).fit(X, labels)
    plain = CrowdLogisticClassifier().fit(X, labels)
    assert (model.consensus_ == truth).mean() > (plain.consensus_ == truth).mean()
    assert model.abstention_.shape == (8, 2)
    assert not hasattr(plain, "abstention_")
    assert_allclose(model.consensus(X, labels).proba.sum(axis=1), 1)


def test_without_abstentions_there_is_a_word_and_no_change():
    matrix = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]]
    with pytest.warns(CrowdWarning, match="informative_abstentions has no effect"):
        found = aggregate(matrix, informative_abstentions=True)
    assert (found.proba == aggregate(matrix).proba).all()


def words_of(labels):
    """The answers as they were given."""
    words = labels.to_matrix()
    words[labels.abstentions.toarray() == 1] = "?"
    return words


def test_abstentions_are_votes_whose_errors_may_be_in_common():
    _, labels = unsure_crowd()
    found = aggregate(labels, informative_abstentions=True).fitted
    assert found.together.common > 0
    new = CrowdLabels.from_matrix([["?"] * 5 + [None] * 3, ["a"] * 3 + ["?"] * 2 + [None] * 3], abstain=["?"])
    new = new.with_classes(found.classes)
    independent = replace(found, together=Together()).posterior(new)
    strength = found.strength[:5]
    n = strength.sum() ** 2 / (strength**2).sum()
    power = 1 / (1 + (n - 1) * found.together.common)
    expected = independent**power
    assert_allclose(found.posterior(new), expected / expected.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("hard_examples", [False, True])
def test_copies_abstain_as_one(hard_examples):
    _, labels = unsure_crowd()
    words = words_of(labels)
    copied = CrowdLabels.from_matrix(np.column_stack([words, words[:, :1], words[:, :1]]), abstain=["?"])
    settings = {"informative_abstentions": True, "hard_examples": hard_examples}
    one, three = aggregate(labels, **settings), aggregate(copied, **settings, groups={0: "x", 8: "x", 9: "x"})
    assert_allclose(three.proba, one.proba, atol=1e-9)
    assert_allclose(three.abstention[[0, 8, 9]], one.abstention[[0, 0, 0]], atol=1e-9)


def test_who_gives_one_label_or_abstains_does_not_always_give_the_same_answer():
    truth, labels = unsure_crowd(n_annotators=5)
    labels, truth = labels[labels.labels_per_example > 0], truth[labels.labels_per_example > 0]
    told = np.where(truth == "b", "?", "a")
    labels = CrowdLabels.from_matrix(np.column_stack([words_of(labels), told]), abstain=["?"])
    assert aggregate(labels).fitted.together.silent.tolist() == [False] * 5 + [True]
    found = aggregate(labels, informative_abstentions=True)
    assert found.fitted.together.silent is None
    assert (found.label == truth).mean() > 0.95
