"""Round after round -> the weight of every example: how the easy ones come first, and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import zeta

from crowdwise._arrays import Floats

# An expected number of rounds below this is taken as none.
_UNLIKELY = 0.01


class Curriculum:
    """The weights of every round; a model asks it, the first round being 1.

    Give easiness a share with `share`, or override `weights` for anything else; state in `settled` from when on the
    weights may be taken to stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.weights import Curriculum
    >>> class Half(Curriculum):
    ...     def share(self, t, rng):
    ...         return 0.5
    >>> Half().weights(1, np.array([1.0, 0.2]), None, np.random.default_rng(0)).tolist()
    [1.0, 0.6]
    """

    reads_losses: ClassVar[bool] = False

    @property
    def is_mixture(self) -> bool:
        """Whether the weights of a round are known from one number, the share of easiness."""
        return type(self).weights is Curriculum.weights

    def check(self) -> None:
        """Raise if a setting makes no sense."""

    def share(self, t: int, rng: np.random.Generator) -> float:
        """How much easiness counts in a round; the rest of an example's weight is the same for all.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        rng : Generator
            For curricula that draw.

        Returns
        -------
        share : float
            From 0 to 1.
        """
        return 1.0

    def weights(
        self,
        t: int,
        easiness: Floats,
        losses: Floats | None,
        rng: np.random.Generator,
        sample_weight: Floats | None = None,
    ) -> Floats:
        """The weights of a round.

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
        sample_weight : ndarray of shape (n_examples,), default=None
            How often each example counts, for curricula that count examples; once by default.

        Returns
        -------
        weights : ndarray of shape (n_examples,)
        """
        share = self.share(t, rng)
        return easiness if share == 1 else share * easiness + (1 - share)

    def settled(self, t: int, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of this one, so that the model may settle too.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        tol : float
            What is negligible.

        Returns
        -------
        settled : bool
        """
        return True


@dataclass(frozen=True)
class Fixed(Curriculum):
    """Easiness counts fully in every round, as in all experiments of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.weights import Fixed
    >>> Fixed().weights(4, np.array([1.0, 0.2]), None, np.random.default_rng(0)).tolist()
    [1.0, 0.2]
    """


@dataclass(frozen=True)
class Fading(Curriculum):
    """Easiness or equal weights by the toss of a coin, which falls on easiness with probability 1 / t**c in round t.

    With c of 1 or less it falls on easiness again and again, however late, so the rounds never settle; with c above 1
    there is almost surely a last time. They may settle once another time is less likely than one in a hundred.

    Parameters
    ----------
    c : float, default=1.0
        How fast easiness fades; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.weights import Fading
    >>> rng = np.random.default_rng(0)
    >>> [Fading(c=2.0).share(t, rng) for t in (1, 2, 3)]
    [1.0, 0.0, 1.0]
    """

    c: float = 1.0

    def check(self) -> None:
        """Raise if c is not above 0."""
        _check_positive("c", self.c)

    def share(self, t: int, rng: np.random.Generator) -> float:
        """1 with probability t**-c, else 0.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        rng : Generator
            Tosses the coin.

        Returns
        -------
        share : float
        """
        return float(rng.random() < t**-self.c)

    def settled(self, t: int, tol: float) -> bool:
        """Whether easiness is expected to count in less than a hundredth of a round after this one.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        tol : float
            Not used: chances are not measured by it.

        Returns
        -------
        settled : bool
        """
        return self.c > 1 and bool(zeta(self.c, t + 1) <= _UNLIKELY)


@dataclass(frozen=True)
class Smooth(Curriculum):
    """What `Fading` does on average: weights of t**-c times easiness and the rest alike, which settles.

    Parameters
    ----------
    c : float, default=3.0
        How fast easiness fades; above 0. With 3, the share of easiness is down to a millionth after 100 rounds, which
        is where models stop by default.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.weights import Smooth
    >>> Smooth(c=1.0).weights(4, np.array([1.0, 0.2]), None, np.random.default_rng(0)).tolist()
    [1.0, 0.8]
    """

    c: float = 3.0

    def check(self) -> None:
        """Raise if c is not above 0."""
        _check_positive("c", self.c)

    def share(self, t: int, rng: np.random.Generator) -> float:
        """The share of easiness, t**-c.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        rng : Generator
            Not used.

        Returns
        -------
        share : float
        """
        return float(t**-self.c)

    def settled(self, t: int, tol: float) -> bool:
        """Whether the share that easiness still has is negligible.

        A small change from one round to the next would not do: with c = 1 the weights move by 1 / t**2 a round and
        still have a way of 1 / t to go.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        tol : float
            What is negligible.

        Returns
        -------
        settled : bool
        """
        return bool(t**-self.c <= tol)


@dataclass(frozen=True)
class SelfPaced(Curriculum):
    """Examples enter as their loss falls under a growing threshold, and count by their easiness.

    After Kumar, Packer and Koller (2010). The threshold of round t admits a share of the examples that grows by a
    factor in every round until all are in, so no unit of the loss has to be guessed. In the first round, before there
    is a loss, the easiest enter. Examples as good as the last one admitted are admitted too.

    Parameters
    ----------
    start : float, default=0.5
        Share of the examples that take part in the first round, in (0, 1].
    growth : float, default=1.2
        Factor on this share from round to round; above 1.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.weights import SelfPaced
    >>> losses = np.array([0.1, 3.0, 0.2, 0.5])
    >>> SelfPaced(start=0.5).weights(1, np.ones(4), losses, np.random.default_rng(0)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """

    reads_losses: ClassVar[bool] = True
    start: float = 0.5
    growth: float = 1.2

    def check(self) -> None:
        """Raise if start is no share, or if growth would keep examples out for ever."""
        _check_positive("start", self.start)
        if self.start > 1:
            raise ValueError(f"start must be a share of the examples, at most 1; got {self.start!r}.")
        _check_positive("growth", self.growth)
        if self.growth <= 1:
            raise ValueError(f"growth must be above 1, or some examples would never enter; got {self.growth!r}.")

    def admitted(self, t: int) -> float:
        """The share of the examples that take part in a round.

        Parameters
        ----------
        t : int
            Number of the round, from 1.

        Returns
        -------
        admitted : float
            From 0 to 1.
        """
        logarithm = math.log(self.start) + (t - 1) * math.log(self.growth)  # a power would overflow
        return math.exp(min(logarithm, 0.0))

    def weights(
        self,
        t: int,
        easiness: Floats,
        losses: Floats | None,
        rng: np.random.Generator,
        sample_weight: Floats | None = None,
    ) -> Floats:
        """Easiness for the examples that are admitted, else 0.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        easiness : ndarray of shape (n_examples,)
            Weights by disagreement.
        losses : ndarray of shape (n_examples,) or None
            How far the last round's model is from the consensus; None in the first round.
        rng : Generator
            Not used.
        sample_weight : ndarray of shape (n_examples,), default=None
            How often each example counts; once by default.

        Returns
        -------
        weights : ndarray of shape (n_examples,)
        """
        admitted = self.admitted(t)
        if admitted >= 1 or not len(easiness):
            return easiness
        hardness = -easiness if losses is None else losses
        threshold = np.quantile(hardness, admitted, method="inverted_cdf", weights=sample_weight)
        weights = np.where(hardness <= threshold, easiness, 0.0)
        return weights if weights.any() else easiness  # so steep that no one who is admitted has any weight

    def settled(self, t: int, tol: float) -> bool:
        """Whether all examples take part.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        tol : float
            Not used.

        Returns
        -------
        settled : bool
        """
        return self.admitted(t) >= 1


_NAMED: dict[str, type[Curriculum]] = {
    "fixed": Fixed,
    "fading": Fading,
    "smooth": Smooth,
    "self-paced": SelfPaced,
}


def named_curriculum(text: str) -> Curriculum:
    """The curriculum of a name, with its numbers behind a colon.

    Examples
    --------
    >>> from crowdwise.weights.curricula import named_curriculum
    >>> named_curriculum("fading:2"), named_curriculum("self-paced")
    (Fading(c=2.0), SelfPaced(start=0.5, growth=1.2))
    """
    name, _, numbers = text.partition(":")
    try:
        curriculum = _NAMED[name](*map(float, filter(None, numbers.split(","))))
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"a curriculum is {', '.join(_NAMED)}, with its numbers behind a colon (fading:2, self-paced:0.5,1.2); "
            f"got {text!r}."
        ) from None
    return check_curriculum(curriculum)


def check_curriculum(curriculum: Any) -> Curriculum:
    """The curriculum, if it is one; None is `Fixed()`."""
    if curriculum is None:
        return Fixed()
    if not isinstance(curriculum, Curriculum):
        raise ValueError(
            "curriculum must be Fixed(), Fading(c), Smooth(c) or SelfPaced(...) of crowdwise.weights, your own "
            f"Curriculum, or None for Fixed(); got {curriculum!r}."
        )
    curriculum.check()
    return curriculum


def checked_weights(weights: Floats, curriculum: Curriculum) -> Floats:
    """The weights that anybody's curriculum gave, if one can learn with them."""
    weights = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0):
        raise ValueError(
            f"the weights of a curriculum must be finite, at least 0 and not all 0; {curriculum!r} gave weights from "
            f"{weights.min()} to {weights.max()}."
        )
    return weights


def _check_positive(name: str, value: Any) -> None:
    if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
