"""A fit and its labels -> columns about every example and every annotator: what tables on disk and pages show."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.arrays import Array, Floats, Positions
from crowdwise.consensus import Consensus
from crowdwise.crowd.easiness import easiness
from crowdwise.fit_record import FitRecord
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.reporting.quality import share_interval


def easy_to_hard(record: FitRecord) -> Positions:
    """Positions of the examples, the easiest first: least disagreement, then the surest consensus.

    Parameters
    ----------
    record : FitRecord
        A fit and its labels.

    Returns
    -------
    order : ndarray of shape (n_examples,)
    """
    consensus = record.results.consensus
    unsure = -consensus.confidence if isinstance(consensus, Consensus) else consensus.std
    return np.lexsort((unsure, record.results.disagreement))


def consensus_columns(record: FitRecord) -> dict[str, Array]:
    """Everything about the examples, a column each.

    Parameters
    ----------
    record : FitRecord
        A fit and its labels.

    Returns
    -------
    columns : dict of ndarray of shape (n_examples,)
        "example", "label", "confidence" ("mean" too for classes with an order) and "p(...)" per class ("std" for
        ratings), "labels", "majority" ("mean" for ratings), "disagreement", "easiness" and "order" (1 is the easiest).
    """
    results, labels = record.results, record.labels
    consensus = results.consensus
    columns: dict[str, Array] = {"example": consensus.examples, "label": consensus.label}
    if isinstance(consensus, Consensus):
        columns["confidence"] = consensus.confidence
        if consensus.mean is not None:
            columns["mean"] = consensus.mean
        columns |= {f"p({name})": p for name, p in zip(consensus.classes.tolist(), consensus.proba.T, strict=True)}
        columns |= {"labels": labels.labels_per_example, "majority": labels.majority()}
    else:
        columns |= {"std": consensus.std, "labels": labels.labels_per_example, "mean": mean_ratings(labels)}
    order = np.empty(len(labels), dtype=np.int64)
    order[easy_to_hard(record)] = np.arange(1, len(labels) + 1)
    weight = easiness(results.disagreement, results.steepness)
    return columns | {"disagreement": results.disagreement, "easiness": weight, "order": order}


def annotator_columns(record: FitRecord, X: Any = None) -> dict[str, Any]:
    """Everything about the annotators, a column each.

    Parameters
    ----------
    record : FitRecord
        A fit and its labels.
    X : array-like of shape (n_examples, n_features), default=None
        The features of the fit, for the agreement with the model.

    Returns
    -------
    columns : dict of ndarray or list of shape (n_annotators,)
        "annotator", "labels", "expertise"; for classes "accuracy" with its 95 % interval "accuracy_low" and
        "accuracy_high", "agrees_with_consensus" and, with X, "agrees_with_model"; for classes with an order "offset"
        and "spread"; "flags" in words.
    """
    found, labels = record.results.annotators, record.labels
    columns: dict[str, Any] = {
        "annotator": found.annotators,
        "labels": found.n_labels,
        "expertise": found.expertise,
    }
    if found.accuracy is not None:
        low, high = share_interval(found.accuracy, found.n_labels)
        columns |= {"accuracy": found.accuracy, "accuracy_low": low, "accuracy_high": high}
        columns["agrees_with_consensus"] = agreement_with(labels, record.codes)
        if X is not None and labels.classes is not None and hasattr(record.model, "predict"):
            columns["agrees_with_model"] = agreement_with(
                labels, encode_declared(record.model.predict(X), labels.classes)
            )
    if found.offset is not None:
        columns |= {"offset": found.offset, "spread": found.spread}
    return columns | {"flags": ["; ".join(found.flags.get(name, ())) for name in found.annotators.tolist()]}


def agreement_with(labels: CrowdLabels, codes: Array) -> Floats:
    """For every annotator the share of their labels that equal the code of the example; NaN without labels."""
    same = labels.sum_per_annotator((labels.values == np.repeat(codes, labels.labels_per_example)).astype(np.float64))
    given = labels.labels_per_annotator
    return np.divide(same, given, out=np.full(len(given), np.nan), where=given > 0)


def mean_ratings(labels: CrowdLabels) -> Floats:
    """The plain mean of every example's ratings; NaN without any."""
    given = labels.labels_per_example
    return np.divide(labels.sum_per_example(labels.values), given, out=np.full(len(given), np.nan), where=given > 0)
