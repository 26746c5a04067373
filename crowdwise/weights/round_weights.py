"""The current consensus -> what a round is fitted to: how much every example and every class counts in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crowdwise.arrays import Floats, Positions
from crowdwise.weights.class_weights import class_weights
from crowdwise.weights.curricula import Curriculum, Fixed, checked_weights


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


@dataclass
class RoundWeights:
    """The weights of one fit, round after round."""

    curriculum: Curriculum  # how the weights change
    easiness: Floats  # (n_examples,): weights by disagreement
    sample_weight: Floats  # (n_examples,): how often each example counts
    class_weight: Floats | str | None  # what `check_class_weight` gave
    rng: np.random.Generator  # for curricula that draw
    known: Positions | None = None  # examples whose class is known: they are never left out, and weigh as the easiest
    n_rounds: int = 0
    weight: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.weight = self.first

    @classmethod
    def fixed(cls, weight: Floats) -> RoundWeights:
        """The same weights in every round."""
        return cls(Fixed(), weight, np.ones(len(weight)), None, np.random.default_rng(0))

    @property
    def first(self) -> Floats:
        """The weights before the first round."""
        return self.easiness * self.sample_weight

    def settled(self, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of the last; else two rounds alike say nothing."""
        steady = self.curriculum.is_mixture and bool((self.easiness == 1).all())
        return steady or self.curriculum.settled(self.n_rounds, tol)

    def still_changing(self) -> str:
        """What to say if the rounds ended before the curriculum did."""
        return (
            f"the curriculum still changes the weights after {self.n_rounds} rounds. Raise max_rounds or tol, or "
            "choose a curriculum that is done sooner (a larger c or growth)."
        )

    def next(self, posterior: Floats, log_prior: Floats | None) -> SoftTargets:
        """What the next round is fitted to, by the consensus and what the classifier said in the last round, if any."""
        self.n_rounds += 1
        if type(self.curriculum) is Fixed:  # nothing changes
            return self.again(posterior)
        losses = None
        if log_prior is not None and self.curriculum.reads_losses:
            losses = -np.einsum("ik,ik->i", posterior, np.broadcast_to(log_prior, posterior.shape))
        current = checked_weights(self._by_curriculum(posterior, losses), self.curriculum)
        if self.known is not None and not isinstance(self.curriculum, Fixed):
            current = current.copy()
            current[self.known] = 1.0
        self.weight = current * self.sample_weight
        return self.again(posterior)

    def again(self, posterior: Floats) -> SoftTargets:
        """The same for a newer consensus: only what the classes count may have changed."""
        weight, counts = self.weight, np.ones(posterior.shape[1])
        if self.class_weight is not None:
            counts = class_weights(self.class_weight, posterior, weight)
        if isinstance(self.class_weight, str):  # balanced, but no class is blown up from less than one example
            counts = np.minimum(counts, (weight > 0).sum() / len(counts))
        return SoftTargets(posterior, weight, counts)

    def _by_curriculum(self, posterior: Floats, losses: Floats | None) -> Floats:
        if losses is None:
            return self.curriculum.weights(self.n_rounds, self.easiness, None, self.rng, self.sample_weight)
        # Under one threshold for all, a rare class would stay outside until the model has forgotten it.
        weights = np.empty_like(self.easiness)
        likeliest = posterior.argmax(axis=1)
        for k in np.unique(likeliest):
            of_class = likeliest == k
            weights[of_class] = self.curriculum.weights(
                self.n_rounds, self.easiness[of_class], losses[of_class], self.rng, self.sample_weight[of_class]
            )
        return weights
