"""Labels with ids, blocks of rows with ids -> the labels of each block."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdwise._arrays import Array, Bools, Positions
from crowdwise.exceptions import AlignmentError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.mistakes import ids_spelt_otherwise

Join = Literal["exact", "inner"]


class LabelsById:
    """The labels of blocks whose rows are named by ids, looked up one block after the other.

    Parameters
    ----------
    labels : CrowdLabels
        With ids; no two examples have the same.
    join : {"exact", "inner"}
        What to do with rows that have no labels and labels that have no row: stop with an error, or keep what is on
        both sides.
    """

    def __init__(self, labels: CrowdLabels, join: Join) -> None:
        self.labels, self.join = labels, join
        ids = _comparable(labels.examples)
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        if (repeated := self._sorted[1:] == self._sorted[:-1]).any():
            at = self._order[1:][repeated][0]
            raise AlignmentError(
                "the identifiers of the labels must be different from each other; "
                f"{labels.examples[at : at + 1].tolist()[0]!r} is repeated."
            )
        self._met = np.zeros(len(labels), dtype=bool)

    def of(self, ids: Array) -> tuple[Bools, CrowdLabels]:
        """Which rows of a block are kept, and the labels of these."""
        place = self._places(_comparable(ids))
        known = place >= 0
        if self.join == "exact" and not known.all():
            advice = ids_spelt_otherwise(ids[~known], self.labels.examples[~self._met])
            raise AlignmentError(
                f"{int((~known).sum())} of {len(ids)} rows of a block (such as {ids[~known][:3].tolist()}) have no "
                f"labels, whose identifiers are such as {self.labels.examples[:3].tolist()}. "
                + (advice or 'Use join="inner" to go on without them.')
            )
        at = place[known]
        if self._met[at].any() or len(np.unique(at)) < len(at):
            raise AlignmentError("a row with the same identifier comes twice: each example must have one row.")
        self._met[at] = True
        return known, self.labels[at]

    def _places(self, ids: Array) -> Positions:
        if len(self._sorted) == 0 or (ids.dtype.kind == "U") != (self._sorted.dtype.kind == "U"):
            return np.full(len(ids), -1, dtype=np.intp)
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[at] == ids, self._order[at], -1)

    def finish(self) -> None:
        """Raise if labels are left over, unless that was to be expected."""
        left = ~self._met
        if self.join == "exact" and left.any():
            raise AlignmentError(
                f"{int(left.sum())} of {len(left)} examples with labels (such as "
                f'{self.labels.examples[left][:3].tolist()}) have no row of features. Use join="inner" to go on '
                "without them."
            )


def _comparable(ids: Array) -> Array:
    """Ids that can be sorted: numbers, or text, in which 1 and "1" are different, as everywhere."""
    if ids.dtype.kind in "iuf":
        return ids
    values = ids.tolist()
    return np.array(values if all(isinstance(one, str) for one in values) else [repr(one) for one in values], np.str_)
