import json
import re

import pytest

pytest.importorskip("click")
pytest.importorskip("filelock")
pytest.importorskip("jinja2")

from crowdwise.__main__ import main
from crowdwise.demo import ABOUT, write_demo


@pytest.mark.slow
def test_the_demo_runs_what_a_newcomer_would_type_and_ends_with_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "tried"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert len(lines) <= 40  # one screen
    assert max(map(len, lines)) <= 120
    assert lines[-1] == f"The report: {tmp_path}/tried/run/report.html"
    assert (tmp_path / "tried" / "run" / "report.html").stat().st_size > 10_000
    found = re.search(
        r"consensus accuracy is ([\d.]+)%.*majority-vote accuracy ([\d.]+)%", " ".join(printed.out.split())
    )
    consensus, majority = map(float, found.groups())
    assert consensus > majority + 4
    assert main(["demo", "tried"]) == 73  # nothing is overwritten
    assert not (write_demo("tried", force=True) / "run").exists()


def test_the_demo_prints_one_document_of_json_with_the_result_of_every_command(
    tmp_path, monkeypatch, set_constants, capsys
):
    monkeypatch.chdir(tmp_path)
    set_constants("crowdwise.demo", COMMANDS=(("fit", "labels.csv", "--out", "run"), ("next", "run", "-n", "3")))
    assert main(["demo", "tried", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "crowdwise.demo/1"
    assert (tmp_path / "tried" / "run" / "report.html").samefile(found["report"])
    assert [one["result"]["schema"] for one in found["commands"]] == ["crowdwise.fit/1", "crowdwise.next/1"]
    note = json.loads((tmp_path / "tried" / "run" / "run.json").read_text())
    assert note["command"] == found["commands"][0]["command"]


def test_what_the_demo_says_of_its_crowd_is_true(tmp_path):
    folder = write_demo(tmp_path / "demo")
    rows = [line.split(",") for line in (folder / "labels.csv").read_text().splitlines()[1:]]
    tasks, workers, classes = (set(column) for column in zip(*rows, strict=True))
    said = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", ABOUT)]
    assert said == [len(workers), len(tasks), *sorted(map(int, classes))]
    pairs = {(task, worker) for task, worker, _ in rows}
    assert len(pairs) == len(rows) == len(workers) * len(tasks)  # everyone labelled every photograph
    known = [line.split(",")[0] for line in (folder / "truth.csv").read_text().splitlines()[1:]]
    assert sorted(known) == sorted(tasks)
    source = (folder / "SOURCE.txt").read_text(encoding="utf-8")
    assert "Clear BSD licence" in source
    assert "Copyright (c) 2011-2012 Peter Welinder" in source
    assert "NO EXPRESS OR IMPLIED LICENSES TO ANY PARTY'S PATENT RIGHTS" in source


def test_data_that_come_with_the_package_have_their_licences_beside_them():
    from pathlib import Path

    import crowdwise

    shipped = Path(crowdwise.__file__).parent / "datasets" / "shipped"
    described = (shipped / "README.md").read_text(encoding="utf-8")
    for folder in (shipped / "crowd").iterdir():
        (row,) = (line for line in described.splitlines() if f"`crowd/{folder.name}`" in line)
        (licence,) = re.findall(r"`(LICENSE[^`]*)`", row)
        assert (shipped / licence).stat().st_size > 1000
