"""Labels that grow while people answer: each answer is in the journal before it counts, and can be taken back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np

from crowdwise._arrays import Bools
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._write import write_labels
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import encode_declared, find_ids, shown
from crowdwise.labels._frames import index_of, make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.session.journal import Journal
from crowdwise.truths.check import share_interval

_SAME = object()


@dataclass(frozen=True)
class Answered:
    """What a person did: an answer with what it replaced, or None for a skipped example."""

    example: int
    label: Any = None
    before: Any = None
    time: str = ""


class Answers:
    """Labels, known answers of some examples, and what each person did.

    Parameters
    ----------
    labels : CrowdLabels
        Those that are there already; known answers that they carry measure people.
    experts : iterable of str
        People whose answers are known to be right.
    """

    def __init__(self, labels: CrowdLabels, experts: Iterable[str]) -> None:
        self.labels = replace(labels, truth=None)
        self.experts = frozenset(experts)
        self._done: dict[str, list[Answered]] = {}
        self._given_truth = np.full(len(labels), -1) if labels.truth is None else labels.truth
        self._truth = np.array(self._given_truth)
        self._lock = threading.RLock()
        self._version = 0
        self._journal: Journal | None = None

    def _go_on_from(self, journal: str | os.PathLike[str]) -> None:
        """Do again what a journal has, and write into it from then on."""
        self._journal = Journal(journal)
        for entry in list(self._journal.entries):
            self._apply(**entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()

    def answer(self, example: Any, person: str, label: Any) -> None:
        """A person's answer; another one for the same example takes its place.

        Parameters
        ----------
        example : object
            Its id.
        person : str
            Who answers.
        label : object
            One of the classes.
        """
        self.position_of(example)
        self.code_of(label)
        self._do({"do": "answer", "example": example, "person": name_of(person), "label": label})

    def skip(self, example: Any, person: str) -> None:
        """A person does not answer an example, which is not offered to them again.

        Parameters
        ----------
        example : object
            Its id.
        person : str
            Who skips it.
        """
        self.position_of(example)
        self._do({"do": "skip", "example": example, "person": name_of(person)})

    def undo(self, person: str) -> Any:
        """Take back the last thing that a person did.

        Parameters
        ----------
        person : str
            Who.

        Returns
        -------
        example : object
            The id of the example.
        """
        with self._lock:
            if not self._done.get(name_of(person)):
                raise DataError(f"{person} has nothing to undo.")
            example = self.labels.examples[self._done[person][-1].example]
            self._do({"do": "undo", "person": person})
        return example.item() if isinstance(example, np.generic) else example

    def _do(self, entry: dict[str, Any]) -> None:
        """Write into the journal, then count."""
        with self._lock:
            entry = entry | {"time": datetime.now(UTC).isoformat(timespec="milliseconds")}
            if self._journal is not None:
                self._journal.add(entry)
            self._apply(**entry)

    def _apply(self, do: str, person: str, example: Any = None, label: Any = None, time: str = "") -> None:
        done = self._done.setdefault(person, [])
        if do == "undo":
            last = done.pop()
            self._set(last.example, person, last.before if last.label is not None else _SAME)
        elif do == "skip":
            done.append(Answered(self.position_of(example), time=time))
        else:
            row = self.position_of(example)
            done.append(Answered(row, label, self._set(row, person, label), time))

    def _set(self, row: int, person: str, label: Any) -> Any:
        """Give a label, or take one away (None); what was there before."""
        if label is _SAME:
            return None
        example, labels = self.labels.examples[row], self.labels
        who = encode_declared(np.array([person], dtype=object), labels.annotators)[0]
        assert labels.classes is not None
        begin, end = labels.indptr[row], labels.indptr[row + 1]
        at = begin + np.flatnonzero(labels.annotator_index[begin:end] == who)
        before = labels.classes[labels.values[at[0]]] if len(at) else None
        if before is not None:
            labels = labels.without(example=example, annotator=person)
        if label is not None:
            labels = labels.append(example=example, annotator=person, label=label, new=True)
        if person in self.experts:
            self._truth[row] = self._given_truth[row] if label is None else self.code_of(label)
        self.labels = labels
        self._version += 1
        return before

    @property
    def people(self) -> list[str]:
        """Who has answered or skipped something here."""
        return [person for person, done in self._done.items() if done]

    def done_by(self, person: str) -> tuple[Answered, ...]:
        """What a person did, in its order.

        Parameters
        ----------
        person : str
            Who.

        Returns
        -------
        done : tuple of Answered
            `example` is a position; `label` is None for a skipped example.
        """
        return tuple(self._done.get(person, ()))

    def known_answer(self, example: Any) -> Any:
        """The known answer of an example; None if there is none.

        Parameters
        ----------
        example : object
            Its id.

        Returns
        -------
        label : object or None
        """
        code = self._truth[self.position_of(example)]
        assert self.labels.classes is not None
        return None if code < 0 else self.labels.classes[code : code + 1].tolist()[0]

    def checked(self, person: str) -> dict[str, Any]:
        """How good a person is on examples whose answer an expert gave.

        Parameters
        ----------
        person : str
            Who.

        Returns
        -------
        facts : dict
            "answers", "checked", "right", and "accuracy" with "low" and "high", None without any.
        """
        answers = {entry.example: entry.label for entry in self._done.get(person, []) if entry.label is not None}
        both = [row for row in answers if self._truth[row] >= 0]
        right = sum(int(self._truth[row]) == self.code_of(answers[row]) for row in both)
        facts: dict[str, Any] = {"answers": len(answers), "checked": len(both), "right": right}
        if not both:
            return facts | {"accuracy": None, "low": None, "high": None}
        low, high = share_interval(right / len(both), len(both))
        return facts | {"accuracy": right / len(both), "low": float(low), "high": float(high)}

    def to_frame(self) -> Any:
        """All labels, a row each.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            With the columns "example", "annotator" and "label".
        """
        return make_frame(self.labels.to_table(), self.labels.frame_library)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all labels to a CSV file with the columns example, annotator and label.

        Parameters
        ----------
        path : str or path
            Where it goes. Names that a spreadsheet would take for formulas have an apostrophe before them.
        """
        write_labels(self.labels, path)

    def position_of(self, example: Any) -> int:
        """The position of an example, from 0.

        Parameters
        ----------
        example : object
            Its id.

        Returns
        -------
        position : int
        """
        row = int(find_ids(np.array([example], dtype=object), self.labels.examples)[0])
        if row < 0:
            raise LabelError(
                f"example {shown(example)} is not among those of the session (such as "
                f"{self.labels.examples[:3].tolist()})."
            )
        return row

    def code_of(self, label: Any) -> int:
        """The position of a class among all classes, from 0.

        Parameters
        ----------
        label : object
            One of the classes.

        Returns
        -------
        code : int
        """
        assert self.labels.classes is not None
        code = int(encode_declared(np.array([label], dtype=object), self.labels.classes)[0])
        if code < 0:
            raise LabelError(f"label must be one of the classes {self.labels.classes.tolist()}; got {label!r}.")
        return code

    @property
    def version(self) -> int:
        """A number that rises when something changes."""
        return self._version

    def n_left(self, person: str) -> int:
        """How many examples can still be offered to a person.

        Parameters
        ----------
        person : str
            Who.

        Returns
        -------
        n_left : int
        """
        with self._lock:
            return int(self._left(person).sum())

    def _left(self, person: str) -> Bools:
        """What a person has neither answered nor skipped; of experts, who need no check, without known answers."""
        left = ~self._answered(person)
        left[[entry.example for entry in self._done.get(person, [])]] = False
        return left & (self._truth < 0) if person in self.experts else left

    def _answered(self, person: str) -> Bools:
        labels = self.labels
        who = encode_declared(np.array([person], dtype=object), labels.annotators)[0]
        mask = np.zeros(len(labels), dtype=bool)
        if who >= 0:
            mask[labels.example_index[labels.annotator_index == who]] = True
        return mask


def name_of(person: Any) -> str:
    if not isinstance(person, str) or not person:
        raise ValueError(f"person must be a name, a text that is not empty; got {person!r}.")
    return person


def first_labels(labels: Any, X: Any, texts: Any, classes: Sequence[Any] | None) -> CrowdLabels:
    if labels is not None:
        crowd = as_labels(labels)
        return crowd if classes is None else crowd._with_classes(np.asarray(classes))
    if X is None and texts is None:
        raise ValueError("a session needs examples: give labels, X or texts.")
    if classes is None or len(classes) < 2:
        raise ValueError("a session without labels needs classes, two at least: classes=[...].")
    if isinstance(texts, Mapping):
        ids: Any = list(texts)
    else:
        ids = index_of(X) if X is not None else None
        ids = np.arange(len(texts) if X is None else X.shape[0]) if ids is None else ids
    nothing: dict[str, Any] = {name: np.zeros(0, dtype=object) for name in ("example", "annotator", "label")}
    return CrowdLabels.from_table(nothing, examples=ids, classes=list(classes))
