"""Statistics: sums that add, from which every round is computed without X.

Sums are kept in cells. A cell is a set of rows that are always used together: a fold, or a fold and a
level of disagreement. Combining cells with weights gives the sums for any steepness and any set of folds.
Sums know what was subtracted from features and ratings before they were taken, so that sums of different blocks of
rows, each around its own centre, can be added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdwise.arrays import Array, Floats
from crowdwise.exceptions import DataError
from crowdwise.ridge.targets import Targets


@dataclass(frozen=True, eq=False)
class Statistics:
    """Weighted sums over rows, per cell and annotator.

    With complete labels all annotators see the same rows, so `gram` has one block for all of them;
    otherwise a block each. Columns are those of `Rows`: features and the column of ones.

    Parameters
    ----------
    gram : ndarray of shape (n_cells, n_blocks, n_columns, n_columns)
        Sums of weight · x xᵀ.
    cross : ndarray of shape (n_cells, n_annotators, n_columns, n_targets)
        Sums of weight · x yᵀ.
    first : ndarray of shape (n_cells, n_columns, n_targets)
        Sums of weight · (labels of the row) · x times the first consensus.
    squares : ndarray of shape (n_cells, n_annotators)
        Sums of weight · y².
    mass : ndarray of shape (n_cells, n_annotators)
        Sums of weights.
    answered : ndarray of shape (n_cells, n_annotators)
        Sums of sample weights alone: how much each annotator labelled.
    present : ndarray of shape (n_cells,)
        Sums of sample weights over rows: how much there was to label.
    shift : ndarray of shape (n_features,)
        What was subtracted from every row.
    intercept : bool
        Whether the last column is one of ones.
    targets : Targets
        How labels became numbers, and what was subtracted from ratings.
    annotators : ndarray of shape (n_annotators,)
        Their names.
    """

    gram: Floats
    cross: Floats
    first: Floats
    squares: Floats
    mass: Floats
    answered: Floats
    present: Floats
    shift: Floats
    intercept: bool
    targets: Targets
    annotators: Array

    def __add__(self, other: Statistics) -> Statistics:
        """The sums over the rows of both, around the centre of the first."""
        self._check_same_kind(other)
        other = other.around(self.shift, self.targets.centre)
        gram, other_gram = self.gram, other.gram
        if gram.shape[1] != other_gram.shape[1]:  # complete labels in one of them: all annotators share a block
            gram, other_gram = (
                np.broadcast_to(g, (len(g), self.n_annotators, *g.shape[2:])) for g in (gram, other_gram)
            )
        return replace(
            self,
            gram=gram + other_gram,
            cross=self.cross + other.cross,
            first=self.first + other.first,
            squares=self.squares + other.squares,
            mass=self.mass + other.mass,
            answered=self.answered + other.answered,
            present=self.present + other.present,
            targets=replace(self.targets, span=max(self.targets.span, other.targets.span)),
        )

    @property
    def n_cells(self) -> int:
        return len(self.present)

    @property
    def n_annotators(self) -> int:
        return self.cross.shape[1]

    @property
    def is_complete(self) -> bool:
        """Whether all annotators labelled the same rows, and share a block."""
        return self.gram.shape[1] == 1

    def around(self, shift: Floats, centre: float) -> Statistics:
        """The same sums with other numbers subtracted from features and ratings; this is exact but for rounding.

        Parameters
        ----------
        shift : ndarray of shape (n_features,)
            To be subtracted from every row.
        centre : float
            To be subtracted from ratings.

        Returns
        -------
        statistics : Statistics
        """
        step, rise = self.shift - shift, self.targets.centre - centre
        if not step.any() and rise == 0:
            return self
        if not self.intercept:
            raise DataError("sums of a model without an intercept cannot be shifted: they do not know their means.")
        gram, cross, first, squares = self.gram, self.cross, self.first, self.squares
        if rise:
            squares = squares + 2 * rise * cross[..., -1, 0] + rise**2 * self.mass
            cross = cross + rise * gram[..., -1:]
            ones = gram[..., -1:].sum(axis=1) * (self.n_annotators if self.is_complete else 1)
            first = first + rise * ones
        move = np.eye(len(shift) + 1)
        move[:-1, -1] = step  # x - shift is (x - old shift) + step times one
        return replace(
            self,
            gram=move @ gram @ move.T,
            cross=move @ cross,
            first=move @ first,
            squares=squares,
            shift=np.array(shift, dtype=np.float64),
            targets=replace(self.targets, centre=centre),
        )

    def _check_same_kind(self, other: Statistics) -> None:
        if not np.array_equal(self.annotators, other.annotators):
            raise DataError(
                "only sums over labels of the same annotators, in the same order, can be added; these are of "
                f"{self.annotators[:3].tolist()} and {other.annotators[:3].tolist()}, ... Declare all annotators."
            )
        mine, theirs = self.targets.codebook, other.targets.codebook
        same = mine is theirs or (mine is not None and theirs is not None and np.array_equal(mine, theirs))
        if not same or self.intercept != other.intercept or self.cross.shape != other.cross.shape:
            raise DataError("only sums over the same features, classes and cells can be added. Declare all classes.")

    def combine(self, use: Array, weight: Floats | None = None) -> Statistics:
        """Sums over other sets of rows: row k of `use` says which cells make up the new cell k.

        Parameters
        ----------
        use : array of shape (n_new_cells, n_cells)
            One where a cell takes part, else zero.
        weight : ndarray of shape (n_cells,), default=None
            The weight of the examples in each cell (their easiness); one by default.

        Returns
        -------
        statistics : Statistics
        """
        counts = np.asarray(use, dtype=np.float64)
        sums = counts if weight is None else counts * weight
        return replace(
            self,
            gram=_sets(sums, self.gram),
            cross=_sets(sums, self.cross),
            first=_sets(sums, self.first),
            squares=_sets(sums, self.squares),
            mass=_sets(sums, self.mass),
            answered=_sets(counts, self.answered),
            present=_sets(counts, self.present),
        )

    def blend(self, other: Statistics, share: float) -> Statistics:
        """Sums of the same rows with weights between those of two sums.

        Parameters
        ----------
        other : Statistics
            Sums with other weights.
        share : float
            How much the weights of these sums count; the other ones count the rest.

        Returns
        -------
        statistics : Statistics
        """

        def between(one: Floats, two: Floats) -> Floats:
            return share * one + (1 - share) * two

        return replace(
            self,
            gram=between(self.gram, other.gram),
            cross=between(self.cross, other.cross),
            first=between(self.first, other.first),
            squares=between(self.squares, other.squares),
            mass=between(self.mass, other.mass),
        )

    def grams(self, expertise: Floats | None = None, use: Floats | None = None) -> Floats:
        """The gram matrices of the model step. An example counts by the expertise of those who labelled it, relative
        to the average example of its set.

        Parameters
        ----------
        expertise : ndarray of shape (n_annotators,), default=None
            Of each annotator; None stands for the first consensus, when all count alike.
        use : ndarray of shape (n_sets, n_cells), default=None
            Which cells make up each set of rows; by default every cell is one.

        Returns
        -------
        gram : ndarray of shape (n_sets, n_columns, n_columns)
        """
        if self.is_complete:  # every example is average
            return _sets(use, self.gram[:, 0])
        precision = np.ones(self.n_annotators) if expertise is None else expertise
        average = self.average_expertise(precision, use)[:, np.newaxis, np.newaxis]
        return _sets(use, _over_annotators(precision, self.gram)) / average

    def crosses(self, expertise: Floats | None = None, use: Floats | None = None) -> Floats:
        """The right-hand sides that go with `grams`, of shape (n_sets, n_columns, n_targets)."""
        precision = np.ones(self.n_annotators) if expertise is None else expertise
        sums = self.first if expertise is None else _over_annotators(precision, self.cross)
        return _sets(use, sums) / self.average_expertise(precision, use)[:, np.newaxis, np.newaxis]

    def average_expertise(self, expertise: Floats, use: Floats | None = None) -> Floats:
        """The expertise of all who labelled the average example, per set of cells."""
        return _sets(use, self.answered @ expertise) / _sets(use, self.present)

    def squared_errors(self, theta: Floats) -> Floats:
        """Sums of weighted squared errors of every annotator in cell 0 against the scores of `theta`."""
        quadratic = np.einsum("bpq,pt,qt->b", self.gram[0], theta, theta, optimize=True)
        linear = np.einsum("lpt,pt->l", self.cross[0], theta)
        return np.maximum(self.squares[0] + self.targets.factor * (quadratic - 2 * linear), 0.0)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels in cell 0 with the scores; below zero is worse than chance."""
        products = np.einsum("lpt,pt->l", self.cross[0], theta)
        if not self.intercept:
            return products
        scores = np.einsum("bp,pt->bt", self.gram[0][:, :, -1], theta)
        return products - (scores * self.cross[0][:, -1]).sum(axis=1) / self.mass[0]


def _sets(use: Floats | None, cells: Floats) -> Floats:
    """Sums over sets of cells; by default every cell is one."""
    return cells if use is None else np.tensordot(use, cells, axes=1)


def _over_annotators(expertise: Floats, sums: Floats) -> Floats:
    """Sums of every cell and annotator, added up over annotators by their expertise; without a copy of the sums."""
    n_cells, n_annotators, *shape = sums.shape
    return (expertise @ sums.reshape(n_cells, n_annotators, -1)).reshape(n_cells, *shape)
