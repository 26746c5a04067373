"""How annotators answer: the confusion matrices that a fit estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Bools, Floats
from crowdwise.em.confusion import AnnotatorModel


@dataclass(frozen=True, eq=False)
class Annotators:
    """What every annotator answers if an example is of a class."""

    # (n_annotators, n_classes, n_answers): probability of an answer (last axis); a last column more if abstentions are
    # answers. NaN for annotators without labels.
    confusion: Floats
    crowd: Floats  # (n_classes, n_answers): that of all of them together: what is expected of an unknown annotator

    @classmethod
    def of_counts(cls, counts: Floats, model: AnnotatorModel) -> Annotators:
        """Estimated from how often each gave every answer to examples of every class."""
        crowd = model.crowd(counts)
        return cls(model.estimate(counts, crowd), crowd)

    @property
    def has_abstentions(self) -> bool:
        """Whether abstentions are answers."""
        return self.confusion.shape[2] > self.confusion.shape[1]

    @property
    def labels(self) -> Floats:
        """Confusion matrices of the labels that annotators give, abstentions being left out."""
        if not self.has_abstentions:
            return self.confusion
        return self.confusion[..., :-1] / (1 - self.confusion[..., -1:])

    def among(self, active: Bools) -> Annotators:
        """The same among all annotators, with NaN for those who are not active."""
        if active.all():
            return self
        confusion = np.full((len(active), *self.confusion.shape[1:]), np.nan)
        confusion[active] = self.confusion
        return Annotators(confusion, self.crowd)

    def at(self, position: NDArray[np.int64]) -> Annotators:
        """The annotators at some positions; the crowd's matrix for unknown ones, which are at -1."""
        known = self.confusion[np.maximum(position, 0)]
        unknown = (position < 0) | np.isnan(known[:, 0, 0])
        return Annotators(np.where(unknown[:, np.newaxis, np.newaxis], self.crowd, known), self.crowd)
