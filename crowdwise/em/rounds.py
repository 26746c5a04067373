"""The one EM loop: annotators and a prior from the posterior of the classes, then the posterior from both.

What is believed of an example before its labels are looked at is a part that is passed in: how frequent classes are, or
the out-of-fold probabilities of a classifier (`priors`). So is how annotators err (`confusion`), and so are the weights
of a round (`weights.round_weights`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.em.acceleration import NEAR, Extrapolation, MovablePrior, Prior, StraightOn
from crowdwise.em.annotators import Annotators
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.progress import Report
from crowdwise.softmax.log_space import shares_of_sum
from crowdwise.threads import run_all
from crowdwise.truths.known import Known
from crowdwise.weights.round_weights import RoundWeights

# Examples whose posterior is computed at a time, and what that costs per probability, in multiplications.
_BLOCK, _COST_PER_ENTRY = 2**16, 100
# How many examples are enough to tell how far the average one moved.
_ENOUGH = 100_000


@dataclass(frozen=True)
class Rounds:
    """What the rounds arrived at."""

    posterior: Floats  # (n_examples, n_classes): probability of every class
    # (n_classes,) or (n_examples, n_classes): logarithms of the probabilities before labels are looked at.
    log_prior: Floats
    objective: Floats  # (n_rounds,): one value per round
    change: float  # that of the last round
    converged: bool  # whether it is within the tolerance, with weights that stay

    @classmethod
    def none(cls, posterior: Floats) -> Rounds:
        """Of a posterior that needs no rounds."""
        return cls(posterior, np.log(np.full(posterior.shape[1], 1 / posterior.shape[1])), np.empty(0), 0.0, True)


def run_em(
    annotators: Annotators,
    prior: Prior,
    weights: RoundWeights,
    posterior: Floats,
    *,
    joint: bool = True,
    known: Known | None = None,
    max_rounds: int,
    tol: float,
    accelerate: bool = False,
    report: Report | None = None,
    before: Floats | None = None,
    give_up: Callable[[Floats], bool] | None = None,
) -> Rounds:
    """Run rounds until the posterior settles.

    Parameters
    ----------
    annotators : Annotators
        How they answer; estimated anew in every round if `joint`.
    prior : Prior
        What is believed before labels are looked at; estimated anew in every round.
    weights : RoundWeights
        How much examples and classes count.
    posterior : ndarray of shape (n_examples, n_classes)
        Where to begin.
    joint : bool, default=True
        Whether annotators are estimated from the posterior of these rounds; else they stay as they are, if they
        have been estimated before.
    known : Known, default=None
        Examples whose class is known: their posterior is that class in every round.
    max_rounds : int
        The most rounds.
    tol : float
        Stop when the change of a round is not larger and the weights stay.
    accelerate : bool, default=False
        Whether rounds whose weights stay are extrapolated to where they are heading: annotators and a `MovablePrior` if
        the objective is not lower there; with another prior, the probabilities that the next round begins with.
    report : callable, default=None
        Called after every round.
    before : ndarray, default=None
        The objective of rounds that these go on from; they count.
    give_up : callable, default=None
        Is given the posterior after every round; the rounds end if it is true.

    Returns
    -------
    rounds : Rounds
    """
    change, log_prior = np.inf, None
    objective: list[float] = [] if before is None else before.tolist()
    joint = joint or not hasattr(annotators, "behaviour")
    begin = posterior if known is None else known.hold(posterior)
    extrapolation, straight_on = None, None
    if accelerate and isinstance(prior, MovablePrior):
        extrapolation = Extrapolation(annotators, prior) if joint else None
    elif accelerate:
        straight_on = StraightOn()
    while len(objective) < max_rounds and not (change <= tol and weights.settled(tol)):
        targets = weights.next(begin, log_prior)
        if joint:
            annotators.estimate(begin, targets.weight)
        ahead = extrapolation.propose(targets) if extrapolation is not None and change < NEAR else None
        if joint or log_prior is None:
            likelihood = held(annotators.log_likelihood(), known)
        log_prior = prior.update(targets, likelihood) if ahead is None else ahead
        posterior, evidence = expectation(log_prior, likelihood)
        value = _objective(annotators, prior, targets.weight, evidence)
        if extrapolation is not None and ahead is not None and extrapolation.is_worse(value, objective[-1]):
            extrapolation.take_back()
            likelihood = held(annotators.log_likelihood(), known)
            log_prior = prior.update(targets, likelihood)
            posterior, evidence = expectation(log_prior, likelihood)
            value = _objective(annotators, prior, targets.weight, evidence)
        change = mean_change(posterior, begin, targets.weight)
        objective.append(value)
        if report is not None:
            report(len(objective), value, change)
        if give_up is not None and give_up(posterior):
            break
        if straight_on is not None and weights.settled(tol):
            begin = straight_on.propose(begin, posterior, targets.weight)
        else:
            begin = posterior
    assert log_prior is not None  # there is at least one round
    converged = change <= tol and weights.settled(tol)
    return Rounds(posterior, log_prior, np.array(objective), change, converged)


def _objective(annotators: Annotators, prior: Prior, weight: Floats, evidence: Floats) -> float:
    return float(weight @ evidence) + annotators.log_prior() + prior.log_density()


def held(log_likelihood: Floats, known: Known | None) -> Floats:
    """The likelihood with known classes held fixed: as if somebody who is never wrong had labelled these examples."""
    return log_likelihood if known is None else known.only_true(log_likelihood)


def expectation(log_prior: Floats, log_likelihood: Floats) -> tuple[Floats, Floats]:
    """Posterior probabilities of the classes, and the logarithm of the probability of each example's labels.

    The prior is of (n_classes,) or (n_examples, n_classes), the likelihood of the latter.
    """
    posterior, evidence = np.empty_like(log_likelihood), np.empty(len(log_likelihood))

    def task(rows: slice) -> None:
        prior = log_prior if log_prior.ndim == 1 else log_prior[rows]
        # Many short rows: a few passes over columns are much faster than sums row by row.
        joint = np.add(prior.T[:, np.newaxis] if prior.ndim == 1 else prior.T, log_likelihood[rows].T, order="C")
        evidence[rows] = shares_of_sum(joint, posterior[rows].T)

    # Block by block, what is made on the way stays in the cache.
    blocks = (slice(start, start + _BLOCK) for start in range(0, len(log_likelihood), _BLOCK))
    run_all(task, blocks, _COST_PER_ENTRY * log_likelihood.size)
    return posterior, evidence


def mean_change(posterior: Floats, previous: Floats, weight: Floats) -> float:
    """How far the probabilities of the average example moved: half the sum of absolute differences."""
    some = slice(None, None, max(1, len(weight) // _ENOUGH))  # of very many examples, some tell it as well
    away = np.subtract(posterior[some].T, previous[some].T, order="C")
    moved = np.add.reduce(np.abs(away, out=away))
    # Where all weights of those are zero, nothing counts that moved.
    return float(weight[some] @ moved / max(weight[some].sum(), np.finfo(np.float64).tiny)) / 2


def note_convergence(rounds: Rounds, weights: RoundWeights, tol: float) -> None:
    """Say so if the rounds ended before they settled."""
    if rounds.converged:
        return
    if rounds.change <= tol:
        warn(weights.still_changing(), CrowdConvergenceWarning)
        return
    warn(
        f"after {len(rounds.objective)} rounds the probabilities still changed by {rounds.change:.2g} per example "
        f"(tol={tol:g}). Raise max_rounds or tol.",
        CrowdConvergenceWarning,
    )
