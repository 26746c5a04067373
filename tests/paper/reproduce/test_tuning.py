from functools import cache, partial

import numpy as np
import pytest
from marks import in_slow_run

from crowdwise import CrowdLabels
from crowdwise.crowd import disagreement
from crowdwise.paper.reproduce.draws import draw_usable, synthetic
from crowdwise.paper.reproduce.tuning import MAX_ROUNDS, stratified_folds, tuned
from crowdwise.ridge.classifier import PAPER_L2S


def small_draw(seed, n_each):
    """The first examples of either class of a noisy data set, the positive ones first."""
    drawn = draw_usable(partial(synthetic, clarity=1.0), np.random.default_rng(seed), redraw=True)
    some = np.r_[0:n_each, 250 : 250 + n_each]
    return drawn.X[some], CrowdLabels.from_matrix(drawn.labels.to_matrix()[some])


def ridge(X, y, g, l2):
    """Weighted ridge regression by its normal equations, with an intercept that is not penalised."""
    centre, mean = g @ X / g.sum(), g @ y / g.sum()
    weighted = g[:, None] * (X - centre)
    coef = np.linalg.solve(weighted.T @ (X - centre) + l2 * np.eye(X.shape[1]), weighted.T @ (y - mean))
    return coef, mean - centre @ coef


@cache
def plain_loop(place, steepness, *, follow=True):
    """The method with the paper's own g (none at steepness 0), one ridge regression per round, fold and l2."""
    X, labels = small_draw(*place)
    votes = labels.to_matrix().astype(float)
    g = np.ones(len(X)) if steepness == 0 else 1 / (1 + np.exp(steepness * disagreement(labels)))
    consensus, expertise, cuts = votes.mean(axis=1), np.ones(votes.shape[1]), []
    for n_rounds in range(1, MAX_ROUNDS + 1):
        if follow or not cuts:
            cuts.append(stratified_folds(np.sign(consensus)))
        error = np.zeros(len(PAPER_L2S))
        for k in range(10):
            train, held_out = cuts[-1] != k, cuts[-1] == k
            for i, l2 in enumerate(PAPER_L2S):
                coef, intercept = ridge(X[train], consensus[train], g[train], l2)
                error[i] += ((X[held_out] @ coef + intercept - consensus[held_out]) ** 2).sum()
        best = PAPER_L2S[error.argmin()]
        coef, intercept = ridge(X, consensus, g, best)
        before, expertise = expertise, 1 / (g[:, None] * (votes - (X @ coef + intercept)[:, None]) ** 2).mean(axis=0)
        consensus = votes @ expertise / expertise.sum()
        if n_rounds > 1 and np.abs(expertise / before - 1).max() < 1e-7:
            break
    return coef, best, n_rounds, len({cut.tobytes() for cut in cuts})


@pytest.mark.parametrize("place", [(0, 30), in_slow_run((4, 60))], ids=str)
@pytest.mark.parametrize(("steepness", "over_g"), [(0.0, 1), (2.0, 2)], ids=["unweighted", "weighted"])
def test_the_models_are_those_of_the_papers_formulas(place, steepness, over_g):
    """With g instead of the weight, and the paper's l2 as they are: ours are doubled only where g is used."""
    X, labels = small_draw(*place)
    (model,) = tuned(X, labels, [steepness])
    coef, l2, n_rounds, n_cuts = plain_loop(place, steepness)
    assert n_cuts > 1  # the folds did follow
    assert (model.l2, model.n_rounds, model.converged) == (over_g * l2, n_rounds, n_rounds < MAX_ROUNDS)
    np.testing.assert_allclose(model.coef, coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("steepness", [2.0, in_slow_run(0.0)])
def test_folds_that_stayed_would_give_another_model(steepness):
    """Or the test above could not tell."""
    assert plain_loop((0, 30), steepness, follow=False)[1] != plain_loop((0, 30), steepness)[1]


def test_a_model_does_not_depend_on_which_others_are_tuned():
    X, labels = small_draw(2, 60)
    alone, among = tuned(X, labels, [1.0])[0], tuned(X, labels, [0.0, 5.0, 1.0])[2]
    np.testing.assert_array_equal(alone.coef, among.coef)
    assert (alone.steepness, alone.l2, alone.n_rounds) == (among.steepness, among.l2, among.n_rounds)
