"""Fits that pages wait for: what goes first, what is given up, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from studios import client_of

from crowdwise import CrowdLabels, CrowdRidgeClassifier
from crowdwise._progress import Round
from crowdwise.session import Session
from crowdwise.studio import Studio, _fits, _state
from crowdwise.studio._fits import Fits, Pending

ROUND = Round(1, 0.0, 0.0, 0.0, "steepness 2")


def made(fits: Fits, name: str, make: Callable[..., Any], seat: str = "page") -> Any:
    for _ in range(40):
        try:
            return fits.get(name, make, seat)
        except Pending:
            continue
    raise AssertionError(f"{name} was never made")


def test_a_curve_is_waited_for_by_nothing_else(open_studio: Callable[..., Studio], monkeypatch) -> None:
    began, may_end = Event(), Event()

    def slow_curve(model: Any, steepnesses: Any, l2: Any, **settings: Any) -> Any:
        began.set()
        assert may_end.wait(20)
        return curve(model, steepnesses, l2)

    curve = _state.steepness_curve
    monkeypatch.setattr(_state, "steepness_curve", slow_curve)
    client = client_of(open_studio(model=CrowdRidgeClassifier(2.0)))
    assert client.get("/curve.json", {"seat": "curve"}).status == 202
    assert began.wait(20)
    try:
        answers = [
            client.get("/refit.json", {"seat": "refit", "steepness": steepness}).status for steepness in (1, 3, 7)
        ]
        answers += [client.get("/explore.json", {"seat": "explore", "steepness": 3}).status]
        answers += [client.get("/now.json").status]
        answers += [client.post("/answer.json", {"person": "ann", "row": 3, "code": 1}).status]
        answers += [client.get("/label.json", {"person": "ann"}).status, client.get("/start.json").status]
        answers += [client.get("/refit.json", {"seat": "refit", "steepness": 3, "without": "w1"}).status]
    finally:
        may_end.set()
    assert answers == [200] * 9


def test_less_important_work_rests_while_a_fit_is_made() -> None:
    important = Fits(lambda: 0)
    curves, began, may_end, rounds = Fits(lambda: 0, important), Event(), Event(), []

    def slow_fit(report: Any) -> str:
        began.set()
        assert may_end.wait(20)
        return "fit"

    def long_curve(report: Any) -> str:
        for number in range(3):
            report(ROUND)
            rounds.append(number)
        return "curve"

    with pytest.raises(Pending):
        important.get("fit", slow_fit, "page")
    with pytest.raises(Pending):
        curves.get("curve", long_curve, "page")
    assert began.is_set()
    assert rounds == []
    may_end.set()
    assert made(curves, "curve", long_curve) == "curve"
    assert rounds == [0, 1, 2]


def test_the_last_one_that_a_page_asks_for_wins_and_the_words_say_what_is_done() -> None:
    fits, ended = Fits(lambda: 0), Event()

    def endless(report: Any) -> None:
        try:
            while True:
                report(ROUND)
        finally:
            ended.set()

    with pytest.raises(Pending) as waiting:
        fits.get("old", endless, "page")
    assert "steepness 2, round 1" in waiting.value.words
    assert made(fits, "new", lambda report: "new") == "new"
    assert ended.wait(20)


def test_an_error_is_that_of_the_request_unless_labels_changed_meanwhile() -> None:
    version = [0]
    fits = Fits(lambda: version[0])

    def fails(report: Any) -> None:
        raise ValueError("no")

    def fails_once(report: Any) -> str:
        if version[0] == 0:
            version[0] = 1
            raise IndexError("rows have moved")
        return "made"

    with pytest.raises(ValueError, match="no"):
        made(fits, "wrong", fails)
    assert made(fits, "right", fails_once) == "made"


def test_fits_to_labels_that_changed_are_forgotten() -> None:
    version = [0]
    fits = Fits(lambda: version[0])
    for name in "abc":
        made(fits, name, lambda report: object())
    assert len(fits._made) == 3
    version[0] = 1
    made(fits, "a", lambda report: object())
    assert len(fits._made) == 1


def many_annotators(n: int = 400, n_annotators: int = 203, n_features: int = 20) -> Session:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    truth = (X[:, :3].sum(axis=1) > 0).astype(int)
    labels = np.full((n, n_annotators), np.nan)
    for i in range(n):
        who = rng.choice(n_annotators, size=5, replace=False)
        labels[i, who] = np.where(rng.random(5) < 0.8, truth[i], 1 - truth[i])
    model = CrowdRidgeClassifier(2.0, keep_sums=True)
    return Session(CrowdLabels.from_matrix(labels), X, model=model)


def test_a_curve_of_missing_labels_is_interrupted_between_rounds_and_is_the_same_in_the_end(monkeypatch) -> None:
    monkeypatch.setattr(_fits, "_REST", 2.0)  # whatever else this computer does meanwhile
    with many_annotators() as session:
        client = client_of(Studio(session, "many"))
        stop = Event()

        def drag() -> None:
            while not stop.is_set():
                assert client.get("/refit.json", {"seat": "refit", "steepness": 3}).status == 200

        assert client.get("/refit.json", {"seat": "refit"}).status in (200, 202)
        session.fit_at()
        dragging = Thread(target=drag)
        dragging.start()
        statuses = [client.get("/curve.json", {"seat": "curve"}).status for _ in range(3)]
        stop.set()
        dragging.join()
        assert statuses == [202, 202, 202]  # the slider had all
        for _ in range(40):
            answer = client.get("/curve.json", {"seat": "curve"})
            if answer.status == 200:
                break
        expected = _state.steepness_curve(session.fitted)
        assert answer.json()["criteria"][0]["values"] == expected.criteria[0][3].tolist()
