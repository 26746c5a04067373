"""X and truth -> labels of simulated annotators who err near the decision boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import RidgeClassifier
from sklearn.utils import check_array

from crowdwise._arrays import Array, Codes, Floats
from crowdwise._checks import check_choice, check_number, check_seed, check_whole
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._align import match_examples
from crowdwise.labels._encode import as_column, encode, missing_mask
from crowdwise.labels.crowd_labels import CrowdLabels


def flip_score(f: ArrayLike, clarity: float = 1.0) -> Floats:
    """How likely annotators are to go wrong on an example with the normalised score f.

    The paper's curve ``2 (1 - 1 / (1 + exp(-2.5 clarity |f|)))``: 1 on the decision boundary, falling with
    the distance from it. Single labels are flipped with half this probability.

    Parameters
    ----------
    f : array-like
        Scores in [-1, 1].
    clarity : float, default=1.0
        The paper's p: higher means less noise.

    Returns
    -------
    flip_score : ndarray
        In (0, 1], of the shape of `f`.

    Examples
    --------
    >>> from crowdwise.simulate import flip_score
    >>> flip_score([0.0, 0.5, -1.0]).round(2).tolist()
    [1.0, 0.45, 0.15]
    """
    check_number("clarity", clarity)
    distance = np.abs(np.asarray(f, dtype=np.float64))
    if not np.isfinite(distance).all():
        row = int(np.flatnonzero(~np.isfinite(distance))[0])
        raise ValueError(f"scores must be finite; found NaN or infinity, first for example {row}.")
    with np.errstate(over="ignore"):  # infinitely clear is what an overflow should be here
        return 2 * expit(-2.5 * (clarity * distance))


def simulate_annotators(
    X: Any,
    truth: Any,
    n_annotators: int = 10,
    *,
    clarity: float = 1.0,
    experts: int = 0,
    adversaries: int = 0,
    missing: float = 0.0,
    scores: ArrayLike | None = None,
    paper: bool = False,
    random_state: int | np.random.Generator | np.random.SeedSequence | None = None,
) -> CrowdLabels:
    """Simulate annotators who err on hard examples.

    As in the paper: a linear model trained on the truth gives scores, scaled to [-1, 1] by the largest; every
    label is flipped with probability ``flip_score / 2``; then all labels of an example are flipped with
    probability ``flip_score`` if most of them are right. Experts (always right) and adversaries (always
    wrong) come after the simulated annotators.

    With more than two classes, the score is the gap between the two highest class scores, and a flipped
    label becomes another class at random; when all labels of an example flip, each class is exchanged with another
    one (one permutation for the example that leaves no class in place).

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features; used only if `scores` is None.
    truth : array-like of shape (n_examples,), series or mapping
        The right classes: a mapping, or a series if X is a data frame, by the ids of the examples; else by position.
    n_annotators : int, default=10
        Number of simulated annotators, experts and adversaries not counted.
    clarity : float, default=1.0
        The paper's p: higher means less noise.
    experts : int, default=0
        Number of annotators who are always right.
    adversaries : int, default=0
        Number of annotators who are always wrong.
    missing : float, default=0.0
        Share of labels left out at random.
    scores : array-like of shape (n_examples,), default=None
        Scores in [-1, 1] to use instead of those of a linear model.
    paper : bool, default=False
        The twelve annotators of the paper's experiments: ten simulated ones, an expert and an adversary, who label
        all examples. Only `clarity` is left to choose.
    random_state : int, Generator, SeedSequence or None, default=None
        Seed.

    Returns
    -------
    labels : CrowdLabels
        Annotators are named "annotator 1", ..., "expert 1", ..., "adversary 1", ...

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import simulate_annotators
    >>> X, truth = make_blobs(100, centers=2, random_state=0)
    >>> simulate_annotators(X, truth, paper=True, random_state=0).shape
    (100, 12)
    """
    if check_choice("paper", paper, (True, False)):
        if (n_annotators, experts, adversaries, missing) != (10, 0, 0, 0.0):
            raise ValueError(
                "paper=True is ten annotators, an expert and an adversary, with no label missing: leave out "
                "n_annotators, experts, adversaries and missing, or paper."
            )
        experts = adversaries = 1
    if check_number("missing", missing, high=1.0) == 1:
        raise ValueError("missing must be less than 1, which would leave no label; got 1.")
    for name, number in (("n_annotators", n_annotators), ("experts", experts), ("adversaries", adversaries)):
        check_whole(name, number, low=0)
    if n_annotators + experts + adversaries == 0:
        raise ValueError("one of n_annotators, experts and adversaries must be at least 1; all of them are 0.")
    codes, classes = _encode_truth(truth if X is None else match_examples(truth, X, name="truth"))
    if len(classes) < 2:
        raise ValueError(f"truth must have at least two classes; found {classes.tolist()}.")
    rng = check_seed(random_state)
    f = _normalised_scores(X, codes) if scores is None else np.asarray(scores, dtype=np.float64)
    if f.shape != codes.shape:
        raise ValueError(f"scores must be one per example, {len(codes)}; got an array of shape {f.shape}.")
    noisy = _noisy_codes(codes.astype(np.int64), flip_score(f, clarity), n_annotators, len(classes), rng)
    right = np.repeat(codes[:, np.newaxis], experts, axis=1)
    wrong = _other_class(np.repeat(codes[:, np.newaxis], adversaries, axis=1).astype(np.int64), len(classes), rng)
    matrix = np.hstack([noisy, right, wrong])
    names = [
        f"{role} {i + 1}"
        for role, n in (("annotator", n_annotators), ("expert", experts), ("adversary", adversaries))
        for i in range(n)
    ]
    labels = CrowdLabels.from_matrix(
        _leave_out(matrix, missing, rng), annotators=names, classes=range(len(classes)), missing=-1
    )
    return replace(labels, classes=classes)


def _encode_truth(truth: ArrayLike) -> tuple[Array, Array]:
    values = as_column(truth, "truth")
    if (absent := missing_mask(values)).any():
        raise LabelError(f"every example needs its truth; example {int(absent.argmax())} has none.")
    return encode(values)


def _normalised_scores(X: Any, codes: Array) -> Floats:
    """Scores of a linear model of the truth, in [-1, 1]."""
    X = check_array(X, accept_sparse="csr", ensure_all_finite=False)
    with np.errstate(over="ignore", invalid="ignore"):
        bad = ~np.isfinite(np.asarray((X.multiply(X) if sparse.issparse(X) else np.square(X)).sum(axis=1)).ravel())
    if bad.any():
        raise DataError(f"X must be finite, and its squares too; row {int(bad.argmax())} has NaN, infinity or more.")
    score = RidgeClassifier().fit(X, codes).decision_function(X)
    if score.ndim == 2:
        ranked = np.sort(score, axis=1)
        score = ranked[:, -1] - ranked[:, -2]
    largest = np.abs(score).max()
    return np.asarray(score / largest if largest > 0 else score)


def _other_class(codes: Codes, n_classes: int, rng: np.random.Generator) -> Codes:
    """A class different from each code, every other one equally likely."""
    return np.asarray((codes + rng.integers(1, n_classes, size=codes.shape)) % n_classes)


def _noisy_codes(truth: Codes, flips: Floats, n_annotators: int, n_classes: int, rng: np.random.Generator) -> Codes:
    codes = np.repeat(truth[:, np.newaxis], n_annotators, axis=1)
    single = rng.random(codes.shape) < flips[:, np.newaxis] / 2
    codes = np.where(single, _other_class(codes, n_classes, rng), codes)
    mostly_right = 2 * (codes == truth[:, np.newaxis]).sum(axis=1) > n_annotators
    all_flip = (rng.random(len(truth)) < flips) & mostly_right
    shift = rng.integers(1, n_classes, size=(len(truth), 1))
    return np.where(all_flip[:, np.newaxis], (codes + shift) % n_classes, codes)


def _leave_out(matrix: Codes, missing: float, rng: np.random.Generator) -> Codes:
    if missing == 0:
        return matrix
    return np.where(rng.random(matrix.shape) < missing, -1, matrix)
