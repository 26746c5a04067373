"""A session with people: what to ask whom, and a model that follows every answer."""

from __future__ import annotations

import csv
import io
import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import entr
from sklearn.base import clone

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise._checks import check_choice, check_number, check_whole
from crowdwise._files import write_file
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import CrowdWarning, DataError, LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import encode_declared, shown
from crowdwise.labels._frames import index_of, make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.results.fit_results import FitResults
from crowdwise.results.suggest import answer_information
from crowdwise.session.journal import Journal
from crowdwise.truths.check import share_interval

Rule = Literal["uncertain", "easy", "classifier", "random", "check"]
RULES: tuple[Rule, ...] = ("uncertain", "easy", "classifier", "random", "check")
# Harder examples are offered to a person who was right on so many of their last ten; there are so many stages.
_RIGHT, _OF, _STAGES = 8, 10, 5


@dataclass(frozen=True)
class Answered:
    """What a person did: an answer with what it replaced, or None for a skipped example."""

    example: int
    label: Any = None
    before: Any = None


class Session:
    """Labels that grow while people answer, and a model of all of them after every answer.

    A teacher chooses meaningful examples, easy ones first if wanted; the students are the people and the model. An
    answer counts when it is in the journal. The model is always what a new fit to all labels would be, with the l2 and
    steepness of the first fit (`settings`) until `retune`.

    Parameters
    ----------
    labels : CrowdLabels or array-like, default=None
        Labels that are there already.
    X : array-like of shape (n_examples, n_features), default=None
        Features, for a model.
    model : estimator, default=None
        A crowd model of features, not fitted; by default the consensus is of labels alone. The ridge classifiers
        follow at once. Others are fitted in the background: until they are done, `result` is the consensus of labels
        alone and `is_pending` is true.
    texts : sequence or mapping from example to text, default=None
        What people are shown; also names the examples where neither labels nor X do.
    classes : sequence, default=None
        All classes; needed unless labels are there.
    experts : iterable of str, default=()
        People whose answers are known to be right.
    overlap : float, default=0.2
        The share of offered examples that others have answered: without shared examples nothing can be learned about
        people.
    journal : str or path, default=None
        A file that keeps every answer; if it is there, the session goes on from it.
    random_state : int, default=0
        Of random orders.

    Examples
    --------
    >>> from crowdwise import Session
    >>> session = Session(texts={"a": "Great!", "b": "Awful.", "c": "So so."}, classes=["bad", "good"])
    >>> for person in ("ann", "bob"):
    ...     session.answer("a", person, "good")
    ...     session.answer("b", person, "bad")
    >>> session.next("ann"), session.result.label[:2].tolist()
    (['c'], ['good', 'bad'])
    >>> session.undo("bob")
    'b'
    """

    def __init__(
        self,
        labels: Any = None,
        X: Any = None,
        *,
        model: Any = None,
        texts: Sequence[str] | Mapping[Any, str] | None = None,
        classes: Sequence[Any] | None = None,
        experts: Iterable[str] = (),
        overlap: float = 0.2,
        journal: str | os.PathLike[str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.overlap = check_number("overlap", overlap, high=1.0)
        if model is not None and X is None:
            raise ValueError("a model learns from features: give X, or leave out model.")
        self.labels = _first_labels(labels, X, texts, classes)
        self.X, self.model, self.texts = X, model, texts
        self.experts = frozenset(experts)
        self.settings: dict[str, Any] = {}
        self._done: dict[str, list[Answered]] = {}
        self._truth: dict[int, int] = {}
        self._rank = np.random.default_rng(random_state).random(len(self.labels))
        self._lock = threading.RLock()
        self._version, self._fitted_version = 0, -1
        self._result: FitResults | None = None
        self._interim: tuple[int, FitResults | None] = (-1, None)
        self._worker: threading.Thread | None = None
        self._journal = None if journal is None else Journal(journal)
        for entry in [] if self._journal is None else list(self._journal.entries):
            self._apply(**entry)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the model and let go of the journal."""
        self.wait()
        if self._journal is not None:
            self._journal.close()

    # ------------------------------------------------------------------ what people do

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
        self._position(example)
        self._code(label)
        self._do({"do": "answer", "example": example, "person": _name(person), "label": label})

    def skip(self, example: Any, person: str) -> None:
        """A person does not answer an example, which is not offered to them again.

        Parameters
        ----------
        example : object
            Its id.
        person : str
            Who skips it.
        """
        self._position(example)
        self._do({"do": "skip", "example": example, "person": _name(person)})

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
            if not self._done.get(_name(person)):
                raise DataError(f"{person} has done nothing that could be undone.")
            example = self.labels.examples[self._done[person][-1].example]
            self._do({"do": "undo", "person": person})
        return example.item() if isinstance(example, np.generic) else example

    def _do(self, entry: dict[str, Any]) -> None:
        """Write into the journal, then count."""
        with self._lock:
            if self._journal is not None:
                self._journal.add(entry | {"time": datetime.now(UTC).isoformat(timespec="milliseconds")})
            self._apply(**entry)

    def _apply(self, do: str, person: str, example: Any = None, label: Any = None, time: str = "") -> None:
        done = self._done.setdefault(person, [])
        if do == "undo":
            last = done.pop()
            self._set(last.example, person, last.before if last.label is not None else _SAME)
        elif do == "skip":
            done.append(Answered(self._position(example)))
        else:
            row = self._position(example)
            done.append(Answered(row, label, self._set(row, person, label)))

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
            self._truth.pop(row, None)
            if label is not None:
                self._truth[row] = self._code(label)
        self.labels = labels
        self._version += 1
        return before

    # ------------------------------------------------------------------ what the model says

    @property
    def result(self) -> FitResults | None:
        """The results of all labels so far, as of `aggregate` and all models; None before the first answer."""
        with self._lock:
            if self.labels.n_labels == 0:
                return None
            if self._version == self._fitted_version:
                return self._result
            if self.model is None or hasattr(self.model, "at"):
                self._keep(self._fit(self._known_labels()), self._version)
                return self._result
            self._start()
            if self._interim[0] != self._version:
                self._interim = self._version, self._labels_only(self._known_labels())
            return self._interim[1]

    @property
    def is_pending(self) -> bool:
        """Whether the model of features is still fitted to the last answers."""
        with self._lock:
            return self.model is not None and self.labels.n_labels > 0 and self._version != self._fitted_version

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the model that is fitted in the background; whether it is done.

        Parameters
        ----------
        timeout : float, default=None
            Seconds.

        Returns
        -------
        is_done : bool
        """
        worker = self._worker
        if worker is not None:
            worker.join(timeout)
        return worker is None or not worker.is_alive()

    def retune(self) -> None:
        """Let the next fit choose l2 and steepness anew, where the model chooses them."""
        with self._lock:
            self.settings = {}
            self._version += 1

    def _known_labels(self) -> CrowdLabels:
        if not self._truth:
            return self.labels
        assert self.labels.classes is not None
        rows = list(self._truth)
        classes = self.labels.classes[[self._truth[row] for row in rows]].tolist()
        return self.labels.with_truth(dict(zip(self.labels.examples[rows].tolist(), classes, strict=True)))

    def _labels_only(self, labels: CrowdLabels) -> FitResults:
        with _quiet():
            return aggregate(labels)

    def _fit(self, labels: CrowdLabels) -> FitResults:
        if self.model is None:
            return self._labels_only(labels)
        with _quiet():
            model = clone(self.model).set_params(**self.settings).fit(self.X, labels)
        if not self.settings and (chosen := _chosen(self.model, model)):
            self.settings = chosen
            return self._fit(labels)
        results = model.results_
        assert isinstance(results, FitResults)
        return results

    def _keep(self, result: FitResults, version: int) -> None:
        with self._lock:
            self._result, self._fitted_version = result, version

    def _start(self) -> None:
        """Fit in the background until the last answer is in it."""

        def work() -> None:
            while True:
                with self._lock:
                    if self._version == self._fitted_version:
                        self._worker = None
                        return
                    version, labels = self._version, self._known_labels()
                self._keep(self._fit(labels), version)

        if self._worker is None:
            self._worker = threading.Thread(target=work, daemon=True)
            self._worker.start()

    # ------------------------------------------------------------------ what to offer

    def next(self, person: str, n: int = 1, rule: Rule = "uncertain", *, check: float = 0.0) -> list[Any]:
        """Examples to offer to a person: never one that they have answered or skipped.

        Parameters
        ----------
        person : str
            Who is asked.
        n : int, default=1
            How many.
        rule : {"uncertain", "easy", "classifier", "random", "check"}, default="uncertain"
            Those on which this person's answer is expected to say most; the easiest first, harder ones once the person
            is right on eight of ten; those of which the classifier is least sure; a random draw, as known answers need
            it; or examples whose answer is known, to measure this person.
        check : float, default=0.0
            The share of examples whose answer is known that are mixed in.

        Returns
        -------
        examples : list
            Ids; fewer than n if no more are left.
        """
        check_whole("n", n)
        check_choice("rule", rule, RULES)
        rates = {"check": check_number("check", check, high=1.0), "overlap": self.overlap}
        with self._lock:
            done = self._done.get(_name(person), [])
            left = np.ones(len(self.labels), dtype=bool)
            left[self._answered(person)] = False
            left[[one.example for one in done]] = False
            is_known = np.zeros(len(self.labels), dtype=bool)
            is_known[list(self._truth)] = True
            if person in self.experts:
                left &= ~is_known
            order = self._order(person, rule)
            shared = self.labels.labels_per_example > 0
            offered: list[Any] = []
            for turn in range(len(done), len(done) + n):
                wanted = [is_known & left] if rule == "check" or _is_turn(turn, rates["check"]) else []
                if rule != "check":
                    wanted += [shared & left] if _is_turn(turn, rates["overlap"]) else []
                    wanted.append(left)
                pick = next((order[part[order]][0] for part in wanted if part.any()), None)
                if pick is None:
                    break
                left[pick] = False
                offered.append(pick)
        return [self.labels.examples[row : row + 1].tolist()[0] for row in offered]

    def _order(self, person: str, rule: Rule) -> Positions:
        """All examples in the order in which they are offered; ties at random."""
        result = None if rule in ("random", "check") else self.result
        if rule == "classifier" and self.model is None:
            raise ValueError('rule="classifier" needs a model of features: Session(labels, X, model=...).')
        if result is None:
            return np.argsort(self._rank)
        if rule == "uncertain":
            score = -self._information(person, result)
        elif rule == "easy":
            score = self._difficulty(person, result)
        else:
            proba = result.proba if result.model_proba is None else result.model_proba
            top = np.sort(proba, axis=1)[:, -2:]
            score = top[:, 1] - top[:, 0]
        return np.lexsort((self._rank, np.round(score, 9)))

    def _information(self, person: str, result: FitResults) -> Floats:
        """How much the answer of this person is expected to say about each example."""
        if person in self.experts:
            return np.asarray(entr(result.proba).sum(axis=1))
        n_classes = result.proba.shape[1]
        confusion = result.fitted.answers.crowd[:, :n_classes]
        who = np.flatnonzero(result.annotators == person)
        if len(who) and np.isfinite(result.confusion[who[0]]).all():
            confusion = result.confusion[who[0]]
        return answer_information(result.proba, confusion)

    def _difficulty(self, person: str, result: FitResults) -> Floats:
        """The distance of each example from the stage of this person, harder ones before easier ones."""
        order = np.argsort(np.argsort(-result.confidence, kind="stable"))
        quantile = order / max(len(order) - 1, 1)
        start = self._stage(person, result) / _STAGES
        return np.where(quantile >= start, quantile - start, 1 + start - quantile)

    def _stage(self, person: str, result: FitResults) -> int:
        """How often a person was right on eight of ten answers in a row of ten."""
        given = [one for one in self._done.get(person, []) if one.label is not None]
        right = [bool(result.label[one.example] == one.label) for one in given]
        tens = [right[start : start + _OF] for start in range(0, len(right) - _OF + 1, _OF)]
        return min(sum(sum(ten) >= _RIGHT for ten in tens), _STAGES - 1)

    def _answered(self, person: str) -> Bools:
        labels = self.labels
        who = encode_declared(np.array([person], dtype=object), labels.annotators)[0]
        mask = np.zeros(len(labels), dtype=bool)
        if who >= 0:
            mask[labels.example_index[labels.annotator_index == who]] = True
        return mask

    # ------------------------------------------------------------------ what is known about people

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
        answers = {one.example: one.label for one in self._done.get(person, []) if one.label is not None}
        both = [row for row in answers if row in self._truth]
        right = sum(self._code(answers[row]) == self._truth[row] for row in both)
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
        return make_frame(self._columns(), self.labels.frame_library)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all labels to a CSV file with the columns example, annotator and label.

        Parameters
        ----------
        path : str or path
            Where it goes.
        """
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        columns = self._columns()
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        write_file(Path(path), text.getvalue())

    def _columns(self) -> dict[str, Array]:
        labels = self.labels
        assert labels.classes is not None
        return {
            "example": labels.examples[labels.example_index],
            "annotator": labels.annotators[labels.annotator_index],
            "label": labels.classes[labels.values],
        }

    def _position(self, example: Any) -> int:
        row = int(encode_declared(np.array([example], dtype=object), self.labels.examples)[0])
        if row < 0:
            raise LabelError(
                f"example {shown(example)} is not among those of the session (such as "
                f"{self.labels.examples[:3].tolist()})."
            )
        return row

    def _code(self, label: Any) -> int:
        assert self.labels.classes is not None
        code = int(encode_declared(np.array([label], dtype=object), self.labels.classes)[0])
        if code < 0:
            raise LabelError(f"label must be one of the classes {self.labels.classes.tolist()}; got {label!r}.")
        return code


_SAME = object()


@contextmanager
def _quiet() -> Iterator[None]:
    """That labels are few is no news in a session."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        yield


def _name(person: Any) -> str:
    if not isinstance(person, str) or not person:
        raise ValueError(f"person must be a name, a text that is not empty; got {person!r}.")
    return person


def _is_turn(turn: int, share: float) -> bool:
    """Whether this turn is one of a share of all, evenly spread."""
    return int((turn + 1) * share + 1e-9) > int(turn * share + 1e-9)


def _chosen(given: Any, fitted: Any) -> dict[str, Any]:
    """The settings that a fit chose by itself, to be used from then on."""
    chosen: dict[str, Any] = {}
    parameters = given.get_params(deep=False)
    for name in ("steepness", "l2"):
        value = getattr(fitted, f"{name}_", None)
        if value is None:
            continue
        if isinstance(parameters.get(name), str):
            chosen[name] = float(value)
        elif f"{name}s" in parameters if name == "l2" else "steepnesses" in parameters:
            chosen["l2s" if name == "l2" else "steepnesses"] = (float(value),)
    return chosen


def _first_labels(labels: Any, X: Any, texts: Any, classes: Sequence[Any] | None) -> CrowdLabels:
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
