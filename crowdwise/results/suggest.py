"""A fit and its labels -> what to check or label next, and why; or a random draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.utils import check_random_state

from crowdwise._arrays import Array, Codes, Floats, FrozenArrays, Positions
from crowdwise._checks import check_choice, check_whole
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.results.consensus import Consensus
from crowdwise.results.fit_results import FitResults, fit_and_labels

_BIT = np.log(2.0)


@dataclass(frozen=True, repr=False, eq=False)
class NextLabels(FrozenArrays):
    """Examples to check, the least sure first; or those where one more label adds most, or a random draw.

    Parameters
    ----------
    examples : ndarray of shape (n,)
        Identifiers of the examples.
    label : ndarray of shape (n,)
        The consensus as it is.
    confidence : ndarray of shape (n,) or None
        Its probability; None for ratings.
    n_labels : ndarray of shape (n,)
        How many labels each has.
    gain : ndarray of shape (n,)
        Expected information gain of the answer, in bits.
    reason : ndarray of shape (n,)
        Why, in words.
    frame_library : {"pandas", "polars"} or None, default=None
        What made the data frame that the labels came in, if they did.
    """

    examples: Array
    label: Array
    confidence: Floats | None
    n_labels: Codes
    gain: Floats
    reason: Array
    frame_library: str | None = None

    def __len__(self) -> int:
        return len(self.examples)

    def __repr__(self) -> str:
        span = f"; expected gain {self.gain[0]:.2f} to {self.gain[-1]:.2f} bits" if len(self) else ""
        return f"NextLabels: {len(self):,} examples{span}"

    def to_frame(self) -> Any:
        """A data frame with the columns "example", "label", "confidence" (of classes), "labels", "gain" and "reason".

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            The labels' own kind of frame; pandas if they were in none, polars where that is not installed.
        """
        return make_frame(self.columns(), self.frame_library)

    def columns(self) -> dict[str, Array]:
        """The columns of that frame."""
        columns = {"example": self.examples, "label": self.label}
        if self.confidence is not None:
            columns["confidence"] = self.confidence
        return columns | {"labels": self.n_labels, "gain": self.gain, "reason": self.reason}


def suggest_labels(
    model: Any,
    labels: Any,
    *,
    n: int = 50,
    crowd: bool = False,
    at_random: bool = False,
    random_state: Any = 0,
) -> NextLabels:
    """Which examples an expert should check, most uncertain first, with the reason; or those for the crowd.

    The order is that of the expected information gain. The answer of an expert leaves no uncertainty about the class,
    so the gain is all of it (its entropy, in bits). One more label by an average annotator of the crowd gains less, and
    most where such labels can still decide. For ratings, the gain is that of one more rating, for the normal
    distribution that the model gives them. Examples whose answer is known are left out.

    For answers that are given as ``truth=``, take some of the examples at random: how often the consensus is right, and
    how sure it may be, can only be measured on examples that are like the others.

    Parameters
    ----------
    model : estimator or FitResults
        A fitted model, or the result of `aggregate`.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels that it was fitted to.
    n : int, default=50
        How many examples at most.
    crowd : bool, default=False
        Whether one more annotator of the same crowd answers, instead of an expert who knows the right answer.
    at_random : bool, default=False
        Whether they are drawn at random, each example with the same probability.
    random_state : int, RandomState instance or None, default=0
        Seed of the draw.

    Returns
    -------
    examples : NextLabels
        In the order of the expected gain, or as they were drawn; `examples.to_frame()` is a table.

    Examples
    --------
    >>> from crowdwise import aggregate, suggest_labels
    >>> labels = [["a", "a", "a"], ["b", "b", "b"], ["a", "b", None], ["b", "b", "a"], ["a", "a", "a"]]
    >>> found = suggest_labels(aggregate(labels), labels, n=1)
    >>> found.examples.tolist(), found.reason.tolist()
    ([2], ['1-1 split'])
    """
    check_whole("n", n)
    check_choice("crowd", crowd, (True, False))
    check_choice("at_random", at_random, (True, False))
    results, used = fit_and_labels(model, labels)
    gain = information_gain(results, crowd=crowd)
    rows = best_first(results, gain)
    rows = check_random_state(random_state).permutation(rows) if at_random else rows
    return next_labels(results, used, gain, rows[:n])


def best_first(results: FitResults, gain: Floats) -> Positions:
    """Examples in the order of the gain, without those whose answer is known."""
    order = np.argsort(-gain, kind="stable")
    return order[~results.has_truth[order]]


def next_labels(results: FitResults, labels: CrowdLabels, gain: Floats, rows: Positions) -> NextLabels:
    """These examples, with what is known about them."""
    return NextLabels(
        results.examples[rows],
        results.label[rows],
        None if results.classes is None else results.confidence[rows],
        labels.labels_per_example[rows],
        gain[rows],
        reasons(results, labels, rows),
        labels.frame_library,
    )


def information_gain(results: FitResults, *, crowd: bool = False) -> Floats:
    """Expected information gain of the answer of an expert, or of one more annotator, in bits, per example."""
    if results.classes is None:
        return np.log1p(results.crowd_expertise * results.std**2) / (2 * _BIT)
    if not crowd:
        return np.maximum(entr(results.proba).sum(axis=1), 0.0) / _BIT
    return answer_information(results.proba, results.fitted.answers.crowd[:, : len(results.classes)])


def answer_information(proba: Floats, confusion: Floats) -> Floats:
    """How much an answer is expected to reveal about the class, in bits.

    The entropy of the class less its expected entropy after the answer. It equals the entropy of the answer less
    its entropy given the class, which needs no posterior per answer.

    Parameters
    ----------
    proba : ndarray of shape (n_examples, n_classes)
        Probability of every class.
    confusion : ndarray of shape (n_classes, n_classes)
        Probability that the answer is c (last axis) if the class is k.

    Returns
    -------
    information : ndarray of shape (n_examples,)

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.results.suggest import answer_information
    >>> answer_information(np.array([[0.5, 0.5], [1.0, 0.0]]), np.eye(2)).tolist()
    [1.0, 0.0]
    """
    answer, noise = proba @ confusion, proba @ entr(confusion).sum(axis=1)
    return np.maximum(entr(answer).sum(axis=1) - noise, 0.0) / _BIT  # rounding could make nothing a little less


def reasons(results: FitResults, labels: CrowdLabels, rows: Positions) -> Array:
    """Why some examples are unsure, in words."""
    used = labels[rows]
    if (labels.labels_per_annotator > 0).sum() == 1:
        words = ["one annotator only: ask a second one"] * len(rows)
    elif labels.classes is None:
        ends = zip(used.indptr[:-1], used.indptr[1:], strict=True)
        words = [_rating_words(used.values[start:end]) for start, end in ends]
    else:
        assert isinstance(results.label_consensus, Consensus)
        by_labels = results.label_consensus.codes[rows]
        overruled = by_labels != results.codes[rows]
        words = [_class_words(*parts) for parts in zip(used._tally, by_labels, overruled, strict=True)]
    return np.array(words, dtype=object)


def _class_words(tally: Array, by_labels: int, overruled: bool) -> str:
    """What the labels of one example look like; `by_labels` is the most probable class by them."""
    counts = np.sort(tally[tally > 0])[::-1].tolist()
    if sum(counts) == 0:
        return "no label yet"
    if sum(counts) == 1:
        words = "only one label"
    elif len(counts) == 1:
        number = "both" if counts[0] == 2 else f"all {counts[0]}"
        words = f"{number} agree, but {number} annotators are unreliable"
    else:
        words = f"{'-'.join(map(str, counts))} split"
    if overruled:
        return f"{words}; the classifier and the labels disagree"
    if tally[by_labels] == 0:
        return f"{words}; the consensus is a class that no annotator gave"
    if tally[by_labels] < counts[0]:
        return f"{words}; the more reliable annotators are in the minority"
    return words


def _rating_words(ratings: Floats) -> str:
    if len(ratings) < 2:
        return "only one label" if len(ratings) else "no label yet"
    return f"{len(ratings)} labels, from {ratings.min():g} to {ratings.max():g}"
