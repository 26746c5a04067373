"""What all models promise alike: warnings only with a reason, and odd settings refused by name."""

import numpy as np
import pytest
from all_models import (
    ANY,
    EVERYTHING,
    LEARNERS,
    LOGISTIC,
    MODELS,
    data_for,
    fit_quietly,
    messages_of,
    new,
    over,
)
from marks import in_slow_run
from sklearn.ensemble import RandomForestClassifier

from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.weights import Fading, SelfPaced, Smooth


@pytest.mark.parametrize("seed", [0, in_slow_run(1)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@over(EVERYTHING)
def test_an_ordinary_crowd_is_no_reason_for_a_warning(name, missing, seed):
    X, y = data_for(name, n=100, n_annotators=9, missing=missing, seed=seed)
    assert messages_of(new(name).fit, X, y) == []


@over(MODELS, slow=ANY)
def test_curricula_that_settle_do_so_with_default_settings(name):
    X, y = data_for(name, n=100, missing=0.3)
    for curriculum in (Smooth(), Fading(c=3.0), SelfPaced()):
        assert messages_of(new(name, curriculum=curriculum, random_state=0).fit, X, y) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, in_slow_run(1)])
def test_forests_are_quiet_with_default_settings(seed):
    X, y = data_for("any", n=100, n_annotators=9, missing=0.3, seed=seed)
    forest = RandomForestClassifier(20)
    assert messages_of(new("any", estimator=forest).fit, X, y) == []


ODD = {
    "max_rounds": [1.5, "5", True, 0],
    "tol": [-1.0, np.nan, "a", None],
    "random_state": ["a", 1.5, -1, True],
    "l2": [-1.0, np.nan, "1", None],
    "l2s": [(-1,), (np.nan,), (), "auto", 3.0],
    "steepnesses": [(np.nan,), (-1.0,), (), 2.0],
    "cross_fit": ["5", 2.5, 1, -1, None, True],
    "cv": ["5", 2.5, 1, 0, None, True, 1000],
    "init": ["mode", None, 1],
    "curriculum": ["smooth", 3.0],
    "annotator_model": ["shared", Shared],
    "class_weight": ["even", 3.0, {0: -1.0}],
    "relative_to": ["largest", 1.0],
    "fit_intercept": ["yes", None],
    "n_epochs": [0, 1.5, "5"],
    "max_regions": [0, 1.5],
    "order": ["size", None],
    "average": ["yes"],
}
SETTINGS = {
    "aggregate": ["max_rounds", "tol", "annotator_model"],
    **{name: list(new(name).get_params(deep=False)) for name in LEARNERS},
}


@over(EVERYTHING)
def test_odd_settings_are_refused_under_their_own_name(name):
    X, y = data_for(name, n=40)
    for setting in SETTINGS[name]:
        for odd in ODD.get(setting, []):
            if setting == "init" and name in (*LOGISTIC, *ANY) and odd == "mode":
                odd = "majority"
            with pytest.raises(ValueError, match=setting):
                fit_quietly(new(name, **{setting: odd}), X, y)


@over([*LOGISTIC, *ANY, "aggregate"])
def test_an_odd_strength_of_an_annotator_model_is_refused_under_its_name(name):
    X, y = data_for(name, n=40)
    for model in (Shared, Confusion, OneCoin):
        for strength in (None, 0.0, -1.0, np.nan, "3"):
            with pytest.raises(ValueError, match="strength"):
                new(name, annotator_model=model(strength=strength)).fit(X, y)
