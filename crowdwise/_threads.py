"""Work shared between cores: independent tasks, each with BLAS on one thread, so that threads change no bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

# Rows that one task of a pass reads.
TASK_ROWS = 2**16
# Below this many multiplications the work is done before a second thread has started.
_PARALLEL_FROM = 2**27


def spans(n_rows: int) -> list[range]:
    """Ranges of rows for tasks."""
    return [range(start, min(start + TASK_ROWS, n_rows)) for start in range(0, n_rows, TASK_ROWS)]


def run_parallel(task: Callable[[Any], Result], parts: Iterable[Any], n_multiplications: float) -> Iterator[Result]:
    """Results of independent tasks in order, on all cores if the work is worth it, BLAS then on one thread each."""
    n_threads = 1 if n_multiplications < _PARALLEL_FROM else available_cores()
    if n_threads <= 1:
        yield from map(task, parts)
        return
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(task, parts)


def run_all(task: Callable[[Any], None], parts: Iterable[Any], n_multiplications: float) -> None:
    """Run independent tasks that write their results, on all cores if the work is worth it."""
    for _ in run_parallel(task, parts, n_multiplications):
        pass


def available_cores() -> int:
    """How many threads may run at a time."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


_LOCK = Lock()
_N_INSIDE = 0
_LIMITER: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread, so that no bit depends on how many there are; the last one out lifts the limit."""
    global _N_INSIDE, _LIMITER
    with _LOCK:
        _N_INSIDE += 1
        if _N_INSIDE == 1:
            _take_control()
            _LIMITER = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _LOCK:
            _N_INSIDE -= 1
            if _N_INSIDE == 0:
                _take_control()
                _LIMITER.restore_original_limits()


def _take_control() -> None:
    """Let this thread set limits: later versions of threadpoolctl listen to the first one alone; ours are counted."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
