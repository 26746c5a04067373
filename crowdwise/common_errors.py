"""Labels and what was found from them -> how alike annotators err, and how many independent votes they amount to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise.arrays import Array, Bools, Floats, FrozenArrays, Positions, ratio
from crowdwise.consensus import RatingConsensus
from crowdwise.counts import count
from crowdwise.crowd.pairs import Pairs, enough_pairs, one_hot, residual_pairs
from crowdwise.crowd.votes import COMMON_ERRORS, common_source, effective_number, n_votes, vote_parts
from crowdwise.exceptions import LabelError
from crowdwise.fit_record import FitRecord
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.frames import make_frame
from crowdwise.truths.known import is_known, known_answers

# Examples of the usual correlation that are added to those of known truth.
_ADDED = 20.0


@dataclass(frozen=True, repr=False, eq=False)
class ErrorsInCommon(FrozenArrays):
    """How alike annotators err.

    Parameters
    ----------
    annotators : ndarray of shape (n_annotators,)
        Their names.
    pairs : Pairs
        Every two who share examples, with the correlation of their residuals: what each said less what was to be
        expected of them given the consensus, or the truth where it is given. It is drawn towards zero where they share
        few examples. After a consensus that all have made together, it cannot show what all of them get wrong.
    group : ndarray of shape (n_annotators,)
        Annotators of the same number have one vote together.
    common : float
        Correlation of the errors of two votes: measured if truth is given. Else what is usual in public crowds, where
        labels show that annotators do not err independently, and less where they would show it and do not.
    n_votes : float
        Votes of an average example: one per group, those of annotators who guess counting less.
    effective_number : float
        The mean over examples of n / (1 + (n - 1) common): as many independent votes would say as much.
    n_truths : int
        Examples of known truth that the correlations are from; 0 if they are from the consensus.
    frame_library : {"pandas", "polars"} or None, default=None
        What makes frames.
    """

    annotators: Array
    pairs: Pairs
    group: Positions
    common: float
    n_votes: float
    effective_number: float
    n_truths: int
    frame_library: str | None = None

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """Names of the annotators who have one vote together, group by group; those who are alone are left out."""
        members = [np.flatnonzero(self.group == number) for number in np.flatnonzero(np.bincount(self.group) > 1)]
        return [tuple(self.annotators[some].tolist()) for some in members]

    @property
    def correlation(self) -> Floats:
        """Of each pair, in the order of `pairs`."""
        return self.pairs.correlation

    @property
    def effective_number_by_group(self) -> dict[tuple[Any, ...], float]:
        """How many independent votes the members of a group would have, by names: near 1 for copies."""
        numbers = {}
        for names, number in zip(self.groups, np.flatnonzero(np.bincount(self.group) > 1), strict=True):
            inside = (self.group[self.pairs.first] == number) & (self.group[self.pairs.second] == number)
            alike = np.maximum(self.pairs.correlation[inside], 0.0)
            together = 1.0 if not len(alike) else self.common + (1 - self.common) * float(alike.mean())
            numbers[names] = float(effective_number(np.array(float(len(names))), together))
        return numbers

    def __repr__(self) -> str:
        source = (
            "as usual in public crowds" if common_source(self.common) == "usual" else "as labels show few in common"
        )
        if self.n_truths:
            truths, measured = count(self.n_truths, "known truth"), self.common != COMMON_ERRORS
            source = f"measured on {truths}" if measured else f"as usual, with no errors to compare in {truths}"
        groups = f"; {count(len(self.groups), 'group shares', 'groups share')} a vote" if self.groups else ""
        return (
            f"ErrorsInCommon: {count(len(self.annotators), 'annotator')}, {self.n_votes:.1f} votes per example, which "
            f"say as much as {self.effective_number:.1f} independent ones\n"
            f"  correlation of errors {self.common:.2f}, {source}{groups}"
        )

    def to_frame(self) -> Any:
        """The pairs, those who err most alike first.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            With the columns "annotator", "other", "shared", "agreement", "correlation" and "one vote".
        """
        pairs = self.pairs
        order = np.argsort(-pairs.correlation, kind="stable")
        first, second = pairs.first[order], pairs.second[order]
        columns = {
            "annotator": self.annotators[first],
            "other": self.annotators[second],
            "shared": pairs.shared[order].astype(np.int64),
            "agreement": pairs.agreement[order],
            "correlation": pairs.correlation[order],
            "one vote": self.group[first] == self.group[second],
        }
        return make_frame(columns, self.frame_library)


def errors_in_common(labels: Any, result: Any, truth: Any = None) -> ErrorsInCommon:
    """How alike annotators err, and how many independent votes their labels amount to.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels of the fit.
    result : Aggregation or fitted model
        What was found from them.
    truth : array-like of shape (n_examples,), series or mapping, default=None
        Known answers, missing where they are not known: correlations are then measured against these alone. By default
        those that the fit learnt from, unless they are of chosen examples. Without any, errors that all annotators have
        in common cannot be seen; a usual amount of these is assumed, unless labels show that annotators err
        independently.

    Returns
    -------
    errors : ErrorsInCommon

    Examples
    --------
    >>> from crowdwise import aggregate, errors_in_common, simulate_annotators
    >>> from sklearn.datasets import make_blobs
    >>> X, truth = make_blobs(300, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, 5, clarity=3.0, random_state=0)
    >>> errors_in_common(labels, aggregate(labels), truth).n_truths
    300
    """
    record = FitRecord.of(result, labels)
    crowd, group = record.labels, record.results.annotators.group
    group = np.arange(crowd.n_annotators) if group is None else group
    answers = record.told_answers if truth is None else _given(truth, crowd)
    if truth is None and not (_comparable(crowd, answers).any() and record.drawn_at_random(answers)):
        pairs, common, n_truths = _after_consensus(record), _shown(record), 0
    else:
        pairs, common, n_truths = _against_truth(crowd, answers, group)
    votes = _votes(record, group)
    return ErrorsInCommon(
        crowd.annotators,
        pairs,
        group,
        common,
        float(votes.mean()),
        float(effective_number(votes, common).mean()),
        n_truths,
        crowd.frame_library,
    )


def votes_by_truth(record: FitRecord, answers: Array) -> float:
    """The effective number of votes by the errors on known examples; NaN if none of these has two labels.

    Answers are as `known_answers` gives them.
    """
    crowd, group = record.labels, record.results.annotators.group
    group = np.arange(crowd.n_annotators) if group is None else group
    if not _comparable(crowd, answers).any():
        return float("nan")
    common = _mean_correlation(*_errors(crowd, answers), group)
    return float(effective_number(_votes(record, group), common).mean())


def _votes(record: FitRecord, group: Positions) -> Floats:
    """How many votes each labelled example has."""
    labelled = record.labels[record.labels.labels_per_example > 0]
    strength = np.ones(labelled.n_annotators) if record.annotators is None else record.annotators.strength
    return n_votes(labelled, strength, vote_parts(labelled, group))


def _given(truth: Any, labels: CrowdLabels) -> Array:
    """What was given as truth, as `known_answers` has it, also if nothing is known at all."""
    answers = known_answers(truth, labels.examples, labels)
    return np.full(len(labels), -1) if answers is None else answers


def _comparable(labels: CrowdLabels, answers: Array) -> Bools:
    """The examples of known answer with two labels or more."""
    return is_known(answers) & (labels.labels_per_example > 1)


def _shown(record: FitRecord) -> float:
    """The correlation of errors that the fit allowed for, or else what labels show; what is usual for ridge."""
    annotators = record.annotators
    if annotators is None:
        return COMMON_ERRORS
    return annotators.together.common or annotators.estimated_common(record.labels)


def _after_consensus(record: FitRecord) -> Pairs:
    """Pairs by their residuals after the consensus of the fit; of some examples if there are very many pairs."""
    rows = enough_pairs(record.labels)
    labels = record.labels if rows is None else record.labels[rows]
    if record.annotators is not None:
        return residual_pairs(labels, record.annotators.residuals(labels))
    consensus = record.results.consensus
    if isinstance(consensus, RatingConsensus):
        expected = consensus.label if rows is None else consensus.label[rows]
        return residual_pairs(labels, (labels.values - expected[labels.example_index])[:, np.newaxis])
    proba = consensus.proba if rows is None else consensus.proba[rows]
    return residual_pairs(labels, one_hot(labels) - proba[labels.example_index])


def _against_truth(labels: CrowdLabels, answers: Array, group: Positions) -> tuple[Pairs, float, int]:
    """Pairs by their errors against known truth, the mean correlation of two votes, and how many truths there are."""
    if not _comparable(labels, answers).any():
        n_known = int((is_known(answers) & (labels.labels_per_example > 0)).sum())
        raise LabelError(
            f"truth is known for {n_known} examples with labels, none of them with two: nothing can be compared."
        )
    known, residual = _errors(labels, answers)
    return residual_pairs(known, residual[:, np.newaxis]), _mean_correlation(known, residual, group), len(known)


def _errors(labels: CrowdLabels, answers: Array) -> tuple[CrowdLabels, Floats]:
    """Labels of the examples of known answer, and the error of each less the mean error of its annotator."""
    known = np.flatnonzero(is_known(answers) & (labels.labels_per_example > 0))
    labels, truth = labels[known], answers[known]
    truth, n_labels = truth[labels.example_index], np.maximum(labels.labels_per_annotator, 1)
    error = labels.values - truth if labels.classes is None else (labels.values != truth).astype(np.float64)
    return labels, error - (labels.sum_per_annotator(error) / n_labels)[labels.annotator_index]


def _mean_correlation(labels: CrowdLabels, residual: Floats, group: Positions) -> float:
    """The mean over pairs of votes of the product of standardised errors, drawn towards what is usual."""
    n_labels = np.maximum(labels.labels_per_annotator, 1)
    spread = np.sqrt(labels.sum_per_annotator(residual**2) / n_labels)[labels.annotator_index]
    part = vote_parts(labels, group)
    part = np.where(spread > 0, 1.0 if part is None else part, 0.0)  # who is always right has no errors to compare
    score = ratio(residual, spread, 0.0)
    total, squares = labels.sum_per_example(part * score), labels.sum_per_example(part * score**2)
    votes = labels.sum_per_example(part)
    n_pairs = votes * (votes - 1)
    if n_pairs.sum() <= 0:
        return COMMON_ERRORS
    measured = float((total**2 - squares).sum() / n_pairs.sum())
    n_examples = float((n_pairs > 0).sum())
    return float(np.clip((n_examples * measured + _ADDED * COMMON_ERRORS) / (n_examples + _ADDED), 0.0, 1.0))
