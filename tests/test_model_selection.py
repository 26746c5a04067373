import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from crowdwise import CrowdKFold, CrowdLabels, CrowdRidgeClassifier, crowd_scorer, simulate_annotators
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
TRUTH = (X[:, 0] > 0).astype(int)
LABELS = simulate_annotators(X, TRUTH, 6, clarity=2.0, missing=0.3, random_state=0)
MODEL = CrowdRidgeClassifier().fit(X, LABELS)


def test_folds_hold_every_example_out_once():
    splits = list(CrowdKFold(4).split(X, LABELS))
    assert np.array_equal(np.sort(np.concatenate([held_out for _, held_out in splits])), np.arange(120))
    for learn, held_out in splits:
        assert np.array_equal(np.sort(np.concatenate([learn, held_out])), np.arange(120))
    assert CrowdKFold(4).get_n_splits() == 4


def test_folds_are_seeded():
    def held_out(seed):
        return [part.tolist() for _, part in CrowdKFold(3, random_state=seed).split(X)]

    assert held_out(0) == held_out(0) != held_out(1)
    assert held_out(None) != held_out(None)


@pytest.mark.parametrize("n_splits", [1, 121])
def test_impossible_numbers_of_folds_are_errors(n_splits):
    with pytest.raises(ValueError, match=f"n_splits must be from 2 to the number of examples, 120; got {n_splits}"):
        list(CrowdKFold(n_splits).split(X))


def test_agreement_is_the_share_of_labels_predicted():
    predicted = MODEL.predict(X)
    right = [
        p == label for p, row in zip(predicted, LABELS.to_matrix(), strict=True) for label in row if label == label
    ]
    assert crowd_scorer()(MODEL, X, LABELS) == pytest.approx(np.mean(right))
    assert crowd_scorer()(MODEL, X, LABELS.to_matrix()) == pytest.approx(np.mean(right))


def test_accuracy_is_the_share_of_known_truths_predicted():
    known = np.full(120, np.nan)
    known[::3] = TRUTH[::3]
    expected = np.mean(MODEL.predict(X[::3]) == TRUTH[::3])
    for truth in (known, dict(zip(range(0, 120, 3), TRUTH[::3].tolist(), strict=True)), list(known)):
        assert crowd_scorer("accuracy", truth=truth)(MODEL, X, LABELS) == pytest.approx(expected)


def test_ranking_counts_pairs_in_order():
    scores = MODEL.decision_function(X)
    pairs = [
        (a, b) for a, s in zip(scores, TRUTH, strict=True) if s for b, t in zip(scores, TRUTH, strict=True) if not t
    ]
    expected = np.mean([a > b for a, b in pairs])
    assert crowd_scorer("ranking", truth=TRUTH)(MODEL, X, LABELS) == pytest.approx(expected)
    assert 0.5 < crowd_scorer("ranking")(MODEL, X, LABELS) <= 1


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda X: X.tolist()], ids=["array", "frame", "list"])
def test_truth_follows_its_examples_into_every_fold(make):
    scores = cross_val_score(
        CrowdRidgeClassifier(), make(X), LABELS, cv=CrowdKFold(4), scoring=crowd_scorer("accuracy", truth=TRUTH)
    )
    expected = [
        np.mean(CrowdRidgeClassifier().fit(X[learn], LABELS[learn]).predict(X[held_out]) == TRUTH[held_out])
        for learn, held_out in CrowdKFold(4).split(X)
    ]
    assert scores.tolist() == pytest.approx(expected)


def test_truth_that_cannot_be_matched_with_a_fold_is_an_error():
    matrix = LABELS.to_matrix()
    scorer = crowd_scorer("accuracy", truth=TRUTH)
    assert scorer(MODEL, X, matrix) == pytest.approx(np.mean(MODEL.predict(X) == TRUTH))
    with pytest.raises(LabelError, match="cannot be told: give y as CrowdLabels"):
        scorer(MODEL, X[5:], matrix[5:])
    with pytest.raises(LabelError, match="cannot be told"):
        crowd_scorer("accuracy", truth={3: 1})(MODEL, X, matrix)
    assert scorer(MODEL, X[5:], LABELS[5:]) == pytest.approx(np.mean(MODEL.predict(X[5:]) == TRUTH[5:]))


def test_scorers_match_rows_by_identifier():
    frame = pd.DataFrame(X, index=[f"e{i}" for i in range(120)])
    named = CrowdLabels.from_matrix(LABELS.to_matrix(), examples=frame.index)
    model = CrowdRidgeClassifier().fit(frame.to_numpy(), named)
    truth = dict(zip(frame.index, TRUTH.tolist(), strict=True))
    shuffled = named[RNG.permutation(120)]
    scorer = crowd_scorer("accuracy", truth=truth)
    model.fit(frame.rename(columns=str), named)
    frame = frame.rename(columns=str)
    assert scorer(model, frame, shuffled) == scorer(model, frame, named)
    assert align(frame, shuffled)[1] == named


def test_scorers_survive_pickling_and_search():
    scorer = pickle.loads(pickle.dumps(crowd_scorer("ranking")))
    search = GridSearchCV(CrowdRidgeClassifier(), {"l2": [0.1, 10.0]}, cv=CrowdKFold(3), scoring=scorer)
    search.fit(X, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_wrong_metrics_are_named():
    with pytest.raises(ValueError, match='metric must be "agreement", "ranking" or "accuracy"; got \'auc\''):
        crowd_scorer("auc")
    with pytest.raises(ValueError, match='metric="accuracy" needs truth'):
        crowd_scorer("accuracy")
    with pytest.raises(ValueError, match='metric="agreement" judges on labels alone'):
        crowd_scorer(truth=TRUTH)


def test_what_cannot_be_judged_is_an_error_and_not_nan():
    with pytest.raises(LabelError, match="none of these examples has a known truth"):
        crowd_scorer("accuracy", truth={"elsewhere": 1})(MODEL, X, LABELS)
    with pytest.raises(
        LabelError, match=r"in the terms of the model's classes \[0, 1\]; found \['yes', 'yes', 'yes'\]"
    ):
        crowd_scorer("accuracy", truth=["yes"] * 120)(MODEL, X, LABELS)
    with pytest.raises(LabelError, match="examples of at least two classes are needed"):
        crowd_scorer("ranking", truth=np.ones(120))(MODEL, X, LABELS)
