"""How a fit was made: the model, its settings and automatic choices, and versions."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from crowdwise._text import versions
from crowdwise.reporting.fit import Fit, named, plain

_PACKAGES = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy"}  # as people write them
PAGES = (("settings", "Settings"),)


def data(fit: Fit) -> dict[str, Any]:
    """All of it."""
    model, results = fit.model, fit.results
    is_estimator = isinstance(model, BaseEstimator)
    settings = model.get_params(deep=False) if is_estimator else {}
    found = {
        "name": type(model).__name__ if is_estimator else "aggregate",
        "uses_features": is_estimator,
        "settings": {name: named(repr(value)) for name, value in settings.items()},
        "steepness": float(results.steepness),
        "rounds": results.n_rounds,
        "converged": bool(results.converged),
    }
    return {
        "model": found,
        "choices": [{name: plain(value) for name, value in vars(choice).items()} for choice in results.choices],
        "has_texts": fit.texts is not None,
        "versions": {_PACKAGES.get(name, name): value for name, value in versions().items() if name != "platform"},
    }
