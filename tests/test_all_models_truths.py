"""What all models promise alike: known truths are learned from and never judge themselves."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from all_models import (
    ANY,
    CLASSIFIERS,
    LOGISTIC,
    MODELS,
    assert_same_fit,
    crowd,
    data_for,
    fit_quietly,
    labels_for,
    new,
    over,
    quick,
    quiet,
    scores_of,
    splits_for,
    steady,
    sure,
)

from crowdwise.exceptions import AlignmentError, LabelError
from crowdwise.labels.truth import known_answers
from crowdwise.weights import Fading, SelfPaced, Smooth

TAKE_TRUTH = [*MODELS, "aggregate"]


def some_truth(name, n_known=12, **options):
    """Features, labels and the answers of the first examples, None for the others."""
    options = {"missing": 0.3} | options
    X, y = data_for(name, **options)
    truth = crowd(**options)[1]
    answers = [float(value) if name == "regressor" else int(value) for value in truth]
    return X, y, [*answers[:n_known], *[None] * (len(X) - n_known)]


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_truth_that_is_missing_everywhere_changes_no_bit(name):
    X, y, _ = some_truth(name)
    one, other = (fit_quietly(new(name, **quick(name)), X, y, truth=truth) for truth in (None, [None] * len(X)))
    assert np.array_equal(sure(one), sure(other))
    assert np.array_equal(one.expertise_, other.expertise_)
    assert one.truth_check_ is None
    assert other.truth_check_ is None


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_known_answers_are_certain_however_they_are_given(name):
    X, y, truth = some_truth(name)
    ids = [f"e{i}" for i in range(len(X))]
    labels = labels_for(name, y.to_matrix().astype(float), examples=ids)
    answers = {ids[i]: truth[i] for i in range(12)}
    backwards = pd.Series(answers).iloc[::-1]
    assert known_answers(backwards.to_frame("label"), X, labels).tolist()[0] == truth[0]
    table = pl.DataFrame({"task": [*backwards.index, "e0"], "label": [*backwards, truth[0]]})
    by_position = fit_quietly(new(name, **quick(name)), X, labels, truth=truth)
    for given in (answers, backwards, table):
        by_id = fit_quietly(new(name, **quick(name)), X, labels, truth=given)
        assert np.array_equal(sure(by_id), sure(by_position))
    assert by_position.consensus_[:12].tolist() == truth[:12]
    assert by_position.truth_check_.n == 12
    certain = by_position.consensus_std_ if name == "regressor" else 1 - by_position.consensus_confidence_
    assert (certain[:12] == 0).all()
    assert (certain[12:] > 0).any()


@over([*CLASSIFIERS, "aggregate"], slow=[*ANY, "ridge cv"])
def test_annotators_are_compared_with_the_known_answers_that_they_labelled(name):
    X, y, truth = some_truth(name)
    model = fit_quietly(new(name, **quick(name)), X, y, truth=truth)
    matrix, frame = y.to_matrix().astype(float), model.annotators_frame()
    for annotator, row in enumerate(frame.itertuples()):
        met = [i for i in range(12) if not np.isnan(matrix[i, annotator])]
        assert row.truths == len(met)
        right = sum(matrix[i, annotator] == truth[i] for i in met)
        assert row.truth_accuracy == (right / len(met) if met else pytest.approx(np.nan, nan_ok=True))
    assert "truths" not in fit_quietly(new(name, **quick(name)), X, y).annotators_frame()


@over(TAKE_TRUTH, without=["any tree"], slow=[*ANY, "ridge cv"])  # trees take the first of equally good splits
def test_permuting_examples_with_truth_permutes_the_result(name):
    X, y, truth = some_truth(name, n_known=25, missing=0.0)
    order = np.random.default_rng(1).permutation(80)
    settings = steady(name, **quick(name), **splits_for(name, 80))
    one = fit_quietly(settings, X, y, truth=truth)
    other = fit_quietly(
        steady(name, **quick(name), **splits_for(name, 80, order)), X[order], y[order], truth=[truth[i] for i in order]
    )
    assert_same_fit(one, other, X, X[order], rows=np.argsort(order), rtol=1e-4, atol=1e-4)
    assert other.truth_check_.n == one.truth_check_.n == 25


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_all_answers_may_be_known_and_may_contradict_every_annotator(name):
    X, y, truth = some_truth(name, n_known=80)
    wrong = [1 - answer for answer in truth]
    for answers in (truth, wrong):
        model = fit_quietly(new(name, **quick(name)), X, y, truth=answers)
        assert model.consensus_.tolist() == answers
        assert model.truth_check_.n == 80
        assert np.isfinite(scores_of(model, X)).all()
        assert np.isfinite(model.expertise_).all()
        if name != "regressor":
            assert (np.nanmean(model.annotators_frame()["truth_accuracy"]) > 0.5) == (answers is truth)
        if name not in ("regressor", "aggregate") and (answers is truth or name not in LOGISTIC):
            assert (model.predict(X) == answers).mean() > 0.7  # temperature and offsets are by labels, which lie here


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_one_truth_is_held_and_leaves_the_rest_in_order(name):
    X, y, truth = some_truth(name, n_known=1)
    model, without = (fit_quietly(new(name, **quick(name)), X, y, truth=given) for given in (truth, None))
    assert model.consensus_[0] == truth[0]
    assert model.truth_check_.n == 1
    assert np.isfinite(sure(model)).all()
    if name != "regressor":
        assert (model.consensus_ == without.consensus_).mean() > 0.8
        assert model.consensus_confidence_[1:].mean() > 0.7


@quiet
@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_the_truth_of_an_example_without_labels_is_its_consensus_and_teaches_nothing(name):
    X, y, _ = some_truth(name)
    matrix = y.to_matrix().astype(float)
    matrix[3] = np.nan
    labels = labels_for(name, matrix)
    with_truth, without = (new(name, **quick(name)).fit(X, labels, truth=truth) for truth in ({3: 1}, None))
    assert with_truth.consensus_[3] == 1
    assert with_truth.truth_check_ is None
    assert np.array_equal(np.delete(sure(with_truth), 3, axis=0), np.delete(sure(without), 3, axis=0))
    assert np.array_equal(with_truth.expertise_, without.expertise_)


@over(TAKE_TRUTH)
def test_truth_that_makes_no_sense_is_an_error(name):
    X, y, truth = some_truth(name)
    ids = [f"e{i}" for i in range(len(X))]
    labels = labels_for(name, y.to_matrix().astype(float), examples=ids)

    def fit(given):
        return new(name, **quick(name)).fit(X, labels, truth=given)

    with pytest.raises(LabelError, match="truth must be" if name == "regressor" else "found 'cat' for example 'e2'"):
        fit({"e2": "cat"})
    with pytest.raises(AlignmentError, match=r"such as .*nobody"):
        fit({"e2": 1, "nobody": 0})
    with pytest.raises(AlignmentError, match="name each example once; 1"):
        fit(pd.Series([0, 1], index=["e1", "e1"]))
    with pytest.raises(LabelError, match="truth has two answers for"):
        fit(pd.DataFrame({"example": ["e1", "e1"], "label": [0, 1]}))
    with pytest.raises(LabelError, match=r"must have one column, .*"):
        fit(pd.DataFrame({"example": ["e1"], "label": [0], "kind": [1]}))
    with pytest.raises(LabelError, match="truth must be one per"):
        fit(truth[:3])


@pytest.mark.parametrize(
    "curriculum", [SelfPaced(0.5, 1.3), *(pytest.param(c, marks=pytest.mark.slow) for c in (Fading(1.5), Smooth(2.0)))]
)
@over(CLASSIFIERS, slow=[*ANY, "ridge cv"])
def test_known_examples_count_in_full_whatever_the_disagreement_and_the_curriculum(name, curriculum):
    """Annotators toss coins: all that can be learned is in the known half, which disagreement would leave out."""
    X, y, truth = some_truth(name, n_known=40, missing=0.0)
    coins = np.random.default_rng(0).integers(0, 2, y.shape)
    settings = {**quick(name), "steepness": 100.0, "curriculum": curriculum, "random_state": 0}
    model = fit_quietly(new(name, **settings), X, labels_for(name, coins.astype(float)), truth=truth)
    assert (model.predict(X[:40]) == truth[:40]).mean() > 0.8
