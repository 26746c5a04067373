"""Round after round -> the weight of every example: how the easy ones come first, and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Curriculum:
    """What a model asks in every round; the first round is 1."""

    reads_losses: ClassVar[bool] = False
    is_random: ClassVar[bool] = False

    def check(self) -> None:
        """Raise if a setting makes no sense."""

    def share(self, t: int, rng: np.random.Generator) -> float:
        """How much easiness counts in round t; the rest of an example's weight is the same for all."""
        return 1.0

    def weights(self, t: int, easiness: Floats, losses: Floats | None, rng: np.random.Generator) -> Floats:
        """The weights of round t.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        easiness : ndarray of shape (n_examples,)
            Weights by disagreement.
        losses : ndarray of shape (n_examples,) or None
            How far the last round's model is from the consensus; None in the first round.
        rng : Generator
            For curricula that draw.

        Returns
        -------
        weights : ndarray of shape (n_examples,)
        """
        share = self.share(t, rng)
        return easiness if share == 1 else share * easiness + (1 - share)


@dataclass(frozen=True)
class Fixed(Curriculum):
    """Easiness counts fully in every round, as in all experiments of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import Fixed
    >>> Fixed().weights(4, np.array([1.0, 0.2]), None, np.random.default_rng(0)).tolist()
    [1.0, 0.2]
    """


@dataclass(frozen=True)
class Fading(Curriculum):
    """Easiness or equal weights by the toss of a coin, which falls on easiness with probability 1 / t**c in round t.

    Parameters
    ----------
    c : float, default=1.0
        How fast easiness fades; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import Fading
    >>> rng = np.random.default_rng(0)
    >>> [Fading(c=1.0).share(t, rng) for t in (1, 2, 3)]
    [1.0, 1.0, 1.0]
    """

    is_random: ClassVar[bool] = True
    c: float = 1.0

    def check(self) -> None:
        _check_positive("c", self.c)

    def share(self, t: int, rng: np.random.Generator) -> float:
        return float(rng.random() < t**-self.c)


@dataclass(frozen=True)
class Smooth(Curriculum):
    """What `Fading` does on average: weights of t**-c times easiness and the rest alike, which settles.

    Parameters
    ----------
    c : float, default=1.0
        How fast easiness fades; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import Smooth
    >>> Smooth(c=1.0).weights(4, np.array([1.0, 0.2]), None, np.random.default_rng(0)).tolist()
    [1.0, 0.8]
    """

    c: float = 1.0

    def check(self) -> None:
        _check_positive("c", self.c)

    def share(self, t: int, rng: np.random.Generator) -> float:
        return float(t**-self.c)


@dataclass(frozen=True)
class SelfPaced(Curriculum):
    """Examples enter as their loss falls under a growing threshold, and count by their easiness.

    After Kumar, Packer and Koller (2010). The threshold of round t admits a share of the examples that grows by a
    factor in every round until all are in, so no unit of the loss has to be guessed. In the first round, before there
    is a loss, the easiest enter.

    Parameters
    ----------
    start : float, default=0.5
        Share of the examples that take part in the first round, in (0, 1].
    growth : float, default=1.2
        Factor on this share from round to round; above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import SelfPaced
    >>> losses = np.array([0.1, 3.0, 0.2, 0.5])
    >>> SelfPaced(start=0.5).weights(1, np.ones(4), losses, np.random.default_rng(0)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """

    reads_losses: ClassVar[bool] = True
    start: float = 0.5
    growth: float = 1.2

    def check(self) -> None:
        _check_positive("start", self.start)
        if self.start > 1:
            raise ValueError(f"start must be a share of the examples, at most 1; got {self.start!r}.")
        _check_positive("growth", self.growth)
        if self.growth <= 1:
            raise ValueError(f"growth must be above 1, or some examples would never enter; got {self.growth!r}.")

    def weights(self, t: int, easiness: Floats, losses: Floats | None, rng: np.random.Generator) -> Floats:
        admitted = min(1.0, self.start * self.growth ** min(t - 1, 10_000)) if len(easiness) else 1.0
        if admitted >= 1:
            return easiness
        hardness = -easiness if losses is None else losses
        return np.where(hardness <= np.quantile(hardness, admitted), easiness, 0.0)


def check_curriculum(curriculum: Any) -> Curriculum:
    """The curriculum, if it is one; None is `Fixed()`."""
    if curriculum is None:
        return Fixed()
    if not isinstance(curriculum, Curriculum):
        raise ValueError(
            "curriculum must be Fixed(), Fading(c), Smooth(c), SelfPaced(...), your own Curriculum, or None for "
            f"Fixed(); got {curriculum!r}."
        )
    curriculum.check()
    return curriculum


def _check_positive(name: str, value: Any) -> None:
    if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
