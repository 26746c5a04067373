"""Original files of crowds, rebuilt from what was made of them -> the same files again, to the last byte."""

import csv
import gzip
import io
import random
from itertools import pairwise

import pytest

from crowdwise.datasets._store import known_files
from crowdwise.datasets.originals import convert, main


def table(data_home, name):
    path = data_home / "crowd" / f"{name}.csv"
    content = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".csv.gz").read_bytes())
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def write(path, rows, end="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator=end)
        writer.writeheader()
        writer.writerows(rows)


def originals_of_music(data_home, folder):
    genres = [row["name"] for row in table(data_home, "music/classes")]
    names = {}
    for part, prefix in (("gold", ""), ("test", "test_")):
        truth = {row["task"]: genres[int(row["label"])] for row in table(data_home, f"music/{prefix}truth")}
        features = table(data_home, f"music/{prefix}features")
        names |= {task: f"{genre}.{int(task):05}.mp3" for task, genre in truth.items()}
        rows = [
            {"id": names[row["task"]]}
            | {f"feature{k}": row[f"f{k}"] for k in range(len(row) - 1)}
            | {"class": truth[row["task"]]}
            for row in features
        ]
        write(folder / f"music_genre_{part}.csv", rows)
    answers = [
        {
            "WorkerID": f"A{row['worker']}",
            "Input.song": names[row["task"]],
            "Input.true_label": names[row["task"]].partition(".")[0],
            "Answer.pred_label": genres[int(row["label"])],
        }
        for row in table(data_home, "music/labels")
    ]
    write(folder / "mturk_answers.csv", answers, end="\r")  # as the original has it


def originals_of_medical_cause(data_home, folder):
    truth, sides = (
        {row["task"]: row["label"] for row in table(data_home, f"medical_cause/{name}")}
        for name in ("truth", "truth_adjudicated")
    )
    terms = {row["task"]: row for row in table(data_home, "medical_cause/terms")}
    rows = [
        {
            "SID": row["task"],
            "expert": "1" if truth[row["task"]] == "1" else "-1",
            "test_partition": {"1": "1", "0": "-1"}.get(sides.get(row["task"]), "0"),
            "term1": terms[row["task"]]["term1"],
            "term2": terms[row["task"]]["term2"],
            "sentence": row["text"],
        }
        for row in table(data_home, "medical_cause/texts")
    ]
    write(folder / "ground_truth_cause.csv", [*rows, rows[0] | {"SID": "7", "expert": ""}])
    labels = table(data_home, "medical_cause/labels")
    ids = ordered_ids(labels)
    judgements = [
        {
            "_worker_id": ids[row["worker"]],
            "relations": "[TREATS] [CAUSES]" if row["label"] == "1" else "[TREATS]",
            "sent_id": f"{row['task']}-FS1",
        }
        for row in labels
    ]
    random.Random(0).shuffle(judgements)
    write(folder / "raw" / "RelEx" / "b.csv", [*judgements, judgements[0] | {"sent_id": "7-FS1"}])
    write(folder / "raw" / "RelEx" / "a.csv", [judgements[0] | {"relations": "[CAUSES] [TREATS]"}])  # judged again in b


def ordered_ids(labels):
    """Numbers for the workers, rising within every task, as those of the original do."""
    after = {row["worker"]: set() for row in labels}
    for one, other in pairwise(labels):
        if one["task"] == other["task"]:
            after[other["worker"]].add(one["worker"])
    ids = {}
    while len(ids) < len(after):
        free = [who for who, before in after.items() if who not in ids and before <= ids.keys()]
        assert free, "no order of workers fits all tasks"
        ids |= {who: str(1000 + len(ids) + k) for k, who in enumerate(free)}
    return ids


@pytest.mark.parametrize(
    ("name", "rebuild"), [("music", originals_of_music), ("medical_cause", originals_of_medical_cause)]
)
def test_original_files_become_the_files_that_were_measured(name, rebuild, data_home, tmp_path, capsys):
    rebuild(data_home, tmp_path / "originals")
    known = convert(name, tmp_path / "originals", tmp_path / "data")
    assert known == {path: True for path in known_files() if path.startswith(f"crowd/{name}/")}
    (tmp_path / "data" / "crowd" / name / "truth.csv").unlink()
    assert main([name, str(tmp_path / "originals"), str(tmp_path / "data")]) == 0
    assert capsys.readouterr().out.count("the file that was measured") == len(known)


def test_what_is_missing_or_typed_wrongly_is_told(tmp_path, capsys):
    assert main(["music", str(tmp_path), str(tmp_path)]) == 66
    assert "mturk_answers.csv is not in" in capsys.readouterr().err
    assert main(["opera"]) == 2
    assert "usage" in capsys.readouterr().err
