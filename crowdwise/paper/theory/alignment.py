"""X, labels -> expertise in [0, 1]: how well each annotator's labels line up with the similarity of the examples.

The paper fits the (centred) kernel matrix of the examples by a combination of the annotators' label matrices,

    minimise over z in [0, 1]^L the sum over i, j of (k_ij - (1/L) sum over l of z_l y_il y_jl)².

Divided by m² this is const - (2/L) b·z + (1/L²) z·Gz with two kinds of means over pairs (i, j) of examples,

    b_l  = mean of k_ij y_il y_jl              (how annotator l lines up with the kernel)
    G_lk = mean of y_il y_jl y_ik y_jk         (how annotators l and k line up with each other),

so neither the kernel matrix nor label matrices of m x m are ever formed.

With labels missing, y is 0 where there is none. The sum over pairs then misses the pairs that were not labelled,
so it is divided by the number of pairs that were: those of i = j apart from those of i ≠ j, because the former need one
label and the latter two. If labels are missing at random, both means have the same expectation as without
missing labels; with none missing they are the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.optimize import lsq_linear

from crowdwise._arrays import Floats, Positions, ratio
from crowdwise._checks import check_choice, check_seed, check_whole
from crowdwise.exceptions import LabelError
from crowdwise.paper.theory.inputs import OfPairs, label_signs, of_pairs, read_crowd

Kernel = Literal["linear"] | OfPairs

# Above this many examples another kernel is approximated from landmarks instead of computed in full.
_FULL_KERNEL = 4000
_BLOCK = 512


def alignment_expertise(
    X: Any,
    labels: Any,
    kernel: Kernel = "linear",
    method: Literal["exact", "stochastic"] = "exact",
    *,
    n_landmarks: int | None = None,
    n_steps: int = 4000,
    batch_size: int = 64,
    random_state: int | np.random.Generator | None = None,
) -> Floats:
    """Expertise of every annotator, in [0, 1], by kernel-target alignment.

    The labels y and their opposites -y have the same products y_i y_j: someone who is always wrong is as expert as
    someone who is always right.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes.
    kernel : "linear" or callable, default="linear"
        A callable gets two arrays of examples and gives the matrix of their similarities; it should be positive
        semidefinite. It is centred here, and scaled so that its largest entry is 1.
    method : {"exact", "stochastic"}, default="exact"
        Least squares with all examples, or projected gradient descent with a few at a time.
    n_landmarks : int, default=None
        Number of examples that a callable kernel is approximated from (Nyström). By default all are used up to
        4,000 examples, and 500 beyond.
    n_steps : int, default=4000
        Steps of the stochastic method; the mean of the second half is the result.
    batch_size : int, default=64
        Examples on either side of the pairs of one step.
    random_state : int, Generator or None, default=None
        Seed of landmarks and batches.

    Returns
    -------
    expertise : ndarray of shape (n_annotators,)
        NaN for annotators without labels.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import simulate_annotators
    >>> from crowdwise.paper.theory import alignment_expertise
    >>> X, truth = make_blobs(200, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, 2, experts=1, random_state=0)
    >>> int(alignment_expertise(X, labels).argmax())
    2
    """
    check_choice("method", method, ("exact", "stochastic"))
    check_whole("n_steps", n_steps, low=2)
    check_whole("batch_size", batch_size)
    if n_landmarks is not None:
        check_whole("n_landmarks", n_landmarks)
    rng = check_seed(random_state)
    X, crowd = read_crowd(X, labels)
    if len(X) < 2 or crowd.n_labels == 0:
        raise LabelError(f"at least two examples and one label are needed; got {len(X)} and {crowd.n_labels}.")
    active = crowd.labels_per_annotator > 0
    pairs = Pairs.of(label_signs(crowd.select_annotators(active)))
    similarity = _similarity(X, kernel, n_landmarks, rng)
    if method == "exact":
        found = solve_box(pairs.agreement(), pairs.alignment(similarity))
    else:
        found = _descend(pairs, similarity, n_steps, batch_size, rng)
    expertise = np.full(crowd.n_annotators, np.nan)
    expertise[active] = found
    return expertise


@dataclass(frozen=True)
class Pairs:
    """Labels with, for means over pairs of examples, how often each sum has to be counted."""

    signs: Any  # csr_array of shape (n_examples, n_annotators): -1 or +1; nothing is stored where there is no label
    answered: Floats  # (n_annotators,): labels of each annotator
    shared: Floats  # (n_annotators, n_annotators): examples that two annotators both labelled

    @classmethod
    def of(cls, signs: Any) -> Pairs:
        """The pairs of some labels, of -1, 0 (missing) and +1."""
        signs = sparse.csr_array(signs)
        given = abs(signs)
        return cls(signs, np.asarray(given.sum(axis=0)), (given.T @ given).toarray())

    def mean(self, total: Floats, diagonal: Floats, n: Floats) -> Floats:
        """Mean over all pairs, from sums over labelled pairs and over their i = j, with n examples labelled."""
        m = self.signs.shape[0]
        different = ratio(total - diagonal, n * (n - 1))
        same = ratio(diagonal, n, 0.0)
        return np.asarray(((m - 1) * different + same) / m)

    def agreement(self) -> Floats:
        """The matrix G, positive semidefinite."""
        G = self.mean((self.signs.T @ self.signs).toarray() ** 2, self.shared, self.shared)
        unknown = np.isnan(G)
        if unknown.any():  # fewer than two shared examples: as much as the others agree
            others = G[~unknown & ~np.eye(len(G), dtype=bool)]
            G[unknown] = others.mean() if len(others) else 0.0
            np.fill_diagonal(G, 1.0)
        if (self.shared < self.signs.shape[0]).any():  # means over different pairs need not fit together
            values, vectors = np.linalg.eigh(G)
            G = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return G

    def alignment(self, similarity: Similarity) -> Floats:
        """The vector b."""
        total, diagonal = similarity.quadratic(self.signs), abs(self.signs).T @ similarity.diagonal
        b = self.mean(total, diagonal, self.answered)
        return np.nan_to_num(b, nan=0.0)  # a single label carries no information


def solve_box(agreement: Floats, alignment: Floats) -> Floats:
    """The z in [0, 1]^L that minimises z·Gz / L² - 2 b·z / L, where G (agreement) is positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory.alignment import solve_box
    >>> solve_box(np.eye(2), np.array([0.25, -0.1])).round(6).tolist()
    [0.5, 0.0]
    """
    L = len(alignment)
    # A little ridge lets annotators who copy each other share what one of them would get.
    values, vectors = np.linalg.eigh(agreement + 1e-8 * np.eye(L))
    root = np.sqrt(np.maximum(values, 1e-9))[:, np.newaxis] * vectors.T
    target = L * (vectors.T @ alignment) / np.sqrt(np.maximum(values, 1e-9))
    return np.clip(lsq_linear(root, target, bounds=(0.0, 1.0), method="bvls", tol=1e-12).x, 0.0, 1.0)


# ---------------------------------------------------------------------- the similarity of examples


@dataclass(frozen=True)
class Similarity:
    """A centred kernel on the examples, with entries in [-1, 1], of which only blocks are ever computed."""

    rows: Floats  # (n_examples, n_columns): examples, or features whose products are the kernel
    kernel: OfPairs | None  # None for the products of rows
    means: Floats  # (n_examples,): mean similarity of each example to all
    diagonal: Floats  # (n_examples,): centred and scaled similarity of each example to itself
    scale: float  # what centred entries are divided by

    def block(self, left: Positions, right: Positions) -> Floats:
        """Centred and scaled similarities of some examples to others."""
        raw = _evaluate(self.kernel, self.rows[left], self.rows[right])
        return (raw - self.means[left, np.newaxis] - self.means[right] + self.means.mean()) / self.scale

    def quadratic(self, signs: Any) -> Floats:
        """y·Ky for every column y of `signs`, which may be sparse."""
        columns = sparse.csr_array(signs)
        if self.kernel is None:  # the rows are centred already
            return np.asarray(((columns.T @ self.rows) ** 2).sum(axis=1) / self.scale)
        total, everything = np.zeros(columns.shape[1]), np.arange(len(self.rows))
        for start in range(0, len(self.rows), _BLOCK):
            rows = everything[start : start + _BLOCK]
            total += np.asarray((columns[rows] * (self.block(rows, everything) @ columns)).sum(axis=0))
        return total


def _similarity(X: Floats, kernel: Kernel, n_landmarks: int | None, rng: np.random.Generator) -> Similarity:
    if kernel == "linear":
        return _of_products(X)
    if not callable(kernel):
        raise ValueError(f'kernel must be "linear" or a function of two arrays of examples; got {kernel!r}.')
    if n_landmarks is None and len(X) > _FULL_KERNEL:
        n_landmarks = 500
    if n_landmarks is not None and n_landmarks < len(X):
        return _of_products(_nystroem(X, kernel, n_landmarks, rng))
    means, diagonal = np.empty(len(X)), np.empty(len(X))
    for start in range(0, len(X), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(X)))
        raw = _evaluate(kernel, X[rows], X)
        means[rows], diagonal[rows] = raw.mean(axis=1), raw[np.arange(len(rows)), rows]
    diagonal = diagonal - 2 * means + means.mean()
    scale = _largest(diagonal)
    return Similarity(X, kernel, means, diagonal / scale, scale)


def _of_products(X: Floats) -> Similarity:
    rows = X - X.mean(axis=0)
    diagonal = np.einsum("ij,ij->i", rows, rows)
    scale = _largest(diagonal)
    return Similarity(rows, None, np.zeros(len(X)), diagonal / scale, scale)


def _largest(diagonal: Floats) -> float:
    """The largest entry of a positive semidefinite matrix, which is on its diagonal."""
    largest = float(diagonal.max())
    return largest if largest > 0 else 1.0


def _nystroem(X: Floats, kernel: OfPairs, n_landmarks: int, rng: np.random.Generator) -> Floats:
    """Features whose products are nearly the kernel, exactly so among the landmarks."""
    landmarks = X[rng.choice(len(X), n_landmarks, replace=False)]
    values, vectors = np.linalg.eigh(_evaluate(kernel, landmarks, landmarks))
    kept = values > values.max(initial=0.0) * 1e-10
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    blocks = [_evaluate(kernel, X[i : i + _BLOCK], landmarks) @ whiten for i in range(0, len(X), _BLOCK)]
    return np.vstack(blocks)


def _evaluate(kernel: OfPairs | None, left: Floats, right: Floats) -> Floats:
    return left @ right.T if kernel is None else of_pairs(kernel, left, right, "kernel", "similarities")


# ---------------------------------------------------------------------- the stochastic method


def _descend(pairs: Pairs, similarity: Similarity, n_steps: int, batch_size: int, rng: np.random.Generator) -> Floats:
    """Projected gradient descent: every step sees G and b as means over the pairs of two small batches."""
    m, L = pairs.signs.shape
    size = max(1, min(batch_size, m // 2))
    ones, zeros = np.ones(L), np.zeros((L, L))
    of_label = np.nan_to_num(
        pairs.mean(ones * m * (m - 1), 0 * ones, pairs.answered)
    )  # how much one labelled pair counts
    of_shared = np.nan_to_num(pairs.mean(zeros + m * (m - 1), zeros, pairs.shared))
    same_b = np.nan_to_num(abs(pairs.signs).T @ similarity.diagonal / pairs.answered) / m
    same_G = 1.0 / m
    z, total = np.full(L, 0.5), np.zeros(L)
    for step in range(n_steps):
        chosen = rng.permutation(m)[: 2 * size] if m <= 4 * size else rng.choice(m, 2 * size, replace=False)
        left, right = chosen[:size], chosen[size:]
        left_signs, right_signs = pairs.signs[left].toarray(), pairs.signs[right].toarray()
        G = of_shared * (left_signs.T @ left_signs) * (right_signs.T @ right_signs) / size**2 + same_G
        b = of_label * np.einsum("il,il->l", left_signs, similarity.block(left, right) @ right_signs) / size**2 + same_b
        # The curvature is at most 1/L of the trace of G, so L is a safe first step; it shrinks as noise takes over.
        rate = L / (1.0 + step / 20) ** 0.6
        z = np.clip(z - rate * (G @ z / L**2 - b / L), 0.0, 1.0)
        if step >= n_steps // 2:
            total += z
    return total / (n_steps - n_steps // 2)
