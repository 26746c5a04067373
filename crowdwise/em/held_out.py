"""Examples held out from the estimators that judge them: who learns from whom, round after round the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from crowdwise.arrays import Floats
from crowdwise.em.aggregate import vote_shares
from crowdwise.em.weighted_copies import Learner, Rows, usable_weights
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.weights.auto_steepness import choose_steepness
from crowdwise.weights.round_weights import Lesson


def dealt_folds(code: NDArray[Any], n_folds: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Pairs of examples to learn from and examples held out; each class is dealt out over the folds like cards.

    Parameters
    ----------
    code : ndarray of shape (n_examples,)
        The class of each example by majority. A class of two or more examples is then in every part to learn from.
    n_folds : int
        Number of folds; fewer if there are fewer examples.
    rng : Generator
        Shuffles.

    Returns
    -------
    splits : list of (learn, held_out)
    """
    n_examples = len(code)
    shuffled = rng.permutation(n_examples)
    order = shuffled[np.argsort(code[shuffled], kind="stable")]
    fold = np.empty(n_examples, dtype=np.intp)
    fold[order] = np.arange(n_examples) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(min(n_folds, n_examples))]


def splits_of(
    cv: Any, X: Any, majority: NDArray[Any], learnt: NDArray[np.bool_], rng: np.random.Generator
) -> list[tuple[Rows, Rows]]:
    """The splits that `cv` asks for, as positions among the examples that take part."""
    position = np.cumsum(learnt) - 1
    if isinstance(cv, int | np.integer):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, a splitter or a list of splits; got {cv!r}.")
        return dealt_folds(majority[learnt], int(cv), rng)
    given: Iterator[tuple[Any, Any]] = check_cv(cv).split(X, majority)
    rows = np.arange(len(learnt))
    splits = [(rows[learn], rows[held_out]) for learn, held_out in given]
    return [(position[learn[learnt[learn]]], position[out[learnt[out]]]) for learn, out in splits]


def _check_splits(splits: list[tuple[Rows, Rows]], n_examples: int) -> None:
    """Raise unless every example is held out once, from models that do not see it."""
    times = np.zeros(n_examples, dtype=np.int64)
    for learn, held_out in splits:
        np.add.at(times, held_out, 1)
        if len(np.intersect1d(learn, held_out)):
            raise DataError("cv gave splits in which an example is both learnt from and held out.")
    if (times != 1).any():
        raise DataError(
            f"cv must hold out every example once; example {int((times != 1).argmax())} of those with labels is held "
            f"out {int(times[(times != 1).argmax()])} times."
        )


@dataclass(frozen=True)
class HeldOut:
    """How examples are held out, the same in every round.

    Parameters
    ----------
    splits : list of (learn, held_out)
        Positions among the examples that take part; none if there is one annotator, who is not doubted.
    seeds : list of int
        Of the estimator of each split.
    """

    splits: list[tuple[Rows, Rows]]
    seeds: list[int]

    @classmethod
    def of(
        cls,
        cv: Any,
        X: Any,
        labels: CrowdLabels,
        learnt: NDArray[np.bool_],
        core: CrowdLabels,
        rng: np.random.Generator,
    ) -> HeldOut:
        """As `cv` asks for."""
        if core.n_annotators == 1:
            return cls([], [])
        splits = splits_of(cv, X, labels.tally.argmax(axis=1), learnt, rng)
        _check_splits(splits, len(core))
        return cls(splits, rng.integers(2**31 - 1, size=len(splits)).tolist())

    def steepness(self, learner: Learner, labels: CrowdLabels, disagreement: Floats, weight: Floats) -> float:
        """The steepness that suits a crowd, contested examples being scored by the estimator itself."""

        def scores_of(easiness: Floats) -> Floats:
            votes = vote_shares(labels)
            lesson = Lesson(votes, usable_weights(easiness) * weight, np.ones(votes.shape[1]))
            scores = learner.out_of_fold(lesson, self.splits, self.seeds)
            return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

        return choose_steepness(scores_of, labels, disagreement) if self.splits else 0.0
