"""The student's seat: what was learned, how good it is, and what was decided."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._arrays import Array, Floats
from crowdwise._text import count
from crowdwise.exceptions import CrowdWarning
from crowdwise.reporting import consensus as consensus_section
from crowdwise.reporting.fit import Fit, named, plain
from crowdwise.reporting.summarize import how_it_was_made
from crowdwise.studio._state import Answer, Position, Studio, class_names, position_of

_MOST_COEFFICIENTS = 30
# A perceptron is fed with at most so many examples, from so many on, and its mistakes are counted in so many regions.
_MOST_FED, _LEAST_FED, _REGIONS = 5000, 10, 10


def model(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """What was learned, how good it is, and what was decided."""
    fit = studio.fit(Position(steepness, l2, without), seat)
    settings = how_it_was_made(fit)
    quality = consensus_section.data(fit)
    on_known = quality["truth_check"]
    return {
        "name": settings["model"]["name"],
        "position": position_of(fit, without),
        "settings": settings["model"]["settings"],
        "choices": settings["choices"],
        "coefficients": _coefficients(studio, fit),
        "classifier": quality["classifier"],
        "reliability": None if on_known is None else on_known.get("reliability"),
        "truth_check": on_known,
        "theory": studio.section("theory", lambda: _theory(studio)),
    }


def _theory(studio: Studio) -> Answer | None:
    """Mistakes of a perceptron that is fed once, easy examples first, beside the most that it can make."""
    from crowdwise.paper.theory import EasyFirstPerceptron  # what readers of the paper need is not loaded for others

    session = studio.session
    X, labels = session.X, session.labels
    fed = np.flatnonzero(labels.labels_per_example)
    fed = fed[:: max(len(fed) // _MOST_FED, 1)]
    if X is None or sparse.issparse(X) or labels.classes is None or len(labels.classes) != 2 or len(fed) < _LEAST_FED:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        perceptron = EasyFirstPerceptron(n_epochs=1, max_regions=_REGIONS).fit(np.asarray(X)[fed], labels[fed])
    bound, per_region = perceptron.bound(), perceptron.mistakes_per_region_.tolist()
    words = (
        f"Fed with {count(len(fed), 'labelled example')}, easy ones first, a perceptron makes "
        f"{count(bound.n_mistakes, 'mistake')}; it cannot make more than {bound.value:,.0f}."
    )
    return {
        "bound": plain(bound.value),
        "novikoff": plain(bound.novikoff),
        "mistakes": bound.n_mistakes,
        "examples": len(fed),
        "theorem": 3 if bound.deviation > 0 else 2,
        "regions": [{"region": k, "mistakes": n} for k, n in enumerate(per_region, start=1)],
        "words": words,
    }


def _coefficients(studio: Studio, fit: Fit) -> list[Answer]:
    """The largest coefficients of every score, by size."""
    coef: Array | None = getattr(fit.model, "coef_", None)
    if coef is None:
        return []
    classes = class_names(fit.results.classes)
    scored = classes[-1:] if len(coef) == 1 else classes
    return [
        {"of": name, "total": len(values), "rows": largest_coefficients(studio, values)}
        for name, values in zip(scored, np.asarray(coef), strict=True)
    ]


def largest_coefficients(studio: Studio, values: Floats) -> list[Answer]:
    """The largest of the coefficients of a score, by size, with the names of their features."""
    names, largest = studio.feature_names, np.argsort(-np.abs(values), kind="stable")[:_MOST_COEFFICIENTS].tolist()
    return [{"name": str(i) if names is None else named(names[i]), "value": float(values[i])} for i in largest]
