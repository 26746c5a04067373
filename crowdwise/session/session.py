"""A session with people: what to ask whom, and a model that follows every answer."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import clone

from crowdwise._arrays import Positions
from crowdwise._checks import check_choice, check_number, check_whole
from crowdwise._progress import OnRound
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import CrowdWarning, DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.results.fit_results import FitResults, results_of
from crowdwise.session.answers import Answers, first_labels, name_of
from crowdwise.session.offer import (
    RULES,
    Rule,
    change_probability,
    classifier_margin,
    distance_from_stage,
    information,
    stage,
)


class Session(Answers):
    """Labels that grow while people answer, and a model of all of them after every answer.

    A teacher chooses meaningful examples, easy ones first if wanted; the students are the people and the model. An
    answer counts when it is in the journal. The model is always what a new fit to all labels would be, with the l2 and
    steepness of the first fit (`settings`) until `retune`.

    Parameters
    ----------
    labels : CrowdLabels or array-like, default=None
        Labels that exist already.
    X : array-like of shape (n_examples, n_features), default=None
        Features, for a model.
    model : estimator, default=None
        An unfitted crowd model of features; by default the consensus uses labels alone. The ridge classifiers
        follow at once. Others are fitted in the background: until they are done, `result` is the consensus of labels
        alone and `is_pending` is true. One that is fitted to these labels already is used until the first answer.
    texts : sequence or mapping from example to text, default=None
        What people are shown; also names the examples where neither labels nor X do.
    classes : sequence, default=None
        All classes; needed without labels.
    experts : iterable of str, default=()
        People whose answers are known to be right.
    overlap : float, default=0.2
        The share of offered examples that others have answered: without shared examples nothing can be learned about
        people.
    journal : str or path, default=None
        A file that stores every answer; if it exists, the session continues from it.
    random_state : int, default=0
        Seed of random orders.

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
        super().__init__(first_labels(labels, X, texts, classes), experts)
        self.X, self.model, self.texts = X, model, texts
        self.settings: dict[str, Any] = {}
        self._seed = random_state
        # Answers need their own lock alone, which no fit holds; it may be taken inside this one, not around it.
        self._fitting = threading.RLock()
        self._fitted_version = -1
        self._fitted: Any = None
        self._interim: tuple[int, FitResults | None] = (-1, None)
        if hasattr(model, "results_") and len(model.results_.consensus) == len(self.labels):
            self.settings = _chosen(model, model)
            self._keep(model, 0)
        self._worker: threading.Thread | None = None
        if journal is not None:
            self._go_on_from(journal)

    def close(self) -> None:
        """Wait for the model and let go of the journal."""
        self.wait()
        super().close()

    # ------------------------------------------------------------------ results

    @property
    def result(self) -> FitResults | None:
        """The results of all labels so far, as of `aggregate` and all models; None before the first answer."""
        fitted = self.fitted
        return None if fitted is None else results_of(fitted)

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
        with self._fitting, self._lock:
            self.settings = {} if self.model is not None else self.settings
            self._fitted = None
            self._version += 1

    @property
    def is_slow(self) -> bool:
        """Whether the model is fitted in the background."""
        return self.model is not None and not hasattr(self.model, "at")

    @property
    def has_l2(self) -> bool:
        """Whether the model has an l2."""
        return self.model is not None and bool({"l2", "l2s"} & self.model.get_params(deep=False).keys())

    @property
    def fitted(self) -> Any:
        """What `result` comes from: a fitted model, or the results of labels alone; None before the first answer."""
        with self._lock:  # a fit of what is there already is not waited for
            if self._version == self._fitted_version:
                return self._fitted
        with self._fitting:
            with self._lock:
                if self.labels.n_labels == 0:
                    return None
                if self._version == self._fitted_version:
                    return self._fitted
                version, labels = self._version, self._known_labels()
                if self.is_slow:
                    self._start()
            if not self.is_slow:
                self._keep(fitted := self._follow(labels), version)
                return fitted
            if self._interim[0] != version:
                self._interim = version, self._labels_only(labels)
            return self._interim[1]

    def fit_at(
        self,
        steepness: float | None = None,
        l2: float | None = None,
        without: Any = None,
        *,
        on_round: OnRound | None = None,
    ) -> Any:
        """A model of all labels so far at another steepness or l2, or without an annotator.

        Parameters
        ----------
        steepness, l2 : float, default=None
            In the place of those of the session.
        without : str, default=None
            An annotator who is left out.
        on_round : callable, default=None
            Called with a `Round` after every round.

        Returns
        -------
        model : estimator or FitResults
            Fitted; the session stays as it is. None before the first answer.
        """
        given = {name: value for name, value in (("steepness", steepness), ("l2", l2)) if value is not None}
        if l2 is not None and not self.has_l2:
            raise ValueError("the model of this session has no l2.")
        with self._lock:
            labels = self._known_labels(without)
        if labels.n_labels == 0:
            return None
        if without is None and not self.is_slow and self.model is not None:
            fitted = self._with_sums(on_round)
            with _quiet():
                return fitted.at(**given) if given else fitted
        return self._fit(labels, on_round, **(given if self.model is None else _named(self.model, given)))

    def _with_sums(self, on_round: OnRound | None) -> Any:
        """The fitted model; in the place of one that was fitted before the session, and has no sums, a new fit."""
        with self._fitting:
            fitted = self.fitted
            if fitted is self.model:
                self._keep(fitted := self._fit(self._known_labels(), on_round), self._fitted_version)
            return fitted

    def _known_labels(self, without: Any = None) -> CrowdLabels:
        labels = self.labels
        if without is not None:
            labels = labels.select_annotators(labels.annotators != without)
        return replace(labels, truth=self._truth.copy()) if (self._truth >= 0).any() else labels

    def _labels_only(self, labels: CrowdLabels, **settings: Any) -> FitResults:
        with _quiet():
            return aggregate(labels, **settings)

    def _follow(self, labels: CrowdLabels) -> Any:
        """The last model with the labels that changed since; a new one if there is none that kept its sums."""
        fitted = None if self.model is None else self._fitted
        if fitted is not None and self.settings.items() <= fitted.get_params(deep=False).items():
            with suppress(DataError), _quiet():  # a model of a file, or one that was not to keep them
                return fitted.relabelled(labels)
        return self._fit(labels)

    def _fit(self, labels: CrowdLabels, on_round: OnRound | None = None, **settings: Any) -> Any:
        """A model of labels, or their results alone; the first one chooses the settings of all that follow."""
        if self.model is None:
            return self._labels_only(labels, on_round=on_round, **self.settings | settings)
        with _quiet():
            given = self.settings | settings
            model = clone(self.model).set_params(**given)
            if not self.is_slow and model.keep_sums == "auto":
                model.set_params(keep_sums=True)  # whatever they take: every answer needs them
            model.fit(self.X, labels, on_round=on_round)
        if not given and (chosen := _chosen(self.model, model)):
            self.settings = chosen
            return self._fit(labels, on_round)
        return model

    def _keep(self, fitted: Any, version: int) -> None:
        with self._lock:
            self._fitted, self._fitted_version = fitted, version

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
            The most informative for this person; the easiest first, harder ones once the person
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
        order = self._order(name_of(person), rule)
        with self._lock:
            done, is_known = self._done.get(name_of(person), []), self._truth >= 0
            left = self._left(person)
            shared = self.labels.labels_per_example > 0
            offered: list[Any] = []
            for turn in range(len(done), len(done) + n):
                pools = [is_known & left] if rule == "check" or _is_turn(turn, rates["check"]) else []
                if rule != "check":
                    pools += [shared & left] if _is_turn(turn, rates["overlap"]) else []
                    pools.append(left)
                pick = next((order[pool[order]][0] for pool in pools if pool.any()), None)
                if pick is None:
                    break
                left[pick] = False
                offered.append(pick)
        return [self.labels.examples[row : row + 1].tolist()[0] for row in offered]

    def expected_changes(self) -> float:
        """The share of labels that one more answer for every example is expected to change.

        An answer as an average annotator gives it, by the probabilities of the model.

        Returns
        -------
        share : float
            1 before the first answer.
        """
        result = self.result
        if result is None:
            return 1.0
        confusion = result.fitted.answers.crowd[:, : result.proba.shape[1]]
        return float(change_probability(result.proba, confusion).mean())

    def _order(self, person: str, rule: Rule) -> Positions:
        """All examples in the order in which they are offered; ties at random."""
        if rule == "classifier" and self.model is None:
            raise ValueError('rule="classifier" needs a model of features: Session(labels, X, model=...).')
        # Everybody has an order of their own, so that people who answer a random draw cover more examples.
        rank = np.random.default_rng([self._seed, crc32(person.encode("utf-8", "surrogatepass"))]).random(
            len(self.labels)
        )
        result = None if rule in ("random", "check") else self.result
        if result is None:
            return np.argsort(rank)
        if rule == "uncertain":
            score = -information(result, person, is_expert=person in self.experts)
        elif rule == "easy":
            score = distance_from_stage(result, stage(result, self.done_by(person)))
        else:
            score = classifier_margin(result)
        return np.lexsort((rank, np.round(score, 9)))

    def widget(self) -> Any:
        """The session inside a notebook: sliders and the label seat; needs the extra ``widget``.

        Returns
        -------
        widget : anywidget.AnyWidget
        """
        # By its name: the studio stands on the session, and is asked for by those who have the extra.
        return import_module("crowdwise.studio.widget").make_widget(self)


@contextmanager
def _quiet() -> Iterator[None]:
    """That labels are few is no news in a session."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        yield


def _is_turn(turn: int, share: float) -> bool:
    """Whether this turn is one of a share of all, evenly spread."""
    return int((turn + 1) * share + 1e-9) > int(turn * share + 1e-9)


def _named(model: Any, values: Mapping[str, float]) -> dict[str, Any]:
    """Settings of a model for a steepness and an l2: some models are given a list to choose from."""
    parameters, lists = model.get_params(deep=False), {"steepness": "steepnesses", "l2": "l2s"}
    listed = {lists[name]: (value,) for name, value in values.items() if lists[name] in parameters}
    return listed | {name: value for name, value in values.items() if name in parameters}


def _chosen(model: Any, fitted: Any) -> dict[str, Any]:
    """The settings that a fit chose by itself, to be used from then on."""
    values = {name: getattr(fitted, f"{name}_", None) for name in ("steepness", "l2")}
    chosen = _named(model, {name: float(value) for name, value in values.items() if value is not None})
    parameters = model.get_params(deep=False)
    return {name: value for name, value in chosen.items() if parameters[name] != value}
