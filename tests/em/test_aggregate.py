import numpy as np
import pytest
from crowds import crowd, labels_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels, aggregate
from crowdwise.datasets import fetch_crowd
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.aggregate import distinct_patterns
from crowdwise.exceptions import CrowdConvergenceWarning, CrowdWarning

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


@quiet
@given(seed=st.integers(0, 10**6), model=st.sampled_from([Confusion(), OneCoin(), Shared()]))
def test_permuting_examples_annotators_and_classes_permutes_the_result(seed, model):
    _, matrix = crowd(seed, n_classes=3, missing=0.3)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(40), rng.permutation(6), rng.permutation(3)
    renamed = np.array([[None if v is None else names[v] for v in row] for row in matrix], dtype=object)
    one = aggregate(labels_of(matrix, 3), annotator_model=model, max_rounds=20)
    other = aggregate(labels_of(renamed[rows][:, columns], 3), annotator_model=model, max_rounds=20)
    assert_allclose(other.proba[:, names], one.proba[rows], rtol=1e-6, atol=1e-9)
    assert_allclose(other.expertise, one.expertise[columns], rtol=1e-6)


def test_patterns_taken_together_change_nothing(monkeypatch):
    _, matrix = crowd(n_examples=400, n_annotators=5)
    labels = labels_of(matrix)
    few, weight, where = distinct_patterns(labels, np.ones(400))
    assert len(few) <= 32
    assert weight.sum() == 400
    assert_array_equal(few.to_matrix()[where], labels.to_matrix())
    together = aggregate(labels)
    monkeypatch.setattr("crowdwise.em.aggregate.distinct_patterns", lambda labels, weight: (labels, weight, None))
    apart = aggregate(labels)
    assert_allclose(together.proba, apart.proba, rtol=1e-8, atol=1e-10)
    assert_allclose(together.objective, apart.objective, rtol=1e-10)


def test_a_thousand_labels_on_one_example_do_not_underflow():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 5)
    matrix = np.where(rng.random((5, 3000)) < 0.6, truth[:, None], 1 - truth[:, None])
    result = aggregate(matrix)
    assert_array_equal(result.label, truth)
    assert np.isfinite(result.objective).all()


def test_annotators_and_examples_without_labels():
    matrix = np.array([[1, 1, np.nan], [0, 0, np.nan], [1, 0, np.nan], [np.nan] * 3])
    with pytest.warns(CrowdWarning, match="1 of 4 examples has"):
        result = aggregate(matrix)
    assert np.isnan(result.expertise[2])
    assert result.annotator_flags[2] == ("no labels",)
    assert_allclose(result.proba[3], result.class_prior)
    with pytest.raises(ValueError, match="there is no label"):
        aggregate(CrowdLabels.from_matrix([[None, None]], classes=[0, 1]))


def test_rounds_that_do_not_settle_are_told():
    _, matrix = crowd(missing=0.3)
    with pytest.warns(CrowdConvergenceWarning, match="after 2 rounds"):
        assert not aggregate(labels_of(matrix), max_rounds=2, tol=1e-12).converged


def right_of(proba, truth):
    """Share right, ties being fair draws."""
    best = proba >= proba.max(axis=1, keepdims=True) - 1e-9
    return np.mean(best[np.arange(len(truth)), truth] / best.sum(axis=1))


def test_in_parts_of_a_real_crowd_few_rounds_stay_nearer_to_the_votes_than_dawid_and_skene():
    """Below the votes, because errors are shared by most annotators: the crowd on which votes are hardest to beat."""
    data = fetch_crowd("zencrowd_us")  # comes with the package
    beside_votes, beside_dawid_skene = [], []
    for part in range(5):
        rows = np.flatnonzero(np.arange(len(data.truth)) % 5 != part)
        labels, truth = data.labels[rows], data.truth[rows]
        result = right_of(aggregate(labels).proba, truth)
        beside_votes.append(result - right_of(labels._tally.astype(float), truth))
        beside_dawid_skene.append(result - right_of(aggregate(labels, errors_in_common=False).proba, truth))
    assert min(beside_dawid_skene) > 0
    assert np.mean(beside_dawid_skene) > 0.01
    assert np.mean(beside_votes) > -0.03
