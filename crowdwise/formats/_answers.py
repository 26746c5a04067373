"""Answers as a file has them -> labels, texts and known answers. Cells are text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from crowdwise._text import count, some_names
from crowdwise.exceptions import LabelError
from crowdwise.formats._coded import CodedRows, kind_of_ids, kind_of_labels
from crowdwise.formats._names import shell_word
from crowdwise.labels._encode import tidy
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


class Given(NamedTuple):
    """An answer about an example to one of several questions."""

    question: str
    annotator: str
    value: Any  # a class or a rating, or a list of choices
    time: str = ""  # a text that sorts: the newest answer of an annotator to an example counts
    # A person; a model, which is called so; a judge, whose answers to one example are runs of it; the right answer.
    kind: Literal["person", "model", "judge", "truth"] = "person"


class _Answer(NamedTuple):
    """An answer that is not empty, with its label."""

    question: str
    example: str
    annotator: str
    label: str
    time: str


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
        self.question: str | None = None
        self.seen: set[str] = set()  # ids of answers, which some tools repeat
        self._runs: Counter[tuple[str, str, str]] = Counter()
        self._judge_of: dict[str, str] = {}  # a further run of a judge -> the judge
        self._stripped = Stripped(self.options.missing)
        self._missing = frozenset({"", *self.options.missing})
        self._n_missing: Counter[str] = Counter()
        self._rows = CodedRows(name)
        self._to_questions: list[_Answer] = []
        self._known: list[_Answer] = []
        self._n_empty: Counter[str] = Counter()  # answers without a label, by question
        # What makes a sentence of all names that it is about.
        self.remarks: defaultdict[Callable[[list[str]], str], list[str]] = defaultdict(list)
        # A question and a label of several choices, or that looks like it -> the choices.
        self._chosen: dict[tuple[str, str], frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, example: str, annotator: str, label: str) -> None:
        """Take one answer."""
        self.extend([example], [annotator], [label])

    def extend(self, examples: Sequence[str], annotators: Sequence[str], labels: Sequence[str]) -> None:
        """Take columns of answers; no example and no annotator may be empty where there is a label."""
        if self.options.on_duplicate == "runs":
            annotators = list(map(self.run_of, annotators, examples))
        if self.options.strip:
            labels = list(map(self._stripped.__getitem__, labels))
        if not self._missing.isdisjoint(labels):
            self._n_missing.update(label for label in labels if label in self._missing)
            rows = [row for row in zip(examples, annotators, labels, strict=True) if row[2] not in self._missing]
            examples, annotators, labels = zip(*rows, strict=True) if rows else ((), (), ())
        self._rows.extend(examples, annotators, labels)

    def take(self, example: str, given: Given) -> None:
        """Take an answer to one of several questions."""
        question, annotator = given.question, given.annotator or "(unknown)"
        label = self.label_of(given.value, question)
        if given.kind == "model":
            annotator = f"model:{annotator}"
            self.note(f"the predictions of {annotator!r} are an annotator of their own.")
        elif given.kind == "judge":
            annotator = self.run_of(annotator, example, question)
        if not label:
            self._n_empty[question] += 1
        else:
            answers = self._known if given.kind == "truth" else self._to_questions
            answers.append(_Answer(question, example, annotator, label, given.time))

    def note(self, sentence: str) -> None:
        """Note something once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def run_of(self, judge: str, example: str, question: str = "") -> str:
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
        spelt = plain_spelling if self.options.strip else str
        alike = frozenset(map(spelt, choices))
        if SEVERAL in label and self._chosen.setdefault((question, spelt(label)), alike) != alike:
            raise LabelError(
                f"{self.name}: {label!r} is the name of a class and also what the choice of several classes would be "
                f"called. Rename the class without {SEVERAL!r}."
            )
        return label

    def label_file(self, format: str) -> LabelFile:
        """All that was taken; `format` is what the file was taken for. The answers are used up: they may be many."""
        remarks = [make(names) for make, names in self.remarks.items()]
        notes = [*self.notes, *remarks, *self._left_out("cells" if format == WIDE else "rows"), *self._never_given()]
        if len(self) == 0:
            raise LabelError("; ".join([f"{self.name}: there is no label in it (taken for: {format})", *notes]) + ".")
        options, rows = self.options, self._rows
        if options.strip:
            spelling = rows.spell_alike((*(options.classes or ()), *options.abstain))
            self.truth = {key: spelling.get(plain_spelling(label), label) for key, label in self.truth.items()}
        rows.check()
        used = [label for label in rows.labels if label not in options.abstain]
        id_of = kind_of_ids([*rows.examples, *self.texts, *self.truth])
        label_of = kind_of_labels([*used, *self.truth.values(), *(options.classes or ())])
        settings: dict[str, Any] = {"on_duplicate": "error" if options.on_duplicate == "runs" else options.on_duplicate}
        if options.classes is not None:
            settings["classes"] = tidy([label_of(name) for name in options.classes])
        labels = rows.to_labels(options.scale, id_of, label_of, options.abstain, **settings)
        if labels.n_abstentions:
            notes.append(f"{count(labels.n_abstentions, 'abstention')} (counted, not used as labels)")
        annotators = set(labels.annotators.tolist())
        if runs := {run: judge for run, judge in self._judge_of.items() if run in annotators}:
            labels = labels.with_groups({**runs, **{judge: judge for judge in runs.values()}})
            notes.append(f"runs of one judge share a vote: {some_names(list(dict.fromkeys(runs.values())))}")
        texts = {id_of(example): text for example, text in self.texts.items()}
        truth = {id_of(example): label_of(label) for example, label in self.truth.items()}
        return LabelFile(labels, texts or None, truth or None, format, tuple(notes), self.question)

    def choose_question(self, wanted: str | None) -> None:
        """Take the answers to the question wanted, or to the only one, the newest of each annotator."""
        questions = [*(answer.question for answer in (*self._to_questions, *self._known)), *self._n_empty]
        self.question = question = choose_question(self.name, questions, wanted)
        if any(other != question for other in questions):
            self.notes.append(f"question: {question}")
        self._n_missing[""] += self._n_empty[question]
        newest: dict[tuple[str, str], _Answer] = {}
        for answer in self._to_questions:
            if answer.question == question:
                before = newest.get((answer.example, answer.annotator))
                if before is not None:
                    self.left_out["earlier answers of the same annotator to the same example"] += 1
                if before is None or answer.time >= before.time:
                    newest[answer.example, answer.annotator] = answer
        for answer in newest.values():
            self.add(answer.example, answer.annotator, answer.label)
        for answer in sorted(self._known, key=lambda answer: answer.time):
            if answer.question == question:
                self.truth[answer.example] = answer.label
        spelt = plain_spelling if self.options.strip else str
        several = [
            each.label for each in newest.values() if len(self._chosen.get((question, spelt(each.label)), ())) > 1
        ]
        if several:
            self.notes.append(
                f"{count(len(several), 'answer is', 'answers are')} several choices at once; each combination is a "
                f"class, such as {several[0]!r}."
            )

    def _left_out(self, rows: str) -> list[str]:
        parts = [f"{what} ({n:,})" for what, n in self.left_out.items() if n]
        if self._n_missing.total():
            kinds = ", ".join(f"{n:,} {repr(text) if text else 'empty'}" for text, n in self._n_missing.items() if n)
            parts.append(f"{rows} without a label ({kinds})")
        return [f"left out: {', '.join(parts)}"] if parts else []

    def _never_given(self) -> list[str]:
        """What was declared to be no label and is not in this file: perhaps it is spelt otherwise."""
        given = set(map(plain_spelling, self._rows.labels) if self.options.strip else self._rows.labels)
        spelt = plain_spelling if self.options.strip else str
        absent = [text for text in self.options.missing if text and text not in (*MISSING, *self._n_missing)]
        absent += [text for text in self.options.abstain if spelt(text) not in given]
        shown = ", ".join(repr(text) + perhaps(list(map(repr, self._spelt_like(text)))) for text in absent)
        return [f"never given, though said to be no label: {shown}"] if absent else []

    def _spelt_like(self, text: str) -> list[str]:
        """Labels that may be meant by another text: spelt alike, or named in it with commas."""
        meant = {plain_spelling(part) for part in (text, *text.split(","))}
        return [label for label in self._rows.labels if plain_spelling(label) in meant]


class SeveralQuestionsError(LabelError):
    """Annotators answered several questions, and none was picked."""

    def __init__(self, name: str, questions: tuple[str, ...]) -> None:
        self.questions = questions
        super().__init__(
            f"{name} has {len(questions)} questions: {', '.join(questions)}. Pick one: --question "
            f"{shell_word(questions[0])} (in Python: question={questions[0]!r}); or fit each: crowdwise fit --question "
            "all."
        )


def choose_question(name: str, questions: Iterable[str], wanted: str | None) -> str:
    """The question whose answers are the labels: the one wanted, or the only one."""
    found = list(dict.fromkeys(questions))
    if wanted is not None:
        if wanted in found:
            return wanted
        raise LabelError(f"{name} has no question {wanted!r}; its questions are {', '.join(found) or '(none)'}.")
    if not found:
        raise LabelError(f"{name}: there is no question in it that was answered with a class or a rating.")
    if len(found) > 1:
        raise SeveralQuestionsError(name, tuple(found))
    return found[0]
