"""Labels of people and of one candidate -> whether the candidate may stand in for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from crowdwise._arrays import ROUNDING, Array, Bools, Codes, Floats, FrozenArrays, ratio
from crowdwise._checks import check_number, check_whole
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import as_ids, encode_declared, shown
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels

# With fewer people there is no group that someone could represent better than another.
_FEWEST_HUMANS = 3
# The t-test is for at least this many examples.
_ENOUGH_EXAMPLES = 30


@dataclass(frozen=True, repr=False, eq=False)
class AlternativeAnnotatorTest(FrozenArrays):
    """Whether a candidate represents the people at least as well as one of them does; prints as a few lines of text.

    Parameters
    ----------
    candidate : object
        Name of the annotator who was tested.
    epsilon : float
        How much worse than a person the candidate may be.
    fdr : float
        Share of false discoveries among the wins.
    humans : ndarray of shape (n_humans,)
        Names of the people.
    n_examples : ndarray of shape (n_humans,)
        Examples on which each of them was compared with the candidate.
    advantage : ndarray of shape (n_humans,)
        Share of these on which the candidate agrees with the other people at least as well.
    human_advantage : ndarray of shape (n_humans,)
        Share on which the person does. Ties count for both.
    p_value, p_adjusted : ndarray of shape (n_humans,)
        Of the candidate being worse by `epsilon` or more; the second is corrected for testing several people. NaN for
        people with too few examples, who are left out.
    """

    candidate: Any
    epsilon: float
    fdr: float
    humans: Array
    n_examples: Codes
    advantage: Floats
    human_advantage: Floats
    p_value: Floats
    p_adjusted: Floats

    @property
    def tested(self) -> Bools:
        """Which of the people had enough examples."""
        return ~np.isnan(self.p_adjusted)

    @property
    def wins(self) -> Bools:
        """Over which of the people the candidate wins."""
        return self.tested & (self.p_adjusted <= self.fdr)

    @property
    def winning_rate(self) -> float:
        """Share of the tested people over whom the candidate wins."""
        return float(self.wins.sum() / self.tested.sum())

    @property
    def advantage_probability(self) -> float:
        """How probably the candidate is at least as good as a person, averaged over the tested people."""
        return float(self.advantage[self.tested].mean())

    @property
    def passed(self) -> bool:
        """Whether the candidate wins over at least half of the tested people."""
        return self.winning_rate >= 0.5

    def __repr__(self) -> str:
        verdict = "may replace a person" if self.passed else "may not replace a person"
        return (
            f"AlternativeAnnotatorTest: {shown(self.candidate)} {verdict} (epsilon {self.epsilon:g})\n"
            f"  wins over {int(self.wins.sum())} of {int(self.tested.sum())} people: winning rate "
            f"{self.winning_rate:.2f}, 0.5 is needed\n"
            f"  at least as good as a person on {100 * self.advantage_probability:.0f}% of the examples (advantage "
            "probability)"
        )

    def to_frame(self) -> Any:
        """A data frame with a row per person.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        names = ("humans", "n_examples", "advantage", "human_advantage", "p_value", "p_adjusted", "wins")
        return make_frame({name.replace("humans", "human"): getattr(self, name) for name in names})


def alternative_annotator_test(
    labels: Any,
    candidate: Any,
    humans: Sequence[Any] | None = None,
    *,
    epsilon: float = 0.2,
    fdr: float = 0.05,
    min_examples: int = 30,
) -> AlternativeAnnotatorTest:
    """Whether an annotator, such as a language model, may replace a person (the alt-test).

    Each person is left out in turn. On every example that the person, the candidate and at least one more person
    labelled, the person and the candidate are compared with the other people: by the share of them who gave the same
    class, or for ratings by the root mean squared difference. The candidate wins over the person if the share of
    examples on which the person is closer is above the share on which the candidate is closer by clearly less than
    `epsilon` (one-sided t-test, with the Benjamini-Yekutieli correction for testing several people). It passes if it
    wins over at least half of them.

    The test assumes that examples are drawn independently of each other from those that the candidate is meant for, and
    that the people are of the kind to be replaced and worth being replaced: where they barely agree with each other,
    passing means little (see `agreement`). It asks who is closer to the people, not who is right.

    Parameters
    ----------
    labels : CrowdLabels, or data frame with a column per annotator
        Classes or ratings of the people and the candidate. Give ordered levels as ratings.
    candidate : object
        Name of the annotator to be tested, among ``labels.annotators``.
    humans : sequence, default=None
        Names of the people, at least three; by default all other annotators.
    epsilon : float, default=0.2
        What the candidate may be worse by, because it is cheaper. The authors suggest 0.2 where the people are experts,
        0.15 where they are trained, 0.1 for a crowd, and less where they barely agree.
    fdr : float, default=0.05
        Accepted share of false wins among all wins.
    min_examples : int, default=30
        People with fewer examples are left out of the test; for fewer than 30 too few for a reliable t-test.

    Returns
    -------
    test : AlternativeAnnotatorTest
        With `winning_rate`, `advantage_probability` (compare candidates by this one), `passed`, and numbers per person.

    References
    ----------
    Calderon, Reichart, Dror (2025), The alternative annotator test for LLM-as-a-judge: how to statistically justify
    replacing human annotators with LLMs, ACL.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.crowd import alternative_annotator_test
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, (80, 1))
    >>> given = np.where(rng.random((80, 4)) < [0.7, 0.7, 0.7, 0.9], truth, rng.integers(0, 3, (80, 4)))
    >>> labels = CrowdLabels.from_matrix(given, annotators=["ann", "bob", "cat", "model"])
    >>> alternative_annotator_test(labels, candidate="model")
    AlternativeAnnotatorTest: 'model' may replace a person (epsilon 0.2)
      wins over 3 of 3 people: winning rate 1.00, 0.5 is needed
      at least as good as a person on 91% of the examples (advantage probability)
    """
    epsilon = check_number("epsilon", epsilon, high=1.0)
    fdr = check_number("fdr", fdr, above=True, high=1.0)
    check_whole("min_examples", min_examples, low=2)
    crowd = as_labels(labels, scale=None)
    position, people = _people(crowd, candidate, humans)
    difference, person = _compare(crowd, position, people)
    n = np.bincount(person, minlength=len(people))
    p_value = _p_values(difference, person, n, epsilon)
    tested = n >= min_examples
    _note_few(crowd.annotators[people], n, tested, min_examples)
    p_adjusted = np.full(len(people), np.nan)
    p_adjusted[tested] = stats.false_discovery_control(p_value[tested], method="by")
    return AlternativeAnnotatorTest(
        candidate=crowd.annotators[position],
        epsilon=epsilon,
        fdr=fdr,
        humans=crowd.annotators[people],
        n_examples=n,
        advantage=_mean(difference >= 0, person, n),
        human_advantage=_mean(difference <= 0, person, n),
        p_value=np.where(tested, p_value, np.nan),
        p_adjusted=p_adjusted,
    )


def _people(labels: CrowdLabels, candidate: Any, humans: Sequence[Any] | None) -> tuple[int, Codes]:
    """Positions of the candidate and of the people among the annotators."""
    (position,) = _positions(labels, [candidate], "candidate")
    if humans is None:
        people = np.delete(np.arange(labels.n_annotators), position)
    else:
        people = np.sort(_positions(labels, humans, "humans"))
    if position in people:
        raise LabelError(f"the candidate {shown(candidate)} cannot be one of the humans it is compared with.")
    if len(people) < _FEWEST_HUMANS:
        raise LabelError(
            f"the test needs at least {_FEWEST_HUMANS} people besides the candidate; got {len(people)}. With fewer, "
            "there is no group of people to compare with."
        )
    return int(position), people


def _positions(labels: CrowdLabels, names: Sequence[Any], role: str) -> Codes:
    if isinstance(names, str | bytes):
        raise LabelError(f"{role} must be a list of names; got {names!r}.")
    ids = as_ids(names, role)
    positions = encode_declared(ids, labels.annotators).astype(np.intp)
    if (positions < 0).any():
        raise LabelError(
            f"{role}: no annotator is called {', '.join(map(shown, ids[positions < 0][:3]))}; the annotators are "
            f"{labels.annotators[:10].tolist()}{' and others' if labels.n_annotators > 10 else ''}."
        )
    return positions


def _compare(labels: CrowdLabels, candidate: int, people: Codes) -> tuple[Floats, Codes]:
    """Whether the candidate (1), the person (-1) or neither (0) is closer to the other people, and which person.

    One entry for every label of a person on an example that the candidate and at least one more person labelled.
    """
    person = np.full(labels.n_annotators, -1)
    person[people] = np.arange(len(people))
    of_candidate = labels.annotator_index == candidate
    answer = np.zeros(len(labels), dtype=labels.values.dtype)
    answer[labels.example_index[of_candidate]] = labels.values[of_candidate]
    answered = np.bincount(labels.example_index[of_candidate], minlength=len(labels)) > 0
    of_people = person[labels.annotator_index] >= 0
    n_others = labels._sum_per_example(of_people) - 1
    used = of_people & (answered & (n_others > 0))[labels.example_index]
    example = labels.example_index[used]
    theirs, candidates = labels.values[used], answer[example]
    if labels.classes is None:
        others_sum = labels._sum_per_example(np.where(of_people, labels.values, 0.0))[example] - theirs
        closer = _closer_rating(candidates, theirs, others_sum, n_others[example])
    else:
        agree = labels.select_annotators(person >= 0)._tally.astype(np.int64)
        # The person is not one of the others: a vote less for what the person answered, no matter who gave it.
        closer = agree[example, candidates] - (candidates == theirs) - (agree[example, theirs] - 1)
    return np.sign(closer).astype(np.float64), person[labels.annotator_index[used]]


def _closer_rating(candidates: Floats, theirs: Floats, others_sum: Floats, n_others: Codes) -> Floats:
    """How much less the candidate differs from the others than the person: the difference of sums of squares."""
    gap = candidates - theirs
    lean = 2 * others_sum - n_others * (candidates + theirs)
    size = np.abs(others_sum) + n_others * (np.abs(candidates) + np.abs(theirs))
    return gap * np.where(np.abs(lean) > ROUNDING * size, lean, 0.0)


def _mean(values: Array, person: Codes, n: Codes) -> Floats:
    return ratio(np.bincount(person, values, minlength=len(n)), n)


def _p_values(difference: Floats, person: Codes, n: Codes, epsilon: float) -> Floats:
    """One-sided t-test per person that the candidate is worse by `epsilon` or more; NaN for fewer than two examples."""
    worse = -_mean(difference, person, n)
    spread = np.bincount(person, (difference + worse[person]) ** 2, minlength=len(n))
    with np.errstate(divide="ignore", invalid="ignore"):  # no spread: the answer is certain
        t = (worse - epsilon) / np.sqrt(spread / (n - 1) / n)
    p_value = stats.t.cdf(t, n - 1)
    p_value[(n > 1) & np.isnan(t)] = 1.0  # worse by exactly epsilon on all
    return np.asarray(np.where(n > 1, p_value, np.nan))


def _note_few(names: Array, n: Codes, tested: Bools, min_examples: int) -> None:
    """Warn who is left out, and where a t-test is doubtful."""
    if not tested.any():
        raise LabelError(
            f"no person has {min_examples} examples that the candidate and another person labelled too (the most are "
            f"{n.max()}): label more examples, or lower min_examples."
        )
    if not tested.all():
        few = ", ".join(f"{shown(name)} ({count})" for name, count in zip(names[~tested][:3], n[~tested], strict=False))
        warn(
            f"{int((~tested).sum())} of {len(n)} people are left out of the test, as they share fewer than "
            f"{min_examples} examples with the candidate and another person: {few}."
        )
    if n[tested].min() < _ENOUGH_EXAMPLES:
        warn(f"some people have fewer than {_ENOUGH_EXAMPLES} examples: too few for a reliable t-test; label more.")
