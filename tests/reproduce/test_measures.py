from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from crowdwise import disagreement
from crowdwise.models.ridge_cv import PAPER_L2S
from crowdwise.reproduce.draws import draw_usable, synthetic
from crowdwise.reproduce.measures import COLUMNS, measure, tuned


@pytest.fixture(scope="module")
def drawn():
    return draw_usable(partial(synthetic, clarity=1.0), np.random.default_rng(3), redraw=True)


def paper_fit(X, labels, steepness, l2s, cv):
    """The method with the paper's own g (none at steepness 0), one scikit-learn ridge per round, fold and l2."""
    votes = labels.to_matrix().astype(float)
    g = np.ones(len(X)) if steepness == 0 else 1 / (1 + np.exp(steepness * disagreement(labels)))
    target = votes.mean(axis=1)
    for _ in range(12):
        error = np.zeros(len(l2s))
        for train, held in cv.split(X):
            for i, l2 in enumerate(l2s):
                model = Ridge(alpha=l2).fit(X[train], target[train], sample_weight=g[train])
                error[i] += ((model.predict(X[held]) - target[held]) ** 2).sum()
        model = Ridge(alpha=l2s[error.argmin()]).fit(X, target, sample_weight=g)
        expertise = 1 / (g[:, None] * (votes - model.predict(X)[:, None]) ** 2).mean(axis=0)
        target = votes @ expertise / expertise.sum()
    return model, l2s[error.argmin()]


@pytest.mark.parametrize("place", [0, 1], ids=["unweighted", "weighted"])
def test_the_models_are_those_of_the_papers_formulas(drawn, place):
    """With g instead of the weight, and the paper's l2 as they are: ours are doubled only where g is used."""
    cv = KFold(4, shuffle=True, random_state=0)
    models = tuned(drawn.X, drawn.labels, [2.0], cv)
    model, l2 = paper_fit(drawn.X, drawn.labels, [0.0, 2.0][place], PAPER_L2S, cv)
    assert models["l2"][place] == l2 * [1, 2][place]
    np.testing.assert_allclose(models["coef"][place, 0], model.coef_, rtol=1e-4, atol=1e-7)


def test_with_factor_1_both_choose_from_one_grid(drawn):
    cv = KFold(4, shuffle=True, random_state=0)
    assert set(tuned(drawn.X, drawn.labels, [1.0, 5.0], cv, l2_factor=1.0)["l2"]) <= set(PAPER_L2S)


def test_a_row_for_every_steepness_with_its_measures(drawn):
    rows = measure(drawn, [0.1, 5.0], np.random.default_rng(0))
    assert [row["steepness"] for row in rows] == [0.0, 0.1, 5.0]
    assert all(set(row) == set(COLUMNS) for row in rows)
    assert all(0.5 < row["roc"] < 1 and 0.5 < row["prc"] < 1 for row in rows)


def test_the_area_is_that_of_the_test_examples(drawn):
    rng = np.random.default_rng(5)
    rows = measure(drawn, [2.0], rng)
    cv = KFold(10, shuffle=True, random_state=int(np.random.default_rng(5).integers(2**31)))
    coef = tuned(drawn.X, drawn.labels, [2.0], cv)["coef"][1, 0]
    assert rows[1]["roc"] == roc_auc_score(drawn.truth_test, drawn.X_test @ coef)
