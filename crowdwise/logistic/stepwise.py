"""Statistics kept so far and one more batch -> statistics of both, and parameters from them: stepwise EM.

After Cappé and Moulines (2009): a batch is read once, its posterior is that of the parameters before it, its sums are
added to those kept, and the parameters are estimated anew from all. Batches that came early were judged by parameters
that were less good, so what is kept of them counts a little less with every batch. A classifier has no sums that say
all: what is kept of its loss is a parabola, that of every batch around the coefficients of then. A batch is scored
before it is learnt from, so no folds are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from crowdwise.arrays import Array, Floats, FrozenArrays, Positions, in_c_order
from crowdwise.em.annotators import Annotators, Behaviour, Sharing
from crowdwise.em.confusion import AnnotatorModel, Incidence
from crowdwise.em.priors import ClassFrequencies
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.em.together import Together
from crowdwise.exceptions import DataError
from crowdwise.logistic.blocks import CheckedBlock, total
from crowdwise.logistic.sums import LogisticSums, RoundState, block_sums, scores_of, weights_of
from crowdwise.softmax.models import normalisers
from crowdwise.weights.round_weights import SoftTargets

# A batch counts as this power of its share of all examples; 1 forgets nothing.
_POWER = 0.9
# Newton steps of the classifier on a batch.
_STEPS = 3
# Rows whose curvature is summed at a time.
_ROWS = 2**13
# Examples of every class that are added when their frequency is estimated.
_ADDED = 1.0


@dataclass(frozen=True)
class Chosen:
    """What a fit to the first examples chose for all that come later."""

    steepness: float  # how fast an example's weight falls with disagreement, for the classifier
    label_steepness: float  # the same where labels alone count
    l2: float  # strength of the penalty
    joint: bool  # whether annotators are estimated from the consensus of labels and classifier, or from labels alone
    model_weight: float  # 1 if the classifier counts in the consensus, else 0
    fixed_temperature: bool  # whether the classifier has the temperature one, as without folds


@dataclass(frozen=True, eq=False)
class Levels(FrozenArrays):
    """What an example of every level of disagreement counts, for the classifier and where labels alone count."""

    levels: NDArray[np.int64]
    easiness: Floats
    by_labels: Floats


@dataclass(frozen=True, eq=False)
class Stepwise(FrozenArrays):
    """The statistics kept, and the parameters that follow from them."""

    chosen: Chosen  # what was chosen at the beginning
    n_examples: int  # how many examples are in the statistics
    counts: Floats  # (n_annotators, n_states, n_classes): how often each annotator said c in every state
    share: Floats  # (n_difficulties, n_classes): how many examples are in every state
    mass: Floats  # (n_classes,): how many examples are of each class, by labels and classifier
    gram: Floats  # (n_outputs, n_columns, n_columns): curvature of the classifier's loss, per output
    pull: Floats  # (n_columns, n_outputs): its slope at zero, with the sign changed
    behaviour: Behaviour  # how annotators answer
    log_frequency: Floats  # (n_classes,): logarithms of the frequencies of classes, where labels alone count
    theta: Floats  # (n_columns, n_outputs): coefficients, intercept last, in the unit and around the shift
    temperature: float  # the factor on its scores
    unit: float  # what features are divided by
    shift: Floats  # (n_features,): what is subtracted then
    spread: Floats  # (n_features,): how wide each feature is
    together: Together = field(default_factory=Together)  # who shares a vote
    # (n_annotators, 2): labels of each annotator, and the sum of the parts of votes that they are; None if that was not
    # counted.
    given: Floats | None = None

    @property
    def class_prior(self) -> Floats:
        """How frequent each class is."""
        if self.chosen.model_weight:
            return self.mass / self.mass.sum()
        return np.exp(self.log_frequency)

    def among(self, position: Positions, n_annotators: int) -> Stepwise:
        """The same with further annotators, of whom nothing is known: they are taken to be as the crowd.

        `position` says where each annotator of these statistics is among all.
        """
        counts = np.zeros((n_annotators, *self.counts.shape[1:]))
        counts[position] = self.counts
        given = None if self.given is None else np.zeros((n_annotators, 2))
        if given is not None:
            given[position] = self.given
        before = np.full(n_annotators, -1)
        before[position] = np.arange(len(position))
        behaviour, together = self.behaviour.of(before), self.together.at(before)
        return replace(self, counts=counts, behaviour=behaviour, together=together, given=given)

    def n_voters(self, n_annotators: int) -> int:
        """How many votes so many annotators have; those of whom these statistics know nothing have their own."""
        n_known = len(self.counts)
        return self.together.n_voters(n_known) + n_annotators - n_known

    def joined(self, other: Stepwise, model: AnnotatorModel, *, fit_intercept: bool) -> Stepwise:
        """The statistics of two streams of the same annotators and classes, added, and parameters from these.

        What was chosen stays as it was chosen for the stream with more examples.
        """
        if other.n_examples > self.n_examples:
            return other.joined(self, model, fit_intercept=fit_intercept)
        if self._alike != other._alike:
            raise DataError(
                "these streams cannot be merged: one of them found hard examples, estimates annotators from labels "
                "alone or takes no account of features, and the other does not. Say hard_examples= and joint=, or "
                "learn from the batches of both with one model."
            )
        moved_gram, moved_pull = other._around(self.unit, self.shift)
        gram, pull = self.gram + moved_gram, self.pull + moved_pull
        counts, share, n_examples = self.counts + other.counts, self.share + other.share, self.n_examples
        part = other.n_examples / (n_examples + other.n_examples)
        given = None if self.given is None or other.given is None else self.given + other.given
        return replace(
            self,
            n_examples=n_examples + other.n_examples,
            counts=counts,
            share=share,
            mass=self.mass + other.mass,
            gram=gram,
            pull=pull,
            behaviour=_settled(model, counts, share, self.behaviour, _sharing(self.together, given)),
            given=given,
            log_frequency=_log_frequency(share),
            theta=_lowest(gram, pull, self._penalty, fit_intercept=fit_intercept),
            temperature=float(self.temperature ** (1 - part) * other.temperature**part),
        )

    @property
    def _alike(self) -> tuple[Any, ...]:
        """What must be the same in two streams whose statistics are added."""
        return self.counts.shape[1:], self.chosen.joint, self.chosen.model_weight

    @property
    def _penalty(self) -> Floats:
        """What squares of coefficients are penalised with; the intercept, which is last, is not."""
        penalty = np.full(len(self.theta), self.chosen.l2)
        penalty[-1] = 0.0
        return penalty

    def _around(self, unit: float, shift: Floats) -> tuple[Floats, Floats]:
        """The parabola of the loss for coefficients in another unit and around another shift."""
        ratio = self.unit / unit
        move = np.diag(np.append(np.full(len(shift), ratio), 1.0))  # from features here to features there
        move[:-1, -1] = ratio * self.shift - shift
        return move @ self.gram @ move.T, move @ self.pull

    def step(
        self, blocks: Sequence[CheckedBlock], annotators: Array, classes: Array, model: AnnotatorModel, levels: Levels,
        *, fit_intercept: bool,
    ) -> Stepwise:  # fmt: skip
        """Learn from one more batch; annotators and classes are all so far, as those of the statistics are numbered."""
        blocks = [block.among(annotators, classes) for block in blocks if len(block)]
        if not blocks:
            return self
        batch = _Batch(blocks, self._state(annotators, classes, model, levels), levels.by_labels)
        n_batch = sum(map(len, blocks))
        n_all = self.n_examples + n_batch
        rate = (n_batch / n_all) ** _POWER
        kept = (1 - rate) * n_all / self.n_examples if self.n_examples else 0.0
        new = 1.0 if self.n_examples == 0 else rate * n_all / n_batch
        gram, pull, theta = self._classifier(batch, kept, new, fit_intercept=fit_intercept)
        sums = batch.sums(self.theta)
        of_labels = sums if self.chosen.joint and self.chosen.model_weight else batch.by_labels(self.log_frequency)
        counts, share = kept * self.counts + new * of_labels.counts, kept * self.share + new * of_labels.share
        given = None if self.given is None else self.given + np.column_stack([batch.labels_per_annotator, sums.parts])
        return replace(
            self,
            n_examples=n_all,
            counts=counts,
            share=share,
            mass=kept * self.mass + new * sums.mass,
            gram=gram,
            pull=pull,
            behaviour=_settled(model, counts, share, self.behaviour, _sharing(self.together, given)),
            given=given,
            log_frequency=_log_frequency(share),
            theta=theta,
            temperature=self._next_temperature(batch, n_all, gram, theta),
        )

    def _state(self, annotators: Array, classes: Array, model: AnnotatorModel, levels: Levels) -> RoundState:
        """The parameters before a batch."""
        prior = self.log_frequency
        if self.chosen.model_weight:
            prior = self.temperature * self.theta[:, np.newaxis]
        return RoundState(
            annotators, classes, model, self.behaviour, levels.levels, levels.easiness, np.ones(len(classes)),
            self.unit, self.shift if self.shift.any() else None, self.theta[:, np.newaxis], prior, self.together,
        )  # fmt: skip

    def _classifier(
        self, batch: _Batch, kept: float, new: float, *, fit_intercept: bool
    ) -> tuple[Floats, Floats, Floats]:
        """The parabola of the loss with that of a batch added, and the coefficients at its lowest point."""
        theta = self.theta
        for _ in range(_STEPS):
            sums, bends = batch.sums(theta), new * batch.curvature(theta)
            slope = new * (sums.slope - sums.targets)[:, 0]
            gram = kept * self.gram + bends
            pull = kept * self.pull + np.einsum("opq,qo->po", bends, theta) - slope
            theta = _lowest(gram, pull, self._penalty, fit_intercept=fit_intercept)
        return gram, pull, theta

    def _next_temperature(self, batch: _Batch, n_all: int, gram: Floats, theta: Floats) -> float:
        """The temperature of the next coefficients.

        It moves towards what suits the batch, which the old coefficients have not seen, as a mean over the last half of
        the examples would. The first batch has them in it: there, scores stay as large as they were found to be right.
        """
        if self.chosen.fixed_temperature or not self.chosen.model_weight:
            return self.temperature
        if self.n_examples == 0:
            together, alone = (np.einsum("po,opq,qo->", side, gram, theta) for side in (self.theta, theta))
            return self.temperature * float(together / alone) if together > 0 and alone > 0 else self.temperature
        rate = min(1.0, 2 * (n_all - self.n_examples) / n_all)
        of_batch = batch.temperature(self.theta, self.temperature)
        return float(np.exp((1 - rate) * np.log(self.temperature) + rate * np.log(of_batch)))


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch and the parameters before it."""

    blocks: Sequence[CheckedBlock]
    state: RoundState
    label_easiness: Floats

    @property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        return np.sum([block.labels.labels_per_annotator for block in self.blocks], axis=0)

    def sums(self, theta: Floats) -> LogisticSums:
        """Of the examples, with the slope of the loss at some coefficients; the posterior is that before the batch."""
        found: LogisticSums = total(partial(block_sums, replace(self.state, theta=theta[:, np.newaxis])), self.blocks)
        return found

    def by_labels(self, log_frequency: Floats) -> LogisticSums:
        """The same by labels alone."""
        state = replace(self.state, theta=None, prior=log_frequency, easiness=self.label_easiness)
        found: LogisticSums = total(partial(block_sums, state), self.blocks)
        return found

    def curvature(self, theta: Floats) -> Floats:
        """The second derivative of the loss, per output."""
        bends = np.zeros((theta.shape[1], len(theta), len(theta)))
        for block in self.blocks:
            weight = weights_of(block, self.state.levels, self.state.easiness)
            for start in range(0, len(block), _ROWS):
                rows = slice(start, start + _ROWS)
                x = self.state.read(block.X[rows])
                proba = normalisers(scores_of(x, theta[:, np.newaxis]).T)[1][:, 0].T
                x = np.column_stack([x.toarray() if hasattr(x, "toarray") else x, np.ones(len(proba))])
                for of_output, p in zip(bends, proba.T, strict=True):
                    of_output += (x * (weight[rows] * p * (1 - p))[:, np.newaxis]).T @ x
        # What outputs of several classes have to do with each other is left out; twice the rest bounds the whole.
        return bends if len(bends) == 1 else 2 * bends

    def temperature(self, theta: Floats, last: float) -> float:
        """The temperature that suits the labels of the batch."""
        scores, likelihood, weight = list[Floats](), list[Floats](), list[Floats]()
        for block in self.blocks:
            x = self.state.read(block.X)
            scores.append(scores_of(x, theta[:, np.newaxis])[:, 0])
            incidence = Incidence.of(block.labels, self.state.together.parts(block.labels))
            likelihood.append(self.state.behaviour.log_likelihood(incidence))
            weight.append(weights_of(block, self.state.levels, self.state.easiness))
        of_classes = ClassScores(np.concatenate(scores), self.state.class_weight, are_probabilities=True)
        return best_temperature(of_classes, np.concatenate(likelihood), np.concatenate(weight), last)


def _log_frequency(share: Floats) -> Floats:
    """Logarithms of the frequencies of classes."""
    frequencies = ClassFrequencies(_ADDED)
    return frequencies.estimate(SoftTargets(share.sum(axis=0)[np.newaxis], np.ones(1), np.ones(share.shape[1])))


def _sharing(together: Together, given: Floats | None) -> Sharing | None:
    """Who has a vote together with others, and the mean part of it that each has."""
    if together.all_alike or given is None:
        return None
    labels, parts = given.T
    mean = np.divide(parts, labels, out=np.ones_like(parts), where=labels > 0)
    return Sharing(together.numbers(len(labels)), mean)


def _settled(
    model: AnnotatorModel, counts: Floats, share: Floats, last: Behaviour, sharing: Sharing | None
) -> Behaviour:
    """How annotators answer, by counts; one alone is believed."""
    if len(counts) == 1:
        return last
    annotators = Annotators(Incidence([], len(counts), counts.shape[-1]), model, np.ones((0, *share.shape)), sharing)
    annotators.settle(counts, share)
    return annotators.behaviour


def _lowest(gram: Floats, pull: Floats, penalty: Floats, *, fit_intercept: bool) -> Floats:
    """Where a parabola with a penalty is lowest, for every output."""
    theta = np.zeros_like(pull)
    own = slice(None) if fit_intercept else slice(-1)
    for output, bends in enumerate(gram):
        curved = bends + np.diag(penalty)
        curved[np.diag_indices_from(curved)] += max(1e-10 * curved.diagonal().max(), np.finfo(np.float64).tiny)
        theta[own, output] = linalg.solve(curved[own, own], pull[own, output], assume_a="pos")
    return in_c_order(theta)
