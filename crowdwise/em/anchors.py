"""A fit with known classes -> what it says about each of them when it is not told, and how that calibrates the rest.

Truths are held out in parts. Without those of a part, annotators are estimated again from the votes on, with what is
believed before labels are looked at as it was: the frequency of classes, or a classifier that is out of fold already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Codes, Floats, Positions
from crowdwise.consensus import chosen_classes
from crowdwise.em.annotators import Annotators
from crowdwise.em.labels_alone import first_annotators, vote_shares
from crowdwise.em.levels import Reading
from crowdwise.em.rounds import expectation, run_em
from crowdwise.em.together import Together, vote_strength
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.truths.calibration import Calibration, calibrate, folds_of_truths
from crowdwise.truths.check import TruthCheck, check_classes
from crowdwise.truths.draw import Draw, some_others
from crowdwise.truths.known import Known
from crowdwise.weights.round_weights import RoundWeights, SoftTargets

# The rounds without some truths need not quite settle.
_MOST_ROUNDS, _TOLERANCE = 200, 1e-4


@dataclass
class Unchanging:
    """A prior that no round changes."""

    log_prior: Floats  # (n_classes,) or (n_examples, n_classes): logarithms of class probabilities

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        return self.log_prior

    def log_density(self) -> float:
        return 0.0

    def estimate(self, targets: SoftTargets) -> Floats:
        return np.empty(0)  # nothing that moves when rounds are extrapolated

    def move(self, parameters: Floats) -> Floats:
        return self.log_prior


@dataclass(frozen=True, eq=False)
class Estimated:
    """What a fit estimated, as far as it is needed to do it again without some truths."""

    annotators: Annotators  # how they answer
    log_prior: Floats  # (n_classes,) or (n_examples, n_classes): what is believed before labels are looked at
    # (n_classes,) or (n_examples, n_classes): the same where annotators are estimated, which may be from labels alone.
    of_annotators: Floats
    weight: Floats  # (n_examples,): how much each example counts
    together: Together  # who shares a vote, and what may be stated

    def told(self, annotators: Annotators, labels: CrowdLabels, at: Positions) -> Floats:
        """What is stated of some examples by these annotators, as if none were known."""
        prior = self.log_prior if self.log_prior.ndim == 1 else self.log_prior[at]
        posterior = expectation(prior, annotators.log_likelihood()[at])[0]
        frequency = np.exp(prior) if prior.ndim == 1 else np.exp(prior).mean(axis=0)
        strength = vote_strength(annotators.behaviour.by_class(), frequency)
        return self.together.stated(posterior, labels[at], prior, strength)

    def without(self, labels: CrowdLabels, known: Known | None) -> Annotators:
        """The annotators again, with these truths only."""
        fitted = self.annotators
        again, votes = first_annotators(labels, fitted.model, self.together, fitted.n_difficulties, known)
        run_em(
            again, Unchanging(self.of_annotators), RoundWeights.fixed(self.weight), votes,
            known=known, max_rounds=_MOST_ROUNDS, tol=_TOLERANCE, accelerate=True,
        )  # fmt: skip
        return again


def calibrate_by_truths(
    labels: CrowdLabels, known: Known | None, estimated: Estimated | None, reading: Reading
) -> tuple[Calibration | None, TruthCheck | None]:
    """How the posterior of other examples is calibrated, and how good the consensus is; None without truths.

    Nothing was `estimated` if there is one annotator, who is believed.
    """
    if known is None:
        return None, None
    if estimated is None:
        proba, draw = vote_shares(labels[known.at]), None
        fold = folds_of_truths(proba[np.arange(len(known)), known.answers])
    else:
        first = estimated.told(estimated.annotators, labels, known.at)
        fold = folds_of_truths(first[np.arange(len(known)), known.answers])
        proba, draw = _held_out(labels, known, estimated, fold), _draw(labels, known, estimated)
    calibration, held_out = calibrate(proba, known.answers, labels[known.at], fold, draw)
    chosen = chosen_classes(held_out, reading.by, reading.levels)
    at_random = draw is None or draw.at_random
    return calibration, check_classes(held_out, known.answers, chosen, at_random=at_random)


def _draw(labels: CrowdLabels, known: Known, estimated: Estimated) -> Draw:
    """How the known examples differ from the others, by annotators who were estimated without any truth."""
    others = some_others(known.at, len(labels))
    proba = estimated.told(estimated.without(labels, None), labels, np.concatenate([known.at, others]))
    return Draw.of(len(known), proba, estimated.weight[others])


def _held_out(labels: CrowdLabels, known: Known, estimated: Estimated, fold: Codes) -> Floats:
    """Probabilities of the classes of known examples, by annotators who were estimated without knowing them."""
    proba = np.empty((len(known), len(labels.classes) if labels.classes is not None else 0))
    for k in np.unique(fold):
        others = known[fold != k]
        annotators = estimated.without(labels, others if len(others) else None)
        proba[fold == k] = estimated.told(annotators, labels, known.at[fold == k])
    return proba
