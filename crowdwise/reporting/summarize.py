"""A fit and its labels -> one plain dict, from which every report is made."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._text import versions
from crowdwise.exceptions import DataError
from crowdwise.labels.align import match_examples
from crowdwise.labels.encode import as_column, missing_mask
from crowdwise.labels.truth import codes_of_truth
from crowdwise.reporting.annotators import annotators, pairs
from crowdwise.reporting.examples import Examples, changed, contested, named, ordered, plain, upcoming
from crowdwise.reporting.parts import classifier_part, disagreement_part, margin_part, quality_part
from crowdwise.reporting.quality import alpha_interval, known_accuracy
from crowdwise.reporting.record import FitRecord
from crowdwise.reporting.words import headline, numbers
from crowdwise.results._error_correlation import votes_by_truth
from crowdwise.results.consensus import Consensus
from crowdwise.results.suggest import information_gain

VERSION = 1
_N_NEXT = 50
_ENOUGH_TRUTHS = 20  # from here on, known answers measure how correlated errors are


def summarize(
    result: Any, labels: Any, *, X: Any = None, texts: Any = None, truth: Any = None, command: str | None = None
) -> dict[str, Any]:
    """All that a report says, as a dict that JSON can hold.

    Parameters
    ----------
    result : estimator or FitResults
        A fitted model, or the result of `aggregate`.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels that it was fitted to.
    X : array-like or sparse matrix of shape (n_examples, n_features), default=None
        The features that it was fitted to, for margins.
    texts : sequence of str, series or mapping, default=None
        Texts to show: a mapping or a series by the ids of the examples, else one per example in the order of the fit.
    truth : array-like, series or mapping, default=None
        Right answers, as far as they are known, in the same way.
    command : str, default=None
        What to type to do this again.

    Returns
    -------
    summary : dict
        With a "version", which changes when a key is renamed or gets another meaning.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.reporting import summarize
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> summary = summarize(aggregate(labels), labels)
    >>> summary["version"], summary["size"]["labels"]
    (1, 12)
    """
    record = FitRecord.of(result, labels)
    if X is not None and np.ndim(X) != 2:
        raise DataError(f"X must be the features of the fit, a row per example; got {type(X).__name__}.")
    if X is not None and np.shape(X)[0] != len(record.labels):
        raise DataError(f"X has {np.shape(X)[0]} rows and the fit {len(record.labels)}. Give the features of the fit.")
    known = None if truth is None else codes_or_ratings(record, truth)
    examples = Examples(record, _texts(record, texts), None if known is None else _shown_truth(record, known))
    consensus = record.results.consensus
    ordered_classes = isinstance(consensus, Consensus) and consensus.levels is not None
    summary: dict[str, Any] = {
        "version": VERSION,
        "kind": record.labels.kind,
        "size": _size(record),
        "classes": None if record.classes is None else [named(name) for name in record.classes],
        "model": _model(record),
        "choices": [{name: plain(value) for name, value in vars(choice).items()} for choice in record.results.choices],
        "ordered": ordered_classes,
        "alpha": alpha_interval(record.labels, ordered=ordered_classes).plain(),
        "votes": _votes(record, known),
        "quality": quality_part(record, known),
        "classifier": None if record.classes is None else classifier_part(record, _answers(record, known)),
        "comparable": record.annotators is None or record.annotators.comparable,
        "truth_check": _truth_check(record),
        "changed": changed(examples),
        "annotators": annotators(record),
        "pairs": pairs(record.labels, ordered=ordered_classes),
        "disagreement": disagreement_part(record),
        "margin": None if X is None else margin_part(record, X),
        "contested": contested(examples),
        "next": upcoming(examples, information_gain(record.results), _N_NEXT),
        "order": ordered(examples),
        "has_texts": texts is not None,
        "command": command,
        "versions": _versions(),
    }
    return summary | {"headline": headline(summary), "numbers": numbers(summary)}


def _size(record: FitRecord) -> dict[str, Any]:
    labels = record.labels
    per_example = labels.labels_per_example
    size: dict[str, Any] = {"examples": len(labels), "annotators": labels.n_annotators, "labels": labels.n_labels}
    size["labels_per_example"] = {
        "min": int(per_example.min()), "mean": float(per_example.mean()), "max": int(per_example.max())
    }  # fmt: skip
    return size | {"unlabelled": int((per_example == 0).sum()), "single": int((per_example == 1).sum())}


def _votes(record: FitRecord, known: Array | None) -> dict[str, Any]:
    """How many independent votes there are, how that is known, and how many annotators share one, and why."""
    found, fitted = record.results, record.annotators
    shared = 0 if found.vote_weight is None else int((found.vote_weight < 1).sum())
    why = "groups were given" if fitted is not None and fitted.sharing.given else "their labels are near copies"
    by = "labels" if fitted is not None and fitted.discount.measured else "assumed"
    votes = {"effective": plain(found.effective_votes), "shared": shared, "why": why, "by": by}
    if record.classes is None:
        return votes | {"truths": 0}
    codes = _answers(record, known)
    n_truths = int(((codes >= 0) & (record.labels.labels_per_example > 1)).sum())
    if n_truths < _ENOUGH_TRUTHS or not record.is_representative(codes):
        return votes | {"truths": 0}
    return votes | {
        "effective": votes_by_truth(record.results, record.labels, codes),
        "by": "truths",
        "truths": n_truths,
    }


def _answers(record: FitRecord, known: Array | None) -> Array:
    """All answers that are known: those of the fit, and those that judge it."""
    return record.truth if known is None else np.where(record.has_truth, record.truth, known)


def _truth_check(record: FitRecord) -> dict[str, Any] | None:
    """How good the consensus is by the known answers of the fit, and the majority vote; how many may follow."""
    check = record.results.truth_check
    if check is None:
        return None
    unknown = int(((record.labels.labels_per_example > 0) & ~record.has_truth).sum())
    majority = None if record.classes is None else plain(known_accuracy(record, record.truth).majority.value)
    return check.plain() | {"unknown": unknown, "majority": majority}


def _model(record: FitRecord) -> dict[str, Any]:
    model, results = record.model, record.results
    is_estimator = isinstance(model, BaseEstimator)
    settings = model.get_params(deep=False) if is_estimator else {}
    return {
        "name": type(model).__name__ if is_estimator else "aggregate",
        "uses_features": is_estimator,
        "settings": {name: named(repr(value)) for name, value in settings.items()},
        "steepness": float(results.steepness),
        "rounds": len(results.objective),
        "converged": bool(results.converged),
    }


def _texts(record: FitRecord, texts: Any) -> Array | None:
    if texts is None:
        return None
    values = as_column(match_examples(texts, record.labels.examples, record.labels, "texts", partial=True), "texts")
    if len(values) != len(record.labels):
        raise DataError(f"texts must be one per example, {len(record.labels)}; got {len(values)}.")
    objects = values.astype(object)
    objects[missing_mask(objects)] = None
    return objects


def codes_or_ratings(record: FitRecord, truth: Any) -> Array:
    """Positions of the right classes, -1 where unknown; for ratings the ratings, NaN where unknown."""
    labels = record.labels
    if labels.classes is not None:
        return codes_of_truth(truth, labels.examples, labels)
    values = as_column(match_examples(truth, labels.examples, labels, "truth", partial=True), "truth")
    if len(values) != len(labels):
        raise DataError(f"truth must be one per example, {len(labels)}; got {len(values)}.")
    try:
        return np.where(missing_mask(values), np.nan, values).astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("truth must be ratings, which are numbers, or missing.") from None


def _shown_truth(record: FitRecord, truth: Positions | Floats) -> Array:
    """The truth as rows show it; None where it is unknown."""
    if record.classes is None:
        return np.array([plain(value) for value in truth], dtype=object)
    names = np.array([*(named(name) for name in record.classes), None], dtype=object)
    return names[truth]


def _versions() -> dict[str, str]:
    """The packages as people write them."""
    names = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy"}
    return {names.get(name, name): version for name, version in versions().items() if name != "platform"}
