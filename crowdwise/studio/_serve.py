"""A studio -> a server on the loopback interface, with a token that outlives a restart."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from crowdwise.exceptions import BusyError
from crowdwise.studio._routes import make_app
from crowdwise.studio._state import Studio

LOOPBACK = "127.0.0.1"
_TOKEN_FILE = "studio.token"
_MOST_HEAD = 1 << 19  # bytes of a request without its body: an address may have four names of the longest kind


def serve(
    studio: Studio,
    folder: Path,
    *,
    port: int | None = None,
    browser: bool = True,
    announce: Callable[[str], object] = print,
) -> None:
    """Serve until the process is interrupted.

    Parameters
    ----------
    studio : Studio
        What is served.
    folder : Path
        Keeps the token and the port, so that a page goes on after a restart.
    port : int, default=None
        By default the last one used, or any free one.
    browser : bool, default=True
        Whether to open a browser.
    announce : callable, default=print
        Is given the address.
    """
    token, last = read_token(folder)
    listening = _bound(port, last)
    port = listening.getsockname()[1]
    write_token(folder, token, port)
    address = f"http://{LOOPBACK}:{port}/#token={token}"
    announce(address)
    threading.Thread(target=studio.prepare, daemon=True).start()
    if browser:
        webbrowser.open(address)
    config = uvicorn.Config(
        make_app(studio, token=token, port=port), http="h11", ws="none", lifespan="off", log_level="warning",
        access_log=False, server_header=False, date_header=False, timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=_MOST_HEAD,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])


def _bound(port: int | None, last: int) -> socket.socket:
    """A socket on the port that is wanted, on that of the last time, or on any."""
    for candidate in [last, 0] if port is None else [port]:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, candidate))
            listening.listen()  # a browser that is faster than we are waits
        except OSError:
            listening.close()
        else:
            return listening
    raise BusyError(f"port {port} is in use, or not allowed. Choose another one: --port.")


def read_token(folder: Path) -> tuple[str, int]:
    """The token and the port of the last time; a new token and 0 if there are none."""
    try:
        last = json.loads((folder / _TOKEN_FILE).read_bytes())
        return str(last["token"]), int(last["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return secrets.token_urlsafe(32), 0


def write_token(folder: Path, token: str, port: int) -> None:
    """Keep them in a file that no one else can read."""
    path = folder / _TOKEN_FILE
    path.unlink(missing_ok=True)  # it may be another's, or one that others can read
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"token": token, "port": port}, file)
