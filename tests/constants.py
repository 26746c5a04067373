"""Other values for constants of modules, for as long as a test needs them."""

from contextlib import contextmanager
from importlib import import_module
from unittest.mock import patch


@contextmanager
def changed(module, **values):
    """Constants of a module, or of the module of a name, have other values inside the block.

    A name that is not there is an error: a test of a constant that went away would test nothing.
    """
    module = import_module(module) if isinstance(module, str) else module
    for name in values:
        if not name.isupper() or not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no constant {name}.")
    with patch.multiple(module, **values):
        yield
