"""One answer per example with how sure it is: what every model and `aggregate` give. All arrays are read-only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from crowdwise.arrays import Array, Floats, FrozenArrays, read_only
from crowdwise.labels.frames import make_frame


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
        Probability of every class if annotators err independently of each other. Real ones do not: use it to sort
        examples.
    """

    examples: Array
    classes: Array
    proba: Floats

    @cached_property
    def label(self) -> Array:
        """The most probable class of every example; the first one of those that tie."""
        if len(self.classes) == 2:  # much faster than a search in every short row
            return read_only(self.classes[(self.proba[:, 1] > self.proba[:, 0]).astype(np.intp)])
        return read_only(self.classes[self.proba.argmax(axis=1)])

    @cached_property
    def confidence(self) -> Floats:
        """The probability of that class."""
        return read_only(reduce(np.maximum, self.proba.T))

    def __len__(self) -> int:
        return len(self.examples)

    def __repr__(self) -> str:
        sure = f"; mean confidence {self.confidence.mean():.2f}" if len(self) else ""
        return f"Consensus: {len(self):,} examples of {len(self.classes)} classes{sure}"

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with the columns "example", "label", "confidence" and a probability per class.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        columns = {"example": self.examples, "label": self.label, "confidence": self.confidence}
        return make_frame(
            columns | {f"p({name})": column for name, column in zip(self.classes.tolist(), self.proba.T, strict=True)},
            library,
        )


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
        return make_frame({"example": self.examples, "label": self.label, "std": self.std}, library)
