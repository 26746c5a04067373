"""Labels alone -> annotators and classes, estimated together: what `aggregate` gives and classifiers begin with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.checks import check_choice
from crowdwise.crowd.beyond_class import estimated_common
from crowdwise.crowd.groups import check_groups
from crowdwise.crowd.pairs import copies, enough_pairs, groups_of_pairs, numbered, suspects
from crowdwise.crowd.votes import COMMON_ERRORS, same_answer, vote_counts
from crowdwise.em.abstaining import Abstaining
from crowdwise.em.annotators import Annotators, Sharing, label_residuals
from crowdwise.em.confusion import AnnotatorModel, Incidence
from crowdwise.em.guard import classes_hold
from crowdwise.em.levels import CLASSES, Reading
from crowdwise.em.ordinal import Ordinal
from crowdwise.em.priors import ClassFrequencies
from crowdwise.em.rounds import Rounds, expectation, run_em
from crowdwise.em.together import Together, vote_strength
from crowdwise.exceptions import warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown
from crowdwise.progress import SILENT, Reporter
from crowdwise.training_set import TrainingSet
from crowdwise.truths.known import Known
from crowdwise.weights.class_weights import leading_shares
from crowdwise.weights.round_weights import RoundWeights

HardExamples = bool | Literal["auto"]

# Whether there are hard examples is found out on no more examples than this, in rounds that need not quite settle; of
# more examples a part is enough, and so are so many rounds.
_ENOUGH, _TRIED, _ROUNDS_OF_PART = 10_000, 1e-4, 30
# Rounds with hard examples are given up if so many more, or as many as are left, would not make up for the evidence
# that they are behind, at the pace of the last few; but not while they are less than this behind per example.
_MORE_ROUNDS, _FEW_ROUNDS, _BEHIND = 50, 5, 0.02
# If the logarithm of the probability of an example's labels differs by less than this, both go on until they settle. If
# it then still does, so little may come from errors in common: there are no hard examples, unless with them the
# consensus is the majority's on more examples, by at least this share.
_CLOSE, _NEARER = 0.01, 0.005
# Labels alone are where the rounds of a classifier begin: they need not settle further, unless those rounds are to.
MOST_ROUNDS, TOLERANCE = 1000, 1e-5
# Probabilities of an example never change by more.
_ANY = 2.0


@dataclass(frozen=True)
class LabelsFit:
    """What labels alone say."""

    annotators: Annotators  # how they answer
    prior: ClassFrequencies  # how frequent classes are
    rounds: Rounds  # posterior, objective and whether they settled
    together: Together = field(default_factory=Together)  # who shares a vote, and what may be stated

    def posterior_of(self, annotators: Annotators) -> Floats:
        """The posterior of other labels by the same annotators, who are then taken to answer as in this fit."""
        annotators.behaviour = self.annotators.behaviour
        return expectation(self.prior.log_frequency, annotators.log_likelihood())[0]

    def believed(self, labels: CrowdLabels) -> Floats:
        """The probabilities of classes to state of these labels, which the fit is of."""
        strength = vote_strength(self.annotators.behaviour.by_class(), self.prior.frequency)
        return self.together.stated(self.rounds.posterior, labels, self.prior.log_frequency, strength)

    def evidence(self, weight: Floats) -> float:
        """A lower bound of the logarithm of the probability of all labels."""
        return self.annotators.evidence(self.rounds.posterior, weight)

    def with_common(self, labels: CrowdLabels, weight: Floats) -> LabelsFit:
        """The same, errors in common being as many as these labels, which the fit is of, make probable."""
        confusion, together = self.annotators.behaviour.answers(), self.together
        common = estimated_common(labels, self.rounds.posterior, confusion, weight, together.group)
        return replace(self, together=replace(together, common=common))


@dataclass
class _Race:
    """Rounds that are behind others in evidence, and whether they may still make up for it."""

    annotators: Annotators  # those that the rounds estimate
    weight: Floats  # (n_examples,): how much each example counts
    to_beat: float  # the evidence of the others; minus infinity if there are none
    most: int  # rounds at most
    _n_rounds: int = field(default=0, init=False)
    _evidence: float = field(default=-np.inf, init=False)

    def is_lost(self, posterior: Floats) -> bool:
        """Whether to give up, after one more round."""
        self._n_rounds += 1
        if self.to_beat == -np.inf or self._n_rounds % _FEW_ROUNDS:
            return False
        before, self._evidence = self._evidence, self.annotators.evidence(posterior, self.weight)
        pace = (self._evidence - before) / _FEW_ROUNDS
        n_more = max(1, min(_MORE_ROUNDS, self.most - self._n_rounds))
        return self.to_beat - self._evidence > max(n_more * pace, _BEHIND * self.weight.sum())


def fit_labels(
    labels: CrowdLabels,
    weight: Floats,
    model: AnnotatorModel,
    *,
    together: Together | None = None,
    known: Known | None = None,
    difficulties: tuple[int, ...] = (1, 2),
    class_prior: float = 1.0,
    max_rounds: int = MOST_ROUNDS,
    tol: float = TOLERANCE,
    accelerate: bool = True,
    reporter: Reporter = SILENT,
) -> LabelsFit:
    """Estimate annotators and classes in rounds, with the number of difficulties that makes labels most probable.

    Every annotator has a label. By default annotators err independently; if they do not, the fit says how far they err
    together, and whether its classes can be believed to mean what labels say. One difficulty is no hard examples. The
    `class_prior` is examples of every class added when their frequency is estimated. Rounds that try the number of
    difficulties on a part of many examples are not reported.
    """

    together = Together() if together is None else together

    def run(
        some: CrowdLabels,
        weight: Floats,
        n: int,
        tol: float,
        *,
        begin: LabelsFit | None = None,
        to_beat: float = -np.inf,
    ) -> LabelsFit:
        annotators, votes = first_annotators(some, model, together, n, known)
        prior = ClassFrequencies.of_votes(class_prior, votes, weight)
        first = votes if begin is None else begin.posterior_of(annotators)
        return go_on(LabelsFit(annotators, prior, Rounds.none(first), together), weight, tol, to_beat)

    def go_on(fit: LabelsFit, weight: Floats, tol: float, to_beat: float = -np.inf) -> LabelsFit:
        report, most = None, min(max_rounds, _ROUNDS_OF_PART)
        if len(weight) == len(labels):  # of a part of them, nothing is kept
            most = max_rounds
            if len(fit.rounds.objective) == most:
                return fit
            report = reporter.rounds("labels" if fit.annotators.n_difficulties == 1 else "labels with hard examples")
        rounds = run_em(
            fit.annotators, fit.prior, RoundWeights.fixed(weight), fit.rounds.posterior,
            known=known, max_rounds=most, tol=tol, accelerate=accelerate, report=report,
            before=fit.rounds.objective, give_up=_Race(fit.annotators, weight, to_beat, most).is_lost,
        )  # fmt: skip
        return replace(fit, rounds=rounds)

    def most_probable(some: CrowdLabels, weight: Floats) -> LabelsFit:
        tried, evidence = list[LabelsFit](), list[float]()
        for n in difficulties:
            tried.append(run(some, weight, n, max(tol, _TRIED), to_beat=max(evidence, default=-np.inf)))
            evidence.append(tried[-1].evidence(weight))
        # Rounds that still rise may decide it; those of a part are ended early anyway.
        if len(some) == len(labels) and np.ptp(evidence) < _CLOSE * weight.sum():
            tried = [go_on(fit, weight, tol) for fit in tried]
            evidence = [fit.evidence(weight) for fit in tried]
        least = max(evidence) - _CLOSE * weight.sum()
        close = [fit for fit, reached in zip(tried, evidence, strict=True) if reached >= least]
        if len(close) == 1:
            return close[0]
        votes = together.votes(some)
        return max(close, key=lambda fit: _majority_share(fit, votes, weight) - _NEARER * fit.annotators.n_difficulties)

    def best() -> LabelsFit:
        if together.n_voters(labels.n_annotators) == 1:  # nobody to compare with: who has the only vote is believed
            return run(labels, weight, difficulties[0], _ANY)
        if len(difficulties) == 1:
            return run(labels, weight, difficulties[0], tol)
        if len(labels) > _ENOUGH:
            some = np.sort(np.random.default_rng(0).choice(len(labels), _ENOUGH, replace=False))
            chosen = most_probable(labels[some], weight[some])
            return run(labels, weight, chosen.annotators.n_difficulties, tol, begin=chosen)
        chosen = most_probable(labels, weight)
        settled = chosen.rounds.change <= tol
        if settled or len(chosen.rounds.objective) == max_rounds:
            return replace(chosen, rounds=replace(chosen.rounds, converged=settled))
        return go_on(chosen, weight, tol)

    if known is not None and len(difficulties) > 1:
        # Truths that contradict the labels would look like hard examples: whether there are any, labels alone say.
        alone = fit_labels(
            labels, weight, model,
            together=together, difficulties=difficulties, class_prior=class_prior, max_rounds=max_rounds,
            tol=max(tol, _TRIED), accelerate=accelerate,
        )  # fmt: skip
        difficulties = (alone.annotators.n_difficulties,)
    fit = best()
    if together.common == 0:
        return fit
    fit = fit.with_common(labels, weight)
    # Levels keep their places, and single labels, which no other label confirms, are the consensus anyway.
    has_order = isinstance(model.model if isinstance(model, Abstaining) else model, Ordinal)
    if has_order or labels.labels_per_example.max(initial=0) < 2:
        return fit
    hold = classes_hold(fit.annotators, fit.prior.log_frequency, fit.rounds.posterior, weight)
    return replace(fit, together=replace(fit.together, by_votes=not hold))


def _majority_share(fit: LabelsFit, votes: Floats, weight: Floats) -> float:
    """The share of examples whose most probable class has most votes; of several such classes, each has a part."""
    chosen = fit.rounds.posterior.argmax(axis=1)
    return float(np.average(leading_shares(votes)[np.arange(len(votes)), chosen], weights=weight))


def first_annotators(
    labels: CrowdLabels, model: AnnotatorModel, together: Together, n_difficulties: int, known: Known | None = None
) -> tuple[Annotators, Floats]:
    """Annotators of whom nothing is known yet, and the shares of their votes, or the classes that are known."""
    part, sharing = together.parts(labels), None
    if part is not None:
        sharing = Sharing.of(together.answers(labels), together.numbers(labels.n_annotators), part)
    votes = _shares(together.votes(labels))
    votes = votes if known is None else known.hold(votes)
    incidence = Incidence.of(labels, part, abstentions=isinstance(model, Abstaining))
    return Annotators.of(incidence, model, votes, n_difficulties, sharing), votes


def who_errs_together(
    training: TrainingSet,
    weight: Floats,
    model: AnnotatorModel,
    *,
    difficulties: tuple[int, ...],
    groups: Any,
    errors_in_common: Any,
) -> Together:
    """Who shares a vote among the annotators of a fit, as users say or as labels show, and who has none."""
    group, abstentions = check_groups(groups, training.labels.annotators), isinstance(model, Abstaining)
    if not check_choice("errors_in_common", errors_in_common, (True, False)):
        if group is not None:
            raise ValueError("groups err together: with errors_in_common=False they have no effect. Give one of both.")
        return Together()
    if group is not None:
        group = numbered(group[training.active])
        together = Together(group, COMMON_ERRORS, given=True, abstentions=abstentions)
        if together.one_group:
            _note_one_group(training.core.n_annotators)
    else:
        together = find_copies(training.core, weight, model, difficulties)
    silent = same_answer(training.core)
    if abstentions:  # to abstain is another answer
        silent &= training.core.abstentions_per_annotator == 0
    if silent.all() or not silent.any():
        return together
    together = replace(together, silent=silent)
    if (n_voters := together.n_voters(len(silent))) <= 2:  # of more, a flag is enough
        _note_silent(training.core.annotators[silent].tolist(), n_voters)
    return together


def _note_one_group(n_annotators: int) -> None:
    """Say that nobody is left to compare annotators with."""
    warn(
        f"groups puts all {n_annotators} annotators into one: they have one vote together, so nothing can be told "
        "about them, neither whom to believe nor how often each is right; an accuracy stated of one does not measure "
        "it. Leave groups out, or put together only those who err together."
    )


def _note_silent(names: list[Any], n_voters: int) -> None:
    """Say that few annotators are left who have a say."""
    who = " and ".join(map(shown, names[:3])) + (" and others" if len(names) > 3 else "")
    left = "One annotator is left to be believed." if n_voters == 1 else "Two are left; labels do not tell who errs."
    warn(
        f"{who} always gave the same answer where others did not. That says nothing about an example, and has no say "
        f"in the consensus. {left}"
    )


def find_copies(labels: CrowdLabels, weight: Floats, model: AnnotatorModel, difficulties: tuple[int, ...]) -> Together:
    """Who shares a vote, if nobody says so: annotators whose labels are nearly the same, errors included."""
    rows = enough_pairs(labels)
    some, weight = (labels, weight) if rows is None else (labels[rows], weight[rows])
    suspected, alone = suspects(some), Together(common=COMMON_ERRORS, abstentions=isinstance(model, Abstaining))
    if not len(suspected):
        return alone
    as_one = replace(alone, group=groups_of_pairs(suspected, some.n_annotators), common=0.0)
    fit = fit_labels(some, weight, model, together=as_one, difficulties=difficulties, tol=_TRIED)
    residual = label_residuals(some, fit.annotators.states(fit.rounds.posterior), fit.annotators.behaviour)
    found = copies(some, residual, suspected)
    return replace(alone, group=groups_of_pairs(found, some.n_annotators)) if len(found) else alone


def check_hard_examples(hard_examples: Any, reading: Reading = CLASSES) -> tuple[int, ...]:
    """The numbers of difficulties to choose from."""
    check_choice("hard_examples", hard_examples, (True, False, "auto"))
    if hard_examples == "auto" and reading.levels is not None:  # levels nearby take the place of hard examples
        return (1,)
    return {True: (2,), False: (1,), "auto": (1, 2)}[hard_examples]


def vote_shares(labels: CrowdLabels, part: Floats | None = None) -> Floats:
    """The share of each class among the labels of each example; even where there is none.

    `part` is what each label counts, if not all count one.
    """
    return _shares(vote_counts(labels, part))


def _shares(counts: Floats) -> Floats:
    """The share of each class among votes."""
    total = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1.0 / counts.shape[1])
    return np.divide(counts, total, out=even, where=total > 0)
