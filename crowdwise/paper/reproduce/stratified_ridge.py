"""Ridge regression tuned as the paper's software did it: over folds cut from every stratum in the order of the rows.

The strata are the signs of what is to be learned. Nothing is shuffled, and rows stand class by class, so a fold is not
a random part of the data: where labels are noisy, the folds differ in the truth of their examples, and cross-validation
asks for more regularisation than it would over random folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Floats
from crowdwise.ridge.classifier_cv import PAPER_L2S
from crowdwise.ridge.collect import row_sums, values_from
from crowdwise.ridge.solver import Spectrum, held_out_errors, leave_one_out
from crowdwise.rows.features import Rows, row_space

N_FOLDS = 10


def stratified_folds(strata: NDArray[Any], n_folds: int = N_FOLDS) -> NDArray[np.int64]:
    """A fold for every row: each stratum is cut into stretches, in the order of its rows.

    The first folds take what is left over.

    Examples
    --------
    >>> import numpy as np
    >>> stratified_folds(np.array([1, 1, -1, 1, -1]), n_folds=2).tolist()
    [0, 0, 0, 1, 1]
    """
    fold = np.empty(len(strata), dtype=np.int64)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        stretches = np.array_split(members, n_folds)
        fold[members] = np.repeat(np.arange(n_folds), [len(stretch) for stretch in stretches])
    return fold


@dataclass(frozen=True)
class TunedRidge:
    """A linear model and the l2 that was chosen for it."""

    coef: Floats
    intercept: float
    l2: float

    def scores(self, X: Any) -> Floats:
        """The score of every row."""
        return np.asarray(X @ self.coef) + self.intercept


def tuned_ridge(X: Any, target: NDArray[Any]) -> TunedRidge:
    """Ridge regression with the l2 of the paper's grid that has the smallest held-out squared error.

    Folds are stratified by the signs of the target.
    """
    original = Rows.of(X, intercept=True)
    space = row_space(original)
    rows = original if space is None else space.rows
    values = values_from(np.asarray(target, dtype=np.float64)[:, np.newaxis])
    gram, cross = row_sums(rows, None, values, 1, stratified_folds(np.sign(target)), N_FOLDS)
    training, l2s = leave_one_out(N_FOLDS), np.array(PAPER_L2S)
    spectrum = Spectrum.of(np.tensordot(training, gram, axes=1), intercept=True)
    path = spectrum.solve(np.tensordot(training, cross, axes=1), l2s)
    best = int(held_out_errors(gram, cross, path[:-1], 1.0).argmin())
    theta = path[-1, :, best] if space is None else space.to_features(path[-1, :, best])
    coef = theta[:-1, 0]
    return TunedRidge(coef, float(theta[-1, 0] - original.shift @ coef), float(l2s[best]))
