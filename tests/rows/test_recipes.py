"""The recipes for Spark and Ray in the guide, run with stand-ins that call them as these engines do."""

import pickle
import re
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise import CrowdRidgeClassifier

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'crowdwise[arrow]'")
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "scaling.md"


def recipe(engine):
    (code,) = re.findall(rf"^```python no-run: needs {engine}\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    return code


class SparkFrame:
    """Partitions of record batches; one partition is empty."""

    def __init__(self, rows):
        batches = pa.RecordBatch.from_pandas(rows)
        self.partitions = [[batches.slice(0, 30), batches.slice(30, 30)], [], [batches.slice(60)]]

    def mapInArrow(self, function, schema):
        assert schema == "sums binary"
        self.found = [row for part in self.partitions for batch in function(iter(part)) for row in batch.to_pylist()]
        return self

    def toLocalIterator(self):
        return iter(self.found)


class RayDataset:
    def __init__(self, rows):
        self.blocks = [rows[:50], rows[50:]]

    def map_batches(self, function, *, batch_format, batch_size):
        assert batch_format == "pandas"
        self.found = [function(block) for block in self.blocks]
        return self

    def iter_rows(self):
        for batch in self.found:
            yield from ({"sums": sums} for sums in batch["sums"])


@pytest.mark.parametrize(
    ("engine", "name", "stand_in"), [("Spark", "frame", SparkFrame), ("Ray", "dataset", RayDataset)]
)
def test_recipes_give_the_fit_in_memory(engine, name, stand_in):
    rng = np.random.default_rng(0)
    features, annotators = ["x1", "x2", "x3", "x4"], ["ann", "bob", "eve"]
    X = pd.DataFrame(rng.normal(size=(100, 4)), columns=features)
    y = pd.DataFrame((X[["x1"]].to_numpy() + rng.normal(size=(100, 3)) > 0).astype(float), columns=annotators)
    given = {name: stand_in(pd.concat([X, y], axis=1)), "features": features, "annotators": annotators}
    shared = {"CrowdRidgeClassifier": CrowdRidgeClassifier, "reduce": reduce, "add": add, "np": np, "pickle": pickle}
    namespace = {**shared, **given}
    exec(compile(recipe(engine), engine, "exec"), namespace)
    expected = CrowdRidgeClassifier().fit(X, y)
    assert_allclose(namespace["model"].coef_, expected.coef_, rtol=1e-10)
    assert namespace["model"].annotators_.tolist() == annotators
