"""The numbers that the paper states, for comparison.

Vembu and Zilles, Interactive Learning from Multiple Noisy Labels, ECML-PKDD 2016.
"""

from __future__ import annotations

from typing import NamedTuple

# Table 1, from f = -1.0 to 1.0: flip score, labels of ten annotators, disagreement.
TABLE1: tuple[tuple[float, str, int], ...] = (
    (0.15, "----------", 0),
    (0.19, "+---------", 36),
    (0.24, "----+-----", 36),
    (0.30, "-++----+--", 84),
    (0.36, "----------", 0),
    (0.45, "+-+-------", 64),
    (0.55, "++++++-++-", 64),
    (0.64, "+++-++--++", 84),
    (0.76, "+++-+++++-", 64),
    (0.88, "+-+-+-++-+", 96),
    (1.00, "-++----+--", 84),
    (0.88, "-+---++-++", 100),
    (0.76, "--+-+-----", 64),
    (0.64, "--+---+-++", 96),
    (0.54, "+--+----+-", 84),
    (0.45, "+---------", 36),
    (0.36, "++++++++-+", 36),
    (0.30, "+++++--+-+", 84),
    (0.24, "----+-----", 36),
    (0.19, "++++++++++", 0),
    (0.15, "+++++++++-", 36),
)
# The flip score is even in f, so the 0.55 printed at f = -0.4 is a slip for 0.54.
TABLE1_SLIPS: dict[float, float] = {-0.4: 0.54}


class Synthetic(NamedTuple):
    """A line of Table 2: wins of 100, and p-values."""

    roc_wins: int
    roc_p: float
    prc_wins: int
    prc_p: float


# Table 2, by (p, alpha): here clarity and steepness.
TABLE2: dict[tuple[float, float], Synthetic] = {
    (1.0, 0.1): Synthetic(61, 0.0542, 61, 0.0535),
    (1.0, 1.0): Synthetic(75, 4.11e-11, 75, 2.97e-11),
    (1.0, 2.0): Synthetic(88, 6.26e-14, 89, 3.65e-14),
    (1.0, 5.0): Synthetic(73, 3.56e-5, 75, 2.26e-5),
    (2.0, 0.1): Synthetic(50, 0.5684, 49, 0.6199),
    (2.0, 1.0): Synthetic(51, 0.1822, 50, 0.1799),
    (2.0, 2.0): Synthetic(61, 0.0007, 61, 0.0009),
    (2.0, 5.0): Synthetic(49, 0.5075, 49, 0.7463),
    (5.0, 0.1): Synthetic(32, 0.4784, 34, 0.8479),
    (5.0, 1.0): Synthetic(44, 0.0615, 42, 0.0817),
    (5.0, 2.0): Synthetic(48, 0.2334, 49, 0.3661),
    (5.0, 5.0): Synthetic(37, 0.0562, 33, 0.028),
}


class Size(NamedTuple):
    """A line of Table 3."""

    n_train: int
    n_test: int | None
    n_features: int


class Cell(NamedTuple):
    """A cell of Table 4: wins of 100, and whether the paper calls them significant (p <= 0.01)."""

    roc_wins: int
    roc_significant: bool
    prc_wins: int
    prc_significant: bool


def _cells(text: str) -> dict[float, Cell]:
    """Three cells as the paper prints them, such as "59 65  79 73  66 53*"."""
    counts = text.split()
    cells = zip((1.0, 2.0, 5.0), counts[::2], counts[1::2], strict=True)
    return {
        steepness: Cell(int(roc.rstrip("*")), "*" not in roc, int(prc.rstrip("*")), "*" not in prc)
        for steepness, roc, prc in cells
    }


# Tables 3 and 4, in the paper's order: training and test examples, features; wins at steepness 1, 2 and 5, p = 1.
_BENCHMARKS: dict[str, tuple[int, int | None, int, str]] = {
    "a1a": (1605, 30956, 123, "59 65  79 73  66 53*"),
    "a2a": (2265, 30296, 123, "64 68  83 79  66 57"),
    "a3a": (3185, 29376, 123, "74 76  88 83  71 63"),
    "a4a": (4781, 27780, 123, "80 83  88 84  67 70"),
    "a5a": (6414, 26147, 123, "82 83  95 92  79 74"),
    "australian": (690, None, 14, "44* 43*  47* 50*  41* 43*"),
    "breast-cancer": (683, None, 10, "51 54  60 63  61 62"),
    "diabetes": (768, None, 8, "84 80  81 76  67 65"),
    "fourclass": (862, None, 8, "38* 37*  41* 39*  46* 41"),
    "german.numer": (1000, None, 24, "79 75  73 67  49* 48*"),
    "heart": (270, None, 13, "55* 52*  63* 58*  57* 50*"),
    "ionosphere": (351, None, 34, "56* 56*  64 65  49* 54*"),
    "liver-disorders": (345, None, 6, "67 64  61 60*  52* 54*"),
    "splice": (1000, 2175, 60, "93 93  90 90  70 68"),
    "sonar": (208, None, 60, "62 66  66 64  56* 50*"),
    "w1a": (2477, 47272, 300, "38* 37*  48* 46*  28 32"),
    "w2a": (3470, 46279, 300, "64 57  69 61  46* 44*"),
    "w3a": (4912, 44837, 300, "54* 48*  52* 48*  34 33"),
    "w4a": (7366, 42383, 300, "85 81  79 74  71 59*"),
    "w5a": (9888, 39861, 300, "89 80  89 78  75 66"),
}
TABLE3 = {name: Size(n_train, n_test, n_features) for name, (n_train, n_test, n_features, _) in _BENCHMARKS.items()}
TABLE4 = {name: _cells(wins) for name, (*_, wins) in _BENCHMARKS.items()}
