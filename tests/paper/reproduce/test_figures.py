import csv

import numpy as np
import pytest
from marks import in_slow_run

from crowdwise.exceptions import MissingExtraError
from crowdwise.paper.reproduce import Options, figures, reproduce

pytest.importorskip("matplotlib")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["figure1", in_slow_run("figure2"), in_slow_run("figure3")])
def test_a_figure_leaves_its_points_and_both_pictures_always_the_same_bytes(tmp_path, name):
    for place in ("one", "two"):
        reproduce(name, Options(out=tmp_path / place))
    for file, start in (("rows.csv", b"curve,x,y,check\n"), (f"{name}.png", b"\x89PNG"), (f"{name}.pdf", b"%PDF")):
        one, two = ((tmp_path / place / name / file).read_bytes() for place in ("one", "two"))
        assert one.startswith(start)
        assert one == two
    with open(tmp_path / "one" / name / "rows.csv", newline="") as file:
        assert len({row["curve"] for row in csv.DictReader(file)}) >= 4


def test_figure1_is_the_papers_weight():
    for steepness, curve in zip(figures.STEEPNESSES, figures.weights(), strict=True):
        np.testing.assert_allclose(curve.y, 1 / (1 + np.exp(steepness * curve.x)), rtol=1e-12)


def test_figure2_starts_at_four_over_k_plus_one_squared_and_rises_through_one():
    for margin, curve in zip(figures.MARGINS, figures.improvements(), strict=True):
        n_regions = round(1 / margin) - 1
        assert curve.y[0] == pytest.approx(4 / (n_regions + 1) ** 2 / margin**2 * margin**2)
        assert (np.diff(curve.y) > 0).all()
        assert curve.y[-1] > 1
    at_spread_1 = [curve.y[np.searchsorted(curve.x, 1.0)] for curve in figures.improvements()]
    assert at_spread_1 == sorted(at_spread_1, reverse=True)  # the smaller the margin, the more is gained


def test_figure3_is_even_and_falls_faster_the_less_noise_there_is():
    curves = figures.flip_scores()
    for curve in curves:
        np.testing.assert_allclose(curve.y, curve.y[::-1])
        assert curve.y.max() == curve.y[len(curve.y) // 2] == 1
    assert [curve.y[0] for curve in curves] == sorted((curve.y[0] for curve in curves), reverse=True)


def test_lines_can_be_told_apart_in_grey():
    """No two share a dash, and they get lighter in steps or change dash."""
    assert len({str(dash) for dash in figures._DASHES}) == len(figures._DASHES) == len(figures._COLOURS)


def test_without_matplotlib_it_says_which_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"crowdwise\[plot\]"):
        reproduce("figure1", Options(out=tmp_path))
