import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import in_slow_run, many_examples
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from crowdwise import CrowdLabels, simulate_annotators
from crowdwise.exceptions import DataError, LabelError
from crowdwise.paper.theory import alignment_expertise, label_signs
from crowdwise.paper.theory.alignment import Pairs, _similarity, solve_box


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 5)) + 3 * truth[:, np.newaxis] * np.array([1.0, 0.5, 0, 0, 0]) + 100
    signs = np.stack([np.where(rng.random(300) < p, 1 - truth, truth) for p in (0.0, 0.1, 0.2, 0.35, 0.5)], axis=1)
    return X, CrowdLabels.from_matrix(signs)


def gaussian(left, right):
    return np.exp(-0.2 * cdist(left, right, "sqeuclidean"))  # thousands of small calls: without input checks


def full_kernel(X, kernel=linear_kernel):
    H = np.eye(len(X)) - 1 / len(X)
    K = H @ kernel(X, X) @ H
    return K / np.abs(K).max()


def printed_objective(z, K, signs):
    """The sum over all pairs of examples, as in the paper."""
    fitted = np.einsum("l,il,jl->ij", z, signs, signs) / len(z)
    return ((K - fitted) ** 2).sum()


@pytest.mark.parametrize("kernel", [linear_kernel, rbf_kernel])
def test_exact_solution_minimises_the_printed_objective(crowd, kernel):
    X, labels = crowd
    X = X - 100  # so that the reference does not lose digits
    signs, K = label_signs(labels).toarray(), full_kernel(X, kernel)
    found = alignment_expertise(X, labels, "linear" if kernel is linear_kernel else kernel)
    reference = minimize(
        printed_objective, np.full(5, 0.5), (K, signs), bounds=[(0, 1)] * 5, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert found == pytest.approx(reference.x, abs=2e-4)
    assert printed_objective(found, K, signs) <= reference.fun + 1e-9 * reference.fun


def test_both_ends_of_the_box_are_reached():
    rng = np.random.default_rng(1)
    truth = np.repeat([-1.0, 1.0], 100)
    labels = np.stack([truth] + [rng.choice([-1.0, 1.0], 200) for _ in range(4)], axis=1)
    found = alignment_expertise(truth[:, np.newaxis], labels)
    # The kernel is y yᵀ itself: 1/5 of it is all that one annotator can give, so the box holds z back at 1.
    assert found[0] == 1.0
    assert (found[1:] < 0.2).all()
    assert found.min() == 0.0


@many_examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_box_solution_satisfies_the_conditions_of_optimality(seed, L):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(L, rng.integers(1, L + 1)))
    G = root @ root.T
    b = G @ rng.normal(0.3, 1, size=L) / L
    z = solve_box(G, b)
    gradient = G @ z / L**2 - b / L
    scale = np.abs(G).max() + 1e-3
    assert (gradient[z > 1e-9] < 1e-5 * scale).all()
    assert (gradient[z < 1 - 1e-9] > -1e-5 * scale).all()


def test_neither_blocks_nor_landmarks_change_a_linear_kernel(crowd):
    X, labels = crowd
    linear = alignment_expertise(X, labels)
    assert alignment_expertise(X, labels, linear_kernel) == pytest.approx(linear, abs=1e-6)
    assert alignment_expertise(X - 100, labels, linear_kernel, n_landmarks=20) == pytest.approx(linear, abs=1e-6)


def test_landmarks_come_near_the_full_kernel(crowd):
    X, labels = crowd
    full = alignment_expertise(X, labels, rbf_kernel)
    some = alignment_expertise(X, labels, rbf_kernel, n_landmarks=150, random_state=0)
    assert some == pytest.approx(full, rel=0.2, abs=0.01)


@pytest.mark.parametrize("kernel", ["linear", in_slow_run(gaussian)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_stochastic_descent_agrees_with_the_exact_solution(crowd, kernel, missing):
    X, labels = crowd
    matrix = label_signs(labels).toarray()
    matrix[np.random.default_rng(5).random(matrix.shape) < missing] = np.nan
    exact = alignment_expertise(X, matrix, kernel)
    descent = alignment_expertise(X, matrix, kernel, "stochastic", n_steps=1000, random_state=0)
    assert descent == pytest.approx(exact, abs=0.02)
    assert np.ptp(exact) > 0.1


def test_stochastic_descent_counts_an_example_with_itself(crowd):
    X, labels = crowd
    exact = alignment_expertise(X[:16], labels[:16], gaussian)
    descent = alignment_expertise(X[:16], labels[:16], gaussian, "stochastic", n_steps=1000, random_state=0)
    assert descent == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("kernel", ["linear", linear_kernel, rbf_kernel])
def test_similarities_are_centred_and_within_one(crowd, kernel):
    X, _ = crowd
    similarity = _similarity(X, kernel, None, np.random.default_rng(0))
    everything = np.arange(len(X))
    K = similarity.block(everything, everything)
    assert np.abs(K).max() == pytest.approx(1.0)
    assert np.abs(K.mean(axis=1)).max() < 1e-12
    assert np.diag(K) == pytest.approx(similarity.diagonal, abs=1e-12)
    signs = np.random.default_rng(1).choice([-1.0, 0.0, 1.0], size=(len(X), 3))
    assert similarity.quadratic(signs) == pytest.approx(np.diag(signs.T @ K @ signs), rel=1e-9)


def test_missing_labels_are_means_over_the_pairs_that_were_labelled():
    rng = np.random.default_rng(3)
    signs = rng.choice([-1.0, 0.0, 1.0], size=(8, 3), p=[0.4, 0.2, 0.4])
    X = rng.normal(size=(8, 2))
    pairs, similarity = Pairs.of(signs), _similarity(X, "linear", None, rng)
    K = similarity.block(np.arange(8), np.arange(8))
    for left in range(3):
        b = {True: [], False: []}
        for i in range(8):
            for j in range(8):
                if signs[i, left] and signs[j, left]:
                    b[i == j].append(K[i, j] * signs[i, left] * signs[j, left])
        expected = 7 / 8 * np.mean(b[False]) + 1 / 8 * np.mean(b[True])
        assert pairs.alignment(similarity)[left] == pytest.approx(expected)


def test_sparse_labels_give_the_dense_sums():
    rng = np.random.default_rng(4)
    X, L = rng.normal(size=(40, 3)), 12
    signs = rng.choice([-1.0, 0.0, 1.0], size=(40, L), p=[0.2, 0.6, 0.2])
    given, m = np.abs(signs), 40
    pairs, similarity = Pairs.of(signs), _similarity(X, "linear", None, rng)
    K = similarity.block(np.arange(m), np.arange(m))

    def mean(total, diagonal, n):
        return ((m - 1) * (total - diagonal) / (n * (n - 1)) + diagonal / n) / m

    b = mean(np.diag(signs.T @ K @ signs), np.diag(K) @ given, given.sum(axis=0))
    assert pairs.alignment(similarity) == pytest.approx(b, rel=1e-10)
    shared = given.T @ given
    assert shared.min() > 1
    values, vectors = np.linalg.eigh(mean((signs.T @ signs) ** 2, shared, shared))
    assert pairs.agreement() == pytest.approx((vectors * np.maximum(values, 0)) @ vectors.T, abs=1e-12)


def test_missing_labels_leave_the_normal_equations_right_on_average(crowd):
    X, labels = crowd
    signs = label_signs(labels).toarray()
    similarity = _similarity(X, "linear", None, np.random.default_rng(0))
    complete = Pairs.of(signs)
    G, b, zeros = np.zeros((5, 5)), np.zeros(5), np.zeros(5)
    for seed in range(400):
        thinned = Pairs.of(np.where(np.random.default_rng(seed).random(signs.shape) < 0.5, 0.0, signs))
        G += thinned.mean((thinned.signs.T @ thinned.signs) ** 2, thinned.shared, thinned.shared) / 400
        b += thinned.alignment(similarity) / 400
        zeros += similarity.quadratic(thinned.signs) / 300**2 / 400  # no normalisation
    assert pytest.approx(complete.agreement(), abs=0.01) == G
    assert b == pytest.approx(complete.alignment(similarity), abs=0.002)
    assert (zeros < 0.35 * complete.alignment(similarity) + 0.01).all()


def test_complete_labels_need_no_correction(crowd):
    signs = label_signs(crowd[1]).toarray()
    assert Pairs.of(signs).agreement() == pytest.approx((signs.T @ signs) ** 2 / len(signs) ** 2, rel=1e-12)


def test_who_is_always_right_gets_nearly_all_and_the_others_are_not_ranked(crowd):
    """Least squares shares out what annotators explain together: the best one leaves nothing to the others."""
    X, labels = crowd
    found = alignment_expertise(X, labels)
    assert found[0] > 0.5
    assert found[1:].max() < 0.05
    alone = [alignment_expertise(X, label_signs(labels).toarray()[:, [i]])[0] for i in range(5)]
    assert (np.diff(alone) < 0).all()
    matrix = label_signs(labels).toarray()
    matrix[np.random.default_rng(0).random(matrix.shape) < 0.3] = np.nan
    assert alignment_expertise(X, matrix) == pytest.approx(found, abs=0.12)


def test_always_wrong_is_as_expert_as_always_right():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + 2 * truth[:, np.newaxis]
    found = alignment_expertise(X, simulate_annotators(X, truth, 3, experts=1, adversaries=1, random_state=0))
    assert found[3] == pytest.approx(found[4], abs=1e-6)
    assert found[3] > 0.1


def test_order_names_and_silent_annotators_do_not_matter(crowd):
    X, labels = crowd
    found = alignment_expertise(X, labels)
    matrix = label_signs(labels).toarray()[:, [4, 2, 0, 1, 3]]
    assert alignment_expertise(X, matrix) == pytest.approx(found[[4, 2, 0, 1, 3]], abs=1e-9)
    silent = np.column_stack([label_signs(labels).toarray(), np.full(300, np.nan)])
    with_silent = alignment_expertise(X, silent)
    assert np.array_equal(with_silent[:5], found)
    assert np.isnan(with_silent[5])
    assert alignment_expertise(7 * X - 3, labels) == pytest.approx(found, abs=1e-7)


def test_annotators_who_share_no_example_still_get_expertise():
    X = np.arange(6.0)[:, np.newaxis]
    labels = [[0, None]] * 2 + [[None, 0]] + [[1, None]] + [[None, 1]] * 2
    found = alignment_expertise(X, CrowdLabels.from_matrix(labels))
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_wrong_input_is_reported(crowd):
    X, labels = crowd
    with pytest.raises(ValueError, match="method must be"):
        alignment_expertise(X, labels, method="fast")
    with pytest.raises(ValueError, match="kernel must be"):
        alignment_expertise(X, labels, kernel="rbf")
    with pytest.raises(DataError, match=r"finite similarities of shape \(300, 300\)"):
        alignment_expertise(X, labels, kernel=lambda left, right: left @ right[:2].T)
    with pytest.raises(LabelError, match=r"two classes, -1 and \+1;"):
        alignment_expertise([[1.0], [2.0], [3.0]], [0, 1, 2])
    with pytest.raises(LabelError, match="at least two examples"):
        alignment_expertise([[1.0]], [1])
