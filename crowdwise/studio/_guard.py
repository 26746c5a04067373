"""The only door of the studio: who may ask for what. Denied unless allowed, for every path that there is or is not."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost", "[::1]")
# Nothing from elsewhere, nothing inline; pictures are fetched with the token and shown as blobs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_WORDS = {
    HTTPStatus.MISDIRECTED_REQUEST: "this is not the address of the studio: use the one that it printed.",
    HTTPStatus.FORBIDDEN: "the request comes from another site.",
    HTTPStatus.UNAUTHORIZED: "the token is missing or wrong: open the address that the studio printed.",
}


class Guard:
    """Lets a request through if it comes from our own page, or from a program that has the token.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str
        What every request for data has in its header ``Authorization: Bearer TOKEN``.
    port : int
        Ours.
    is_open : callable
        Whether a path holds no data, so that it needs no token.
    """

    def __init__(self, app: App, *, token: str, port: int, is_open: Callable[[str], bool]) -> None:
        self._app, self._is_open = app, is_open
        self._bearer = f"Bearer {token}".encode()
        self._hosts = {f"{name}:{port}".encode() for name in NAMES}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                fixed = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                rest = [(name, value) for name, value in message["headers"] if name.decode() not in _HEADERS]
                message = message | {"headers": rest + fixed}
            await send(message)

        refused = self._refused(scope)
        answer = self._app if refused is None else JSONResponse({"problem": _WORDS[refused]}, int(refused))
        await answer(scope, receive, send_with_headers)

    def _refused(self, scope: Scope) -> HTTPStatus | None:
        """With which status; None if it may pass."""
        if _only(scope, b"host") not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        if _only(scope, b"origin", absent=next(iter(self._origins))) not in self._origins:
            return HTTPStatus.FORBIDDEN
        if _only(scope, b"sec-fetch-site", absent=b"none") not in (b"same-origin", b"none"):
            return HTTPStatus.FORBIDDEN
        if self._is_open(scope["path"]) or secrets.compare_digest(_only(scope, b"authorization"), self._bearer):
            return None
        return HTTPStatus.UNAUTHORIZED


def _only(scope: Scope, name: bytes, absent: bytes = b"") -> bytes:
    """The value of a header; empty if it is there twice, for then it is unclear who meant what."""
    values = [value for key, value in scope["headers"] if key == name]
    return absent if not values else values[0] if len(values) == 1 else b""
