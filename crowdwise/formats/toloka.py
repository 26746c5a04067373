"""Toloka's results (TSV) -> labels.

Tasks with the same input are one example. Only accepted assignments count. A golden answer is the truth of its task.
"""

from __future__ import annotations

from collections.abc import Sequence

from crowdwise._text import count
from crowdwise.exceptions import LabelError
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Collected, Given
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.formats.names import TEXT_WORDS
from crowdwise.formats.same_inputs import SameInputs
from crowdwise.tables import Table

NAME = "Toloka"
_INPUT, _OUTPUT, _GOLDEN = "INPUT:", "OUTPUT:", "GOLDEN:"
_WORKER, _TASK, _STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "ASSIGNMENT:status"
_ACCEPTED = ("", "APPROVED", "ACCEPTED", "SUBMITTED")


def is_toloka(header: Sequence[str]) -> bool:
    """Whether a header is that of results."""
    return _WORKER in header and any(name.startswith(_OUTPUT) for name in header)


def read_toloka(table: Table, wishes: Wishes) -> LabelFile:
    """Labels from results."""
    header, same = table.header, SameInputs()
    worker_at = table.position(_WORKER)
    status_at, task_at = (header.index(name) if name in header else None for name in (_STATUS, _TASK))
    inputs, outputs, golden = (
        [i for i, name in enumerate(header) if name.startswith(p)] for p in (_INPUT, _OUTPUT, _GOLDEN)
    )
    text = next((i for i in inputs if header[i].removeprefix(_INPUT).lower() in TEXT_WORDS), None)
    answers, collected = Answers(wishes.missing, strip=wishes.strip), Collected()
    for number, row in enumerate(table.rows()):
        if not any(row):  # between two suites of tasks
            continue
        example = same.example("" if task_at is None else row[task_at], [row[i] for i in inputs])
        if not example or not row[worker_at]:
            raise LabelError(
                f"{table.source.name}, row {number + 1} after the header: every answer needs its task and its "
                "worker_id."
            )
        for i in golden:
            if row[i]:
                collected.truth.append(Given(header[i].removeprefix(_GOLDEN), example, "", row[i]))
        if status_at is not None and row[status_at].upper() not in _ACCEPTED:
            answers.left_out[f"answers of {row[status_at][:40].lower()} assignments"] += 1
            continue
        for i in outputs:
            collected.given.append(
                Given(header[i].removeprefix(_OUTPUT), example, row[worker_at], row[i], f"{number:020}")
            )
        if text is not None:
            answers.texts.setdefault(example, row[text])
    if same.n_merged:
        answers.notes.append(f"{count(same.n_merged, 'task')} with the input of another one: the same example.")
    wanted = wishes.question or wishes.label
    collected.choose(table.source.name, wanted and wanted.removeprefix(_OUTPUT), answers)
    return make_label_file(table.source.name, NAME, answers, wishes)
