import numpy as np
import pytest
from crowds import HeldCrowd
from marks import in_slow_run
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from crowdwise import CrowdLabels, aggregate
from crowdwise.em import Ordinal, Shared
from crowdwise.em.confusion import check_annotator_model, pooled
from crowdwise.em.labels_only import fit_labels
from crowdwise.em.ordinal import drawn_to_distances
from crowdwise.em.posterior import Counting
from crowdwise.labels._align import as_labels
from crowdwise.rows.chunks import MemoryChunks

both_models = pytest.mark.parametrize("model", [None, Ordinal()], ids=["default", "ordinal"])


def stars(seed, n_examples=80, n_annotators=6, n_levels=5, missing=0.3):
    """Truth, labels of annotators who are harsh or lenient and exact or vague, and how far each is off."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, n_levels + 1, n_examples)
    offset, spread = rng.normal(0, 0.7, n_annotators), rng.uniform(0.3, 1.2, n_annotators)
    felt = truth[:, np.newaxis] + offset + spread * rng.normal(size=(n_examples, n_annotators))
    matrix = np.clip(np.rint(felt), 1, n_levels)
    matrix[rng.random(matrix.shape) < missing] = np.nan
    matrix[np.isnan(matrix).all(axis=1), 0] = 1
    return truth, matrix, offset


def labels_of(matrix, n_levels=5):
    return CrowdLabels.from_matrix(matrix, classes=np.arange(1, n_levels + 1), scale="ordinal")


def levels_of(matrix):
    return as_labels(matrix).with_scale("ordinal")


def tilted(tilt, crowd):
    """A matrix by its definition, entry by entry."""
    n = len(crowd)
    matrix = np.empty((n, n))
    for k in range(n):
        for c in range(n):
            matrix[k, c] = crowd[k, c] * np.exp(tilt[0] * (c - k) + tilt[1] * (c - k) ** 2)
        matrix[k] /= matrix[k].sum()
    return matrix


def best_by_search(counts, crowd):
    """The tilted matrix that makes counts most probable, by a search that knows no derivatives."""
    found = minimize(
        lambda tilt: -(counts * np.log(tilted(tilt, crowd))).sum(),
        np.zeros(2),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2000},
    )
    return tilted(found.x, crowd)


@pytest.mark.parametrize("seed", range(3))
def test_matrices_are_those_that_a_plain_search_finds(seed):
    rng = np.random.default_rng(seed)
    crowd = rng.dirichlet(np.ones(4) + 5 * np.eye(4)[0], size=4)
    counts = rng.gamma(0.5, 4.0, size=(3, 4, 4))
    found = Ordinal(2.0).estimate(counts, crowd)
    for one, own in zip(found, counts, strict=True):
        assert_allclose(one, best_by_search(own + 2.0 * crowd, crowd), atol=1e-5)


def test_labels_are_as_far_from_the_truth_as_the_matrix_expects():
    counts = np.random.default_rng(0).gamma(0.5, 4.0, size=(5, 4, 4))
    crowd = pooled(counts)
    seen, found = counts + 2.0 * crowd, Ordinal(2.0).estimate(counts, crowd)
    away = np.arange(4.0) - np.arange(4.0)[:, np.newaxis]
    expected = found * seen.sum(axis=2, keepdims=True)
    for power in (1, 2):
        assert_allclose((seen * away**power).sum(axis=(1, 2)), (expected * away**power).sum(axis=(1, 2)), rtol=1e-6)


def test_an_annotator_of_whom_nothing_is_known_answers_as_the_crowd_does():
    counts = np.zeros((2, 3, 3))
    counts[0] = [[9, 1, 0], [2, 7, 1], [0, 3, 7]]
    crowd = pooled(counts)
    assert_allclose(Ordinal().estimate(counts, crowd)[1], crowd, rtol=1e-12)


def by_loops(matrix, n_levels, n_rounds):
    """Rounds of EM for one matrix of labels, example by example and label by label."""
    n, n_annotators = matrix.shape
    posterior = np.zeros((n, n_levels))
    for i in range(n):
        for label in matrix[i][~np.isnan(matrix[i])]:
            posterior[i, int(label) - 1] += 1
        posterior[i] /= posterior[i].sum()
    for _ in range(n_rounds):
        counts = np.zeros((n_annotators, n_levels, n_levels))
        for i, j in zip(*np.nonzero(~np.isnan(matrix)), strict=True):
            counts[j, :, int(matrix[i, j]) - 1] += posterior[i]
        crowd = Ordinal().crowd(counts)
        confusion = [best_by_search(own + crowd, crowd) for own in counts]
        frequency = posterior.sum(axis=0) / posterior.sum()
        for i in range(n):
            log_joint = np.log(frequency)
            for j in np.flatnonzero(~np.isnan(matrix[i])):
                log_joint = log_joint + np.log(confusion[j][:, int(matrix[i, j]) - 1])
            posterior[i] = np.exp(log_joint - log_joint.max())
            posterior[i] /= posterior[i].sum()
    return posterior


def test_rounds_equal_loops_over_examples_and_labels():
    _, matrix, _ = stars(0, n_examples=25, n_annotators=3, n_levels=3)
    chunks = MemoryChunks.of(labels_of(matrix, 3), np.ones(25))
    settings = {"max_rounds": 2, "tol": 0.0}
    fit = fit_labels(chunks, Counting(3, independent=True), Ordinal(), **settings)
    assert_allclose(chunks.gather(lambda chunk: fit.posterior(chunk)[0]), by_loops(matrix, 3, 2), atol=1e-4)


@pytest.mark.parametrize("seed", [1, 3, in_slow_run(0), in_slow_run(2)])
def test_the_objective_never_falls(seed):
    _, matrix, _ = stars(seed, missing=0.6)
    settings = {"annotator_model": HeldCrowd(Ordinal()), "errors_in_common": False}
    found = aggregate(labels_of(matrix), **settings)
    assert np.diff(found.objective).min() > -1e-7 * np.abs(found.objective).max()


@pytest.mark.parametrize("strength", [1.0, 4.0])
def test_matrices_of_two_levels_are_those_of_two_classes(strength):
    rng = np.random.default_rng(0)
    crowd, counts = rng.dirichlet(np.ones(2), size=2), rng.gamma(1.0, 3.0, size=(4, 2, 2))
    levels, classes = Ordinal(strength), Shared(strength)
    assert_allclose(levels.estimate(counts, crowd), classes.estimate(counts.copy(), crowd), rtol=1e-9)
    confusion = classes.estimate(counts.copy(), crowd)
    assert levels.log_prior(confusion, crowd) == pytest.approx(classes.log_prior(confusion, crowd))


def test_the_matrix_of_few_labels_knows_distances_only_and_that_of_many_is_their_own():
    counts = np.array([[6.0, 2.0, 0.0], [1.0, 8.0, 3.0], [0.0, 0.0, 4.0]])
    # Right 18 of 24 times; a level apart 6 of 36 (two such labels are possible in the middle), two apart 0 of 12.
    alike = np.array([(18 + 1 / 3) / 25, (6 + 1 / 3) / 37, (1 / 3) / 13])
    first, middle = alike, alike[[1, 0, 1]]
    few = drawn_to_distances(counts)
    assert_allclose(few[0], (counts[0] + 200 * first / first.sum()) / 208)
    assert_allclose(few[1], (counts[1] + 200 * middle / middle.sum()) / 212)
    assert_allclose(drawn_to_distances(counts * 1e9), counts / counts.sum(axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("stray", [0.0, 0.003])
@both_models
def test_levels_that_nobody_or_hardly_anybody_uses_leave_the_others_as_they_are(stray, model):
    for seed in range(3):
        truth, matrix, _ = stars(seed, n_examples=300, n_levels=3)
        rng = np.random.default_rng(seed)
        declared = np.where(rng.random(matrix.shape) < stray, rng.choice([0, 4], matrix.shape), matrix)
        declared[np.isnan(matrix)] = np.nan
        few = aggregate(CrowdLabels.from_matrix(matrix, classes=[1, 2, 3], scale="ordinal"), annotator_model=model)
        five = CrowdLabels.from_matrix(declared, classes=[0, 1, 2, 3, 4])
        many = aggregate(five.with_scale("ordinal"), annotator_model=model)
        assert (many.label == truth).mean() > (few.label == truth).mean() - 0.05
        assert_allclose(many.class_prior[1:4], few.class_prior, atol=0.07)


@pytest.mark.parametrize(("origin", "unit"), [(100, 1), (0, 10), (-7, 3)])
@both_models
def test_neither_origin_nor_unit_of_the_levels_matters(origin, unit, model):
    _, matrix, _ = stars(2)
    found, moved = (aggregate(levels_of(m), annotator_model=model) for m in (matrix, origin + unit * matrix))
    assert_allclose(moved.proba, found.proba, atol=1e-9)
    assert_allclose(moved.mean, origin + unit * found.mean)
    assert_allclose(moved.offset, unit * found.offset, atol=1e-7)
    assert_allclose(moved.spread, unit * found.spread, atol=1e-7)


@both_models
def test_the_reversed_order_mirrors_everything(model):
    _, matrix, _ = stars(3)
    found, mirrored = (aggregate(levels_of(m), annotator_model=model) for m in (matrix, 6 - matrix))
    assert_allclose(mirrored.proba, found.proba[:, ::-1], atol=1e-7)
    assert_allclose(mirrored.offset, -found.offset, atol=1e-6)
    assert_allclose(mirrored.spread, found.spread, atol=1e-6)
    assert (mirrored.label == 6 - found.label).all()


@both_models
def test_levels_declared_from_the_highest_down_are_the_same_levels(model):
    _, matrix, _ = stars(3)
    up, down = (
        aggregate(CrowdLabels.from_matrix(matrix, classes=order, scale="ordinal"), annotator_model=model)
        for order in ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1])
    )
    assert_allclose(down.proba[:, ::-1], up.proba, atol=1e-7)
    assert_allclose(down.mean, up.mean, atol=1e-6)
    assert_allclose(down.offset, up.offset, atol=1e-6)


@both_models
def test_the_order_of_examples_and_annotators_changes_nothing(model):
    _, matrix, _ = stars(4)
    rows, columns = (np.random.default_rng(0).permutation(n) for n in matrix.shape)
    settings = {"annotator_model": model}
    found, moved = (aggregate(labels_of(m), **settings) for m in (matrix, matrix[rows][:, columns]))
    assert_allclose(moved.proba, found.proba[rows], atol=1e-6)
    assert_allclose(moved.offset, found.offset[columns], atol=1e-6)


def test_an_example_twice_is_an_example_of_weight_two():
    _, matrix, _ = stars(5, n_examples=40)
    weight = np.ones(40)
    weight[:10] = 2.0
    twice, weighted = (
        fit_labels(MemoryChunks.of(labels_of(rows), own), Counting(5), Ordinal())
        for rows, own in ((np.vstack([matrix, matrix[:10]]), np.ones(50)), (matrix, weight))
    )
    assert_allclose(twice.posterior.annotators.confusion, weighted.posterior.annotators.confusion, atol=1e-8)
    assert_allclose(twice.class_prior, weighted.class_prior, atol=1e-8)


@both_models
def test_an_annotator_without_labels_changes_nothing_else(model):
    _, matrix, _ = stars(6)
    empty = np.column_stack([matrix, np.full(len(matrix), np.nan)])
    found, with_one_more = (aggregate(labels_of(m), annotator_model=model) for m in (matrix, empty))
    assert (with_one_more.proba == found.proba).all()
    assert (with_one_more.offset[:-1] == found.offset).all()
    assert np.isnan([with_one_more.offset[-1], with_one_more.spread[-1]]).all()


@both_models
def test_one_annotator_is_believed(model):
    found = aggregate(levels_of([1, 5, 3, 3]), annotator_model=model)
    assert found.label.tolist() == [1, 5, 3, 3]
    assert np.isnan([found.offset[0], found.spread[0], found.accuracy[0]]).all()  # nobody to compare with


@both_models
def test_levels_that_nobody_used_keep_their_place(model):
    matrix = np.array([[1, 1, 2], [5, 5, 5], [2, 2, 2], [5, 4, 5], [1, 2, 1], [4, 4, 5]])
    found = aggregate(CrowdLabels.from_matrix(matrix, classes=[1, 2, 3, 4, 5], scale="ordinal"), annotator_model=model)
    assert found.proba.shape == (6, 5)
    assert np.isfinite(found.proba).all()
    assert found.label.tolist() == [1, 5, 2, 5, 1, 4]
    assert found.consensus.levels.tolist() == [1, 2, 3, 4, 5]


def test_a_gap_between_levels_is_a_distance():
    _, matrix, _ = stars(8, n_levels=3)
    gap = np.where(matrix == 3, 9.0, matrix)
    found = aggregate(levels_of(gap), annotator_model=Ordinal(2.0))
    told = aggregate(levels_of(gap), annotator_model=Ordinal(2.0, levels=(1.0, 2.0, 9.0)))
    assert (found.proba == told.proba).all()
    even = aggregate(levels_of(matrix), annotator_model=Ordinal(2.0))
    assert np.abs(found.proba - even.proba).max() > 0.001


@both_models
def test_a_perfect_crowd_is_no_difficulty(model):
    matrix = np.repeat(np.arange(1, 6), 20)[:, np.newaxis].repeat(3, axis=1)
    found = aggregate(levels_of(matrix), annotator_model=model)
    assert (found.label == matrix[:, 0]).all()
    assert_allclose(found.offset, 0, atol=0.01)


def test_who_gives_more_stars_is_found_and_allowed_for():
    truth, matrix, offset = stars(7, n_examples=400, n_annotators=8)
    settings = {"errors_in_common": False}
    levels, classes = (aggregate(labels_of(matrix), annotator_model=model, **settings) for model in (Ordinal(), None))
    relative = offset - offset.mean()
    assert np.corrcoef(levels.offset, relative)[0, 1] > 0.95
    errors = [np.abs(found.label - truth).mean() for found in (levels, classes)]
    assert errors[0] < 0.9 * errors[1]


@both_models
def test_who_is_always_two_stars_too_harsh_is_not_worse_than_chance(model):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, 6, 100)
    near = np.clip(truth[:, np.newaxis] + rng.choice([-1, 0, 0, 0, 1], (100, 6)), 1, 5)
    found = aggregate(levels_of(np.column_stack([near, truth - 2, 6 - near[:, 0]])), annotator_model=model)
    assert found.offset[6] < -1.5
    assert found.accuracy[6] < 0.2
    assert set(found.annotator_flags) == {7}


@pytest.mark.parametrize("levels", [(1.0, 1.0), (1.0, np.nan), ("a", "b")])
def test_levels_that_cannot_be_are_refused(levels):
    with pytest.raises(ValueError, match="levels must be finite numbers,"):
        check_annotator_model(Ordinal(levels=levels))


def test_levels_for_other_classes_are_refused():
    with pytest.raises(ValueError, match="Ordinal has 2 levels, and"):
        aggregate([[1, 2], [3, 3], [2, 2]], annotator_model=Ordinal(levels=(1.0, 2.0)))


@pytest.mark.parametrize("strength", [0.0, -1.0, np.nan, None])
def test_a_strength_that_cannot_be_is_refused(strength):
    with pytest.raises(ValueError, match="strength must be a finite"):
        check_annotator_model(Ordinal(strength))
