"""The first consensus -> how strongly coefficients are penalised, and what classifiers say about examples held out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdwise.arrays import Codes, Floats, Positions
from crowdwise.em.temperature import ClassScores
from crowdwise.logistic.prior import SoftmaxData
from crowdwise.softmax.log_space import log_softmax
from crowdwise.weights.round_weights import SoftTargets

# Penalties to choose from, for features of variance one, the simplest classifier first.
_PENALTIES = (1e3, 1e2, 1e1, 1e0, 1e-1)
# How many examples are enough to choose one.
_ENOUGH = 20_000
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
    if len(some) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(some), _ENOUGH, replace=False))
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
