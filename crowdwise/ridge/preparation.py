"""``fit(X, y)`` -> a checked task: aligned rows, weights from disagreement, and a word on what is remarkable."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import _check_sample_weight, validate_data

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import Scale, disagreement
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.ballot import Ballot
from crowdwise.ridge.features import Rows, RowSpace, check_finite, distant_offset, row_space
from crowdwise.ridge.problem import Task
from crowdwise.ridge.targets import Targets, majority_targets


@dataclass(frozen=True)
class Prepared:
    """Features and labels of a fit, before any weighting.

    Parameters
    ----------
    labels : CrowdLabels
        All labels, aligned with X.
    learnt : ndarray of bool of shape (n_examples,)
        Examples with a label and a weight: those that take part.
    heard : ndarray of bool of shape (n_annotators,)
        Annotators with a label on these.
    rows : Rows
        Features of the examples that take part, or their coordinates.
    space : RowSpace or None
        How to come back from coordinates, if they are used.
    core : CrowdLabels
        Labels of the examples and annotators that take part.
    targets : Targets
        How labels become numbers.
    sample_weight : ndarray
        Of the examples that take part.
    disagreement : ndarray of shape (n_examples,)
        Of all examples.
    unlabelled : ndarray or sparse matrix
        Features of the examples without labels.
    """

    labels: CrowdLabels
    learnt: NDArray[np.bool_]
    heard: NDArray[np.bool_]
    rows: Rows
    space: RowSpace | None
    core: CrowdLabels
    targets: Targets
    sample_weight: Floats
    disagreement: Floats
    unlabelled: Any

    def task(self, steepness: float, init: str) -> Task:
        """The task with the weights of one steepness."""
        if init == "majority":
            first = majority_targets(self.core, self.targets)
        else:
            first = Ballot.of(self.core, np.ones(self.core.n_annotators)).mean_targets(self.targets)
        differs = self.disagreement if self.learnt.all() else self.disagreement[self.learnt]
        return Task(self.rows, self.core, self.targets, first, self.sample_weight, differs, steepness)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes of labels that are known to have some."""
        assert self.labels.classes is not None
        return self.labels.classes

    @property
    def original(self) -> Rows:
        """The features of the examples that take part, coordinates or not."""
        return self.rows if self.space is None else self.space.original

    def to_features(self, theta: Floats) -> tuple[Floats, Floats]:
        """coef of shape (n_targets, n_features) and intercept of shape (n_targets,) from a solution."""
        original = self.original
        theta = theta if self.space is None else self.space.to_features(theta)
        n_features = original.X.shape[1]
        coef = theta[:n_features]
        offset = theta[n_features] if original.intercept else np.zeros(theta.shape[1])
        return coef.T, offset - original.shift @ coef + self.targets.centre

    def distant_shift(self) -> Floats | None:
        """What to subtract from features to be scored, if they would lose digits otherwise."""
        original = self.original
        if not original.shift.any():
            return None
        some = original.X[:101] - original.shift
        return distant_offset(original.shift, np.abs(some).max(axis=0))


def check_input(estimator: Any, X: Any, y: Any, kind: Kind) -> tuple[Any, CrowdLabels]:
    """Features as scikit-learn wants them and labels of the same rows; nothing is copied that need not be."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected: it is taken as the labels of one annotator.",
            DataConversionWarning,
        )
    labels = as_labels(y, kind=kind)
    if hasattr(X, "shape") or hasattr(X, "__len__"):  # anything else is told by the next check
        X, labels = align(X, labels)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)
    return X, labels


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    kind: Kind,
    scale: Scale,
    fit_intercept: bool,
    steepest: float,
) -> Prepared:
    """Check everything that `fit` was given; `steepest` is the largest steepness that will be used."""
    X, labels = check_input(estimator, X, y, kind)
    if sparse.issparse(X):
        check_finite(X)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    labelled, learnt, heard, core = participants(labels, weight, steepest)
    differs = disagreement_of_all(labels, core, learnt, scale)
    original = Rows.of(X if learnt.all() else X[learnt], intercept=fit_intercept)
    space = row_space(original)
    return Prepared(
        labels=labels,
        learnt=learnt,
        heard=heard,
        rows=original if space is None else space.rows,
        space=space,
        core=core,
        targets=Targets.of(core, intercept=fit_intercept),
        sample_weight=weight if learnt.all() else weight[learnt],
        disagreement=differs,
        unlabelled=X[~labelled] if not labelled.all() else X[:0],
    )


def participants(
    labels: CrowdLabels, weight: Floats, steepest: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], CrowdLabels]:
    """Examples with a label, those of them that take part (with a weight), annotators heard there, and their labels."""
    labelled = labels.labels_per_example > 0
    learnt = labelled & (weight > 0)
    if not labelled.any():
        raise LabelError(f"there is no label: all {len(labels)} examples are without one.")
    if not learnt.any():
        raise DataError("all labelled examples have sample_weight 0: nothing is left to learn from.")
    if not labelled.all():
        _note(f"{int((~labelled).sum())} of {len(labels)} examples have no label; they take no part in learning.")
    core = labels if learnt.all() else labels[learnt]
    heard = core.labels_per_annotator > 0
    core = core.select_annotators(heard)
    _check_variety(core)
    _note_disagreement(core, steepest)
    return labelled, learnt, heard, core


def _note(message: str) -> None:
    warn(message)


def _check_variety(core: CrowdLabels) -> None:
    if core.classes is None:
        return
    if sum(bool(column.any()) for column in core.tally.T) < 2:
        found = core.classes[core.values[:1]].tolist()
        raise LabelError(f"labels of at least two classes are needed; all labels are of the one class {found[0]!r}.")


def _note_disagreement(core: CrowdLabels, steepest: float) -> None:
    if steepest == 0:
        return
    if core.n_annotators == 1:
        _note("there is one annotator: disagreement says nothing, so steepness has no effect.")
    elif core.labels_per_example.max() < 2:
        _note("no two annotators share an example: disagreement says nothing, so steepness has no effect.")


def disagreement_of_all(labels: CrowdLabels, core: CrowdLabels, learnt: NDArray[np.bool_], scale: Scale) -> Floats:
    """Disagreement of all examples, on the scale of those that take part."""
    differs = disagreement(core, scale=scale)
    if learnt.all():
        return differs
    everyone = disagreement(labels, scale=scale)
    everyone[learnt] = differs
    return everyone


def check_settings(*, l2: float, init: str, max_rounds: int, tol: float) -> None:
    """Raise if a setting of a ridge model cannot be used."""
    if not (isinstance(l2, Real) and np.isfinite(float(l2)) and l2 >= 0):
        raise ValueError(f"l2 must be a finite number >= 0; got {l2!r}.")
    if init not in ("majority", "mean"):
        raise ValueError(f'init must be "majority" or "mean"; got {init!r}.')
    check_rounds(max_rounds, tol)


def check_rounds(max_rounds: int, tol: float) -> None:
    """Raise if the rounds could not be turned with these."""
    if not (isinstance(max_rounds, Integral) and max_rounds >= 1):
        raise ValueError(f"max_rounds must be a whole number >= 1; got {max_rounds!r}.")
    if not (isinstance(tol, Real) and tol >= 0):
        raise ValueError(f"tol must be a number >= 0; got {tol!r}.")


def note_effective_number(weight: Floats, n_features: int) -> None:
    """Warn if nearly all weight rests on fewer examples than there are features."""
    effective = float(weight.sum() ** 2 / (weight @ weight))
    if effective < n_features <= len(weight):
        _note(
            f"nearly all weight is on about {effective:.1f} of {len(weight)} examples, fewer than the {n_features} "
            "features. Use a smaller steepness or a larger l2."
        )
