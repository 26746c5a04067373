"""A file with several questions -> a run per question in one folder, and one page that leads to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdwise import formats
from crowdwise._files import write_file
from crowdwise.exceptions import DataError
from crowdwise.formats._names import SeveralQuestionsError
from crowdwise.reporting.report import render_index
from crowdwise.runs.inputs import PathLike
from crowdwise.runs.new_folder import is_replaceable, new_folder, write_note
from crowdwise.runs.run import Info, Run, fit

_INDEX, _NOTE, _SCHEMA = "index.html", "questions.json", "crowdwise.questions/1"


def fit_questions(
    labels: PathLike,
    features: PathLike | None = None,
    *,
    out: PathLike,
    force: bool = False,
    labels_as: Mapping[str, Any] | None = None,
    info: Info = lambda _: None,
    **settings: Any,
) -> dict[str, Run | str]:
    """Fit a model to every question of a file, and leave a folder with a run each and an index page.

    A question that cannot be fitted is named in the index with the reason; the others are fitted.

    Parameters
    ----------
    labels, features : str or path
        The files, see `read_inputs`.
    out : str or path
        The folder.
    force : bool, default=False
        Whether to replace a folder of an earlier call.
    labels_as : mapping, default=None
        How labels are read.
    info : callable, default=nothing
        Is given notes, each with its question.
    **settings
        See `crowdwise.runs.fit`.

    Returns
    -------
    runs : dict from question to Run, or to the reason why there is none

    Examples
    --------
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.runs.questions import fit_questions
    >>> folder = Path(tempfile.mkdtemp())
    >>> def answer(name, value):
    ...     return {"from_name": name, "to_name": "t", "type": "choices", "value": {"choices": [value]}}
    >>> def task(i):
    ...     given = [answer("tone", "kind" if i % 2 else "rude"), answer("topic", "news" if i % 3 else "sport")]
    ...     annotations = [{"completed_by": who, "result": given} for who in (1, 2)]
    ...     return {"id": i, "data": {"text": "..."}, "annotations": annotations}
    >>> _ = (folder / "export.json").write_text(json.dumps([task(i) for i in range(6)]))
    >>> sorted(fit_questions(folder / "export.json", out=folder / "runs"))
    ['tone', 'topic']
    >>> sorted(path.name for path in (folder / "runs").iterdir())
    ['index.html', 'questions.json', 'tone', 'topic']
    """
    reading = dict(labels_as or {})
    runs: dict[str, Run | str] = {}
    fault = "holds no runs of crowdwise fit --question all"
    with new_folder(out, may_replace=lambda old: force and is_replaceable(old, _NOTE, _SCHEMA, fault)) as folder:
        names = _folder_names(_questions_of(labels, reading))
        for question, name in names.items():
            settings |= {"out": folder / name, "labels_as": reading | {"question": question}}
            settings["info"] = lambda note, question=question: info(f"{question}: {note}")
            try:
                runs[question] = fit(labels, features, **settings)
            except DataError as error:
                runs[question] = str(error)
        if not any(isinstance(run, Run) for run in runs.values()):
            raise DataError("none of the questions could be fitted. " + " ".join(map(str, runs.values())))
        form = settings.get("report", "html")
        rows = [_row(question, names[question], run, form) for question, run in runs.items()]
        write_file(folder / _INDEX, render_index(rows, Path(labels).name))
        write_note(folder, _NOTE, _SCHEMA, {"questions": rows})
    return runs


def _questions_of(labels: PathLike, labels_as: Mapping[str, Any]) -> tuple[str, ...]:
    """The questions of a file; an error if it has one only."""
    try:
        file = formats.read(labels, **{**labels_as, "question": None})
    except SeveralQuestionsError as error:
        return error.questions
    name = f", {file.question!r}" if file.question else ""
    raise DataError(f"{Path(labels).name} has one question{name}: leave out --question all.")


def _folder_names(questions: tuple[str, ...]) -> dict[str, str]:
    """A name of a folder for every question: letters, digits and hyphens, each once."""
    names: dict[str, str] = {}
    for question in questions:
        plain = re.sub(r"[^\w.-]+", "-", question).strip("-.")[:60] or "question"
        taken = {name.casefold() for name in names.values()}
        name, n = plain, 2
        while name.casefold() in taken:
            name, n = f"{plain}-{n}", n + 1
        names[question] = name
    return names


def _row(question: str, name: str, run: Run | str, form: str) -> dict[str, Any]:
    if isinstance(run, str):
        return {"question": question, "error": run}
    summary = run.summary
    about = {"question": question, "report": f"{name}/report.{form}", "size": summary["size"]}
    return about | {"numbers": summary["numbers"], "next": summary["headline"][-1]}
