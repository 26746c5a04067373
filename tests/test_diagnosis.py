import numpy as np
import pandas as pd
import pytest
from crowds import crowd, labels_of
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.neighbors import KNeighborsClassifier

from crowdwise import CrowdLabels, aggregate, diagnose, disagreement, simulate_annotators
from crowdwise.diagnosis import Correlation, advise, margins, rank_correlation, share_of_annotators
from crowdwise.exceptions import LabelError


def boundary_crowd(clarity=2.0, seed=0, n_examples=400):
    """Annotators who err independently, most of all near the boundary at zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_examples, 2))
    truth = (X[:, 0] > 0).astype(int)
    wrong = rng.random((n_examples, 10)) < 0.5 * np.exp(-clarity * 2 * np.abs(X[:, :1]))
    return X, CrowdLabels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None])), truth


def test_finds_disagreement_near_the_boundary_with_and_without_truth():
    X, labels, truth = boundary_crowd()
    for found in (diagnose(X, labels, truth), diagnose(X, labels)):
        assert found.correlation.high < -0.3
        assert found.weight
        assert found.advice.startswith("Weight")
        ranks = [level.margin_rank for level in found.levels]
        assert ranks == sorted(ranks, reverse=True)
    assert diagnose(X, labels, truth).reference == "truth"
    assert diagnose(X, labels).reference == "consensus"


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
    found = aggregate(labels, max_rounds=1000)
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_share_of_annotators_equals_the_slow_twin(n_classes):
    _, matrix = crowd(3, n_examples=60, n_classes=n_classes, missing=0.5)
    labels = labels_of(matrix, n_classes)
    assert_allclose(share_of_annotators(labels), slow_share(labels), rtol=1e-8)


def test_the_share_of_annotators_is_large_if_they_differ_and_zero_if_all_label_everything():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    good, poor = (np.where(rng.random((500, 6)) < right, truth[:, None], 1 - truth[:, None]) for right in (0.99, 0.55))
    matrix = np.hstack([good, poor]).astype(object)
    matrix[:250, 6:] = None  # the first half has good annotators, the second poor ones
    matrix[250:, 1:6] = None
    assert share_of_annotators(labels_of(matrix)) > 0.5
    assert share_of_annotators(labels_of(np.hstack([good, poor]).astype(object))) == 0


@pytest.mark.parametrize(
    ("value", "low", "high", "labels_per_example", "weight", "match"),
    [
        (-0.4, -0.5, -0.3, 10, True, "Weight, with a steepness"),
        (-0.4, -0.5, -0.3, 3, False, "3.0 labels an example are too few"),
        (-0.1, -0.15, -0.05, 10, False, "little to do with the boundary"),
        (-0.1, -0.3, 0.1, 10, False, "do not clearly disagree more"),
        (np.nan, np.nan, np.nan, 10, False, "the same for all examples"),
    ],
)
def test_advice(value, low, high, labels_per_example, weight, match):
    told, why = advise(Correlation(value, low, high, 0.5), "truth", labels_per_example)
    assert told is weight
    assert match in why


def test_prints_on_one_screen():
    X, labels, truth = boundary_crowd()
    text = str(diagnose(X, labels, truth))
    assert len(text.splitlines()) < 24
    for words in (
        "400 examples, 10 annotators",
        "Krippendorff's alpha",
        "Cohen's kappa",
        "Advice: Weight",
        "majority wrong",
    ):
        assert words in text


def test_unknown_truth_is_left_out_and_strange_truth_refused():
    X, labels, truth = boundary_crowd()
    some = truth.astype(float)
    some[::4] = np.nan
    found = diagnose(X, labels, some)
    assert sum(level.n_examples for level in found.levels) == 300
    with pytest.raises(LabelError, match=r"in the terms of the labels' classes \[0, 1\]; found 7"):
        diagnose(X, labels, np.where(np.arange(400) == 3, 7, truth))
    with pytest.raises(LabelError, match="one per example, 400; got 399"):
        diagnose(X, labels, truth[:-1])
    with pytest.raises(LabelError, match="the truth has fewer"):
        diagnose(X, labels, np.zeros(400, dtype=int))


def test_labels_that_say_nothing_are_refused():
    with pytest.raises(LabelError, match="no example has two labels"):
        diagnose([[0.0], [1.0]], [[0, None], [None, 1]])
    with pytest.raises(LabelError, match='kind="class"'):
        diagnose([[0.0]], CrowdLabels.from_matrix([[0.5, 1.5]], kind="rating"))
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
    found = diagnose(features, labels, truth.reindex(features.index).to_numpy())
    assert -0.25 < found.correlation.value < -0.05
    assert found.correlation.high < 0
