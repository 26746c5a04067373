import numpy as np
import pytest
from crowds import crowd, labels_of
from numpy.testing import assert_allclose
from scipy import sparse

from crowdwise import CrowdLabels
from crowdwise.exceptions import DataError
from crowdwise.ridge.statistics import Placed, add_placed, collect
from crowdwise.ridge.targets import Targets, first_consensus
from crowdwise.rows.features import Rows, mean_variance


def statistics(X, labels, *, easiness=None, sample_weight=None, cell=None, n_cells=1, intercept=True):
    targets, init = Targets.of(labels), "mean" if labels.classes is None else "majority"
    return collect(
        Rows.of(X, intercept=intercept), labels, targets, first=first_consensus(labels, targets, init),
        easiness=easiness, sample_weight=sample_weight, cell=cell, n_cells=n_cells,
    )  # fmt: skip


SUMS = ("gram", "cross", "first", "squares", "mass", "answered", "present")


def added(one, other):
    cells, annotators = np.arange(one.n_cells), np.arange(one.n_annotators)
    return add_placed(Placed(one, cells, annotators), Placed(other, cells, annotators), one.n_cells, one.annotators)


def fields(sums):
    return {name: getattr(sums, name) for name in SUMS}


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_sums_equal_loops_over_labels(missing, n_classes, container):
    X, matrix = crowd(missing=missing, n_classes=n_classes)
    labels = labels_of(matrix, n_classes)
    weight = np.random.default_rng(0).random(len(X))
    sums = statistics(container(X), labels, easiness=weight)
    shift = Rows.of(container(X), intercept=True).shift
    Z = np.column_stack([X - shift, np.ones(len(X))])
    targets = Targets.of(labels)
    for j in range(labels.n_annotators):
        rows = [i for i in range(len(X)) if matrix[i, j] is not None]
        block = 0 if not missing else j
        assert_allclose(
            sums.gram[0, block], sum(weight[i] * np.outer(Z[i], Z[i]) for i in rows), rtol=1e-10, atol=1e-12
        )
        codes = [targets.codebook[matrix[i, j]] for i in rows]
        cross = sum(weight[i] * np.outer(Z[i], code) for i, code in zip(rows, codes, strict=True))
        assert_allclose(sums.cross[0, j], cross, rtol=1e-10, atol=1e-12)
        assert_allclose(sums.mass[0, j], weight[rows].sum())
        assert_allclose(sums.answered[0, j], len(rows))
        assert_allclose(sums.squares[0, j], weight[rows].sum() * (1 if n_classes == 2 else n_classes / 2))
    first = first_consensus(labels, targets, "majority")
    n = labels.labels_per_example
    assert_allclose(sums.first[0], (Z * (weight * n)[:, None]).T @ first, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_sums_of_blocks_add_up(missing):
    X, matrix = crowd(missing=missing)
    labels = labels_of(matrix)
    rows = Rows.of(X, intercept=True)
    targets = Targets.of(labels)
    first = first_consensus(labels, targets, "majority")
    whole = collect(rows, labels, targets, first=first)
    half = np.arange(len(X)) < 15
    half[:2] = [True, False]
    cells = collect(rows, labels, targets, first=first, cell=half.astype(np.int16), n_cells=2)
    parts = [cells.combine(np.eye(2)[[k]]) for k in (0, 1)]
    for name, value in fields(added(*parts)).items():
        assert_allclose(value, fields(whole)[name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_cells_combined_with_weights_equal_weighted_sums(missing):
    X, matrix = crowd(missing=missing)
    labels = labels_of(matrix)
    cell = np.random.default_rng(0).integers(0, 3, len(X))
    weight = np.array([0.2, 1.0, 0.7])
    combined = statistics(X, labels, cell=cell, n_cells=3).combine(np.ones((1, 3)), weight)
    for name, value in fields(statistics(X, labels, easiness=weight[cell])).items():
        assert_allclose(fields(combined)[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


def test_the_model_step_of_complete_labels_is_that_of_the_consensus():
    X, matrix = crowd()
    labels = labels_of(matrix)
    expertise = np.arange(1.0, 7)
    sums = statistics(X, labels, intercept=False)
    gram, cross = sums.systems(expertise).grams(), sums.systems(expertise).crosses()
    consensus = (2.0 * matrix.astype(float) - 1) @ expertise / expertise.sum()
    assert_allclose(gram[0], X.T @ X)
    assert_allclose(cross[0, :, 0], X.T @ consensus)


def test_no_shift_without_an_intercept():
    assert not Rows.of(np.full((5, 2), 3.0), intercept=False).shift.any()


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_blended_sums_are_the_sums_of_blended_weights(missing):
    X, matrix = crowd(missing=missing, n_classes=3)
    labels = labels_of(matrix, 3)
    targets = Targets.of(labels)
    rng = np.random.default_rng(0)
    easiness, own = rng.random((2, len(X)))
    work = {"first": first_consensus(labels, targets, "majority"), "sample_weight": own}
    rows = Rows.of(X, intercept=True)
    easy, plain = collect(rows, labels, targets, easiness=easiness, **work), collect(rows, labels, targets, **work)
    expected = collect(rows, labels, targets, easiness=0.3 * easiness + 0.7, **work)
    for name, value in fields(easy.blend(plain, 0.3)).items():
        assert_allclose(value, getattr(expected, name), rtol=1e-10, atol=1e-12, err_msg=name)


def halves(X, labels, intercept=True, seed=0):
    """Sums of two random halves, each around its own centre, and of all rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    parts = [np.sort(order[: len(X) // 3]), np.sort(order[len(X) // 3 :])]
    left, right = (statistics(X[part], labels[part], intercept=intercept) for part in parts)
    return left, right, statistics(X, labels, intercept=intercept)


def assert_same_sums(one, other):
    other = other.around(one.shift, one.targets.centre)
    for name in SUMS:
        expected = getattr(other, name)
        # Relative to the sums of a matrix, whose single entries may cancel.
        assert_allclose(getattr(one, name), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max(), err_msg=name)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_halves_collected_apart_add_up_to_one_pass(seed, missing, n_classes, offset):
    X, matrix = crowd(seed, n_classes=n_classes, missing=missing, n_examples=90)
    left, right, whole = halves(X + offset, labels_of(matrix, n_classes), seed=seed)
    assert not offset or (left.shift != right.shift).all()
    assert_same_sums(added(left, right), whole)
    assert_same_sums(added(right, left), whole)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_halves_of_ratings_far_from_zero_add_up_to_one_pass(seed, missing):
    rng = np.random.default_rng(seed)
    X, ratings = rng.normal(size=(80, 3)) - 1e8, rng.normal(size=(80, 4)) * 3 + 2.0**20
    ratings[rng.random(ratings.shape) < missing] = np.nan
    ratings[:, 0] = 2.0**20
    left, right, whole = halves(X, CrowdLabels.from_matrix(ratings, scale="interval"), seed=seed)
    if missing:
        assert left.targets.centre != right.targets.centre
    assert_same_sums(added(left, right), whole)


def test_a_half_with_all_labels_and_a_half_without_add_up():
    X, matrix = crowd(n_examples=60)
    matrix[:30][np.random.default_rng(0).random((30, 6)) < 0.4] = None
    matrix[:30, 0] = 1
    labels = labels_of(matrix)
    left, right = statistics(X[:30], labels[:30]), statistics(X[30:], labels[30:])
    assert right.is_complete
    assert not left.is_complete
    assert_same_sums(added(left, right), statistics(X, labels))
    assert_same_sums(added(right, left), statistics(X, labels))


def test_without_an_intercept_nothing_is_shifted():
    X, matrix = crowd()
    left, right, whole = halves(X, labels_of(matrix), intercept=False)
    assert_same_sums(added(left, right), whole)
    with pytest.raises(DataError, match="do not know their means"):
        whole.around(np.ones(3), 0.0)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("centred", [True, False])
def test_the_mean_variance_is_that_of_every_feature_by_itself(make, centred, rng, set_constants):
    set_constants("crowdwise.rows.features", _BLOCK_BYTES=2**11)  # several blocks
    X, weight = rng.normal(size=(300, 4)).astype(np.float32) * [0.1, 1, 5, 0] + [3, 0, -1, 2], rng.uniform(0.1, 2, 300)
    X = X.astype(np.float32).astype(np.float64)
    around = np.average(X, axis=0, weights=weight) if centred else np.zeros(4)
    by_hand = np.mean([np.average((X[:, j] - around[j]) ** 2, weights=weight) for j in range(4)])
    assert_allclose(mean_variance(Rows.of(make(X), intercept=False), weight, centred=centred), by_hand, rtol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_feature_in_another_unit_counts_as_a_thousand_of_the_middle_one(make):
    X = np.array([[1.0, 2.0, 1e6], [-1.0, -2.0, -1e6]])
    found = mean_variance(Rows.of(make(X), intercept=False), np.ones(2))
    assert_allclose(found, (1.0 + 4.0 + 1e3 * 4.0) / 3)
