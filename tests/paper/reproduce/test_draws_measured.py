from functools import partial

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from crowdwise.paper.reproduce.draws import COLUMNS, draw_usable, measure, synthetic
from crowdwise.paper.reproduce.tuning import tuned


@pytest.fixture(scope="module")
def drawn():
    return draw_usable(partial(synthetic, clarity=1.0), np.random.default_rng(3), redraw=True)


def test_a_row_for_every_steepness_with_its_measures(drawn):
    rows = measure(drawn, [0.1, 5.0])
    assert [row["steepness"] for row in rows] == [0.0, 0.1, 5.0]
    assert all(set(row) == set(COLUMNS) for row in rows)
    assert all(0.5 < row["roc"] < 1 and 0.5 < row["prc"] < 1 for row in rows)


def test_the_areas_are_those_of_the_test_examples(drawn):
    row = measure(drawn, [2.0])[1]
    (model,) = tuned(drawn.X, drawn.labels, [2.0])
    assert row["roc"] == roc_auc_score(drawn.truth_test, drawn.X_test @ model.coef)
    assert row["prc"] == average_precision_score(drawn.truth_test > 0, drawn.X_test @ model.coef)
    assert (row["l2"], row["n_rounds"], row["redrawn"]) == (model.l2, model.n_rounds, drawn.redrawn)
