"""A consensus -> a file for people, for crowd-kit, or for Label Studio to show beside its tasks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crowdwise._checks import check_choice
from crowdwise.consensus import Consensus, RatingConsensus
from crowdwise.exceptions import DataError
from crowdwise.formats.csv_file import save_file, write_csv
from crowdwise.formats.fields import SEVERAL, Record, choose_question, list_in
from crowdwise.formats.label_studio import is_label_studio, results_about_the_whole
from crowdwise.tables import Source
from crowdwise.tables.json_rows import as_text, parse_document

CONSENSUS_FORMATS = ("csv", "crowd-kit", "label-studio")
_MODEL = "crowdwise"


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


def _predictions(consensus: Consensus | RatingConsensus) -> dict[str, tuple[Any, float | None]]:
    """The label of every example with its confidence, by its id as text."""
    sure = consensus.confidence.tolist() if isinstance(consensus, Consensus) else [None] * len(consensus)
    labels = zip(consensus.label.tolist(), sure, strict=True)
    return dict(zip(map(str, consensus.examples.tolist()), labels, strict=True))


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
    for example, (label, score) in _predictions(consensus).items():
        if example in shown:
            yield {"data": {"text": shown[example]}, "predictions": [_prediction(control, label, score)]}


def _shown_tasks(
    consensus: Consensus | RatingConsensus, path: str | os.PathLike[str], question: str | None
) -> Iterator[Record]:
    """The tasks of an export, without their ids, which a new project gives anew."""
    source = Source(os.fspath(path))
    document = parse_document(source)
    tasks = document if isinstance(document, list) else [document]
    if not all(isinstance(task, dict) and is_label_studio(task) for task in tasks):
        raise DataError(f"{source.name} is not a JSON export of Label Studio: tasks with data and annotations.")
    controls = {as_text(one.get("from_name")): one for task in tasks for one in _results(source.name, task)}
    control = controls[choose_question(source.name, controls, question)]
    predictions = _predictions(consensus)
    ids = [as_text(task.get("id")) or str(number) for number, task in enumerate(tasks)]
    if predictions.keys().isdisjoint(ids):
        raise DataError(
            f"{source.name} has no task of the consensus: its first has the id {ids[0]!r}, and the first example of "
            f"the consensus is {next(iter(predictions))!r}. Give the export that the labels came from."
        )
    for id, task in zip(ids, tasks, strict=True):
        shown = [_prediction(control, *predictions[id])] if id in predictions else []
        yield {"data": task["data"], "predictions": shown}


def _results(name: str, task: Record) -> Iterator[Record]:
    """Answers about whole examples, whose type and tags a prediction repeats."""
    for annotation in list_in(name, task, "annotations") or list_in(name, task, "completions"):
        if isinstance(annotation, dict):
            yield from results_about_the_whole(name, annotation)[0]


def _prediction(control: Record, label: Any, score: float | None) -> Record:
    result: Record = {key: control[key] for key in ("from_name", "to_name", "type") if key in control}
    try:
        result["value"] = _VALUES[control["type"]](label)
    except ValueError:
        raise DataError(
            f"the question {control['from_name']!r} is answered with numbers, and the consensus has {label!r}. Pick "
            "the question that the labels answer: --question NAME (in Python: question=...)."
        ) from None
    prediction: Record = {"model_version": _MODEL, "result": [result]}
    return prediction if score is None else {**prediction, "score": score}


# What a value of each type looks like.
_VALUES: dict[str, Callable[[Any], Record]] = {
    "choices": lambda label: {"choices": str(label).split(SEVERAL)},
    "taxonomy": lambda label: {"taxonomy": [path.split("/") for path in str(label).split(SEVERAL)]},
    "rating": lambda label: {"rating": round(float(label))},
    "number": lambda label: {"number": label},
    "pairwise": lambda label: {"selected": str(label)},
}
