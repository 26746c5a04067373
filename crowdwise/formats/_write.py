"""Labels and consensus -> files for people, crowd-kit and peerannot, and for Label Studio to show beside its tasks."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from crowdwise._checks import check_choice
from crowdwise._files import write_file
from crowdwise._threads import spans
from crowdwise.exceptions import DataError, OutputError
from crowdwise.formats._answers import SEVERAL, Answers, LabelFile
from crowdwise.formats._label_studio import annotations_of, choices_in, is_label_studio, results_about_the_whole
from crowdwise.formats._names import choose_question
from crowdwise.formats._read import read
from crowdwise.labels._align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.results.consensus import Consensus, RatingConsensus
from crowdwise.tables import N_ROWS, Record, Source, as_text, parse_document

LABEL_FORMATS = ("table", "wide", "crowd-kit", "peerannot")
CONSENSUS_FORMATS = ("csv", "crowd-kit", "label-studio")
# A spreadsheet takes a cell that begins so for a formula, unless it is a number. Apostrophes before it count, too, so
# that no two texts become one.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def safe_cell(value: Any) -> Any:
    """A value as it is; text that a spreadsheet would take for a formula with an apostrophe before it.

    Examples
    --------
    >>> from crowdwise.formats._write import safe_cell
    >>> safe_cell("=1+1"), safe_cell("-1.5"), safe_cell("good"), safe_cell(-1)
    ("'=1+1", '-1.5', 'good', -1)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def csv_text(rows: Sequence[Sequence[Any]]) -> str:
    """Rows of cells as text with commas."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if "\r" in text.getvalue():  # which Python 3.11 does not quote, so that it would end the row when it is read
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


def write_csv(
    path: str | os.PathLike[str], header: Sequence[Any], rows: Iterable[Sequence[Any]], *, safe: bool = True
) -> None:
    """Write a table with commas, as UTF-8; an old file is replaced when the new one is whole.

    Cells go through `safe_cell` unless the file is for another program, which has them as they are.
    """

    def save(file: BinaryIO) -> None:
        every = chain([header], rows)
        while block := list(islice(every, N_ROWS)):
            cells = [[safe_cell(cell) for cell in row] for row in block] if safe else block
            file.write(csv_text(cells).encode("utf-8", "backslashreplace"))

    save_file(path, save)


def save_file(path: str | os.PathLike[str], content: str | Callable[[BinaryIO], object]) -> None:
    """Write a file as `write_file` does; an `OutputError` where it cannot be made."""
    try:
        write_file(Path(os.path.realpath(path)), content)
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError) as error:
        raise OutputError(f"{os.fspath(path)} cannot be written: {error.strerror or error}.") from error


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    source_format: str | None = None,
    target_format: str = "table",
    force: bool = False,
    **options: Any,
) -> LabelFile:
    """Read a file of labels and write it in another format.

    Parameters
    ----------
    source : str or path
        The file to read; "-" is standard input.
    target : str or path
        The file to write.
    source_format : str, default=None
        One of `FORMATS`; by default it is guessed.
    target_format : {"table", "wide", "crowd-kit", "peerannot"}, default="table"
        A row per label, a column per annotator, crowd-kit's long table, or peerannot's JSON.
    force : bool, default=False
        Whether to replace a file that is there.
    **options : keywords
        Those of `read`.

    Returns
    -------
    file : LabelFile
        What was read; `notes` are about the writing too.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise import formats
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "labels.csv").write_text("item,rater,rating\\n7,ann,1\\n7,bob,0\\n")
    >>> file = formats.convert(folder / "labels.csv", folder / "wide.csv", target_format="wide")
    >>> (folder / "wide.csv").read_text().splitlines()
    ['example,ann,bob', '7,1,0']
    """
    check_choice("target_format", target_format, LABEL_FORMATS)
    if os.path.lexists(target) and not force:
        raise OutputError(
            f"{os.fspath(target)} already exists. Choose another name, or replace it: --force (force=True)."
        )
    file = read(source, format=source_format, **options)
    notes = write_labels(file.labels, target, format=target_format)
    return replace(file, notes=(*file.notes, *notes))


def write_labels(labels: Any, path: str | os.PathLike[str], *, format: str = "table") -> tuple[str, ...]:
    """Write labels to a file.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels.
    path : str or path
        The file.
    format : {"table", "wide", "crowd-kit", "peerannot"}, default="table"
        A row per label, a column per annotator, crowd-kit's long table, or peerannot's JSON.

    Returns
    -------
    notes : tuple of str
        Which cells were changed so that no spreadsheet takes them for formulas.
    """
    check_choice("format", format, LABEL_FORMATS)
    labels = as_labels(labels, scale=None)
    if format == "peerannot":
        document = {
            str(example): {str(annotator): label for annotator, label in answers.items()} for example, answers in labels
        }
        save_file(path, json.dumps(document, default=str) + "\n")
        return ()
    if format == "crowd-kit":
        write_csv(path, ("task", "worker", "label"), _rows(labels), safe=False)
        return ()
    if format == "wide":
        annotators = labels.annotators.tolist()
        rows = ([example, *(answers.get(name, "") for name in annotators)] for example, answers in labels)
        write_csv(path, ("example", *annotators), rows)
    else:
        write_csv(path, ("example", "annotator", "label"), _rows(labels))
    return _changed(labels)


def _rows(labels: CrowdLabels) -> Iterator[tuple[Any, Any, Any]]:
    for span in spans(labels.n_examples):
        table = labels[span.start : span.stop].to_table()
        yield from zip(*(table[name].tolist() for name in ("example", "annotator", "label")), strict=True)


def _changed(labels: CrowdLabels) -> tuple[str, ...]:
    names = (labels.examples, labels.annotators, *(() if labels.classes is None else (labels.classes,)))
    changed = [name for array in names for name in array.tolist() if safe_cell(name) != name]
    if not changed:
        return ()
    return (
        f"names that a spreadsheet would read as formulas get an apostrophe: {len(changed):,}, such as "
        f"{safe_cell(changed[0])!r}. The format crowd-kit leaves them unchanged.",
    )


def write(
    consensus: Consensus | RatingConsensus,
    path: str | os.PathLike[str],
    *,
    format: str = "csv",
    tasks: str | os.PathLike[str] | None = None,
    texts: Mapping[Any, str] | None = None,
    question: str | None = None,
) -> None:
    """Write a consensus to a file; an old file of that name is replaced when the new one is whole.

    Parameters
    ----------
    consensus : Consensus or RatingConsensus
        Of `aggregate`'s result or of a model.
    path : str or path
        The file.
    format : {"csv", "crowd-kit", "label-studio"}, default="csv"
        A table with confidence and probabilities, in which a spreadsheet takes text for text; crowd-kit's aggregated
        labels ("task" and "agg_label", as they are); or tasks with predictions to import into Label Studio.
    tasks : str or path, default=None
        For Label Studio: the export that the labels came from. Its data are kept as they are.
    texts : mapping from example to str, default=None
        For Label Studio where there is no such export: what to show.
    question : str, default=None
        For Label Studio: the name of the control tag; by default the only one in `tasks`, else "label".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise import aggregate, formats
    >>> result = aggregate([["yes", "yes"], ["no", "yes"], ["no", "no"]])
    >>> path = Path(tempfile.mkdtemp()) / "consensus.csv"
    >>> formats.write(result.consensus, path, format="crowd-kit")
    >>> path.read_text().splitlines()[:2]
    ['task,agg_label', '0,yes']
    """
    check_choice("format", format, CONSENSUS_FORMATS)
    if format == "label-studio":
        shown = _shown_texts(consensus, texts, question) if tasks is None else _shown_tasks(consensus, tasks, question)
        save_file(path, json.dumps(list(shown), indent=1) + "\n")
        return
    examples, labels = consensus.examples.tolist(), consensus.label.tolist()
    if format == "crowd-kit":
        write_csv(path, ("task", "agg_label"), zip(examples, labels, strict=True), safe=False)
    elif isinstance(consensus, Consensus):
        header = ("example", "label", "confidence", *(f"p({name})" for name in consensus.classes.tolist()))
        proba = zip(*consensus.proba.T.tolist(), strict=True)
        rows = zip(examples, labels, consensus.confidence.tolist(), proba, strict=True)
        write_csv(path, header, ((*row[:3], *row[3]) for row in rows))
    else:
        write_csv(path, ("example", "label", "std"), zip(examples, labels, consensus.std.tolist(), strict=True))


def _predictions(
    consensus: Consensus | RatingConsensus, control: Record, choices: Mapping[str, list[str]]
) -> dict[str, Record]:
    """The prediction of every example, by its id as text; `choices` has what labels of several choices stand for."""
    scores = consensus.confidence.tolist() if isinstance(consensus, Consensus) else [None] * len(consensus)
    rows = zip(map(str, consensus.examples.tolist()), consensus.label.tolist(), scores, strict=True)
    return {example: _prediction(control, label, score, choices) for example, label, score in rows}


def _shown_texts(
    consensus: Consensus | RatingConsensus, texts: Mapping[Any, str] | None, question: str | None
) -> Iterator[Record]:
    if texts is None:
        raise DataError(
            "Label Studio needs to know what to show: give the export (tasks=...) or the texts (texts=...)."
        )
    kind = "choices" if isinstance(consensus, Consensus) else "number"
    control = {"from_name": question or "label", "to_name": "text", "type": kind}
    shown = {str(example): text for example, text in texts.items()}
    for example, prediction in _predictions(consensus, control, {}).items():
        if example in shown:
            yield {"data": {"text": shown[example]}, "predictions": [prediction]}


def _shown_tasks(
    consensus: Consensus | RatingConsensus, path: str | os.PathLike[str], question: str | None
) -> Iterator[Record]:
    """The tasks of an export, without their ids, which a new project gives anew."""
    source = Source(os.fspath(path))
    document = parse_document(source)
    tasks = document if isinstance(document, list) else [document]
    if not all(isinstance(task, dict) and is_label_studio(task) for task in tasks):
        raise DataError(f"{source.name} is not a JSON export of Label Studio: tasks with data and annotations.")
    results = [result for task in tasks for result in _results(source.name, task)]
    controls = {as_text(result.get("from_name")): result for result in results}
    chosen = choose_question(source.name, controls, question)
    choices = [choices_in(result["value"]) for result in results if as_text(result.get("from_name")) == chosen]
    parts = {Answers(source.name).label_of(several): sorted(set(map(as_text, several))) for several in choices}
    predictions = _predictions(consensus, controls[chosen], parts)
    ids = [as_text(task.get("id")) or str(number) for number, task in enumerate(tasks)]
    if predictions.keys().isdisjoint(ids):
        raise DataError(
            f"{source.name} has no task of the consensus: its first has the id {ids[0]!r}, and the first example of "
            f"the consensus is {next(iter(predictions))!r}. Give the export that the labels came from."
        )
    for id, task in zip(ids, tasks, strict=True):
        yield {"data": task["data"], "predictions": [predictions[id]] if id in predictions else []}


def _results(name: str, task: Record) -> Iterator[Record]:
    """Answers about whole examples, whose type and tags a prediction repeats."""
    for annotation in annotations_of(name, task):
        if isinstance(annotation, dict):
            yield from results_about_the_whole(name, annotation)[0]


def _prediction(control: Record, label: Any, score: float | None, choices: Mapping[str, list[str]]) -> Record:
    result: Record = {key: control[key] for key in ("from_name", "to_name", "type") if key in control}
    parts = choices.get(str(label)) or str(label).split(SEVERAL)
    try:
        result["value"] = _VALUES[control["type"]](label, parts)
    except ValueError:
        raise DataError(
            f"the question {control['from_name']!r} is answered with numbers, and the consensus has {label!r}. Pick "
            "the question that the labels answer: --question NAME (in Python: question=...)."
        ) from None
    prediction: Record = {"model_version": "crowdwise", "result": [result]}
    return prediction if score is None else {**prediction, "score": score}


# What a value of each type looks like, from a label and the choices that it stands for.
_VALUES: dict[str, Callable[[Any, list[str]], Record]] = {
    "choices": lambda label, parts: {"choices": parts},
    "taxonomy": lambda label, parts: {"taxonomy": [part.split("/") for part in parts]},
    "rating": lambda label, parts: {"rating": round(float(label))},
    "number": lambda label, parts: {"number": label},
    "pairwise": lambda label, parts: {"selected": str(label)},
}
