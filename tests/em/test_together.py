"""Annotators who err together: copies, given groups, stated probabilities, and votes that decide where classes slip."""

import csv
import warnings

import numpy as np
import pytest
from crowds import labels_of
from crowdwise.crowd.votes import COMMON_ERRORS
from crowdwise.em.together import Together, vote_strength
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate, load
from crowdwise.datasets import CROWD_NAMES, fetch_crowd
from crowdwise.em import Shared
from crowdwise.em.annotators import Sharing
from crowdwise.exceptions import CrowdWarning

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")


def judges(seed=0, *, n_examples=300, n_judges=5, n_classes=3, accuracy=(0.5, 0.6, 0.7, 0.7, 0.8), missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_examples)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_examples, n_judges))) % n_classes
    matrix = np.where(rng.random((n_examples, n_judges)) < accuracy, truth[:, None], wrong).astype(object)
    matrix[rng.random(matrix.shape) < missing] = None
    return matrix, truth


def ordered_judges(seed=0, *, n_examples=400):
    """Seven levels of unequal width, as six judges see a hidden number."""
    rng = np.random.default_rng(seed)
    hidden, cuts = rng.normal(size=n_examples), [-1.3, -1.1, -0.3, -0.1, 0.1, 0.8]
    seen = hidden[:, None] + 0.6 * rng.normal(size=(n_examples, 1)) + 0.6 * rng.normal(size=(n_examples, 6))
    return np.searchsorted(cuts, seen), np.searchsorted(cuts, hidden)


def with_copies(matrix, which, n_copies=3):
    return np.column_stack([matrix, *[matrix[:, which]] * n_copies])


@quiet
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("which", [0, 4])
def test_four_copies_of_a_judge_are_what_one_is(which, missing):
    matrix, _ = judges(missing=missing)
    one, four = (aggregate(labels_of(each, 3), tol=1e-9) for each in (matrix, with_copies(matrix, which)))
    assert_allclose(four.proba, one.proba, atol=1e-4)
    assert_allclose(four.confusion[:5], one.confusion, atol=1e-3)
    assert_allclose(four.effective_annotators, one.effective_annotators, rtol=1e-3)
    assert four.annotator_group.tolist() == [0, 1, 2, 3, 4, *[which] * 3]
    assert one.annotator_group.tolist() == [0, 1, 2, 3, 4]


@quiet
def test_copies_are_found_on_few_examples_if_there_are_few_judges():
    matrix, _ = judges(n_examples=85)
    one, four = (aggregate(labels_of(each, 3), tol=1e-9) for each in (matrix, with_copies(matrix, 0)))
    assert four.annotator_group.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
    assert_allclose(four.proba, one.proba, atol=1e-4)


def test_copies_of_a_bad_judge_pull_the_consensus_along_without_this():
    matrix, truth = judges()
    labels = labels_of(with_copies(matrix, 0), 3)
    before, after = (aggregate(labels, errors_in_common=which) for which in (False, True))
    assert np.mean(before.label == truth) < 0.6 < 0.8 < np.mean(after.label == truth)
    assert before.annotator_group.tolist() == list(range(8))


@pytest.mark.parametrize("others", [[0.55, 0.55], [0.6, 0.6, 0.6]])
def test_two_good_judges_among_others_who_nearly_guess_are_no_copies(others):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 300)
        right = rng.random((300, 2 + len(others))) < [0.97, 0.97, *others]
        found = aggregate(np.where(right, truth[:, None], 1 - truth[:, None]))
        assert found.annotator_group.tolist() == list(range(2 + len(others)))
        assert (found.label == truth).mean() > 0.95


def test_a_near_copy_is_flagged_with_how_often_it_agrees():
    matrix, _ = judges()
    near = matrix[:, 1].copy()
    near[::30] = (near[::30] + 1) % 3
    labels = CrowdLabels.from_matrix(np.column_stack([matrix, near]), annotators=["a", "b", "c", "d", "e", "f"])
    found = aggregate(labels)
    assert found.annotator_flags == {
        "b": ("answers like 'f' in 97 % of 300 examples, also where both differ from others",),
        "f": ("answers like 'b' in 97 % of 300 examples, also where both differ from others",),
    }
    assert found.annotator_group.tolist() == [0, 1, 2, 3, 4, 1]


def test_independent_judges_have_their_own_votes_and_only_state_less():
    matrix, _ = judges(n_examples=2000)
    plain, found = aggregate(labels_of(matrix, 3), errors_in_common=False), aggregate(labels_of(matrix, 3))
    assert found.annotator_flags == {}
    assert_array_equal(found.label, plain.label)
    assert_array_equal(found.confusion, plain.confusion)
    assert (found.confidence <= plain.confidence + 1e-12).all()
    strength = vote_strength(plain.confusion, plain.class_prior)
    n = strength.sum() ** 2 / (strength**2).sum()
    common = found.fitted.together.common
    assert 0 < common < COMMON_ERRORS / 2
    power = plain.proba ** (1 / (1 + (n - 1) * common))
    assert_allclose(found.proba, power / power.sum(axis=1, keepdims=True))
    assert_allclose(found.effective_annotators, n / (1 + (n - 1) * common))
    assert_allclose(plain.effective_annotators, n)


def test_given_groups_have_one_vote_and_no_flag():
    matrix, _ = judges()
    labels = labels_of(matrix, 3)
    found = aggregate(labels, groups={0: "x", 1: "x", 2: "x"})
    assert found.annotator_group.tolist() == [0, 0, 0, 1, 2]
    assert found.annotator_flags == {}
    assert found.effective_annotators < aggregate(labels).effective_annotators
    assert_array_equal(found.proba, aggregate(labels, groups=["x", "x", "x", "y", "z"]).proba)
    with pytest.raises(ValueError, match="with errors_in_common=False they have no effect"):
        aggregate(labels, groups={0: "x"}, errors_in_common=False)


@pytest.mark.parametrize(("matrix", "by_votes"), [([[0, 1], [1, 0]] * 3, True), ([[0, 0, 1], [1, 1, 1]] * 3, False)])
def test_one_group_of_all_is_said_to_tell_nothing_about_them(matrix, by_votes):
    n_annotators = len(matrix[0])
    words = f"puts all {n_annotators} annotators into one: they have one vote together, so nothing can be told"
    with pytest.warns(CrowdWarning, match=words) as told:
        found = aggregate(matrix, groups=["x"] * n_annotators)
    assert found.fitted.together.by_votes == by_votes
    assert len(told) == 1  # and nothing about levels


@quiet
def test_copies_and_groups_go_along_when_annotators_and_examples_are_permuted():
    matrix, _ = judges(missing=0.2)
    matrix = with_copies(matrix, 1, 2)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(matrix)), rng.permutation(7)
    one, other = (aggregate(labels_of(each, 3), tol=1e-9) for each in (matrix, matrix[rows][:, columns]))
    assert_allclose(other.proba, one.proba[rows], atol=1e-4)
    assert_array_equal(
        rankdata(other.annotator_group, "dense"), rankdata(_renumbered(one.annotator_group[columns]), "dense")
    )


def _renumbered(group):
    seen = {}
    return [seen.setdefault(value, len(seen)) for value in group.tolist()]


def test_new_labels_share_votes_as_those_of_the_fit_did(tmp_path):
    matrix, _ = judges()
    X = np.random.default_rng(0).normal(size=(300, 2))
    labels = labels_of(with_copies(matrix, 0), 3)
    model = CrowdLogisticClassifier(cross_fit=0).fit(X, labels)
    assert model.annotator_group_.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
    again = model.consensus(X, labels, use_model=False)
    assert_allclose(again.proba, model.label_proba_)
    fewer = model.consensus(X, labels.select_annotators(np.arange(8) < 5), use_model=False)
    assert_allclose(fewer.proba, again.proba, atol=1e-6)
    model.save(tmp_path / "model.crowdwise")
    loaded = load(tmp_path / "model.crowdwise")
    assert_array_equal(loaded.annotator_group_, model.annotator_group_)
    assert loaded.effective_annotators_ == model.effective_annotators_
    assert_array_equal(loaded.consensus(X, labels).proba, model.consensus(X, labels).proba)


def test_groups_are_counted_merged_and_weighed_by_hand():
    labels = labels_of([[0, 0, 1], [1, None, 1]])
    sharing = Sharing.of(labels, np.array([0, 0, 1]), np.array([0.5, 0.5, 1.0, 1.0, 1.0]))
    assert sharing.part.tolist() == [0.75, 0.5, 1.0]
    counts = np.arange(12.0).reshape(3, 2, 2)
    assert_array_equal(sharing.merged(counts), [counts[0] + counts[1], counts[2]])
    assert_array_equal(sharing.own(counts)[1], counts[1] / 0.5)
    assert sharing.total(np.array([1.0, 10.0, 100.0]), np.sum) == 0.75 + 5.0 + 100.0


def test_unknown_annotators_are_alone():
    together = Together(np.array([0, 0, 1]), 0.4).at(np.array([1, -1, 0, -1]))
    assert together.numbers(4).tolist() == [0, 1, 0, 2]


# ---------------------------------------------------------------------- votes that decide


def test_votes_decide_where_classes_slip():
    matrix, truth = ordered_judges()
    labels = labels_of(matrix, 7)
    with pytest.warns(CrowdWarning, match="the consensus is that of the votes"):
        found = aggregate(labels)
    model = aggregate(labels, errors_in_common=False)
    assert found.by_votes
    assert not model.by_votes
    votes = labels.tally
    assert (votes[np.arange(len(votes)), found.label] == votes.max(axis=1)).all()
    right = {name: np.mean(label == truth) for name, label in (("votes", found.label), ("model", model.label))}
    assert right["votes"] > right["model"] + 0.05


def test_a_classifier_learns_from_the_votes_then():
    matrix, _ = ordered_judges()
    X, labels = np.random.default_rng(0).normal(size=(400, 2)), labels_of(matrix, 7)
    with pytest.warns(CrowdWarning, match="the consensus is that of the votes"):
        model = CrowdLogisticClassifier(steepness=0.0).fit(X, labels)
    assert (model.by_votes_, model.model_weight_) == (True, 0.0)
    assert_array_equal(model.consensus_, model.label_consensus_)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_model_decides_in_crowds_that_are_as_it_takes_them_to_be(n_classes):
    matrix, truth = judges(n_classes=n_classes, n_examples=600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = aggregate(labels_of(matrix, n_classes))
    assert not found.by_votes
    assert np.mean(found.label == truth) > 0.8


# ---------------------------------------------------------------------- real crowds


def judges_of(home, name, kinds):
    """Labels and truth of a set in the folder of judges, -1 where there is none."""

    def rows(part):
        with open(home / "judges" / name / f"{part}.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    given = [row for row in rows("labels") if row["kind"] in kinds]
    truth = {row["task"]: row["label"] for row in rows("truth")}
    classes = sorted({row["label"] for row in rows("labels")})
    columns = {key: [row[key] for row in given] for key in ("task", "worker", "label")}
    labels = CrowdLabels.from_table(columns, classes=classes)
    return labels, np.array([classes.index(truth[i]) if i in truth else -1 for i in labels.examples.tolist()])


def right_of(proba, truth):
    """Share right of the examples with truth, ties being fair draws."""
    proba, truth = proba[truth >= 0], truth[truth >= 0]
    best = proba >= proba.max(axis=1, keepdims=True) - 1e-9
    return np.mean(best[np.arange(len(truth)), truth] / best.sum(axis=1))


def off_by(proba, truth):
    """Expected calibration error in ten bins."""
    proba, truth = proba[truth >= 0], truth[truth >= 0]
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    bins = np.array_split(np.argsort(sure, kind="stable"), 10)
    return sum(abs(sure[rows].mean() - right[rows].mean()) * len(rows) for rows in bins) / len(sure)


JUDGES = ("cebab_stars", "framing", "lgbteen", "10k_prompts", "mtbench")


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("model",), ("model", "human")])
@pytest.mark.parametrize("name", JUDGES)
def test_judges_are_never_much_worse_than_their_majority(name, kinds, data_home):
    if not (data_home / "judges" / name).is_dir():
        pytest.skip("needs the folder judges in CROWDWISE_DATA")
    labels, truth = judges_of(data_home, name, kinds)
    before, found = aggregate(labels, errors_in_common=False), aggregate(labels)
    assert right_of(found.proba, truth) > right_of(labels.tally.astype(float), truth) - 0.01
    if kinds == ("model",):  # with people among them, the truth is made of labels that are counted
        assert off_by(found.proba, truth) < max(0.66 * off_by(before.proba, truth), 0.12)


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_four_copies_of_any_judge_move_the_consensus_hardly(name, data_home):
    if not (data_home / "judges" / name).is_dir():
        pytest.skip("needs the folder judges in CROWDWISE_DATA")
    labels, truth = judges_of(data_home, name, ("model",))
    right = right_of(aggregate(labels).proba, truth)
    matrix = labels.to_matrix()
    for which in range(labels.n_annotators):
        four = CrowdLabels.from_matrix(with_copies(matrix, which), classes=labels.classes)
        assert abs(right_of(aggregate(four).proba, truth) - right) < 0.01, which


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("name", CROWD_NAMES)
def test_nothing_is_lost_on_crowds_of_people(name, crowd_data):
    data = fetch_crowd(name)
    before, found = aggregate(data.labels, errors_in_common=False), aggregate(data.labels)
    assert right_of(found.proba, data.truth) > right_of(before.proba, data.truth) - 0.003
    assert not found.by_votes


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("common", [0.4, 0.6])  # errors are then correlated by .26 and .41
def test_stated_probabilities_are_about_right_on_simulated_crowds_with_errors_in_common(common):
    off = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth, accuracy = rng.integers(0, 3, 2000), rng.uniform(0.55, 0.75, 6)
        # The error of everybody goes along with one hidden variable of the example.
        hidden, own = rng.normal(size=(2000, 1)), rng.normal(size=(2000, 6))
        score = np.sqrt(common) * hidden + np.sqrt(1 - common) * own
        wrong = rankdata(score, axis=0) / 2001 > accuracy
        mislead = (truth + rng.integers(1, 3, 2000)) % 3
        other = (truth[:, None] + rng.integers(1, 3, (2000, 6))) % 3
        as_others = rng.random((2000, 6)) < np.sqrt(common)
        matrix = np.where(wrong, np.where(as_others, mislead[:, None], other), truth[:, None])
        off.append(off_by(aggregate(labels_of(matrix, 3)).proba, truth))
    assert np.mean(off) < 0.08


@pytest.mark.parametrize("n_judges", [2, 4])
def test_a_judge_who_always_answers_the_same_has_no_say(n_judges):
    matrix, truth = judges(1, n_examples=80, n_judges=n_judges, n_classes=2, accuracy=(0.8, 0.8, 0.8, 0.7)[:n_judges])
    with warnings.catch_warnings(action="ignore"):
        others = aggregate(matrix[:, 1:])
        matrix[:, 0] = 1
        result = aggregate(matrix)
    assert_array_equal(result.label, others.label)
    assert (result.label == truth).mean() > 0.7
    assert result.annotator_flags[0] == ("always the same answer",)
    # They are estimated from all of their labels all the same: right about the one class, wrong about the other.
    assert_allclose(result.fitted.confusion[0], [[0, 1], [0, 1]], atol=0.15)
    with warnings.catch_warnings(action="ignore"):
        unguarded = aggregate(matrix, errors_in_common=False)
    assert unguarded.fitted.together.silent is None


def test_it_is_said_if_few_others_are_left():
    matrix, _ = judges(1, n_examples=80, n_judges=3, n_classes=2, accuracy=(0.8, 0.8, 0.8))
    matrix[:, 0] = 1
    with pytest.warns(CrowdWarning, match=r"0 always gave the same answer where others did not.*Two are left; labels"):
        aggregate(matrix)
    with pytest.warns(CrowdWarning, match="One annotator is left to be believed"):
        result = aggregate(matrix[:, :2])
    assert result.converged
    assert_array_equal(result.label, matrix[:, 1])


def test_nobody_is_silent_where_all_are():
    with pytest.warns(CrowdWarning):
        result = aggregate(np.column_stack([np.zeros(40, dtype=int), np.ones(40, dtype=int)]))
    assert result.fitted.together.silent is None


def test_silence_is_saved_and_holds_for_other_labels(tmp_path):
    matrix, _ = judges(2, n_examples=80, n_judges=4, n_classes=2, accuracy=(0.85, 0.8, 0.8, 0.7))
    matrix[:, 2] = 0
    result = aggregate(matrix)
    assert result.fitted.together.silent.tolist() == [False, False, True, False]
    result.save(tmp_path / "judges")
    again = load(tmp_path / "judges")
    alone = CrowdLabels.from_matrix([[0], [1]], annotators=[2])
    assert_array_equal(again.fitted.together.silent, result.fitted.together.silent)
    assert_allclose(again.fitted.posterior(alone), np.tile(result.class_prior, (2, 1)), atol=1e-2)


def test_two_annotators_are_held_to_what_both_are_together_unless_another_model_is_given():
    matrix, _ = judges(2, n_examples=85, n_judges=2, n_classes=2, accuracy=(0.8, 0.7))
    by_default, firmly = aggregate(matrix), aggregate(matrix, annotator_model=Shared(strength=30.0))
    assert_array_equal(by_default.proba, firmly.proba)
    assert (aggregate(matrix, annotator_model=Shared()).proba != by_default.proba).any()
    three = aggregate(np.column_stack([matrix, matrix[:, :1]]), groups=["one", "other", "one"])
    assert three.fitted.together.n_voters(3) == 2
    assert_array_equal(three.label, by_default.label)
