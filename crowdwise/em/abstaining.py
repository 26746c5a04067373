"""A model of annotators -> the same model where abstaining is one more answer, of annotators and not of the truth.

How often an annotator abstains depends on the true class. What is said by those who answer is as the model has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise._arrays import Floats
from crowdwise.em.confusion import AnnotatorModel, Shared

# How often somebody abstains is drawn towards the crowd in the way that labels are.
_ABSTAINING = Shared()


@dataclass(frozen=True)
class Abstaining:
    """Annotators who may abstain: the last column of counts and matrices."""

    model: AnnotatorModel  # how those err who answer

    def check(self) -> None:
        """Raise if a setting of the model makes no sense."""
        self.model.check()

    def crowd(self, counts: Floats) -> Floats:
        """The crowd's matrix."""
        return _joined(self.model.crowd(counts[..., :-1]), _ABSTAINING.crowd(_whether(counts)))

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        answers, abstains = _split(crowd)
        return _joined(self.model.estimate(counts[..., :-1], answers), _ABSTAINING.estimate(_whether(counts), abstains))

    def log_prior(self, confusion: Floats, crowd: Floats) -> float:
        """Logarithm of the prior, up to a constant."""
        parts = zip((self.model, _ABSTAINING), _split(confusion), _split(crowd), strict=True)
        return sum(model.log_prior(one, of_crowd) for model, one, of_crowd in parts)


def _whether(counts: Floats) -> Floats:
    """How often somebody answered, and abstained."""
    return np.stack([counts[..., :-1].sum(axis=-1), counts[..., -1]], axis=-1)


def _split(confusion: Floats) -> tuple[Floats, Floats]:
    """Probabilities of labels if an annotator answers, and of answering and abstaining."""
    answering = confusion[..., :-1].sum(axis=-1)
    return confusion[..., :-1] / answering[..., np.newaxis], np.stack([answering, confusion[..., -1]], axis=-1)


def _joined(answers: Floats, abstains: Floats) -> Floats:
    return np.concatenate([answers * abstains[..., :1], abstains[..., 1:]], axis=-1)
