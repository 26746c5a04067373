"""Work to do, trial by trial, in this process or in several; what is finished is kept whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from multiprocessing import resource_tracker

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits

from crowdwise.exceptions import WorkerError
from crowdwise.paper.reproduce.rows import Key, Row, RowLog

Work = Callable[[Key], list[Row]]
_PATIENCE = 0.5  # seconds between two looks at whether the parent is there


def trial_seed(seed: int, *place: int) -> np.random.SeedSequence:
    """The seed of one trial: it depends on its place alone (setting, number), not on which others are run.

    It is the same as spawning from ``SeedSequence(seed)`` once per level.

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

    `work` makes the rows of a trial from its key; it is picklable if `jobs` is not 1. Progress is shown by default if a
    terminal is watching.
    """
    todo = [key for key in keys if key not in log.trials]
    n_jobs = cpu_count() if jobs == -1 else jobs
    before = f" ({len(keys) - len(todo)} of {len(keys)} trials were there)" if len(todo) < len(keys) else ""
    try:
        with (
            closing(_results(todo, work, n_jobs)) as results,
            _watched(results, len(todo), title + before, progress) as shown,
        ):
            for rows in shown:
                log.append(rows)
    except BrokenProcessPool as error:
        raise WorkerError(
            f"a worker process of {title} was ended from outside, most likely because memory ran out. What is finished "
            f"is kept in {log.path}: start again to continue, with fewer jobs than {n_jobs}."
        ) from error
    log.finish()


def _watched(
    results: Iterator[list[Row]], length: int, title: str, shown: bool | None
) -> AbstractContextManager[Iterable[list[Row]]]:
    """The results themselves, with a progress bar on standard error if that is wanted."""
    if sys.stderr is None or not (sys.stderr.isatty() if shown is None else shown):
        return nullcontext(results)
    import click

    return click.progressbar(results, length=length, label=title, show_pos=True, file=sys.stderr)


def _results(todo: Sequence[Key], work: Work, jobs: int) -> Generator[list[Row]]:
    """Rows of the trials as they end. One thread each: the bits must not depend on how many share the machine."""
    if jobs == 1 or len(todo) < 2:
        yield from map(partial(_single_threaded, work), todo)
        return
    with parallel_config("loky", inner_max_num_threads=1, initializer=_end_with, initargs=(os.getpid(),)):
        parallel = Parallel(n_jobs=min(jobs, len(todo)), return_as="generator_unordered", batch_size=1)
        results: Generator[list[Row]] | None = None
        try:
            with _interrupts_wait():
                results = parallel(delayed(_single_threaded)(work, key) for key in todo)
            for rows in results:  # noqa: UP028, "yield from" would close joblib's generator before it is closed below
                yield rows
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, about trials that were under way when it was interrupted
                if results is not None:
                    results.close()


def _single_threaded(work: Work, key: Key) -> list[Row]:
    with threadpool_limits(1):
        return work(key)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C is answered after this block. Processes started in it never see it: their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # if it were started later, it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """Let this worker process end when its parent has ended, however that happened."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    if sys.platform == "win32":  # where a process keeps the number of its parent for ever
        process = multiprocessing.parent_process()
        while process is not None and process.is_alive():
            process.join()
    else:
        while os.getppid() == parent:
            time.sleep(_PATIENCE)
    os._exit(1)
