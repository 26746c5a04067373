"""A fit and its labels -> the tables that people take away: consensus, annotators, and what to label next."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.arrays import Array, Bools, Floats, Positions
from crowdwise.consensus import Consensus
from crowdwise.crowd.easiness import easiness
from crowdwise.fit_record import FitRecord
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.relabel import what_to_label_next
from crowdwise.runs.result_table import ResultTable

_SMALLEST = 1e-300  # probabilities below this cannot be compared


def consensus_table(model: Any, labels: CrowdLabels) -> ResultTable:
    """One row per example, in the order of the fit.

    Parameters
    ----------
    model : estimator or Aggregation
        A fitted classifier, or the result of `aggregate`.
    labels : CrowdLabels
        The labels that it was fitted to.

    Returns
    -------
    table : ResultTable
        "example", "label", "confidence", "p(...)" per class, "majority" (none if tied or without labels),
        "disagreement", "easiness", and "order" from easy to hard: 1 is the example on which annotators agree most.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, aggregate
    >>> from crowdwise.runs.tables import consensus_table
    >>> labels = CrowdLabels.from_matrix([[1, 0, 0], [0, 0, 0], [1, 1, 1]])
    >>> table = consensus_table(aggregate(labels), labels)
    >>> table.columns["majority"], table.columns["order"]
    ([0, 0, 1], [3, 1, 2])
    """
    record = FitRecord.of(model, labels)
    found, results = _classes_of(record), record.results
    probabilities = {f"p({name})": column for name, column in zip(found.classes.tolist(), found.proba.T, strict=True)}
    columns: dict[str, Array] = {
        "example": found.examples,
        "label": found.label,
        "confidence": found.confidence,
        **probabilities,
        "majority": majority_or_none(record.labels),
        "disagreement": results.disagreement,
        "easiness": easiness(results.disagreement, results.steepness),
        "order": easy_to_hard(results.disagreement, found.confidence),
    }
    return ResultTable("consensus", {name: column.tolist() for name, column in columns.items()})


def majority_or_none(labels: CrowdLabels) -> Array:
    """The class that most annotators chose; None where two are tied or there are no labels."""
    ranked = np.sort(labels.tally, axis=1)
    clear = ranked[:, -1] > (ranked[:, -2] if ranked.shape[1] > 1 else 0)
    majority = labels.majority().astype(object)
    majority[~clear] = None
    return majority


def easy_to_hard(disagreement: Floats, confidence: Floats) -> Positions:
    """The place of every example, from 1: those with little disagreement first, of these the ones that are surest."""
    order = np.lexsort((-confidence, disagreement))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(1, len(order) + 1)
    return place


def annotators_table(model: Any, labels: CrowdLabels) -> ResultTable:
    """One row per annotator, in the order of the labels.

    Parameters
    ----------
    model : estimator or Aggregation
        A fitted classifier, or the result of `aggregate`.
    labels : CrowdLabels
        The labels that it was fitted to.

    Returns
    -------
    table : ResultTable
        "annotator", "labels" (how many), "expertise", "accuracy" (estimated), "consensus_agreement" and
        "model_agreement" (shares of their labels; the model has not seen the example), and "flags" in words.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, aggregate
    >>> from crowdwise.runs.tables import annotators_table
    >>> labels = CrowdLabels.from_matrix([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 0]], annotators=["ann", "bob", "eve"])
    >>> annotators_table(aggregate(labels), labels).columns["consensus_agreement"]
    [1.0, 1.0, 0.75]
    """
    record = FitRecord.of(model, labels)
    consensus, annotators = _classes_of(record), record.results.annotators
    answers = model_answers(record)
    columns: dict[str, list[Any]] = {
        "annotator": annotators.annotators.tolist(),
        "labels": annotators.n_labels.tolist(),
        "expertise": annotators.expertise.tolist(),
        "accuracy": [] if annotators.accuracy is None else annotators.accuracy.tolist(),
        "consensus_agreement": agreement(record.labels, consensus.label),
        "model_agreement": [None] * len(annotators) if answers is None else agreement(record.labels, answers),
        "flags": ["; ".join(annotators.flags.get(name, ())) for name in annotators.annotators.tolist()],
    }
    return ResultTable("annotators", columns)


def agreement(labels: CrowdLabels, answers: Array) -> list[float]:
    """The share of each annotator's labels that equal an answer per example; NaN without labels."""
    assert labels.classes is not None
    same: Bools = labels.values == np.repeat(encode_declared(answers, labels.classes), labels.labels_per_example)
    n_labels = labels.labels_per_annotator
    shares = np.full(len(n_labels), np.nan)
    np.divide(labels.sum_per_annotator(same.astype(np.float64)), n_labels, out=shares, where=n_labels > 0)
    return shares.tolist()


def model_answers(record: FitRecord) -> Array | None:
    """What the model alone says of every example without having seen it; None if there is no model.

    The consensus is that of the labels, changed by the model: what the one has beyond the other is the model's part.
    """
    results = record.results
    if results.consensus is results.label_consensus:
        return None
    consensus, by_labels = _classes_of(record), results.label_consensus
    assert isinstance(by_labels, Consensus)
    part = np.log(np.maximum(consensus.proba, _SMALLEST)) - np.log(np.maximum(by_labels.proba, _SMALLEST))
    if record.annotators is not None:  # the frequency of classes stands in for the model where labels are alone
        part += np.log(np.maximum(record.annotators.class_prior, _SMALLEST))
    unlabelled = record.labels.labels_per_example == 0
    part[unlabelled] = consensus.proba[unlabelled]
    return consensus.classes[part.argmax(axis=1)]


def next_table(model: Any, labels: CrowdLabels, n: int = 50) -> ResultTable:
    """What to label again, the example first of which one more answer is expected to say most.

    Parameters
    ----------
    model : estimator or Aggregation
        A fitted classifier, or the result of `aggregate`.
    labels : CrowdLabels
        The labels that it was fitted to.
    n : int, default=50
        How many rows at most.

    Returns
    -------
    table : ResultTable
        "example", "gain" (expected information in bits), "labels" (how many it has), "label" and "reason".
    """
    found = what_to_label_next(model, labels, n=n)
    columns = {"example": found.examples, "gain": found.gain, "labels": found.n_labels, "label": found.label}
    return ResultTable(
        "next", {**{name: column.tolist() for name, column in columns.items()}, "reason": found.reason.tolist()}
    )


def _classes_of(record: FitRecord) -> Consensus:
    consensus = record.results.consensus
    assert isinstance(consensus, Consensus), "classes are expected here"
    return consensus
