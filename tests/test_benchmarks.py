"""Benchmarks run, and have the tables of their pages; the module that writes tables."""

import doctest
import importlib
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
# Run by others: parts of crowds.py, and modules of several benchmarks.
NO_BENCHMARKS = {"contest", "crowd_sets", "ours", "peers", "tables", "timing", "trust_sets"}
QUICK = sorted({path.stem for path in BENCHMARKS.glob("*.py")} - NO_BENCHMARKS)


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a module of benchmarks/ by name; afterwards the names are free again, for tests/ has some of them too."""
    stems = [path.stem for path in BENCHMARKS.glob("*.py")]
    kept = {stem: sys.modules.pop(stem) for stem in stems if stem in sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module
    for stem in stems:
        sys.modules.pop(stem, None)
    sys.modules.update(kept)


@pytest.fixture
def tables(benchmark):
    return benchmark("tables")


@pytest.fixture
def page(tables, tmp_path, set_constants):
    """A page with a place for one table, in a repository of its own."""
    set_constants(tables, ROOT=tmp_path)
    path = tmp_path / "page.md"
    path.write_text("before\n\n<!-- table: sums of two -->\nold\n<!-- end -->\n\nafter\n")
    return path


def run_quick(script, *arguments, quick=True, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *arguments, *["--quick"] * quick]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


# A column per data set: those that are there.
COLUMNS_OF_DATA = ("easy_first",)
# About the data sets themselves.
TABLES_OF_DATA = ("reproduction table3", "reproduction table4")


def pages():
    return [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("[!_]*/*.md")]


def tables_of_pages(tables, script):
    """Columns by name of the tables that pages have from a benchmark."""
    found = [table for page in pages() for table in tables.tables_in(page.read_text(encoding="utf-8"))]
    return {table.name: table for table in found if table.name.split()[0] == script}


@pytest.mark.slow
@pytest.mark.parametrize("script", QUICK)
def test_a_benchmark_runs_without_data_and_has_the_columns_of_its_page(script, tables, tmp_path):
    before = {path: path.read_bytes() for path in [*pages(), *(ROOT / "docs" / "figures").iterdir()]}
    done = run_quick(script, CROWDWISE_DATA=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Quick run" in done.stdout
    printed = {table.name: table.columns for table in tables.tables_in(done.stdout)}
    on_pages = {name: table for name, table in tables_of_pages(tables, script).items() if name not in TABLES_OF_DATA}
    assert printed.keys() == on_pages.keys()
    present = {name: table.columns for name, table in on_pages.items()}
    # Without data, a table of data sets has fewer columns.
    fewer = {name: [column for column in columns if column in printed[name]] for name, columns in present.items()}
    assert {name: printed[name] for name in present} == (present if script not in COLUMNS_OF_DATA else fewer)
    assert {path: path.read_bytes() for path in before} == before, "a quick run wrote into docs/"


@pytest.mark.parametrize("script", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_module_of_benchmarks_can_be_imported(script, benchmark):
    assert benchmark(script).__doc__


def test_a_benchmark_that_needs_data_says_so(tmp_path):
    done = run_quick("judges", "--sets", "framing", quick=False, CROWDWISE_DATA=str(tmp_path))
    assert "Traceback" not in done.stderr
    assert "CROWDWISE_DATA" in done.stderr


def test_every_table_of_a_page_belongs_to_a_benchmark_that_is_tried(tables):
    found = [table for page in pages() for table in tables.tables_in(page.read_text(encoding="utf-8"))]
    assert len(found) > 10
    scripts = {table.name.split()[0] for table in found}
    assert scripts <= set(QUICK)


def test_rows_become_a_table_in_the_page_with_a_line_that_says_how_it_was_made(tables, page, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/elsewhere/benchmarks/sums.py", "--write"])
    place = tables.Place("page.md", "sums of two")
    run = tables.Run(Namespace(quick=False, write=True), [place])
    run.table(place, ("a", "b"), [("1", "2")], "Two numbers.")
    before, table, note, made, after = page.read_text().split("\n\n")
    assert before == "before"
    assert table == "<!-- table: sums of two -->\n| a | b |\n|---|---|\n| 1 | 2 |"
    assert note == "Two numbers."
    assert made.startswith("<sub>`python benchmarks/sums.py --write`, 20")
    assert "no commit" in made  # the page's repository is none
    assert made.endswith(" s</sub>\n<!-- end -->")
    assert after == "after\n"
    run.table(place, ("a", "b"), [("3", "4")])
    assert "Two numbers." not in page.read_text()
    assert page.read_text().count("<sub>") == 1


def test_a_quick_run_says_so_and_never_writes(tables, page, capsys):
    old = page.read_text()
    place = tables.Place("page.md", "sums of two")
    tables.Run(Namespace(quick=True, write=False), [place]).table(place, ("a",), [("1",)])
    assert page.read_text() == old
    assert "Quick run" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        tables.parser("").parse_args(["--quick", "--write"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no place at all", "found it 0 times"),
        ("<!-- table: sums of two -->\n<!-- end -->\n" * 2, "found it 2 times"),
        ("<!-- table: sums of two -->\n", "must have <!-- end -->"),
        ("<!-- table: sums of two -->\n<!-- table: other -->\n<!-- end -->\n", "must have <!-- end -->"),
    ],
)
def test_a_page_without_its_markers_is_refused_before_the_work_starts_and_stays_as_it_is(tables, page, text, message):
    page.write_text(text)
    place = tables.Place("page.md", "sums of two")
    with pytest.raises(tables.MarkerError, match=message):
        tables.Run(Namespace(quick=False, write=True), [place])
    with pytest.raises(tables.MarkerError, match=message):
        place.write("new")
    assert page.read_text() == text


def test_rows_that_would_break_a_table_are_refused(tables):
    with pytest.raises(ValueError, match="2 cells"):
        tables.markdown(("a", "b"), [("1",)])
    with pytest.raises(ValueError, match=r"must not have \|"):
        tables.markdown(("a",), [("1|2",)])


def test_examples_of_the_module_hold(tables):
    assert doctest.testmod(tables).failed == 0


def test_all_of_the_best_are_bold(tables):
    assert tables.bold_best(["0.91", "", "0.93", "0.93", "-"]) == ["0.91", "", "**0.93**", "**0.93**", "-"]
    assert tables.bold_best(["", "-"]) == ["", "-"]


def test_results_of_other_runs_are_kept_with_their_dates(benchmark, set_constants, tmp_path):
    crowds = benchmark("crowds")
    set_constants(crowds, RESULTS=tmp_path / "results" / "crowds.json")
    assert crowds.read_results() == {}
    row = crowds.Row(0.9, seconds=1.5, date="2026-01-02", commit="commit abc")
    crowds.keep({"rte": {"crowdwise aggregate": row}})
    kept = crowds.read_results()["rte"]["crowdwise aggregate"]
    assert (kept.consensus, kept.seconds, kept.date, kept.commit) == (0.9, 1.5, "2026-01-02", "commit abc")
    assert kept.test != kept.test  # NaN: there was none
    assert crowds.made_at({"rte": {"crowdwise aggregate": kept}}) == "Ours: 2026-01-02, commit abc."


def test_the_table_of_crowds_is_not_written_without_results_of_ours(benchmark):
    crowds = benchmark("crowds")
    row = crowds.Row(0.9, date="2026-01-02", commit="commit abc")
    with pytest.raises(SystemExit, match="no results of crowdwise default"):
        crowds.write_table(Namespace(writes=True), {"music": {"crowdwise aggregate": row}})


@pytest.fixture
def trust(benchmark):
    return benchmark("trust")


def test_the_simple_consensus_counts_ties_as_fair_draws_and_never_a_class_that_nobody_gave(trust):
    shares = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(trust.right(shares, np.array([0, 1, 1, 3])), [0.5, 1.0, 0.0, 0.0])


def test_one_round_of_dawid_skene_is_that_by_hand(trust, benchmark):
    sets = benchmark("trust_sets")
    labels = sets.labels_of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 0]), 2)
    # Vote shares are (1, 0) and (1/2, 1/2): of class 0 the first annotator has counts 1, 1/2, the second 3/2, 0.
    first, second = np.array([[1.5, 1.0], [0.5, 1.0]]), np.array([[2.0, 0.5], [1.0, 0.5]])
    first, second = (table / table.sum(axis=1, keepdims=True) for table in (first, second))
    joint = np.array([0.75, 0.25]) * np.array([first[:, 0] * second[:, 0], first[:, 1] * second[:, 0]])
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(trust.dawid_skene(labels, 1), expected)


def test_the_median_between_two_levels_counts_half(trust, benchmark):
    labels = benchmark("trust_sets").labels_of(
        np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 2]), np.array([0, 2, 1, 1, 2]), 3
    )
    is_right, off = trust.median_right(labels, np.array([2, 1]))
    np.testing.assert_allclose(is_right, [0.5, 1.0])
    np.testing.assert_allclose(off, [1.0, 0.0])


def test_intervals_are_over_draws_or_over_examples_of_one_draw(trust, benchmark):
    row = benchmark("trust_sets").Row("labels", "simulated", "strong")
    several = trust.Result(row, "aggregate", {"votes": [-0.03, -0.02, -0.025], "votes noise": [0.01] * 3})
    assert several.half_width("votes") == pytest.approx(4.3027 * 0.005 / 3**0.5, rel=1e-4)
    assert several.is_below("votes", -0.01)
    assert several.worst("votes") == -0.03
    one = trust.Result(row, "aggregate", {"votes": [-0.03], "votes noise": [0.01]})
    assert one.half_width("votes") == pytest.approx(0.0196, rel=1e-3)
    assert one.below_a_coin("votes")
    assert not trust.Result(row, "aggregate", {"votes": [-0.01], "votes noise": [0.01]}).below_a_coin("votes")


def test_results_of_a_commit_are_found_again_and_failures_are_not(trust, benchmark, tmp_path):
    row = benchmark("trust_sets").Row("labels", "simulated", "strong")
    kept = trust.Result(row, "aggregate", {"accuracy": [0.9]}, [0.1], 2.0)
    failed = trust.Result(row, "logistic", failure="ValueError: no")
    path = tmp_path / "trust.jsonl"
    path.write_text(f"{kept.line('commit a')}\n{failed.line('commit a')}\n{kept.line('commit b')}\n")
    assert trust.read_results(path, "commit a") == {(row, "aggregate"): kept}
    assert trust.read_results(path, "commit c") == {}
    assert trust.read_results(tmp_path / "none", "commit a") == {}


def test_a_draw_of_a_family_is_the_same_in_every_run_and_has_what_it_says(benchmark):
    sets = benchmark("trust_sets")
    for kind, families in sets.FAMILIES.items():
        for name in families:
            row = sets.Row(kind, "simulated", name)
            (first,), (again,) = (list(sets.draws(row, 1)) for _ in range(2))
            np.testing.assert_array_equal(first.labels.values, again.labels.values)
            assert len(first.labels) == len(first.truth)
            assert first.labels.labels_per_example.min() > 0
            assert (first.X is not None) == (kind == "features")
            assert row.half in "AB"


def test_copies_are_further_annotators_with_the_same_labels(benchmark):
    sets = benchmark("trust_sets")
    (crowd,) = sets.draws(sets.Row("labels", "simulated", "near copies"), 1)
    worst = crowd.worst_annotator()
    matrix, more = crowd.labels.to_matrix(), crowd.with_copies(worst).labels.to_matrix()
    np.testing.assert_array_equal(more, np.hstack([matrix, matrix[:, [worst] * 3]]))


@pytest.fixture
def starts(benchmark):
    return benchmark("starts")


def crowd_of_rounds(starts, n_annotators=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    votes = np.sign(X[:, :1] + rng.normal(size=(60, n_annotators)))
    return starts.Rounds.of(X, votes, rng.uniform(0.5, 1, 60), 1.0), rng


def test_the_derivative_of_a_round_is_that_of_small_steps(starts):
    rounds, rng = crowd_of_rounds(starts)
    shares = rng.dirichlet(np.ones(4))
    found = rounds.slopes(shares)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)
    for k in range(4):
        log = np.log(shares) + 1e-6 * np.eye(4)[k]
        moved = np.exp(log) / np.exp(log).sum()
        step = np.log(rounds.errors(moved[np.newaxis]) / rounds.errors(shares[np.newaxis]))[0] / 1e-6
        np.testing.assert_allclose(step, found[:, k], atol=1e-5)


def test_a_round_brings_near_starts_together_as_far_as_the_contraction_says(starts):
    rounds, rng = crowd_of_rounds(starts)
    shares = rng.dirichlet(np.ones(4))
    for _ in range(20):
        step = 1e-5 * rng.normal(size=4)
        moved = shares * np.exp(step)
        next_shares, next_moved = rounds.next(np.stack([shares, moved / moved.sum()]))
        before, after = np.ptp(step), np.ptp(np.log(next_moved / next_shares))
        assert after <= before * rounds.contraction(shares) * (1 + 1e-3)


@pytest.mark.parametrize(("noise", "n_ends"), [(0.1, 2), (3.0, 1)])
def test_two_annotators_with_opposite_labels_have_two_ends_if_the_labels_can_be_fitted(starts, noise, n_ends):
    rng = np.random.default_rng(0)
    label = np.sign(rng.normal(size=200))
    X = (label + noise * rng.normal(size=200))[:, np.newaxis]
    rounds = starts.Rounds.of(X, np.column_stack([label, -label]), np.ones(200), 1.0)
    f = rounds.scores[:, 0]
    fits = float((label * f).mean())
    assert (fits > 0.5) == (n_ends == 2)
    ends = rounds.settle(starts.random_starts(2, 20, rng))
    assert starts.n_ends(ends) == n_ends
    difference = np.abs(ends[:, 0] - ends[:, 1])
    np.testing.assert_allclose(difference, np.sqrt(max(2 * fits - 1, 0) / (f**2).mean()), atol=0.02)


def test_values_are_permuted_within_their_groups(benchmark):
    groups, values = np.array([0, 1, 0, 1, 1, 2]), np.arange(6)
    mixed = benchmark("boundary").permuted(values, groups, np.random.default_rng(1))
    assert mixed.tolist() != values.tolist()
    for group in range(3):
        assert sorted(mixed[groups == group]) == sorted(values[groups == group])


def test_labels_of_the_wanted_share_are_missing_and_easy_ones_stay(benchmark):
    missing = benchmark("missing")
    drawn = missing.synthetic(np.random.default_rng(0), 1.0)
    clear = missing.clearness(drawn, np.repeat([1, -1], 250))
    rows, labels = missing.with_missing(drawn, 0.5, 2.0, np.random.default_rng(0))
    assert labels.n_labels / 6000 == pytest.approx(0.5, abs=0.03)
    assert np.corrcoef(labels.labels_per_example, clear[rows])[0, 1] > 0.7
