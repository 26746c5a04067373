"""The page of all results says what models and records have, no more and no less."""

import re
from pathlib import Path

import numpy as np
import pytest
from crowds import crowd
from sklearn.linear_model import LogisticRegression

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    aggregate,
)

PAGE = (Path(__file__).parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
RIDGE = {"CrowdRidgeClassifier", "CrowdRidgeClassifierCV", "CrowdRidgeRegressor"}
EM = {"CrowdLogisticClassifier", "CrowdClassifier"}
GROUPS = {
    "all": RIDGE | EM,
    "classes": RIDGE - {"CrowdRidgeRegressor"} | EM,
    "ratings": {"CrowdRidgeRegressor"},
    "ridge": RIDGE,
    "em": EM,
}
MODELS = {
    "CrowdRidgeClassifier": CrowdRidgeClassifier(),
    "CrowdRidgeClassifierCV": CrowdRidgeClassifierCV(),
    "CrowdRidgeRegressor": CrowdRidgeRegressor(),
    "CrowdLogisticClassifier": CrowdLogisticClassifier(),
    "CrowdClassifier": CrowdClassifier(LogisticRegression()),
}


def rows_of(heading):
    """The rows of the first table under a heading, as lists of cells."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names_in(cell):
    return re.findall(r"`(\w+)`", cell)


def listed(heading, groups):
    """{name of a model or record: {name of a result: its shape}}."""
    found = {}
    for name_cell, shape, _, owner_cell in rows_of(heading):
        owners = set(names_in(owner_cell))
        owners |= {owner for word in owner_cell.split(", ") for owner in groups.get(word, ())}
        assert owners, name_cell
        for owner in owners:
            found.setdefault(owner, {}).update(dict.fromkeys(names_in(name_cell), shape))
    return found


def listed_records():
    """The same of records; what is "as above" has the shape of the model's attribute of that name."""
    above = listed("Attributes of fitted models", GROUPS)["CrowdLogisticClassifier"]
    return {
        owner: {name: above[f"{name}_"] if shape == "as above" else shape for name, shape in names.items()}
        for owner, names in listed("Records", {}).items()
    }


def numbers(n_classes):
    return {"n_examples": 40, "n_annotators": 6, "n_classes": n_classes}


def has_shape(value, stated, sizes):
    """Whether a value is of the shape or type that the page states."""
    if stated.startswith("("):
        wanted = tuple(sizes.get(part.strip()) for part in stated[1 : stated.index(")")].split(",") if part.strip())
        return len(wanted) == np.ndim(value) and all(w in (None, n) for w, n in zip(wanted, value.shape, strict=True))
    types = {"number": (int, float), "bool": bool, "str": str, "dict": dict}
    return isinstance(value, types[stated]) if stated in types else True


@pytest.fixture(scope="module")
def data():
    X, matrix = crowd(3, missing=0.2)
    labels = CrowdLabels.from_matrix(matrix, classes=[0, 1])
    ratings = CrowdLabels.from_matrix(
        [[None if value is None else value + 0.25 * i for value in row] for i, row in enumerate(matrix)],
        scale="interval",
    )
    return X, labels, ratings


def fitted(name, data):
    X, labels, ratings = data
    return MODELS[name].fit(X, ratings if name == "CrowdRidgeRegressor" else labels)


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize("name", MODELS)
def test_the_page_lists_the_attributes_of_every_model_with_their_shapes(name, data):
    model, stated = fitted(name, data), listed("Attributes of fitted models", GROUPS)[name]
    found = {key: value for key, value in vars(model).items() if key.endswith("_") and not key.startswith("_")}
    assert set(found) == set(stated)
    wrong = [key for key, value in found.items() if not has_shape(value, stated[key], numbers(2))]
    assert not wrong


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_what_all_models_share_is_what_their_results_give(data):
    rows = rows_of("Attributes of fitted models")
    records = {"results_", "fitted_", "n_features_in_"}
    for name, own in (("CrowdLogisticClassifier", {"all", "classes"}), ("CrowdRidgeRegressor", {"all", "ratings"})):
        stated = {key for cells in rows if cells[3] in own for key in names_in(cells[0])}
        given = set(fitted(name, data).results_.attributes())
        assert stated - records - {"class_weight_"} == given


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_the_page_lists_what_records_hold(data):
    X, labels, ratings = data
    records = {
        "FitResults": aggregate(labels),
        "Consensus": fitted("CrowdLogisticClassifier", data).consensus(X, labels),
        "RatingConsensus": fitted("CrowdRidgeRegressor", data).consensus(X, ratings),
    }
    stated = listed_records()
    assert set(stated) == set(records)
    for owner, record in records.items():
        found = {key for key in dir(record) if not key.startswith("_") and not callable(getattr(record, key))}
        assert found == set(stated[owner])
        wrong = [k for k, shape in stated[owner].items() if not has_shape(getattr(record, k), shape, numbers(2))]
        assert not wrong


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_the_page_lists_the_columns_of_frames(data):
    of_classes, of_ratings, of_annotators = (names_in(row[1]) for row in rows_of("Frames"))
    logistic, ridge = fitted("CrowdLogisticClassifier", data), fitted("CrowdRidgeRegressor", data)
    assert list(logistic.consensus_frame().columns) == [*of_classes, "p(0)", "p(1)"]
    assert list(aggregate(data[1]).consensus_frame().columns) == [*of_classes, "p(0)", "p(1)"]
    assert list(ridge.consensus_frame().columns) == of_ratings
    assert list(logistic.annotators_frame().columns) == of_annotators
    assert list(aggregate(data[1]).annotators_frame().columns) == of_annotators
    assert list(ridge.annotators_frame().columns) == [name for name in of_annotators if "accuracy" not in name]
