import numpy as np
import pandas as pd
import pytest
from crowds import crowd, labels_of
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from crowdwise import (
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    aggregate,
    diagnose,
    diagnosis,
    simulate_annotators,
)
from crowdwise.crowd import disagreement
from crowdwise.diagnosis import Correlation, advise, margins, rank_correlation, share_of_annotators
from crowdwise.exceptions import LabelError


def boundary_crowd(clarity=2.0, seed=0, n_examples=400):
    """Annotators who err independently, most of all near the boundary at zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_examples, 2))
    truth = (X[:, 0] > 0).astype(int)
    wrong = rng.random((n_examples, 10)) < 0.5 * np.exp(-clarity * 2 * np.abs(X[:, :1]))
    return X, CrowdLabels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None])), truth


def misleading_crowd(seed=0):
    """Most annotators are wrong about two examples in five, and features contradict them there."""
    rng = np.random.default_rng(seed)
    truth = np.tile([0, 1], 200)
    X = rng.normal(size=(400, 5)) + truth[:, None]
    wrong = rng.random((400, 10)) < np.where(rng.random((400, 1)) < 0.4, 0.65, 0.05)
    return X, CrowdLabels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None])), truth


def test_finds_disagreement_near_the_boundary_with_and_without_truth():
    X, labels, truth = boundary_crowd()
    for found in (diagnose(X, labels, truth), diagnose(X, labels)):
        assert found.correlation.high < -0.3
        assert "Annotators disagree more near the boundary" in found.advice
        ranks = [level.margin_rank for level in found.levels]
        assert ranks == sorted(ranks, reverse=True)
    assert diagnose(X, labels, truth).reference == "truth"
    assert diagnose(X, labels).reference == "consensus"


@pytest.mark.parametrize("draw", [boundary_crowd, misleading_crowd])
@pytest.mark.parametrize("model", [CrowdLogisticClassifier, CrowdRidgeClassifier])
def test_following_the_advice_costs_nothing(draw, model):
    gain = []
    for seed in range(3):
        X, labels, truth = draw(seed=seed)
        found = diagnose(X, labels)
        assert found.weight == (found.steepness > 0)
        assert found.advice.startswith("Weight" if found.weight else "Don't weight")
        other = 0.0 if found.weight else 2.0
        followed, not_followed = (
            (model(steepness).fit(X, labels).predict(X) == truth).mean() for steepness in (found.steepness, other)
        )
        gain.append(followed - not_followed)
    assert np.mean(gain) > -0.01


def test_weights_are_advised_where_contested_labels_mislead_and_not_where_they_can_be_predicted():
    assert sum(diagnose(*misleading_crowd(seed=seed)).weight for seed in range(5)) >= 3
    assert not any(diagnose(*boundary_crowd(seed=seed)).weight for seed in range(5))


def test_with_an_estimator_its_own_scores_decide():
    crowds = [misleading_crowd(seed=seed)[:2] for seed in range(6)]
    by_default, by_bayes = (
        [diagnose(*one, estimator=estimator).weight for one in crowds] for estimator in (None, GaussianNB())
    )
    assert by_default != by_bayes
    assert sum(by_bayes) >= 3
    X, labels = crowds[0]
    words = np.where(X > 0, "high", "low").astype(object)  # features that ridge regression could not take
    found = diagnose(words, labels, estimator=make_pipeline(OneHotEncoder(), LogisticRegression()))
    assert np.isfinite(found.steepness)


def test_truth_follows_the_ids_of_its_examples():
    X, labels, truth = misleading_crowd()
    expected = str(diagnose(X, labels, truth))
    names = [f"e{i}" for i in range(400)]
    frame, named = pd.DataFrame(X, index=names), CrowdLabels.from_matrix(labels.to_matrix(), examples=names)
    by_id = pd.Series(truth, index=names)
    for rows in (frame, X):
        for known in (by_id[::-1], by_id.sample(frac=1.0, random_state=0), dict(by_id[::-1])):
            assert str(diagnose(rows, named, known)) == expected
    assert str(diagnose(frame, labels, by_id[::-1])) == expected
    assert str(diagnose(X, labels, dict(enumerate(truth)))) == expected


def test_truth_of_some_examples_by_id_equals_truth_with_gaps():
    X, labels, truth = misleading_crowd()
    names = [f"e{i}" for i in range(400)]
    named = CrowdLabels.from_matrix(labels.to_matrix(), examples=names)
    gaps = np.where(np.arange(400) % 3 == 0, np.nan, truth)
    expected = str(diagnose(X, named, gaps))
    some = pd.Series(truth, index=names)[np.arange(400) % 3 != 0]
    assert str(diagnose(X, named, some[::-1])) == expected
    assert str(diagnose(X, named, dict(some))) == expected
    with pytest.raises(LabelError, match="found 7 for example 'e4'"):
        diagnose(X, named, {"e4": 7, "e5": 0})


def test_labels_are_aggregated_once(monkeypatch):
    X, labels, truth = boundary_crowd(n_examples=100)
    calls = []
    monkeypatch.setattr(diagnosis, "aggregate", lambda labels, **settings: calls.append(1) or aggregate(labels))
    diagnose(X, labels)
    diagnose(X, labels, truth)
    assert len(calls) == 2


def test_a_short_repr_and_a_frame_of_levels():
    found = diagnose(*misleading_crowd())
    assert repr(found).startswith(
        "Diagnosis: 400 examples, 10 annotators; rank correlation of disagreement and margin -0."
    )
    assert len(repr(found)) < 150
    assert found.to_frame()["n_examples"].sum() == 400


def test_finds_nothing_where_there_is_nothing(rng):
    X = rng.normal(size=(300, 3))
    truth = (X[:, 0] > 0).astype(int)
    wrong = rng.random((300, 10)) < 0.25  # anywhere alike
    found = diagnose(X, np.where(wrong, 1 - truth[:, None], truth[:, None]), truth)
    assert found.correlation.low < 0 < found.correlation.high
    assert not found.weight
    assert "do not clearly disagree more near the boundary" in found.advice


def test_majority_errors_by_level_by_hand():
    rows = [
        [0, 0, 0, 0],
        [1, 1, 1, 1],
        [0, 0, 0, 1],
        [1, 1, 1, 0],
        [0, 0, 1, 1],
        [0, 1, 0, 1],
        [1, 1, 1, 1],
        [0, 0, 0, 0],
    ]
    truth = [0, 1, 0, 0, 0, 1, 0, 0]
    found = diagnose(np.arange(8.0)[:, None], rows, truth)
    # Unanimous: one of four wrong. One against three: one of two wrong. Two against two: half right.
    assert [level.n_examples for level in found.levels] == [4, 2, 2]
    assert [level.up_to for level in found.levels] == [0.0, 0.75, 1.0]
    assert_allclose([level.majority_error for level in found.levels], [0.25, 0.5, 0.5])
    without = diagnose(np.arange(8.0)[:, None], rows)
    assert all(np.isnan(level.majority_error) for level in without.levels)
    assert "unknown" in str(without)


def test_margins_by_hand():
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 2.5]])
    distance, signed = margins(scores, np.array([1, 2]))
    assert distance.tolist() == [2.0, 0.5]
    assert signed.tolist() == [-2.0, 0.5]


def test_the_interval_of_a_rank_correlation(rng):
    one = rng.normal(size=50)
    other = one + rng.normal(size=50)
    found = rank_correlation(one, other)
    expected = spearmanr(one, other)
    assert_allclose([found.value, found.p_value], [expected.statistic, expected.pvalue])
    error = np.sqrt((1 + found.value**2 / 2) / 47)
    assert_allclose(
        np.arctanh([found.low, found.high]), np.arctanh(found.value) + np.array([-1.959964, 1.959964]) * error
    )
    perfect = rank_correlation(one, one)
    assert perfect.value == pytest.approx(1)
    assert np.isfinite([perfect.low, perfect.high]).all()
    assert "undefined" in str(rank_correlation(np.zeros(9), np.arange(9.0)))


def slow_share(labels):
    """Expected disagreement from every pair of annotators of every example."""
    found = aggregate(labels)
    expected, seen = [], []
    differs = disagreement(labels)
    for i in range(len(labels)):
        who = labels.annotator_index[labels.indptr[i] : labels.indptr[i + 1]].tolist()
        pairs = [(a, b) for j, a in enumerate(who) for b in who[j + 1 :]]
        if pairs:
            same = [found.class_prior @ (found.confusion[a] * found.confusion[b]).sum(axis=1) for a, b in pairs]
            expected.append(1 - np.mean(same))
            seen.append(differs[i])
    return np.corrcoef(expected, seen)[0, 1] ** 2


def share(labels):
    return share_of_annotators(labels, aggregate(labels))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_share_of_annotators_equals_the_slow_twin(n_classes):
    _, matrix = crowd(3, n_examples=60, n_classes=n_classes, missing=0.5)
    labels = labels_of(matrix, n_classes)
    assert_allclose(share(labels), slow_share(labels), rtol=1e-8)


def test_the_share_of_annotators_is_large_if_they_differ_and_zero_if_all_label_everything():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    good, poor = (np.where(rng.random((500, 6)) < right, truth[:, None], 1 - truth[:, None]) for right in (0.99, 0.55))
    matrix = np.hstack([good, poor]).astype(object)
    matrix[:250, 6:] = None  # the first half has good annotators, the second poor ones
    matrix[250:, 1:6] = None
    assert share(labels_of(matrix)) > 0.5
    assert share(labels_of(np.hstack([good, poor]).astype(object))) == 0


@pytest.mark.parametrize(
    ("steepness", "value", "high", "match"),
    [
        (2.0, -0.4, -0.3, "Weight, with steepness 2: a model ranks held-out examples"),
        (0.0, -0.4, -0.3, "Don't weight: a model ranks held-out examples"),
        (0.0, -0.1, 0.1, "do not clearly disagree more"),
        (0.0, np.nan, np.nan, "the same for all examples"),
    ],
)
def test_advice(steepness, value, high, match):
    assert match in advise(steepness, Correlation(value, -0.5, high, 0.5), "truth")


def test_prints_on_one_screen():
    X, labels, truth = boundary_crowd()
    text = str(diagnose(X, labels, truth))
    assert len(text.splitlines()) < 24
    for words in (
        "400 examples, 10 annotators",
        "Krippendorff's alpha",
        "Cohen's kappa",
        "Advice: Don't weight",
        "majority wrong",
    ):
        assert words in text


def test_unknown_truth_is_left_out_and_strange_truth_refused():
    X, labels, truth = boundary_crowd()
    some = truth.astype(float)
    some[::4] = np.nan
    found = diagnose(X, labels, some)
    assert sum(level.n_examples for level in found.levels) == 300
    with pytest.raises(LabelError, match="truth must use the"):
        diagnose(X, labels, np.where(np.arange(400) == 3, 7, truth))
    with pytest.raises(LabelError, match="one per example, 400; got 399"):
        diagnose(X, labels, truth[:-1])
    with pytest.raises(LabelError, match="the truth has fewer"):
        diagnose(X, labels, np.zeros(400, dtype=int))


def test_labels_that_say_nothing_are_refused():
    with pytest.raises(LabelError, match="no example has two labels"):
        diagnose([[0.0], [1.0]], [[0, None], [None, 1]])
    with pytest.raises(LabelError, match='scale="nominal"'):
        diagnose([[0.0]], CrowdLabels.from_matrix([[0.5, 1.5]], scale="interval"))
    with pytest.raises(TypeError, match="KNeighborsClassifier does not"):
        diagnose([[0.0], [1.0]], [[0, 0], [1, 1]], estimator=KNeighborsClassifier())


def test_unanimous_labels_leave_nothing_to_correlate():
    X, _, truth = boundary_crowd(n_examples=60)
    found = diagnose(X, np.repeat(truth[:, None], 3, axis=1))
    assert (found.weight, found.annotator_share, found.alpha) == (False, 0.0, 1.0)
    assert "undefined" in str(found)


def test_examples_without_labels_and_annotators_without_labels_change_nothing():
    X, labels, _ = boundary_crowd(n_examples=100)
    matrix = labels.to_matrix().astype(object)
    more = np.hstack([np.vstack([matrix, np.full((5, 10), None)]), np.full((105, 1), None)])
    one, other = diagnose(X, labels), diagnose(np.vstack([X, X[:5]]), labels_of(more))
    assert one.correlation == other.correlation
    assert repr(one.levels) == repr(other.levels)  # NaN is not equal to itself
    assert_allclose(one.annotator_share, other.annotator_share)
    assert one.alpha == other.alpha


def test_sparse_features_and_frames():
    X, labels, truth = boundary_crowd(n_examples=100)
    dense = diagnose(X, labels, truth)
    assert_allclose(diagnose(sparse.csr_array(X), labels, truth).correlation.value, dense.correlation.value, atol=1e-3)
    assert_allclose(diagnose(pd.DataFrame(X), labels, truth).correlation.value, dense.correlation.value, atol=1e-12)


def test_many_classes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 200)
    X = rng.normal(size=(200, 4)) + 3 * np.eye(4)[truth]
    found = diagnose(X, simulate_annotators(X, truth, clarity=2.0, missing=0.3, random_state=0), truth)
    assert found.correlation.high < 0


def test_real_crowds_disagree_slightly_more_near_the_boundary(data_home):
    features = pd.read_csv(data_home / "crowd" / "music" / "features.csv.gz", index_col="task")
    table = pd.read_csv(data_home / "crowd" / "music" / "labels.csv")
    truth = pd.read_csv(data_home / "crowd" / "music" / "truth.csv", index_col="task")["label"]
    labels = CrowdLabels.from_table(table, examples=features.index)
    found = diagnose(features, labels, truth)
    assert -0.25 < found.correlation.value < -0.05
    assert found.correlation.high < 0


def test_levels_are_compared_with_the_consensus_that_their_scale_asks_for():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    said = np.clip(np.rint(1.5 * X[:, :1] + 3 + 1.5 * rng.normal(size=(80, 3))), 1, 5)
    labels = CrowdLabels.from_matrix(said).with_scale("ordinal", consensus="median")
    results = aggregate(labels)
    assert (results.codes != results.proba.argmax(axis=1)).any()
    assert diagnose(X, labels).correlation == diagnose(X, labels, results.label).correlation
