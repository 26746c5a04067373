import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("crowdwise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crowdwise")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_home():
    """The directory with data sets, from CROWDWISE_DATA."""
    home = os.environ.get("CROWDWISE_DATA")
    if not home or not Path(home).is_dir():
        pytest.skip("set CROWDWISE_DATA to a directory with libsvm/ and crowd/ to run the tests on real data")
    return Path(home)
