import json

import numpy as np
import pytest

from crowdwise import CrowdLabels, aggregate
from crowdwise.cli import main
from crowdwise.exceptions import DataError
from crowdwise.results import compare

WHO = np.array(["ann", "bob", "cy", "dee"])


def week(accuracy, start, seed=0, who=WHO):
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99).integers(0, 2, 600)[start : start + 400]
    right = rng.random((400, len(accuracy))) < accuracy
    matrix = np.where(right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    return CrowdLabels.from_matrix(matrix, annotators=who[: len(accuracy)], examples=np.arange(start, start + 400))


@pytest.fixture(scope="module")
def weeks():
    return week([0.9, 0.9, 0.9], 0), week([0.9, 0.9, 0.55, 0.9], 200, seed=1)


def test_who_changed_is_named_with_both_intervals(weeks):
    found = compare(*map(aggregate, weeks), labels=weeks)
    assert found.n_examples == (400, 400, 200)
    assert found.annotators["annotator"][found.annotators["clear"]].tolist() == ["cy"]
    assert (found.added, found.removed) == (["dee"], [])
    assert found.alpha[0] > found.alpha[1]
    words = repr(found)
    assert "cy: estimated accuracy 9" in words
    assert "no clear change of 2 other annotators" in words
    assert "Added       dee" in words
    assert len(found.annotators_frame()) == 3


def test_examples_that_changed_are_those_whose_consensus_did(weeks):
    one, other = map(aggregate, weeks)
    before = dict(zip(one.examples.tolist(), one.label.tolist(), strict=True))
    after = dict(zip(other.examples.tolist(), other.label.tolist(), strict=True))
    changed = {example for example in before.keys() & after.keys() if before[example] != after[example]}
    found = compare(one, other)
    assert set(found.examples["example"].tolist()) == changed
    assert len(found.examples_frame()) == len(changed)
    assert found.alpha is None
    assert sum(share for share, _ in found.shares.values()) == pytest.approx(1)


def test_ratings_change_beyond_their_intervals():
    rng = np.random.default_rng(0)
    true = rng.normal(5, 2, 80)
    ratings = [
        CrowdLabels.from_matrix((true + moved)[:, np.newaxis] + rng.normal(0, 0.3, (80, 4)), scale="interval")
        for moved in (np.zeros(80), np.where(np.arange(80) < 5, 4.0, 0.0))
    ]
    found = compare(*map(aggregate, ratings), labels=ratings)
    assert set(range(5)) <= set(found.examples["example"].tolist())
    assert len(found.examples["example"]) < 20
    assert (found.score, found.shares) == ("correlation", {})
    with pytest.raises(DataError, match="one fit has classes"):
        compare(aggregate(ratings[0]), aggregate(week([0.9, 0.8], 0)))


def test_two_runs_are_compared_on_the_command_line(weeks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number, labels in enumerate(weeks, start=1):
        table = labels.to_table()
        rows = zip(table["example"].tolist(), table["annotator"].tolist(), table["label"].tolist(), strict=True)
        (tmp_path / "labels.csv").write_text("task,worker,label\n" + "".join(f"{e},{a},{c}\n" for e, a, c in rows))
        assert main(["fit", "labels.csv", "--out", f"week{number}", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["compare", "week1", "week2"]) == 0
    words = capsys.readouterr().out
    assert words.startswith("Examples    400 before, 400 after, 200 in both\nAgreement   Krippendorff's alpha 0.")
    assert main(["compare", "week1", "week2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["examples"]["both"], found["added"]) == ("crowdwise.compare/1", 200, ["dee"])
    assert main(["compare", "week1", "week2", "--changed"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + found["examples"]["changed"]
    assert main(["compare", "week1", "labels.csv"]) != 0


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_classes_that_are_tuples_are_counted_like_any_other():
    matrix = np.empty((3, 2), dtype=object)
    matrix[:] = [[(1, 2), (1, 2)], [(3, 4), (3, 4)], [(1, 2), (1, 2)]]
    results = aggregate(CrowdLabels.from_matrix(matrix))
    assert compare(results, results).shares == {(1, 2): (2 / 3, 2 / 3), (3, 4): (1 / 3, 1 / 3)}
