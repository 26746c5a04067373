from dataclasses import replace

import numpy as np
import pytest
from all_models import fit_quietly
from crowds import clear_crowd

from crowdwise import CrowdLabels, CrowdLogisticClassifier, CrowdRidgeRegressor, aggregate
from crowdwise._text import count
from crowdwise.labels._align import as_labels
from crowdwise.reporting import render_html, render_markdown, summarize, summary_lines
from crowdwise.reporting._svg import round_ticks
from crowdwise.reporting.agreement import agreement_sentence, votes_sentence
from crowdwise.reporting.consensus import truth_sentence
from crowdwise.reporting.fit import decimal, percent, rounded, some_of


@pytest.fixture(scope="module")
def data():
    return clear_crowd()


def test_percentages_are_never_rounded_to_all_or_nothing():
    assert [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0%",
        "under 1%",
        "50%",
        "over 99%",
        "100%",
    ]
    assert percent(0.9999, 1) == "over 99.9%"


def test_known_answers_of_the_fit_are_neither_confident_examples_nor_ties_that_it_breaks():
    votes = [["a", "b"], ["a", "b"], ["a", "a"], ["b", "b"], ["a", "a"], ["b", "b"]]
    summary = summarize(aggregate(votes, truth={0: "a", 2: "b"}), votes)
    assert sum(summary["quality"]["by_confidence"]) == 4
    assert "breaks 1 tie;" in " ".join(summary_lines(summary))
    page = render_html(summary)
    assert "None: apart from known answers, the consensus follows the majority" in page
    assert "Not counted: 2 known answers." in page
    assert "The consensus includes 2 known answers." in page
    every = summarize(aggregate(votes, truth=["a", "b", "a", "b", "a", "b"]), votes)
    assert "Examples by the confidence" not in render_html(every)
    none = render_html(summarize(aggregate(votes), votes))
    assert "Examples by the confidence" in none
    assert "known answers are" not in none.lower()


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((-1.94, 1.94), ["−1", "0", "+1"]),
        ((-93.0, 93.0), ["−50", "0", "+50"]),
        ((7.31, 96.9), ["+20", "+40", "+60", "+80"]),
        ((-0.02, 0.02), ["−0.02", "0", "+0.02"]),
    ],
)
def test_axes_have_marks_at_round_numbers(ends, words):
    assert list(round_ticks(*ends, "+").values()) == words


def test_ties_are_told_only_where_there_are_any():
    tied = [["a", "b"], ["a", "a"], ["b", "b"], ["a", "a"], ["b", "b"]]
    summary = summarize(aggregate(tied), tied, truth=["a", "a", "b", "a", "b"])
    assert "breaks 1 tie" in " ".join(summary_lines(summary))
    assert "majority-vote accuracy 90.0%" in summary["headline"][1]
    assert "ties broken at random" in render_markdown(summary)
    summary = summarize(aggregate(tied[1:]), tied[1:], truth=["a", "b", "a", "b"])
    assert not any(" tie" in line for line in [*summary_lines(summary), *summary["headline"]])
    assert "broken at random" not in render_markdown(summary)


def test_numbers_and_names_are_written_as_in_prose():
    assert count(1, "tie") == "1 tie"
    assert count(1200, "class", "classes") == "1,200 classes"
    assert some_of(["a"]) == "a"
    assert some_of(["a", "b", "c", "d"]) == "a, b, c and d"
    assert some_of(["a", "b", "c", "d", "e"]) == "a, b, c and 2 others"
    assert decimal(-0.5) == "−0.50"
    assert [rounded(value) for value in (9.0, 5.47, 0.04, 1234.5)] == ["9", "5.5", "0", "1,234.5"]


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        ({"value": 0.9, "low": 0.85, "high": 0.95}, "agree closely"),
        ({"value": 0.5, "low": 0.45, "high": 0.55}, "agree moderately"),
        ({"value": 0.05, "low": -0.01, "high": 0.1}, "little more than by chance"),
        ({"value": -0.2, "low": -0.3, "high": -0.1}, "less than by chance"),
    ],
)
def test_agreement_is_called_by_how_high_alpha_is(alpha, words):
    assert words in agreement_sentence({"alpha": alpha, "size": {"annotators": 5}, "ordered": False})


def test_without_truth_nothing_claims_an_accuracy_that_is_not_estimated(data):
    X, labels, _ = data
    summary = summarize(fit_quietly(CrowdLogisticClassifier(), X, labels), labels, X=X)
    said = [*summary["headline"], *summary_lines(summary)]
    about = [line for line in said if "accura" in line]
    assert about
    assert all("estimated" in line or "against the consensus" in line for line in about)
    assert not any("independent" in line for line in said if not summary["votes"]["truths"])
    for page in (render_html(summary), render_markdown(summary)):
        page = page.split('<script type="application/json"')[0]
        assert "known answer" not in page.split("<h3>Limits")[0]
        for place in range(len(page)):
            if page.startswith("accuracy", place):
                around = page[max(place - 40, 0) : place + 90]
                assert "stimate" in around or "against the consensus" in around


def test_with_truth_the_accuracy_is_known_and_has_an_interval(data):
    _, labels, truth = data
    summary = summarize(aggregate(labels), labels, truth=truth)
    assert "with a known answer, consensus accuracy" in summary["headline"][1]
    assert "95% interval" in summary["headline"][1]


def test_an_overconfident_fit_is_called_so():
    # Everybody makes the same mistakes, so that everybody agrees.
    rng = np.random.default_rng(0)
    truth, shared = rng.integers(0, 2, 200), rng.random(200) < 0.3
    wrong = np.where(shared, 1 - truth, truth)
    matrix = np.where(rng.random((200, 6)) < 0.97, wrong[:, None], 1 - wrong[:, None])
    summary = summarize(aggregate(matrix, errors_in_common=False), matrix, truth=truth)
    lines = "\n".join(summary_lines(summary))
    assert "Overconfident: predicted" in lines
    assert "calibrate it with these answers (--use-truth" in lines
    assert "Overconfident" in render_html(summary)
    assert "experts" in summary["headline"][2]


def test_truths_that_are_no_random_draw_are_not_taken_for_the_share_that_is_right(data):
    _, labels, truth = data
    result = aggregate(labels, truth=dict(zip(labels.examples[:20].tolist(), truth[:20].tolist(), strict=True)))
    check = replace(result.truth_check, at_random=False, others=0.85)
    chosen = replace(result, truth_check=check)
    sentence = truth_sentence(summarize(chosen, labels))
    assert "not a random draw, so this may not hold for the others (mean confidence 85.0%)" in sentence
    assert "crowdwise next --at-random" in sentence
    assert "random draw" not in truth_sentence(summarize(result, labels))


def test_a_fit_is_not_too_sure_because_only_hard_examples_are_known():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    wrong = rng.random((300, 6)) < np.repeat([0.05, 0.35], [200, 100])[:, None]
    matrix = np.where(wrong, 1 - truth[:, None], truth[:, None])
    summary = summarize(aggregate(matrix), matrix, truth={i: int(truth[i]) for i in range(200, 300)})
    assert "Overconfident" not in "\n".join(summary_lines(summary))
    assert "not a random draw, so this may not hold for the others" in " ".join(summary_lines(summary))
    assert "not a random draw" in summary["headline"][1]
    assert summary["votes"]["truths"] == 0  # nor does it measure correlated errors


def test_annotators_are_compared_by_known_answers_if_there_are_enough():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    misled = np.where(rng.random(200) < 0.4, 1 - truth, truth)
    alike = np.where(rng.random((200, 4)) < 0.05, 1 - misled[:, None], misled[:, None])
    matrix = np.column_stack([np.where(rng.random(200) < 0.1, 1 - truth, truth), alike])
    result = aggregate(matrix, truth={i: int(truth[i]) for i in range(0, 200, 2)}, errors_in_common=False)
    line = next(line for line in summary_lines(summarize(result, matrix)) if line.startswith("Annotators"))
    assert line.startswith("Annotators  best 0 (accuracy ")
    without = summary_lines(summarize(aggregate(matrix, errors_in_common=False), matrix))
    assert "worst 0 (estimated accuracy" in "\n".join(without)


def test_about_ten_lines_have_quality_flags_and_what_next(data):
    _, labels, truth = data
    summary = summarize(aggregate(labels), labels, truth=truth)
    lines = summary_lines(summary)
    assert 7 <= len(lines) <= 12
    begins = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert begins == ["Crowd", "Agreement", "Votes", "Consensus", "Truth", "Rate", "Annotators", "Flagged", "Next"]
    assert "with the consensus less than random answers would" in summary["headline"][2]
    assert "with the consensus less than random answers would" in "\n".join(lines)
    assert "“worse than chance” agree with the consensus less" in render_html(summary)
    assert max(map(len, lines)) < 200


def test_ratings_have_lines_too(data):
    X, labels, _ = data
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    summary = summarize(fit_quietly(CrowdRidgeRegressor(), X, ratings), ratings)
    lines = "\n".join(summary_lines(summary))
    assert "ratings" in lines
    assert "estimated" in lines
    assert "majority" not in lines
    assert "majority" not in render_markdown(summary)


def test_a_class_that_is_the_consensus_more_often_than_it_was_given_is_told(data):
    _, labels, _ = data
    summary = summarize(aggregate(labels), labels)
    assert summary["quality"]["more_than_given"] == []
    summary["quality"]["more_than_given"] = [{"name": "n/a", "given": 1, "consensus": 94}]
    words = "“n/a” was given on 1 example and is the consensus on 94."
    assert words in "\n".join(summary_lines(summary))
    assert words in render_html(summary)


def test_annotators_of_the_same_accuracy_are_neither_best_nor_worst():
    labels = [["a", "a"], ["b", "b"], ["a", "b"]]
    lines = "\n".join(summary_lines(summarize(aggregate(labels), labels)))
    assert "Annotators  no clear difference (estimated accuracy " in lines
    assert "best" not in lines


def test_one_annotator_alone_needs_a_second_one():
    labels = CrowdLabels.from_matrix([["a"], ["b"]] * 6)
    summary = summarize(aggregate(labels), labels)
    assert "have a second annotator" in summary["headline"][2]
    assert "have a second annotator" in summary_lines(summary)[-1]
    assert "whole crowd" not in summary["headline"][2]


def test_one_annotator_is_compared_with_known_answers_and_not_with_itself():
    labels = CrowdLabels.from_matrix([["a"], ["b"]] * 20)
    known = dict(zip(range(20), ["a", "b", "b", "b"] * 5, strict=True))
    calibrated = "\n".join(summary_lines(summarize(aggregate(labels, truth=known), labels)))
    assert "Truth       Calibrated with 20 known answers" in calibrated
    judged = "\n".join(summary_lines(summarize(aggregate(labels), labels, truth=known)))
    assert "consensus accuracy is 75.0%" in judged
    for lines in (calibrated, judged):
        assert "Next        have a second annotator" in lines
        assert "majority vote" not in lines
        assert "would repeat its errors" not in lines


@pytest.mark.parametrize(
    ("needed", "others", "words"),
    [
        (40, 100, " 40 more would narrow the interval to ±5 points."),
        (400, 100, " Answers for all 100 others would give ±8 points."),
        (400, 0, ""),
        (0, 100, ""),
    ],
)
def test_no_more_known_answers_are_asked_for_than_there_are_examples(needed, others, words):
    check = {"n": 20, "accuracy": 0.65, "low": 0.433, "high": 0.819, "confidence": 0.733, "within": 0.05}
    check |= {"needed": needed, "unknown": others, "majority": 2 / 3}
    summary = {"truth_check": check, "size": {"annotators": 6}, "quality": {"tied": 0}}
    assert truth_sentence(summary) == (
        "Calibrated with 20 known answers: held-out accuracy 65.0% (95% interval 43.3 to 81.9), mean confidence "
        f"73.3%; majority vote 66.7%.{words}"
    )


def test_the_number_of_independent_votes_is_given_where_known_answers_show_it():
    votes = {"effective": 1.9, "shared": 0, "why": "", "truths": 50}
    size = {"annotators": 6, "labels_per_example": {"mean": 6.0}}
    assert votes_sentence({"votes": votes, "size": size}) == (
        "Annotators make the same mistakes: 6 labels carry about as much information as 1.9 independent ones (measured "
        "on 50 known answers)."
    )
    assert votes_sentence({"votes": votes | {"truths": 0}, "size": size}) == ""


def test_annotators_with_the_same_flag_are_named_together(data):
    _, labels, _ = data
    summary = summarize(aggregate(labels), labels)
    rows = [row | {"flags": []} for row in summary["annotators"]["rows"]]
    for row, flags in zip(rows, [["odd"], ["odd"], ["copy"]], strict=False):
        row["flags"] = flags
    summary["annotators"]["rows"] = rows
    first, second, third = (row["annotator"] for row in rows[:3])
    assert f"Flagged     {first} and {second}: odd; {third}: copy" in summary_lines(summary)


@pytest.mark.parametrize("name", [str, int], ids=["texts", "numbers"])
@pytest.mark.parametrize("changed", [0, 6], ids=["copies", "near copies"])
def test_copies_are_flagged_once_in_the_terminal_and_both_in_the_report(name, changed):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    values = np.where(rng.random((300, 5)) < 0.75, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    values[:, 4] = values[:, 3]
    values[:changed, 4] = 1 - values[:changed, 4]
    labels = CrowdLabels.from_matrix(values, annotators=[name(i) for i in range(11, 16)])
    summary = summarize(aggregate(labels), labels)
    flags = {row["annotator"]: row["flags"] for row in summary["annotators"]["rows"] if row["flags"]}
    assert set(flags) == {"14", "15"}
    (line,) = [line for line in summary_lines(summary) if line.startswith("Flagged")]
    assert line.count("answers like" if changed else "same labels as") == 1
    assert "14" in line
    assert "15" in line


def test_a_harsh_judge_may_be_the_best_and_is_called_harsh():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, 6, 400)
    noise = rng.normal(size=(400, 6)) * [0.2, 0.7, 0.7, 0.8, 0.8, 1.5]
    said = np.clip(np.rint(truth[:, np.newaxis] + [-1, 0, 0, 0, 0, 0] + noise), 1, 5)
    known = {i: int(truth[i]) for i in range(0, 400, 4)}
    for answers in (None, known):
        lines = summary_lines(summarize(aggregate(as_labels(said).with_scale("ordinal"), truth=answers), said))
        line = next(line for line in lines if line.startswith("Annotators"))
        assert line.startswith("Annotators  best 0 (harsh by 0."), line
        assert "worst 5" in line
    alike = np.clip(np.rint(truth[:, np.newaxis] + rng.normal(size=(400, 3))), 1, 5)
    lines = "\n".join(summary_lines(summarize(aggregate(as_labels(alike).with_scale("ordinal")), alike)))
    assert "Annotators  no clear difference (spread around " in lines


def test_nearly_constant_ratings_are_not_the_best_for_their_small_spread():
    rng = np.random.default_rng(0)
    true = rng.normal(50, 15, 300)
    said = true[:, np.newaxis] + rng.normal(size=(300, 4)) * [5, 8, 8, 12]
    constant = 70 + rng.normal(size=(300, 1))
    labels = as_labels(np.hstack([constant, said]), scale="interval")
    line = next(line for line in summary_lines(summarize(aggregate(labels), labels)) if line.startswith("Annotators"))
    assert line.startswith("Annotators  best 1 (")
    assert "worst 0 (lenient by " in line


def test_known_ratings_of_all_examples_leave_nothing_to_check():
    rng = np.random.default_rng(0)
    true = rng.normal(50, 15, 40)
    labels = as_labels(true[:, np.newaxis] + rng.normal(size=(40, 3)), scale="interval")
    summary = summarize(aggregate(labels, truth=true), labels)
    assert summary["next"]["rows"] == []
    assert "Next        nothing to check: every answer is known" in summary_lines(summary)


def test_two_annotators_are_compared_roughly_unless_answers_are_known():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    matrix = np.where(rng.random((300, 2)) < [0.05, 0.35], 1 - truth[:, np.newaxis], truth[:, np.newaxis])
    summary = summarize(aggregate(matrix), matrix)
    for row, accuracy in zip(summary["annotators"]["rows"], (0.9, 0.7), strict=True):
        row |= {"accuracy": accuracy, "accuracy_low": accuracy - 0.01, "accuracy_high": accuracy + 0.01}
    assert "labels); a rough estimate" in "\n".join(summary_lines(summary))
    assert "best 0 (accuracy 9" in "\n".join(summary_lines(summarize(aggregate(matrix), matrix, truth=truth)))
