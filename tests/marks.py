"""Marks for tests and their parameters."""

import os

import pytest
from hypothesis import settings


def in_slow_run(*values):
    """Parameters with which a test is for the slow run."""
    return pytest.param(*values, marks=pytest.mark.slow)


def many_examples(number):
    """A property that is cheap to look at: so many examples in continuous integration, a fifth of them elsewhere."""
    return settings(max_examples=number if os.environ.get("CI") else number // 5)
