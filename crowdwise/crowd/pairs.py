"""Labels, and what was to be expected of them -> how alike each two annotators err, and who counts as one.

Two annotators who copy each other agree where both are right, as any two good ones do, and also where both differ from
everybody else. So what counts is the correlation of their deviations: first from what the others say, which needs no
consensus that copies may have pulled along already; then from what was expected of them given a consensus in which they
had one vote together. Where others guess, that consensus says little, and two who are good look like copies: those who
are not quite the same are copies only if others agree on something else. Only pairs that share examples take memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom

from crowdwise.arrays import Array, Bools, Floats, Positions, ratio
from crowdwise.crowd.beyond_class import beyond_class
from crowdwise.crowd.votes import vote_parts
from crowdwise.labels.crowd_labels import CrowdLabels

# Two labels of an example are a pair; of more pairs than this, those of some examples are enough, and of fewer if
# classes are many.
_MOST_PAIRS, _MOST_ENTRIES = 300_000, 3_000_000
# Examples that are enough if every two annotators share all of them.
_ENOUGH_SHARED = 2000
# Examples without correlation that are added to those that two annotators share.
_ADDED = 7.0
# Copies give the same label to so large a part of the examples that they share, and share at least so many. Of fewer,
# the labels must be the same so often that chance would hardly make any pair agree so if each agreed in that part.
_SAME, _FEWEST, _HARDLY = 0.9, 100, 0.01
# Of fewer than this, nobody can tell: that is how many have all to be the same if there is but one pair.
_NEVER = 44
# From these correlations on two annotators may be copies, and are.
_SUSPECT, _COPY = 0.7, 0.75
# Two who give the same label so often are hardly both so good; that those err who do less often, others have to show,
# by more than chance: so many standard errors.
_AS_ONE, _SURELY = 0.98, 2.0
# Counts per pair of annotators are kept in a square while that is small.
_SQUARE = 2**20


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every two annotators who share an example, the first one before the second."""

    first: Positions  # (n_pairs,): positions of the annotators
    second: Positions
    shared: Floats  # (n_pairs,): examples that both labelled
    agreement: Floats  # (n_pairs,): share of these with the same label
    # (n_pairs,): of their deviations, drawn towards zero where they share few examples or deviate little.
    correlation: Floats

    def __len__(self) -> int:
        return len(self.first)

    def select(self, chosen: Bools) -> Pairs:
        """Some of them."""
        return Pairs(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def alike(self, least: float) -> Pairs:
        """Those who give nearly always the same label, and whose deviations are correlated at least so much."""
        return self.select(_nearly_same(self.shared, self.agreement) & (self.correlation >= least))


def _nearly_same(shared: Floats, agreement: Floats) -> Bools:
    """Which of all pairs give the same label more often than chance would make any of them."""
    same: Bools = agreement >= _SAME
    few = np.flatnonzero(same & (shared < _FEWEST))
    n_same = np.round(agreement[few] * shared[few])
    same[few] = binom.sf(n_same - 1, shared[few], _SAME) * len(shared) < _HARDLY
    return same


def suspects(labels: CrowdLabels) -> Pairs:
    """Annotators who may be copies: alike also where they differ from the others.

    Two good annotators among bad ones are suspects as well, so it takes a consensus to tell; see `copies`. Some
    examples are enough, see `enough_pairs`.
    """
    three = labels.labels_per_example > 2  # someone else has to be there
    if not three.any() or (labels.labels_per_annotator >= _NEVER).sum() < 2:
        return _no_pairs()
    if labels.n_annotators < 4:  # beside one other, two who agree may as well be the good ones
        return _no_pairs()
    labels = labels if three.all() else labels[three]
    left, right, example = label_pairs(labels)
    met = _Met.of(labels, left, right)
    if not _nearly_same(met.shared, met.agreement).any():  # as in most crowds: nothing more is needed
        return _no_pairs()
    products = _of_ratings if labels.classes is None else _of_classes
    return met.pairs(*products(labels, left, right, example)).alike(_SUSPECT)


def _of_ratings(labels: CrowdLabels, left: Positions, right: Positions, example: Positions) -> tuple[Floats, ...]:
    """Product and squares of the deviations of two ratings from the mean of the others."""
    ratings = labels.values.astype(np.float64)
    others = labels.sum_per_example(ratings)[example] - ratings[left] - ratings[right]
    others /= labels.labels_per_example[example] - 2
    one, other = ratings[left] - others, ratings[right] - others
    return one * other, one * one, other * other


def _of_classes(labels: CrowdLabels, left: Positions, right: Positions, example: Positions) -> tuple[Floats, ...]:
    """The same of labels with a column per class, from counts of labels: no column is ever made."""
    tally, others = labels.tally, (labels.labels_per_example[example] - 2).astype(np.float64)
    same = (labels.values[left] == labels.values[right]).astype(np.float64)
    one = (tally[example, labels.values[left]] - 1.0 - same) / others  # others who say the same as the first
    other = (tally[example, labels.values[right]] - 1.0 - same) / others
    squares = np.einsum("ik,ik->i", tally, tally, dtype=np.float64)[example]  # of the others' shares
    squares -= 2 * others * (one + other) + 2 + 2 * same
    squares /= others**2
    return same - one - other + squares, 1 - 2 * one + squares, 1 - 2 * other + squares


def residual_pairs(labels: CrowdLabels, residual: Floats) -> Pairs:
    """How alike annotators err after a consensus.

    A residual of (n_labels, n_columns) is each label as it is coded, less what was expected of this annotator given the
    consensus.
    """
    left, right, _ = label_pairs(labels)
    squared = np.einsum("ic,ic->i", residual, residual)
    product = sum((column[left] * column[right] for column in residual.T), start=np.zeros(len(left)))
    return _Met.of(labels, left, right).pairs(product, squared[left], squared[right])


def copies(labels: CrowdLabels, residual: Floats, among: Pairs) -> Pairs:
    """Suspects who err alike (see `residual_pairs`) after a consensus in which they had one vote together.

    Those who are not quite the same are copies only if others show that they err.
    """
    found = residual_pairs(labels, residual).alike(_COPY)
    n = labels.n_annotators
    found = found.select(np.isin(found.first * n + found.second, among.first * n + among.second))
    doubtful = found.agreement < _AS_ONE
    if labels.classes is None or not doubtful.any():  # nobody gives the same ratings by being right
        return found
    group, voters = (groups_of_pairs(pairs, n) for pairs in (found, among))
    numbers = group[found.first]
    err = [number for number in np.unique(numbers[doubtful]).tolist() if _others_know(labels, group == number, voters)]
    return found.select(~doubtful | np.isin(numbers, err))


def _others_know(labels: CrowdLabels, inside: Bools, voters: Positions) -> bool:
    """Whether others show that some annotators err, by agreeing beyond what the answers of those explain.

    Were those right, all that others have in common would be that answer. Two good annotators among some who guess are
    as alike as copies are, and only this tells one from the other. `voters` are groups who may be copies.
    """
    assert labels.classes is not None
    own = labels.select_annotators(inside).tally
    of_one_mind = np.flatnonzero((own > 0).sum(axis=1) == 1)
    answer, here = own[of_one_mind].argmax(axis=1), labels[of_one_mind]
    outside = ~inside & (here.labels_per_annotator > 0)
    if outside.sum() < 2:
        return True
    others, n_classes = here.select_annotators(outside), len(labels.classes)
    place = (others.annotator_index.astype(np.int64) * n_classes + answer[others.example_index]) * n_classes
    times = np.bincount(place + others.values, minlength=others.n_annotators * n_classes**2)
    counts = times.reshape(-1, n_classes, n_classes) + 1.0 / n_classes
    confusion = counts / counts.sum(axis=2, keepdims=True)
    part = vote_parts(others, numbered(voters[outside]))
    shown, error = beyond_class(others, np.eye(n_classes)[answer], confusion, np.ones(len(others)), part)
    return error == 0 or shown > _SURELY * error  # where no two others can be compared, nothing speaks against it


def groups_of_pairs(pairs: Pairs, n_annotators: int) -> Positions:
    """Which group each annotator is in, if two of a pair are in the same; numbered by their first members."""
    ones = np.ones(len(pairs))
    graph = sparse.coo_array((ones, (pairs.first, pairs.second)), shape=(n_annotators, n_annotators))
    return numbered(connected_components(graph, directed=False)[1])


def numbered(group: Positions) -> Positions:
    """The same groups, numbered in the order of their first members."""
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which]


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


_NONE = np.empty(0, dtype=np.intp)


def _no_pairs() -> Pairs:
    return Pairs(_NONE, _NONE, np.empty(0), np.empty(0), np.empty(0))


def one_hot(labels: CrowdLabels) -> Floats:
    """A one in the column of each label's class."""
    assert labels.classes is not None
    codes = np.zeros((labels.n_labels, len(labels.classes)))
    codes[np.arange(labels.n_labels), labels.values] = 1.0
    return codes


@dataclass(frozen=True, eq=False)
class _Met:
    """Who shares examples, and how often they say the same."""

    n_annotators: int
    key: Positions  # (n_pairs,): the first annotator of each pair times that number, plus the second
    which: Positions  # (n_label_pairs,): the pair that two labels of the same example are of
    shared: Floats  # (n_pairs,), as in `Pairs`
    agreement: Floats  # (n_pairs,), as in `Pairs`

    @classmethod
    def of(cls, labels: CrowdLabels, left: Positions, right: Positions) -> _Met:
        """From positions of two labels of the same example, for every two."""
        n = labels.n_annotators
        key = labels.annotator_index[left].astype(np.int64) * n + labels.annotator_index[right]
        if n * n <= min(len(key), _SQUARE):
            pairs = np.flatnonzero(np.bincount(key, minlength=n * n))
            place = np.zeros(n * n, dtype=np.intp)
            place[pairs] = np.arange(len(pairs))
            which = place[key]
        else:
            pairs, which = np.unique(key, return_inverse=True)
        shared = np.bincount(which, minlength=len(pairs)).astype(np.float64)
        n_same = np.bincount(which[labels.values[left] == labels.values[right]], minlength=len(pairs))
        return cls(n, pairs, which, shared, n_same / shared)

    def pairs(self, product: Floats, one: Floats, other: Floats) -> Pairs:
        """With sums of products and squares of the deviations of two labels."""
        if not len(self.key):
            return _no_pairs()

        def total(values: Array) -> Floats:
            return np.bincount(self.which, values, len(self.key)).astype(np.float64)

        usual = float(one.mean() + other.mean()) / 2
        scale = np.sqrt(total(one)) * np.sqrt(total(other)) + _ADDED * usual  # under one root a product might overflow
        correlation = ratio(total(product), scale, 0.0)
        n = self.n_annotators
        return Pairs(self.key // n, self.key % n, self.shared, self.agreement, correlation)
