"""A port of the loopback interface and a token: there at once, before anything that is slow to import."""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
_TOKEN_FILE = "studio.token"


@dataclass(frozen=True)
class Listening:
    """A socket that browsers can connect to already, though they wait until it is served."""

    socket: socket.socket
    token: str

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://{LOOPBACK}:{self.port}/#token={self.token}"


def listen(folder: Path, port: int | None = None) -> Listening:
    """Listen on the port that is wanted, with the token of the folder; nothing is written yet."""
    token, last = read_token(folder)
    return Listening(bound(port, last), token)


def bound(port: int | None, last: int) -> socket.socket:
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
    from crowdwise.exceptions import BusyError  # slow to import

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
