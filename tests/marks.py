"""Marks for parameters of tests."""

import pytest


def in_slow_run(*values):
    """Parameters with which a test is for the slow run."""
    return pytest.param(*values, marks=pytest.mark.slow)
