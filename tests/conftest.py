import pytest

from crowdwise.datasets import data_directory


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
