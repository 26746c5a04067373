import numpy as np
import pytest
from crowd_files import write_crowd

from crowdwise import CrowdLabels, aggregate, agreement
from crowdwise.crowd import krippendorff_alpha
from crowdwise.reporting import summarize, summary_lines
from crowdwise.runs import Inputs, check, read_inputs


def test_everything_is_said_on_one_screen(tmp_path):
    folder = write_crowd(tmp_path)
    inputs = read_inputs(folder / "labels.csv", folder / "features.csv", features_as={"columns": ["size"]})
    found = check(inputs)
    assert found.size == {"examples": 60, "annotators": 5, "labels": inputs.labels.n_labels, "classes": 2}
    assert found.alpha == krippendorff_alpha(inputs.labels)
    assert found.kappas["pairs"] == 10
    assert any(problem.startswith("worse than chance: eve") for problem in found.problems)
    assert found.weighting.startswith(("Weight", "Don't weight"))
    lines = found.as_text().splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) <= 110
    assert "What next" not in lines
    lines = check(read_inputs(folder / "labels.csv")).as_text().splitlines()
    assert "What next" in lines
    assert len(lines) < 25
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        ([["a", None], ["b", "b"], ["a", "b"]], "1 example with one label"),
        ([[None, None], ["b", "b"], ["a", "b"]], "1 example without a label"),
        ([["a", None], [None, "b"]], "no two annotators share an example: their accuracies cannot be compared"),
        ([["a", "a"], ["a", "a"]], "there is only one class: annotators cannot be compared"),
        ([["a"], ["b"]], "there is only one annotator: annotators cannot be compared"),
        ([["a", "b"], ["b", "b"]] * 6, "the same label every time, 10 times or more: 1"),
        ([["a", "a", "b"], ["b", "b", "b"]] * 6, "same labels as 1: 0"),
        (
            [["a", "a"], ["b", "b"]] * 99 + [["a", "n/a"]],
            "rare labels, perhaps typos or missing answers: n/a (1 time)",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:'n/a' counts as a class")
def test_what_is_wrong_is_told(matrix, problem):
    assert problem in check(Inputs(CrowdLabels.from_matrix(matrix, missing=None))).problems


def test_one_pair_of_annotators_has_one_kappa():
    text = check(Inputs(CrowdLabels.from_matrix([["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]] * 5))).as_text()
    assert "  two at a time         Cohen's kappa 0.50\n" in text


def test_who_always_gives_the_same_answer_is_told_once():
    said = np.array([["a", "a", "a", "b"], ["b", "b", "a", "b"], ["b", "a", "b", "b"]] * 10)
    problems = check(Inputs(CrowdLabels.from_matrix(said, annotators=["ann", "bob", "eve", "stuck"]))).problems
    about = [problem for problem in problems if "stuck" in problem]
    assert about == ["always the same answer: stuck (where others differ)"]


def test_without_two_labels_on_an_example_there_is_no_agreement():
    found = check(Inputs(CrowdLabels.from_matrix([["a", None], [None, "b"]])))
    assert found.alpha is None
    assert found.unanimous is None
    assert "unknown" in found.as_text()


@pytest.mark.filterwarnings("ignore:'n/a' counts as a class")
def test_one_of_a_thing_is_not_written_as_many_and_a_few_are_not_none():
    found = check(Inputs(CrowdLabels.from_matrix([["a", "b"]])))
    assert found.as_text().startswith("2 labels of 1 example by 2 annotators")
    found = check(Inputs(CrowdLabels.from_matrix([["a", "a"], ["b", "b"]] * 99 + [["a", "n/a"]])))
    assert "n/a: under 1%" in found.as_text()


def test_classes_are_told_from_their_shares():
    numbered = check(Inputs(CrowdLabels.from_matrix([[1, 1], [2, 2], [2, 2], [2, 2]])))
    assert "classes               1: 25%, 2: 75%\n" in numbered.as_text()
    named = check(
        Inputs(CrowdLabels.from_matrix([[" B", " B"], ["yes, a bit", "yes, a bit"], ["no", "no"], ["no", "no"]]))
    )
    assert "' B': 25%, no: 50%, 'yes, a bit': 25%\n" in named.as_text()


@pytest.mark.filterwarnings("ignore:.*differ only in spaces")
def test_classes_that_are_spelt_alike_are_something_to_look_at():
    found = check(Inputs(CrowdLabels.from_matrix([["yes", "Yes"], ["no", "no"], ["yes", " yes"]])))
    assert "different classes with nearly the same spelling: ' yes', 'Yes', 'yes'" in found.problems


def test_an_alpha_below_zero_is_less_than_chance():
    crossed = CrowdLabels.from_matrix([["a", "b"], ["b", "a"], ["a", "b"]])
    assert "annotators agree less than by chance: Krippendorff's alpha -0.67" in check(Inputs(crossed)).as_text()


def test_many_examples_are_looked_at_in_part(monkeypatch, set_constants):
    set_constants("crowdwise.runs._check", _MOST_ROWS=40)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    X = truth[:, np.newaxis] + rng.normal(size=(100, 2))
    right = rng.random((100, 4)) < 0.8
    labels = CrowdLabels.from_matrix(np.where(right, truth[:, np.newaxis], 1 - truth[:, np.newaxis]))
    seen = []

    def spy(X, labels):
        seen.append((len(X), len(labels)))
        return type("Diagnosis", (), {"advice": "Weight"})

    monkeypatch.setattr("crowdwise.runs._check.diagnose", spy)
    features = type("Features", (), {"X": X})
    assert check(Inputs(labels, features)).weighting == "Weight"
    assert seen == [(40, 40)]


def test_levels_are_compared_as_levels_here_and_in_the_report():
    rng = np.random.default_rng(0)
    stars = np.clip(rng.integers(1, 6, (60, 1)) + rng.choice([-1, 0, 0, 1], (60, 3)), 1, 5)
    labels = CrowdLabels.from_matrix(stars)
    levels = labels.with_scale("ordinal")
    found, summary = check(Inputs(levels)), summarize(aggregate(levels), labels)
    measured = agreement(levels)
    assert found.alpha == summary["alpha"]["value"] == measured.alpha.value
    assert found.kappas["median"] == pytest.approx(np.median(measured.pairs.kappa))
    assert summary["pairs"]["median"] == pytest.approx(np.median(measured.pairs.kappa))
    name = "Krippendorff's alpha for ordered labels"
    assert f"{name} {measured.alpha.value:.2f}" in found.as_text()
    assert any(f"{name} is {measured.alpha.value:.2f}" in line for line in summary_lines(summary))
    assert "median weighted kappa" in found.as_text()
    assert "for ordered labels" not in check(Inputs(labels)).as_text()


ORDER = "if these are levels, such as stars,"
ADD = "add --scale ordinal"
STARS = ["1 star", *(f"{n} stars" for n in range(2, 11))]


@pytest.mark.parametrize(
    ("classes", "declared", "asked"),
    [
        (
            STARS[:5],
            False,
            f"classes '1 star' to '5 stars': {ORDER} {ADD} --classes '{','.join(STARS[:5])}'",
        ),
        (STARS, False, f"classes '1 star' to '10 stars': {ORDER} {ADD} --classes '{','.join(STARS)}'"),
        (STARS[:5], True, f"classes '1 star' to '5 stars': {ORDER} {ADD}"),
        (
            [f"{n} %" for n in range(50)],
            False,
            f"classes '0 %' to '49 %': {ORDER} {ADD} --classes '0 %,1 %,2 %,...'",
        ),
        (
            ["1,0", "2,0", "3,0", "4,0", "5,0"],
            False,
            f"classes '1,0' to '5,0' have a decimal comma: {ORDER} write them with a point, and {ADD}",
        ),
        ([-2, -1, 0, 1, 2], False, f"classes -2 to 2: {ORDER} {ADD}"),
        (STARS[:4], False, None),
        ([*STARS[:4], "6 stars"], False, None),
        ([*STARS[:4], "5 cats"], False, None),
        (["1,2", "2,3", "3,4", "4,5", "5,6"], False, None),
        (["1 star", "1 Star", *STARS[1:5]], True, None),
    ],
)
def test_numbers_of_something_may_be_levels(classes, declared, asked):
    matrix = [[name, name] for name in classes]
    found = check(Inputs(CrowdLabels.from_matrix(matrix, classes=classes if declared else None)))
    assert [problem for problem in found.problems if "levels" in problem] == ([] if asked is None else [asked])
