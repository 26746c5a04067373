"""Studios that are closed after a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_fixtures import chromium, opened, serve, served  # noqa: F401 - fixtures
from studios import Client, client_of, make_studio

from crowdwise import CrowdRidgeClassifier
from crowdwise.studio import Studio


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
