"""Answers as a file has them -> labels, texts and known answers.

Cells are text and coded as they are read, which takes the least memory. Identifiers, and classes, that are all whole
numbers in their plain spelling become integers, as in a data frame; ``str`` gives back what was in the file. All else
stays as it came.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from crowdwise._arrays import Array
from crowdwise._text import count, some_names
from crowdwise.exceptions import LabelError
from crowdwise.formats._names import choose_question
from crowdwise.labels._build import Declared, parts_of_codes
from crowdwise.labels._encode import as_objects, tidy
from crowdwise.labels._mistakes import perhaps, plain_spelling
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import NOMINAL, LabelScale
from crowdwise.tables import as_text

# Cells that hold no label, besides empty ones. "None" may well be a class.
MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
# Between several choices that are one answer.
SEVERAL = "|"
OnDuplicate = Literal["error", "first", "last", "runs"]
WIDE = "wide table"  # the format of a table with a column per annotator
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class LabelFile:
    """Labels from a file, and what else was in it.

    Parameters
    ----------
    labels : CrowdLabels
        Which annotator gave which example which label.
    texts : mapping from example to str, or None
        What was labelled, where the file has it.
    truth : mapping from example to label, or None
        Answers that the file marks as the right ones; they are not among the labels.
    format : str
        What the file was taken for.
    notes : tuple of str
        What was guessed and what was left out, in plain sentences.
    question : str, default=None
        The question that the labels answer, if the file names it.
    """

    labels: CrowdLabels
    texts: Mapping[Any, str] | None
    truth: Mapping[Any, Any] | None
    format: str
    notes: tuple[str, ...]
    question: str | None = None


@dataclass(frozen=True)
class ReadOptions:
    """What the caller of `read` asked for; None where nothing was."""

    example: str | None = None
    annotator: str | tuple[str, ...] | None = None
    label: str | None = None
    wide: bool | None = None
    question: str | None = None
    missing: tuple[str, ...] = MISSING
    abstain: tuple[str, ...] = ()
    on_duplicate: OnDuplicate = "error"
    scale: LabelScale = NOMINAL
    classes: tuple[str, ...] | None = None
    strip: bool = False
    texts: bool | str = True
    on_rows: Callable[[int], object] | None = None

    @property
    def text(self) -> str | None:
        """The column of the texts, if it is named."""
        return self.texts if isinstance(self.texts, str) else None

    @property
    def no_labels(self) -> set[str]:
        """Cells that are no label."""
        return {"", *self.missing, *self.abstain}


class Stripped(dict[str, str]):
    """Labels without spaces at their ends; one that is spelt like a label that means "none" is that one.

    The usual ones of `missing`, such as NA, count as they are written only: "na" may be a class.

    Examples
    --------
    >>> from crowdwise.formats._answers import Stripped
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


class Answer(NamedTuple):
    """An answer about an example to one of several questions."""

    question: str
    annotator: str
    value: Any  # a class or a rating, or a list of choices
    time: str = ""  # a text that sorts: the newest answer of an annotator to an example counts
    # A person; a model, which is called so; a judge, whose answers to one example are runs of it; the right answer.
    kind: Literal["person", "model", "judge", "truth"] = "person"


class _Numbering(dict[str, int]):
    """A number for every text, from 0, in order of appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return len(self) - 1


class Answers:
    """All that is taken from a file, in its order.

    Examples
    --------
    >>> from crowdwise.formats._answers import Answers
    >>> answers = Answers("labels.csv")
    >>> answers.add("a", "ann", "1")
    >>> answers.add("a", "bob", "NA")
    >>> answers.label_file("table").notes
    ("left out: rows without a label (1 'NA')",)
    """

    def __init__(self, name: str, options: ReadOptions | None = None) -> None:
        self.name, self.options = name, options or ReadOptions()
        self.texts: dict[str, str] = {}
        self.truth: dict[str, str] = {}
        self.left_out: Counter[str] = Counter()  # what, and how many of it
        self.notes: list[str] = []
        # What makes a sentence of all names that it is about.
        self.remarks: defaultdict[Callable[[list[str]], str], list[str]] = defaultdict(list)
        self.question: str | None = None
        self.seen: set[str] = set()  # ids of answers, which some tools repeat
        self._spelling = plain_spelling if self.options.strip else str
        self._stripped = Stripped(self.options.missing)
        self._missing = frozenset({"", *self.options.missing})
        self._n_missing: Counter[str] = Counter()
        # Examples, annotators and labels: the number of each text, and the numbers of all rows.
        self._numbers = [_Numbering() for _ in range(3)]
        self._rows = [array("i") for _ in range(3)]
        self._runs: Counter[tuple[str, str, str]] = Counter()
        self._judge_of: dict[str, str] = {}  # a further run of a judge -> the judge
        self._to_questions: list[tuple[str, Answer]] = []  # with their examples; values are labels
        # A question and a label of several choices, or that looks like it -> the choices.
        self._chosen: dict[tuple[str, str], frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._rows[0])

    def add(self, example: str, annotator: str, label: str) -> None:
        """Take one answer."""
        self.extend([example], [annotator], [label])

    def extend(self, examples: Sequence[str], annotators: Sequence[str], labels: Sequence[str]) -> None:
        """Take columns of answers; no example and no annotator may be empty where there is a label."""
        if self.options.on_duplicate == "runs":
            annotators = list(map(self._run_of, annotators, examples))
        if self.options.strip:
            labels = list(map(self._stripped.__getitem__, labels))
        if not self._missing.isdisjoint(labels):
            self._n_missing.update(label for label in labels if label in self._missing)
            rows = [row for row in zip(examples, annotators, labels, strict=True) if row[2] not in self._missing]
            examples, annotators, labels = zip(*rows, strict=True) if rows else ((), (), ())
        for codes, numbers, texts in zip(self._rows, self._numbers, (examples, annotators, labels), strict=True):
            codes.extend(map(numbers.__getitem__, texts))

    def take(self, example: str, answer: Answer) -> None:
        """Take an answer to one of several questions."""
        question, annotator = answer.question, answer.annotator or "(unknown)"
        label = self.label_of(answer.value, question)
        if answer.kind == "model":
            annotator = f"model:{annotator}"
            self.note(f"the predictions of {annotator!r} count as a separate annotator.")
        elif answer.kind == "judge":
            annotator = self._run_of(annotator, example, question)
        self._to_questions.append((example, answer._replace(annotator=annotator, value=label)))

    def note(self, sentence: str) -> None:
        """Note something once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _run_of(self, judge: str, example: str, question: str = "") -> str:
        """The annotator of one more answer of a judge: its runs on an example are annotators who share a vote."""
        self._runs[judge, example, question] += 1
        if (n := self._runs[judge, example, question]) == 1:
            return judge
        run = f"{judge} (run {n})"
        self._judge_of[run] = judge
        return run

    def label_of(self, value: Any, question: str = "") -> str:
        """The label of an answer: several choices are a class of their own, in any order; none is an empty text.

        Examples
        --------
        >>> from crowdwise.formats._answers import Answers
        >>> answers = Answers("tasks.json")
        >>> answers.label_of(["b", "a"]), answers.label_of(3), answers.label_of([])
        ('a|b', '3', '')
        """
        choices = frozenset(filter(None, map(as_text, value if isinstance(value, list) else [value])))
        label = SEVERAL.join(sorted(choices))
        alike = frozenset(map(self._spelling, choices))
        if SEVERAL in label and self._chosen.setdefault((question, self._spelling(label)), alike) != alike:
            raise LabelError(
                f"{self.name}: {label!r} is the name of a class and also what the choice of several classes would be "
                f"called. Rename the class without {SEVERAL!r}."
            )
        return label

    def choose_question(self, named: str | None) -> None:
        """Take the answers to the question named, or to the only one, the newest of each annotator."""
        questions = {answer.question: None for _, answer in self._to_questions}
        self.question = question = choose_question(self.name, questions, named)
        if len(questions) > 1:
            self.notes.append(f"question: {question}")
        newest: dict[tuple[str, str], Answer] = {}
        known: list[tuple[str, Answer]] = []
        for example, answer in self._to_questions:
            if answer.question != question:
                continue
            earlier = newest.get((example, answer.annotator))
            if not answer.value:
                self._n_missing[""] += 1
            elif answer.kind == "truth":
                known.append((example, answer))
            else:
                self.left_out["earlier answers of the same annotator to the same example"] += earlier is not None
                if earlier is None or answer.time >= earlier.time:
                    newest[example, answer.annotator] = answer
        for (example, annotator), answer in newest.items():
            self.add(example, annotator, answer.value)
        for example, answer in sorted(known, key=lambda pair: pair[1].time):
            self.truth[example] = answer.value
        labels = [answer.value for answer in newest.values()]
        several = [label for label in labels if len(self._chosen.get((question, self._spelling(label)), ())) > 1]
        if several:
            self.notes.append(
                f"{count(len(several), 'answer is', 'answers are')} several choices at once; each combination is a "
                f"class, such as {several[0]!r}."
            )

    def label_file(self, format: str) -> LabelFile:
        """All that was taken; `format` is what the file was taken for. The answers are used up: they may be many."""
        remarks = [make(names) for make, names in self.remarks.items()]
        notes = [*self.notes, *remarks, *self._left_out("cells" if format == WIDE else "rows"), *self._never_given()]
        if len(self) == 0:
            raise LabelError("; ".join([f"{self.name}: it contains no labels (format: {format})", *notes]) + ".")
        if self.options.strip:
            self._spell_alike()
        self._refuse_empty_ids()
        classes, (examples, _, given) = self.options.classes, self._numbers
        used = [label for label in given if label not in self.options.abstain]
        id_of = _kind_of_ids([*examples, *self.texts, *self.truth])
        label_of = _kind_of_labels([*used, *self.truth.values(), *(classes or ())])
        labels = self._labels(id_of, label_of, used)
        if labels.n_abstentions:
            notes.append(f"{count(labels.n_abstentions, 'abstention')} (counted, not used as labels)")
        annotators = set(labels.annotators.tolist())
        if runs := {run: judge for run, judge in self._judge_of.items() if run in annotators}:
            labels = labels.with_groups({**runs, **{judge: judge for judge in runs.values()}})
            notes.append(f"runs of one judge share a vote: {some_names(list(dict.fromkeys(runs.values())))}")
        texts = {id_of(example): text for example, text in self.texts.items()}
        truth = {id_of(example): label_of(label) for example, label in self.truth.items()}
        return LabelFile(labels, texts or None, truth or None, format, tuple(notes), self.question)

    def _left_out(self, rows: str) -> list[str]:
        parts = [f"{kind} ({n:,})" for kind, n in self.left_out.items() if n]
        if self._n_missing.total():
            kinds = ", ".join(f"{n:,} {repr(text) if text else 'empty'}" for text, n in self._n_missing.items() if n)
            parts.append(f"{rows} without a label ({kinds})")
        return [f"left out: {', '.join(parts)}"] if parts else []

    def _never_given(self) -> list[str]:
        """What was declared to be no label and is not in this file: perhaps it is spelt otherwise."""
        labels = self._numbers[2]
        given = set(map(self._spelling, labels))
        absent = [text for text in self.options.missing if text and text not in (*MISSING, *self._n_missing)]
        absent += [text for text in self.options.abstain if self._spelling(text) not in given]
        shown = []
        for text in absent:
            meant = {plain_spelling(part) for part in (text, *text.split(","))}
            shown.append(repr(text) + perhaps([repr(label) for label in labels if plain_spelling(label) in meant]))
        return [f"declared as no label, but never given: {', '.join(shown)}"] if absent else []

    def _spell_alike(self) -> None:
        """Give labels that are spelt alike one spelling, the declared or the most frequent."""
        codes, labels = self._rows[2], self._numbers[2]
        frequency = np.bincount(codes, minlength=len(labels)).tolist()
        by_frequency = [text for _, text in sorted(zip(frequency, labels, strict=True), key=lambda pair: pair[0])]
        declared = (*(self.options.classes or ()), *self.options.abstain)
        spelling = {plain_spelling(text): text for text in (*by_frequency, *declared)}
        numbers = _Numbering()
        table = np.array([numbers[spelling[plain_spelling(text)]] for text in labels], dtype=np.intc)
        self._rows[2], self._numbers[2] = array("i", table[codes].tobytes()), numbers
        self.truth = {key: spelling.get(plain_spelling(label), label) for key, label in self.truth.items()}

    def _refuse_empty_ids(self) -> None:
        for role, numbers, codes in zip(("example", "annotator"), self._numbers, self._rows, strict=False):
            if "" in numbers:
                row = codes.index(numbers[""])
                example, annotator, label = (
                    list(texts)[column[row]] for texts, column in zip(self._numbers, self._rows, strict=True)
                )
                raise LabelError(
                    f"{self.name}: every label needs its example and its annotator; the {role} is empty of the label "
                    f"{label!r} (example {example!r}, annotator {annotator!r})."
                )

    def _labels(self, id_of: Callable[[str], Any], label_of: Callable[[str], Any], used: Sequence[str]) -> CrowdLabels:
        """The labels. The rows are used up: they may be many, and their memory is free when it is not needed."""
        options, (examples, annotators, labels) = self.options, map(list, self._numbers)
        values, abstain = _label_array(used, label_of, options.scale), None
        if len(used) < len(labels):
            value_of = dict(zip(used, values.tolist(), strict=True))
            values = as_objects([value_of.get(label, label) for label in labels])
            abstain = [label for label in labels if label in options.abstain]
        declared = Declared(
            options.scale.name,
            None if options.classes is None else tidy([label_of(name) for name in options.classes]),
            abstain,
            on_duplicate="error" if options.on_duplicate == "runs" else options.on_duplicate,
        )
        texts = _id_array(examples, id_of), _id_array(annotators, _kind_of_ids(annotators)), values
        columns = [(np.frombuffer(codes, dtype=np.intc), of) for codes, of in zip(self._rows, texts, strict=True)]
        del self._rows, self._numbers, examples, texts
        return CrowdLabels(**parts_of_codes(columns, declared)).with_scale(options.scale.name)


def _kind_of_ids(ids: Sequence[str]) -> Callable[[str], Any]:
    """What makes an id of a text: whole numbers if all are."""
    return int if ids and all(map(_WHOLE.fullmatch, ids)) else str


def _kind_of_labels(labels: Sequence[str]) -> Callable[[str], Any]:
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
        return tidy([kind_of(label) for label in labels])
    for label in labels:
        if not NUMBER.fullmatch(label):
            raise LabelError(f'ratings must be numbers; found {label!r}. Use scale="nominal" for classes.')
    return np.fromiter(map(float, labels), np.float64, len(labels))
