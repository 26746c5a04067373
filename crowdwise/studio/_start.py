"""The first screen, and what may have changed since the last look."""

from __future__ import annotations

from typing import Any

from crowdwise.reporting.summarize import summary_of
from crowdwise.studio._state import Answer, Studio, class_names


def start(studio: Studio) -> Answer:
    """What there is, in three sentences and four numbers."""
    session, texts = studio.session, studio.texts
    labels = session.labels
    summary = _summary(studio) if labels.n_labels else {"headline": [], "numbers": []}
    return {
        "title": studio.title,
        "version": session.version,
        "headline": summary["headline"],
        "numbers": summary["numbers"],
        "size": {"examples": len(labels), "annotators": labels.n_annotators, "labels": labels.n_labels},
        "classes": class_names(labels.classes),
        "people": session.people,
        "position": vars(studio.position),
        "has": {
            "features": session.model is not None,
            "texts": texts is not None and studio.pictures is None,
            "pictures": studio.pictures is not None,
            "truth": bool((session._truth >= 0).any()),
            "l2": session.has_l2,
        },
    } | _followed_by(studio)


def _summary(studio: Studio) -> Any:
    """That of the report, as the run kept it or made anew."""
    fit = studio.fit()
    if studio.summary is not None and studio.session.version == 0:
        return studio.summary
    return studio.section("start", lambda: summary_of(fit))


def _followed_by(studio: Studio) -> Answer:
    """How a slider is followed, and what is recomputed then."""
    if studio.session.is_slow:
        words = "Every position is a new fit of the classifier, in the background; the last position wins."
        return {"follows": "fit", "recomputed": words}
    if studio.session.model is None:
        return {"follows": "labels", "recomputed": "Every position is a new consensus of all labels."}
    words = "Every position is solved from sums that are kept: no pass over the data."
    return {"follows": "sums", "recomputed": words}


def now(studio: Studio) -> Answer:
    """What may have changed since the last look; nothing is waited for."""
    session = studio.session
    return {
        "version": session.version,
        "labels": session.labels.n_labels,
        "answers": sum(len(session.done_by(person)) for person in session.people),
        "is_pending": session.is_pending,
        "position": vars(studio.position),
    }
