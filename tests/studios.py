"""Small studios, with and without features, and requests to them in this process, without a network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

from crowdwise import CrowdLabels
from crowdwise.session import Session
from crowdwise.studio import Studio, make_app

TOKEN, PORT = "secret", 8123
N = 60


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Client:
    """Sends the same headers with every request, unless a request has others; None leaves one out."""

    app: Any
    headers: dict[str, str | None]
    studio: Any = None

    def get(self, path: str, query: Any = None, **headers: str | None) -> Reply:
        return self.ask("GET", path, query, **headers)

    def post(self, path: str, sent: Any, **headers: str | None) -> Reply:
        return self.ask("POST", path, None, json.dumps(sent).encode(), **headers)

    def ask(self, method: str, path: str, query: Any = None, content: bytes = b"", **headers: str | None) -> Reply:
        parts = urlsplit(path)
        given = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": parts.path, "raw_path": parts.path.encode(), "root_path": "",
            "query_string": (parts.query or urlencode(query or {}, errors="surrogatepass")).encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items() if value is not None],
            "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        return asyncio.run(self._run(scope, content))

    async def _run(self, scope: Any, content: bytes) -> Reply:
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Reply(sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:]))


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
    return Client(app, {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}"}, studio)
