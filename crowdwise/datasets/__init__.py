"""Public data sets: benchmark features with truth, and real crowds with their labels.

Files are looked for in a data directory (see `data_directory`) and checked against known checksums.
"""

from crowdwise.datasets._crowd import CROWD_NAMES, fetch_crowd
from crowdwise.datasets._libsvm import LIBSVM_NAMES, fetch_libsvm
from crowdwise.datasets._store import data_directory

__all__ = ["CROWD_NAMES", "LIBSVM_NAMES", "data_directory", "fetch_crowd", "fetch_libsvm"]
