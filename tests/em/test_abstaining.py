from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.em import OneCoin, Ordinal, Shared
from crowdwise.em.common_errors import Discount
from crowdwise.em.confusion import Abstaining, Incidence, answers_of
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.posterior import Annotators
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
    confusion = np.array([[[0.4, 0.1, 0.5], [0.1, 0.8, 0.1]]])
    answers = Annotators(confusion, confusion[0])
    fitted = FittedAnnotators(np.array(["ann"]), np.array(["a", "b"]), answers, np.array([0.5, 0.5]), np.ones(1))
    labels = CrowdLabels.from_matrix(
        [["?"], ["a"], ["b"], [None]], annotators=["ann"], classes=["a", "b"], abstain=["?"]
    )
    assert_allclose(fitted.proba(labels)[:, 0], [5 / 6, 4 / 5, 1 / 9, 1 / 2])
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
    assert_allclose(Incidence.of(answers_of(labels)).counts(posterior), counts)


def test_matrices_by_hand():
    counts = np.array([[[6.0, 2.0, 2.0], [1.0, 4.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    model = Abstaining(Shared(3.0))
    crowd = model.crowd(counts)
    # Of all, with five answers that are the likely one in 0.8, and else as frequent as all are; of every class five
    # of which as many are abstentions as among all: 13 of 15 answered.
    often, each = np.array([13.5, 2.5]) / 16, np.array([7.5, 6.5]) / 14
    abstains = (np.array([[8.0, 2.0], [5.0, 0.0]]) + 5 * often)[:, 1] / [15, 10]
    answers = (np.array([[6.0, 2.0], [1.0, 4.0]]) + 5 * (0.8 * np.eye(2) + 0.2 * each)) / [[13], [10]]
    assert_allclose(crowd, np.column_stack([answers * (1 - abstains)[:, np.newaxis], abstains]))
    found = model.estimate(counts, crowd)
    assert_allclose(found[0, :, 2], [(2 + 4 * abstains[0]) / 14, (0 + 4 * abstains[1]) / 9])
    assert_allclose(found[0, :, :2].sum(axis=1), 1 - found[0, :, 2])
    assert_allclose(found[0, 0, :2] / found[0, 0, :2].sum(), (np.array([6, 2]) + 3 * answers[0]) / 11)
    assert_allclose(found[1], crowd)


@pytest.mark.parametrize("model", [Shared(), OneCoin(), Ordinal()])
def test_estimates_are_better_than_the_crowds_matrix_by_prior_and_counts(model, rng):
    counts = rng.gamma(1.0, 3.0, size=(3, 2, 3))
    with_abstentions = Abstaining(model)
    crowd = with_abstentions.crowd(counts)
    best = with_abstentions.estimate(counts, crowd)
    worth = (counts * np.log(best)).sum() + with_abstentions.log_prior(best, crowd).sum()
    assert worth > (counts * np.log(crowd)).sum() + with_abstentions.log_prior(np.array([crowd] * 3), crowd).sum()


@pytest.mark.parametrize("scale", ["nominal", "ordinal"])
def test_who_abstains_tells_the_class_and_results_keep_their_classes(scale):
    truth, labels = unsure_crowd()
    labels = labels.with_scale("ordinal", levels=["a", "b"]).with_scale(scale)
    left_out, informative = (aggregate(labels.with_abstentions(informative=i)) for i in (False, True))
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
    with pytest.warns(CrowdWarning, match="1 of 200 examples has"):
        found = aggregate(labels.with_abstentions())
    assert found.label[-1] == "b"
    assert found.confidence[-1] > 0.99
    assert_allclose(found.fitted.proba(labels)[-1], found.proba[-1])


def test_classifiers_learn_from_abstentions():
    truth, labels = unsure_crowd(1)
    labels, truth = labels[labels.labels_per_example > 0], truth[labels.labels_per_example > 0]
    X = np.random.default_rng(0).normal(size=(len(truth), 2)) + (truth == "b")[:, np.newaxis]
    model = CrowdLogisticClassifier().fit(X, labels.with_abstentions())
    plain = CrowdLogisticClassifier().fit(X, labels)
    assert (model.consensus_ == truth).mean() > (plain.consensus_ == truth).mean()
    assert model.results_.abstention.shape == (8, 2)
    assert plain.results_.abstention is None
    assert_allclose(model.consensus(X, labels).proba.sum(axis=1), 1)


def test_without_abstentions_there_is_a_word_and_no_change():
    matrix = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]]
    with pytest.warns(CrowdWarning, match="with_abstentions has no effect"):
        found = aggregate(CrowdLabels.from_matrix(matrix).with_abstentions())
    assert (found.proba == aggregate(matrix).proba).all()


def words_of(labels):
    """The answers as they were given."""
    words = labels.to_matrix()
    words[labels.abstentions.toarray() == 1] = "?"
    return words


def test_probabilities_with_abstentions_are_those_of_votes_with_errors_in_common():
    _, labels = unsure_crowd()
    found = aggregate(labels.with_abstentions()).fitted
    assert found.discount.common > 0
    new = CrowdLabels.from_matrix([["?"] * 5 + [None] * 3, ["a"] * 3 + ["?"] * 2 + [None] * 3], abstain=["?"])
    new = new._with_classes(found.classes)
    independent = replace(found, discount=Discount()).proba(new)
    merit = found.merit[:3]
    n = np.array([1.0, merit.sum() ** 2 / (merit**2).sum()])  # abstentions are no votes
    expected = independent ** (n ** (-0.7 * found.discount.common))[:, np.newaxis]
    assert_allclose(found.proba(new), expected / expected.sum(axis=1, keepdims=True))


def test_copies_abstain_as_one():
    _, labels = unsure_crowd()
    words = words_of(labels)
    copied = CrowdLabels.from_matrix(np.column_stack([words, words[:, :1], words[:, :1]]), abstain=["?"])
    one = aggregate(labels.with_abstentions())
    three, apart = (
        aggregate(copied.with_abstentions().with_groups(groups))
        for groups in ({0: "x", 8: "x", 9: "x"}, dict.fromkeys(range(10)))
    )
    assert np.abs(three.proba - one.proba).max() < 0.1 < np.abs(apart.proba - one.proba).max()
    assert_allclose(three.abstention[[0, 8, 9]], one.abstention[[0, 0, 0]], atol=0.1)
    assert_allclose(three.vote_weight[[0, 8, 9]], 1 / 3)


def test_who_gives_one_label_or_abstains_tells_the_class():
    truth, labels = unsure_crowd(n_annotators=5)
    labels, truth = labels[labels.labels_per_example > 0], truth[labels.labels_per_example > 0]
    told = np.where(truth == "b", "?", "a")
    labels = CrowdLabels.from_matrix(np.column_stack([words_of(labels), told]), abstain=["?"])
    found = aggregate(labels.with_abstentions())
    assert (found.label == truth).mean() > 0.95


def test_abstentions_that_are_left_out_change_nothing():
    _, labels = unsure_crowd()
    words = words_of(labels)
    without = CrowdLabels.from_matrix(np.where(words == "?", None, words))
    assert (aggregate(labels).proba == aggregate(without).proba).all()


def test_no_class_is_assumed_to_be_abstained_from():
    """With few answers, what is assumed before any is seen must be the same of all classes."""
    counts = np.zeros((3, 2, 3))
    counts[:, 0, 0] = counts[:, 1, 1] = 5
    crowd = Abstaining(Shared()).crowd(counts)
    assert crowd[0, -1] == pytest.approx(crowd[1, -1])
    assert crowd[0, -1] < 0.05
