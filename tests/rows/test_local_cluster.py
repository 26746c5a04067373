"""A cluster of two processes gives the fit in memory, also if one of them is killed in the middle of it."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_array_equal

from crowdwise import CrowdLogisticClassifier, CrowdRidgeClassifier
from crowdwise.exceptions import DataError, WorkerError
from crowdwise.rows.summary import DataSummary

needs_dask = "needs Dask: pip install 'crowdwise[dask]'"
dask = pytest.importorskip("dask", reason=needs_dask)
da = pytest.importorskip("dask.array", reason=needs_dask)
distributed = pytest.importorskip("distributed", reason=needs_dask)

pytestmark = pytest.mark.slow
N_EXAMPLES, N_ROWS = 2000, 100


@pytest.fixture(scope="module")
def client():
    """Of two worker processes; a task whose worker dies is tried once more, then given up."""
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.comm.retry.count": 5}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _rounds_over_blocks(monkeypatch):
    """The logistic model reads blocks in every round even if the sample has all rows."""
    monkeypatch.setattr(DataSummary, "is_complete", False)


def blocks_of(X, y, at_block=lambda block, **_: block, **options):
    X = da.from_array(X, chunks=(N_ROWS, -1)).map_blocks(at_block, meta=np.empty((0, X.shape[1])), **options)
    return X, da.from_array(y, chunks=(N_ROWS, -1))


def data():
    X, y = crowd(n_examples=N_EXAMPLES, n_annotators=5, missing=0.3)
    return X, y.astype(float)


MODELS = pytest.mark.parametrize("model", [CrowdRidgeClassifier, CrowdLogisticClassifier])


def alone(model, X, y):
    with dask.config.set(scheduler="synchronous"):
        return model().fit(*blocks_of(X, y))


def assert_same_bits(found, expected):
    for name in ("coef_", "intercept_", "expertise_", "objective_", "accuracy_"):
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@MODELS
def test_processes_give_the_bits_of_one_process(client, model):
    X, y = data()
    expected = alone(model, X, y)
    assert_same_bits(model().fit(*blocks_of(X, y)), expected)
    chunks, _ = blocks_of(X, y)
    assert_array_equal(chunks.map_blocks(expected.predict, drop_axis=1, dtype=int).compute(), expected.predict(X))


def kill_once(block, marker, block_info=None):
    """A block whose worker dies over it the first time, with all the sums that it held."""
    if block_info[0]["chunk-location"][0] == 15 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@MODELS
def test_a_worker_killed_in_the_middle_changes_no_bit(client, tmp_path, model):
    X, y = data()
    marker = tmp_path / "killed"
    workers = set(client.scheduler_info()["workers"])
    found = model().fit(*blocks_of(X, y, kill_once, marker=str(marker)))
    assert marker.exists()
    client.wait_for_workers(2, timeout=120)
    assert workers != set(client.scheduler_info()["workers"])  # one of them is a new process
    assert_same_bits(found, alone(model, X, y))


def kill_always(block, block_info=None):
    if block_info[0]["chunk-location"][0] == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_block_that_kills_every_worker_is_told_to_be_too_large(client):
    X, y = data()
    model = CrowdRidgeClassifier().fit(X[:100], y[:100])
    before = model.coef_.copy()
    with pytest.raises(WorkerError, match="a block of 100 rows") as told:
        model.fit(*blocks_of(X, y, kill_always))
    assert isinstance(told.value.__cause__, distributed.KilledWorker)
    assert_array_equal(model.coef_, before)
    client.wait_for_workers(1, timeout=120)
    assert_same_bits(model.fit(*blocks_of(X, y)), alone(CrowdRidgeClassifier, X, y))


def test_errors_of_workers_come_home_with_their_block(client):
    X, y = data()
    X[1550, 1] = np.inf
    with pytest.raises(DataError, match="in block 15 of X"):
        CrowdRidgeClassifier().fit(*blocks_of(X, y))
