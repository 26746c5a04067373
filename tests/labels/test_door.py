"""Every public function that takes labels takes a plain matrix of them, and says the same of it."""

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_equal

import crowdwise
from crowdwise import CrowdLabels, aggregate, formats
from crowdwise import crowd as of_crowd
from crowdwise.paper import theory

X, MATRIX = crowd(1, n_examples=40)
MATRIX = MATRIX.astype(int)
SLICES = np.arange(40) % 2

FUNCTIONS = {
    "aggregate": lambda labels, _: aggregate(labels).proba,
    "agreement": lambda labels, _: crowdwise.agreement(labels, n_resamples=10, random_state=0).alpha,
    "align": lambda labels, _: crowdwise.align(X, labels)[1].values,
    "alignment_expertise": lambda labels, _: theory.alignment_expertise(X, labels),
    "alternative_annotator_test": lambda labels, _: str(of_crowd.alternative_annotator_test(labels, candidate=0)),
    "ball_radii": lambda labels, _: theory.ball_radii(X, labels, random_state=0),
    "cohen_kappas": lambda labels, _: of_crowd.cohen_kappas(labels).kappa,
    "disagreement": lambda labels, _: of_crowd.disagreement(labels),
    "error_correlation": lambda labels, _: str(crowdwise.error_correlation(aggregate(labels), labels)),
    "estimate_labels": lambda labels, _: theory.estimate_labels(X, labels),
    "krippendorff_alpha": lambda labels, _: of_crowd.krippendorff_alpha(labels),
    "label_signs": lambda labels, _: theory.label_signs(labels).toarray(),
    "slice_accuracy": lambda labels, _: str(crowdwise.slice_accuracy(labels, SLICES)),
    "suggest_labels": lambda labels, _: crowdwise.suggest_labels(aggregate(labels), labels).gain,
    "write_labels": lambda labels, path: (formats.write_labels(labels, path), path.read_text())[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_a_plain_matrix_is_labels(name, form, tmp_path):
    expected = FUNCTIONS[name](CrowdLabels.from_matrix(MATRIX), tmp_path / "labels.csv")
    assert_equal(FUNCTIONS[name](form(MATRIX), tmp_path / "plain.csv"), expected)


def test_ratings_stay_ratings():
    ratings = CrowdLabels.from_matrix(MATRIX + 0.5, scale="interval")
    assert crowdwise.align(X, ratings)[1].scale.name == "interval"
    assert of_crowd.krippendorff_alpha(ratings) == pytest.approx(of_crowd.krippendorff_alpha(MATRIX))
