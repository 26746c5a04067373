"""The commands as they are typed: what they print, leave and refuse."""

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from crowd_files import write_crowd
from marks import in_slow_run

pytest.importorskip("click")
pytest.importorskip("filelock")
pytest.importorskip("jinja2")

from crowdwise import load
from crowdwise.__main__ import main
from crowdwise.cli import ExitCode
from crowdwise.cli.group import COMMANDS, crowd
from crowdwise.weights import Fading, SelfPaced

WITH_FEATURES = ["labels.csv", "features.csv", "--columns", "size,colour"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of a small crowd, and a run of them."""
    folder = write_crowd(tmp_path_factory.mktemp("crowd"))
    before = os.getcwd()
    os.chdir(folder)
    assert main(["fit", *WITH_FEATURES, "--truth", "truth.csv", "--quiet"]) == 0
    os.chdir(before)
    return folder


@pytest.fixture
def here(files, monkeypatch):
    """In the folder of the crowd."""
    monkeypatch.chdir(files)
    return files


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, what it printed, what it said."""

    def runner(*arguments):
        code = main(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return runner


# ------------------------------------------------------------------ what commands print


def test_fit_prints_ten_lines_and_says_what_it_took_for_what(here, run, tmp_path):
    code, out, err = run("fit", *WITH_FEATURES, "--truth", "truth.csv", "--out", str(tmp_path / "run"))
    assert code == 0
    assert "columns: task -> example, worker -> annotator, label -> label" in err
    assert "features: 'size' as numbers, scaled" in err
    assert "60 examples with labels and features" in err
    lines = out.splitlines()
    assert 8 <= len(lines) <= 16
    assert max(map(len, lines)) <= 110
    assert lines[-1] == f"Report      {tmp_path / 'run'}/report.html"
    assert "eve" in out
    assert "<script" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_known_answers_are_used_only_if_asked(here, run, tmp_path):
    lines = (here / "truth.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "some.csv").write_text("\n".join(lines[:26]), encoding="utf-8")
    truth = ["--truth", str(tmp_path / "some.csv")]
    code, out, _ = run("fit", *WITH_FEATURES, *truth, "--use-truth", "--out", str(tmp_path / "run"))
    assert code == 0
    assert "Calibrated with 25 known answers: held-out accuracy" in " ".join(out.split())
    note = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert note["settings"]["use_truth"]
    consensus = (tmp_path / "run" / "consensus.csv").read_text(encoding="utf-8").splitlines()
    said = {line.split(",")[0]: line.split(",")[1:3] for line in consensus}
    known = dict(line.split(",")[:2] for line in lines[1:26])
    assert all(said[example] == [label, "1"] for example, label in known.items())
    for options, words in ((["--use-truth"], "Calibrated with 25 known"), ([], "On the 25 examples with a known")):
        code, out, err = run("consensus", "labels.csv", *truth, *options)
        assert code == 0
        assert words in err
        assert ("1,1,0" in out or ",1,0,1," in out) == bool(options)


def test_known_answers_in_a_column_of_the_labels_are_used_too(here, run, tmp_path):
    rows = [f"{i},{'yes' if i % 2 else 'no'},{'yes' if i % 3 else 'no'},{'yes' if i < 9 else ''}" for i in range(30)]
    (tmp_path / "votes.csv").write_text("\n".join(["id,gpt,claude,truth", *rows]), encoding="utf-8")
    code, out, err = run("fit", str(tmp_path / "votes.csv"), "--use-truth", "--out", str(tmp_path / "run"))
    assert code == 0
    assert "known answers: truth (9)" in err
    assert "9 known answers: held-out accuracy" in out
    code, _, err = run("consensus", str(tmp_path / "votes.csv"), "--use-truth")
    assert code == 0
    assert "9 known answers: held-out accuracy" in err


def test_the_command_that_makes_a_run_again_is_noted_as_it_was_typed(here):
    note = json.loads((here / "run" / "run.json").read_text())
    assert note["command"] == "crowdwise fit labels.csv features.csv --columns size,colour --truth truth.csv --quiet"


def test_quiet_says_nothing_and_verbose_says_how_long_it_took(here, run, tmp_path):
    assert run("consensus", "labels.csv", "-q")[2] == ""
    assert re.search(r"Working: \d+\.\d s", run("consensus", "labels.csv", "-v")[2])


@pytest.mark.parametrize("command", ["consensus", "annotators", "next"])
def test_a_table_is_csv_in_a_pipe_and_the_same_from_labels_and_from_their_run(here, run, tmp_path, command):
    assert run("fit", "labels.csv", "--out", str(tmp_path / "run"))[0] == 0
    (code, by_labels, _), (_, by_run, _) = run(command, "labels.csv"), run(command, str(tmp_path / "run"))
    assert code == 0
    assert by_labels == by_run
    assert by_labels.count("\n") == {"consensus": 61, "annotators": 6, "next": 51}[command]
    rows = [json.loads(run(command, where, "--json")[1]) for where in ("labels.csv", str(tmp_path / "run"))]
    assert rows[0]["schema"] == rows[1]["schema"] == f"crowdwise.{command}/1"
    for one, other in zip(rows[0]["rows"], rows[1]["rows"], strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert value == (pytest.approx(other[name], rel=1e-5) if isinstance(value, float) else other[name])


def test_next_prints_as_many_as_wanted(here, run):
    assert run("next", "run", "-n", "3")[1].count("\n") == 4


def test_groups_share_a_vote(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 150)
    labels = np.where(rng.random((150, 4)) < 0.2, 1 - truth[:, None], truth[:, None])
    rows = [f"{i},{who},{labels[i, who]}\n" for i in range(150) for who in range(4)]
    Path("labels.csv").write_text("task,worker,label\n" + "".join(rows))
    assert "groups were given" not in run("fit", "labels.csv", "--out", "alone")[1]
    code, summary, _ = run("fit", "labels.csv", "--group", "0,1", "--group", "3", "--out", "run")
    assert code == 0
    assert "groups were given" in summary
    alone, together = (run("consensus", "labels.csv", *options)[1] for options in ([], ["--group", "0,1"]))
    assert alone != together
    code, _, errors = run("consensus", "labels.csv", "--group", "0,1", "--group", "1,2")
    assert (code, "'1' is in two" in errors) == (65, True)
    code, _, errors = run("consensus", "run", "--group", "0,1")
    assert (code, "give groups to crowdwise fit" in errors) == (2, True)


def test_next_for_the_crowd_is_the_same_from_labels_and_from_their_run(here, run, tmp_path):
    by_expert, by_annotator = run("next", "labels.csv")[1], run("next", "labels.csv", "--crowd")[1]
    assert by_annotator != by_expert
    assert run("fit", "labels.csv", "--out", str(tmp_path / "run"))[0] == 0
    assert run("next", str(tmp_path / "run"))[1] == by_expert
    assert run("next", str(tmp_path / "run"), "--crowd")[1] == by_annotator


def test_next_draws_at_random_by_a_seed_and_the_same_from_labels_and_from_their_run(here, run, tmp_path):
    assert run("fit", "labels.csv", "--out", str(tmp_path / "run"))[0] == 0
    first, again, other = (run("next", "labels.csv", "-n", "8", "--at-random", "--seed", seed)[1] for seed in "112")
    assert first == again != other
    assert first.count("\n") == 9
    assert first == run("next", str(tmp_path / "run"), "-n", "8", "--at-random", "--seed", "1")[1]
    every = run("next", "labels.csv", "-n", "60", "--at-random")[1].splitlines()
    assert sorted(every) == sorted(run("next", "labels.csv", "-n", "60")[1].splitlines())


def test_a_table_is_aligned_on_a_terminal(here, monkeypatch):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["annotators", "run", "-q"]) == 0
    header, first, *_ = sys.stdout.getvalue().splitlines()
    assert re.match(r"annotator +labels +expertise", header)
    assert re.match(r"\w+ +\d+ +\d+\.\d{3}", first)


def test_predict_takes_new_rows_in_any_order_and_says_what_it_does_not_know(here, run, tmp_path):
    (tmp_path / "new.csv").write_text("colour,size,id\nred,5,x1\ngreen,,x2\n")
    code, out, err = run("predict", "run", str(tmp_path / "new.csv"))
    assert code == 0
    assert out.splitlines()[0] == "example,label,confidence,p(no),p(yes)"
    assert out.splitlines()[1].startswith("x1,yes,")
    assert "1 row has none of the known categories in 'colour'" in err
    assert "1 gap in 'size' was filled with the median" in err


def test_check_prints_one_screen_or_json(here, run):
    code, out, _ = run("check", *WITH_FEATURES)
    assert code == 0
    assert "Krippendorff's alpha" in out
    found = json.loads(run("check", *WITH_FEATURES, "--json")[1])
    assert found["schema"] == "crowdwise.check/1"
    assert found["size"]["annotators"] == 5
    assert found["notes"]


def test_fit_prints_json(here, run, tmp_path):
    found = json.loads(run("fit", "labels.csv", "--out", str(tmp_path / "run"), "--json")[1])
    assert found["schema"] == "crowdwise.fit/1"
    assert found["out"] == str(tmp_path / "run")
    assert found["summary"]["size"]["examples"] == 60


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """Ratings of four annotators, cy the worst, with features and known answers."""
    folder, rng = tmp_path_factory.mktemp("rated"), np.random.default_rng(0)
    size = rng.normal(size=60)
    rows = [
        f"{i},{who},{3 + size[i] + noise * rng.normal():.2f}"
        for i in range(60)
        for who, noise in {"ann": 0.2, "bob": 0.4, "cy": 1.5, "dee": 0.4}.items()
        if rng.random() < 0.8
    ]
    (folder / "ratings.csv").write_text("\n".join(["item,rater,rating", *rows]))
    (folder / "features.csv").write_text("\n".join(["item,size", *(f"{i},{x:.3f}" for i, x in enumerate(size))]))
    (folder / "truth.csv").write_text(
        "item,rating\n" + "".join(f"{i},{3 + size[i]:.3f}\n" for i in range(9)) + "9,NA\n"
    )
    return folder


def test_ratings_go_from_files_to_a_consensus_and_predictions(rated, run, tmp_path, monkeypatch):
    monkeypatch.chdir(rated)
    out = str(tmp_path / "run")
    code, said, _ = run("fit", "ratings.csv", "features.csv", "--ratings", "--truth", "truth.csv", "--out", out)
    assert code == 0
    assert "ratings; " in said
    found = re.search(r"error of the consensus is ([\d.]+), that of the plain mean ([\d.]+)\.", " ".join(said.split()))
    error, plain = map(float, found.groups())
    assert error < plain
    rows = json.loads(run("consensus", out, "--json")[1])["rows"]
    assert {type(row["label"]) for row in rows} == {float}
    assert [row["annotator"] for row in json.loads(run("annotators", out, "--json")[1])["rows"]][-1] == "cy"
    assert isinstance(json.loads(run("next", out, "--json")[1])["rows"][0]["label"], float)
    assert run("predict", out, "features.csv")[1].startswith("example,label\n0,")
    assert run("convert", out, str(tmp_path / "out.csv"))[0] == 0
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search("majority|Confidence is|Accuracy", shown)


def test_check_describes_ratings(rated, run, monkeypatch):
    monkeypatch.chdir(rated)
    code, out, _ = run("check", "ratings.csv", "--ratings")
    assert code == 0
    assert re.search(r"ratings +-?[\d.]+ to [\d.]+, median", out)
    assert "classes " not in out.partition("contested")[0]
    assert json.loads(run("check", "ratings.csv", "--ratings", "--json")[1])["classes"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit", "ratings.csv", "features.csv"], 65, "--ratings"),
        (["fit", "ratings.csv", "features.csv", "--ratings", "--model", "logistic"], 2, "use ridge or labels-only"),
        (["fit", "ratings.csv", "features.csv", "--ratings", "--classes", "1,2"], 2, "one of them"),
        (["fit", "ratings.csv", "--classes", "1,1"], 2, "different names"),
        (["fit", "ratings.csv", "--classes", "1,2"], 65, "declared classes [1, 2]; found"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_ratings_and_classes_that_do_not_go_together_are_told(
    rated, run, monkeypatch, tmp_path, arguments, code, words
):
    monkeypatch.chdir(rated)
    found, out, err = run(*arguments, "--out", str(tmp_path / "run"))
    assert (found, out) == (code, "")
    assert words in err


def test_declared_classes_have_their_order_in_the_tables(here, run):
    code, out, _ = run("consensus", "labels.csv", "--classes", "yes, no, 'neither, nor'".replace("'", '"'))
    assert code == 0
    assert out.splitlines()[0].startswith('example,label,confidence,p(yes),p(no),"p(neither, nor)",labels')


def test_what_means_no_label_means_the_same_in_the_truth(here, run, tmp_path):
    (tmp_path / "truth.csv").write_text("task,label\n0,-1\n1,yes\n2,NA\n3,unsure\n")
    no_labels = ["--missing", "-1", "--abstain", "unsure"]
    files = ["labels.csv", "--truth", str(tmp_path / "truth.csv"), "--out", str(tmp_path / "run")]
    code, _, err = run("fit", *files, *no_labels)
    assert code == 0
    assert "1 known answer of these examples" in err
    assert "declared as no label, but never given: '-1', 'unsure'" in err
    (tmp_path / "truth.csv").write_text("task,label\n0, Yes\n1,NO\n2,-1\n")
    assert run("fit", *files, "--force", "--strip", "--missing", "-1")[0] == 0
    code, _, err = run("fit", *files, "--force", "--strip")
    assert code == 65
    assert "If it means that the answer is not known: --missing -1" in err
    (tmp_path / "truth.csv").write_text("task,label\n0, Yes\n1,NO\n2,UNSURE\n")
    assert run("fit", *files, "--force", "--strip", "--abstain", "unsure")[0] == 0


def test_the_columns_of_annotators_are_named_with_commas(run, tmp_path):
    rows = [f"{i},why {i},{'ab'[i % 2]},{'ab'[i % 3 > 0]},a" for i in range(12)]
    (tmp_path / "wide.csv").write_text("\n".join(["id,reason,gpt 4,claude,llama", *rows]))
    check = ["check", str(tmp_path / "wide.csv"), "--wide"]
    code, _, err = run(*check)
    assert code == 65
    assert "--annotator 'gpt 4,claude,llama' --wide" in err
    code, out, err = run(*check, "--annotator", "gpt 4, claude,llama")
    assert (code, out[:41]) == (0, "36 labels of 12 examples by 3 annotators\n")
    assert "other columns: reason" in err
    assert run(*check, "--annotator", "claude,,llama")[0] == 2


def test_a_run_without_its_files_says_what_makes_it_again(here, run, tmp_path):
    shutil.copytree(here / "run", tmp_path / "run")
    for name, arguments in (
        ("model.crowdwise", ["predict", str(tmp_path / "run"), "features.csv"]),
        ("model.crowdwise", ["convert", str(tmp_path / "run"), str(tmp_path / "x.csv")]),
        ("labels.crowdwise", ["next", str(tmp_path / "run")]),
    ):
        (tmp_path / "run" / name).unlink(missing_ok=True)
        code, _, err = run(*arguments)
        assert code == 66
        assert f"{name} no longer exists: make the run again (crowdwise fit labels.csv" in err


def test_one_annotator_is_told_to_ask_a_second_one(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("task,worker,label\n1,ann,a\n2,ann,b\n")
    _, out, _ = run("fit", "one.csv")
    assert "Consensus   the label of the only annotator" in out
    assert "There is one annotator" in out
    assert "ask a second one" in run("next", "run")[1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.xlsx", b"PK\x03\x04" + bytes(30)),
        ("labels", b"PK\x03\x04....xl/workbook.xml"),
        ("labels.xls", b"\xd0\xcf\x11\xe0" + bytes(30)),
        ("labels", b"PK\x03\x04..mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
    ],
)
def test_a_spreadsheet_has_to_be_saved_as_csv(run, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    code, _, err = run("check", str(tmp_path / name))
    assert code == 65
    assert "is a spreadsheet: save its sheet as CSV" in err


def test_labels_come_from_standard_input(here, run, monkeypatch):
    content = (here / "labels.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = run("consensus", "-")
    assert code == 0
    assert out == run("consensus", "labels.csv")[1]


def test_convert_writes_labels_and_the_consensus_of_a_run(here, run, tmp_path):
    assert run("convert", "labels.csv", str(tmp_path / "wide.csv"), "--to", "wide")[0] == 0
    assert (tmp_path / "wide.csv").read_text().startswith("example,ann,bob,cy,dee,eve\n")
    assert run("consensus", str(tmp_path / "wide.csv"), "--wide")[1] == run("consensus", "labels.csv")[1]
    assert run("convert", "labels.csv", str(tmp_path / "wide.csv"))[0] == 73
    assert run("convert", "run", str(tmp_path / "task.csv"), "--to", "crowd-kit")[0] == 0
    assert (tmp_path / "task.csv").read_text().startswith("task,agg_label\n")
    done = json.loads(run("convert", "run", str(tmp_path / "task.csv"), "--force", "--json")[1])
    assert (done["schema"], done["format"]) == ("crowdwise.convert/1", "csv")


def test_simulate_writes_files_that_fit_takes(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("simulate", "crowd", "--examples", "40", "--adversaries", "1", "--seed", "3")
    assert code == 0
    assert run("simulate", "crowd")[0] == 73
    assert sorted(path.name for path in (tmp_path / "crowd").iterdir()) == ["features.csv", "labels.csv", "truth.csv"]
    tried = shlex.split(re.search(r"Try: crowdwise (.*)", out)[1])
    assert run(*tried)[0] == 0
    first = (tmp_path / "crowd" / "labels.csv").read_bytes()
    done = run("simulate", "crowd", "--examples", "40", "--adversaries", "1", "--seed", "3", "--force", "--json")
    assert json.loads(done[1])["schema"] == "crowdwise.simulate/1"
    assert (tmp_path / "crowd" / "labels.csv").read_bytes() == first


def test_simulate_as_in_the_paper(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = json.loads(run("simulate", "crowd", "--paper", "--json")[1])["settings"]
    expected = {"examples": 1000, "features": 10, "classes": 2, "annotators": 10, "experts": 1, "adversaries": 1}
    assert settings == {**expected, "clarity": 1.0, "missing": 0.0, "seed": 0, "paper": True}
    X = np.loadtxt("crowd/features.csv", delimiter=",", skiprows=1)[:, 1:]
    second = np.array(["class 2" in line for line in Path("crowd/truth.csv").read_text().splitlines()[1:]])
    assert X[second].mean(axis=0) == pytest.approx(np.full(10, 0.5), abs=0.2)
    assert X[~second].mean(axis=0) == pytest.approx(np.full(10, -0.5), abs=0.2)
    assert X[second].std(axis=0) == pytest.approx(np.ones(10), abs=0.2)
    changed = json.loads(run("simulate", "other", "--clarity", "2", "--paper", "--examples", "40", "--json")[1])
    assert changed["settings"] == {**settings, "clarity": 2.0, "examples": 40}
    assert run("simulate", "three", "--paper", "--classes", "3")[0] == 2


def test_a_curriculum_reaches_the_model(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("simulate", "crowd", "--paper", "--examples", "120", "--clarity", "3")
    files = ("crowd/labels.csv", "crowd/features.csv", "--model", "ridge", "--steepness", "2")
    for name, curriculum in (("fading:2", Fading(2.0)), ("self-paced:0.4,1.5", SelfPaced(0.4, 1.5)), ("fixed", None)):
        code, _, err = run("fit", *files, "--out", name, "--curriculum", name)
        assert (code, load(f"{name}/model.crowdwise").curriculum) == (0, curriculum), err
    run("fit", *files, "--out", "again", "--curriculum", "fading:2")
    assert Path("again/consensus.csv").read_bytes() == Path("fading:2/consensus.csv").read_bytes()
    for wrong in ("fading:x", "fading:0", "easy", "smooth:1,2"):
        assert run("fit", *files, "--out", "wrong", "--curriculum", wrong)[0] == 2
    assert "has no curriculum" in run("fit", "crowd/labels.csv", "--curriculum", "smooth")[2]


# ------------------------------------------------------------------ help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples_that_the_command_understands(name, run):
    code, out, _ = run(name, "--help")
    assert code == 0
    examples = re.findall(r"^ *(crowdwise .*)$", out.partition("Examples:")[2], flags=re.MULTILINE)
    assert examples
    assert out.rstrip().endswith(examples[-1])
    for example in examples:
        _, command, *arguments = shlex.split(example.partition(" > ")[0])
        assert command == name
        crowd.get_command(None, command).make_context(command, arguments)  # raises if it is typed wrongly


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json_if_asked_to(name):
    assert "--json" in {word for option in crowd.get_command(None, name).params for word in option.opts}


def test_the_page_about_the_command_line_shows_commands_that_are_understood():
    page = (Path(__file__).parents[1] / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    shown = re.findall(r"^crowdwise [a-z].*$", page, flags=re.MULTILINE)
    assert len(shown) > 10
    for line in shown:
        _, command, *arguments = shlex.split(line.partition(" > ")[0], comments=True)
        crowd.get_command(None, command).make_context(command, arguments)
    codes = next(line for line in page.splitlines() if line.startswith("Exit codes: "))
    for code in ExitCode:
        assert re.search(rf"[:;] {code.value} ", codes)


def test_the_page_about_the_command_line_names_every_file_of_a_run(here):
    page = (Path(__file__).parents[1] / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    for path in (here / "run").iterdir():
        assert f"`{path.name}`" in page


@pytest.mark.parametrize("command", ["fit", in_slow_run("check"), in_slow_run("predict")])
def test_help_of_a_command_imports_nothing_slow(command):
    script = ["-X", "importtime", "-m", "crowdwise", command, "--help"]
    done = subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True)
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"numpy", "scipy", "sklearn", "crowdwise.runs", "crowdwise.exceptions"}


def test_a_shell_can_complete_commands_and_options():
    for typed, expected in (("crowdwise con", "convert"), ("crowdwise fit --st", "--steepness")):
        settings = {"_CROWDWISE_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        done = subprocess.run(
            [sys.executable, "-c", "from crowdwise.__main__ import main; main()"],
            capture_output=True, text=True, check=False, env=os.environ | settings,
        )  # fmt: skip
        assert f"plain,{expected}" in done.stdout.split()


# ------------------------------------------------------------------ faults


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'task,worker,label\n1,ann,"yes\n', "line 2"),
        (b"task,worker,label\n1,ann,yes\n2,ann\n", "line 3"),
        (b"task,worker,label\n1,ann,y\x00s\n", "line 2"),
        (b"task,worker,label\n1,ann,caf\xe9\n", "--encoding"),
        (b"", "is empty"),
        (b"task,worker,label\n", "no label"),
        (b"a,b,c\n1,2,3\n", "--example COLUMN --annotator COLUMN --label COLUMN"),
        (b"task,worker,label\n1,ann,yes\n1,ann,no\n", "ann"),
        (b"task,worker,label\n1,ann,yes\n2,bob,yes\n", "two classes"),
        (b"PK\x03\x04" + bytes(30), "archive is cut off"),
        (b"\x1f\x8b\x08\x00broken", "cut off or damaged"),
    ],
)
def test_bad_labels_are_65_and_say_where(tmp_path, run, monkeypatch, content, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_bytes(content)
    code, out, err = run("fit", "labels.csv")
    assert (code, out) == (65, "")
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


@pytest.mark.parametrize(
    "pack",
    [
        lambda text: ("\ufeff" + text.replace("\n", "\r\n").replace(",", ";")).encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace(",", "\t").encode(),
    ],
    ids=["BOM, CRLF, semicolons", "UTF-16", "tabs"],
)
def test_labels_as_spreadsheets_save_them_are_read(here, run, tmp_path, pack):
    (tmp_path / "odd.csv").write_bytes(pack((here / "labels.csv").read_text()))
    code, out, _ = run("consensus", str(tmp_path / "odd.csv"))
    assert code == 0
    assert out == run("consensus", "labels.csv")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit", "nothing.csv", "--out", "new"], 66, "there is no file nothing.csv"),
        (["fit", "labels.csv", "nothing.csv", "--out", "new"], 66, "there is no file nothing.csv"),
        (["check", "nothing.csv"], 66, "there is no file nothing.csv"),
        (["next", "nothing"], 66, "there is no file nothing"),
        (["predict", "nothing", "features.csv"], 66, "there is no folder nothing"),
        (["fit", "run", "--out", "new"], 65, "run is the folder of a run"),
        (["fit", "labels.csv", "features.csv", "--text", "words", "--out", "new"], 65, "no column 'words'"),
        (["fit", "labels.csv", "--example", "item", "--out", "new"], 65, "has no column 'item'"),
        (["predict", "run", "labels.csv"], 65, "labels.csv"),
        (["convert", "run", "no/such/folder/x.csv"], 73, "cannot be written"),
        (["fit", "labels.csv"], 73, "run already exists"),
        (["fit", "labels.csv", "--out", "labels.csv"], 73, "is a file"),
        (["fit", "labels.csv", "--out", "labels.csv/run"], 73, "cannot be created"),
        (["fit", "labels.csv", "--model", "ridge"], 2, "learns from features"),
        (["fit", "labels.csv", "--steepness", "steep"], 2, "neither auto nor a number"),
        (["fit", "labels.csv", "--l2", "nan"], 2, "neither auto nor a number"),
        (["fit", "labels.csv", "--choose-by-truth", "--truth", "truth.csv"], 2, "not of labels-only"),
        (["fit", "labels.csv", "--use-truth", "--out", "new"], 65, "there are no known answers to use"),
        (["consensus", "labels.csv", "--use-truth"], 65, "there are no known answers to use"),
        (["consensus", "run", "--truth", "truth.csv"], 2, "is fitted already"),
        (["check", "labels.csv", "--format", "excel"], 2, "--format must be one of"),
        (["check", "labels.csv", "--encoding", "morse"], 2, "not a known encoding"),
        (["convert", "run", "x.csv", "--to", "wide"], 2, "can be written as csv"),
        (["convert", "run", "x.json", "--to", "label-studio"], 2, "--tasks FILE"),
        (["simulate", "crowd", "--annotators", "0"], 2, "needs an annotator"),
        (["next", "labels.csv", "-n", "0"], 2, "-n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_cannot_be_done_is_told_in_a_sentence(here, run, arguments, code, words):
    before = sorted(path.name for path in here.iterdir())
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert "Traceback" not in err
    assert sorted(path.name for path in here.iterdir()) == before


ODD = {"<script>alert(1)</script>": "=cmd|' /C calc'!A0", "=1+1": "<b>ann</b>", "\x1b[31m": "ann"}


def test_formulas_and_markup_in_names_stay_text_everywhere(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(example, who, "yes") for example in ODD for who in ODD.values()] + [("x", "ann", "no")]
    quoted = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + quoted)
    assert run("fit", "labels.csv")[0] == 0
    consensus = (tmp_path / "run" / "consensus.csv").read_text()
    assert "\n'=1+1," in consensus
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<b>ann" not in page
    assert "=1+1" in {row["example"] for row in json.loads(run("consensus", "run", "--json")[1])["rows"]}


CLEAR = "\x1b[2J\u202e"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", f"{CLEAR}.csv"],
        ["fit", "labels.csv", "--example", CLEAR],
        ["fit", "labels.csv", "--out", f"labels.csv/{CLEAR}"],
        ["check", "odd.csv", "--example", "x"],
        ["check", "twice.csv"],
        ["check", "questions.json"],
        ["check", "odd.csv", "--example", "task", "--annotator", CLEAR, "--label", f"label{CLEAR}"],
        ["convert", "labels.csv", CLEAR],
        ["consensus", CLEAR],
        ["next", "labels.csv", f"--{CLEAR}"],
        ["fit", "labels.csv", "--model", CLEAR],
        ["simulate", "--out", CLEAR, "--examples", CLEAR],
        [CLEAR],
    ],
)
def test_names_tell_the_terminal_nothing_but_their_letters(here, run, arguments):
    (here / "odd.csv").write_text(f"task,{CLEAR},label{CLEAR}\na{CLEAR},ann{CLEAR},yes{CLEAR}\nb,ann,no\n")
    (here / "twice.csv").write_text(f"task,{CLEAR},{CLEAR}\na,ann,yes\n")
    results = [{"from_name": f"q{i}{CLEAR}", "type": "choices", "value": {"choices": ["yes"]}} for i in range(2)]
    task = {"id": 1, "data": {"text": "x"}, "annotations": [{"completed_by": 1, "result": results}]}
    (here / "questions.json").write_text(json.dumps([task]))
    said = "".join(map(str, run(*arguments)))
    assert not {"\x1b", "\u202e"} & set(said)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--format", "label-studio"], 65, "is not a table of label-studio: its columns are task, worker, label"),
        (["--format", "mturk"], 65, "is not a table of mturk"),
        (["--format", "toloka"], 65, "is not a table of toloka"),
        *((["--encoding", name], 2, "is not a known encoding") for name in ("idna", "undefined", "hex", "")),
    ],
)
def test_what_a_file_cannot_be_is_told(here, run, arguments, code, words):
    found, _, err = run("check", "labels.csv", *arguments)
    assert (found, words in err) == (code, True), err


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_half_of_a_surrogate_pair_in_a_name_is_escaped(here, run, form):
    rows = [
        {"task": f"{i}\ud800", "worker": f"{who}\ud800", "label": f"{i % 2}\ud800"} for i in range(6) for who in "ab"
    ]
    (here / "half.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run("fit", "half.jsonl", "--out", f"half-{form}", "--report", form)[0] == 0
    assert (
        (here / f"half-{form}" / "consensus.csv")
        .read_text(encoding="utf-8")
        .splitlines()[1]
        .startswith("0\\ud800,0\\ud800,")
    )
    assert "ud800" in (here / f"half-{form}" / f"report.{form}").read_text(encoding="utf-8")


def test_output_that_nobody_reads_is_141_without_a_word(here, monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["consensus", "run"]) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.usefixtures("heard_interrupts")
def test_ended_at_any_moment_the_earlier_run_is_intact(tmp_path, ending):
    write_crowd(tmp_path, n_examples=400)
    command = [sys.executable, "-m", "crowdwise", "fit", *WITH_FEATURES, "--force", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.name != "run.json"}
    for delay in (0.3, 0.8, 1.2, 1.5, 1.8, 2.1, 2.5):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(ending)
        _, message = process.communicate()
        assert process.returncode in (0, 130, -ending)
        assert "Traceback" not in message
        for name, content in before.items():
            assert (tmp_path / "run" / name).read_bytes() == content
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".run")] == []


# ------------------------------------------------------------------ labels with an order


@pytest.fixture
def stars(tmp_path, monkeypatch):
    """Files of labels of one to five stars, and of words; in the current folder."""
    words = ["awful", "bad", "fair", "good", "great"]
    rows = [(i, j, min(1 + i % 5 + (j == 2), 5)) for i in range(30) for j in range(3)]
    head = "task,worker,label\n"
    (tmp_path / "stars.csv").write_text(head + "".join(f"{i},w{j},{label}\n" for i, j, label in rows))
    (tmp_path / "words.csv").write_text(head + "".join(f"{i},w{j},{words[label - 1]}\n" for i, j, label in rows))
    monkeypatch.chdir(tmp_path)
    return ",".join(words)


def test_levels_have_a_mean_and_their_annotators_an_offset(stars, run):
    code, printed, _ = run("consensus", "stars.csv", "--scale", "ordinal", "-q")
    assert code == 0
    assert printed.splitlines()[0].startswith("example,label,confidence,mean,p(1)")
    code, printed, _ = run("annotators", "stars.csv", "--scale", "ordinal", "--json", "-q")
    assert code == 0
    assert '"offset"' in printed
    assert '"spread"' in printed
    assert '"offset"' not in run("annotators", "stars.csv", "--json", "-q")[1]


def test_words_need_their_order_to_be_levels(stars, run):
    code, _, said = run("consensus", "words.csv", "--scale", "ordinal")
    assert code == ExitCode.BAD_DATA
    assert "--classes" in said
    code, printed, _ = run("consensus", "words.csv", "--scale", "ordinal", "--classes", stars, "-q")
    assert code == 0
    assert printed.splitlines()[0].startswith("example,label,confidence,mean,p(awful),p(bad),p(fair)")
    numbers = run("consensus", "stars.csv", "--scale", "ordinal", "-q")[1]
    assert [row.split(",")[2:4] for row in printed.splitlines()[1:]] == [
        row.split(",")[2:4] for row in numbers.splitlines()[1:]
    ]


def test_an_order_that_does_not_go_with_the_rest_is_refused(stars, run):
    for command in ("fit", "check"):
        code, _, said = run(command, "stars.csv", "--scale", "ordinal", "--ratings")
        assert code == ExitCode.WRONG_USAGE
        assert "ratings or levels, not both" in said


def test_a_run_of_levels_keeps_them(stars, run):
    code, _, _ = run("fit", "stars.csv", "--scale", "ordinal", "--out", "run")
    assert code == 0
    assert json.loads(Path("run/run.json").read_text())["scale"] == "ordinal"
    assert run("consensus", "run", "-q")[1].splitlines()[0].startswith("example,label,confidence,mean")


def test_check_asks_whether_consecutive_numbers_are_levels_and_never_decides_it(stars, run):
    asked = "classes 1 to 5: if these are levels, such as stars, add --scale ordinal"
    assert asked in run("check", "stars.csv")[1]
    assert asked not in run("check", "stars.csv", "--scale", "ordinal")[1]
    assert "--scale ordinal" not in run("check", "words.csv")[1]
    found = [json.loads(run("check", "stars.csv", "--scale", scale, "--json")[1]) for scale in ("nominal", "ordinal")]
    assert found[0]["alpha"] < found[1]["alpha"]  # a level apart is less than any two classes apart


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Unsure"], "'Unsure': if this means no answer, add --abstain Unsure"),
        (["no idea", "none"], "--abstain 'no idea' --abstain none"),
        (["a", "b", "c"], None),
    ],
)
def test_check_asks_whether_a_word_is_no_answer(run, tmp_path, words, said):
    given = [*map(str, range(1, 6)), *words] * 6
    rows = [f"{i // 3},{'abc'[i % 3]},{label}" for i, label in enumerate(given)]
    (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *rows]))
    code, out, _ = run("check", str(tmp_path / "labels.csv"))
    assert code == 0
    assert "--abstain" not in out if said is None else said in " ".join(out.split())


def test_abstentions_are_answers_if_that_is_said(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = ["example,annotator,label"]
    for example in range(60):
        for annotator in "abc":
            unsure = rng.random() < (0.6 if example % 2 else 0.05)  # whoever sees a one hesitates
            rows.append(f"{example},{annotator},{'unsure' if unsure else example % 2}")
    Path("labels.csv").write_text("\n".join(rows))
    wanted = ["labels.csv", "--abstain", "unsure", "-q"]
    plain, informed = run("consensus", *wanted)[1], run("consensus", *wanted, "--informative-abstentions")[1]
    right = [sum(int(row.split(",")[1]) == int(row.split(",")[0]) % 2 for row in table.splitlines()[1:]
                 if row.split(",")[1]) for table in (plain, informed)]  # fmt: skip
    assert right[0] < right[1] == 60
    assert run("fit", *wanted, "--informative-abstentions", "--out", "run")[0] == 0
    assert json.loads(Path("run/run.json").read_text())["settings"]["informative_abstentions"] is True
    code, _, said = run("fit", "labels.csv", "--ratings", "--informative-abstentions")
    assert code == ExitCode.WRONG_USAGE
    assert "leave abstentions out" in said


def test_personal_names_are_not_on_the_report_and_their_key_is_in_a_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{i},{who},{(i + (who == 'bob@example.org')) % 2}\n" for i in range(9) for who in ("ann", "bob@example.org")
    ]
    Path("labels.csv").write_text("task,worker,label\n" + "".join(rows))
    _, _, talk = run("fit", "labels.csv", "--out", "hidden")
    assert "names.csv has the key, --names keeps them" in talk
    assert "bob@example.org" not in Path("hidden/report.html").read_text(encoding="utf-8")
    assert "bob@example.org" in Path("hidden/annotators.csv").read_text(encoding="utf-8")
    assert Path("hidden/names.csv").read_text(encoding="utf-8") == "in_report,annotator\nA1,bob@example.org\n"
    run("fit", "labels.csv", "--out", "shown", "--names")
    assert "bob@example.org" in Path("shown/report.html").read_text(encoding="utf-8")
    assert not Path("shown/names.csv").exists()
    assert run("fit", "labels.csv", "--out", "hidden", "--force")[0] == 0


@pytest.mark.parametrize(("form", "beginning"), [("md", "# labels.csv · "), ("json", "{")])
def test_a_report_has_the_form_that_is_asked_for(run, tmp_path, monkeypatch, form, beginning):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{who},{i % 2}\n" for i in range(9) for who in ("ann", "bob")]
    Path("labels.csv").write_text("task,worker,label\n" + "".join(rows))
    code, out, _ = run("fit", "labels.csv", "--report", form)
    assert (code, f"Report      run/report.{form}" in out) == (0, True)
    assert Path(f"run/report.{form}").read_text(encoding="utf-8").startswith(beginning)
    assert not Path("run/report.html").exists()
    assert run("fit", "labels.csv", "--force")[0] == 0
    assert sorted(path.suffix for path in Path("run").glob("report.*")) == [".html"]


@pytest.mark.parametrize("name", ["consensus", "annotators", "next"])
def test_every_table_can_be_learnt_from_known_answers(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{who},{(i + (who == 'cy')) % 2}\n" for i in range(30) for who in ("ann", "bob", "cy")]
    Path("labels.csv").write_text("task,worker,label\n" + "".join(rows))
    Path("truth.csv").write_text("task,label\n" + "".join(f"{i},{(i + 1) % 2}\n" for i in range(20)))  # cy is right
    code, without, _ = run(name, "labels.csv")
    assert code == 0
    code, used, talk = run(name, "labels.csv", "--truth", "truth.csv", "--use-truth")
    assert code == 0
    assert "20 known answers" in talk
    assert used != without
