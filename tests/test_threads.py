"""BLAS has one thread while a model is fitted, whichever thread fits it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from crowdwise._threads import one_blas_thread


def blas_threads() -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def inside(_: int = 0) -> list[int]:
    with one_blas_thread():
        return blas_threads()


def test_any_thread_may_set_the_limit_and_lift_it() -> None:
    before = blas_threads()
    if max(before, default=1) == 1:
        pytest.skip("BLAS has one thread anyway")
    assert set(inside()) == {1}
    with ThreadPoolExecutor(1) as pool:
        assert set(pool.submit(inside).result()) == {1}
    assert blas_threads() == before
    assert set(inside()) == {1}
    assert blas_threads() == before


def test_the_last_one_out_lifts_the_limit() -> None:
    before, all_in, first_out = blas_threads(), Barrier(2), Barrier(2)

    def work(is_last: bool) -> list[int]:
        with one_blas_thread():
            all_in.wait()
            if is_last:
                first_out.wait()
                return blas_threads()
        first_out.wait()
        return [1]

    with ThreadPoolExecutor(2) as pool:
        assert {n for found in pool.map(work, [True, False]) for n in found} == {1}
    assert blas_threads() == before
