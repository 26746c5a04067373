"""A fit and its labels -> columns about every example and every annotator: what tables on disk and pages show."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats, Positions, ratio
from crowdwise.crowd.easy_weights import easiness
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting.quality import share_interval
from crowdwise.reporting.record import FitRecord
from crowdwise.results.consensus import Consensus


def easy_to_hard(record: FitRecord) -> Positions:
    """Positions of the examples, the easiest first: least disagreement, then the surest consensus."""
    consensus = record.results.consensus
    unsure = -consensus.confidence if isinstance(consensus, Consensus) else consensus.std
    return np.lexsort((unsure, record.results.disagreement))


def consensus_columns(record: FitRecord) -> dict[str, Array]:
    """Everything about the examples, a column each.

    "example", "label", "confidence" ("mean" too for classes with an order) and "p(...)" per class ("std" for ratings),
    "labels", "majority" ("mean" for ratings), "disagreement", "easiness" and "order" (1 is the easiest).
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


def annotator_columns(record: FitRecord) -> dict[str, Any]:
    """Everything about the annotators, a column each.

    "annotator", "labels", "expertise"; for classes "accuracy" with its 95% interval "accuracy_low" and
    "accuracy_high", "agrees_with_consensus" and, of a model of features, "agrees_with_model" (out of fold, see
    `unseen_predictions`); where the fit was given truths, how many of these they labelled ("truths") and were right
    about ("truth_accuracy" with its interval); for classes with an order "offset" and "spread"; "flags" in words.
    """
    found, labels = record.results, record.labels
    columns: dict[str, Any] = {
        "annotator": found.annotators,
        "labels": found.n_labels,
        "expertise": found.expertise,
    }
    if found.accuracy is not None:
        low, high = share_interval(found.accuracy, found.n_labels)
        columns |= {"accuracy": found.accuracy, "accuracy_low": low, "accuracy_high": high}
        columns["agrees_with_consensus"] = agreement_with(labels, record.codes)
        if hasattr(record.model, "predict"):
            columns["agrees_with_model"] = agreement_with(labels, unseen_predictions(record))
    if found.truth_accuracy is not None:
        low, high = share_interval(found.truth_accuracy, found.n_truths)
        columns |= {"truths": found.n_truths, "truth_accuracy": found.truth_accuracy}
        columns |= {"truth_accuracy_low": low, "truth_accuracy_high": high}
    if found.offset is not None:
        columns |= {"offset": found.offset, "spread": found.spread}
    return columns | {"flags": found.flags_in_words()}


def unseen_predictions(record: FitRecord) -> Positions:
    """Positions of the classes that the model alone predicts, each example by a model that has not seen it."""
    proba = record.results.model_proba
    return np.full(len(record.labels), -1) if proba is None else proba.argmax(axis=1)


def agreement_with(labels: CrowdLabels, codes: Array) -> Floats:
    """For every annotator the share of their labels that equal the code of the example; NaN if no code is known.

    Codes of -1 are unknown, and labels of such examples do not count.
    """
    of_label = np.repeat(codes, labels.labels_per_example)
    same = labels.sum_per_annotator((labels.values == of_label).astype(np.float64))
    known = labels.sum_per_annotator((of_label >= 0).astype(np.float64))
    return ratio(same, known)


def mean_ratings(labels: CrowdLabels) -> Floats:
    """The plain mean of every example's ratings; NaN without any."""
    return ratio(labels.sum_per_example(labels.values), labels.labels_per_example)
