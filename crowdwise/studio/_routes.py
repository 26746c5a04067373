"""The routes: every operation of openapi.json, the pages that show them, and their files."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from crowdwise.exceptions import DataError
from crowdwise.studio._fits import Pending
from crowdwise.studio._guard import App, Guard
from crowdwise.studio._schema import Problem, Schema, check_value, description, query_values, resolved
from crowdwise.studio._state import Studio
from crowdwise.studio._views import VIEWS, as_json

PAGES = (
    "/", "/start", "/explore", "/annotators", "/annotator", "/pairs", "/map", "/examples", "/example", "/label",
    "/model",
)  # fmt: skip
STATIC = Path(str(files("crowdwise.studio").joinpath("static")))
_MOST_BYTES = 1 << 16  # of what a client sends
_PICTURES = {f".{name}": f"image/{kind}" for name, kind in (
    ("png", "png"), ("jpg", "jpeg"), ("jpeg", "jpeg"), ("gif", "gif"), ("webp", "webp")
)}  # fmt: skip

Door = Callable[[Request], Awaitable[Response]]


def make_app(studio: Studio, *, token: str, port: int) -> App:
    """The whole application, behind its guard.

    Parameters
    ----------
    studio : Studio
        What it shows.
    token : str
        What requests for data have to bring.
    port : int
        Where it is served.

    Returns
    -------
    app : ASGI application
    """
    return Guard(make_router(studio), token=token, port=port, is_open=is_open)


def make_router(studio: Studio) -> Starlette:
    """The routes without their guard."""
    routes: list[Route | Mount] = [Route(page, _page, methods=["GET"]) for page in PAGES]
    for path, operations in description()["paths"].items():
        for method, operation in operations.items():
            routes.append(Route(path, _door(studio, operation), methods=[method.upper()]))
    routes.append(Route("/openapi.json", _description, methods=["GET"]))
    routes.append(Mount("/static", StaticFiles(directory=STATIC)))
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_problem})


def is_open(path: str) -> bool:
    """Whether a path holds no data: the bare page, its files and the description."""
    return path in PAGES or path == "/openapi.json" or path.startswith("/static/")


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", media_type="text/html")


async def _description(request: Request) -> Response:
    return Response(as_json(description()), media_type="application/json")


def _door(studio: Studio, operation: Schema) -> Door:
    """An operation as a handler."""

    async def handle(request: Request) -> Response:
        content = b""
        if "requestBody" in operation:
            async for part in request.stream():
                content += part
                if len(content) > _MOST_BYTES:
                    break
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        return await run_in_threadpool(reply, studio, operation, query, content)

    return handle


def reply(studio: Studio, operation: Schema, query: Mapping[str, list[str]], content: bytes) -> Response:
    """Check what came, ask the view, and wrap up its answer."""
    try:
        return _sent(VIEWS[operation["operationId"]](studio, **_values(operation, query, content)))
    except Pending as pending:
        waiting = {"pending": True, "words": pending.words, "seconds": round(pending.seconds, 2)}
        return Response(as_json(waiting), 202, media_type="application/json")
    except Problem as problem:
        return _problem(problem.status, problem.text, problem.field)
    except DataError as error:
        return _problem(422, str(error))


def _values(operation: Schema, query: Mapping[str, list[str]], content: bytes) -> dict[str, Any]:
    values = query_values(operation, query)
    if "requestBody" not in operation:
        return values
    if len(content) > _MOST_BYTES:
        raise Problem(413, f"at most {_MOST_BYTES} bytes are read.")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Problem(422, "must be JSON.", "body") from None
    check_value(body, resolved(operation["requestBody"]["content"]["application/json"]["schema"]), "")
    return values | body


def _sent(answer: Any) -> Response:
    if isinstance(answer, Path):
        kind = _PICTURES.get(answer.suffix.lower())
        return _problem(404, "this is not a picture.") if kind is None else FileResponse(answer, media_type=kind)
    if isinstance(answer, tuple):
        name, kind, content = answer
        return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
    return Response(as_json(answer), media_type="application/json")


def _problem(status: int, text: str, field: str | None = None, headers: Mapping[str, str] | None = None) -> Response:
    answer = {"problem": text} if field is None else {"problem": text, "field": field}
    return Response(as_json(answer), status, headers, media_type="application/json")


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(error.status_code, error.detail, headers=error.headers)  # 405 names what is allowed
