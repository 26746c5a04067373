"""Labels without features -> how annotators answer, and the posterior of the classes: the one EM loop.

Rounds begin with the shares of the votes, each weighted by how far its annotator agrees with others. An annotator is
judged by a label as far as others speak about the same example. The M-step is anchored at the vote shares as far as
labels of an example agree beyond what its class explains, which is what correlated errors look like. Few rounds are the
default: each moves further from the votes, and what errors annotators share decides where to. Without allowance for
correlated errors this is the method of Dawid and Skene, to convergence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crowdwise._arrays import ROUNDING, Floats, ratio
from crowdwise._limits import (
    ASSUMED_LABELS,
    CROWD_STRENGTH,
    ENOUGH_EXAMPLES,
    FEW_COMPARED,
    LABEL_ROUNDS,
    LEAST_MERIT,
    MOST_LABEL_ROUNDS,
    START_POWER,
    USUAL_CORRELATION,
)
from crowdwise._progress import Report
from crowdwise.em.common_errors import correlation_of, residual_sums
from crowdwise.em.confusion import AnnotatorModel, Incidence
from crowdwise.em.posterior import Annotators, Counting, OfChunk, Posterior, shares_of
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.rows.chunks import Chunk, Chunks, Sums


@dataclass(frozen=True, eq=False)
class LabelsOnlyFit:
    """What labels show without features."""

    posterior: Posterior  # of labels and class frequencies
    class_counts: Floats  # (n_classes,): what the votes for each class count together
    n_compared: float  # of votes with those of others on the same example, and how often they agree: what they show
    n_agreed: float  # about any annotator, those of one annotator being worth a few labels at most
    merit: Floats  # (n_annotators,): agreement of each with others beyond chance: what a vote counts at the start
    compared: Floats  # (n_annotators,): share of the labels of each that can be compared with those of others
    vote_weight: Floats  # (n_annotators,): the mean share of a vote that the labels of each have
    comparable: bool  # whether two annotators share an example
    correlation: float  # of two labels of an example, as classes or levels, beyond its class; and its standard error
    correlation_error: float
    anchor: float  # the votes' part of the last M-step
    votes: Sums | None  # what the M-step would be given of the vote shares
    objective: Floats  # (n_rounds,)
    converged: bool
    change: float

    @property
    def class_prior(self) -> Floats:
        assert not callable(self.posterior.log_prior)
        return np.exp(self.posterior.log_prior)


def merit_weighted_shares(counting: Counting, merit: Floats) -> OfChunk:
    """The first soft classes: shares of votes weighted by the merit of their annotators, to a power."""

    def shares(chunk: Chunk) -> Floats:
        weight = counting.label_weights(chunk) * merit[chunk.labels.annotator_index]
        votes = counting.weighted_votes(chunk, weight)
        votes **= START_POWER  # of shares it would be the same
        return shares_of(votes, votes @ np.ones(votes.shape[1]))

    return shares


def fit_labels(
    chunks: Chunks,
    counting: Counting,
    model: AnnotatorModel,
    *,
    max_rounds: int | None = None,
    tol: float = 1e-5,
    report: Report | None = None,
) -> LabelsOnlyFit:
    """Estimate annotators and classes in rounds; by default in few, or to convergence if errors are independent."""
    answers = chunks.total(lambda chunk: _answers(chunk, counting))
    vote_weight = vote_weights(chunks, counting, answers.sum(axis=1))
    usual, class_counts = usual_answers(answers, vote_weight), answers.sum(axis=0)
    first = chunks.total(lambda chunk: _first_sums(chunk, counting, usual))
    merit, comparable = annotator_merit(first, vote_weight)
    compared = first.compared / np.maximum(answers.sum(axis=1), np.finfo(np.float64).tiny)
    if counting.independent:  # one such label is enough for all to count, as in the method of Dawid and Skene
        warn_if_few_compared(float(first.compared.sum() / class_counts.sum()))
        compared = (compared > 0).astype(np.float64)
    begin = counting.vote_shares if counting.independent else merit_weighted_shares(counting, merit)
    votes = None if counting.independent else tally(chunks, counting, counting.vote_shares)
    sums, anchor, residual = tally(chunks, counting, begin), 0.0, Sums(product=0.0, scale=0.0, square=0.0)
    step = max(1, -(-int(first.n_examples) // ENOUGH_EXAMPLES))
    objective, change = list[float](), np.inf
    most = max_rounds or (MOST_LABEL_ROUNDS if counting.independent else LABEL_ROUNDS)
    while len(objective) < most and change > tol:
        used = anchored(sums, votes, anchor)
        counts = used.counts
        if not compared.all():  # nothing shows how good some annotators are
            counts = np.where(compared[:, np.newaxis, np.newaxis] > 0, counts, 0.0)
        annotators = Annotators.of_counts(counts, model, vote_weight, class_counts, compared)
        frequency = np.maximum(used.mass / used.mass.sum(), np.finfo(np.float64).tiny)
        posterior = Posterior(counting, annotators, np.log(frequency))
        last, sums = sums, chunks.total(partial(_round_sums, posterior, anchor, step))
        log_prior = float(vote_weight @ model.log_prior(annotators.confusion, annotators.crowd))
        objective.append(sums.objective + log_prior)
        change = float(np.abs(sums.counts - last.counts).sum() / max(2 * sums.counts.sum(), np.finfo(np.float64).tiny))
        last_anchor, residual = anchor, sums.of_levels
        anchor = 0.0 if counting.independent else votes_part(correlation_of(sums.of_classes)[0])
        if report is not None:
            report(len(objective), objective[-1], change)
    worth = ASSUMED_LABELS / (ASSUMED_LABELS + first.seen)
    return LabelsOnlyFit(
        posterior, class_counts, float(worth @ first.seen), float(worth @ first.agreed), merit, compared, vote_weight,
        comparable, *correlation_of(residual), last_anchor, votes, np.array(objective),
        change <= tol or max_rounds is None, change,
    )  # fmt: skip


def _round_sums(posterior: Posterior, anchor: float, step: int, chunk: Chunk) -> Sums:
    """What a round needs of a chunk: the E-step, and sums over what it gives.

    Every `step` examples are enough for the correlation of residuals.
    """
    counting, weight = posterior.counting, chunk.weight
    proba, evidence = posterior(chunk)
    objective = float(weight @ evidence)
    if anchor:
        joint = posterior.prior(chunk) + posterior.log_likelihood(chunk)
        by_votes = np.einsum("ik,ik->i", counting.vote_shares(chunk), joint)
        objective = (1 - anchor) * objective + anchor * float(weight @ by_votes)
    of_classes = of_levels = Sums(product=0.0, scale=0.0, square=0.0)
    if not counting.independent:
        residuals = partial(residual_sums, chunk, counting, proba, posterior.annotators.labels, weight, step)
        of_classes = of_levels = residuals()
        if counting.levels is not None:
            of_levels = residuals(counting.levels)
    tallied = vars(_tally(chunk, counting.judged(chunk), proba))
    return Sums(**tallied, objective=objective, of_classes=of_classes, of_levels=of_levels)


def tally(chunks: Chunks, counting: Counting, posterior_of: OfChunk, *, with_classifier: bool = False) -> Sums:
    """How often each annotator gave every answer to examples of every class, and how many examples are of each.

    A classifier speaks about all examples, so that annotators are judged by all of their labels.
    """
    labels_of = counting.incidence if with_classifier else counting.judged
    return chunks.total(lambda chunk: _tally(chunk, labels_of(chunk), posterior_of(chunk)))


def _tally(chunk: Chunk, labels: Incidence, posterior: Floats) -> Sums:
    weighted = posterior if (chunk.weight == 1).all() else posterior * chunk.weight[:, np.newaxis]
    return Sums(counts=labels.counts(weighted), mass=chunk.weight @ posterior)


def anchored(sums: Sums, votes: Sums | None, anchor: float) -> Sums:
    """Sums of a posterior, a part of which is that of the vote shares."""
    if votes is None or anchor == 0:
        return sums
    return Sums(**{name: (1 - anchor) * getattr(sums, name) + anchor * getattr(votes, name) for name in vars(votes)})


def votes_part(correlation: float) -> float:
    """The votes' part of the M-step: none if labels agree no more than classes explain."""
    return max(correlation, 0.0) / (max(correlation, 0.0) + USUAL_CORRELATION)


def _answers(chunk: Chunk, counting: Counting) -> Floats:
    """What the labels of each annotator for every class count together, of shape (n_annotators, n_classes)."""
    labels, n_classes = chunk.labels, counting.n_classes
    counted = np.repeat(chunk.weight, labels.labels_per_example) * counting.label_weights(chunk)
    place = labels.annotator_index.astype(np.intp) * n_classes + labels.values
    answers: Floats = np.bincount(place, counted, labels.n_annotators * n_classes).astype(np.float64)
    return answers.reshape(-1, n_classes)


def vote_weights(chunks: Chunks, counting: Counting, votes: Floats) -> Floats:
    """The mean share of a vote that the labels of each annotator have; `votes` is what they count together.

    An annotator is estimated from all labels that they gave, whatever these count in the crowd: copies are then the
    same as the annotator once.
    """
    if not len(counting.sharing):
        return np.ones(len(votes))
    n_labels = chunks.total(_labels_per_annotator)
    return ratio(votes, n_labels, 1.0)


def _labels_per_annotator(chunk: Chunk) -> Floats:
    labels = chunk.labels
    return labels._sum_per_annotator(np.repeat(chunk.weight, labels.labels_per_example))


def usual_answers(answers: Floats, vote_weight: Floats) -> Floats:
    """How probable every answer is of each annotator whatever the example, drawn towards the crowd's frequencies."""
    frequency = answers.sum(axis=0) / answers.sum()
    of_annotator = answers / vote_weight[:, np.newaxis]
    return (of_annotator + CROWD_STRENGTH * frequency) / (of_annotator.sum(axis=1, keepdims=True) + CROWD_STRENGTH)


def _first_sums(chunk: Chunk, counting: Counting, usual: Floats) -> Sums:
    """How far annotators agree with others, copies apart, who labelled the same examples, and would by chance."""
    labels, of_label, copies = chunk.labels, counting.label_weights(chunk), counting.copies(chunk)
    votes, n_votes, n_labels = counting.votes(chunk), counting.n_votes(chunk), chunk.labels.labels_per_example
    agreeing = copies.select(labels.values[copies.left] == labels.values[copies.right])
    others, same = np.repeat(n_votes, n_labels), votes.ravel().take(counting.places(chunk))
    for votes_of_others, shared in ((others, copies), (same, agreeing)):
        votes_of_others -= of_label
        votes_of_others -= shared.sums(of_label)
        np.maximum(votes_of_others, 0.0, out=votes_of_others)
    chance = np.clip(_same_by_chance(chunk, counting, usual), 0.0, others)
    counted = np.repeat(chunk.weight, n_labels) * of_label
    compared = labels._sum_per_annotator(np.where(others > ROUNDING, counted, 0.0))
    counted /= np.repeat(np.maximum(n_votes, np.finfo(np.float64).tiny), n_labels)
    for votes_of_others in (others, same, chance):
        votes_of_others *= counted
    return Sums(
        n_examples=len(chunk),
        compared=compared,
        seen=labels._sum_per_annotator(others),
        agreed=labels._sum_per_annotator(same),
        chance=labels._sum_per_annotator(chance),
    )


def _same_by_chance(chunk: Chunk, counting: Counting, usual: Floats) -> Floats:
    """For every label, votes of others, copies apart, that would be the same if each gave their usual answers."""
    labels, of_label, copies = chunk.labels, counting.label_weights(chunk), counting.copies(chunk)
    annotator = labels.annotator_index
    expected: Floats = (labels._as_sparse(of_label) @ usual).ravel().take(counting.places(chunk))
    expected -= of_label * usual[annotator, labels.values]
    if len(copies.left):
        for k in range(counting.n_classes):
            expected -= np.where(labels.values == k, copies.sums(of_label * usual[annotator, k]), 0.0)
    return expected


def warn_if_few_compared(share: float) -> None:
    """Warn if errors are taken to be independent and few labels can show how good annotators are."""
    if 0 < share < FEW_COMPARED:
        warn(
            f"only {100 * share:.0f}% of the labels are on examples that two annotators labelled: with "
            "errors_in_common=False the other labels may be overridden by class frequencies alone. Use the "
            "default, errors_in_common=True."
        )


def annotator_merit(sums: Sums, vote_weight: Floats) -> tuple[Floats, bool]:
    """Agreement of each annotator with the votes of others, beyond chance; and whether any two can be compared.

    By chance, all give their usual answers: two who always give one class agree no more than that, and neither shows
    anything about others. The merit is shrunk towards the crowd's mean as if 1 / mean² more labels had been seen:
    agreement beyond chance of one label has a variance of about one, and annotators differ by about the mean. So weak
    crowds have nearly equal votes.
    """
    comparable = bool(sums.compared.sum() > 0)
    by_chance = float(sums.chance.sum() / max(sums.seen.sum(), np.finfo(np.float64).tiny))
    above_chance, possible = sums.agreed - sums.chance, (1 - by_chance) * sums.seen
    if possible.sum() <= ROUNDING * sums.compared.sum():
        return np.ones(len(above_chance)), comparable
    mean = max(float(above_chance.sum() / possible.sum()), LEAST_MERIT)
    more = vote_weight * (1 - by_chance) / mean**2
    return np.maximum((above_chance + more * mean) / (possible + more), LEAST_MERIT), comparable


def warn_if_not_converged(fit: Any, tol: float) -> None:
    """Warn if the rounds that were asked for ended before they converged."""
    if not fit.converged and not getattr(fit, "settled", True):
        warn(
            f"the curriculum still changes the weights after {len(fit.objective)} rounds. Raise max_rounds or tol, or "
            "choose a curriculum that finishes sooner (a larger c or growth).",
            CrowdConvergenceWarning,
        )
    elif not fit.converged:
        warn(
            f"after {len(fit.objective)} rounds the probabilities still changed by {fit.change:.2g} per example "
            f"(tol={tol:g}). Raise max_rounds or tol.",
            CrowdConvergenceWarning,
        )
