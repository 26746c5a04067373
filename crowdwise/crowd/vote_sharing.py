"""Labels -> which annotators are near copies of each other, and what each label counts if copies share a vote.

Two annotators who copy each other agree also where others do not expect it. So disagreements of a pair are compared
with those expected if both answered independently, given the votes of all others. Only near-exact copies share a vote:
annotators who agree a lot may simply be the good ones. Nor does anybody's vote confirm that of a copy: as far as two
share a vote they are one annotator, also where annotators are compared with others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import betainc, betaln, xlog1py, xlogy

from crowdwise._arrays import Array, Bools, Floats, FrozenArrays, Positions, ratio
from crowdwise._limits import COPY_EXAMPLES, COPY_KAPPA, OTHERS_SMOOTHING
from crowdwise.labels._groups import numbered
from crowdwise.labels.crowd_labels import CrowdLabels

# Two labels of an example are a pair; of more pairs than this, those of some examples are enough, and of fewer if
# classes are many.
_MOST_PAIRS, _MOST_ENTRIES = 300_000, 3_000_000
# Examples that are enough if every two annotators share all of them.
_ENOUGH_SHARED = 2000
# Counts of all pairs of annotators are in a square while that is small.
_SQUARE = 2**22

# The probability from which two annotators are taken to be copies.
_RATHER = 0.5
# No rate is taken to be smaller.
_NEVER = 1e-12

_NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class LabelPairs:
    """Pairs of labels of the same example, by their positions, whose annotators share a vote."""

    left: Positions  # (n_pairs,)
    right: Positions  # (n_pairs,)
    share: Floats  # (n_pairs,): how much of the other's vote each is

    def sums(self, values: Floats) -> Floats:
        """For every label, the sum over those it shares a vote with of values of theirs, times the share.

        One zero for all where no one shares a vote.
        """
        sums = np.zeros(len(values) if len(self.left) else 1)
        np.add.at(sums, self.left, self.share * values[self.right])
        np.add.at(sums, self.right, self.share * values[self.left])
        return sums

    def weights(self, n_labels: int) -> Floats:
        """What each of so many labels counts: one over one plus the shares of others who labelled the example."""
        return np.ones(n_labels) if not len(self.left) else 1 / (1 + self.sums(np.ones(n_labels)))

    def select(self, chosen: Bools) -> LabelPairs:
        """Some of them."""
        return LabelPairs(self.left[chosen], self.right[chosen], self.share[chosen])


@dataclass(frozen=True, eq=False)
class VoteSharing(FrozenArrays):
    """Pairs of annotators who share a vote, by their positions."""

    first: Positions  # (n_pairs,)
    second: Positions  # (n_pairs,)
    share: Floats  # (n_pairs,): how much of the other's vote each is: 1 for exact copies
    given: bool = False  # whether groups were given, rather than copies found

    @classmethod
    def none(cls) -> VoteSharing:
        """Every annotator has a vote of their own."""
        return cls(_NONE, _NONE, np.empty(0))

    @classmethod
    def of_groups(cls, group: Positions) -> VoteSharing:
        """Annotators of the same number have one vote together."""
        members = [np.flatnonzero(group == number) for number in np.flatnonzero(np.bincount(group) > 1)]
        pairs = [some[np.array(np.triu_indices(len(some), 1))] for some in members]
        first, second = np.concatenate([np.empty((2, 0), dtype=np.intp), *pairs], axis=1)
        return cls(first, second, np.ones(len(first)), given=True)

    @classmethod
    def of_copies(cls, labels: CrowdLabels) -> VoteSharing:
        """Near-exact copies among the annotators of some labels."""
        return cls(*near_copies(labels))

    def __len__(self) -> int:
        return len(self.first)

    def at(self, position: Positions) -> VoteSharing:
        """Among annotators who are at some positions of these; one at -1 is unknown and alone."""
        if not len(self):
            return self
        place = np.full(int(max(self.second.max(), position.max(initial=0))) + 1, -1)
        place[position[position >= 0]] = np.flatnonzero(position >= 0)
        first, second = place[self.first], place[self.second]
        known = (first >= 0) & (second >= 0)
        return VoteSharing(first[known], second[known], self.share[known], self.given)

    def pairs(self, labels: CrowdLabels) -> LabelPairs:
        """Every two labels of an example whose annotators share a vote."""
        if not len(self):
            return LabelPairs(_NONE, _NONE, np.empty(0))
        shares, order = np.zeros(labels.n_annotators, dtype=bool), np.argsort(self.first, kind="stable")
        shares[self.first] = shares[self.second] = True
        of_sharers = np.flatnonzero(shares[labels.annotator_index])  # few of all
        who = labels.annotator_index[of_sharers].astype(np.int64)
        row = (np.searchsorted(labels.indptr, of_sharers, side="right") - 1) * labels.n_annotators
        begin, end = (np.searchsorted(self.first[order], who, side=side) for side in ("left", "right"))
        left = np.repeat(np.arange(len(who)), end - begin)
        pair = order[np.arange(len(left)) - np.repeat(np.cumsum(end - begin) - end, end - begin)]
        label, wanted = row + who, row[left] + self.second[pair]
        right = np.minimum(np.searchsorted(label, wanted), len(label) - 1)
        found = label[right] == wanted
        return LabelPairs(of_sharers[left[found]], of_sharers[right[found]], self.share[pair[found]])

    def label_weights(self, labels: CrowdLabels) -> Floats:
        """What each label counts: one over one plus the shares of others who labelled the example."""
        return self.pairs(labels).weights(labels.n_labels)

    def vote_weights(self, labels: CrowdLabels) -> Floats:
        """The mean share of a vote that each annotator's labels have: 1 for all who share with no one."""
        return ratio(labels._sum_per_annotator(self.label_weights(labels)), labels.labels_per_annotator, 1.0)

    def groups(self, n_annotators: int) -> Positions:
        """A number per annotator, from 0 in the order of their first members: those of the same share a vote."""
        graph = sparse.coo_array((np.ones(len(self)), (self.first, self.second)), shape=(n_annotators, n_annotators))
        return numbered(connected_components(graph, directed=False)[1])


def enough_pairs(labels: CrowdLabels) -> Positions | None:
    """Some examples, drawn at random, if there are more pairs of labels than are needed; None if all are."""
    if labels.is_complete:
        n_pairs = len(labels) * (labels.n_annotators * (labels.n_annotators - 1) / 2)
    else:
        n_labels = labels.labels_per_example.astype(np.float64)
        n_pairs = float(n_labels @ (n_labels - 1) / 2)
    most = _MOST_PAIRS if labels.classes is None else min(_MOST_PAIRS, _MOST_ENTRIES / len(labels.classes))
    if n_pairs <= most:
        return None
    n_chosen = max(int(len(labels) * most / n_pairs), 1)
    if labels.is_complete:
        n_chosen = min(n_chosen, _ENOUGH_SHARED)
    return np.sort(np.random.default_rng(0).choice(len(labels), n_chosen, replace=False))


def label_pairs(labels: CrowdLabels) -> tuple[Positions, Positions, Positions]:
    """Positions of two labels of the same example, for every two, and the example; annotators in their order."""
    n_labels = labels.labels_per_example
    left, right, examples = [_NONE], [_NONE], [_NONE]
    for n in np.unique(n_labels[n_labels > 1]).tolist():
        example = np.flatnonzero(n_labels == n)
        one, other = np.triu_indices(n, 1)
        begin = labels.indptr[example][:, np.newaxis]
        left.append((begin + one).ravel())
        right.append((begin + other).ravel())
        examples.append(np.repeat(example, len(one)))
    return np.concatenate(left), np.concatenate(right), np.concatenate(examples)


def near_copies(labels: CrowdLabels) -> tuple[Positions, Positions, Floats]:
    """Pairs of annotators who are more probably near copies than not, and how probably.

    Their disagreements on the examples that both labelled are compared with those expected if both answered
    independently given the votes of all others there. Some examples of many are enough.
    """
    rows = enough_pairs(labels)
    labels = labels if rows is None else labels[rows]
    left, right, example = label_pairs(labels)
    n, values = labels.n_annotators, labels.values
    key = labels.annotator_index[left].astype(np.int64) * n + labels.annotator_index[right]
    if n * n > _SQUARE:  # few of all pairs share examples
        pairs, key = np.unique(key, return_inverse=True)
    else:
        pairs = np.arange(n * n)
    shared = np.bincount(key, minlength=len(pairs))
    differ = np.bincount(key[values[left] != values[right]], minlength=len(pairs))
    n_pairs = max(int((shared > 0).sum()), 1)
    # Two who answer alike would agree on one of K examples at least: most pairs are no copies in any case.
    at_most = 1.0 if labels.classes is None else 1 - 1 / len(labels.classes)
    proba, agree = np.zeros(len(pairs)), np.flatnonzero((shared >= COPY_EXAMPLES) & (2 * differ < shared))
    proba[agree] = probably_copies(shared[agree], differ[agree], at_most * shared[agree], n_pairs)
    possible, some = np.flatnonzero(proba > _RATHER), np.flatnonzero(proba[key] > _RATHER)
    some = some[np.argsort(key[some], kind="stable")]
    for pair, end in zip(possible.tolist(), np.cumsum(shared[possible]).tolist(), strict=True):
        own = some[end - shared[pair] : end]
        one, other = values[left[own]], values[right[own]]
        tally = None if labels.classes is None else labels._tally[example[own]]
        same = _equal_by_chance(one, other) if tally is None else _expected_agreement(tally, one, other)
        proba[pair] = probably_copies(shared[pair], differ[pair], shared[pair] - same, n_pairs)
    copies = proba > _RATHER
    return pairs[copies] // n, pairs[copies] % n, proba[copies]


def probably_copies(shared: Array, differ: Array, expected: Array, n_pairs: int) -> Floats:
    """The probability that two annotators are near copies, by their disagreements and those of independent ones.

    A priori one pair of all depends on each other. If so, disagreements are fewer than expected by a factor: for near
    copies, which half of such pairs are, any below `1 - COPY_KAPPA`, for others any up to one.
    """
    often = np.clip(expected / np.maximum(shared, 1), _NEVER, 1 - _NEVER)  # how often independent ones disagree
    limit = (1 - COPY_KAPPA) * often
    below = [betainc(differ + 1.0, shared - differ + 1.0, rate) for rate in (limit, often)]
    near, other = below[0] / limit, (below[1] - below[0]) / (often - limit)
    independent = xlogy(differ, often) + xlog1py(shared - differ, -often) - betaln(differ + 1.0, shared - differ + 1.0)
    with np.errstate(over="ignore"):
        rest = other + 2 * (n_pairs - 1) * np.exp(independent)
    return np.asarray(near / np.maximum(near + rest, _NEVER))


def _equal_by_chance(one: Array, other: Array) -> float:
    """How many ratings of two annotators would be equal by chance, by how often each gives every rating."""
    ratings, which = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(ratings)) for part in np.split(which, 2)]
    return float(counts[0] @ counts[1]) / max(len(one), 1)


def _expected_agreement(tally: Array, one: Array, other: Array) -> float:
    """On how many examples two annotators would agree if both answered independently given the votes of all others."""
    eye = np.eye(tally.shape[1])
    answers = eye[one], eye[other]
    frequency = tally.sum(axis=0) / tally.sum()
    others = tally - answers[0] - answers[1] + OTHERS_SMOOTHING * frequency
    others /= others.sum(axis=1, keepdims=True)
    total = np.maximum(others.sum(axis=0), np.finfo(np.float64).tiny)[:, np.newaxis]
    tables = [others.T @ given / total for given in answers]
    return float(np.einsum("kl,km,ml->", tables[0], others.T @ others, tables[1]))
