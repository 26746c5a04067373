"""A result, and what a person did -> how much each example is worth to be offered to that person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import entr

from crowdwise._arrays import Floats
from crowdwise.results.fit_results import FitResults
from crowdwise.results.suggest import answer_information
from crowdwise.session.answers import Answered

Rule = Literal["uncertain", "easy", "classifier", "random", "check"]
RULES: tuple[Rule, ...] = ("uncertain", "easy", "classifier", "random", "check")
# Harder examples are offered to a person who was right on so many of their last ten; there are so many stages.
_RIGHT, _OF, _STAGES = 8, 10, 5


def information(result: FitResults, person: str, *, is_expert: bool) -> Floats:
    """How much the answer of a person is expected to reveal about each example, in bits."""
    if is_expert:
        return np.asarray(entr(result.proba).sum(axis=1))
    n_classes = result.proba.shape[1]
    confusion = result.fitted.answers.crowd[:, :n_classes]
    who = np.flatnonzero(result.annotators == person)
    if len(who) and np.isfinite(result.confusion[who[0]]).all():
        confusion = result.confusion[who[0]]
    return answer_information(result.proba, confusion)


def classifier_margin(result: FitResults) -> Floats:
    """How far the classifier is from not knowing the class of each example: what it knows best teaches it least."""
    proba = result.proba if result.model_proba is None else result.model_proba
    top = np.sort(proba, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0]


def distance_from_stage(result: FitResults, reached: int) -> Floats:
    """The distance of each example from the stage that a person reached, harder ones before easier ones."""
    order = np.argsort(np.argsort(-result.confidence, kind="stable"))
    quantile = order / max(len(order) - 1, 1)
    start = reached / _STAGES
    return np.where(quantile >= start, quantile - start, 1 + start - quantile)


def stage(result: FitResults, done: Sequence[Answered]) -> int:
    """How often a person was right on eight of ten answers in a row of ten."""
    right = [bool(result.label[one.example] == one.label) for one in done if one.label is not None]
    tens = [right[start : start + _OF] for start in range(0, len(right) - _OF + 1, _OF)]
    return min(sum(sum(ten) >= _RIGHT for ten in tens), _STAGES - 1)


def change_probability(proba: Floats, confusion: Floats) -> Floats:
    """For every example the probability that one more answer changes its most probable class.

    `confusion` is how an annotator answers: the probability of c (last axis) if the class is k.
    """
    after = proba[:, :, np.newaxis] * confusion
    changes = after.argmax(axis=1) != proba.argmax(axis=1)[:, np.newaxis]
    return np.asarray((after.sum(axis=1) * changes).sum(axis=1))
