"""Squared errors of annotators against the model -> their expertise: one over the mean, floored and shrunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Floats

# With labels missing, this many labels of the crowd's average quality are added to those of an annotator.
PRIOR_LABELS = 3.0
# A perfect annotator would get infinite expertise; no mean squared error is taken to be smaller than this.
SMALLEST_ERROR = 1e-8


@dataclass(frozen=True, eq=False)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing.

    Parameters
    ----------
    mass : ndarray of shape (n_annotators,)
        Total weight of the examples that each annotator labelled.
    prior : ndarray of shape (n_annotators,)
        Weight of the crowd's average error in each annotator's: zero for those who labelled everything, so that
        complete labels give the paper's expertise exactly.
    floor : float
        The smallest mean squared error.
    """

    mass: Floats
    prior: Floats
    floor: float

    @classmethod
    def of(cls, mass: Floats, answered: Floats, present: float, span: float) -> Precision:
        """From the weights that were labelled, and that there were to label."""
        prior = PRIOR_LABELS * (1 - np.minimum(answered / present, 1.0))
        return cls(mass, prior, SMALLEST_ERROR * span)

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self._shrunk(errors, self._crowd_error(errors))

    def crowd_expertise(self, errors: Floats) -> float:
        """The expertise of the crowd as a whole: what an unknown annotator is taken to have."""
        return 1.0 / max(self._crowd_error(errors), self.floor)

    def objective(self, errors: Floats, penalties: Floats) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are measured as in the last one, so that they can be compared. `errors` are (n_rounds, n_annotators).
        """
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(errors, self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), self.floor)
