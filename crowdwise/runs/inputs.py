"""Files of labels, features and known answers -> the same examples on all sides, and notes about them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from crowdwise import formats
from crowdwise._arrays import Array
from crowdwise._checks import check_choice
from crowdwise._text import count
from crowdwise.exceptions import AlignmentError, DataError
from crowdwise.features import FeatureTable, Recipe, read_features
from crowdwise.formats._answers import MISSING, NUMBER, Stripped
from crowdwise.formats._names import candidates, plain_name, shell_word
from crowdwise.labels._align import with_empty_rows
from crowdwise.labels._encode import as_objects, encode_declared, id_array
from crowdwise.labels._mistakes import ids_shifted, ids_spelt_otherwise, plain_spelling
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import refuse_shifted_ids
from crowdwise.tables import Table, open_table

Join = Literal["exact", "inner"]
PathLike = str | os.PathLike[str]
# What columns with the time of a label are called, and from where on a number counts milliseconds since 1970.
_TIME_NAMES = {"time", "timestamp", "date", "datetime", "created_at", "submitted_at", "labelled_at", "annotated_at"}
_MILLISECONDS = 1e11


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run starts from; all in the order of the labels' examples.

    Parameters
    ----------
    labels : CrowdLabels
        Who gave which label.
    features : FeatureTable or None, default=None
        Features of the same examples.
    texts : list of str or None, default=None
        What was labelled.
    truth : dict from example to label, default=None
        Known answers of some examples.
    notes : tuple of str, default=()
        What was found, guessed and left out, in words.
    question : str or None, default=None
        The question that the labels answer, if their file names it.
    times : ndarray of shape (n_labels,) or None, default=None
        When each label was given, in the order of the labels.
    """

    labels: CrowdLabels
    features: FeatureTable | None = None
    texts: list[str] | None = None
    truth: dict[Any, Any] | None = None
    notes: tuple[str, ...] = field(default=())
    question: str | None = None
    times: Array | None = None

    @property
    def X(self) -> Any:
        """The features as numbers, or None."""
        return None if self.features is None else self.features.X


def read_inputs(
    labels: PathLike,
    features: PathLike | None = None,
    *,
    truth: PathLike | None = None,
    labels_as: Mapping[str, Any] | None = None,
    features_as: Mapping[str, Any] | None = None,
    join: Join = "exact",
    show: str | None = None,
    time: str | None = None,
) -> Inputs:
    """Labels, features and known answers, matched by the ids of the examples.

    Parameters
    ----------
    labels : str or path
        File of labels; anything that `crowdwise.formats.read` takes.
    features : str or path, default=None
        File of features; anything that `crowdwise.features.read_features` takes. If none is given, and a column of
        texts is named in `features_as`, the texts in the file of labels are taken.
    truth : str or path, default=None
        Table with the known answers of some examples. By default those that the file of labels marks as such.
    labels_as, features_as : mapping, default=None
        Settings of `crowdwise.formats.read`, whose encoding is that of all files, and of
        `crowdwise.features.read_features`.
    join : {"exact", "inner"}, default="exact"
        Whether labelled examples without features are an error or left out. Examples without labels are kept.
    show : str, default=None
        Column of the labels, or of the features, with texts for people to read; it becomes no feature.
    time : str, default=None
        Column of the labels, a table with a row per label, with the time of each; by default one that is named so.

    Returns
    -------
    inputs : Inputs

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.runs import read_inputs
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "labels.csv").write_text("task,worker,label\\n1,ann,yes\\n2,ann,no\\n2,bob,no\\n")
    >>> _ = (folder / "sizes.csv").write_text("id,size\\n2,0.5\\n1,1.5\\n3,1.0\\n")
    >>> inputs = read_inputs(folder / "labels.csv", folder / "sizes.csv")
    >>> inputs.labels.examples.tolist(), inputs.X.shape, inputs.notes[-1]
    ([2, 1, 3], (3, 1), '2 examples with labels and features; 1 with features only, to be predicted')
    """
    check_choice("join", join, ("exact", "inner"))
    reading = dict(labels_as or {})
    text_columns = list((features_as or {}).get("text") or ())
    if features is None and len(text_columns) == 1:
        reading.setdefault("texts", text_columns[0])
    elif show is not None:
        reading["texts"] = show
    if show is not None and reading["texts"] != show:
        raise DataError("the texts of --text are shown in the report anyway: leave out --show.")
    file = formats.read(labels, **reading)
    if show is not None and file.texts is None and features is None:
        raise DataError(f"{os.fspath(labels)} has no column {show!r} to show.")
    columns = {"encoding": reading.get("encoding"), "show": show if file.texts is None else None, **(features_as or {})}
    table = _features(file, features, columns)
    inputs = Inputs(file.labels, notes=file.notes) if table is None else _joined(file, table, join)
    texts, known = inputs.texts, dict(file.truth or {})
    notes = list(inputs.notes)
    if file.texts is not None and (texts is None or show is not None):
        texts = [file.texts.get(example, "") for example in inputs.labels.examples.tolist()]
    if truth is not None:
        known, truth_notes = read_truth(truth, inputs.labels, reading)
        notes += truth_notes
    times, time_notes = (None, ()) if file.format != "table" else _times(labels, inputs.labels, reading, time)
    if time is not None and times is None:
        raise DataError(f"--time {time} needs a table with a row per label; this is a {file.format}.")
    notes += time_notes
    return replace(inputs, texts=texts, truth=known or None, notes=tuple(notes), question=file.question, times=times)


def _times(
    path: PathLike, labels: CrowdLabels, reading: Mapping[str, Any], time: str | None
) -> tuple[Array | None, tuple[str, ...]]:
    """When each label was given, and a word about the column; None if there is no column of times."""
    if os.fspath(path) == "-":
        return None, ()
    table = open_table(path, reading.get("encoding"))
    usual = [name for name in table.header if plain_name(name) in _TIME_NAMES]
    if time is None and len(usual) != 1:
        return None, ()
    column = time or usual[0]
    if column not in table.header:
        raise DataError(f"{table.source.name} has no column {column!r}; its columns are {', '.join(table.header)}.")
    names = [reading.get(role) or next(iter(candidates(table.header, role)), "") for role in ("example", "annotator")]
    if not all(names):
        return None, ()
    examples, annotators = labels.examples[labels.example_index], labels.annotators[labels.annotator_index]
    pairs = zip(map(str, examples.tolist()), map(str, annotators.tolist()), strict=True)
    place = {pair: k for k, pair in enumerate(pairs)}
    times: Array = np.full(labels.n_labels, "NaT", dtype="datetime64[s]")
    columns = table.columns([*names, column])
    for *pair, moment in zip(*(columns[name] for name in (*names, column)), strict=True):
        if (k := place.get(tuple(pair))) is not None and moment:
            try:
                times[k] = _moment(moment)
            except (ValueError, OverflowError, OSError):
                if time is None:
                    return None, (f"column {column} has no times: {moment!r}",)
                raise DataError(
                    f"{table.source.name}: {moment!r} in {column} is not a time. Write 2026-01-31 or 2026-01-31T12:00."
                ) from None
    return times, (f"times of labels: {column}",)


def _moment(text: str) -> np.datetime64:
    """A date and time as ISO 8601 writes it, or seconds or milliseconds since 1970."""
    if NUMBER.fullmatch(text):
        seconds = float(text)
        return np.datetime64(int(seconds / 1000 if seconds > _MILLISECONDS else seconds), "s")
    moment = datetime.fromisoformat(text)
    return np.datetime64(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()), "s")


def _features(file: formats.LabelFile, path: PathLike | None, settings: dict[str, Any]) -> FeatureTable | None:
    if path is not None:
        return read_features(path, **settings)
    named = [name for key in ("text", "embedding", "columns") for name in settings.get(key) or ()]
    if not named:
        return None
    if settings.get("text") and len(named) == 1 and file.texts is not None:
        examples = list(file.texts)
        table = {named[0]: [file.texts[example] for example in examples]}
        recipe, notes = Recipe.learn(table, text=named)
        X, gaps = recipe.transform(table)
        return FeatureTable(as_objects(list(map(str, examples))), X, recipe, table[named[0]], (*notes, *gaps))
    raise DataError(
        f"the column {named[0]!r} needs a file of features: give it after the labels file. "
        "(From the labels file, only a column of texts can be used: --text COLUMN.)"
    )


def _joined(file: formats.LabelFile, table: FeatureTable, join: Join) -> Inputs:
    """Labels and features of the same examples, in the order of the features."""
    labels = file.labels
    place = {str(example): i for i, example in enumerate(labels.examples.tolist())}
    rows = np.array([place.get(example, -1) for example in table.ids.tolist()], dtype=np.intp)
    only_features = table.ids[rows < 0]
    only_labels = np.delete(labels.examples, rows[rows >= 0])
    n_both = len(labels) - len(only_labels)
    if n_both == 0 or (len(only_labels) and join == "exact"):
        raise AlignmentError(_describe_mismatch(labels.examples, table, only_labels, only_features))
    notes = [f"{count(n_both, 'example')} with labels and features"]
    if len(only_labels):
        notes.append(f"{len(only_labels):,} with labels only, left out")
    if len(only_features):
        notes.append(f"{len(only_features):,} with features only, to be predicted")
    matched = _with_unlabelled(labels, rows, table.ids)
    return Inputs(matched, table, table.texts, notes=(*file.notes, *table.notes, "; ".join(notes)))


def _describe_mismatch(examples: Array, table: FeatureTable, only_labels: Array, only_features: Array) -> str:
    n_both = len(examples) - len(only_labels)
    shown = [", ".join(repr(str(name)) for name in ids[:3].tolist()) for ids in (only_labels, only_features)]
    sides = f"{count(len(only_labels), 'example has', 'examples have')} labels only (such as {shown[0]})"
    if len(only_features):
        sides += f", {len(only_features):,} features only (such as {shown[1]})"
    if n_both == 0 and table.recipe.is_matrix:
        return (
            f"no example has both labels and features: {sides}. A NumPy file has no ids: its rows are the "
            "examples 0, 1, 2, ... Give a file with one id per row: --ids FILE."
        )
    advice = ids_spelt_otherwise(only_labels, only_features) or ids_shifted(examples, table.ids)
    if n_both == 0:
        advice = advice or "Are these the right id columns? Choose them with --example and --id."
        return f"no example has both labels and features: {sides}. {advice}"
    advice = advice or "Complete the features, or leave out examples without them: --join inner."
    return f"{count(n_both, 'example has', 'examples have')} labels and features, but {sides}. {advice}"


def _with_unlabelled(labels: CrowdLabels, rows: Array, ids: Array) -> CrowdLabels:
    """The labels in the order of the features, with empty rows for examples without labels."""
    if (rows >= 0).all():
        return replace(labels[rows], id_source="given")
    known = labels.examples.tolist()
    names = [known[i] if i >= 0 else _like(known[0], name) for i, name in zip(rows.tolist(), ids.tolist(), strict=True)]
    if len({type(name) for name in names}) > 1:  # whole numbers among the labels, other names among the features
        names = list(map(str, names))
    return with_empty_rows(labels, rows, as_objects(names))


def _like(known: Any, name: str) -> Any:
    """An id as the labels have theirs: a whole number if it is spelt like one."""
    return int(name) if isinstance(known, int) and name.lstrip("-").isdecimal() and str(int(name)) == name else name


def read_truth(
    path: PathLike, labels: CrowdLabels, reading: Mapping[str, Any] | None = None
) -> tuple[dict[Any, Any], tuple[str, ...]]:
    """Known answers of examples that are labelled, and what is worth saying about them.

    The table has a column for the example and one for its label, empty or a missing value where that is not known. They
    are called as the table of labels has them (`reading`, as for labels), or as is usual; of two columns, one is
    enough.
    """
    reading = reading or {}
    table = open_table(path, reading.get("encoding"))
    name = table.source.name
    columns, guessed = _truth_columns(name, table.header, reading)
    examples = {str(example): example for example in labels.examples.tolist()}
    truth: dict[Any, Any] = {}
    unknown: dict[str, Any] = {}
    for example, value in _answers(table, columns, labels, reading):
        if example not in examples:
            unknown[example] = value
        elif truth.setdefault(examples[example], value) != value:
            raise DataError(
                f"{name}: the example {example!r} has two different labels; one known answer per example was expected."
            )
    without = as_objects([text for text, example in examples.items() if example not in truth])
    otherwise = ids_spelt_otherwise(as_objects(list(unknown)), without)
    if labels.classes is not None and unknown and all(map(str.isdecimal, unknown)):
        answers = truth | {int(example): value for example, value in unknown.items()}
        codes = encode_declared(as_objects(list(answers.values())), labels.classes)
        refuse_shifted_ids(id_array(as_objects(list(answers))), codes, labels)
    if not truth:
        first = f"{name} has no answer for any of the examples; the first of them is {next(iter(examples))!r}."
        raise DataError(f"{first} {otherwise}".rstrip())
    notes = [f"{count(len(truth), 'known answer')} of these examples{guessed}"]
    if unknown:
        notes.append(f"{count(len(unknown), 'known answer')} ignored: no labels or features")
    if otherwise:
        notes.append(otherwise.removesuffix("."))
    return truth, tuple(notes)


def _answers(
    table: Table, columns: Sequence[str], labels: CrowdLabels, reading: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Examples as they are spelt, and their classes or ratings, where these are known."""
    missing, strip = {*reading.get("missing", MISSING), *reading.get("abstain", ())}, reading.get("strip", False)
    stripped = Stripped(missing)
    value_of = _number if labels.classes is None else _class_among(labels.classes.tolist(), strip)
    for row, (example, text) in enumerate(zip(*table.columns(columns).values(), strict=True), start=1):
        label = stripped[text] if strip else text
        if label and label not in missing:
            try:
                yield example, value_of(label)
            except ValueError as error:
                raise DataError(f"{table.source.name}, row {row} after the header: {error}") from None


def _class_among(classes: Sequence[Any], strip: bool) -> Callable[[str], Any]:
    spelt = plain_spelling if strip else str
    known = {spelt(str(value)): value for value in classes}
    numbers = {Decimal(name): value for name, value in known.items() if NUMBER.fullmatch(name)}

    def value_of(label: str) -> Any:
        if spelt(label) in known:
            return known[spelt(label)]
        same = numbers.get(Decimal(label)) if NUMBER.fullmatch(label) else None
        if same is not None and not isinstance(same, str):  # 5.0, as a column with gaps is often written
            return same
        if same is not None:
            raise ValueError(f"the label {label!r} is the number of the class {same!r}: write it as the labels do.")
        fault = f"the label {label!r} is not among the classes of the labels,"
        alike = [str(value) for value in classes if plain_spelling(str(value)) == plain_spelling(label)]
        if alike:
            raise ValueError(f"{fault} but spelt like {alike[0]!r}. If they mean the same: --strip.")
        raise ValueError(
            f"{fault} {', '.join(map(repr, known))}. If it means that the answer is not known: "
            f"--missing {shell_word(label)}. If it is a class that nobody gave: "
            f"--classes {shell_word(','.join([*known, label]))}."
        )

    return value_of


def _number(label: str) -> float:
    try:
        value = float(label)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"ratings must be numbers; got {label!r}.")
    return value


def _truth_columns(name: str, header: Sequence[str], reading: Mapping[str, Any]) -> tuple[list[str], str]:
    """The columns with the example and with its known answer, and a word about them if they were guessed."""
    as_labels = {role: [column for column in header if column == reading.get(role)] for role in ("example", "label")}
    example = as_labels["example"] or candidates(header, "example")
    answer = candidates(header, "truth") or as_labels["label"] or candidates(header, "label")
    guessed = len(header) == 2 and (len(example) == 1) != (len(answer) == 1)
    if guessed and len(example) == 1:
        answer = [column for column in header if column != example[0]]
    elif guessed:
        example = [column for column in header if column != answer[0]]
    for role, meaning, columns in (("example", "example", example), ("label", "known answer", answer)):
        if len(columns) != 1:
            raise DataError(
                f"{name}: one column with the {meaning} was expected, named like {role!r}; its columns are "
                f"{', '.join(header)}. Rename it to {role!r}, or keep two columns only: the example and its answer."
            )
    return [*example, *answer], f" (columns: {example[0]}, {answer[0]})" if guessed else ""
