"""Rows in order -> where a perceptron makes mistakes: the loop itself, epoch by epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crowdwise._arrays import Floats, Positions
from crowdwise._progress import Report


def feed(signed: Floats, weights: Floats) -> Positions:
    """Feed examples to a perceptron in the order of their rows; where it made mistakes.

    A mistake is a label times score of zero or less (weights that are all zero would never learn otherwise);
    the example, times its label, is then added to the weights.

    Parameters
    ----------
    signed : ndarray of shape (n_examples, n_features)
        Examples times labels.
    weights : ndarray of shape (n_features,)
        Changed in place.

    Returns
    -------
    mistakes : ndarray of int
        Rows at which the weights changed, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory import feed
    >>> weights = np.zeros(2)
    >>> feed(np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 3.0]]), weights).tolist(), weights.tolist()
    ([0, 2], [0.0, 3.0])
    """
    mistakes = []
    for i, row in enumerate(signed):
        if row @ weights <= 0:
            weights += row
            mistakes.append(i)
    return np.array(mistakes, dtype=np.intp)


def weight_sum(signed: Floats, mistakes: Positions, start: Floats) -> Floats:
    """The sum of the weights after every example of one pass, for their average.

    `signed` are examples times labels, as they were fed; `mistakes` is what `feed` gave.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory.online import weight_sum
    >>> weight_sum(np.array([[1.0], [1.0], [1.0]]), np.array([0]), np.zeros(1)).tolist()
    [3.0]
    """
    # A mistake stays in the weights from its own row to the last.
    return np.asarray(len(signed) * start + (len(signed) - mistakes) @ signed[mistakes])


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a perceptron has come: all that is needed to go on."""

    weights: Floats  # (n_columns,): after the last example
    total: Floats  # (n_columns,): the sum of the weights after every example
    n_fed: int  # examples fed, counted in every epoch
    n_seen: int  # examples of all batches, fed or not
    radius: float  # the largest norm of an example fed
    mistakes: Positions  # the examples that were mistakes, counted over all batches, in the order of the mistakes
    per_epoch: tuple[int, ...]  # mistakes in every pass

    @classmethod
    def start(cls, n_columns: int) -> Progress:
        """Before the first example."""
        zeros = np.zeros(n_columns)
        return cls(zeros, zeros, 0, 0, 0.0, np.zeros(0, dtype=np.intp), ())

    def after(
        self,
        signed: Floats,
        order: Positions,
        n_examples: int,
        n_epochs: int,
        rng: np.random.Generator | None = None,
        report: Report | None = None,
    ) -> Progress:
        """After a batch of `n_examples`, fed until an epoch has no mistake, at most `n_epochs` times.

        `signed` are examples times labels in the order to feed them, `order` which example of the batch each of them
        is. A generator shuffles them anew in every epoch; `report` is called after each with its mistakes and their
        share.
        """
        weights, total, n_fed = self.weights.copy(), self.total, self.n_fed
        radius = math.sqrt(np.einsum("ij,ij->i", signed, signed).max(initial=0.0))
        made, per_epoch = [self.mistakes], list(self.per_epoch)
        for _ in range(n_epochs):
            if rng is not None:
                shuffle = rng.permutation(len(order))
                signed, order = signed[shuffle], order[shuffle]
            start = weights.copy()
            mistakes = feed(signed, weights)
            total = total + weight_sum(signed, mistakes, start)
            n_fed += len(signed)
            made.append(order[mistakes] + self.n_seen)
            per_epoch.append(len(mistakes))
            if report is not None:
                report(len(per_epoch), len(mistakes), len(mistakes) / max(len(signed), 1))
            if len(mistakes) == 0:
                break
        return Progress(
            weights,
            total,
            n_fed,
            self.n_seen + n_examples,
            max(self.radius, radius),
            np.concatenate(made),
            tuple(per_epoch),
        )
