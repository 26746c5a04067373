import numpy as np
import pytest
from crowds import crowd, labels_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.confusion import Incidence, check_annotator_model, pooled


def random_confusion(rng, n_annotators, n_classes):
    return rng.dirichlet(np.ones(n_classes), size=(n_annotators, n_classes))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_likelihoods_and_counts_equal_loops_over_labels(n_classes, rng):
    _, matrix = crowd(n_classes=n_classes, missing=0.4)
    incidence = Incidence.of(labels_of(matrix, n_classes))
    confusion = random_confusion(rng, matrix.shape[1], n_classes)
    posterior = rng.dirichlet(np.ones(n_classes), size=len(matrix))
    likelihood = np.zeros((len(matrix), n_classes))
    counts = np.zeros(confusion.shape)
    for i, row in enumerate(matrix):
        for j, label in enumerate(row):
            if label is not None:
                for k in range(n_classes):
                    likelihood[i, k] += np.log(confusion[j, k, label])
                    counts[j, k, label] += posterior[i, k]
    assert_allclose(incidence.log_likelihood(confusion), likelihood, rtol=1e-12)
    assert_allclose(incidence.counts(posterior), counts, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), Shared()])
@given(seed=st.integers(0, 10**6))
def test_estimates_are_probabilities_and_the_best_for_their_counts(model, seed):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(1.0, 3.0, size=(5, 3, 3))
    crowd = model.crowd(counts)
    best = model.estimate(counts, crowd)
    assert_allclose(best.sum(axis=2), 1)
    assert (best > 0).all()

    def worth(confusion):
        return (counts * np.log(confusion)).sum() + model.log_prior(confusion, crowd).sum()

    if model == OneCoin():
        accuracy = np.clip(best[:, 0, 0] + rng.normal(0, 0.05, 5), 0.01, 0.99)
        other = np.repeat(((1 - accuracy) / 2)[:, None, None], 9, axis=1).reshape(5, 3, 3)
        other[:, np.arange(3), np.arange(3)] = accuracy[:, None]
    else:
        other = best * np.exp(rng.normal(0, 0.1, best.shape))
        other /= other.sum(axis=2, keepdims=True)
    assert worth(other) <= worth(best) + 1e-9


def test_few_labels_are_drawn_towards_the_crowd_and_many_are_not():
    counts = np.zeros((3, 2, 2))
    counts[0] = [[90, 10], [20, 80]]
    counts[1] = [[0, 1], [0, 0]]
    estimated = Shared(3.0).estimate(counts, pooled(counts))
    assert_allclose(estimated[0], [[0.9, 0.1], [0.2, 0.8]], atol=0.01)
    total = counts.sum(axis=0)
    often = (total.sum(axis=0) + 0.5) / (total.sum() + 1)
    crowd = total + 5 * np.array([[0.8 + 0.2 * often[0], 0.2 * often[1]], [0.2 * often[0], 0.8 + 0.2 * often[1]]])
    crowd /= crowd.sum(axis=1, keepdims=True)
    assert_allclose(pooled(counts), crowd)
    assert_allclose(estimated[1, 0], (np.array([0, 1]) + 3 * crowd[0]) / 4)
    assert_allclose(estimated[2], crowd)  # nobody has heard of this one


@pytest.mark.parametrize("model", ["shared", Shared, 3.0])
def test_what_is_no_model_of_annotators_is_refused(model):
    with pytest.raises(ValueError, match=r"annotator_model must be Shared\(\), Confusion\(\), OneCoin\(\) or Ordinal"):
        check_annotator_model(model)


@pytest.mark.parametrize("strength", [0.0, -1.0, np.inf, np.nan, None, "3", True])
@pytest.mark.parametrize("model", [Shared, Confusion, OneCoin])
def test_a_strength_that_cannot_be_is_refused(model, strength):
    with pytest.raises(ValueError, match="strength must be a finite"):
        check_annotator_model(model(strength))


def test_before_any_label_is_seen_the_crowd_is_taken_to_be_right_in_most_cases():
    assert_allclose(pooled(np.zeros((3, 4, 4))), 0.8 * np.eye(4) + 0.2 / 4)


def test_no_label_is_impossible_however_many_were_seen():
    labels = labels_of([[0, 1]])
    found = Incidence.of(labels).log_likelihood(np.array([np.eye(2), np.eye(2)]))
    assert_allclose(found, np.log([[1e-12, 1e-12]]))


def test_weights_of_labels_are_powers_of_their_probability(rng):
    confusion, weight = rng.dirichlet(np.ones(2), (2, 2)), np.array([0.5, 2.0])
    found = Incidence.of(labels_of([[0, 1]]), weight)
    assert_allclose(found.log_likelihood(confusion)[0], weight @ np.log([confusion[0, :, 0], confusion[1, :, 1]]))
    assert_allclose(found.counts(np.array([[0.3, 0.7]]))[1], [[0, 0.6], [0, 1.4]])
