"""Medians over repeats, peak memory, and one line that says on what machine."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Sequence

import numpy
import scipy
import sklearn

import crowdwise


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call, the first one not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def medians_in_turn(calls: Sequence[Callable[[], object]], repeats: int) -> list[tuple[float, float]]:
    """Median elapsed and CPU seconds of calls that take turns, for the speed of a machine varies by the minute."""
    found: list[list[tuple[float, float]]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, taken in zip(calls, found, strict=True):
            start, cpu = time.perf_counter(), time.process_time()
            call()
            taken.append((time.perf_counter() - start, time.process_time() - cpu))
    return [(statistics.median(one for one, _ in taken), statistics.median(cpu for _, cpu in taken)) for taken in found]


def peak_megabytes() -> float:
    """The most memory this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if platform.system() == "Darwin" else peak / 2**10


def environment() -> str:
    """Versions and cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"crowdwise {crowdwise.__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}, {cores} cores"
    )
