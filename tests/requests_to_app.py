"""Requests to an ASGI application in this process, without a network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit


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
            "query_string": (parts.query or urlencode(query or {})).encode(),
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
