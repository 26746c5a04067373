"""One answer per example with how sure it is: what every model and `aggregate` give. All arrays are read-only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from crowdwise._arrays import ROUNDING, Array, Floats, FrozenArrays, Positions, read_only
from crowdwise.labels._frames import make_frame
from crowdwise.labels.scale import ConsensusBy


@dataclass(frozen=True, repr=False, eq=False)
class Consensus(FrozenArrays):
    """The class of every example, with the probability of every class.

    Arrays are read-only, for they may be those of a fitted model: ``.copy()`` gives one of your own.

    Parameters
    ----------
    examples : ndarray of shape (n_examples,)
        Identifiers of the examples, in the order of all that follows.
    classes : ndarray of shape (n_classes,)
        The classes.
    proba : ndarray of shape (n_examples, n_classes)
        Probability of every class if the model is true. Annotators share more or fewer errors than it allows for: use
        it to sort examples.
    by : {"mode", "median", "mean"}, default="mode"
        Which class is the label: the most probable one; for classes with an order also the one in the middle of the
        probability, or the one nearest to the mean.
    levels : ndarray of shape (n_classes,) or None, default=None
        Where each class is, if classes have an order: numbers as they are, anything else 1, 2, 3, ...
    """

    examples: Array
    classes: Array
    proba: Floats
    by: ConsensusBy = "mode"
    levels: Floats | None = None

    @cached_property
    def label(self) -> Array:
        """The class of every example: the most probable one, or as `by` has it; the first of a tie."""
        return read_only(self.classes.take(self.codes))

    @cached_property
    def codes(self) -> Positions:
        """The position of that class among the classes."""
        return read_only(chosen_classes(self.proba, self.by, self.levels))

    @cached_property
    def confidence(self) -> Floats:
        """The probability of that class."""
        if self.by == "mode":
            return read_only(reduce(np.maximum, self.proba.T))  # much faster than a search in every short row
        return read_only(self.proba[np.arange(len(self.proba)), self.codes])

    @cached_property
    def mean(self) -> Floats | None:
        """The mean level of every example, which may be between two levels; None for classes without an order."""
        return None if self.levels is None else read_only(self.proba @ self.levels)

    def none(self) -> Consensus:
        """That of no examples."""
        return replace(self, examples=self.examples[:0], proba=self.proba[:0])

    def __len__(self) -> int:
        return len(self.examples)

    def __repr__(self) -> str:
        sure = f"; mean confidence {self.confidence.mean():.2f}" if len(self) else ""
        return f"Consensus: {len(self):,} examples of {len(self.classes)} classes{sure}"

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with the columns "example", "label", "confidence" ("mean" too of levels), and one per class.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return make_frame(self.columns(), library)

    def columns(self) -> dict[str, Array]:
        """The columns of that frame."""
        columns = {"example": self.examples, "label": self.label, "confidence": self.confidence}
        if self.mean is not None:
            columns["mean"] = self.mean
        return columns | {f"p({name})": p for name, p in zip(self.classes.tolist(), self.proba.T, strict=True)}


def chosen_classes(proba: Floats, by: ConsensusBy = "mode", levels: Floats | None = None) -> Positions:
    """The position of the class that is taken of probabilities.

    Parameters
    ----------
    proba : ndarray of shape (n_examples, n_classes)
        Probability of every class; in their order for the median.
    by : {"mode", "median", "mean"}, default="mode"
        The most probable class, the first one up to which there is half of the probability, or the one nearest to the
        mean.
    levels : ndarray of shape (n_classes,), default=None
        Where each class is, for the mean.

    Returns
    -------
    codes : ndarray of shape (n_examples,)

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.results.consensus import chosen_classes
    >>> proba = np.array([[0.4, 0.2, 0.1, 0.3]])
    >>> [chosen_classes(proba, by, np.arange(4.0)).tolist() for by in ("mode", "median", "mean")]
    [[0], [1], [1]]
    """
    if by == "median":
        return np.asarray((np.cumsum(proba, axis=1)[:, :-1] < 0.5 - ROUNDING).sum(axis=1), dtype=np.intp)
    if by == "mean":
        assert levels is not None
        return np.abs((proba @ levels)[:, np.newaxis] - levels).argmin(axis=1)
    if proba.shape[1] == 2:  # much faster than a search in every short row
        return (proba[:, 1] > proba[:, 0]).astype(np.intp)
    return proba.argmax(axis=1)


@dataclass(frozen=True, repr=False, eq=False)
class RatingConsensus(FrozenArrays):
    """The rating of every example, with its standard deviation.

    Arrays are read-only, for they may be those of a fitted model: ``.copy()`` gives one of your own.

    Parameters
    ----------
    examples : ndarray of shape (n_examples,)
        Identifiers of the examples, in the order of all that follows.
    label : ndarray of shape (n_examples,)
        The rating.
    std : ndarray of shape (n_examples,)
        Its standard deviation if annotators err independently of each other: smaller is surer.
    """

    examples: Array
    label: Floats
    std: Floats

    def none(self) -> RatingConsensus:
        """That of no examples."""
        return RatingConsensus(self.examples[:0], self.label[:0], self.std[:0])

    def __len__(self) -> int:
        return len(self.examples)

    def __repr__(self) -> str:
        sure = f"; mean standard deviation {self.std.mean():.3g}" if len(self) else ""
        return f"RatingConsensus: {len(self):,} examples{sure}"

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with the columns "example", "label" and "std".

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return make_frame(self.columns(), library)

    def columns(self) -> dict[str, Array]:
        """The columns of that frame."""
        return {"example": self.examples, "label": self.label, "std": self.std}
