"""Models that are written to a file and read again: how to make and to compare them."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from all_models import (
    data_for,
    fit_quietly,
    new,
    quick,
)

import crowdwise
from crowdwise import (
    CrowdClassifier,
)
from crowdwise.mixins import IN_MEMORY

DATA = Path(__file__).parent / "data"
TREE = "sklearn.tree._tree.Tree"  # not among the types that skops trusts


def skip_without_skops(name):
    if name.startswith("any"):
        pytest.importorskip("skops", reason="needs the extra skops")


def fitted(name, **options):
    """A fitted model with features and labels; what `aggregate` gives for "aggregate"."""
    skip_without_skops(name)
    X, labels = data_for(name, **options)
    model = fit_quietly(new(name, **quick(name)), X, labels)
    return (model.results_ if name == "aggregate" else model), X, labels


def read_again(model, path, **options):
    model.save(path)
    return crowdwise.load(path, **options)


def assert_same(one, other, where="model"):
    """The same types and the same bits, all the way down."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert one.flags.writeable == other.flags.writeable, where
        if one.dtype == object:
            assert_same(one.ravel().tolist(), other.ravel().tolist(), where)
        else:
            assert one.tobytes() == other.tobytes(), where
    elif isinstance(one, np.random.Generator):
        assert one.bit_generator.state == other.bit_generator.state, where
    elif isinstance(one, dict):
        assert_same(list(one.items()), list(other.items()), where)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif hasattr(one, "get_params"):
        one, other = (
            {k: v for k, v in sorted(vars(model).items()) if k not in (IN_MEMORY, "_groups")} for model in (one, other)
        )
        assert_same(one, other, where)  # what a ridge model keeps to be solved again is never in a file
    else:
        assert one == other or one != one, where


def around(estimator):
    X, labels = data_for("any")
    return fit_quietly(CrowdClassifier(estimator, steepness=0.0, max_rounds=1), X, labels), X
