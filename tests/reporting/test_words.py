from dataclasses import replace

import numpy as np
import pytest
from all_models import fit_quietly
from crowds import clear_crowd

from crowdwise import CrowdLabels, CrowdLogisticClassifier, CrowdRidgeRegressor, aggregate
from crowdwise.counts import count
from crowdwise.reporting import render_html, render_markdown, summarize, summary_lines
from crowdwise.reporting.words import (
    agreement_sentence,
    decimal,
    percent,
    rounded,
    some_of,
    truth_sentence,
    votes_sentence,
)


@pytest.fixture(scope="module")
def data():
    return clear_crowd()


def test_percentages_are_never_rounded_to_all_or_nothing():
    assert [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0 %",
        "under 1 %",
        "50 %",
        "over 99 %",
        "100 %",
    ]
    assert percent(0.9999, 1) == "over 99.9 %"


def test_ties_are_told_only_where_there_are_any():
    tied = [["a", "b"], ["a", "a"], ["b", "b"], ["a", "a"], ["b", "b"]]
    summary = summarize(aggregate(tied), tied, truth=["a", "a", "b", "a", "b"])
    assert "1 tie decided" in " ".join(summary_lines(summary))
    assert "majority vote (ties drawn by lot) for 90.0 %" in summary["headline"][1]
    assert "drawn by lot" in render_markdown(summary)
    summary = summarize(aggregate(tied[1:]), tied[1:], truth=["a", "b", "a", "b"])
    assert not any(" tie" in line for line in [*summary_lines(summary), *summary["headline"]])
    assert "drawn by lot" not in render_markdown(summary)


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
        ({"value": 0.05, "low": -0.01, "high": 0.1}, "hardly more than by chance"),
        ({"value": -0.2, "low": -0.3, "high": -0.1}, "less than by chance"),
    ],
)
def test_agreement_is_called_by_how_high_alpha_is(alpha, words):
    assert words in agreement_sentence({"alpha": alpha, "size": {"annotators": 5}})


def test_without_truth_nothing_claims_an_accuracy_that_is_not_estimated(data):
    X, labels, _ = data
    summary = summarize(fit_quietly(CrowdLogisticClassifier(), X, labels), labels, X=X)
    said = [*summary["headline"], *summary_lines(summary)]
    about = [line for line in said if "accura" in line or " right" in line]
    assert about
    assert all("estimated" in line for line in about)
    assert any("independently" in line for line in about)
    for page in (render_html(summary), render_markdown(summary)):
        assert "known truth" not in page
        for place in range(len(page)):
            if page.startswith("accuracy", place):
                assert "stimate" in page[max(place - 40, 0) : place + 40]


def test_with_truth_the_accuracy_is_known_and_has_an_interval(data):
    _, labels, truth = data
    summary = summarize(aggregate(labels), labels, truth=truth)
    assert "known truth" in summary["headline"][1]
    assert "95 % interval" in summary["headline"][1]


def test_a_fit_that_is_too_sure_is_told_so():
    # Everybody makes the same mistakes, so that everybody agrees.
    rng = np.random.default_rng(0)
    truth, shared = rng.integers(0, 2, 200), rng.random(200) < 0.3
    wrong = np.where(shared, 1 - truth, truth)
    matrix = np.where(rng.random((200, 6)) < 0.97, wrong[:, None], 1 - wrong[:, None])
    summary = summarize(aggregate(matrix, errors_in_common=False), matrix, truth=truth)
    lines = "\n".join(summary_lines(summary))
    assert "surer than it should be" in lines
    assert "let the fit learn from these answers (--use-truth" in lines
    assert "surer than it should be" in render_html(summary)
    assert "experts" in summary["headline"][2]


def test_truths_that_are_no_random_draw_are_not_taken_for_the_share_that_is_right(data):
    _, labels, truth = data
    result = aggregate(labels, truth=dict(zip(labels.examples[:20].tolist(), truth[:20].tolist(), strict=True)))
    chosen = replace(result, truth_check=replace(result.truth_check, at_random=False, others=0.85))
    sentence = truth_sentence(summarize(chosen, labels))
    assert "no random draw, so this says little about the others, on which mean confidence is 85.0 %" in sentence
    assert "crowdwise next --at-random" in sentence
    assert "no random draw" not in truth_sentence(summarize(result, labels))


def test_a_fit_is_not_too_sure_because_only_hard_examples_are_known():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    wrong = rng.random((300, 6)) < np.repeat([0.05, 0.35], [200, 100])[:, None]
    matrix = np.where(wrong, 1 - truth[:, None], truth[:, None])
    summary = summarize(aggregate(matrix), matrix, truth={i: int(truth[i]) for i in range(200, 300)})
    assert summary["quality"]["known"]["consensus"]["high"] < summary["quality"]["estimated"]["consensus"]["value"]
    assert "surer than it should be" not in "\n".join(summary_lines(summary))
    assert "no random draw, so this says little about the others" in " ".join(summary_lines(summary))
    assert "no random draw" in summary["headline"][1]
    assert summary["votes"]["truths"] == 0  # nor does it say how far annotators err together


def test_annotators_are_compared_by_known_answers_if_there_are_enough():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    misled = np.where(rng.random(200) < 0.4, 1 - truth, truth)
    alike = np.where(rng.random((200, 4)) < 0.05, 1 - misled[:, None], misled[:, None])
    matrix = np.column_stack([np.where(rng.random(200) < 0.1, 1 - truth, truth), alike])
    result = aggregate(matrix, truth={i: int(truth[i]) for i in range(0, 200, 5)}, errors_in_common=False)
    line = next(line for line in summary_lines(summarize(result, matrix)) if line.startswith("Annotators"))
    assert line.startswith("Annotators  best 0 (right on ")
    without = summary_lines(summarize(aggregate(matrix, errors_in_common=False), matrix))
    assert "worst 0 (estimated accuracy" in "\n".join(without)


def test_about_ten_lines_say_how_good_who_stands_out_and_what_next(data):
    _, labels, truth = data
    summary = summarize(aggregate(labels), labels, truth=truth)
    lines = summary_lines(summary)
    assert 7 <= len(lines) <= 12
    begins = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert begins == ["Crowd", "Agreement", "Votes", "Consensus", "Truth", "Changed", "Annotators", "Stand", "Next"]
    assert "worse than chance (shuffled, the same answers would agree more" in summary["headline"][2]
    assert "(worse than chance: shuffled, the same answers would agree more" in "\n".join(lines)
    assert "Worse than chance means: shuffled, the same answers" in render_html(summary)
    assert max(map(len, lines)) < 200


def test_ratings_have_lines_too(data):
    X, labels, _ = data
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), kind="rating")
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
    assert "Annotators  all about alike (estimated accuracy 56 %)" in lines
    assert "best" not in lines


def test_one_annotator_alone_needs_a_second_one():
    labels = CrowdLabels.from_matrix([["a"], ["b"]] * 6)
    summary = summarize(aggregate(labels), labels)
    assert "ask a second annotator" in summary["headline"][2]
    assert "ask a second annotator" in summary_lines(summary)[-1]
    assert "crowd shares" not in summary["headline"][2]


def test_one_annotator_is_compared_with_known_answers_and_not_with_itself():
    labels = CrowdLabels.from_matrix([["a"], ["b"]] * 20)
    known = dict(zip(range(20), ["a", "b", "b", "b"] * 5, strict=True))
    learnt = "\n".join(summary_lines(summarize(aggregate(labels, truth=known), labels)))
    assert "Truth       20 known answers were learnt from" in learnt
    judged = "\n".join(summary_lines(summarize(aggregate(labels), labels, truth=known)))
    assert "consensus right for 75.0 %" in judged
    for lines in (learnt, judged):
        assert "Next        ask a second annotator" in lines
        assert "majority vote" not in lines
        assert "share errors" not in lines


@pytest.mark.parametrize(
    ("needed", "others", "words"),
    [
        (40, 100, " With 40 more of them, the interval would be ±5 points."),
        (400, 100, " With those of all 100 other examples, the interval would be ±8 points."),
        (400, 0, ""),
        (0, 100, ""),
    ],
)
def test_no_more_known_answers_are_asked_for_than_there_are_examples(needed, others, words):
    check = {"n": 20, "accuracy": 0.65, "low": 0.433, "high": 0.819, "confidence": 0.733, "within": 0.05}
    check |= {"needed": needed, "unknown": others, "majority": 2 / 3}
    summary = {"truth_check": check, "size": {"annotators": 6}, "quality": {"tied": 0}}
    assert truth_sentence(summary) == (
        "20 known answers were learnt from: held out in turn, the consensus is right for 65.0 % of them (95 % interval "
        f"43.3 to 81.9) and 73.3 % sure on average; the majority vote is right for 66.7 %.{words}"
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("usual", "if annotators have as many errors in common as is usual."),
        ("labels", "as labels show few errors in common."),
        ("independent", "if annotators err independently."),
        ("truths", "by the errors that annotators have in common on 50 known answers."),
    ],
)
def test_the_number_of_independent_votes_comes_with_how_it_is_known(source, words):
    votes = {"effective": 1.9, "shared": 0, "by": source, "truths": 50}
    size = {"annotators": 6, "labels_per_example": {"mean": 6.0}}
    assert votes_sentence({"votes": votes, "size": size}).endswith(f"about 1.9 independent votes, {words}")


def test_annotators_with_the_same_flag_are_named_together(data):
    _, labels, _ = data
    summary = summarize(aggregate(labels), labels)
    rows = [row | {"flags": []} for row in summary["annotators"]["rows"]]
    for row, flags in zip(rows, [["odd"], ["odd"], ["copy"]], strict=False):
        row["flags"] = flags
    summary["annotators"]["rows"] = rows
    first, second, third = (row["annotator"] for row in rows[:3])
    assert f"Stand out   {first} and {second} (odd); {third} (copy)" in summary_lines(summary)
