"""Chunks of labels, how annotators answer and a prior over classes -> the posterior of the classes: the E-step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Bools, Floats, Positions
from crowdwise.crowd.vote_sharing import LabelPairs, VoteSharing
from crowdwise.em.confusion import AnnotatorModel, Incidence, Shared, answers_of
from crowdwise.probabilities import expectation
from crowdwise.rows.chunks import Chunk

# From a chunk to an array with a row per example.
OfChunk = Callable[[Chunk], Floats]


@dataclass(frozen=True, eq=False)
class Counting:
    """What labels of a chunk count."""

    n_classes: int
    sharing: VoteSharing = field(default_factory=VoteSharing.none)  # who shares a vote
    abstentions: bool = False  # whether abstentions are answers
    independent: bool = False  # whether annotators are judged by all labels, even those that no one else confirms
    levels: Floats | None = None  # (n_classes,): where each class is; None if classes have no order

    def copies(self, chunk: Chunk) -> LabelPairs:
        """Labels that share a vote."""
        return chunk.keep("copies", lambda: self.sharing.pairs(chunk.labels))

    def label_weights(self, chunk: Chunk) -> Floats:
        """What each label counts as a vote."""
        return chunk.keep("label weights", lambda: self.copies(chunk).weights(chunk.labels.n_labels))

    def incidence(self, chunk: Chunk) -> Incidence:
        """The labels, and abstentions if they are answers, each with what it counts."""
        return chunk.keep("incidence", lambda: self._incidences(chunk))[0]

    def judged(self, chunk: Chunk) -> Incidence:
        """The same with what each shows about its annotator: nothing if only copies labelled the example."""
        return chunk.keep("incidence", lambda: self._incidences(chunk))[1]

    def _incidences(self, chunk: Chunk) -> tuple[Incidence, Incidence]:
        answers, copies = chunk.labels, self.copies(chunk)
        votes = weight = self.label_weights(chunk)
        if self.abstentions:  # which are no votes
            answers = answers_of(chunk.labels)
            copies = self.sharing.pairs(answers)
            weight = copies.weights(answers.n_labels)
            votes = np.where(answers.values < self.n_classes, weight, 0.0)
        incidence = Incidence.of(answers, weight)
        if self.independent:
            return incidence, incidence
        total = np.repeat(self.n_votes(chunk), answers.labels_per_example)
        heard = total - votes
        heard -= copies.sums(votes)
        np.maximum(heard, 0.0, out=heard)
        heard *= weight
        total += weight - votes
        heard /= np.maximum(total, np.finfo(np.float64).tiny, out=total)
        return incidence, incidence.counted(heard)

    def n_votes(self, chunk: Chunk) -> Floats:
        """What the labels of each example count together."""
        return chunk.keep("n votes", lambda: chunk.labels._sum_per_example(self.label_weights(chunk)))

    def votes(self, chunk: Chunk) -> Floats:
        """What the labels for each class count together, of shape (n_examples, n_classes)."""
        return chunk.keep("votes", lambda: self.weighted_votes(chunk, self.label_weights(chunk)))

    def weighted_votes(self, chunk: Chunk, weight: Floats) -> Floats:
        """The same with any weights of the labels."""
        votes: Floats = np.bincount(self.places(chunk), weight, len(chunk) * self.n_classes).astype(np.float64)
        return votes.reshape(-1, self.n_classes)

    def places(self, chunk: Chunk) -> Positions:
        """Where the class of each label is in a table of examples and classes."""
        example = np.arange(0, len(chunk) * self.n_classes, self.n_classes)
        return chunk.keep("places", lambda: np.repeat(example, chunk.labels.labels_per_example) + chunk.labels.values)

    def vote_shares(self, chunk: Chunk) -> Floats:
        """The share of each class among the votes."""
        return shares_of(self.votes(chunk), self.n_votes(chunk))


def shares_of(votes: Floats, total: Floats) -> Floats:
    """The share of each class among votes, which have a total per example; even where there are none."""
    if total.all():
        return votes / total[:, np.newaxis]
    none = np.full_like(votes, 1 / votes.shape[1])
    return np.divide(votes, total[:, np.newaxis], out=none, where=total[:, np.newaxis] > 0)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the classes of any chunk."""

    counting: Counting
    annotators: Annotators
    # (n_classes,): logarithms of class frequencies, or a function that gives those of a chunk, of shape (n_examples,
    # n_classes), such as a classifier.
    log_prior: Floats | Callable[[Chunk], Floats]

    def __call__(self, chunk: Chunk) -> tuple[Floats, Floats]:
        """Probabilities of the classes, and the logarithm of the probability of each example's labels."""
        return chunk.keep("posterior", lambda: expectation(self.prior(chunk), self.log_likelihood(chunk)), owner=self)

    def evidence(self, chunk: Chunk) -> float:
        """The sum over a chunk of the logarithms of the probabilities of its labels."""
        return float(chunk.weight @ self(chunk)[1])

    def prior(self, chunk: Chunk) -> Floats:
        """Logarithms of probabilities before labels are looked at."""
        return self.log_prior(chunk) if callable(self.log_prior) else self.log_prior

    def log_likelihood(self, chunk: Chunk) -> Floats:
        """Logarithms of the probability of labels for every class."""
        return self.counting.incidence(chunk).log_likelihood(self.annotators.confusion)


@dataclass(frozen=True, eq=False)
class Annotators:
    """What every annotator answers if an example is of a class."""

    # (n_annotators, n_classes, n_answers): probability of an answer (last axis); a last column more if abstentions are
    # answers. NaN for annotators without labels.
    confusion: Floats
    crowd: Floats  # (n_classes, n_answers): that of all of them together: what is expected of an unknown annotator

    @classmethod
    def of_counts(
        cls,
        counts: Floats,
        model: AnnotatorModel,
        vote_weight: Floats,
        class_counts: Floats | None = None,
        compared: Floats | None = None,
        *,
        with_classifier: bool = False,
    ) -> Annotators:
        """Estimated from how often each gave every answer to examples of every class.

        `vote_weight` is the mean share of a vote that the labels of each have: it counts in the crowd's matrix, not in
        that of the annotator. `class_counts` is how often each class was given, if counts are of some labels only;
        `compared` the share of each annotator's labels that can be compared with those of others. As to the rest they
        answer as the crowd does, or as those who are drawn towards it if a classifier can judge them; unless the model
        does that by itself.
        """
        crowd = model.crowd(counts, class_counts)
        counts = counts / vote_weight[:, np.newaxis, np.newaxis]
        confusion = model.estimate(counts, crowd)
        if compared is None or (compared == 1).all():
            return cls(confusion, crowd)
        if not np.allclose(model.estimate(np.zeros_like(counts[:1]), crowd)[0], crowd):
            share = compared[:, np.newaxis, np.newaxis]
            rest = Shared().estimate(counts, crowd) if with_classifier else crowd
            confusion = share * confusion + (1 - share) * rest
        return cls(confusion, crowd)

    @property
    def has_abstentions(self) -> bool:
        """Whether abstentions are answers."""
        return self.confusion.shape[2] > self.confusion.shape[1]

    @property
    def labels(self) -> Floats:
        """Confusion matrices of the labels that annotators give, abstentions being left out."""
        if not self.has_abstentions:
            return self.confusion
        return self.confusion[..., :-1] / (1 - self.confusion[..., -1:])

    def among(self, active: Bools) -> Annotators:
        """The same among all annotators, with NaN for those who are not active."""
        if active.all():
            return self
        confusion = np.full((len(active), *self.confusion.shape[1:]), np.nan)
        confusion[active] = self.confusion
        return Annotators(confusion, self.crowd)

    def at(self, position: NDArray[np.int64]) -> Annotators:
        """The annotators at some positions; the crowd's matrix for unknown ones, which are at -1."""
        known = self.confusion[np.maximum(position, 0)]
        unknown = (position < 0) | np.isnan(known[:, 0, 0])
        return Annotators(np.where(unknown[:, np.newaxis, np.newaxis], self.crowd, known), self.crowd)
