"""Work to do, trial by trial, in this process or in several; what is finished is kept whatever happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits

from crowdwise.reproduce.rows import Key, Row, RowLog

Work = Callable[[Key], list[Row]]


def trial_seed(seed: int, *place: int) -> np.random.SeedSequence:
    """The seed of one trial: it depends on the trial's place alone, not on which others are run.

    Parameters
    ----------
    seed : int
        The seed of the whole experiment.
    *place : int
        Where the trial stands, such as setting and number.

    Returns
    -------
    sequence : SeedSequence
        The same as spawning from ``SeedSequence(seed)`` once per level.

    Examples
    --------
    >>> import numpy as np
    >>> by_place = trial_seed(1, 4)
    >>> spawned = np.random.SeedSequence(1).spawn(5)[4]
    >>> bool((by_place.generate_state(4) == spawned.generate_state(4)).all())
    True
    """
    return np.random.SeedSequence(seed, spawn_key=place)


def run_trials(log: RowLog, keys: Sequence[Key], work: Work, *, jobs: int, title: str, progress: bool | None) -> None:
    """Run the trials that the log does not have yet, and append each as it ends.

    Parameters
    ----------
    log : RowLog
        Where rows go, and where those of an earlier run are found.
    keys : sequence of tuple
        The trials wanted.
    work : callable
        From a key to the rows of the trial; picklable if `jobs` is not 1.
    jobs : int
        Number of processes; -1 for one per core.
    title : str
        What the progress line calls it.
    progress : bool or None
        Whether to show progress; None means if a terminal is watching.
    """
    todo = [key for key in keys if key not in log.trials]
    with Progress(title, len(keys), len(keys) - len(todo), shown=progress) as shown:
        for rows in _results(todo, work, cpu_count() if jobs == -1 else jobs):
            log.append(rows)
            shown.step()
    log.finish()


def _results(todo: Sequence[Key], work: Work, jobs: int) -> Iterator[list[Row]]:
    """Rows of the trials as they end. One thread each: the bits must not depend on how many share the machine."""
    if jobs == 1 or len(todo) < 2:
        for key in todo:
            with threadpool_limits(1):
                rows = work(key)
            yield rows
        return
    with parallel_config("loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=min(jobs, len(todo)), return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(_single_threaded)(work, key) for key in todo)


def _single_threaded(work: Work, key: Key) -> list[Row]:
    with threadpool_limits(1):
        return work(key)


class Progress:
    """A line that says how far the work is and how long it will take.

    Parameters
    ----------
    title : str
        What is being done.
    total : int
        Number of steps in all.
    done : int, default=0
        Steps that were done before.
    shown : bool or None, default=None
        Whether to show anything; None means if a terminal is watching.
    stream : file, default=None
        Where to; standard error by default.
    """

    def __init__(
        self, title: str, total: int, done: int = 0, *, shown: bool | None = None, stream: TextIO | None = None
    ) -> None:
        self.title, self.total, self.done, self._before = title, total, done, done
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._shown = self._live if shown is None else shown
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Progress:
        self._show(force=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._show(force=True)
        if self._shown and self._live:
            self._stream.write("\n")

    def step(self) -> None:
        """One more step is done."""
        self.done += 1
        self._show()

    def line(self, elapsed: float) -> str:
        """The line as it is after `elapsed` seconds."""
        width = 24
        filled = width * self.done // max(self.total, 1)
        fresh = self.done - self._before
        known = fresh > 0 and self.done < self.total
        left = f", {_clock(elapsed / fresh * (self.total - self.done))} left" if known else ""
        return (
            f"{self.title} [{'#' * filled}{'.' * (width - filled)}] {self.done}/{self.total} trials, "
            f"{_clock(elapsed)}{left}"
        )

    def _show(self, *, force: bool = False) -> None:
        now = time.monotonic()
        pause = 0.1 if self._live else 10.0  # a log file wants few lines
        if not self._shown or (now - self._last < pause and not force):
            return
        self._last = now
        line = self.line(now - self._began)
        self._stream.write(f"\r{line:<79}" if self._live else f"{line}\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
