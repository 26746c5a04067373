"""What the studio has at hand: a session with people, and fits at other positions of the sliders."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdwise._arrays import Array
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels._encode import as_objects
from crowdwise.reporting.fit import Fit, named, plain
from crowdwise.results.fit_results import results_of
from crowdwise.ridge.curve import STEEPNESSES, Refit, SteepnessCurve, steepness_curve
from crowdwise.session import Session
from crowdwise.studio._fits import Fits, Pending, Report
from crowdwise.studio._schema import Problem

Answer = dict[str, Any]
_NAMES = {"CrowdLogisticClassifier": "logistic"}
WHOLE_TEXT = 100_000  # characters of a text that is shown by itself


@dataclass(frozen=True)
class Position:
    """Where the sliders are, and who is left out; None is as in the session."""

    steepness: float | None = None
    l2: float | None = None
    without: str | None = None


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
    summary : dict or None, default=None
        "headline" and "numbers" of the labels that the session began with, where a run kept them.
    about_model : str, default=""
        A sentence: why this model, or how to see another one.
    """

    session: Session
    title: str
    feature_names: list[str] | None = None
    pictures: Path | None = None
    summary: Mapping[str, Any] | None = None
    about_model: str = ""

    def __post_init__(self) -> None:
        session = self.session
        if session.labels.classes is None:
            raise Problem(422, "the studio is for classes; for ratings there is the report: crowdwise fit --ratings.")

        def version() -> Hashable:
            return session.version, session.is_slow and session.is_pending

        # The fit of the session, models that positions are solved from, fits at rest and sections do not wait for each
        # other; curves do.
        self._session_fits, self._models, self._fits, self._sections = (Fits(version) for _ in range(4))
        self._curves, self._solving = Fits(version, self._models, self._fits), threading.Lock()
        labels, texts = session.labels, session.texts
        if isinstance(texts, Mapping):
            self.texts: Array | None = as_objects([texts.get(example) for example in labels.examples.tolist()])
        else:
            self.texts = None if texts is None else as_objects(list(texts))
        self.position = Position()  # of the last fit of the session that a page has asked for

    @property
    def solves_sums(self) -> bool:
        """Whether a position is solved from sums that the model keeps, without a pass over the rows."""
        return self.session.model is not None and not self.session.is_slow

    def prepare(self) -> None:
        """Begin to make what the sliders need, if it is not there yet."""
        if self.solves_sums and self.session.labels.n_labels:
            with suppress(Pending):
                self._model(None, "prepare")

    def fit(self, position: Position = Position(), seat: str = "") -> Fit:
        """The fit at a position, of all labels so far."""
        self._check(position)
        fit: Fit = self._session_fits.get("fit", lambda report: self._session_fit(), seat)
        position = self._less_session(position)
        if position == Position():
            return fit
        model = self._model(position.without, seat) if self.solves_sums else None

        def make(report: Report) -> Fit:
            settings = {"steepness": position.steepness, "l2": position.l2}
            if model is None:
                return self._record(
                    self.session.fit_at(**settings, without=position.without, on_round=report), position
                )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CrowdWarning)
                return self._record(model.at(**settings), position)

        return self._fits.get(position, make, seat)

    def section(self, name: str, make: Callable[[], Any], *of: Hashable) -> Any:
        """Something that takes long, made once for the labels at hand, and for what else it depends on."""
        return self._sections.get((name, *of), lambda report: make(), name)

    def refit(self, position: Position, seat: str) -> Refit:
        """What follows from sums alone at a position, at once if they are kept; else that of the fit there."""
        if not self.solves_sums:
            fit = self.fit(position, seat)
            return Refit.of_results(fit.model, fit.results)
        model = self._model(position.without, seat)
        with self._fits.at_once(), self._solving:
            return Refit.of_sums(model, position.steepness, position.l2)

    def curve(self, l2: float | None, without: str | None, seat: str) -> SteepnessCurve:
        """All steepnesses, of a model that keeps sums; what else is asked for goes first."""
        model = self._model(without, seat)
        return self._curves.get(
            (l2, without), lambda report: steepness_curve(model, STEEPNESSES, l2, on_round=report), seat
        )

    def _model(self, without: str | None, seat: str) -> Any:
        """The model that positions are solved from."""
        left_out = None if without is None else self.annotator(without)
        model = self._models.get(
            without, lambda report: self.session.fit_at(without=left_out, on_round=report), f"{seat} model"
        )
        if model is None:
            raise Problem(409, "there are no labels yet.")
        return model

    def _session_fit(self) -> Fit:
        fitted = self.session.fitted
        fit = self._record(fitted, Position())
        l2 = getattr(fitted, "l2_", None)
        self.position = Position(float(fit.results.steepness), None if l2 is None else float(l2))
        return fit

    def _record(self, model: Any, position: Position) -> Fit:
        if model is None:
            raise Problem(409, "there are no labels yet.")
        results, labels = results_of(model), self.session.labels
        if position.without is not None:
            labels = labels.select_annotators(labels.annotators != self.annotator(position.without))
        return Fit(model, results, labels, None, self.texts)

    def _check(self, position: Position) -> None:
        if position.without is not None:
            self.annotator(position.without)
        if position.l2 is not None and not self.session.has_l2:
            raise Problem(409, "the model has no l2.", "l2")

    def _less_session(self, position: Position) -> Position:
        """A position without what is that of the session anyway."""
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


def class_names(classes: Array | None) -> list[str]:
    """Classes as they are shown."""
    return [] if classes is None else [named(name) for name in classes]


def model_name(model: Any) -> str:
    """The name of a model as the options of commands have it; of any other that of its class."""
    return "ridge" if hasattr(model, "at") else _NAMES.get(type(model).__name__, type(model).__name__)


def position_of(fit: Fit, without: str | None) -> Answer:
    """Where a fit is."""
    l2 = getattr(fit.model, "l2_", None)
    return {"steepness": float(fit.results.steepness), "l2": plain(l2), "without": without}
