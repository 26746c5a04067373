"""Labels alone -> annotators and classes, estimated together: what `aggregate` gives and classifiers begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.checks import check_choice
from crowdwise.em.abstaining import Abstaining
from crowdwise.em.annotators import Annotators, Behaviour
from crowdwise.em.confusion import AnnotatorModel, Incidence, Shared
from crowdwise.em.levels import CLASSES, Reading
from crowdwise.em.priors import ClassFrequencies
from crowdwise.em.rounds import Rounds, expectation, run_em
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.progress import SILENT, Reporter
from crowdwise.truths.known import Known
from crowdwise.weights.round_weights import RoundWeights

HardExamples = bool | Literal["auto"]
Joint = bool | Literal["auto"]
Init = Literal["labels", "votes"]

# Whether there are hard examples is found out on no more examples than this, in rounds that need not quite settle.
_ENOUGH, _TRIED = 10_000, 1e-4
# Labels alone are only where the rounds of a classifier begin.
MOST_ROUNDS, TOLERANCE = 1000, 1e-5


@dataclass(frozen=True)
class LabelsFit:
    """What labels alone say.

    Parameters
    ----------
    annotators : Annotators
        How they answer.
    prior : ClassFrequencies
        How frequent classes are.
    rounds : Rounds
        Posterior, objective and whether they settled.
    """

    annotators: Annotators
    prior: ClassFrequencies
    rounds: Rounds

    def posterior_of(self, annotators: Annotators) -> Floats:
        """The posterior of other labels by the same annotators, who are then taken to answer as in this fit."""
        annotators.behaviour = self.annotators.behaviour
        annotators.crowd = self.annotators.crowd
        return expectation(self.prior.log_frequency, annotators.log_likelihood())[0]

    def evidence(self, weight: Floats) -> float:
        """A lower bound of the logarithm of the probability of all labels."""
        return self.annotators.evidence(self.rounds.posterior, weight)


def fit_labels(
    labels: CrowdLabels,
    weight: Floats,
    model: AnnotatorModel,
    *,
    known: Known | None = None,
    difficulties: tuple[int, ...] = (1, 2),
    class_prior: float = 1.0,
    max_rounds: int = MOST_ROUNDS,
    tol: float = TOLERANCE,
    accelerate: bool = True,
    reporter: Reporter = SILENT,
) -> LabelsFit:
    """Estimate annotators and classes in rounds, with the number of difficulties that makes labels most probable.

    Parameters
    ----------
    labels : CrowdLabels
        Classes; every annotator has a label.
    weight : ndarray of shape (n_examples,)
        How much each example counts.
    model : AnnotatorModel
        How annotators err.
    known : Known, default=None
        Examples whose class is known.
    difficulties : tuple of int, default=(1, 2)
        Numbers of difficulties to choose from: 1 has no hard examples.
    class_prior : float, default=1.0
        Examples of every class added when the frequency of classes is estimated.
    max_rounds : int, default=1000
        The most rounds.
    tol : float, default=1e-5
        Stop when probabilities change by no more than this per example.
    accelerate : bool, default=True
        Whether rounds may leap ahead; the same result in fewer rounds.
    reporter : Reporter, default=SILENT
        Reports the rounds, but for those that try the number of difficulties on a part of many examples.

    Returns
    -------
    fit : LabelsFit
    """

    def run(some: CrowdLabels, weight: Floats, n: int, tol: float, begin: LabelsFit | None = None) -> LabelsFit:
        votes = vote_shares(some) if known is None else known.hold(vote_shares(some))
        prior = ClassFrequencies.of_votes(class_prior, votes, weight)
        annotators = Annotators.of(_incidence(some, model), model, votes, n)
        first = votes if begin is None else begin.posterior_of(annotators)
        return go_on(LabelsFit(annotators, prior, Rounds.none(first)), weight, tol)

    def go_on(fit: LabelsFit, weight: Floats, tol: float) -> LabelsFit:
        report = None
        if len(weight) == len(labels):  # of a part of them, nothing is kept
            report = reporter.rounds("labels" if fit.annotators.n_difficulties == 1 else "labels with hard examples")
        rounds = run_em(
            fit.annotators, fit.prior, RoundWeights.fixed(weight), fit.rounds.posterior,
            known=known, max_rounds=max_rounds, tol=tol, accelerate=accelerate, report=report,
            before=fit.rounds.objective,
        )  # fmt: skip
        return replace(fit, rounds=rounds)

    if known is not None and len(difficulties) > 1:
        # Truths that contradict the labels would look like hard examples: whether there are any, labels alone say.
        alone = fit_labels(
            labels, weight, model,
            difficulties=difficulties, class_prior=class_prior, max_rounds=max_rounds, tol=max(tol, _TRIED),
            accelerate=accelerate,
        )  # fmt: skip
        difficulties = (alone.annotators.n_difficulties,)
    if len(difficulties) == 1:
        return run(labels, weight, difficulties[0], tol)
    if len(labels) <= _ENOUGH:
        tried = {n: run(labels, weight, n, max(tol, _TRIED)) for n in difficulties}
        best = max(tried.values(), key=lambda fit: fit.evidence(weight))
        settled = best.rounds.change <= tol
        if settled or best.rounds.n_rounds == max_rounds:
            return replace(best, rounds=replace(best.rounds, converged=settled))
        return go_on(best, weight, tol)
    chosen = np.sort(np.random.default_rng(0).choice(len(labels), _ENOUGH, replace=False))
    tried = {n: run(labels[chosen], weight[chosen], n, max(tol, _TRIED)) for n in difficulties}
    n = max(difficulties, key=lambda n: tried[n].evidence(weight[chosen]))
    return run(labels, weight, n, tol, begin=tried[n])


@dataclass(frozen=True)
class Start:
    """Where the rounds of a classifier begin.

    Parameters
    ----------
    annotators : Annotators
        Estimated from labels alone, or not yet.
    posterior : ndarray of shape (n_examples, n_classes)
        The first consensus.
    joint : bool
        Whether annotators are estimated anew from the consensus of labels and classifier.
    alone : LabelsFit
        What labels alone say: where the rounds end if the classifier does not count.
    """

    annotators: Annotators
    posterior: Floats
    joint: bool
    alone: LabelsFit

    @classmethod
    def believed(cls, labels: CrowdLabels, known: Known | None = None) -> Start:
        """The labels of one annotator, but for known classes: nobody is there to compare with."""
        votes = vote_shares(labels) if known is None else known.hold(vote_shares(labels))
        annotators = Annotators.of(Incidence.of(labels), Shared(), votes, 1)
        annotators.behaviour = Behaviour.always_right(votes.shape[1])
        alone = LabelsFit(annotators, ClassFrequencies(0.0), Rounds.none(votes))
        return cls(annotators, votes, False, alone)


def start_from_labels(
    labels: CrowdLabels,
    weight: Floats,
    model: AnnotatorModel | None,
    *,
    known: Known | None = None,
    hard_examples: Any,
    joint: Any,
    init: Any,
    reading: Reading = CLASSES,
    reporter: Reporter = SILENT,
) -> Start:
    """What the rounds of a classifier begin with.

    Parameters
    ----------
    labels : CrowdLabels
        Classes; every annotator has a label, and there are two or more.
    weight : ndarray of shape (n_examples,)
        How much each example counts.
    model : AnnotatorModel or None
        How annotators err; None is the default for these labels.
    known : Known, default=None
        Examples whose class is known.
    hard_examples : bool or "auto"
        As in `aggregate`.
    joint : bool or "auto"
        Whether annotators are to be estimated anew from the consensus of labels and classifier; "auto" if labels
        show no hard examples.
    init : {"labels", "votes"}
        The first posterior: that of labels alone, or the shares of the votes.
    reading : Reading, default=CLASSES
        Whether classes have an order, and whether abstentions are answers.
    reporter : Reporter, default=SILENT
        Reports the rounds.

    Returns
    -------
    start : Start
    """
    difficulties = check_hard_examples(hard_examples, reading)
    check_choice("joint", joint, (True, False, "auto"))
    check_choice("init", init, ("labels", "votes"))
    model = reading.annotator_model(model)
    fit = fit_labels(labels, weight, model, known=known, difficulties=difficulties, reporter=reporter)
    n_difficulties = fit.annotators.n_difficulties
    joint = n_difficulties == 1 if joint == "auto" else joint
    if init == "labels":
        return Start(fit.annotators, fit.rounds.posterior, joint, fit)
    votes = vote_shares(labels) if known is None else known.hold(vote_shares(labels))
    if not joint:
        return Start(fit.annotators, votes, joint, fit)
    return Start(Annotators.of(_incidence(labels, model), model, votes, n_difficulties), votes, joint, fit)


def _incidence(labels: CrowdLabels, model: AnnotatorModel) -> Incidence:
    return Incidence.of(labels, abstentions=isinstance(model, Abstaining))


def check_hard_examples(hard_examples: Any, reading: Reading = CLASSES) -> tuple[int, ...]:
    """The numbers of difficulties to choose from."""
    check_choice("hard_examples", hard_examples, (True, False, "auto"))
    if hard_examples == "auto" and reading.levels is not None:  # levels nearby take the place of hard examples
        return (1,)
    return {True: (2,), False: (1,), "auto": (1, 2)}[hard_examples]


def vote_shares(labels: CrowdLabels) -> Floats:
    """The share of each class among the labels of each example; even where there is none.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.

    Returns
    -------
    shares : ndarray of shape (n_examples, n_classes)
    """
    counts = labels.tally.astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1.0 / counts.shape[1])
    return np.divide(counts, total, out=even, where=total > 0)
