"""Examples held out from the estimators that score them: who learns from whom, round after round the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from crowdwise._arrays import Floats, Positions
from crowdwise._checks import check_whole
from crowdwise.em.posterior import shares_of
from crowdwise.em.round_weights import OfChunk, SoftTargets, Targets
from crowdwise.em.weighted_copies import Learner, has_probabilities, usable_weights
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.chunks import Chunk, MemoryChunks
from crowdwise.training_set import TrainingSet
from crowdwise.weights.auto_steepness import choose_steepness
from crowdwise.weights.folds import content_folds

Splits = list[tuple[Positions, Positions]]


@dataclass(frozen=True)
class EstimatorFolds:
    """Estimators that score the examples held out from them."""

    learner: Learner  # fits an estimator
    splits: Splits  # positions among the examples that take part
    seeds: list[int]  # of the estimator of each split

    def out_of_fold(self, targets: SoftTargets) -> Floats:
        """Scores of every example by a model of others, class weights divided out; zero where there is none."""
        learner = self.learner
        found = Parallel(n_jobs=learner.n_jobs)(
            delayed(learner.held_out_scores)(targets, learn, held_out, seed)
            for (learn, held_out), seed in zip(self.splits, self.seeds, strict=True)
        )
        scores = np.zeros(targets.posterior.shape)
        for (_, held_out), of_fold in zip(self.splits, found, strict=True):
            scores[held_out] = of_fold
        return scores - np.log(targets.class_weight) if has_probabilities(learner.estimator) else scores

    def steepness(self, labels: CrowdLabels, disagreement: Floats, weight: Floats) -> float:
        """The steepness that suits a crowd, contested examples being scored by the estimator itself."""
        if not self.splits:
            return 0.0
        votes = shares_of(labels.tally.astype(np.float64), labels.labels_per_example.astype(np.float64))

        def scores_of(easiness: Floats) -> Floats:
            targets = SoftTargets(votes, usable_weights(easiness) * weight, np.ones(votes.shape[1]))
            scores = self.out_of_fold(targets)
            return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

        return choose_steepness(scores_of, labels, disagreement, weight)


@dataclass(frozen=True, eq=False)
class StoredScores:
    """Scores of all examples that take part, which chunks find by their positions."""

    scores: Floats

    def __call__(self, chunk: Chunk) -> Floats:
        assert chunk.memo is not None
        return self.scores[chunk.memo["position"][1]]


@dataclass(frozen=True, eq=False)
class EstimatorModels:
    """Estimators of all folds, as the rounds of labels and features fit them."""

    folds: EstimatorFolds
    chunks: MemoryChunks

    def fit(self, targets: Targets) -> OfChunk:
        """Fit all folds; what gives the scores of the examples held out from them."""
        return StoredScores(self.folds.out_of_fold(soft_targets(self.chunks, targets)))


def soft_targets(chunks: MemoryChunks, targets: Targets) -> SoftTargets:
    """Targets of all examples in one record; rounding decides nothing, as it would where a tree has to break a tie."""
    posterior: Floats = chunks.gather(targets.posterior_of).round(12)
    return SoftTargets(posterior, chunks.gather(targets.weight_of), targets.class_weight)


def splits_of(cv: Any, training: TrainingSet) -> Splits:
    """The splits that `cv` asks for, as positions among the examples that take part.

    A number of folds is dealt out by the content of the rows, so that the order of examples does not matter.
    """
    used = training.used
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        n_examples = int(used.sum())
        if check_whole("cv", cv, low=2) > max(n_examples, 10):  # the default is fine for a handful
            raise ValueError(f"cv must not be more than the {n_examples} examples that take part; got {cv}.")
        return _by_content(training.rows, n_examples, int(cv))
    position = np.cumsum(used) - 1
    majority = training.labels.tally.argmax(axis=1)
    given: Iterator[tuple[Any, Any]] = check_cv(cv).split(training.X, majority)
    rows = np.arange(len(used))
    splits = [(rows[learn], rows[held_out]) for learn, held_out in given]
    return [(position[learn[used[learn]]], position[out[used[out]]]) for learn, out in splits]


def _by_content(X: Any, n_examples: int, n_folds: int) -> Splits:
    fold = content_folds(_numbers(X), n_folds)
    if fold.max(initial=0) == 0:  # all rows are equal: nothing but their place distinguishes them
        fold = np.arange(n_examples) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]


def _numbers(X: Any) -> Any:
    """Features as numbers; a number per row that its content gives where they are texts or of several types."""
    if sparse.issparse(X):
        return X
    values = np.asarray(X)
    if values.dtype.kind in "biuf" and values.ndim == 2:
        return np.nan_to_num(values.astype(np.float64))
    rows = values.reshape(len(values), -1).tolist()
    digests = (blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=6).digest() for row in rows)
    return np.array([[int.from_bytes(digest)] for digest in digests], dtype=np.float64)


def check_splits(splits: Splits, n_examples: int) -> None:
    """Raise unless every example is held out once, from models that do not see it."""
    times = np.zeros(n_examples, dtype=np.int64)
    for learn, held_out in splits:
        np.add.at(times, held_out, 1)
        if len(np.intersect1d(learn, held_out)):
            raise DataError("cv gave splits in which an example is both learned from and held out.")
    if (times != 1).any():
        raise DataError(
            f"cv must hold out every example once; example {int((times != 1).argmax())} of those with labels is held "
            f"out {int(times[(times != 1).argmax()])} times."
        )
