import numpy as np
import pytest
from crowds import labels_of, rare_crowd
from scipy.stats import norm

from crowdwise import CrowdLabels, aggregate, rate
from crowdwise.crowd import krippendorff_alpha
from crowdwise.reporting import summarize
from crowdwise.reporting.agreement import alpha_interval
from crowdwise.reporting.consensus import calibration_sentence, changed_examples, known_accuracy
from crowdwise.reporting.fit import Fit
from crowdwise.truths.check import share_interval


@pytest.mark.parametrize("kind", ["class", "rating"])
def test_the_interval_of_alpha_is_that_of_leaving_out_one_example_after_the_other(kind):
    _, matrix, _ = rare_crowd(share=0.05)  # how frequent a rare class is, is uncertain too
    labels = labels_of(matrix)
    if kind == "rating":
        labels = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    found, n = alpha_interval(labels), len(labels)
    assert found["value"] == krippendorff_alpha(labels)
    without = np.array([krippendorff_alpha(labels[np.arange(n) != i]) for i in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())  # the jackknife
    np.testing.assert_allclose(found["high"] - found["value"], norm.ppf(0.975) * error, rtol=0.03)
    np.testing.assert_allclose(found["value"] - found["low"], norm.ppf(0.975) * error, rtol=0.03)


def test_without_two_labels_or_two_answers_alpha_is_not_known():
    single = labels_of([[0, None], [None, 1]])
    assert alpha_interval(single) == {"value": None, "low": None, "high": None}
    same = labels_of([[1, 1], [1, 1]])
    assert alpha_interval(same) == {"value": None, "low": None, "high": None}


def test_the_interval_of_a_share_is_wilsons():
    low, high = share_interval([0.0, 0.5, 1.0], [10, 10, 0])
    np.testing.assert_allclose(low, [0.0, 0.23659, 0.0], atol=1e-5)  # textbook values for 0 and 5 of 10
    np.testing.assert_allclose(high, [0.27753, 0.76341, 1.0], atol=1e-5)


def test_known_accuracy_counts_right_answers_on_examples_of_known_truth():
    matrix = [["a", "a", "a"]] * 8 + [["b", "b", "b"]] * 8 + [["a", "b", None]]
    labels = CrowdLabels.from_matrix(matrix)
    truth = np.array([0] * 8 + [1] * 6 + [0] + [-1] + [0])
    found = known_accuracy(Fit.of(aggregate(labels), labels), truth)
    by_tie = aggregate(labels).label[-1] == "a"
    assert found["n"] == 16
    assert found["consensus"]["value"] == (14 + by_tie) / 16
    assert found["majority"]["value"] == (14 + 0.5) / 16
    low, high = share_interval(found["consensus"]["value"], 16)
    assert (found["consensus"]["low"], found["consensus"]["high"]) == (low, high)
    assert known_accuracy(Fit.of(aggregate(labels), labels), np.full(17, -1)) is None


def test_changed_and_tied_examples_are_told_apart():
    # Annotators 0 and 1 always agree with each other and are no copies; 2, 3 and 4 answer at random.
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 60)
    matrix = np.column_stack([truth, truth, truth, rng.integers(0, 2, (60, 3))]).astype(object)
    matrix[:10, 2] = None
    matrix[0, :] = [0, 0, None, 1, 1, 1]
    matrix[1, :] = [0, 0, None, 1, 1, None]
    labels = labels_of(matrix)
    fit = Fit.of(aggregate(labels, errors_in_common=False), labels)
    differs, tied = changed_examples(fit), fit.tied
    assert differs[0]
    assert not tied[0]
    assert tied[1]
    assert not (differs & tied).any()


def test_answers_that_the_fit_was_told_are_not_changed_by_it():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 60)
    labels = labels_of(np.column_stack([truth, truth, truth, rng.integers(0, 2, (60, 3))]).astype(object))
    against_all = [int(1 - truth[i]) if i < 20 else None for i in range(60)]
    fit = Fit.of(aggregate(labels, truth=against_all), labels)
    assert (fit.results.codes != labels.majority())[:20].any()
    assert not changed_examples(fit)[:20].any()


def test_known_answers_that_only_judge_measure_the_annotators_too():
    matrix = np.array([[0, 0, 1]] * 15 + [[1, 1, 1]] * 15)
    truth = np.array([0] * 15 + [1] * 15)
    rows = summarize(aggregate(matrix), matrix, truth=truth)["annotators"]["rows"]
    measured = {row["annotator"]: (row["truths"], row["truth_accuracy"]) for row in rows}
    assert measured == {"0": (30, 1.0), "1": (30, 1.0), "2": (30, 0.5)}


def test_the_rate_of_the_second_of_two_classes_is_that_of_the_function():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    labels = CrowdLabels.from_matrix(np.where(rng.random((200, 4)) < 0.2, 1 - truth[:, None], truth[:, None]))
    results = aggregate(labels)
    known = {i: int(truth[i]) for i in range(0, 200, 4)}
    part, expected = summarize(results, labels, truth=known)["rate"], rate(results, labels, known)
    assert (part["value"], part["low"], part["high"]) == (expected.value, expected.low, expected.high)
    assert (part["target"], part["known"]) == ("1", 50)
    numbers = summarize(results, labels, truth=known)["numbers"]
    assert numbers[-1]["name"] == "rate of “1”"
    assert "corrected by 50 known answers" in numbers[-1]["note"]
    assert "not corrected" in summarize(results, labels)["numbers"][-1]["note"]
    three = [["a", "b"], ["b", "b"], ["c", "c"]]
    assert summarize(aggregate(three), three)["rate"] is None


def test_confidence_that_is_off_in_a_part_of_the_examples_is_reported():
    summary = {"kind": "class", "quality": {"known": {"stated": {"value": 0.8}, "n": 200}}}
    known = summary["quality"]["known"]
    known["consensus"] = {"value": 0.82, "low": 0.76, "high": 0.87}
    sure = {"n": 100, "stated": 0.85, "value": 0.99, "low": 0.95, "high": 1.0}
    known["reliability"] = [{"n": 100, "stated": 0.75, "value": 0.7, "low": 0.6, "high": 0.78}, sure]
    assert calibration_sentence(summary).startswith(
        "Underconfident on 100 examples: predicted 85.0% correct, actual 99"
    )
    known["reliability"] = [sure | {"n": 19}]
    assert calibration_sentence(summary) == ""
    known["consensus"] = {"value": 0.6, "low": 0.5, "high": 0.7}
    assert calibration_sentence(summary).startswith("Overconfident: predicted 80.0% correct, actual 60.0%")
