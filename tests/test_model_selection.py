import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)

from crowdwise import CrowdLabels, CrowdRidgeClassifier, simulate_annotators
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import align
from crowdwise.model_selection import balanced_subsample, crowd_scorer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
TRUTH = (X[:, 0] > 0).astype(int)
LABELS = simulate_annotators(X, TRUTH, 6, clarity=2.0, missing=0.3, random_state=0)
MODEL = CrowdRidgeClassifier().fit(X, LABELS)


FRAME = pd.DataFrame(X, index=[f"e{i}" for i in range(120)], columns=list("abc"))
NAMES = np.array(["no", "yes"])
TEXTS = simulate_annotators(X, NAMES[TRUTH], 6, clarity=2.0, missing=0.3, random_state=0)
FOLDS = KFold(4, shuffle=True, random_state=0)
WAYS = {
    "labels": LABELS,
    "matrix": LABELS.to_matrix(),
    "frame": pd.DataFrame(LABELS.to_matrix()),
    "texts": TEXTS,
    "matrix of texts": TEXTS.to_matrix(),
}


@pytest.mark.parametrize("y", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    "cv",
    [FOLDS, ShuffleSplit(2, random_state=0), RepeatedKFold(n_splits=2, n_repeats=1), GroupKFold(3), TimeSeriesSplit(2)],
    ids=lambda cv: type(cv).__name__,
)
def test_splitters_of_scikit_learn_do_with_labels_missing(y, cv):
    groups = np.arange(120) % 6 if isinstance(cv, GroupKFold) else None
    scores = cross_val_score(CrowdRidgeClassifier(), X, y, cv=cv, groups=groups, error_score="raise")
    assert len(scores) == cv.get_n_splits(X, None, groups)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("y", WAYS.values(), ids=WAYS)
def test_a_search_with_a_splitter_chooses_by_the_share_of_labels_predicted(y):
    search = GridSearchCV(CrowdRidgeClassifier(), {"l2": [0.1, 1e6]}, cv=FOLDS, error_score="raise").fit(X, y)
    expected = cross_val_score(CrowdRidgeClassifier(l2=0.1), X, LABELS, cv=FOLDS, error_score="raise").mean()
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(expected)


def test_the_same_folds_score_the_same_whatever_the_labels_are_given_as():
    scores = {name: cross_val_score(CrowdRidgeClassifier(), X, y, cv=FOLDS).tolist() for name, y in WAYS.items()}
    assert all(each == pytest.approx(scores["labels"]) for each in scores.values())


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
        CrowdRidgeClassifier(), make(X), LABELS, cv=FOLDS, scoring=crowd_scorer("accuracy", truth=TRUTH)
    )
    expected = [
        np.mean(CrowdRidgeClassifier().fit(X[learn], LABELS[learn]).predict(X[held_out]) == TRUTH[held_out])
        for learn, held_out in FOLDS.split(X)
    ]
    assert scores.tolist() == pytest.approx(expected)


def test_truth_that_cannot_be_matched_with_a_fold_is_an_error():
    matrix = LABELS.to_matrix()
    scorer = crowd_scorer("accuracy", truth=TRUTH)
    assert scorer(MODEL, X, matrix) == pytest.approx(np.mean(MODEL.predict(X) == TRUTH))
    with pytest.raises(LabelError, match="cannot be known: give y"):
        scorer(MODEL, X[5:], matrix[5:])
    with pytest.raises(LabelError, match="cannot be known"):
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


def ways_to_give_truth():
    """{name: (X, y, truth, the truth in the order of X)}."""
    named = CrowdLabels.from_matrix(LABELS.to_matrix(), examples=FRAME.index)
    by_id = pd.Series(TRUTH, index=FRAME.index)
    shuffled, order = by_id.sample(frac=1.0, random_state=0), RNG.permutation(120)
    return {
        "array, labels without ids": (X, LABELS, TRUTH, TRUTH),
        "list, labels without ids": (X, LABELS, TRUTH.tolist(), TRUTH),
        "series, nothing else has ids": (X, LABELS, by_id, TRUTH),
        "array, labels in another order": (X[order], LABELS[order], TRUTH, TRUTH[order]),
        "series, frame and labels with ids": (FRAME, named, shuffled, TRUTH),
        "series, frame with ids": (FRAME, LABELS, shuffled, TRUTH),
        "series, frame with ids and a matrix": (FRAME, LABELS.to_matrix(), shuffled, TRUTH),
        "series, labels with ids": (X, named, shuffled, TRUTH),
        "mapping, labels with ids": (X, named, dict(shuffled), TRUTH),
        "mapping of positions": (X, LABELS, dict(enumerate(TRUTH)), TRUTH),
        "series with more than is asked for": (FRAME[:90], named[:90], shuffled, TRUTH[:90]),
    }


@pytest.mark.parametrize("name", ways_to_give_truth())
def test_truth_by_id_or_position_finds_its_examples_in_every_fold(name):
    rows, y, truth, right = ways_to_give_truth()[name]
    scorer = crowd_scorer("accuracy", truth=truth)
    scores = cross_val_score(CrowdRidgeClassifier(), rows, y, cv=FOLDS, scoring=scorer, error_score="raise")
    values = np.asarray(rows)
    matrix = y.to_matrix() if isinstance(y, CrowdLabels) else y
    expected = [
        np.mean(CrowdRidgeClassifier().fit(values[learn], matrix[learn]).predict(values[held_out]) == right[held_out])
        for learn, held_out in FOLDS.split(rows)
    ]
    assert scores.tolist() == pytest.approx(expected)


def test_truth_by_position_is_refused_where_folds_have_ids_only():
    named = CrowdLabels.from_matrix(LABELS.to_matrix(), examples=FRAME.index)
    scorer = crowd_scorer("accuracy", truth=TRUTH)
    assert scorer(MODEL, X, named) == pytest.approx(np.mean(MODEL.predict(X) == TRUTH))
    with pytest.raises(LabelError, match="truth by the ids of"):
        scorer(MODEL, X[5:], named[5:])
    with pytest.raises(LabelError, match="truth has 100 values, and"):
        crowd_scorer("accuracy", truth=TRUTH[:100])(MODEL, X, LABELS)


def test_scorers_survive_pickling_and_search():
    scorer = pickle.loads(pickle.dumps(crowd_scorer("ranking")))
    search = GridSearchCV(
        CrowdRidgeClassifier(), {"l2": [0.1, 10.0]}, cv=KFold(3, shuffle=True, random_state=0), scoring=scorer
    )
    search.fit(X, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_wrong_metrics_are_named():
    with pytest.raises(ValueError, match='metric must be "agreement", "ranking"'):
        crowd_scorer("auc")
    with pytest.raises(ValueError, match='metric="accuracy" needs truth'):
        crowd_scorer("accuracy")
    with pytest.raises(ValueError, match='metric="agreement" is of labels alone'):
        crowd_scorer(truth=TRUTH)


def test_what_cannot_be_judged_is_an_error_and_not_nan():
    with pytest.raises(LabelError, match="none of these examples has"):
        crowd_scorer("accuracy", truth={"elsewhere": 1})(MODEL, X, LABELS)
    with pytest.raises(LabelError, match="truth must use the"):
        crowd_scorer("accuracy", truth=["yes"] * 120)(MODEL, X, LABELS)
    with pytest.raises(LabelError, match="examples of at least two"):
        crowd_scorer("ranking", truth=np.ones(120))(MODEL, X, LABELS)


def test_balanced_takes_all_of_the_smallest_class_and_as_many_of_the_others():
    truth = np.array([-1] * 50 + [1] * 3)
    chosen = balanced_subsample(truth, random_state=0)
    assert len(chosen) == len(set(chosen.tolist())) == 6
    assert set(chosen[:3]) == {50, 51, 52}  # the positive ones come first
    assert (truth[chosen[3:]] < 0).all()
    assert set(chosen) != set(balanced_subsample(truth, random_state=1))
    three = np.array(["a", "c", "b", "c", "a", "b", "c"])
    assert three[balanced_subsample(three, random_state=0)].tolist() == ["c", "c", "b", "b", "a", "a"]


def test_balancing_needs_a_class_for_every_example():
    with pytest.raises(LabelError, match="every example needs a class"):
        balanced_subsample(["yes", None, "no"])
