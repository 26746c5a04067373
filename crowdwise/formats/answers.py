"""Answers as they are read, one by one or in columns -> labels, with examples, annotators and labels coded on the way.

Cells are text. Identifiers, and classes, that are all whole numbers in their plain spelling become integers, as in a
data frame; ``str`` gives back what was in the file. All else stays as it came.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from crowdwise._arrays import Array
from crowdwise.exceptions import LabelError
from crowdwise.labels.build import Kind, parts_of_codes
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_objects, tidy
from crowdwise.labels.mistakes import plain_spelling

# Cells that hold no label, besides empty ones. "None" may well be a class.
MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class _Codes(dict[str, int]):
    """A number for every text, from 0, in order of appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return len(self) - 1


class Stripped(dict[str, str]):
    """Labels without spaces at their ends; one that is spelt like a label that means "none" is that one.

    Parameters
    ----------
    missing : collection of str
        Labels that mean "none". The usual ones, such as NA, count as they are written only: "na" may be a class.

    Examples
    --------
    >>> from crowdwise.formats.answers import Stripped
    >>> stripped = Stripped(["NA", "unsure"])
    >>> stripped[" Yes"], stripped["UNSURE "], stripped["na"]
    ('Yes', 'unsure', 'na')
    """

    def __init__(self, missing: Collection[str]) -> None:
        super().__init__()
        self._none = {plain_spelling(text): text for text in missing if text not in MISSING}

    def __missing__(self, text: str) -> str:
        self[text] = self._none.get(plain_spelling(text), text.strip())
        return self[text]


class Answers:
    """Labels in the order of a file.

    Parameters
    ----------
    missing : collection of str, default=MISSING
        Labels that mean "none"; an empty one always does.
    strip : bool, default=False
        Whether labels that differ in spaces at their ends, capitals or the coding of accents only are one.

    Examples
    --------
    >>> from crowdwise.formats.answers import Answers
    >>> answers = Answers()
    >>> answers.add("a", "ann", "1")
    >>> answers.add("a", "bob", "NA")
    >>> answers.labels().n_labels, answers.n_missing
    (1, {'NA': 1})
    """

    def __init__(self, missing: Collection[str] = MISSING, *, strip: bool = False) -> None:
        self.strip = strip
        self._stripped = Stripped(missing)
        self.missing = frozenset({"", *missing})
        self.n_missing: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.truth: dict[str, str] = {}
        self.left_out: Counter[str] = Counter()  # what, and how many of it
        self.notes: list[str] = []
        self._indices = _Codes(), _Codes(), _Codes()
        self._columns = array("i"), array("i"), array("i")

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, example: str, annotator: str, label: str) -> None:
        """Take one answer."""
        self.extend([example], [annotator], [label])

    def extend(self, examples: Sequence[str], annotators: Sequence[str], labels: Sequence[str]) -> None:
        """Take columns of answers; no example and no annotator may be empty where there is a label."""
        if self.strip:
            labels = list(map(self._stripped.__getitem__, labels))
        if not self.missing.isdisjoint(labels):
            examples, annotators, labels = self._given(examples, annotators, labels)
        for column, index, texts in zip(self._columns, self._indices, (examples, annotators, labels), strict=True):
            column.extend(map(index.__getitem__, texts))

    def _given(self, *columns: Sequence[str]) -> Iterable[Sequence[str]]:
        rows = []
        for row in zip(*columns, strict=True):
            if row[2] in self.missing:
                self.n_missing[row[2]] = self.n_missing.get(row[2], 0) + 1
            else:
                rows.append(row)
        return zip(*rows, strict=True) if rows else ((), (), ())

    def labels(
        self,
        *,
        on_duplicate: Literal["error", "first", "last"] = "error",
        kind: Kind = "class",
        abstain: Collection[str] = (),
        classes: Sequence[str] | None = None,
    ) -> CrowdLabels:
        """All that was taken, as `CrowdLabels.from_table` makes them. The answers are used up: they may be many."""
        if self.strip:
            self._spell_alike([*(classes or ()), *abstain])
        examples, annotators, labels = (list(index) for index in self._indices)
        if classes is not None:
            self._refuse_others({*classes, *abstain}, classes)
        self._indices = _Codes(), _Codes(), _Codes()
        columns, self._columns = self._columns, (array("i"), array("i"), array("i"))
        self._id_of = _kind_of_ids([*examples, *self.texts, *self.truth] if self.texts or self.truth else examples)
        told = [label for label in labels if label not in abstain]
        self._label_of = _kind_of_labels([*told, *self.truth.values(), *(classes or ())])
        declared = None if classes is None else tidy([self._label_of(name) for name in classes])
        distinct = (
            _id_array(examples, self._id_of),
            _id_array(annotators, _kind_of_ids(annotators)),
            _label_array(told, self._label_of, kind),
        )
        if len(told) < len(labels):
            value_of = dict(zip(told, distinct[2].tolist(), strict=True))
            values = (*distinct[:2], as_objects([value_of.get(label, label) for label in labels]))
            cells = [each[np.frombuffer(codes, dtype=np.intc)] for codes, each in zip(columns, values, strict=True)]
            table = dict(zip(("example", "annotator", "label"), cells, strict=True))
            said = [label for label in labels if label in abstain]
            return CrowdLabels.from_table(table, on_duplicate=on_duplicate, kind=kind, abstain=said, classes=declared)
        coded = [(np.frombuffer(codes, dtype=np.intc), values) for codes, values in zip(columns, distinct, strict=True)]
        del columns, examples  # which would be held until the end
        return CrowdLabels(**parts_of_codes(coded, on_duplicate=on_duplicate, kind=kind, classes=declared))

    def _spell_alike(self, declared: Sequence[str]) -> None:
        """Give labels that are spelt alike one spelling: the declared one, else the most frequent."""
        codes = np.frombuffer(self._columns[2], dtype=np.intc)
        often = np.bincount(codes, minlength=len(self._indices[2])).tolist()
        by_frequency = sorted(zip(self._indices[2], often, strict=True), key=lambda pair: pair[1])
        spelling = {plain_spelling(text): text for text, _ in by_frequency}
        spelling |= {plain_spelling(text): text for text in declared}
        one = _Codes()
        table = np.array([one[spelling[plain_spelling(text)]] for text in self._indices[2]], dtype=np.intc)
        column = array("i", table[codes].tobytes()) if len(codes) else array("i")
        self._columns, self._indices = (*self._columns[:2], column), (*self._indices[:2], one)
        self.truth = {key: spelling.get(plain_spelling(label), label) for key, label in self.truth.items()}

    def _refuse_others(self, known: Collection[str], classes: Sequence[str]) -> None:
        """An error if a label is none of the declared classes."""
        examples, annotators, labels = (list(index) for index in self._indices)
        for code, label in enumerate(labels):
            if label not in known:
                row = self._columns[2].index(code)
                who, what = annotators[self._columns[1][row]], examples[self._columns[0][row]]
                raise LabelError(
                    f"labels must be among the declared classes, {', '.join(map(repr, classes))}; found {label!r} for "
                    f"example {what!r}, annotator {who!r}. Declare it too, or say that it is no label: --missing or "
                    "--abstain (missing=..., abstain=...)."
                )

    def has_label(self, text: str) -> bool:
        """Whether a label was given, in any spelling if these are one. Only before `labels`."""
        return bool(self.spelt_like(text, parts=False)) if self.strip else text in self._indices[2]

    def spelt_like(self, text: str, *, parts: bool = True) -> list[str]:
        """Labels that may be meant by another text: spelt alike, or named in it with commas. Only before `labels`."""
        meant = {plain_spelling(part) for part in (text, *(text.split(",") if parts else ()))}
        return [label for label in self._indices[2] if plain_spelling(label) in meant]

    def texts_by_example(self) -> dict[Any, str] | None:
        """The texts, by the ids that `labels` has; None if there are none. Only after `labels`."""
        return {self._id_of(example): text for example, text in self.texts.items()} or None

    def truth_by_example(self) -> dict[Any, Any] | None:
        """The known answers, in the types of `labels`; None if there are none. Only after `labels`."""
        return {self._id_of(example): self._label_of(label) for example, label in self.truth.items()} or None


def _kind_of_ids(ids: Sequence[str]) -> Callable[[str], Any]:
    return int if ids and all(map(_WHOLE.fullmatch, ids)) else str


def _kind_of_labels(labels: Sequence[str]) -> Callable[[str], Any]:
    if not labels or not all(map(NUMBER.fullmatch, labels)):
        return str
    if all(map(_WHOLE.fullmatch, labels)):
        return int
    return float if all(math.isfinite(float(label)) for label in labels) else str


def _id_array(ids: Sequence[str], kind: Callable[[str], Any]) -> Array:
    return np.fromiter(map(int, ids), np.int64, len(ids)) if kind is int else as_objects(ids)


def _label_array(labels: Sequence[str], kind_of: Callable[[str], Any], kind: Kind) -> Array:
    if kind == "class":
        return tidy([kind_of(label) for label in labels]) if labels else as_objects([])
    for label in labels:
        if not NUMBER.fullmatch(label):
            raise LabelError(f'ratings must be numbers; found {label!r}. Use kind="class" for classes.')
    return np.fromiter(map(float, labels), np.float64, len(labels))
