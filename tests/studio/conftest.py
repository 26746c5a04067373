"""Small studios, with and without features, and a client that has the token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_fixtures import chromium, opened, serve, served  # noqa: F401 - fixtures
from requests_to_app import Client

from crowdwise import CrowdLabels, CrowdRidgeClassifier
from crowdwise.session import Session
from crowdwise.studio import Studio, make_app

TOKEN, PORT = "secret", 8123
N = 60


def crowd(n: int = N) -> tuple[np.ndarray, np.ndarray, CrowdLabels]:
    """Features, classes, and the labels of five people, one of them at random; each example has three to five."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    truth = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    right = rng.random((n, 5)) < np.array([0.95, 0.9, 0.85, 0.8, 0.5])
    given = np.where(right, truth[:, None], 1 - truth[:, None])
    names = np.array(["bad", "good"], dtype=object)[given]
    names[rng.random(names.shape) < 0.2] = None
    names[:, 0] = np.array(["bad", "good"], dtype=object)[given[:, 0]]
    rows = [(f"e{i}", f"w{j}", names[i, j]) for i in range(n) for j in range(5) if names[i, j] is not None]
    table = dict(zip(("example", "annotator", "label"), zip(*rows, strict=True), strict=True))
    return X, truth, CrowdLabels.from_table(table, examples=[f"e{i}" for i in range(n)])


def make_studio(folder: Path, *, model: Any = None, **given: Any) -> Studio:
    X, _, labels = crowd()
    texts = [f"text <b>{i}</b>" for i in range(N)]
    session = Session(
        labels, None if model is None else X, model=model, texts=texts, journal=folder / "answers.jsonl", **given
    )
    return Studio(session, "a crowd", feature_names=None)


def client_of(studio: Studio) -> Client:
    app = make_app(studio, token=TOKEN, port=PORT)
    return Client(app, {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}"})


@pytest.fixture
def open_studio(tmp_path: Path) -> Iterator[Callable[..., Studio]]:
    """Makes studios, and closes them."""
    made: list[Studio] = []

    def make(**given: Any) -> Studio:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(make_studio(folder, **given))
        return made[-1]

    yield make
    for studio in made:
        studio.session.close()


@pytest.fixture(params=["labels", "ridge"])
def client(request: pytest.FixtureRequest, open_studio: Callable[..., Studio]) -> Client:
    """A client of a studio of labels alone, and of one with features."""
    return client_of(open_studio(model=None if request.param == "labels" else CrowdRidgeClassifier(2.0)))
