"""Features and labels in memory -> the logistic model: choices, rounds, and the classifier of the last consensus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdwise.arrays import Codes, Floats, Positions
from crowdwise.checks import check_seed
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.em.fitted import FittedAnnotators, fit_results
from crowdwise.em.guard import note_votes, predicts_truth
from crowdwise.em.priors import OutOfFold
from crowdwise.em.rounds import note_convergence, run_em
from crowdwise.em.temperature import ENOUGH, ClassScores, best_temperature
from crowdwise.em.together import Together
from crowdwise.em.with_features import Start, WithFeaturesMixin
from crowdwise.logistic.fitted import FittedLogistic
from crowdwise.logistic.prior import CLOSE, DAMPING, STEPS_TO_SETTLE, InSample, SoftmaxData, SoftmaxFolds
from crowdwise.logistic.survey import first_of_sample
from crowdwise.progress import Reporter
from crowdwise.ridge.auto_steepness import auto_steepness
from crowdwise.ridge.features import N_FOLDS
from crowdwise.softmax.features import LogisticFeatures
from crowdwise.softmax.log_space import log_softmax
from crowdwise.softmax.models import SoftmaxModels
from crowdwise.training_set import TrainingSet, note_effective_number
from crowdwise.weights.class_weights import check_class_weight
from crowdwise.weights.curricula import Curriculum, check_curriculum
from crowdwise.weights.folds import content_folds
from crowdwise.weights.round_weights import RoundWeights, SoftTargets

# Penalties to choose from, for features of variance one, the simplest classifier first.
_PENALTIES = (1e3, 1e2, 1e1, 1e0, 1e-1)
# How many examples are enough to choose one.
_ENOUGH_TO_CHOOSE = 20_000
# How exactly each is fitted; the next goes on from there.
_MOST_STEPS, _NEAR = 30, 3e-3


@dataclass(frozen=True)
class FirstModels:
    """Classifiers of the first consensus that leave a fold out."""

    l2: float  # their penalty
    theta: Floats  # (n_features + 1, n_folds, n_outputs): coefficients: where rounds with these folds may begin
    some: Positions  # the examples that they were fitted to
    scores: ClassScores  # what they say about these, each held out


def first_models(data: SoftmaxData, targets: SoftTargets, fold: Codes, variance: float | None) -> FirstModels | None:
    """Classifiers of the first consensus, their penalty by cross-validation with the one-standard-error rule.

    Held-out examples are scored by the log-likelihood of the first consensus, not of the labels: where features predict
    what misleads annotators, a classifier of fine distinctions explains labels best and the truth worse. The largest
    penalty within a standard error of the best is taken (Breiman et al.). Penalties, relative to the variance of an
    average feature, are tried from the largest on, each going on from the last, until held-out examples are predicted
    less well. Without a variance the penalty is that of the data. None comes out if there are no examples to leave out.
    """
    some = np.arange(len(fold))
    if len(some) > _ENOUGH_TO_CHOOSE:
        some = np.sort(np.random.default_rng(0).choice(len(some), _ENOUGH_TO_CHOOSE, replace=False))
    targets = SoftTargets(targets.posterior[some], targets.weight[some], targets.class_weight)
    posterior, weight = targets.by_class()
    fold = fold[some]
    n_folds = int(fold.max(initial=0)) + 1
    if n_folds < 2 or not all(weight[fold != k].any() for k in range(n_folds)):
        return None
    data = replace(data, X=data.X if len(some) == data.X.shape[0] else data.X[some])
    models, tried, how_well = data.models(fold), list[FirstModels](), list[Floats]()
    models.aim(posterior, weight)
    for l2 in (data.l2,) if variance is None else variance * np.array(_PENALTIES):
        models.penalise(float(l2))
        theta = models.go_on(max_steps=_MOST_STEPS, tol=_NEAR)
        scores = ClassScores(models.held_out_scores, targets.class_weight, are_probabilities=True)
        tried.append(FirstModels(float(l2), theta, some, scores))
        how_well.append(np.einsum("ik,ik->i", posterior, log_softmax(scores.scores)))
        if len(how_well) > 1 and weight @ how_well[-1] < weight @ how_well[-2]:
            break
    return tried[simplest_of_the_best(np.array(how_well), weight)]


def simplest_of_the_best(scores: Floats, weight: Floats) -> int:
    """The first of several candidates that is not worse than the best by more than a standard error of the best.

    Scores say how well each does on every example, the simplest candidate first.
    """
    share = weight / weight.sum()
    mean = scores @ share
    best = mean.argmax()
    error = np.sqrt(share @ (scores[best] - mean[best]) ** 2 / weight.sum())
    return int((mean >= mean[best] - error).argmax())


def _mean(theta: Floats | None, n_models: int) -> Floats | None:
    """The mean coefficients of models, for so many others to begin with."""
    return None if theta is None else np.repeat(theta.mean(axis=1, keepdims=True), n_models, axis=1)


class LogisticInMemoryMixin(WithFeaturesMixin):
    """Learns from examples that are all there."""

    fitted_: FittedLogistic
    l2_: float
    temperature_: float
    by_votes_: bool
    n_features_in_: int
    l2: float | Literal["auto"]
    class_prior: float
    cross_fit: int
    curriculum: Curriculum | None
    class_weight: dict[Any, float] | str | None
    fit_intercept: bool
    max_rounds: int
    random_state: int | np.random.Generator | None

    def _fit(
        self, training: TrainingSet, steepness: float, groups: Any, reporter: Reporter, warm: FittedLogistic | None
    ) -> None:
        features = LogisticFeatures.of(training.rows, training.sample_weight, centred=self.fit_intercept)
        weights = self._weights(training, features, steepness)
        note_effective_number(weights.first, self.n_features_in_)
        together = self._together(training, weights.first, groups)
        start = self._start(training, weights, together, reporter, warm)
        fold = content_folds(training.rows, N_FOLDS)
        data, first = self._first_models(features, fold, weights.again(start.posterior))
        self.temperature_, self.model_weight_ = 1.0, 1.0
        last = data.model(_mean(None if first is None else first.theta, 1))
        self.by_votes_ = start.alone.together.by_votes
        if training.core.n_annotators == 1:
            rounds = start.alone.rounds
        elif self.by_votes_:
            note_votes(start.alone.together, training.known is not None, self.kind)
            self.model_weight_, rounds = 0.0, start.alone.rounds
        elif self.cross_fit and not self._features_count(training, first, start):
            start = self._without_features(training, start, reporter)
            rounds = start.alone.rounds
        else:
            models, prior = self._prior(data, training, fold, first, start, weights)
            rounds = run_em(
                start.annotators, prior, weights, start.posterior,
                joint=start.joint, known=training.known, max_rounds=self.max_rounds, tol=self.tol,
                accelerate=bool(self.cross_fit), report=reporter.rounds("labels and features"),
            )  # fmt: skip
            note_convergence(rounds, weights, self.tol)
            self.temperature_, last = prior.temperature, models.of_all_rows()
        targets = weights.again(start.alone.believed(training.core) if self.by_votes_ else rounds.posterior)
        annotators, check = self._fitted_annotators(training, start, rounds, targets)
        self.fitted_ = self._record(annotators, features, last, targets)
        self._keep(fit_results(training, self.fitted_, rounds, self.steepness_, check))

    def _weights(self, training: TrainingSet, features: LogisticFeatures, steepness: float) -> RoundWeights:
        differs = training.core_disagreement
        if np.isnan(steepness):  # "auto"
            steepness = auto_steepness(features.rows.X, training.core, training.sample_weight, differs)
        self.steepness_ = steepness
        return RoundWeights(
            check_curriculum(self.curriculum),
            example_weights(training.weighing_disagreement, steepness),
            training.sample_weight,
            check_class_weight(self.class_weight, training.classes),
            check_seed(self.random_state),
            None if training.known is None else training.known.at,
        )

    def _start(
        self,
        training: TrainingSet,
        weights: RoundWeights,
        together: Together,
        reporter: Reporter,
        warm: FittedLogistic | None,
    ) -> Start:
        start = self._labels_alone(training, weights.first, together, reporter)
        if warm is None or training.core.n_annotators == 1 or not warm.knows(training):
            return start
        return replace(start, posterior=warm.consensus(training.rows, training.core).proba)

    def _first_models(
        self, features: LogisticFeatures, fold: Codes, targets: SoftTargets
    ) -> tuple[SoftmaxData, FirstModels | None]:
        """Features with their penalty, and classifiers of the first consensus."""
        data = SoftmaxData(
            features.X, features.shift, features.variance, self.class_prior, self.fit_intercept, min(CLOSE, self.tol)
        )
        if not isinstance(self.l2, str):
            self.l2_ = float(self.l2)
            data = replace(data, l2=features.penalty(self.l2_))
            return data, first_models(data, targets, fold, None) if self.cross_fit else None
        first = first_models(data, targets, fold, features.variance)
        l2 = features.variance if first is None else first.l2
        # Of features beyond 1e154 the penalty in their own unit is beyond the largest number.
        self.l2_ = float(min(l2 * features.unit * features.unit, np.finfo(np.float64).max))
        return replace(data, l2=l2), first

    def _features_count(self, training: TrainingSet, first: FirstModels | None, start: Start) -> bool:
        """Whether the classifier predicts the truth, as far as labels can tell."""
        if first is None:
            return True
        labels = training.core if len(first.some) == len(training.core) else training.core[first.some]
        return predicts_truth(
            first.scores, labels, start.alone.annotators.behaviour, training.sample_weight[first.some]
        )

    def _prior(
        self,
        data: SoftmaxData,
        training: TrainingSet,
        fold: Codes,
        first: FirstModels | None,
        start: Start,
        weights: RoundWeights,
    ) -> tuple[SoftmaxModels, InSample | OutOfFold]:
        """The classifiers of the rounds, beginning with the first ones, and the prior made of them."""
        theta = None if first is None else first.theta
        if self.cross_fit == N_FOLDS and first is not None and len(first.some) < len(fold):
            behaviour, labels = start.alone.annotators.behaviour, training.core[first.some]
            likelihood = behaviour.log_likelihood(behaviour.incidence(labels))
            # They are as unsure as the labels that they were fitted to; the consensus that they are part of is surer.
            sure = best_temperature(first.scores, likelihood, training.sample_weight[first.some])
            folds = SoftmaxFolds(data.models(fold, first.theta * sure), data.close, n_steps=1)
            scores = folds.as_they_are(weights.again(start.posterior))
            return folds.models, OutOfFold(folds, damping=DAMPING, first=scores, some=self._for_temperature(training))
        if self.cross_fit not in (0, N_FOLDS):
            fold, theta = content_folds(training.rows, self.cross_fit), _mean(theta, self.cross_fit)
        if self.cross_fit and fold.max() > 0:  # one example cannot be left out
            models = data.models(fold, theta)
            folds = SoftmaxFolds(models, data.close)
            return models, OutOfFold(folds, damping=DAMPING, some=self._for_temperature(training))
        model = data.model(_mean(theta, 1))
        return model, InSample(model, data.close)

    def _for_temperature(self, training: TrainingSet) -> Positions | None:
        """The examples that are enough to find a temperature: those that rounds over blocks have, too."""
        return first_of_sample(training.rows, training.core, ENOUGH)

    def _record(
        self, annotators: FittedAnnotators, features: LogisticFeatures, last: SoftmaxModels, targets: SoftTargets
    ) -> FittedLogistic:
        """The classifier fitted to the last consensus, with the temperature of the rounds, and the annotators."""
        close = min(CLOSE, self.tol)
        theta = last.fit(*targets.by_class(), max_steps=STEPS_TO_SETTLE, tol=close)[:, 0] * self.temperature_
        if self.fit_intercept:  # what classes count is not what the classifier found, and has no temperature
            counted = np.log(targets.class_weight)
            theta[-1] += (1 - self.temperature_) * (counted[1:] - counted[0] if theta.shape[1] == 1 else counted)
        return FittedLogistic(annotators, *features.undo(theta), targets.class_weight, self.model_weight_)
