"""Rows of text, coded as they are read, which takes the least memory -> labels.

Identifiers, and classes, that are all whole numbers in their plain spelling become integers, as in a data frame;
``str`` gives back what was in the file. All else stays as it came.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from crowdwise._arrays import Array
from crowdwise.exceptions import LabelError
from crowdwise.labels._build import Declared, parts_of_codes
from crowdwise.labels._encode import as_objects, tidy
from crowdwise.labels._mistakes import plain_spelling
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import LabelScale

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


class _Codes(dict[str, int]):
    """A number for every text, from 0, in order of appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return len(self) - 1


class CodedRows:
    """Examples, annotators and labels, in the order of a file.

    Examples
    --------
    >>> from crowdwise.formats._coded import CodedRows
    >>> from crowdwise.labels.scale import NOMINAL
    >>> rows = CodedRows("labels.csv")
    >>> rows.extend(["1", "1"], ["ann", "bob"], ["yes", "no"])
    >>> rows.to_labels(NOMINAL, int, str, on_duplicate="error").to_matrix().tolist()
    [['yes', 'no']]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._texts = _Codes(), _Codes(), _Codes()
        self._codes = array("i"), array("i"), array("i")

    def __len__(self) -> int:
        return len(self._codes[0])

    @property
    def examples(self) -> Collection[str]:
        """The different examples."""
        return self._texts[0].keys()

    @property
    def labels(self) -> Collection[str]:
        """The different labels."""
        return self._texts[2].keys()

    def extend(self, *columns: Sequence[str]) -> None:
        """Take columns of examples, annotators and labels."""
        for codes, numbers, texts in zip(self._codes, self._texts, columns, strict=True):
            codes.extend(map(numbers.__getitem__, texts))

    def spell_alike(self, declared: Sequence[str]) -> dict[str, str]:
        """Give labels that are spelt alike one spelling, the declared or the most frequent; all, by plain spelling."""
        codes = np.frombuffer(self._codes[2], dtype=np.intc)
        often = np.bincount(codes, minlength=len(self.labels)).tolist()
        by_frequency = [text for _, text in sorted(zip(often, self.labels, strict=True), key=lambda pair: pair[0])]
        spelling = {plain_spelling(text): text for text in (*by_frequency, *declared)}
        one = _Codes()
        table = np.array([one[spelling[plain_spelling(text)]] for text in self.labels], dtype=np.intc)
        self._codes = (*self._codes[:2], array("i", table[codes].tobytes()))
        self._texts = (*self._texts[:2], one)
        return spelling

    def check(self) -> None:
        """An error if an id is empty."""
        for role, numbers, codes in zip(("example", "annotator"), self._texts, self._codes, strict=False):
            if "" in numbers:
                example, annotator, label = self._row(codes.index(numbers[""]))
                raise LabelError(
                    f"{self.name}: every label needs its example and its annotator; the {role} is empty of the label "
                    f"{label!r} (example {example!r}, annotator {annotator!r})."
                )

    def _row(self, at: int) -> list[str]:
        return [list(numbers)[codes[at]] for numbers, codes in zip(self._texts, self._codes, strict=True)]

    def to_labels(
        self,
        scale: LabelScale,
        id_of: Callable[[str], Any],
        label_of: Callable[[str], Any],
        abstain: Sequence[str] = (),
        **settings: Any,
    ) -> CrowdLabels:
        """The labels. The rows are used up: they may be many, and their memory is free when it is not needed."""
        annotators, labels = map(list, self._texts[1:])
        used = [label for label in labels if label not in abstain]
        of_used = _label_array(used, label_of, scale)
        if len(used) < len(labels):
            value_of = dict(zip(used, of_used.tolist(), strict=True))
            of_used = as_objects([value_of.get(label, label) for label in labels])
            settings["abstain"] = [label for label in labels if label in abstain]
        values = _id_array(self.examples, id_of), _id_array(annotators, kind_of_ids(annotators)), of_used
        self._texts = _Codes(), _Codes(), _Codes()
        codes = [np.frombuffer(column, dtype=np.intc) for column in self._codes]
        self._codes = array("i"), array("i"), array("i")
        columns = list(zip(codes, values, strict=True))
        del codes
        return CrowdLabels(**parts_of_codes(columns, Declared(scale.name, **settings))).with_scale(scale.name)


def kind_of_ids(ids: Sequence[str]) -> Callable[[str], Any]:
    """What makes an id of a text: whole numbers if all are."""
    return int if ids and all(map(_WHOLE.fullmatch, ids)) else str


def kind_of_labels(labels: Sequence[str]) -> Callable[[str], Any]:
    """What makes a label of a text: numbers if all are."""
    if not labels or not all(map(NUMBER.fullmatch, labels)):
        return str
    if all(map(_WHOLE.fullmatch, labels)):
        return int
    return float if all(math.isfinite(float(label)) for label in labels) else str


def _id_array(ids: Collection[str], kind: Callable[[str], Any]) -> Array:
    return np.fromiter(map(int, ids), np.int64, len(ids)) if kind is int else as_objects(list(ids))


def _label_array(labels: Sequence[str], kind_of: Callable[[str], Any], scale: LabelScale) -> Array:
    if scale.has_classes:
        return tidy([kind_of(label) for label in labels]) if labels else as_objects([])
    for label in labels:
        if not NUMBER.fullmatch(label):
            raise LabelError(f'ratings must be numbers; found {label!r}. Use scale="nominal" for classes.')
    return np.fromiter(map(float, labels), np.float64, len(labels))
