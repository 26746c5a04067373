import numpy as np
import pytest

from crowdwise.paper.reproduce.wins import Wins, count_wins, p_text, stars, wins_by_steepness


def test_ties_are_not_wins():
    wins = count_wins([0.5, 0.7, 0.9, 0.4], [0.5, 0.6, 0.9, 0.6])
    assert (wins.wins, wins.ties, wins.trials) == (1, 2, 4)
    assert (wins.mean, wins.mean_unweighted) == pytest.approx((0.625, 0.65))


def test_equal_methods_have_nothing_to_test():
    assert count_wins([0.5, 0.6], [0.5, 0.6]).p_value == 1.0


def test_the_p_value_is_that_of_the_signed_rank_test_by_hand():
    """Five differences, all positive: of 32 signs two are as extreme, so p = 2/32."""
    assert count_wins([1.1, 2.2, 3.3, 4.4, 5.5], [1, 2, 3, 4, 5]).p_value == pytest.approx(2 / 32)


def test_wins_are_counted_against_steepness_0_of_the_same_trial():
    rows = [
        {"steepness": steepness, "roc": roc}
        for trial in ([0.5, 0.6, 0.4], [0.9, 0.95, 0.97], [0.7, 0.6, 0.8])
        for steepness, roc in zip((0.0, 1.0, 2.0), trial, strict=True)
    ]
    wins = wins_by_steepness(rows, "roc")
    assert {steepness: own.wins for steepness, own in wins.items()} == {1.0: 2, 2.0: 2}
    assert wins[2.0].mean == pytest.approx(np.mean([0.4, 0.97, 0.8]))


@pytest.mark.parametrize(
    ("trials", "wins", "agrees"), [(100, 75, True), (100, 76, False), (25, 22, True), (25, 23, False)]
)
def test_fifteen_wins_of_a_hundred_agree_and_more_where_there_are_fewer_trials(trials, wins, agrees):
    assert Wins(wins, 0, trials, 0.5, 0.0, 0.0).agrees(60) is agrees


@pytest.mark.parametrize(
    ("wins", "p_value", "strong"),
    [(65, 0.001, True), (64, 0.001, False), (35, 0.001, True), (36, 0.001, False), (90, 0.02, False)],
)
def test_a_strong_effect_is_clear_and_significant(wins, p_value, strong):
    assert Wins(wins, 0, 100, p_value, 0.0, 0.0).strong is strong


def test_numbers_as_the_paper_prints_them():
    assert stars(Wins(53, 0, 100, 0.02, 0.0, 0.0)) == "53*"
    assert stars(Wins(53, 0, 100, 0.01, 0.0, 0.0)) == "53"
    assert [p_text(p) for p in (0.0542, 0.0007, 4.11e-11)] == ["0.0542", "0.0007", "4.1e-11"]
