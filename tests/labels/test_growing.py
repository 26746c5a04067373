"""Labels that carry what is known about them, and that grow."""

import numpy as np
import pytest
from marks import in_slow_run
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeRegressor,
    aggregate,
)
from crowdwise.exceptions import LabelError


@pytest.fixture
def labels():
    return CrowdLabels.from_matrix(
        [["a", None, "b"], ["b", "b", None], [None, "a", "a"]],
        annotators=["ann", "bob", "cem"], examples=["x", "y", "z"],
    )  # fmt: skip


def matrix(labels):
    return [[None if value != value else value for value in row] for row in labels.to_matrix().tolist()]


def test_an_appended_label_is_in_its_place_and_the_old_labels_stay(labels):
    grown = labels.append(example="x", annotator="bob", label="b")
    assert matrix(grown) == [["a", "b", "b"], ["b", "b", None], [None, "a", "a"]]
    assert matrix(labels)[0] == ["a", None, "b"]
    assert grown == CrowdLabels.from_matrix(matrix(grown), annotators=labels.annotators, examples=labels.examples)


def test_labels_appended_one_by_one_or_as_a_table_or_from_the_start_are_the_same(rng):
    full = rng.integers(0, 3, (30, 6)).astype(float)
    first = np.where(rng.random(full.shape) < 0.5, np.nan, full)
    some = CrowdLabels.from_matrix(first, classes=[0, 1, 2])
    at = [tuple(place) for place in np.argwhere(np.isnan(first))]
    rng.shuffle(at)
    one_by_one = some
    for row, who in at:
        one_by_one = one_by_one.append(example=row, annotator=who, label=int(full[row, who]))
    table = {"task": [row for row, _ in at], "worker": [who for _, who in at], "label": [int(full[p]) for p in at]}
    assert one_by_one == some.append(table) == CrowdLabels.from_matrix(full.astype(int), classes=[0, 1, 2])


IDS = {
    "positions": lambda at: at,
    "numbers": lambda at: 7 * at + 3,
    "texts": lambda at: f"e{at}",
    "pairs": lambda at: (at, "x"),
    "mixed": lambda at: at if at % 2 else str(at),
    "days": lambda at: np.datetime64("2020-01-01") + np.timedelta64(int(at), "D"),
}


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("ids", IDS)
def test_labels_that_grow_and_shrink_are_those_of_a_table_made_anew(rng, ids, scale):
    examples, annotators = [IDS[ids](at) for at in range(9)], [f"w{at}" for at in range(5)]
    classes = None if scale == "interval" else ["low", "mid", "top"]
    answers = [0.5, 1.5, -2.0] if classes is None else classes
    given = {(0, 0): answers[0], (8, 4): answers[1]}

    def anew():
        rows = [(examples[e], annotators[a], label) for (e, a), label in given.items()]
        table = dict(zip(("example", "annotator", "label"), map(list, zip(*rows, strict=True)), strict=True))
        labels = CrowdLabels.from_table(table, examples=examples, annotators=annotators, classes=classes, scale=scale)
        return labels.with_truth({examples[1]: answers[2]}).with_groups({"w1": "g"})

    labels = anew()
    for _ in range(60):
        place = int(rng.integers(9)), int(rng.integers(5))
        name, who = examples[place[0]], annotators[place[1]]
        turn = rng.random()
        if turn < 0.05:
            given = {cell: label for cell, label in given.items() if cell[1] != place[1]} or given
            labels = labels.without(annotator=who) if len(given) < labels.n_labels else labels
        elif turn < 0.1 and any(cell[0] != place[0] for cell in given):
            given = {cell: label for cell, label in given.items() if cell[0] != place[0]}
            labels = labels.without(example=name)
        elif place not in given:
            given[place] = answers[int(rng.integers(3))]
            labels = labels.append(example=name, annotator=who, label=given[place])
        elif len(given) > 1:
            del given[place]
            labels = labels.without(example=name, annotator=who)
        twin = anew()
        assert labels == twin
        assert labels.values.dtype == twin.values.dtype
        assert labels.annotator_index.dtype == twin.annotator_index.dtype
        assert labels.declared_classes == twin.declared_classes


def test_a_time_finds_its_example_in_another_unit():
    labels = CrowdLabels.from_matrix([["a", None]], examples=[np.datetime64("2020-01-01")], classes=["a", "b"])
    grown = labels.append(example=np.datetime64("2020-01-01T00:00"), annotator=1, label="b")
    assert grown.n_labels == 2


def test_labels_with_unknown_ratings_among_their_truths_are_equal_to_themselves():
    labels = CrowdLabels.from_matrix([[0.5, 1.0], [2.0, 1.0]], scale="interval")
    assert labels.with_truth({0: 1.0}) == labels.with_truth({0: 1.0})
    assert labels.with_truth({0: 1.0}) != labels.with_truth({1: 1.0})


def test_what_is_taken_back_is_as_if_it_had_never_been_given(labels):
    again = labels.append(example="x", annotator="bob", label="b").without(example="x", annotator="bob")
    assert again == labels
    assert matrix(labels.without(annotator="cem")) == [["a", None, None], ["b", "b", None], [None, "a", None]]
    assert matrix(labels.without(example="y"))[1] == [None, None, None]
    assert labels.without(annotator="cem").annotators.tolist() == ["ann", "bob", "cem"]


def test_new_annotators_and_classes_have_to_be_new(labels):
    with pytest.raises(LabelError, match="annotator 'dan'"):
        labels.append(example="x", annotator="dan", label="b")
    with pytest.raises(LabelError, match="class 'aa'"):
        labels.append(example="x", annotator="bob", label="aa")
    grown = labels.append(example="x", annotator="dan", label="aa", new=True)
    assert grown.annotators.tolist() == ["ann", "bob", "cem", "dan"]
    assert grown.classes.tolist() == ["a", "aa", "b"]  # sorted, as they were not declared
    assert matrix(grown)[0] == ["a", None, "b", "aa"]


def test_unknown_ids_and_second_labels_are_errors(labels):
    with pytest.raises(LabelError, match="example 'q'"):
        labels.append(example="q", annotator="ann", label="a", new=True)
    with pytest.raises(LabelError, match="annotator 'ann' has labelled"):
        labels.append(example="x", annotator="ann", label="b")
    with pytest.raises(LabelError, match="annotator 'bob' has labelled"):
        labels.append({"task": ["x", "x"], "worker": ["bob", "bob"], "label": ["a", "b"]})
    with pytest.raises(LabelError, match="'q' is not"):
        labels.without(annotator="q")
    with pytest.raises(TypeError, match="without needs"):
        labels.without()


def test_one_value_per_example_is_the_known_answer_else_the_majority(labels):
    assert np.asarray(labels.with_truth({"x": "b"})).tolist() == ["b", "b", "a"]
    assert np.asarray(labels).tolist() == ["a", "b", "a"]  # a tie goes to the first class
    with pytest.raises(LabelError, match="example 'y' has neither"):
        np.asarray(labels.without(example="y"))
    assert np.asarray(labels.without(example="y").with_truth({"y": "a"})).tolist() == ["a", "a", "a"]
    ratings = CrowdLabels.from_matrix([[1.0, 2.0], [3.0, np.nan]], scale="interval")
    assert np.asarray(ratings).tolist() == [1.5, 3.0]


def test_subsets_carry_truth_groups_and_scale(labels):
    carrying = labels.with_truth({"z": "a"}).with_groups({"ann": 1, "cem": 1})
    carrying = carrying.with_scale("ordinal", levels=["a", "b"])
    part = carrying[[2, 0]].select_annotators([True, False, True])
    assert part.truth.tolist() == [0, -1]
    assert part.groups.tolist() == [1, 1]
    assert part.scale.name == "ordinal"
    recoded = carrying._with_classes(np.array(["b", "c", "a"]))
    assert recoded.truth.tolist() == [-1, -1, 2]


def crowd(rng, n=120):
    X = rng.normal(size=(n, 3))
    truth = (X[:, 0] > 0).astype(int)
    given = np.where(rng.random((n, 4)) < 0.8, truth[:, None], 1 - truth[:, None]).astype(float)
    given[rng.random(given.shape) < 0.3] = np.nan
    given[np.isnan(given).all(axis=1), 0] = 1
    return X, truth, CrowdLabels.from_matrix(given, classes=[0, 1], annotators=list("abcd"))


@pytest.mark.parametrize("model", [CrowdLogisticClassifier, CrowdRidgeClassifier, CrowdClassifier])
def test_the_truth_of_labels_is_the_one_given_to_fit(model, rng):
    X, truth, labels = crowd(rng)
    known, labels = {i: int(truth[i]) for i in range(0, 120, 6)}, labels.with_groups({"a": 1, "b": 1})
    one = model().fit(X, labels, truth=known)
    other = model().fit(X, labels.with_truth(known))
    assert_array_equal(one.consensus_proba_, other.consensus_proba_)
    assert_array_equal(one.results_.vote_weight, other.results_.vote_weight)
    assert one.truth_check_ == other.truth_check_


STARS = CrowdLabels.from_matrix([[1, 2, 2], [5, 4, 5], [3, 3, None], [2, 1, 1], [4, 4, 5]])


def test_the_scale_says_what_is_taken_as_the_label():
    found = {by: aggregate(STARS.with_scale("ordinal", consensus=by)) for by in (None, "mode", "median", "mean")}
    assert_array_equal(found[None].label, found["mode"].label)
    assert [one.consensus.by for one in found.values()] == ["mode", "mode", "median", "mean"]


def test_labels_change_their_scale_and_back():
    known = STARS.with_truth({1: 5})
    numbers = known.with_scale("interval")
    assert numbers.classes is None
    assert_array_equal(numbers.truth, [np.nan, 5, np.nan, np.nan, np.nan])
    assert_array_equal(numbers.to_matrix(), known.to_matrix())
    back = numbers.with_scale("nominal")
    assert back == known
    assert back.classes.dtype == known.classes.dtype
    CrowdRidgeRegressor().fit(np.zeros((5, 1)), numbers)


@pytest.mark.parametrize("scoring", [None, in_slow_run("accuracy")])
@pytest.mark.parametrize("model", [CrowdLogisticClassifier(), CrowdClassifier()])
def test_folds_of_scikit_learn_carry_scale_groups_truth_and_abstentions(model, scoring, rng):
    X, truth, labels = crowd(rng)
    words = np.array(["low", "high", None], dtype=object)[np.nan_to_num(labels.to_matrix(), nan=2).astype(int)]
    words[::7, :2] = "low", "unsure"
    seen = CrowdLabels.from_matrix(words, annotators=list("abcd"), abstain=["unsure"])
    seen = seen.with_scale("ordinal", levels=["low", "high"], consensus="mean").with_groups({"a": 1, "b": 1})
    seen = seen.with_truth({i: ("low", "high")[truth[i]] for i in range(0, 120, 3)}).with_abstentions()
    fits = []

    class Watched(type(model)):
        def fit(self, X, y, **more):
            fits.append(super().fit(X, y, **more))
            return self

    watched = Watched()
    cross_val_score(make_pipeline(StandardScaler(), watched), X, seen, cv=3, scoring=scoring, error_score="raise")
    search = GridSearchCV(watched, {"steepness": [0.0, 1.0]}, cv=2, scoring=scoring, error_score="raise")
    search.fit(X, seen)
    assert len(fits) == 3 + 2 * 2 + 1
    for fitted in fits:
        assert fitted.fitted_.annotators.scale.consensus == "mean"
        assert fitted.results_.mean.min() >= 1
        assert (fitted.results_.vote_weight[:2] < 1).all()
        assert fitted.truth_check_ is not None
        assert fitted.results_.abstention.shape == (4, 2)


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_scikit_learns_searches_take_labels_of_a_crowd(scoring, rng):
    X, truth, labels = crowd(rng)
    scores = cross_val_score(CrowdLogisticClassifier(), X, labels, cv=3, scoring=scoring)
    assert np.isfinite(scores).all()
    pipe = make_pipeline(StandardScaler(), CrowdLogisticClassifier())
    search = GridSearchCV(pipe, {"crowdlogisticclassifier__l2": [0.1, 10.0]}, cv=3, scoring=scoring)
    assert accuracy_score(truth, search.fit(X, labels).predict(X)) > 0.85
    plain = LogisticRegression().fit(X, np.asarray(labels))
    assert accuracy_score(truth, plain.predict(X)) > 0.8


def test_a_new_level_takes_its_place_in_the_order():
    labels = CrowdLabels.from_matrix([[1, 2], [3, 2]], classes=[1, 2, 3]).with_scale("ordinal")
    table = {"example": [0], "annotator": ["new"], "label": [0]}
    grown = labels.append(table, new=True)
    assert grown.classes.tolist() == [0, 1, 2, 3]
    assert grown.levels.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert grown.to_matrix()[0].tolist() == [1, 2, 0]
    falling = CrowdLabels.from_matrix([[1, 2], [3, 2]], classes=[3, 2, 1]).with_scale("ordinal")
    assert falling.append(table, new=True).classes.tolist() == [3, 2, 1, 0]


def test_the_place_of_a_new_word_in_an_order_is_asked_for():
    labels = CrowdLabels.from_matrix([["bad", "ok"], ["good", "ok"]], classes=["bad", "ok", "good"]).with_scale(
        "ordinal"
    )
    with pytest.raises(LabelError, match="the place of 'awful' among"):
        labels.append({"example": [0], "annotator": ["new"], "label": ["awful"]}, new=True)
