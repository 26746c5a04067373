"""Blocks that are read again in every round give what fit gives, where sums would not fit."""

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose
from sklearn.base import clone

from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor, read_blocks
from crowdwise.crowd import disagreement
from crowdwise.exceptions import CrowdWarning, DataError
from crowdwise.ridge import stream_plan
from crowdwise.weights import Smooth

TIGHT = {"tol": 1e-11, "max_rounds": 300}
SMALL = 10 * 4 * 3 * 8  # blocks of ten rows


def assert_same(one, other, rtol=1e-9):
    for name in ("coef_", "intercept_", "expertise_", "accuracy_", "model_precision_"):
        if hasattr(other, name):
            right = np.asarray(getattr(other, name))
            assert_allclose(getattr(one, name), right, rtol=0, atol=rtol * np.abs(right).max(), err_msg=name)
    assert_allclose(one.objective_[-1], other.objective_[-1], rtol=rtol)
    assert one.annotator_flags_ == other.annotator_flags_


@pytest.fixture
def no_room(monkeypatch):
    monkeypatch.setattr(stream_plan, "MEMORY_BUDGET", 2000)  # bytes: enough for sums over labels


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize(
    "settings",
    [{}, {"fit_intercept": False}, {"curriculum": Smooth(2.0), "tol": 1e-2}, {"scale": "possible", "init": "mean"}],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_annotators_than_sums_fit_for_give_what_fit_gives(settings, n_classes):
    X, matrix = crowd(1, n_examples=60, n_classes=n_classes, missing=0.4)
    X += 100
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    model = CrowdRidgeClassifier(**(TIGHT | settings))
    read = clone(model).fit(read_blocks(X, CrowdLabels.from_matrix(matrix), sample_weight=weight, max_bytes=SMALL))
    assert read.route_ == "rows"
    assert_same(read, clone(model).fit(X, matrix, weight))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("scale", ["observed", "possible", None])
def test_ratings_of_any_number_give_what_fit_gives(missing, scale, monkeypatch):
    monkeypatch.setattr(stream_plan, "MOST_CELLS", 10)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    ratings = 50 + X[:, :1] + rng.normal(size=(80, 4)) * [0.1, 0.3, 1.0, 1.0]
    ratings[:, 1:][rng.random((80, 3)) < missing] = np.nan
    model = CrowdRidgeRegressor(scale=scale, **TIGHT)
    read = clone(model).fit(read_blocks(X, ratings, max_bytes=SMALL))
    assert_same(read, clone(model).fit(X, ratings))
    assert not hasattr(read, "sums_")
    with pytest.raises(AttributeError, match="neither partial_fit nor a fit on blocks keeps"):
        read.consensus_  # noqa: B018


@pytest.mark.usefixtures("no_room")
def test_blocks_of_other_annotators_and_classes_and_of_nothing_are_read_again():
    X, matrix = crowd(2, n_examples=60, n_classes=3, missing=0.3)
    names = np.array(list("abcdef"))
    matrix[:20, 3:], matrix[20:, 0] = None, None
    matrix[:20, :3] = np.where(matrix[:20, :3] == 2, 1, matrix[:20, :3])
    matrix[:20, 0] = 0
    matrix[25] = None
    blocks = [
        (X[:20], CrowdLabels.from_matrix(matrix[:20, :3], annotators=names[:3])),
        (X[:0], CrowdLabels.from_matrix(matrix[:0], annotators=names)),
        (X[20:], CrowdLabels.from_matrix(matrix[20:][:, [5, 1, 2, 4, 3]], annotators=names[[5, 1, 2, 4, 3]])),
    ]
    with pytest.warns(CrowdWarning, match="1 of 60 examples has no label"):
        read = CrowdRidgeClassifier(**TIGHT).fit(read_blocks(blocks))
    with pytest.warns(CrowdWarning, match="1 of 60 examples has no label"):
        whole = CrowdRidgeClassifier(**TIGHT).fit(X, CrowdLabels.from_matrix(matrix, annotators=names))
    assert_allclose(read.coef_, whole.coef_, rtol=1e-9)
    found = dict(zip(read.annotators_.tolist(), read.expertise_, strict=True))
    assert_allclose([found[name] for name in whole.annotators_.tolist()], whole.expertise_, rtol=1e-9)


@pytest.mark.usefixtures("no_room")
def test_what_cannot_be_read_again_is_refused():
    X, matrix = crowd(3, missing=0.4)
    labels = CrowdLabels.from_matrix(matrix)
    with pytest.raises(DataError, match=r"do not fit into 0 MiB.*come from an iterator and cannot be read again"):
        CrowdRidgeClassifier().fit(read_blocks(iter([(X, labels)])))
    with pytest.raises(DataError, match="CrowdRidgeClassifier and CrowdRidgeRegressor alone"):
        CrowdRidgeClassifierCV(cv=3).fit(read_blocks(X, labels))


@pytest.mark.usefixtures("no_room")
def test_the_reading_of_blocks_and_the_rounds_are_reported():
    X, matrix = crowd(4, missing=0.4)
    stages = []
    blocks = read_blocks(X, CrowdLabels.from_matrix(matrix), max_bytes=10 * SMALL)
    CrowdRidgeClassifier().fit(blocks, on_round=lambda done: stages.append(done.stage))
    assert stages[:2] == ["block 1: 40 examples", "steepness 2"]


@pytest.mark.usefixtures("no_room")
def test_a_block_of_contested_examples_alone_weighs_as_little_as_among_others():
    X, matrix = crowd(5, n_examples=80, n_annotators=4, missing=0.2)
    labels = CrowdLabels.from_matrix(matrix)
    order = np.argsort(disagreement(labels), kind="stable")
    model = CrowdRidgeClassifier(60.0, **TIGHT)
    read = clone(model).fit(read_blocks(X[order], labels[order], max_bytes=SMALL))
    assert_same(read, clone(model).fit(X, labels))
