"""What the studio has at hand: a session with people, and fits at other positions of the sliders."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from crowdwise._arrays import Array
from crowdwise._progress import Round
from crowdwise.labels._encode import as_objects
from crowdwise.reporting.fit import Fit
from crowdwise.results.fit_results import results_of
from crowdwise.ridge.curve import STEEPNESSES, Refit, steepness_curve
from crowdwise.session import Session
from crowdwise.studio._schema import Problem

# A request waits so many seconds for a fit before the client has to ask again; so many fits are kept.
_PATIENCE, _MOST_KEPT = 0.5, 4

Make = Callable[[Callable[[Round], None]], Any]


@dataclass(frozen=True)
class Position:
    """Where the sliders are, and who is left out; None is as in the session."""

    steepness: float | None = None
    l2: float | None = None
    without: str | None = None


class Pending(Exception):
    """A fit that is not there yet: what it does, since how many seconds."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.words, self.seconds = words, seconds


class _OutOfDate(Exception):
    """A fit that no page waits for any more."""


class Fits:
    """Fits that are made one after the other; of each page the last one that it asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._made: OrderedDict[Hashable, Any] = OrderedDict()
        self._wanted: dict[str, tuple[Hashable, Make]] = {}
        self._doing: tuple[str, float] | None = None

    def get(self, key: Hashable, make: Make, seat: str) -> Any:
        """What `make` gives, made once per key; raises `Pending` if that takes long, and what `make` raises."""
        with self._changed:
            if key not in self._made:
                self._wanted.pop(seat, None)
                self._wanted[seat] = key, make
                if self._doing is None:
                    self._doing = "", time.monotonic()
                    threading.Thread(target=self._work, daemon=True).start()
                self._changed.wait_for(lambda: key in self._made, _PATIENCE)
            if key not in self._made:
                words, started = self._doing or ("", time.monotonic())
                raise Pending(words, time.monotonic() - started)
            self._made.move_to_end(key)
            found = self._made[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._wanted:
                    self._doing = None
                    return
                key, make = next(iter(self._wanted.values()))
                self._doing = "", time.monotonic()
            try:
                found = make(partial(self._report, key))
            except _OutOfDate:
                continue
            except Exception as error:  # is raised where it was asked for
                found = error
            with self._changed:
                self._made[key] = found
                while len(self._made) > _MOST_KEPT:
                    self._made.popitem(last=False)
                self._wanted = {seat: wanted for seat, wanted in self._wanted.items() if wanted[0] != key}
                self._changed.notify_all()

    def _report(self, key: Hashable, done: Round) -> None:
        with self._changed:
            self._doing = str(done), self._doing[1] if self._doing else time.monotonic()
            if all(wanted != key for wanted, _ in self._wanted.values()):
                raise _OutOfDate


@dataclass(eq=False)
class Studio:
    """All that the routes ask.

    Parameters
    ----------
    session : Session
        Labels that grow, and their model.
    title : str
        What is shown.
    feature_names : list of str or None, default=None
        Names of the columns of the features.
    pictures : Path or None, default=None
        The folder in which the texts of the session are names of pictures.
    """

    session: Session
    title: str
    feature_names: list[str] | None = None
    pictures: Path | None = None

    def __post_init__(self) -> None:
        if self.session.labels.classes is None:
            raise Problem(422, "the studio is for classes; for ratings there is the report: crowdwise fit --ratings.")
        self._fits, self._sections, self._solving = Fits(), Fits(), threading.Lock()
        labels, texts = self.session.labels, self.session.texts
        if isinstance(texts, Mapping):
            self.texts: Array | None = as_objects([texts.get(example) for example in labels.examples.tolist()])
        else:
            self.texts = None if texts is None else as_objects(list(texts))

    @property
    def position(self) -> Position:
        """That of the session."""
        fitted = self.session.fitted
        if fitted is None:
            return Position()
        l2 = getattr(fitted, "l2_", None)
        return Position(float(results_of(fitted).steepness), None if l2 is None else float(l2))

    def fit(self, position: Position = Position(), seat: str = "") -> Fit:
        """The fit at a position, of all labels so far."""
        position = self._checked(position)
        version = self.session.version
        if position == Position():
            key: Hashable = ("session", version, self.session.is_pending)
            return self._fits.get(key, lambda report: self._record(self.session.fitted, None), seat)
        return self._fits.get((version, position), lambda report: self._fit_at(position, report), seat)

    def section(self, name: str, make: Callable[[], Any], *of: Hashable) -> Any:
        """Something that takes long, made once for the labels at hand, and for what else it depends on."""
        key = (name, self.session.version, self.session.is_pending, *of)
        return self._sections.get(key, lambda report: make(), name)

    def refit(self, position: Position, seat: str) -> Refit:
        """What follows from sums alone at a position, at once if they are kept; else that of the fit there."""
        if self.session.is_slow or self.session.model is None or position.without is not None:
            fit = self.fit(position, seat)
            return Refit.of_results(fit.model, fit.results)
        fitted = self._fits.get(("model", self.session.version), lambda report: self.session.fitted, f"{seat} model")
        if fitted is None:
            raise Problem(409, "there are no labels yet.")
        with self._solving:
            return Refit.of_sums(fitted, position.steepness, position.l2)

    def curve(self, l2: float | None, without: str | None, seat: str) -> Any:
        """All steepnesses; None of a model that keeps no sums."""
        key = ("curve", self.session.version, l2, without)

        def make(report: Callable[[Round], None]) -> Any:
            model = self.session.fitted if without is None else self.session.fit_at(without=self.annotator(without))
            return steepness_curve(model, STEEPNESSES, l2)

        return self._fits.get(key, make, f"{seat} curve")

    def _fit_at(self, position: Position, report: Callable[[Round], None]) -> Fit:
        model = self.session.fit_at(position.steepness, position.l2, position.without, on_round=report)
        return self._record(model, position.without)

    def _record(self, model: Any, without: str | None) -> Fit:
        if model is None:
            raise Problem(409, "there are no labels yet.")
        results, labels = results_of(model), self.session.labels
        if without is not None:
            labels = labels.select_annotators(labels.annotators != self.annotator(without))
        return Fit(model, results, labels, None, self.texts)

    def _checked(self, position: Position) -> Position:
        """A position without what is that of the session anyway."""
        if position.without is not None:
            self.annotator(position.without)
        if position.l2 is not None and not self.session.has_l2:
            raise Problem(422, "the model has no l2.", "l2")
        ours = self.position
        return Position(
            None if position.steepness == ours.steepness else position.steepness,
            None if position.l2 == ours.l2 else position.l2,
            position.without,
        )

    def annotator(self, name: str) -> Any:
        """An annotator as the labels have them, by a text."""
        for known in self.session.labels.annotators.tolist():
            if str(known) == name:
                return known
        raise Problem(404, f"there is no annotator {name[:80]!r}.", "name")

    def example(self, row: int) -> Any:
        """The id of an example."""
        if row >= len(self.session.labels):
            raise Problem(404, f"there are {len(self.session.labels)} examples, from 0; got {row}.", "row")
        return self.session.labels.examples[row : row + 1].tolist()[0]
