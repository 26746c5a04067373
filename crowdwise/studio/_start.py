"""The first screen, and what may have changed since the last look."""

from __future__ import annotations

from crowdwise.reporting.summarize import summary_of
from crowdwise.studio._state import Answer, Studio, class_names, model_name


def start(studio: Studio) -> Answer:
    """What there is, and how it is followed: asked for after every answer, so nothing of it is long to make."""
    session, texts = studio.session, studio.texts
    labels = session.labels
    if labels.n_labels:
        studio.fit()  # the position of the sliders is that of the fit
    return {
        "title": studio.title,
        "version": session.version,
        "model": f"{_model_words(studio)} {studio.about_model}".strip() if labels.n_labels else "",
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


def summary(studio: Studio) -> Answer:
    """Three sentences and four numbers, those of the report: as the run kept them, or made anew."""
    if not studio.session.labels.n_labels:
        return {"headline": [], "numbers": []}
    fit, made = studio.fit(), studio.summary
    if made is None or studio.session.version:
        made = studio.section("summary", lambda: summary_of(fit))
    return {"headline": made["headline"], "numbers": made["numbers"]}


def _model_words(studio: Studio) -> str:
    """Which model the results that are shown come from."""
    session = studio.session
    if session.model is None:
        return "The consensus is computed from the labels alone."
    if session.is_slow and session.is_pending:
        return f"The consensus is computed from the labels alone until the {model_name(session.model)} model is fitted."
    return f"Consensus and accuracies are those of the {model_name(session.model)} model."


def _followed_by(studio: Studio) -> Answer:
    """How a slider is followed, and what is recomputed then."""
    model = studio.session.model
    if studio.session.is_slow:
        words = f"Each position is a new fit of the {model_name(model)} model, in the background; the last one wins."
        return {"follows": "fit", "recomputed": words}
    if model is None:
        return {"follows": "labels", "recomputed": "Each position is a new consensus of all labels."}
    words = f"Each position is a new {model_name(model)} model, solved from stored sums without a pass over the data."
    return {"follows": "sums", "recomputed": words}


def now(studio: Studio) -> Answer:
    """What may have changed since the last look; nothing is waited for."""
    session = studio.session
    return {
        "version": session.version,
        "labels": session.labels.n_labels,
        "answers": sum(len(session.done_by(person)) for person in session.people),
        "is_pending": session.is_slow and session.is_pending,
        "position": vars(studio.position),
    }
