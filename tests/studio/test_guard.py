"""Who may ask for what: every route of the router, with hostile requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.routing import Mount
from studios import PORT, TOKEN, Client

from crowdwise.studio._guard import NAMES, Guard
from crowdwise.studio._routes import PAGES, is_open, make_router

HOSTILE: list[tuple[dict[str, str | None], int]] = [
    ({"host": f"evil.example:{PORT}"}, 421),
    ({"host": "127.0.0.1"}, 421),
    ({"host": f"127.0.0.1:{PORT + 1}"}, 421),
    ({"host": f"127.0.0.1.evil.example:{PORT}"}, 421),
    ({"host": f"0.0.0.0:{PORT}"}, 421),
    ({"host": None}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": f"https://127.0.0.1:{PORT}"}, 403),
    ({"origin": f"http://127.0.0.1:{PORT + 1}"}, 403),
    ({"sec_fetch_site": "cross-site"}, 403),
    ({"sec_fetch_site": "same-site"}, 403),
]
NO_TOKEN: list[str | None] = [None, "", "Bearer", "Bearer ", f"bearer {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer é"]


def routes(client: Client) -> list[tuple[str, str]]:
    """Every route of the router as it was built, with each of its methods."""
    found: list[tuple[str, str]] = []
    for route in make_router(client.studio).routes:
        if isinstance(route, Mount):
            found.append(("GET", f"{route.path}/index.html"))
        else:
            found += [(method, route.path) for method in route.methods]
    assert len(found) > 30
    return found


def test_every_route_refuses_hostile_requests(client: Client) -> None:
    for method, path in routes(client):
        for headers, status in HOSTILE:
            assert client.ask(method, path, **headers).status == status, (method, path, headers)


def test_every_route_with_data_needs_the_token(client: Client) -> None:
    data = [(method, path) for method, path in routes(client) if not is_open(path)]
    assert {path for _, path in data} >= {"/start.json", "/answer.json", "/export", "/picture"}
    for method, path in [*data, ("GET", "/nothing"), ("POST", "/"), ("DELETE", "/label.json")]:
        if path == "/":
            continue
        for token in NO_TOKEN:
            refused = client.ask(method, path, authorization=token)
            assert refused.status == 401, (method, path, token)
            assert TOKEN not in refused.text


def test_what_needs_no_token_holds_no_data(client: Client) -> None:
    secret = ("w1", "e17", "text <b>", "good", TOKEN)
    for path in [*PAGES, "/openapi.json", "/static/index.html", "/static/../answers.jsonl", "/static/%2e%2e/_state.py"]:
        answer = client.get(path, authorization=None)
        assert answer.status in (200, 404)
        assert not any(word in answer.text for word in secret)


def test_our_own_page_is_let_through(client: Client) -> None:
    for name in NAMES:
        host = f"{name}:{PORT}"
        for headers in (
            {},
            {"origin": f"http://{host}"},
            {"sec_fetch_site": "same-origin"},
            {"sec_fetch_site": "none"},
        ):
            assert client.get("/now.json", host=host, **headers).status == 200


def test_every_answer_has_the_policy_and_is_not_kept(client: Client) -> None:
    for path in ("/", "/start.json", "/nothing", "/static/index.html", "/openapi.json"):
        for headers in ({}, {"host": "evil.example"}, {"authorization": None}):
            sent = client.get(path, **headers).headers
            assert "default-src 'none'" in sent["content-security-policy"]
            assert "unsafe" not in sent["content-security-policy"]
            assert sent["x-content-type-options"] == "nosniff"
            assert sent["cache-control"] == "no-store"
            assert "set-cookie" not in sent


def test_a_header_that_is_there_twice_is_refused(client: Client) -> None:
    twice = [(b"host", f"127.0.0.1:{PORT}".encode())] * 2 + [(b"authorization", f"Bearer {TOKEN}".encode())]
    assert asyncio.run(status_of(client.app, twice)) == 421


async def status_of(app: Any, headers: list[tuple[bytes, bytes]]) -> int:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/now.json", "query_string": b"", "headers": headers}
    await app(scope, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize("kind", ["websocket", "lifespan", "other"])
def test_nothing_but_http_reaches_the_application(kind: str) -> None:
    reached: list[Any] = []
    sent: list[Any] = []

    async def app(*parts: Any) -> None:
        reached.append(parts)

    async def send(message: Any) -> None:
        sent.append(message)

    guard = Guard(app, token=TOKEN, port=PORT, is_open=is_open)
    asyncio.run(guard({"type": kind, "headers": [], "path": "/"}, None, send))
    assert reached == []
    assert sent == ([{"type": "websocket.close", "code": 1008}] if kind == "websocket" else [])
