"""A fit and its labels -> the parts of a summary that pictures are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise.crowd.easy_weights import easiness
from crowdwise.diagnosis import margins, rank_correlation
from crowdwise.reporting.columns import mean_ratings
from crowdwise.reporting.examples import named, plain
from crowdwise.reporting.quality import accuracy_of, known_accuracy, majority_shares
from crowdwise.reporting.record import FitRecord
from crowdwise.results.consensus import RatingConsensus

# Below this probability a consensus is called unsure.
UNSURE = 0.8
_N_BINS = 20
_MOST_POINTS = 600
_MOST_CLASSES = 20


def quality_part(record: FitRecord, truth: Array | None = None) -> dict[str, Any]:
    """How good the consensus is likely to be, and where truth is known, is.

    Truth is positions of the right classes, -1 where unknown, or ratings, NaN where unknown.
    """
    consensus = record.results.consensus
    if truth is not None:  # an answer that the fit was given judges nothing
        truth = np.where(record.has_truth, np.nan if isinstance(consensus, RatingConsensus) else -1, truth)
    if isinstance(consensus, RatingConsensus):
        known = None if truth is None else _rating_errors(record, truth)
        return {"typical_error": float(np.sqrt((consensus.std**2).mean())), "known": known}
    votes = majority_shares(record.labels)
    return {
        "by_class": _by_class(record, votes),
        "more_than_given": _more_than_given(record),
        "tied": int(((votes > 0) & (votes < 1)).any(axis=1).sum()),
        "unsure": int((consensus.confidence < UNSURE).sum()),
        "unsure_below": UNSURE,
        "known": None if truth is None else _known(record, truth),
    }


def classifier_part(record: FitRecord, answers: Array | None) -> dict[str, Any] | None:
    """How good the classifier alone is, out of fold: against the consensus, and against known answers.

    Answers are positions of classes, -1 where unknown. None without a classifier.
    """
    proba = record.results.model_proba
    if proba is None:
        return None
    predicted, labelled = proba.argmax(axis=1), record.labels.labels_per_example > 0
    known = np.zeros(len(labelled), dtype=bool) if answers is None else (answers >= 0) & labelled
    right = (predicted == answers)[known].astype(np.float64) if answers is not None else np.empty(0)
    return {
        "consensus": accuracy_of((predicted == record.codes)[labelled & ~record.has_truth].astype(np.float64)).plain(),
        "truth": accuracy_of(right).plain(),
        "n_truths": int(known.sum()),
        "out_of_fold": getattr(record.model, "cross_fit", None) != 0,
    }


def _known(record: FitRecord, truth: Array) -> dict[str, Any]:
    """How often the consensus is right where truth is known, and whether these examples may be a random draw."""
    found = known_accuracy(record, truth)
    return found.plain() | {"at_random": found.n == 0 or record.is_representative(truth)}


def _by_class(record: FitRecord, votes: Floats) -> list[dict[str, Any]] | None:
    """How many labelled examples the majority vote and the consensus give to each class; None for very many."""
    if record.classes is None or len(record.classes) > _MOST_CLASSES:
        return None
    chosen = record.codes[record.labels.labels_per_example > 0]
    consensus = np.bincount(chosen, minlength=len(record.classes)).tolist()
    majority = (votes == 1).sum(axis=0).tolist()
    return [
        {"name": named(name), "majority": one, "consensus": other}
        for name, one, other in zip(record.classes, majority, consensus, strict=True)
    ]


def _more_than_given(record: FitRecord) -> list[dict[str, Any]]:
    """Classes that are the consensus on more labelled examples than anybody gave them to."""
    assert record.classes is not None
    chosen = record.codes[record.labels.labels_per_example > 0]
    consensus = np.bincount(chosen, minlength=len(record.classes))
    given = (record.labels.tally > 0).sum(axis=0)
    return [
        {"name": named(record.classes[k]), "given": int(given[k]), "consensus": int(consensus[k])}
        for k in np.flatnonzero(consensus > given)
    ]


def _rating_errors(record: FitRecord, truth: Floats) -> dict[str, Any]:
    """Root mean squared errors of the consensus and of the plain mean where truth and ratings are there."""
    at = ~np.isnan(truth) & (record.labels.labels_per_example > 0)
    answers = {"consensus": record.results.consensus.label, "mean": mean_ratings(record.labels)}
    errors = {
        name: np.sqrt(((given - truth)[at] ** 2).mean()) if at.any() else np.nan for name, given in answers.items()
    }
    return {"n": int(at.sum())} | {name: plain(error) for name, error in errors.items()}


def disagreement_part(record: FitRecord) -> dict[str, Any]:
    """How many examples have how much disagreement, and what they weigh."""
    differs, steepness = record.results.disagreement, record.results.steepness
    paired = record.labels.labels_per_example > 1
    largest = max(1.0, float(differs.max(initial=0.0)))
    edges = np.linspace(0, largest, _N_BINS + 1)
    counts, _ = np.histogram(differs[paired], edges)
    at = np.linspace(0, largest, 41)
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "unanimous": int((differs[paired] == 0).sum()),
        "paired": int(paired.sum()),
        "steepness": float(steepness),
        "curve": np.column_stack([at, easiness(at, steepness)]).round(4).tolist(),
    }


def margin_part(record: FitRecord, X: Any) -> dict[str, Any] | None:
    """Disagreement and distance from the model's boundary; None for ratings and where either does not vary."""
    scores = None if record.classes is None else _class_scores(record.model, X)
    paired = np.flatnonzero(record.labels.labels_per_example > 1)
    if scores is None or len(paired) < 4:
        return None
    distance, _ = margins(scores[paired], np.zeros(len(paired), dtype=np.intp))
    differs = record.results.disagreement[paired]
    correlation = rank_correlation(differs, distance)
    if np.isnan(correlation.value):
        return None
    far = float(np.quantile(distance, 0.99)) or 1.0
    some = np.linspace(0, len(paired) - 1, min(_MOST_POINTS, len(paired))).round().astype(np.intp)
    points = np.column_stack([differs[some], np.minimum(distance[some] / far, 1.0)])
    part = {"value": correlation.value, "low": correlation.low, "high": correlation.high}
    return {"correlation": part, "points": points.round(3).tolist(), "levels": _levels(differs, distance / far)}


def _levels(differs: Floats, distance: Floats) -> list[dict[str, float]]:
    """Quartiles of the distance of unanimous examples, and at up to four levels of disagreement as frequent each."""
    some = differs[differs > 0]
    edges = np.unique(np.quantile(some, [0.25, 0.5, 0.75]))
    level = np.where(differs > 0, 1 + np.searchsorted(edges, differs), 0)
    found = []
    for k in np.unique(level):
        at = level == k
        low, middle, high = np.minimum(np.quantile(distance[at], [0.25, 0.5, 0.75]), 1.0).tolist()
        found.append({"disagreement": float(differs[at].mean()), "low": low, "median": middle, "high": high})
    return found


def _class_scores(model: Any, X: Any) -> Floats | None:
    """A score per class; None if the model has none."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
