"""Features that no model can learn from: times, NaN and numbers whose squares overflow."""

import numpy as np
import pandas as pd
import pytest
from crowds import crowd

from crowdwise import (
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeRegressor,
    diagnose,
    simulate_annotators,
)
from crowdwise.exceptions import DataError
from crowdwise.paper.theory import EasyFirstPerceptron, estimate_margins

X, LABELS = crowd(1, n_examples=40)
TIMES = np.datetime64("2026-01-01") + np.arange(X.size).reshape(X.shape)

TAKERS = {
    "ridge": lambda X: CrowdRidgeClassifier().fit(X, LABELS),
    "ratings": lambda X: CrowdRidgeRegressor().fit(X, LABELS * 0.5),
    "logistic": lambda X: CrowdLogisticClassifier().fit(X, LABELS),
    "perceptron": lambda X: EasyFirstPerceptron().fit(X, LABELS),
    "diagnose": lambda X: diagnose(X, LABELS),
    "margins": lambda X: estimate_margins(X, LABELS, random_state=0),
}


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize(
    ("times", "match"),
    [
        (TIMES, "X holds times"),
        (TIMES - TIMES[0], "X holds times"),
        (pd.DataFrame({"size": X[:, 0], "day": TIMES[:, 0]}), "column 'day' of X holds times"),
    ],
    ids=["times", "spans", "frame"],
)
def test_times_are_not_taken_for_numbers(name, times, match):
    with pytest.raises(DataError, match=match):
        TAKERS[name](times)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("name", ["diagnose", "margins", "simulate"])
def test_what_cannot_be_learnt_from_is_told_with_its_place(name, value):
    changed = X.copy()
    changed[5, 1] = value
    where = "X is too large: the squares" if value == 1e200 else "row 5 column 1"
    if name == "simulate":
        with pytest.raises(DataError, match="row 5 has NaN"):
            simulate_annotators(changed, LABELS[:, 0], random_state=0)
    else:
        with pytest.raises(DataError, match=where):
            TAKERS[name](changed)


def test_scores_that_are_no_numbers_are_told_with_their_place():
    with pytest.raises(ValueError, match="NaN or infinity, first for"):
        simulate_annotators(None, LABELS[:, 0], scores=np.where(np.arange(40) == 4, np.nan, 0.5))


@pytest.mark.parametrize("name", ["ridge", "ratings", "diagnose"])
def test_features_next_to_zero_give_no_warning(name):
    TAKERS[name](X * 1e-310)
