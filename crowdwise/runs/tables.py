"""A fit and its labels -> the tables that people take away: consensus, annotators, and what to label next."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.fit_record import FitRecord
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.relabel import what_to_label_next
from crowdwise.reporting.columns import annotator_columns, consensus_columns
from crowdwise.runs.result_table import ResultTable


def consensus_table(model: Any, labels: CrowdLabels) -> ResultTable:
    """One row per example, in the order of the fit: `consensus_columns` of the report.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, aggregate
    >>> from crowdwise.runs.tables import consensus_table
    >>> labels = CrowdLabels.from_matrix([[1, 0, 0], [0, 0, 0], [1, 1, 1]])
    >>> table = consensus_table(aggregate(labels), labels)
    >>> table.columns["majority"].tolist(), table.columns["order"].tolist()
    ([0, 0, 1], [3, 1, 2])
    """
    return ResultTable("consensus", consensus_columns(FitRecord.of(model, labels)))


def annotators_table(model: Any, labels: CrowdLabels) -> ResultTable:
    """One row per annotator, the best first: `annotator_columns` of the report."""
    columns = annotator_columns(FitRecord.of(model, labels))
    best_first = np.argsort(-columns["expertise"], kind="stable")  # NaN comes last
    return ResultTable("annotators", {name: np.asarray(column)[best_first] for name, column in columns.items()})


def next_table(model: Any, labels: CrowdLabels, n: int = 50) -> ResultTable:
    """What to label again, at most n examples, the one first of which one more answer is expected to say most.

    Columns are "example", "gain" (expected information in bits), "labels" (how many it has), "label" and "reason".
    """
    found = what_to_label_next(model, labels, n=n)
    columns = (found.examples, found.gain, found.n_labels, found.label, found.reason)
    return ResultTable("next", dict(zip(("example", "gain", "labels", "label", "reason"), columns, strict=True)))
