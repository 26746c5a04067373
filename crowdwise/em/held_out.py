"""Examples held out from the estimators that score them: who learns from whom, round after round the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from crowdwise.arrays import Array, Floats, Positions
from crowdwise.checks import check_whole
from crowdwise.em.labels_alone import vote_shares
from crowdwise.em.temperature import ClassScores
from crowdwise.em.weighted_copies import Learner, has_probabilities, usable_weights
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.training_set import TrainingSet
from crowdwise.weights.auto_steepness import choose_steepness
from crowdwise.weights.round_weights import SoftTargets

Splits = list[tuple[Positions, Positions]]


@dataclass(frozen=True)
class EstimatorFolds:
    """Estimators that score the examples held out from them."""

    learner: Learner  # fits an estimator
    splits: Splits  # positions among the examples that take part
    seeds: list[int]  # of the estimator of each split

    def out_of_fold(self, targets: SoftTargets) -> ClassScores:
        """Scores of every example by a model of other examples; zero, which says nothing, where there is none."""
        learner = self.learner
        found = Parallel(n_jobs=learner.n_jobs)(
            delayed(learner.held_out_scores)(targets, learn, held_out, seed)
            for (learn, held_out), seed in zip(self.splits, self.seeds, strict=True)
        )
        scores = np.zeros(targets.posterior.shape)
        for (_, held_out), of_fold in zip(self.splits, found, strict=True):
            scores[held_out] = of_fold
        return ClassScores(scores, targets.class_weight, has_probabilities(learner.estimator))

    def steepness(self, labels: CrowdLabels, disagreement: Floats, weight: Floats) -> float:
        """The steepness that suits a crowd, contested examples being scored by the estimator itself."""
        if not self.splits:
            return 0.0
        votes = vote_shares(labels)

        def scores_of(easiness: Floats) -> Floats:
            targets = SoftTargets(votes, usable_weights(easiness) * weight, np.ones(votes.shape[1]))
            scores = self.out_of_fold(targets).scores
            return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

        return choose_steepness(scores_of, labels, disagreement, weight)


def stratified_folds(code: Array, n_folds: int, rng: np.random.Generator) -> Splits:
    """Random pairs of examples to learn from and examples held out, each class spread evenly over the folds.

    Unlike scikit-learn's, these may have classes of fewer examples than folds. A class of two or more examples is in
    every part to learn from. There are fewer folds if there are fewer examples.
    """
    n_examples = len(code)
    shuffled = rng.permutation(n_examples)
    order = shuffled[np.argsort(code[shuffled], kind="stable")]
    fold = np.empty(n_examples, dtype=np.intp)
    fold[order] = np.arange(n_examples) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(min(n_folds, n_examples))]


def splits_of(cv: Any, training: TrainingSet, rng: np.random.Generator) -> Splits:
    """The splits that `cv` asks for, as positions among the examples that take part."""
    majority, learnt = training.labels.tally.argmax(axis=1), training.learnt
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        n_examples = int(learnt.sum())
        if check_whole("cv", cv, low=2) > max(n_examples, 10):  # the default is fine for a handful
            raise ValueError(f"cv must not be more than the {n_examples} examples that take part; got {cv}.")
        return stratified_folds(majority[learnt], int(cv), rng)
    position = np.cumsum(learnt) - 1
    given: Iterator[tuple[Any, Any]] = check_cv(cv).split(training.X, majority)
    rows = np.arange(len(learnt))
    splits = [(rows[learn], rows[held_out]) for learn, held_out in given]
    return [(position[learn[learnt[learn]]], position[out[learnt[out]]]) for learn, out in splits]


def check_splits(splits: Splits, n_examples: int) -> None:
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
