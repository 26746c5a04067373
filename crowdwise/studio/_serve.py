"""A studio -> a server on the loopback interface."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path

import uvicorn

from crowdwise.studio._listen import Listening, write_token
from crowdwise.studio._routes import make_app
from crowdwise.studio._state import Studio

_MOST_HEAD = 1 << 19  # bytes of a request without its body: an address may have four names of the longest kind


def serve(studio: Studio, folder: Path, listening: Listening, *, browser: bool = True) -> None:
    """Serve until the process is interrupted.

    Parameters
    ----------
    studio : Studio
        What is served.
    folder : Path
        Keeps the token and the port, so that a page goes on after a restart.
    listening : Listening
        Where.
    browser : bool, default=True
        Whether to open a browser.
    """
    write_token(folder, listening.token, listening.port)
    threading.Thread(target=studio.prepare, daemon=True).start()
    if browser:
        webbrowser.open(listening.address)
    config = uvicorn.Config(
        make_app(studio, token=listening.token, port=listening.port), http="h11", ws="none", lifespan="off",
        log_level="warning", access_log=False, server_header=False, date_header=False, timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=_MOST_HEAD,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening.socket])
