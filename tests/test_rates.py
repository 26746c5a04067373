"""Rates of a class: by hand, by draws, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crowdwise import CrowdLabels, aggregate
from crowdwise.exceptions import CrowdWarning, LabelError
from crowdwise.rates import Rate, post_stratified, rate

Y = [["pass", "pass", "pass"]] * 60 + [["fail", "fail", "fail"]] * 40
TRUTH = {0: "pass", 1: "pass", 2: "fail", 60: "fail", 61: "fail"}


def test_by_hand() -> None:
    """Of three that were given "pass" two are; of two that were not, none: each with half an answer more."""
    found = rate(aggregate(Y), Y, TRUTH)
    passed, failed = 2.5 / 4, 0.5 / 3
    assert found.value == pytest.approx(0.6 * passed + 0.4 * failed)
    variance = 0.36 * passed * (1 - passed) / 5 + 0.16 * failed * (1 - failed) / 4
    variance += 0.24 * (passed - failed) ** 2 / 100
    strength = found.value * (1 - found.value) / variance - 1
    assert found.low == pytest.approx(stats.beta.ppf(0.025, found.value * strength, (1 - found.value) * strength))
    assert (found.target, found.uncorrected, found.n_examples, found.n_known) == ("pass", 0.6, 100, 5)


def test_without_known_answers_it_is_the_consensus_and_says_so() -> None:
    found = rate(aggregate(Y), Y)
    assert found.value == found.uncorrected == 0.6
    assert "not corrected" in repr(found)


def test_known_answers_of_the_fit_are_not_counted_twice() -> None:
    """The consensus of a known example is its answer after such a fit, and would seem to be always right."""
    assert rate(aggregate(Y, truth=TRUTH), Y) == rate(aggregate(Y), Y, TRUTH)


def test_groups_and_their_difference() -> None:
    by = ["A"] * 60 + ["B"] * 40
    found = rate(aggregate(Y), Y, TRUTH, by=by)
    assert [one.n_examples for one in found.groups.values()] == [60, 40]
    a, b = found.groups["A"], found.groups["B"]
    (difference,) = found.differences
    assert difference.value == pytest.approx(a.value - b.value)
    assert difference.low == pytest.approx(difference.value - np.hypot(a.value - a.low, b.high - b.value))
    assert found.to_frame()["group"].tolist() == ["all", "A", "B"]


def test_one_class_against_the_other() -> None:
    passed, failed = (rate(aggregate(Y), Y, TRUTH, target=target) for target in ("pass", "fail"))
    assert passed.value == pytest.approx(1 - failed.value)
    assert passed.low == pytest.approx(1 - failed.high)


def test_intervals_cover_and_are_narrower_than_those_of_known_answers_alone() -> None:
    rng = np.random.default_rng(0)
    covered, width = 0, 0.0
    known = np.arange(1000) < 60
    for _ in range(400):
        truth = rng.random(1000) < 0.3
        said = np.where(rng.random(1000) < 0.9, truth, ~truth)
        _, low, high = post_stratified(said, known, truth, 0.95)
        covered += low <= 0.3 <= high
        width += (high - low) / 400
    assert 0.92 < covered / 400 < 0.985
    assert width < 2 * 1.96 * np.sqrt(0.3 * 0.7 / 60)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_or_none_stays_within_zero_and_one(share: float) -> None:
    value, low, high = post_stratified(np.full(50, share > 0.5), np.arange(50) < 20, np.full(50, share > 0.5), 0.95)
    assert 0 <= low <= value <= high <= 1


def test_examples_without_labels_do_not_count() -> None:
    table = CrowdLabels.from_table(
        {"example": ["a", "a", "b"], "annotator": [0, 1, 0], "label": ["x", "x", "y"]},
        example="example", annotator="annotator", label="label", examples=["a", "b", "c"],
    )  # fmt: skip
    with pytest.warns(CrowdWarning, match="1 of 3 examples has"):
        found = rate(aggregate(table), table, {"c": "x"})
    assert (found.n_known, found.n_examples) == (0, 2)


def test_what_is_refused() -> None:
    three = [["a", "a"], ["b", "b"], ["c", "c"]]
    with pytest.raises(ValueError, match="target must be"):
        rate(aggregate(three), three)
    with pytest.raises(ValueError, match="target must be"):
        rate(aggregate(Y), Y, target="maybe")
    with pytest.raises(LabelError, match="by must have"):
        rate(aggregate(Y), Y, by=["A"] * 99)
    with pytest.raises(LabelError, match="by must have"):
        rate(aggregate(Y), Y, by=["A"] * 99 + [None])


def test_printed() -> None:
    assert str(Rate("x", 0.5, 0.4, 0.6, 0.55, 100, 20)) == (
        "50.0% (40.0% to 60.0%) of 100 examples, corrected by 20 known answers; 55.0% by the consensus alone"
    )
