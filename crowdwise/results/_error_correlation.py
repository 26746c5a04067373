"""A fit and its labels -> how correlated the errors of annotators are, and how many independent votes they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, FrozenArrays, Positions, ratio
from crowdwise._limits import UNCORRELATED_EXAMPLES
from crowdwise._text import count
from crowdwise.crowd.vote_sharing import VoteSharing, enough_pairs, label_pairs
from crowdwise.exceptions import LabelError
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import is_known
from crowdwise.labels.truth import known_answers
from crowdwise.results.fit_results import FitResults, fit_and_labels, is_representative


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every two annotators who share an example, the first one before the second."""

    first: Positions  # (n_pairs,): positions of the annotators
    second: Positions
    shared: Floats  # (n_pairs,): examples that both labelled
    agreement: Floats  # (n_pairs,): share of these with the same label
    # (n_pairs,): of their deviations, drawn towards zero where they share few examples or deviate little.
    correlation: Floats

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, repr=False, eq=False)
class ErrorCorrelation(FrozenArrays):
    """How correlated the errors of annotators are.

    Parameters
    ----------
    annotators : ndarray of shape (n_annotators,)
        Their names.
    pairs : Pairs
        Every two who share examples, with the correlation of their residuals: each label less what was expected of this
        annotator given the consensus, or the truth where it is given. It is shrunk towards zero where they share few
        examples. After a consensus of all annotators, it cannot show what all of them get wrong.
    correlation : float
        Mean correlation of the errors of two votes on the examples of known truth; NaN without any.
    n_votes : float
        Votes of an average example: near copies share one.
    effective_votes : float
        As many independent votes would carry as much information: n / (1 + (n - 1) correlation) if that is measured,
        else what the fit assumes.
    n_truths : int
        Examples of known truth that the correlation is measured on; 0 if there are none.
    frame_library : {"pandas", "polars"} or None, default=None
        What makes frames.
    """

    annotators: Array
    pairs: Pairs
    correlation: float
    n_votes: float
    effective_votes: float
    n_truths: int
    frame_library: str | None = None

    def __repr__(self) -> str:
        how = "assumed: without known answers it cannot be measured"
        if self.n_truths:
            how = f"correlation of errors {self.correlation:.2f}, measured on {count(self.n_truths, 'known answer')}"
        return (
            f"ErrorCorrelation: {count(len(self.annotators), 'annotator')}, {self.n_votes:.1f} votes per example carry "
            f"as much information as {self.effective_votes:.1f} independent ones\n  {how}"
        )

    def to_frame(self) -> Any:
        """The pairs, those with the most correlated errors first.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            With the columns "annotator", "other", "shared", "agreement" and "correlation".
        """
        pairs = self.pairs
        order = np.argsort(-pairs.correlation, kind="stable")
        columns = {
            "annotator": self.annotators[pairs.first[order]],
            "other": self.annotators[pairs.second[order]],
            "shared": pairs.shared[order].astype(np.int64),
            "agreement": pairs.agreement[order],
            "correlation": pairs.correlation[order],
        }
        return make_frame(columns, self.frame_library)


def error_correlation(model: Any, labels: Any, truth: Any = None) -> ErrorCorrelation:
    """How correlated the errors of annotators are, and how many independent votes their labels carry.

    Parameters
    ----------
    model : estimator or FitResults
        A fitted model, or the result of `aggregate`.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels of the fit.
    truth : array-like of shape (n_examples,), series or mapping, default=None
        Known answers, missing where they are not known: correlations are then measured against these alone. By default
        those that the fit was given, unless they are of chosen examples. Without any, errors that all annotators have
        in common cannot be seen.

    Returns
    -------
    errors : ErrorCorrelation

    Examples
    --------
    >>> from crowdwise import aggregate, error_correlation, simulate_annotators
    >>> from sklearn.datasets import make_blobs
    >>> X, truth = make_blobs(300, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, 5, clarity=3.0, random_state=0)
    >>> error_correlation(aggregate(labels), labels, truth).n_truths
    300
    """
    results, crowd = fit_and_labels(model, labels)
    answers = results.truth if truth is None else known_answers(truth, crowd.examples, crowd)
    answers = np.full(len(crowd), -1) if answers is None else answers
    pairs, correlation, n_truths = _after_consensus(results, crowd), float("nan"), 0
    votes, effective = _votes(results, crowd), results.effective_votes
    labelled = crowd.labels_per_example > 0
    if truth is not None or (_comparable(crowd, answers).any() and is_representative(results, labelled, answers)):
        pairs, correlation, n_truths = _against_truth(crowd, answers)
        effective = float(effective_number(votes, correlation).mean())
    return ErrorCorrelation(
        crowd.annotators, pairs, correlation, float(votes.mean()), effective, n_truths, crowd.frame_library
    )


def effective_number(n_votes: Floats, correlation: float) -> Floats:
    """The number of independent votes that carry as much information as some with correlated errors."""
    return n_votes / (1 + np.maximum(n_votes - 1, 0.0) * correlation)


def votes_by_truth(results: FitResults, labels: CrowdLabels, answers: Array) -> float:
    """The effective number of votes by the errors on known examples, some of which have two labels.

    Answers are as `known_answers` gives them.
    """
    return float(effective_number(_votes(results, labels), _mean_correlation(*_errors(labels, answers))).mean())


def _votes(results: FitResults, labels: CrowdLabels) -> Floats:
    """How many votes each labelled example has."""
    labelled = labels[labels.labels_per_example > 0]
    sharing = VoteSharing.none() if results.fitted is None else results.fitted.sharing
    return labelled._sum_per_example(sharing.label_weights(labelled))


def _comparable(labels: CrowdLabels, answers: Array) -> Bools:
    """The examples of known answer with two labels or more."""
    return is_known(answers) & (labels.labels_per_example > 1)


def _after_consensus(results: FitResults, labels: CrowdLabels) -> Pairs:
    """Pairs by their residuals after the consensus of the fit; of some examples if there are very many pairs."""
    rows = enough_pairs(labels)
    rows = np.arange(len(labels)) if rows is None else rows
    labels = labels[rows]
    if results.classes is None:
        return residual_pairs(labels, (labels.values - results.label[rows][labels.example_index])[:, np.newaxis])
    confusion = results.confusion[labels.annotator_index]
    expected = np.einsum("ik,ikc->ic", results.proba[rows][labels.example_index], confusion)
    return residual_pairs(labels, np.eye(expected.shape[1])[labels.values] - expected)


def _against_truth(labels: CrowdLabels, answers: Array) -> tuple[Pairs, float, int]:
    """Pairs by their errors against known truth, the mean correlation of two votes, and how many truths there are."""
    if not _comparable(labels, answers).any():
        n_known = int((is_known(answers) & (labels.labels_per_example > 0)).sum())
        raise LabelError(
            f"truth is known for {n_known} examples with labels, none of them with two: nothing can be compared."
        )
    known, residual = _errors(labels, answers)
    return residual_pairs(known, residual[:, np.newaxis]), _mean_correlation(known, residual), len(known)


def _errors(labels: CrowdLabels, answers: Array) -> tuple[CrowdLabels, Floats]:
    """Labels of the examples of known answer, and the error of each less the mean error of its annotator."""
    known = np.flatnonzero(is_known(answers) & (labels.labels_per_example > 0))
    labels, truth = labels[known], answers[known]
    truth, n_labels = truth[labels.example_index], np.maximum(labels.labels_per_annotator, 1)
    error = labels.values - truth if labels.classes is None else (labels.values != truth).astype(np.float64)
    return labels, error - (labels._sum_per_annotator(error) / n_labels)[labels.annotator_index]


def _mean_correlation(labels: CrowdLabels, residual: Floats) -> float:
    """The mean over pairs of labels of the product of standardised errors; 0 without errors."""
    n_labels = np.maximum(labels.labels_per_annotator, 1)
    spread = np.sqrt(labels._sum_per_annotator(residual**2) / n_labels)[labels.annotator_index]
    score = ratio(residual, spread, 0.0)
    total, squares = labels._sum_per_example(score), labels._sum_per_example(score**2)
    votes = labels._sum_per_example((spread > 0).astype(np.float64))  # who is always right has no errors to compare
    n_pairs = float((votes * (votes - 1)).sum())
    return float(np.clip((total**2 - squares).sum() / n_pairs, 0.0, 1.0)) if n_pairs > 0 else 0.0


def residual_pairs(labels: CrowdLabels, residual: Floats) -> Pairs:
    """How correlated the residuals of annotators are after a consensus.

    A residual of (n_labels, n_columns) is each label as it is coded, less what was expected of this annotator given the
    consensus.
    """
    left, right, _ = label_pairs(labels)
    annotator, n = labels.annotator_index.astype(np.int64), labels.n_annotators
    key, which = np.unique(annotator[left] * n + annotator[right], return_inverse=True)

    def total(values: Array) -> Floats:
        return np.bincount(which, values, len(key)).astype(np.float64)

    squared = np.einsum("ic,ic->i", residual, residual)
    product = sum((column[left] * column[right] for column in residual.T), start=np.zeros(len(left)))
    usual = float(squared[left].mean() + squared[right].mean()) / 2 if len(left) else 0.0
    # Under one root a product might overflow.
    scale = np.sqrt(total(squared[left])) * np.sqrt(total(squared[right])) + UNCORRELATED_EXAMPLES * usual
    shared, same = total(np.ones(len(left))), total(labels.values[left] == labels.values[right])
    return Pairs(key // n, key % n, shared, same / shared, ratio(total(product), scale, 0.0))
