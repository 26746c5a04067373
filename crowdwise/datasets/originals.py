"""Files as their authors published them -> the files that `fetch_crowd` reads.

    python -m crowdwise.datasets.originals music FOLDER DATA_HOME
    python -m crowdwise.datasets.originals medical_cause FOLDER DATA_HOME

FOLDER has the original files (see docs/evidence/data.md for where they are from), DATA_HOME becomes the data directory.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from crowdwise._files import write_file
from crowdwise.datasets._store import known_files
from crowdwise.exceptions import MissingDataError

Rows = list[dict[str, str]]
Tables = dict[str, tuple[Sequence[str], Iterable[Sequence[object]]]]


def read_rows(path: Path) -> Rows:
    """The rows of a CSV file, whatever ends its lines."""
    if not path.is_file():
        raise MissingDataError(f"{path.name} is not in {path.parent}; it is one of the original files.")
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))  # which knows all ends of lines


def music(folder: Path) -> Tables:
    """The genres of songs: their names have it in them, so songs are numbered as they stand in the files."""
    answers = read_rows(folder / "mturk_answers.csv")
    songs, further = (read_rows(folder / f"music_genre_{part}.csv") for part in ("gold", "test"))
    code = {name: k for k, name in enumerate(sorted({row["class"] for row in songs}))}
    number = {row["id"]: i for i, row in enumerate(songs)}
    worker = _numbered(row["WorkerID"] for row in answers)
    measured = [name for name in songs[0] if name not in ("id", "class")]
    header = ("task", *(f"f{k}" for k in range(len(measured))))

    def features(rows: Rows, first: int) -> list[list[object]]:
        return [[i, *(row[name] for name in measured)] for i, row in enumerate(rows, start=first)]

    def truth(rows: Rows, first: int) -> list[tuple[int, int]]:
        return [(i, code[row["class"]]) for i, row in enumerate(rows, start=first)]

    given = [(number[row["Input.song"]], worker[row["WorkerID"]], code[row["Answer.pred_label"]]) for row in answers]
    return {
        "labels": (("task", "worker", "label"), given),
        "truth": (("task", "label"), truth(songs, 0)),
        "features": (header, features(songs, 0)),
        "test_truth": (("task", "label"), truth(further, len(songs))),
        "test_features": (header, features(further, len(songs))),
        "classes": (("label", "name"), [(k, name) for name, k in code.items()]),
    }


def medical_cause(folder: Path) -> Tables:
    """Does a sentence mean that one term causes the other: sentences that an expert and the crowd have judged."""
    judged = {row["SID"]: row for row in read_rows(folder / "ground_truth_cause.csv") if row["expert"]}
    given: dict[tuple[int, int], int] = {}
    for path in sorted((folder / "raw" / "RelEx").glob("*.csv")):
        for row in read_rows(path):
            sentence = row["sent_id"].partition("-")[0]
            if sentence in judged:  # who judged a sentence twice counts once, with the last judgement
                given[int(sentence), int(row["_worker_id"])] = int("[CAUSES]" in row["relations"])
    ordered = sorted(given)
    worker = _numbered(who for _, who in ordered)
    tasks = sorted({task for task, _ in ordered})
    rows = [judged[str(task)] for task in tasks]
    adjudicated = [(task, int(row["test_partition"])) for task, row in zip(tasks, rows, strict=True)]
    return {
        "labels": (("task", "worker", "label"), [(task, worker[who], given[task, who]) for task, who in ordered]),
        "truth": (("task", "label"), [(t, int(row["expert"] == "1")) for t, row in zip(tasks, rows, strict=True)]),
        "truth_adjudicated": (("task", "label"), [(task, int(side > 0)) for task, side in adjudicated if side]),
        "terms": (("task", "term1", "term2"), [(t, r["term1"], r["term2"]) for t, r in zip(tasks, rows, strict=True)]),
        "texts": (("task", "text"), [(task, row["sentence"]) for task, row in zip(tasks, rows, strict=True)]),
    }


READERS: dict[str, Callable[[Path], Tables]] = {"music": music, "medical_cause": medical_cause}


def _numbered(names: Iterable[object]) -> dict[object, str]:
    """w0, w1, ... in the order in which names appear."""
    return {name: f"w{i}" for i, name in enumerate(dict.fromkeys(names))}


def convert(name: str, folder: Path, data_home: Path) -> dict[str, bool]:
    """Write the files of a crowd into ``crowd/NAME`` of a data directory.

    Whether each is the one that was measured, to the last byte: `fetch_crowd` takes no other.
    """
    known: dict[str, bool] = {}
    for table, (header, rows) in READERS[name](folder).items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        content, path = text.getvalue().encode(), f"crowd/{name}/{table}.csv"
        target = data_home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, content)
        known[path] = hashlib.sha256(content).hexdigest() == known_files()[path].sha256
    return known


def main(arguments: Sequence[str]) -> int:
    """Run from a shell; prints of every file whether it is the one that was measured."""
    if len(arguments) != 3 or arguments[0] not in READERS:
        print(f"usage: python -m crowdwise.datasets.originals {'|'.join(READERS)} FOLDER DATA_HOME", file=sys.stderr)
        return 2
    try:
        known = convert(arguments[0], Path(arguments[1]), Path(arguments[2]))
    except MissingDataError as error:
        print(error, file=sys.stderr)
        return 66
    for path, same in known.items():
        print(f"{path}: {'the file that was measured' if same else 'another one, which fetch_crowd will refuse'}")
    return 0 if all(known.values()) else 65


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
