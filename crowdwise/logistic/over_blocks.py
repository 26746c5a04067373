"""Blocks that are read again in every round -> annotators and a classifier: the logistic model out of core.

What has to be chosen (steepness, l2, hard examples, whether the classifier counts) is chosen by a fit to a sample, and
the rounds over all blocks go on from there. A round is one pass: sums over all examples at the present parameters, then
parameters from these. What needs single examples round after round (the temperature, damping, and how far the average
example moved) is found from the sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise.arrays import Floats
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.em.acceleration import NEAR, Extrapolation
from crowdwise.em.annotators import Annotators, Behaviour, Sharing
from crowdwise.em.confusion import AnnotatorModel, Incidence
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.labels_alone import MOST_ROUNDS, TOLERANCE
from crowdwise.em.levels import Reading
from crowdwise.em.priors import ClassFrequencies, OutOfFold
from crowdwise.em.rounds import expectation, mean_change
from crowdwise.em.temperature import ENOUGH, ClassScores
from crowdwise.em.together import Together
from crowdwise.exceptions import CrowdConvergenceWarning, DataError, warn
from crowdwise.logistic.block_models import BlockModels
from crowdwise.logistic.blocks import CheckedBlock, Mapper, total
from crowdwise.logistic.prior import DAMPING
from crowdwise.logistic.sums import LogisticSums, RoundState, block_sums, row_folds, scores_of, weights_of
from crowdwise.logistic.survey import Survey
from crowdwise.progress import Report, Reporter
from crowdwise.ridge.features import Rows
from crowdwise.softmax.features import LogisticFeatures
from crowdwise.softmax.log_space import log_softmax
from crowdwise.softmax.rows import SoftmaxRows
from crowdwise.weights.class_weights import class_weights
from crowdwise.weights.curricula import Curriculum
from crowdwise.weights.folds import telling_columns
from crowdwise.weights.round_weights import SoftTargets

# Passes in which the classifier of all rows is fitted to the last consensus. It is close enough at this share of the
# tolerance of the rounds; closer than the last number, rounding is all that is left.
_MOST_PASSES, _SETTLED, _ROUNDING = 100, 0.1, 1e-13


@dataclass(frozen=True)
class BlockSettings:
    """The settings of a fit, checked, with what was chosen on the sample.

    Parameters
    ----------
    reading : Reading
        Whether classes have an order, and what is taken of a posterior.
    annotator_model : AnnotatorModel
        How annotators err.
    joint : bool
        Whether annotators are estimated from the consensus of labels and classifier, or from labels alone.
    steepness, label_steepness : float
        How fast an example's weight falls with disagreement; in rounds of labels alone.
    l2 : float
        Strength of the penalty.
    counts : bool
        Whether the classifier counts in the consensus.
    class_prior, cross_fit, curriculum, class_weight, scale, fit_intercept, max_rounds, tol
        As in `CrowdLogisticClassifier`; `class_weight` is what `check_class_weight` gave.
    rng : Generator
        For a curriculum that draws.
    together : Together
        Who shares a vote among the annotators with labels.
    """

    reading: Reading
    annotator_model: AnnotatorModel
    joint: bool
    steepness: float
    label_steepness: float
    l2: float
    counts: bool
    class_prior: float
    cross_fit: int
    curriculum: Curriculum
    class_weight: Floats | str | None
    scale: Scale
    fit_intercept: bool
    max_rounds: int
    tol: float
    rng: np.random.Generator
    together: Together


@dataclass(frozen=True)
class Beginning:
    """Where the rounds begin: what a fit to the sample arrived at."""

    behaviour: Behaviour  # how the annotators with labels answer
    class_prior: Floats  # (n_classes,): how frequent classes are
    coef: Floats  # (n_features, n_outputs): coefficients of the classifier, without temperature
    intercept: Floats  # (n_outputs,)
    temperature: float


@dataclass(frozen=True)
class BlockFit:
    """What the rounds over blocks arrived at."""

    annotators: FittedAnnotators  # how annotators answer, and how frequent classes are
    coef: Floats  # with the temperature in them
    intercept: Floats  # at the shift
    shift: Floats | None
    class_weight: Floats  # (n_classes,): what each class counted for the classifier
    temperature: float
    objective: Floats  # (n_rounds,): one value per round
    converged: bool  # whether the rounds settled
    n_passes: int  # how often all blocks were read after the first pass


def sample_features(sample: CheckedBlock, *, centred: bool) -> LogisticFeatures:
    """Unit and shift of features, from a sample of them; sparse ones are not shifted."""
    if not sparse.issparse(sample.X):
        features = LogisticFeatures.of(sample.X, sample.weight, centred=centred)
        return LogisticFeatures(features.unit, features.rows, None, features.variance)
    unit = LogisticFeatures.of(sample.X, sample.weight, centred=False).unit
    rows = Rows(sample.X / unit, np.zeros(sample.X.shape[1]), intercept=False)
    return LogisticFeatures(unit, rows, None, 1.0)


def in_unit(begin: Beginning, features: LogisticFeatures) -> Floats:
    """Coefficients of the features as they came -> those in the unit and around the shift of features."""
    coef = begin.coef * features.unit
    return np.vstack([coef, begin.intercept + features.rows.shift @ coef])


@dataclass
class BlockRounds:
    """The rounds of one fit."""

    blocks: Iterable[Any]  # can be iterated again; yields (X, labels) or (X, labels, sample_weight)
    survey: Survey  # what is in them
    settings: BlockSettings
    begin: Beginning
    mapper: Mapper[Any]  # maps a function over blocks
    reporter: Reporter
    n_passes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        survey, settings = self.survey, self.settings
        self.sample = survey.sample().among(survey.active, survey.classes)
        self.fold_columns = telling_columns(self.sample.X)
        self.features = sample_features(self.sample, centred=settings.fit_intercept)
        self.rows = SoftmaxRows(
            self.features.X, self.features.shift, np.zeros(len(self.sample), dtype=np.int64),
            settings.fit_intercept, settings.class_prior,
        )  # fmt: skip
        incidence = Incidence.of(self.sample.labels, settings.together.parts(self.sample.labels))
        self.annotators = Annotators.of_behaviour(incidence, settings.annotator_model, self.begin.behaviour)
        self.differs = survey.disagreement(settings.scale)
        self.easiness = example_weights(self.differs, settings.steepness)
        self.class_weight = np.ones(len(survey.classes))
        if isinstance(settings.class_weight, np.ndarray):
            self.class_weight = settings.class_weight
        self.temperature = 1.0

    def fit(self) -> BlockFit:
        """Turn the rounds, and fit the classifier to the last consensus."""
        objective, converged = np.empty(0), True
        n_annotators, n_classes = len(self.survey.active), len(self.survey.classes)
        prior, frequency = np.log(np.full(n_classes, 1 / n_classes)), None
        if n_annotators > 1 and not (self.settings.counts and self.settings.joint):
            frequencies, objective, converged = self._labels_alone()
            prior, frequency = frequencies.log_frequency, frequencies.frequency
        theta, easiness = self._first_theta(1), self.easiness
        if n_annotators > 1 and self.settings.counts:
            prior, theta, easiness, objective, converged = self._labels_and_features()
            frequency = None
        theta, sums = self._whole(prior, theta.mean(axis=1, keepdims=True), easiness)
        if frequency is None:
            frequency = sums.mass / sums.mass.sum()
        theta = theta * self.temperature
        if self.settings.fit_intercept:  # what classes count is not what the classifier found: no temperature
            theta[-1] += (1 - self.temperature) * _outputs(np.log(self.class_weight))
        survey, reading = self.survey, self.settings.reading
        behaviour = self.annotators.behaviour.among(survey.labels_per_annotator > 0)
        annotators = FittedAnnotators(
            survey.annotators, survey.classes, behaviour, frequency, reading.by, reading.levels
        )
        coef = self.features.undo(theta)
        return BlockFit(annotators, *coef, self.class_weight, self.temperature, objective, converged, self.n_passes)

    def _first_theta(self, n_models: int) -> Floats:
        """Coefficients of the sample's classifier, in the unit of these features, for so many models."""
        return np.repeat(in_unit(self.begin, self.features)[:, np.newaxis], n_models, axis=1)

    def _pass(self, prior: Floats, theta: Floats | None, easiness: Floats) -> LogisticSums:
        """Sums over all blocks."""
        shift = self.features.shift
        state = RoundState(
            self.survey.active, self.survey.classes, self.settings.annotator_model, self.annotators.behaviour,
            self.survey.levels, easiness, self.class_weight, self.features.unit, shift, theta, prior,
            self.settings.together, self.fold_columns,
        )  # fmt: skip
        self.n_passes += 1
        sums: LogisticSums | None = total(partial(block_sums, state), self.blocks, self.mapper)
        n_now, n_first = 0 if sums is None else sums.n_examples, self.survey.n_examples
        if sums is None or n_now != n_first:
            raise DataError(
                f"blocks must be the same in every pass; the first had {n_first} examples with labels, pass "
                f"{self.n_passes + 1} had {n_now}. An iterator that is used up cannot be read again."
            )
        if not self.settings.together.all_alike:
            given = self.survey.labels_per_annotator[self.survey.labels_per_annotator > 0]
            self.annotators.sharing = Sharing(self.settings.together.numbers(len(given)), sums.parts / given)
        return sums

    def _labels_alone(self) -> tuple[ClassFrequencies, Floats, bool]:
        """Annotators from labels alone; how frequent classes are, the objective, and whether the rounds settled."""
        easiness = example_weights(self.differs, self.settings.label_steepness)
        weight = weights_of(self.sample, self.survey.levels, easiness)
        prior, report = ClassFrequencies(1.0), self.reporter.rounds("labels")
        prior.log_frequency = np.log(np.maximum(self.begin.class_prior, np.finfo(np.float64).tiny))
        sums = self._pass(prior.log_frequency, None, easiness)
        n_classes, added = len(sums.votes), prior.added
        prior.most = (n_classes * sums.votes + added) / (sums.mass.sum() + n_classes * added)
        extrapolation, objective, change = Extrapolation(self.annotators, prior), [-np.inf], np.inf
        posterior = self._by_labels(prior)
        tol = min(TOLERANCE, self.settings.tol)
        while len(objective) <= MOST_ROUNDS and change > tol:
            self.annotators.settle(sums.counts, sums.share)
            targets = SoftTargets(sums.mass[np.newaxis], np.ones(1), np.ones(n_classes))
            ahead = extrapolation.propose(targets) if change < NEAR else None
            if ahead is None:
                prior.estimate(targets)
            sums, value = self._valued(prior, easiness)
            if ahead is not None and extrapolation.is_worse(value, objective[-1]):
                extrapolation.take_back()
                prior.estimate(targets)
                sums, value = self._valued(prior, easiness)
            objective.append(value)
            previous, posterior = posterior, self._by_labels(prior)
            change = mean_change(posterior, previous, weight)
            _tell(report, objective[1:], change)
        return prior, np.array(objective[1:]), change <= tol

    def _valued(self, prior: ClassFrequencies, easiness: Floats) -> tuple[LogisticSums, float]:
        """The sums at what was estimated, and the objective there."""
        sums = self._pass(prior.log_frequency, None, easiness)
        return sums, sums.evidence + self.annotators.log_prior() + prior.log_density()

    def _by_labels(self, prior: ClassFrequencies) -> Floats:
        """The posterior of the sample by labels alone."""
        return expectation(prior.log_frequency, self.annotators.log_likelihood())[0]

    def _labels_and_features(self) -> tuple[Floats, Floats, Floats, Floats, bool]:
        """The prior, coefficients and weights of the last round, the objective, and whether the rounds settled."""
        settings, objective, change = self.settings, list[float](), np.inf
        report = self.reporter.rounds("labels and features")
        weights = _Weights(settings.curriculum, self.easiness, settings.rng)
        weight = weights_of(self.sample, self.survey.levels, weights.next())
        classifiers = _Classifiers(self, weight)
        sums = self._pass(classifiers.prior, classifiers.models.theta, weights.current)
        posterior = classifiers.posterior()
        while len(objective) < settings.max_rounds and not (change <= settings.tol and weights.settled(settings.tol)):
            if settings.joint:
                self.annotators.settle(sums.counts, sums.share)
            same = self._balance(sums) and weights.same
            previous = posterior
            posterior = classifiers.update(sums, posterior, weight, same_weights=same)
            change = mean_change(posterior, previous, weight)
            weight = weights_of(self.sample, self.survey.levels, weights.next())
            sums = self._pass(classifiers.prior, classifiers.models.theta, weights.current)
            objective.append(sums.evidence + self.annotators.log_prior() + classifiers.log_density(sums))
            _tell(report, objective, change)
        converged = change <= settings.tol and weights.settled(settings.tol)
        if not converged:
            _note_convergence(len(objective), change, settings.tol)
        self.temperature = classifiers.temperature
        return classifiers.prior, classifiers.models.theta, weights.current, np.array(objective), converged

    def _balance(self, sums: LogisticSums) -> bool:
        """Let classes count as the consensus says, if they are to be balanced; whether they count as before."""
        if isinstance(self.settings.class_weight, str):
            balanced = class_weights(self.settings.class_weight, sums.mass[np.newaxis], np.ones(1))
            self.class_weight = np.minimum(balanced, self.survey.n_examples / len(balanced))
        return self.settings.class_weight is None

    def _whole(self, prior: Floats, theta: Floats, easiness: Floats) -> tuple[Floats, LogisticSums]:
        """Coefficients of one classifier of all rows for the last consensus, and the sums over all examples."""
        weight = weights_of(self.sample, self.survey.levels, easiness)
        model = BlockModels(theta, self.features.penalty(self.settings.l2), self.rows, weight)
        for _ in range(_MOST_PASSES):
            sums = self._pass(prior, model.theta, easiness)
            before = model.theta
            same = self._balance(sums)
            if model.step(sums, same_weights=same) <= max(_SETTLED * self.settings.tol, _ROUNDING):
                break
        return before[:, 0], sums


@dataclass
class _Weights:
    """What easiness counts in every round."""

    curriculum: Curriculum
    easiness: Floats
    rng: np.random.Generator
    n_rounds: int = field(default=0, init=False)
    same: bool = field(default=True, init=False)
    current: Floats = field(init=False)

    def next(self) -> Floats:
        """The weights of the levels of disagreement in the next round."""
        self.n_rounds += 1
        share = self.curriculum.share(self.n_rounds, self.rng)
        weights = self.easiness if share == 1 else share * self.easiness + (1 - share)
        self.same = self.n_rounds > 1 and np.array_equal(weights, self.current)
        self.current = weights
        return weights

    def settled(self, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of the last."""
        return bool((self.easiness == 1).all()) or self.curriculum.settled(self.n_rounds, tol)


class _Classifiers:
    """The classifiers of the rounds and the prior made of them, with what the sample says of both."""

    def __init__(self, rounds: BlockRounds, weight: Floats) -> None:
        self.rounds, n_models = rounds, max(rounds.settings.cross_fit, 1)
        self.fold = row_folds(rounds.sample.X, n_models, rounds.fold_columns)
        self.x = rounds.rows.read(slice(None))
        l2 = rounds.features.penalty(rounds.settings.l2)
        self.models = BlockModels(rounds._first_theta(n_models), l2, rounds.rows, weight)
        self.prior_of = None
        if rounds.settings.cross_fit:  # the sample is in the order of its keys
            some = np.arange(min(len(self.fold), ENOUGH))
            self.prior_of = OutOfFold(self, damping=DAMPING, some=some)
        self.prior = self._tempered(rounds.begin.temperature if rounds.settings.cross_fit else 1.0)

    @property
    def temperature(self) -> float:
        return 1.0 if self.prior_of is None else self.prior_of.temperature

    def posterior(self) -> Floats:
        """The posterior of the sample."""
        scores = scores_of(self.x, self.prior)[np.arange(len(self.fold)), self.fold]
        return expectation(log_softmax(scores), self.rounds.annotators.log_likelihood())[0]

    def update(self, sums: LogisticSums, posterior: Floats, weight: Floats, *, same_weights: bool) -> Floats:
        """One step, and a prior from it; the posterior of the sample then."""
        self.models.step(sums, same_weights=same_weights)
        if self.prior_of is None:
            self.prior = self._tempered(1.0)
            return self.posterior()
        likelihood = self.rounds.annotators.log_likelihood()
        targets = SoftTargets(posterior, weight, self.rounds.class_weight)
        self.prior_of.total = float(sums.mass.sum())
        log_prior = self.prior_of.update(targets, likelihood)
        # Logarithms of probabilities are linear in the coefficients, but for what makes them sum to one: the share of
        # the last round that is kept of them is kept of the coefficients.
        kept = self.prior_of.damping if self.prior_of.is_damped else 0.0
        self.prior = (1 - kept) * self._tempered(self.temperature) + kept * self.prior
        return expectation(log_prior, likelihood)[0]

    def out_of_fold(self, targets: SoftTargets) -> ClassScores:
        """What the models say about the rows of the sample that they leave out."""
        scores = scores_of(self.x, self.models.theta)[np.arange(len(self.fold)), self.fold]
        return ClassScores(scores, targets.class_weight, are_probabilities=True)

    def log_density(self, sums: LogisticSums) -> float:
        """Logarithm of the prior of the classifier, if it is one."""
        return self.models.log_density(sums) if self.prior_of is None else 0.0

    def _tempered(self, temperature: float) -> Floats:
        """Coefficients whose scores are logarithms of the probabilities of the consensus."""
        prior = temperature * self.models.theta
        prior[-1] -= temperature * _outputs(np.log(self.rounds.class_weight))
        return prior


def _outputs(of_classes: Floats) -> Floats:
    """What is added to the scores of classes, for one output if there are two of them."""
    return of_classes[1:] - of_classes[0] if len(of_classes) == 2 else of_classes


def _tell(report: Report | None, objective: list[float], change: float) -> None:
    if report is not None:
        report(len(objective), objective[-1], change)


def _note_convergence(n_rounds: int, change: float, tol: float) -> None:
    warn(
        f"after {n_rounds} rounds the probabilities still changed by {change:.2g} per example (tol={tol:g}), or the "
        "curriculum still changes the weights. Raise max_rounds or tol.",
        CrowdConvergenceWarning,
    )
