import os
import signal
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from constants import changed
from hypothesis import HealthCheck, settings

from crowdwise.datasets import data_directory

# Every run draws other examples: few in each are many in time. Continuous integration draws more.
settings.register_profile(
    "crowdwise",
    deadline=None,
    max_examples=100 if os.environ.get("CI") else 20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("crowdwise")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def set_constants():
    """Give constants of a module other values until the test ends: set_constants("crowdwise.x", _MOST_ROWS=5)."""
    with ExitStack() as stack:
        yield lambda module, **values: stack.enter_context(changed(module, **values))


@pytest.fixture
def heard_interrupts():
    """Processes that are started hear Ctrl-C, also where this one was told to ignore it, as a shell tells its jobs."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a handler ends where a new program begins
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.fixture(scope="session")
def fitted():
    """Every model, fitted once to labels with names, when it is first asked for: {name: (X, labels, model)}."""
    from all_models import FittedModels  # slow to import, and few tests need it

    return FittedModels()


@pytest.fixture(scope="session")
def data_home():
    """The directory with data sets, from CROWDWISE_DATA."""
    home = os.environ.get("CROWDWISE_DATA")
    if not home or not Path(home).is_dir():
        pytest.skip("set CROWDWISE_DATA to a directory with libsvm/ and crowd/ to run the tests on real data")
    return Path(home)


@pytest.fixture
def libsvm_data():
    """Skip where the LIBSVM files are absent."""
    if not any((data_directory() / "libsvm").glob("heart*")):
        pytest.skip("needs the LIBSVM files: set CROWDWISE_DATA to a directory with libsvm/")


@pytest.fixture
def crowd_data():
    """Skip where the crowd files are absent."""
    if not (data_directory() / "crowd" / "music").is_dir():
        pytest.skip("needs the crowd files: set CROWDWISE_DATA to a directory with crowd/")
