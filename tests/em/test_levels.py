import datetime

import numpy as np
import pytest
from crowds import clear_crowd
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

import crowdwise
from crowdwise import CrowdClassifier, CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.em.ordinal import level_scores
from crowdwise.exceptions import LabelError
from crowdwise.labels.scale import LabelScale, check_order
from crowdwise.results.consensus import Consensus

WORDS = ["bad", "ok", "good"]


def three_levels(seed=0):
    """Features, labels of levels 0 to 2, truth."""
    return clear_crowd(seed, n_classes=3, missing=0.4)


def test_the_label_is_the_mode_the_median_or_the_level_nearest_to_the_mean():
    proba = np.array([[0.4, 0.1, 0.1, 0.1, 0.3], [0.5, 0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0, 0.0]])
    levels = np.arange(1.0, 6.0)
    by = {name: Consensus(np.arange(3), np.arange(1, 6), proba, name, levels) for name in ("mode", "median", "mean")}
    assert [found.label.tolist() for found in by.values()] == [[1, 1, 3], [2, 1, 3], [3, 3, 3]]
    assert_allclose(by["mode"].mean, [2.8, 3.0, 3.0])
    assert_allclose(by["median"].confidence, [0.1, 0.5, 1.0])
    assert_allclose(by["mean"].confidence, [0.1, 0.0, 1.0])


def test_half_of_the_probability_is_enough_for_the_median_however_it_was_rounded():
    proba = np.array([[0.1, 0.2, 0.2, 0.5], [0.3, 0.2 - 1e-16, 0.0, 0.5]])
    assert Consensus(np.arange(2), np.arange(4), proba, "median", np.arange(4.0)).label.tolist() == [2, 1]


def test_offset_spread_and_rank_correlation_are_those_of_labels_drawn_often():
    rng = np.random.default_rng(0)
    confusion, prior, levels = (
        rng.dirichlet(np.ones(4), (3, 4)),
        rng.dirichlet(np.ones(4)),
        np.array([1.0, 2.0, 4.0, 7]),
    )
    truth = rng.choice(4, 40_000, p=prior)
    for one, offset, spread, correlation in zip(confusion, *level_scores(confusion, prior, levels), strict=True):
        label = (rng.random((len(truth), 1)) > one[truth].cumsum(axis=1)).sum(axis=1)
        above = levels[label] - levels[truth]
        assert_allclose([offset, spread], [above.mean(), above.std()], atol=0.05)
        assert_allclose(correlation, spearmanr(truth, label)[0], atol=0.02)


def test_a_harsh_annotator_may_be_consistent_and_a_constant_one_is_not():
    harsh = np.eye(5)[[0, 0, 1, 2, 3]]  # one level too low, but for the lowest
    vague = 0.4 * np.eye(5) + 0.12
    constant = np.tile(np.eye(5)[2], (5, 1))
    prior, levels = np.array([0.0, 0.25, 0.25, 0.25, 0.25]), np.arange(1.0, 6)
    offset, spread, correlation = level_scores(np.array([harsh, vague, constant]), prior, levels)
    assert_allclose(offset[0], -1.0)
    assert spread[0] < 1e-9 < 1 < min(spread[1:])
    assert_allclose(correlation[[0, 2]], [1.0, 0.0], atol=1e-9)


def test_who_is_harsh_and_consistent_has_the_highest_expertise():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, 6, 400)
    noise = rng.normal(size=(400, 6)) * [0.2, 0.7, 0.7, 0.8, 0.8, 1.2]
    said = np.clip(np.rint(truth[:, np.newaxis] + [-1, 0, 0, 0, 0, 0] + noise), 1, 5)
    found = aggregate(CrowdLabels.from_matrix(said, scale="ordinal"))
    assert found.expertise.argmax() == 0
    assert found.accuracy[0] < np.sort(found.accuracy)[2]
    assert_allclose(found.expertise, 1 / found.spread**2)
    assert found.rank_correlation.argmax() == 0


def test_words_without_an_order_are_refused_with_what_to_do():
    words = [["good", "ok"], ["bad", "ok"], ["good", "good"]]
    with pytest.raises(LabelError, match=r"\['bad', 'good', 'ok'\] have none of their own.*labels.with_scale"):
        CrowdLabels.from_matrix(words, scale="ordinal")
    declared = aggregate(CrowdLabels.from_matrix(words, classes=WORDS, scale="ordinal"))
    in_order = aggregate(CrowdLabels.from_matrix(words).with_scale("ordinal", levels=WORDS))
    assert declared.consensus.levels.tolist() == [1, 2, 3]
    assert (declared.proba == in_order.proba).all()


@pytest.mark.filterwarnings("ignore:'Unsure' counts as a class")
def test_a_word_among_numbers_may_be_no_answer():
    with pytest.raises(LabelError, match="If 'Unsure' means no answer,"):
        CrowdLabels.from_matrix([["1", "2"], ["3", "Unsure"]], scale="ordinal")


def test_an_order_must_name_all_classes():
    with pytest.raises(LabelError, match="all classes in their order;"):
        CrowdLabels.from_matrix([["good", "ok"]]).with_scale("ordinal", levels=["bad", "good"])


def test_numbers_out_of_order_are_refused():
    labels = CrowdLabels.from_matrix([[1, 2], [3, 3]], classes=[2, 1, 3])
    with pytest.raises(LabelError, match="numbers have an order of"):
        labels.with_scale("ordinal")


@pytest.mark.parametrize(
    ("classes", "levels"),
    [([1, 2, 5], [1, 2, 5]), ([0.5, 1.0], [0.5, 1]), ([False, True], [0, 1]), ([3, 1], [3, 1])],
)
def test_numbers_are_levels_as_they_are(classes, levels):
    check_order(np.array(classes), declared=False)
    assert LabelScale("ordinal").levels(np.array(classes)).tolist() == levels


def test_levels_too_far_apart_to_be_squared_are_refused():
    check_order(np.array([-1e150, 1e150]), declared=False)
    with pytest.raises(LabelError, match=r"levels beyond 1e\+150 are too"):
        check_order(np.array([-1e200, 1e200]), declared=False)
    with pytest.raises(LabelError, match="so many digits cannot be told apart"):
        check_order(np.array([2**62, 2**62 + 1]), declared=True)


def test_times_have_their_order():
    days = np.array([datetime.date(2024, 1, 1), datetime.date(2024, 3, 1)], dtype="M8[D]")
    check_order(days, declared=False)
    assert LabelScale("ordinal").levels(days).tolist() == [1, 2]


@pytest.mark.parametrize("by", ["median", "mean"])
def test_classes_without_an_order_have_no_median(by):
    with pytest.raises(ValueError, match=f'consensus="{by}" needs classes with an order'):
        CrowdLabels.from_matrix([[1, 0], [0, 1]]).with_scale("nominal", consensus=by)


@pytest.mark.parametrize(("setting", "value"), [("scale", "ordered"), ("consensus", "average")])
def test_settings_that_cannot_be_are_refused(setting, value):
    with pytest.raises(ValueError, match=f"{setting} must be"):
        CrowdLabels.from_matrix([[1, 0], [0, 1]]).with_scale(**{"scale": "ordinal", setting: value})


def test_levels_belong_to_the_ordinal_scale():
    with pytest.raises(ValueError, match="levels belong to the ordinal scale"):
        CrowdLabels.from_matrix([[1, 0], [0, 1]]).with_scale("nominal", levels=[0, 1])


def test_frames_of_levels_have_the_mean_offset_and_spread():
    stars = CrowdLabels.from_matrix([[1, 1, 2], [3, 3, 4], [2, 2, 3], [5, 5, 5]])
    found = aggregate(stars.with_scale("ordinal"))
    assert found.consensus_frame().columns.tolist()[:4] == ["example", "label", "confidence", "mean"]
    assert {"offset", "spread", "rank_correlation"} < set(found.annotators_frame().columns)
    plain = aggregate(stars, errors_in_common=False)
    assert plain.mean is plain.offset is plain.spread is None
    assert "mean" not in plain.consensus_frame().columns


@pytest.mark.parametrize("model", [CrowdLogisticClassifier(), CrowdClassifier(LogisticRegression())])
def test_classifiers_know_levels(model):
    X, labels, truth = three_levels()
    model.fit(X, labels.with_scale("ordinal"))
    assert (model.consensus_ == truth).mean() > 0.9
    assert_allclose(model.results_.mean, model.consensus_proba_ @ np.arange(3))
    assert model.results_.offset.shape == model.results_.spread.shape == (7,)
    again = model.consensus(X, labels)
    assert (again.by, again.levels.tolist()) == ("mode", [0, 1, 2])
    model.fit(X, labels)
    assert model.results_.offset is None


def test_predictions_of_levels_are_modes_or_medians():
    X, labels, _ = three_levels(1)
    model = CrowdLogisticClassifier().fit(X, labels.with_scale("ordinal"))
    assert (model.predict(X) == model.predict_proba(X).argmax(axis=1)).all()
    by_median = CrowdLogisticClassifier().fit(X, labels.with_scale("ordinal", consensus="median"))
    below = np.cumsum(by_median.predict_proba(X), axis=1) < 0.5
    assert (by_median.predict(X) == below.sum(axis=1)).all()


def test_levels_survive_a_file(tmp_path):
    X, labels, _ = three_levels()
    words = CrowdLabels.from_matrix(np.array(WORDS, dtype=object)[labels[:60].majority()[:, np.newaxis].repeat(2, 1)])
    alone = aggregate(words.with_scale("ordinal", levels=WORDS))
    model = CrowdLogisticClassifier().fit(X, labels.with_scale("ordinal"))
    for name, found in (("alone", alone), ("model", model)):
        found.save(tmp_path / name)
    read_alone, read = crowdwise.load(tmp_path / "alone"), crowdwise.load(tmp_path / "model")
    assert read_alone.label.tolist() == alone.label.tolist()
    assert (read_alone.mean == alone.mean).all()
    assert (read.results_.offset == model.results_.offset).all()
    assert (read.predict(X) == model.predict(X)).all()


def test_reports_judge_the_label_that_is_given():
    matrix = [[1, 1, 5], [5, 5, 1], [3, 3, 3], [2, 2, 2], [4, 4, 4], [1, 5, 3]]
    found = aggregate(CrowdLabels.from_matrix(matrix).with_scale("ordinal", consensus="mean"))
    assert (found.classes[found.codes] == found.label).all()


def test_levels_whose_differences_overflow_are_refused():
    with pytest.raises(LabelError, match="levels beyond 1e"):
        CrowdLabels.from_matrix([[-1e308, 1e308], [1e308, 1e308]]).with_scale("ordinal")
