"""Rounds over blocks give what a fit in memory gives."""

from functools import partial

import numpy as np
import pytest
from crowds import clear_crowd, crowd, labels_of, with_copies
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import crowdwise
from crowdwise import CrowdLabels, CrowdLogisticClassifier, read_blocks
from crowdwise.em import Confusion, Ordinal
from crowdwise.exceptions import CrowdConvergenceWarning, DataError, LabelError
from crowdwise.rows import summary
from crowdwise.rows.summary import DataSummary
from crowdwise.weights import SelfPaced, Smooth

# Classifiers fitted to many digits; two rounds, as by default, or to convergence.
FEW = {"tol": 1e-12, "l2": 1.0}
TIGHT = FEW | {"max_rounds": 500}


@pytest.fixture
def in_rounds(monkeypatch, set_constants):
    """Rounds over blocks even if the sample has all rows, and the folds of many examples in memory too."""
    set_constants("crowdwise.weights.folds", ENOUGH_EXAMPLES=0)
    monkeypatch.setattr(DataSummary, "is_complete", False)


def blocks_of(X, labels, cuts, *weight):
    """Blocks of the rows between cuts."""
    between = zip([0, *cuts], [*cuts, X.shape[0]], strict=True)
    return [(X[a:b], labels[slice(a, b)], *(values[a:b] for values in weight)) for a, b in between]


def assert_same(blocks, memory, X, labels, atol=1e-10):
    for name in ("coef_", "intercept_", "confusion_", "class_prior_", "temperature_", "accuracy_", "class_weight_"):
        assert_allclose(getattr(blocks, name), getattr(memory, name), atol=atol, rtol=0, err_msg=name)
    assert_allclose(blocks.predict_proba(X), memory.predict_proba(X), atol=atol)
    assert_allclose(blocks.consensus(X, labels).proba, memory.consensus(X, labels).proba, atol=atol)
    assert_allclose(blocks.objective_[-1:], memory.objective_[-1:], rtol=1e-12)
    assert (blocks.converged_, blocks.n_rounds_, blocks.l2_) == (memory.converged_, memory.n_rounds_, memory.l2_)


@pytest.mark.parametrize(
    ("n_classes", "settings"),
    [
        (2, {}),
        in_slow_run(*(3, {"steepness": 2.0})),
        in_slow_run(*(3, {"errors_in_common": False, "annotator_model": Confusion()})),
        (2, {"cross_fit": 0}),
        in_slow_run(*(2, {"annotator_model": Confusion()})),
        in_slow_run(*(2, {"class_weight": {1: 3.0}, "cross_fit": 3})),
        in_slow_run(*(2, {"class_weight": "balanced"})),
        (2, {"fit_intercept": False, "steepness": 1.0}),
        in_slow_run(*(2, {"steepness": 1.0, "curriculum": Smooth(2.0), "tol": 3e-3})),
    ],
    ids=repr,
)
def test_blocks_give_what_a_fit_in_memory_gives(n_classes, settings, in_rounds):
    X, labels, _ = clear_crowd(1, n_examples=300, n_classes=n_classes, missing=0.4)
    model = partial(CrowdLogisticClassifier, **TIGHT | settings)
    memory, blocks = model().fit(X, labels), model().fit(read_blocks(blocks_of(X, labels, [7, 110, 111, 290])))
    if "curriculum" in settings:  # weights change until the last round
        assert_allclose(blocks.coef_, memory.coef_, atol=2e-2)
        assert_allclose(blocks.confusion_, memory.confusion_, atol=2e-2)
    else:
        assert_same(blocks, memory, X, labels)


@pytest.mark.parametrize("form", [in_slow_run(np.asarray), sparse.csr_array])
def test_weights_single_precision_and_sparse_features_give_what_a_fit_in_memory_gives(form, in_rounds):
    X, labels, _ = clear_crowd(2, n_examples=300)
    X = np.where(np.abs(X) < 0.4, 0.0, X).astype(np.float32)
    weight = np.random.default_rng(0).integers(0, 4, 300).astype(float)
    given = form(X)
    memory = CrowdLogisticClassifier(**TIGHT).fit(given, labels, weight)
    blocks = CrowdLogisticClassifier(**TIGHT).fit(read_blocks(blocks_of(given, labels, [50, 200], weight)))
    assert_same(blocks, memory, given, labels)


def test_large_offsets_give_what_a_fit_in_memory_gives(in_rounds):
    X, labels, _ = clear_crowd(4, n_examples=300)
    far = X * [1.0, 1e5] + [2.0**20, 0.0]
    near = CrowdLogisticClassifier(**TIGHT | {"cross_fit": 0}).fit(far, labels)
    blocks = CrowdLogisticClassifier(**TIGHT | {"cross_fit": 0}).fit(read_blocks(blocks_of(far, labels, [120])))
    assert_allclose(blocks.predict_proba(far), near.predict_proba(far), atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [{}, in_slow_run({"annotator_model": Confusion()}), in_slow_run({"annotator_model": Ordinal()})],
    ids=repr,
)
@pytest.mark.parametrize("n_sampled", [150, 400])
def test_more_examples_than_the_sample_has_give_what_a_fit_in_memory_gives(settings, n_sampled, set_constants):
    set_constants(summary, ENOUGH_EXAMPLES=n_sampled)
    set_constants("crowdwise.logistic.fit", SCALING_EXAMPLES=150)
    set_constants("crowdwise.weights.folds", ENOUGH_EXAMPLES=0)
    X, labels, _ = clear_crowd(3, n_examples=700)
    model = partial(CrowdLogisticClassifier, **FEW | settings)
    memory = model().fit(X, labels)
    blocks = model().fit(read_blocks(blocks_of(X, labels, [60, 130, 500])))
    assert blocks.n_passes_ > 2
    assert_same(blocks, memory, X, labels, atol=1e-6)


@pytest.mark.parametrize("given", [in_slow_run(False), True])
def test_copies_share_a_vote_in_the_rounds_over_blocks_as_in_memory(given, in_rounds):
    X, labels = with_copies(6, n_examples=300)
    groups = {"copy 0": "x", "copy 1": "x", "copy 2": "x", labels.annotators[3]: "x"} if given else None
    model = partial(CrowdLogisticClassifier, **TIGHT)
    grouped = labels.with_groups(groups)
    memory = model().fit(X, grouped)
    blocks = model().fit(read_blocks(blocks_of(X, grouped, [60, 200])))
    assert_allclose(memory.results_.vote_weight[[3, 7, 8, 9]], 0.25, atol=0 if given else 0.03)
    assert_allclose(np.delete(memory.results_.vote_weight, [3, 7, 8, 9]), 1.0)
    assert_array_equal(blocks.results_.vote_weight, memory.results_.vote_weight)
    assert blocks.results_.effective_votes == pytest.approx(memory.results_.effective_votes)
    assert blocks.annotator_flags_ == memory.annotator_flags_
    assert_same(blocks, memory, X, labels)
    alone = model(errors_in_common=False).fit(read_blocks(blocks_of(X, labels, [60, 200])))
    assert np.abs(alone.confusion_ - blocks.confusion_).max() > 1e-3
    with pytest.raises(ValueError, match="groups share votes"):
        model(errors_in_common=False).fit(read_blocks([(X, labels.with_groups({"copy 0": 1}))]))


@pytest.mark.filterwarnings("ignore:.*always gave the same answer")
@pytest.mark.parametrize("n_annotators", [in_slow_run(3), 7])
def test_who_always_answers_the_same_is_flagged_over_blocks_as_in_memory(n_annotators, in_rounds):
    X, labels, _ = clear_crowd(6, n_examples=300, n_annotators=n_annotators, missing=0.2)
    matrix = labels.to_matrix().astype(object)
    matrix[:, 1] = 1
    labels = CrowdLabels.from_matrix(matrix)
    memory = CrowdLogisticClassifier(**TIGHT).fit(X, labels)
    blocks = CrowdLogisticClassifier(**TIGHT).fit(read_blocks(blocks_of(X, labels, [60, 200])))
    assert blocks.annotator_flags_ == memory.annotator_flags_
    assert "always the same answer" in memory.annotator_flags_[1]
    assert_same(blocks, memory, X, labels)


@pytest.mark.parametrize("settings", [{}, {"annotator_model": Confusion(), "tol": 1e-13}, {"steepness": 2.0}], ids=repr)
def test_blocks_that_fit_into_the_sample_give_the_bits_of_a_fit_in_memory(settings):
    X, labels = with_copies(6, n_examples=300, n_classes=3, missing=0.3)
    memory = CrowdLogisticClassifier(**settings).fit(X, labels)
    blocks = CrowdLogisticClassifier(**settings).fit(read_blocks(iter(blocks_of(X, labels, [7, 110, 111, 290]))))
    for name in ("coef_", "confusion_", "class_prior_", "temperature_", "accuracy_", "objective_"):
        assert_array_equal(getattr(blocks, name), getattr(memory, name), err_msg=name)
    assert_array_equal(blocks.results_.vote_weight, memory.results_.vote_weight)
    assert_array_equal(blocks.consensus(X, labels).proba, memory.consensus(X, labels).proba)
    assert (blocks.steepness_, blocks.l2_, blocks.n_passes_) == (memory.steepness_, memory.l2_, 1)
    assert not hasattr(blocks, "consensus_")


# ------------------------------------------------------------------ blocks of any kind


@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_neither_cuts_nor_order_of_blocks_matter(n_classes, in_rounds):
    X, labels, _ = clear_crowd(5, n_examples=200, n_classes=n_classes)
    whole = CrowdLogisticClassifier(**TIGHT).fit(read_blocks([(X, labels)]))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        parts = blocks_of(X, labels, [0, *sorted(rng.integers(0, 201, 4)), 200])  # the first and the last are empty
        rng.shuffle(parts)
        other = CrowdLogisticClassifier(**TIGHT).fit(read_blocks(parts))
        for name in ("coef_", "confusion_", "class_prior_"):
            assert_allclose(getattr(other, name), getattr(whole, name), atol=1e-10, err_msg=name)


def test_blocks_of_other_annotators_and_classes_are_joined():
    X, matrix = crowd(6, n_examples=300, n_classes=3, missing=0.3)
    names = np.array([f"annotator {j}" for j in range(6)])
    whole = CrowdLabels.from_matrix(matrix, annotators=names, classes=[0, 1, 2])
    parts, halves = [], [matrix[:150].copy(), matrix[150:].copy()]
    halves[0][:, 5] = None  # the last annotator comes later, the first one leaves, and nobody names class 2 at first
    halves[1][:, 0] = None
    halves[0][halves[0] == 2] = None
    for half, columns in zip(halves, ([4, 3, 2, 1, 0], [1, 5, 2, 3, 4]), strict=True):
        parts.append(CrowdLabels.from_matrix(half[:, columns], annotators=names[columns]))
    together = CrowdLabels.from_matrix(np.vstack(halves), annotators=names, classes=[0, 1, 2])
    quiet = pytest.warns(UserWarning, match="have no label")
    with quiet:
        one = CrowdLogisticClassifier(**TIGHT | {"tol": 1e-6}).fit(
            read_blocks([(X[:150], parts[0]), (X[150:], parts[1])])
        )
    with quiet:
        other = CrowdLogisticClassifier(**TIGHT | {"tol": 1e-6}).fit(read_blocks([(X, together)]))
    assert one.classes_.tolist() == [0, 1, 2]
    order = [one.annotators_.tolist().index(name) for name in names]
    assert_allclose(one.confusion_[order], other.confusion_, atol=1e-5)
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-5)
    assert_array_equal(one.results_.n_labels[order], together.labels_per_annotator)
    assert whole.n_labels > together.n_labels


def test_one_annotator_has_one_round_over_blocks_as_in_memory(in_rounds):
    X, labels, _ = clear_crowd(7, n_examples=120)
    alone = labels.select_annotators(np.arange(7) == 0)
    alone = alone[alone.labels_per_example > 0]
    X = X[: len(alone)]
    memory = CrowdLogisticClassifier(l2=1.0).fit(X, alone)
    blocks = CrowdLogisticClassifier(l2=1.0).fit(read_blocks(blocks_of(X, alone, [40])))
    assert_allclose(blocks.coef_, memory.coef_, atol=1e-3)
    assert blocks.n_rounds_ == memory.n_rounds_ == 1
    assert np.isnan(blocks.accuracy_[0])  # nothing can show it


def test_threads_change_no_bit(monkeypatch, in_rounds):
    X, labels, _ = clear_crowd(9, n_examples=400)
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr("crowdwise.rows.chunks.available_cores", lambda n=n_threads: n)
        found.append(CrowdLogisticClassifier(l2=1.0).fit(read_blocks(blocks_of(X, labels, range(20, 400, 20)))))
    for name in ("coef_", "confusion_", "objective_", "class_prior_"):
        assert_array_equal(getattr(found[0], name), getattr(found[1], name))


def test_rounds_go_on_from_a_sample_to_what_all_examples_say(in_rounds, set_constants):
    X, labels, _ = clear_crowd(11, n_examples=400)
    memory = CrowdLogisticClassifier(**TIGHT).fit(X, labels)
    set_constants(summary, ENOUGH_EXAMPLES=150)
    blocks = CrowdLogisticClassifier(**TIGHT).fit(read_blocks(blocks_of(X, labels, [200])))
    # Temperature and offsets are those of the sample: all else is of all examples, given that.
    assert_allclose(blocks.predict_proba(X), memory.predict_proba(X), atol=0.1)
    assert_allclose(blocks.confusion_, memory.confusion_, atol=2e-2)


# ------------------------------------------------------------------ results and errors


def test_results_are_about_annotators_and_not_about_single_examples(tmp_path):
    X, labels, truth = clear_crowd(12, n_examples=200)
    rounds = []
    model = CrowdLogisticClassifier(l2=1.0).fit(read_blocks(blocks_of(X, labels, [80])), on_round=rounds.append)
    assert [one.number for one in rounds if one.stage == "labels and features"] == [*range(1, model.n_rounds_ + 1)]
    assert model.annotators_[model.accuracy_.argmin()] == "annotator 2"
    assert "worse than chance" in str(model.annotator_flags_)
    assert (model.consensus(X, labels).label == truth).mean() > 0.95
    assert len(model.annotators_frame()) == 7
    with pytest.raises(AttributeError, match="consensus_ is about single examples,"):
        model.consensus_  # noqa: B018
    with pytest.raises(DataError, match="examples of blocks are not kept"):
        model.consensus_frame()
    model.save(tmp_path / "model")
    loaded = crowdwise.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_array_equal(loaded.accuracy_, model.accuracy_)


def test_what_cannot_be_learnt_from_is_told():
    X, labels, _ = clear_crowd(13, n_examples=60)
    model = CrowdLogisticClassifier(l2=1.0)
    with pytest.raises(DataError, match="no blocks to learn from"):
        model.fit(read_blocks([]))
    with pytest.raises(ValueError, match="y cannot be given with blocks"):
        model.fit(read_blocks([(X, labels)]), labels)
    with pytest.raises(ValueError, match="Give them as the labels"):
        model.fit(read_blocks([(X, labels)]), truth=[0] * 60)
    with pytest.raises(ValueError, match="ranks the examples in every round"):
        CrowdLogisticClassifier(curriculum=SelfPaced()).fit(read_blocks([(X, labels)]))
    with pytest.raises(DataError, match="the same features; one has"):
        model.fit(read_blocks([(X, labels), (X[:, :1], labels)]))
    with pytest.raises(DataError, match="NaN or infinity"):
        model.fit(read_blocks([(np.where(X > 1, np.nan, X), labels)]))
    with pytest.raises(LabelError, match="there is no label"):
        model.fit(read_blocks([(X, labels_of(np.full((60, 2), None)))]))
    with pytest.raises(LabelError, match="at least two classes"):
        model.fit(read_blocks([(X, np.ones((60, 2), dtype=int))]))
    with pytest.warns(CrowdConvergenceWarning, match="after 1 rounds"):
        CrowdLogisticClassifier(l2=1.0, max_rounds=1, tol=1e-9).fit(read_blocks([(X, labels)]))


def test_blocks_that_cannot_be_read_again_or_change_between_passes_are_an_error(in_rounds):
    X, labels, _ = clear_crowd(13, n_examples=60)
    with pytest.raises(DataError, match="they are needed once more"):
        CrowdLogisticClassifier(l2=1.0).fit(read_blocks(iter(blocks_of(X, labels, [30]))))
    passes = []

    def shrinking():
        passes.append(None)
        yield X[len(passes) :], labels[len(passes) :]

    with pytest.raises(DataError, match="the same in every pass;"):
        CrowdLogisticClassifier(l2=1.0).fit(read_blocks(shrinking))


@pytest.mark.slow
def test_levels_are_read_as_in_memory(in_rounds):
    rng = np.random.default_rng(14)
    truth = rng.integers(1, 5, 240)
    X = truth[:, None] + rng.normal(size=(240, 2))
    stars = np.clip(truth[:, None] + rng.integers(-1, 2, (240, 5)) + [0, 0, 0, 0, 1], 1, 4)
    stars = CrowdLabels.from_matrix(stars).with_scale("ordinal", consensus="mean")
    settings = {"l2": 1.0, "steepness": 0.0, "tol": 1e-8, "max_rounds": 500}
    memory = CrowdLogisticClassifier(**settings).fit(X, stars)
    blocks = CrowdLogisticClassifier(**settings).fit(read_blocks([(X[:90], stars[:90]), (X[90:], stars[90:])]))
    assert_allclose(blocks.predict_proba(X), memory.predict_proba(X), atol=1e-6)
    assert_array_equal(blocks.predict(X), memory.predict(X))
    unsure = CrowdLabels.from_matrix(stars.to_matrix(), abstain=[1]).with_abstentions()
    with pytest.raises(ValueError, match="with_abstentions needs examples in memory"):
        CrowdLogisticClassifier().fit(read_blocks([(X, unsure)]))
