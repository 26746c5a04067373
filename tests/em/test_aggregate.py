import numpy as np
import pytest
from crowds import HeldCrowd, crowd, labels_of
from crowdwise.em.labels_alone import fit_labels
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels, aggregate
from crowdwise.datasets import fetch_crowd
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.aggregate import distinct_patterns
from crowdwise.exceptions import CrowdConvergenceWarning, CrowdWarning

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


def twin(matrix, n_classes, *, n_rounds, strength=1.0, class_prior=1.0):
    """Dawid and Skene with loops over labels, every row of a confusion matrix with `strength` labels spread evenly."""
    posterior = [[row.count(k) / sum(v is not None for v in row) for k in range(n_classes)] for row in matrix]
    n_annotators = len(matrix[0])
    for _ in range(n_rounds):
        prior = [class_prior + sum(p[k] for p in posterior) for k in range(n_classes)]
        prior = [p / sum(prior) for p in prior]
        confusion = np.full((n_annotators, n_classes, n_classes), strength / n_classes)
        for row, p in zip(matrix, posterior, strict=True):
            for j, label in enumerate(row):
                for k in range(n_classes):
                    if label is not None:
                        confusion[j, k, label] += p[k]
        confusion /= confusion.sum(axis=2, keepdims=True)
        posterior = []
        for row in matrix:
            joint = [
                prior[k] * np.prod([confusion[j, k, label] for j, label in enumerate(row) if label is not None])
                for k in range(n_classes)
            ]
            posterior.append([value / sum(joint) for value in joint])
    return np.array(posterior), confusion


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_equals_the_slow_twin(n_classes, missing, monkeypatch):
    _, matrix = crowd(n_classes=n_classes, missing=missing)
    slow, confusion = twin(matrix.tolist(), n_classes, n_rounds=6)
    monkeypatch.setattr("crowdwise.em.rounds.Extrapolation.propose", lambda *_: None)
    settings = {"annotator_model": Confusion(1.0), "errors_in_common": False, "max_rounds": 6, "tol": 0.0}
    result = aggregate(labels_of(matrix, n_classes), **settings)
    assert_allclose(result.proba, slow, rtol=1e-8, atol=1e-12)
    assert_allclose(result.confusion, confusion, rtol=1e-8)
    accuracy = np.einsum("lkk,k->l", confusion, result.class_prior)
    assert_allclose(result.accuracy, accuracy)
    assert_allclose(result.expertise, 1 / (4 * (1 - accuracy)))


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), Shared()])
@pytest.mark.parametrize("difficulties", [(1,), (2,)])
def test_extrapolated_rounds_end_where_the_others_end_and_are_fewer(model, difficulties):
    _, matrix = crowd(n_examples=150, n_classes=3, missing=0.4)
    labels, weight = labels_of(matrix, 3), np.ones(150)
    settings = {"difficulties": difficulties, "tol": 1e-10, "max_rounds": 20_000}
    plain = fit_labels(labels, weight, model, accelerate=False, **settings)
    ahead = fit_labels(labels, weight, model, **settings)
    assert plain.rounds.converged
    assert ahead.rounds.converged
    assert len(ahead.rounds.objective) < len(plain.rounds.objective)
    if difficulties == (1,):
        assert_allclose(ahead.rounds.objective[-1], plain.rounds.objective[-1], atol=1e-6)
        assert_allclose(ahead.rounds.posterior, plain.rounds.posterior, atol=1e-4)
    else:  # many optima lie close together: another one may be found, but not a much worse one
        assert ahead.rounds.objective[-1] >= plain.rounds.objective[-1] - 1


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), HeldCrowd(Shared())], ids=repr)
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]), steepness=st.sampled_from([0.0, 3.0]))
@settings(max_examples=25)
@quiet
@pytest.mark.filterwarnings("ignore:the consensus is that of the votes")  # in a small crowd it may be
def test_the_objective_never_falls(model, seed, n_classes, steepness):
    _, matrix = crowd(seed, n_classes=n_classes, missing=0.3)
    result = aggregate(labels_of(matrix, n_classes), annotator_model=model, steepness=steepness)
    assert (np.diff(result.objective) >= -1e-8).all()


@quiet
@given(seed=st.integers(0, 10**6), model=st.sampled_from([Confusion(), OneCoin(), Shared()]))
@settings(max_examples=25)
@pytest.mark.filterwarnings("ignore:the consensus is that of the votes")  # in a small crowd it may be
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
    monkeypatch.setattr(
        "crowdwise.em.aggregate.distinct_patterns", lambda labels, weight, known: (labels, weight, None)
    )
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
    with pytest.warns(CrowdWarning, match="1 of 4 examples has no label"):
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


def test_rounds_that_are_used_up_while_hard_examples_are_tried_end_there():
    labels = np.repeat([[0, 0], [1, 0]], 1500, axis=0)
    with pytest.warns(CrowdConvergenceWarning, match="after 50 rounds"):
        result = aggregate(labels, annotator_model=Shared(), errors_in_common=False, max_rounds=50)
    assert len(result.objective) == 50


def test_hard_examples_that_hardly_make_labels_more_probable_are_none(monkeypatch):
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(0, 2, 500), rng.random(500) < 0.3
    right = rng.random((500, 10)) < np.where(hard, 0.4, 0.85)[:, np.newaxis]
    labels = labels_of(np.where(right, truth[:, np.newaxis], 1 - truth[:, np.newaxis]))
    assert not aggregate(labels).hard_examples
    monkeypatch.setattr("crowdwise.em.labels_alone._CLOSE", 0.0)
    assert aggregate(labels).hard_examples


@pytest.mark.parametrize("seed", range(4))
def test_giving_up_hard_examples_early_changes_nothing_of_the_result(seed, monkeypatch):
    labels = labels_of(crowd(n_examples=400, n_classes=2, missing=0.4, seed=seed)[1])
    early = aggregate(labels, errors_in_common=False)
    monkeypatch.setattr("crowdwise.em.labels_alone._Race.is_lost", lambda self, posterior: False)
    late = aggregate(labels, errors_in_common=False)
    assert early.hard_examples == late.hard_examples
    assert_array_equal(early.proba, late.proba)


@pytest.mark.parametrize("part", range(5))
def test_parts_of_a_real_crowd_are_no_worse_than_the_majority(part):
    data = fetch_crowd("zencrowd_us")  # comes with the package
    rows = np.flatnonzero(np.arange(len(data.truth)) % 5 != part)
    labels, truth = data.labels[rows], data.truth[rows]
    result = aggregate(labels)
    assert result.hard_examples
    assert (result.label == truth).mean() > (labels.majority() == truth).mean() + 0.03
