"""Fits that pages wait for: made one after the other, once each, of every page the last one that it asked for."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from crowdwise._progress import Round

# A request waits so many seconds for a fit before the client has to ask again; so many fits are kept; and what is less
# important goes on so many seconds after the last fit, so that a slider that is dragged has the processor to itself.
_PATIENCE, _MOST_KEPT, _REST = 0.5, 4, 0.3

Report = Callable[[Round], None]
Make = Callable[[Report], Any]
_Key = tuple[Hashable, Hashable]  # the version of the labels, and what is made of them


class Pending(Exception):
    """A fit that is not there yet: what it does, since how many seconds."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.words, self.seconds = words, seconds


class _OutOfDate(Exception):
    """A fit that no page waits for any more."""


class Fits:
    """A queue of fits, and the last of those that were made.

    Parameters
    ----------
    version : callable
        Gives the version of the labels: a fit to others is forgotten, and that it failed does not matter.
    *after : Fits
        More important ones: between its rounds, a fit of this queue waits until those rest.
    """

    def __init__(self, version: Callable[[], Hashable], *after: Fits) -> None:
        self._version, self._after = version, after
        self._changed = threading.Condition()
        self._made: OrderedDict[_Key, Any] = OrderedDict()
        self._wanted: dict[str, tuple[_Key, Make]] = {}
        self._doing: tuple[str, float] | None = None
        self._n_at_once, self._last_end = 0, 0.0

    def get(self, name: Hashable, make: Make, seat: str) -> Any:
        """What `make` gives, made once per name; raises `Pending` if that takes long, and what `make` raises."""
        key = self._version(), name
        with self._changed:
            if key not in self._made:
                self._wanted.pop(seat, None)
                self._wanted[seat] = key, make
                if self._doing is None:
                    self._doing = "", time.monotonic()
                    threading.Thread(target=self._work, daemon=True).start()
                self._changed.wait_for(lambda: key in self._made, _PATIENCE)
            if key not in self._made:
                words, started = self._doing or ("", time.monotonic())
                raise Pending(words, time.monotonic() - started)
            self._made.move_to_end(key)
            result = self._made[key]
        if isinstance(result, Exception):
            raise result
        return result

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Around a fit of milliseconds that is not queued: less important ones wait for it as well."""
        with self._changed:
            self._n_at_once += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_at_once -= 1
                self._last_end = time.monotonic()

    def wait_until_at_rest(self) -> None:
        """Wait until nothing is fitted, and nothing was a moment ago."""
        with self._changed:
            while self._doing or self._n_at_once or time.monotonic() < self._last_end + _REST:
                self._changed.wait(_REST)

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._wanted:
                    self._doing = None
                    return
                key, make = next(iter(self._wanted.values()))
                self._doing = "", time.monotonic()
            version = self._version()
            try:
                result = make(partial(self._report, key))
            except Exception as error:  # is raised where it was asked for
                result = _OutOfDate() if self._version() != version else error
            with self._changed:
                self._wanted = {seat: wanted for seat, wanted in self._wanted.items() if wanted[0] != key}
                if not isinstance(result, _OutOfDate):
                    self._keep(key, result)
                self._last_end = time.monotonic()
                self._changed.notify_all()

    def _keep(self, key: _Key, result: Any) -> None:
        if any(version != key[0] for version, _ in self._made):
            self._made.clear()
        self._made[key] = result
        while len(self._made) > _MOST_KEPT:
            self._made.popitem(last=False)

    def _report(self, key: _Key, done: Round) -> None:
        for fits in self._after:
            fits.wait_until_at_rest()
        with self._changed:
            self._doing = str(done), self._doing[1] if self._doing else time.monotonic()
            if all(wanted != key for wanted, _ in self._wanted.values()):
                raise _OutOfDate
