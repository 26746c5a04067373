"""How much every example and every class counts in a round: sample weight, easiness by curriculum, class weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise.rows.chunks import Chunk, Chunks, MemoryChunks
from crowdwise.weights.class_weights import class_weights
from crowdwise.weights.curricula import Curriculum, Fixed, check_curriculum, checked_weights

# From a chunk to an array with a row per example.
OfChunk = Callable[[Chunk], Floats]


def curriculum_of(given: Curriculum | None, steepness: float) -> Curriculum:
    """The curriculum given, checked; a fixed one if it only mixes weights that are one for all."""
    curriculum = check_curriculum(given)
    return Fixed() if steepness == 0 and curriculum.is_mixture else curriculum


def own_weight(chunk: Chunk) -> Floats:
    """How often each example counts: what annotators are judged by, whatever the easiness of examples."""
    return chunk.weight


@dataclass(frozen=True)
class SoftTargets:
    """What a classifier and the annotators' matrices are estimated from in one round."""

    posterior: Floats  # (n_examples, n_classes): probability of every class
    weight: Floats  # (n_examples,): how much each example counts; zero for those that the curriculum leaves out
    class_weight: Floats  # (n_classes,): how much each class counts for the classifier; ones if all count alike

    def by_class(self) -> tuple[Floats, Floats]:
        """Soft classes and weights of the examples in which each class counts by its weight; rows still sum to one."""
        if (self.class_weight == 1).all():
            return self.posterior, self.weight
        counted = self.posterior * self.class_weight
        total = counted.sum(axis=1)
        return counted / total[:, np.newaxis], self.weight * total


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weights of one round."""

    easiness_of: OfChunk  # weights by disagreement
    share: float = 1.0  # of easiness; the rest is one for all
    of_rows: Floats | None = (
        None  # (n_examples,): by a curriculum that ranks all examples, which chunks find by position
    )

    def __call__(self, chunk: Chunk) -> Floats:
        """How much each example of a chunk counts."""
        if self.of_rows is not None:
            assert chunk.memo is not None
            weight: Floats = self.of_rows[chunk.memo["position"][1]]
            return weight * chunk.weight
        easiness = self.easiness_of(chunk)
        return chunk.weight * (easiness if self.share == 1 else self.share * easiness + (1 - self.share))


@dataclass(frozen=True, eq=False)
class Targets:
    """What a classifier is fitted to in a round."""

    posterior_of: OfChunk
    weight_of: OfChunk
    class_weight: Floats

    def of(self, chunk: Chunk) -> SoftTargets:
        """Posterior and weights of the examples of a chunk."""
        return SoftTargets(self.posterior_of(chunk), self.weight_of(chunk), self.class_weight)

    def __call__(self, chunk: Chunk) -> tuple[Floats, Floats]:
        """Soft classes and weights in which each class counts by its weight."""
        return chunk.keep("targets", lambda: self.of(chunk).by_class(), owner=self)


@dataclass
class RoundWeights:
    """The weights of one fit, round after round."""

    chunks: Chunks
    easiness_of: OfChunk  # weights by disagreement
    class_weight: Floats | str  # (n_classes,): what each class counts for the classifier, or "balanced"
    curriculum: Curriculum = field(default_factory=Fixed)  # how the weights change
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))  # for curricula that draw
    n_rounds: int = field(default=0, init=False)
    current: Weighting = field(init=False)

    def __post_init__(self) -> None:
        self.current = Weighting(self.easiness_of)

    def advance(self, posterior_of: OfChunk, log_prior_of: OfChunk | None) -> None:
        """Go on to the weights of the next round, by the consensus and what a classifier predicted, if there is one."""
        self.n_rounds += 1
        if self.curriculum.is_mixture:
            self.current = Weighting(self.easiness_of, self.curriculum.share(self.n_rounds, self.rng))
            return
        assert isinstance(self.chunks, MemoryChunks)
        posterior, easiness = self.chunks.gather(posterior_of), self.chunks.gather(self.easiness_of)
        counts, losses = self.chunks.gather(lambda chunk: chunk.weight), None
        if log_prior_of is not None and self.curriculum.reads_losses:
            losses = -np.einsum("ik,ik->i", posterior, self.chunks.gather(log_prior_of))
        weight = checked_weights(self._ranked(posterior, easiness, counts, losses), self.curriculum).copy()
        weight[self.chunks.gather(_has_truth)] = 1.0  # examples whose class is known are never left out
        self.current = Weighting(self.easiness_of, of_rows=weight)

    def targets(self, posterior_of: OfChunk) -> Targets:
        """What is fitted to a consensus with the current weights."""
        current = self.current
        if not isinstance(self.class_weight, str):
            return Targets(posterior_of, current, self.class_weight)
        mass = self.chunks.total(lambda chunk: current(chunk) @ posterior_of(chunk))
        n_used = self.chunks.total(lambda chunk: float(chunk.weight @ (current(chunk) > 0)))
        balanced = class_weights(self.class_weight, mass[np.newaxis], np.ones(1))
        # No class is blown up from less than one example.
        return Targets(posterior_of, current, np.minimum(balanced, n_used / len(mass)))

    def settled(self, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of the last; else two equal rounds mean nothing."""
        return isinstance(self.curriculum, Fixed) or self.curriculum.settled(self.n_rounds, tol)

    def _ranked(self, posterior: Floats, easiness: Floats, counts: Floats, losses: Floats | None) -> Floats:
        if losses is None:
            return self.curriculum.weights(self.n_rounds, easiness, None, self.rng, counts)
        # Under one threshold for all, a rare class would stay outside until the model has forgotten it.
        weights, likeliest = np.empty_like(easiness), posterior.argmax(axis=1)
        for k in np.unique(likeliest):
            own = likeliest == k
            weights[own] = self.curriculum.weights(self.n_rounds, easiness[own], losses[own], self.rng, counts[own])
        return weights


def _has_truth(chunk: Chunk) -> Array:
    return np.zeros(len(chunk), dtype=bool) if chunk.truth is None else chunk.truth >= 0
