import json

import pytest

from crowdwise.paper.reproduce import Options, reproduce, table2
from crowdwise.paper.reproduce.paper import TABLE2
from crowdwise.paper.reproduce.table2 import trial_rows, verdict
from crowdwise.paper.reproduce.wins import Wins

FILES = ("rows.csv", "table2.md", "table2.tex", "table2.json")


def content(out):
    return [(out / "table2" / name).read_bytes() for name in FILES]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One undisturbed quick run, shared by the tests."""
    out = tmp_path_factory.mktemp("quick")
    return reproduce("table2", Options(out=out, trials=8, jobs=1)), out


def test_the_order_of_effects_is_the_papers(quick):
    """Much noise: weighting clearly helps. Little noise: there is nothing to gain."""
    settings = {(one["clarity"], one["steepness"]): one["roc"] for one in quick[0].summary["settings"]}
    assert len(settings) == 12
    gain = {place: roc["mean"] - roc["mean_unweighted"] for place, roc in settings.items()}
    assert gain[1.0, 2.0] > gain[1.0, 0.1]
    assert gain[1.0, 2.0] > 0.005
    assert all(abs(gain[clarity, steepness]) < 0.005 for clarity, steepness in gain if clarity > 1)
    unweighted = [settings[clarity, 1.0]["mean_unweighted"] for clarity in (1.0, 2.0, 5.0)]
    assert unweighted == sorted(unweighted)
    assert settings[1.0, 2.0]["wins"] >= 6


def test_only_noisy_data_are_redrawn_and_the_table_says_how_many(quick):
    redrawn = {one["clarity"]: one["redrawn"] for one in quick[0].summary["settings"]}
    assert redrawn[1.0] > 0
    assert redrawn[5.0] == 0
    assert f"| {redrawn[1.0]} |" in quick[0].as_text()


def test_the_paper_stands_beside_ours(quick):
    text = quick[0].as_text()
    assert "(88)" in text
    assert "(6.3e-14)" in text
    assert text.count("| α=") == 12
    assert json.loads((quick[1] / "table2" / "run.json").read_text())["seconds"] > 0


@pytest.mark.slow
def test_one_process_gives_the_same_bytes_as_two_and_goes_on_where_it_was(quick, tmp_path):
    with open(quick[1] / "table2" / "rows.csv", "rb") as file:
        beginning = file.read(600)
    reproduce("table2", Options(out=tmp_path, trials=1))
    (tmp_path / "table2" / "rows.csv").write_bytes(beginning)  # killed in the middle of a row
    reproduce("table2", Options(out=tmp_path, trials=8, jobs=2))
    assert content(tmp_path) == content(quick[1])


def test_a_trial_depends_on_its_place_alone():
    one, again = (trial_rows((2.0, 5), Options(seed=4), [1.0]) for _ in range(2))
    assert one == again
    assert one != trial_rows((2.0, 6), Options(seed=4), [1.0])
    assert one[0]["roc"] == trial_rows((2.0, 5), Options(seed=4), [0.5, 1.0])[0]["roc"]


def test_several_seeds_are_put_together(tmp_path):
    report = reproduce("table2", Options(out=tmp_path, trials=2, seed=3, seeds=2, steepnesses=(2.0,)))
    assert report.summary["seeds"] == [3, 4]
    single = reproduce("table2", Options(out=tmp_path / "single", trials=2, seed=4, steepnesses=(2.0,)))
    for together, alone in zip(report.summary["settings"], single.summary["settings"], strict=True):
        assert together["roc"]["wins"][1] == alone["roc"]["wins"]
        assert together["agrees"] == together["verdicts"].count("agrees")
    assert (tmp_path / "table2-seeds" / "table2-seeds.md").exists()


def test_near_the_paper_is_counted_apart_from_the_verdict():
    """At p = 5 and steepness 0.1 the paper has 32 and 34 wins: 55 are no strong effect, but not near."""
    paper = TABLE2[5.0, 0.1]._asdict()

    def run(seed, roc, prc):
        counts = {"roc": vars(wins(roc, 0.5)), "prc": vars(wins(prc, 0.5))}
        setting = {"clarity": 5.0, "steepness": 0.1, "paper": paper, "redrawn": 0, "verdict": "agrees", **counts}
        return {"seed": seed, "trials": 100, "settings": [setting]}

    summary = table2.summarize_seeds([run(0, 55, 55), run(1, 46, 47), run(2, 48, 40)])
    assert summary["settings"][0]["within"] == 1
    assert summary["settings"][0]["agrees"] == 3
    assert "| 1 | 3 |" in table2.seeds_table(summary).markdown()


def wins(count, p_value):
    return Wins(count, 0, 100, p_value, 0.9, 0.9)


@pytest.mark.parametrize(
    ("place", "roc", "prc", "expected"),
    [
        ((1.0, 2.0), wins(80, 1e-9), wins(80, 1e-9), "agrees"),
        ((1.0, 2.0), wins(70, 1e-9), wins(80, 1e-9), "AU-ROC -18 wins"),
        ((1.0, 2.0), wins(80, 0.02), wins(80, 1e-9), "not significant"),
        ((1.0, 5.0), wins(63, 0.2), wins(62, 0.2), "agrees"),
        ((2.0, 0.1), wins(60, 0.001), wins(60, 0.001), "agrees"),
        ((5.0, 0.1), wins(76, 0.001), wins(40, 0.5), "strong effect: AU-ROC +44 wins"),
        ((1.0, 3.0), wins(63, 0.2), wins(62, 0.2), "not in the paper"),
    ],
)
def test_what_agrees_and_what_does_not(place, roc, prc, expected):
    assert verdict(*place, roc, prc) == expected
