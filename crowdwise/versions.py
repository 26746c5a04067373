"""What a result may depend on: the versions of Python and of the packages."""

from __future__ import annotations

import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version


def versions() -> dict[str, str]:
    """The versions of everything that a result may depend on.

    Examples
    --------
    >>> from crowdwise.versions import versions
    >>> list(versions())
    ['python', 'platform', 'crowdwise', 'numpy', 'scipy', 'scikit-learn']
    """
    ours = import_module("crowdwise").__version__  # whose modules import this one
    found = {"python": platform.python_version(), "platform": platform.platform(), "crowdwise": ours}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # installed in some other way
            found[package] = "unknown"
    return found
