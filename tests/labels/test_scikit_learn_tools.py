"""CrowdLabels as y of scikit-learn's own tools: selected row by row, never turned into something else on the way."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_val_score, train_test_split
from sklearn.utils import _safe_indexing, indexable, shuffle
from sklearn.utils.validation import _num_samples

from crowdwise import CrowdLabels

X = np.arange(24.0).reshape(12, 2)
MATRIX = np.array([[i % 2, (i + j) % 2, 1] for i, j in zip(range(12), range(5, 17), strict=True)], dtype=float)
MISSING = np.where(np.arange(36).reshape(12, 3) % 5 == 0, np.nan, MATRIX)
LABELS = {
    "complete": CrowdLabels.from_matrix(MATRIX),
    "missing": CrowdLabels.from_matrix(MISSING),
    "texts": CrowdLabels.from_matrix(np.where(MATRIX == 1, "yes", "no")),
    "ratings": CrowdLabels.from_matrix(MATRIX + 0.5, scale="interval"),
}


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it is given."""

    def __init__(self, setting=0):
        self.setting = setting

    def fit(self, X, y):
        self.rows_ = X[:, 0] / 2
        self.y_ = y
        self.classes_ = np.array([0, 1])
        return self

    def score(self, X, y):
        for rows, given in ((self.rows_, self.y_), (X[:, 0] / 2, y)):
            assert isinstance(given, CrowdLabels)
            assert given.examples.tolist() == rows.tolist()
        return float(len(y))


@pytest.mark.parametrize("name", LABELS)
def test_rows_of_labels_are_selected_as_rows_of_x(name):
    labels = LABELS[name]
    assert _num_samples(labels) == 12
    assert indexable(X, labels)[1] is labels
    assert _safe_indexing(labels, [3, 1]) == labels[[3, 1]]
    assert _safe_indexing(labels, np.arange(12) > 9) == labels[10:]
    for part in (*train_test_split(X, labels, random_state=0)[2:], shuffle(X, labels, random_state=0)[1]):
        assert isinstance(part, CrowdLabels)


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("cv", [KFold(3), KFold(4, shuffle=True, random_state=0), ShuffleSplit(2, random_state=0)])
def test_searches_and_scores_give_labels_to_the_model_as_they_are(name, cv):
    scores = cross_val_score(Recorder(), X, LABELS[name], cv=cv, error_score="raise")
    assert len(scores) == cv.get_n_splits()
    search = GridSearchCV(Recorder(), {"setting": [1, 2]}, cv=cv, error_score="raise").fit(X, LABELS[name])
    assert search.best_estimator_.y_ == LABELS[name]


@pytest.mark.parametrize("name", ["complete", "texts"])
def test_a_number_of_folds_is_enough_where_no_label_is_missing(name):
    assert cross_val_score(Recorder(), X, LABELS[name], cv=3, error_score="raise").tolist() == [4.0, 4.0, 4.0]


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # scikit-learn's, before its error
def test_a_plain_matrix_with_gaps_needs_folds_that_do_not_look_at_it():
    with pytest.raises(ValueError, match="contains NaN"):
        cross_val_score(Recorder(), X, LABELS["missing"].to_matrix(), cv=3)


@pytest.mark.parametrize("scoring", ["accuracy", "f1"])
def test_scorers_for_one_column_compare_with_the_majority(scoring):
    class Predictor(Recorder):
        def predict(self, X):
            return (X[:, 0] > 5).astype(int)

    labels = LABELS["complete"]
    scores = cross_val_score(Predictor(), X, labels, cv=KFold(3), scoring=scoring, error_score="raise")
    plain = cross_val_score(Predictor(), X, labels.majority(), cv=KFold(3), scoring=scoring, error_score="raise")
    assert_array_equal(scores, plain)
