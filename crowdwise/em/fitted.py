"""What the rounds estimated -> a record that gives the consensus on any labels, and results about annotators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise._limits import COPY_KAPPA, ENOUGH_EXAMPLES, SMALLEST_ERROR
from crowdwise.crowd.flags import flag_annotators
from crowdwise.crowd.vote_sharing import VoteSharing
from crowdwise.em.common_errors import Discount, has_common_errors, number_of_votes
from crowdwise.em.labels_only import LabelsOnlyFit
from crowdwise.em.ordinal import level_scores, uses_abstentions
from crowdwise.em.posterior import Annotators, Counting, Posterior
from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import encode_declared
from crowdwise.labels._groups import group_numbers
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import NOMINAL, LabelScale
from crowdwise.results.consensus import Consensus, chosen_classes
from crowdwise.results.fit_results import Choice, FitResults
from crowdwise.rows.chunks import Chunk, MemoryChunks, Stored
from crowdwise.training_set import TrainingSet
from crowdwise.truths.calibration import Calibration, calibrate
from crowdwise.truths.check import TruthCheck, check_classes

# Two different classes are this far apart in the paper's code, +1 and -1 squared: what expertise is measured by.
_CLASS_DISTANCE = 4.0
# Below this, labels show that errors are correlated less than is usual.
_MEASURED = 0.9


@dataclass(frozen=True, eq=False)
class FittedAnnotators:
    """How the annotators of a fit answer and how frequent classes are: what gives new labels a posterior.

    Parameters
    ----------
    annotators : ndarray of shape (n_annotators,)
        Their names.
    classes : ndarray of shape (n_classes,)
        The classes.
    answers : Annotators
        Their confusion matrices; NaN for those without labels.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.
    scale : LabelScale, default=LabelScale()
        Whether classes have an order, and which class of a posterior is the label.
    merit : ndarray of shape (n_annotators,)
        How far each agrees with others beyond chance; that of the crowd for annotators without labels.
    sharing : VoteSharing, default=VoteSharing.none()
        Who shares a vote.
    discount : Discount, default=Discount()
        How much less information votes carry than independent ones.
    comparable : bool, default=True
        Whether two annotators share an example, so that labels show who is reliable.
    calibration : Calibration or None, default=None
        How known answers calibrate the consensus of labels and model, if there were any.
    choices : tuple of Choice, default=()
        The decisions that the fit took by itself.
    """

    annotators: Array
    classes: Array
    answers: Annotators
    class_prior: Floats
    merit: Floats
    scale: LabelScale = NOMINAL
    sharing: VoteSharing = field(default_factory=VoteSharing.none)
    discount: Discount = field(default_factory=Discount)
    comparable: bool = True
    calibration: Calibration | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def log_class_prior(self) -> Floats:
        """Logarithms of the class frequencies."""
        return np.log(np.maximum(self.class_prior, np.finfo(np.float64).tiny))

    @cached_property
    def confusion(self) -> Floats:
        """Probability that each annotator answers c (last axis) if the truth is k; NaN for annotators without labels.

        Where abstentions are answers, of the labels that an annotator gives.
        """
        return self.answers.labels

    @property
    def levels(self) -> Floats | None:
        """Where each class is; None for classes without an order."""
        return self.scale.levels(self.classes)

    @property
    def abstention(self) -> Floats | None:
        """Probability that each annotator abstains if the truth is k; None where abstentions are no answers."""
        return self.answers.confusion[..., -1] if self.answers.has_abstentions else None

    @cached_property
    def accuracy(self) -> Floats:
        """Probability that each annotator is right about an example drawn at random; NaN where labels cannot show it.

        That is for annotators without labels, and for all if no two annotators share an example.
        """
        accuracy = np.einsum("lkk,k->l", self.confusion, self.class_prior)
        return accuracy if self.comparable else np.full_like(accuracy, np.nan)

    @property
    def expertise(self) -> Floats:
        """One over the mean squared error that goes with the accuracy; 1 if annotators cannot be compared.

        For levels, one over the squared spread: the offset of a harsh annotator is known, and so it does no harm.
        """
        if not self.comparable:
            return np.where(np.isnan(self.confusion[:, 0, 0]), np.nan, 1.0)
        if self.levels is None:
            squared = _CLASS_DISTANCE * (1 - self.accuracy)
        else:
            squared = level_scores(self.confusion, self.class_prior, self.levels)[1] ** 2
        return 1 / np.maximum(squared, SMALLEST_ERROR)

    def results(self, labels: CrowdLabels, n_labels: NDArray[np.int64] | None = None) -> FitResults:
        """Scores and flags of the annotators; `labels` are those of the fit, or some, of so many per annotator."""
        offset, spread, rank_correlation = None, None, None
        if self.levels is None:
            by_chance = np.einsum("lkc,k,c->l", self.confusion, self.class_prior, self.class_prior)
            agreement = self.accuracy - by_chance
        else:  # who is harsh may be seldom right and still order examples well
            scores = level_scores(self.confusion, self.class_prior, self.levels)
            offset, spread, rank_correlation = (score if self.comparable else np.nan * score for score in scores)
            away = self.levels - self.class_prior @ self.levels  # from the mean level
            agreement = (self.confusion @ self.levels) @ (self.class_prior * away)
        n_labels = labels.labels_per_annotator if n_labels is None else n_labels
        counted = np.where(np.isnan(self.confusion[:, 0, 0]), 0, n_labels)  # none, if all are on examples of weight 0
        flags = flag_annotators(labels, agreement, counted, None if self.sharing.given else self.sharing)
        labelled = np.flatnonzero(labels.labels_per_example)
        sample = labels[labelled[:: max(1, len(labelled) // ENOUGH_EXAMPLES)]]
        n_votes = number_of_votes(sample, self.sharing.label_weights(sample), self.merit)
        no_examples = self.as_consensus(labels.examples[:0], np.zeros((0, len(self.classes))))
        return FitResults(
            self.annotators,
            n_labels,
            self.expertise,
            self.accuracy,
            flags,
            no_examples,
            no_examples,
            offset,
            spread,
            rank_correlation,
            self.abstention,
            self.sharing.vote_weights(labels),
            float(self.discount.effective_votes(n_votes).mean()),
            fitted=self,
            choices=self.choices,
        )

    def as_consensus(self, examples: Array, proba: Floats) -> Consensus:
        """Probabilities of the classes, read as this fit reads them."""
        return Consensus(examples, self.classes, proba, self.scale.consensus, self.levels)

    def proba(self, labels: CrowdLabels, log_prior: Floats | None = None, *, calibrated: bool = True) -> Floats:
        """Stated probabilities of the classes by labels of these annotators; an unknown one counts as the crowd.

        Labels are coded by `classes`. `log_prior` is that of a classifier, of shape (n_examples, n_classes); by default
        the frequency of classes takes its place.
        """
        position = self._positions(labels)
        counting = Counting(len(self.classes), self.sharing.at(position), self.answers.has_abstentions)
        prior = self.log_class_prior if log_prior is None else Stored("prior")
        posterior = Posterior(counting, self.answers.at(position), prior)
        merit = np.where(position < 0, self.merit.mean(), self.merit[position])
        chunks = MemoryChunks.of(labels, np.ones(len(labels)))
        if log_prior is not None:
            chunks.put("prior", log_prior)
        return chunks.gather(lambda chunk: self.stated(chunk, posterior, merit, calibrated=calibrated))

    def stated(self, chunk: Chunk, posterior: Posterior, merit: Floats, *, calibrated: bool = True) -> Floats:
        """Stated probabilities of the examples of a chunk; `merit` is that of its annotators."""
        weight = posterior.counting.label_weights(chunk)
        n_votes = chunk.keep("effective votes", lambda: number_of_votes(chunk.labels, weight, merit), owner=merit)
        if callable(posterior.log_prior):  # a classifier is one more voter, and the only one on examples without labels
            n_votes = n_votes + (chunk.labels.labels_per_example > 0)
        proba = self.discount.proba(posterior(chunk)[0], n_votes)
        return self.calibration.apply(proba, chunk.labels) if calibrated and self.calibration is not None else proba

    def _positions(self, labels: CrowdLabels) -> Positions:
        position: Positions = encode_declared(labels.annotators, self.annotators).astype(np.intp)
        used = labels.labels_per_annotator > 0
        if used.any() and (position[used] < 0).all():
            raise LabelError(
                f"none of the {labels.n_annotators} annotators of these labels (such as "
                f"{labels.annotators[:3].tolist()}) is among those of the fit (such as "
                f"{self.annotators[:3].tolist()}). Name them as in the fit."
            )
        return position

    def consensus(self, labels: CrowdLabels, log_prior: Floats, *, use_model: bool = True) -> Consensus:
        """The consensus on any labels, coded by any of `classes`; `log_prior` is that of a classifier.

        Without `use_model` the frequency of classes takes its place, except on examples without labels.
        """
        labels = labels._with_classes(self.classes)
        alone = (~np.isnan(self.confusion[:, 0, 0])).sum() == 1  # the consensus is the labels of one annotator
        proba = self.proba(labels, log_prior if use_model and not alone else None, calibrated=use_model)
        if not use_model or alone:
            empty = labels.labels_per_example == 0
            proba[empty] = np.exp(log_prior[empty])
        return self.as_consensus(labels.examples, proba)


def sharing_of(used_labels: CrowdLabels, *, independent: bool) -> VoteSharing:
    """Who shares a vote among the annotators that take part: as groups are given, or near copies."""
    groups = used_labels.groups
    if independent:
        if groups is not None:
            raise ValueError("groups share votes: with errors_in_common=False they have no effect. Give one of both.")
        return VoteSharing.none()
    return VoteSharing.of_copies(used_labels) if groups is None else VoteSharing.of_groups(group_numbers(groups))


def counting_of(labels: CrowdLabels, used_labels: CrowdLabels, *, independent: bool) -> Counting:
    """What labels count, by what is known about them; copies are looked for among the labels that take part."""
    assert labels.classes is not None
    sharing = sharing_of(used_labels, independent=independent)
    return Counting(len(labels.classes), sharing, uses_abstentions(labels), independent, labels.levels)


def fitted_annotators(labels: CrowdLabels, active: Bools, fit: LabelsOnlyFit) -> FittedAnnotators:
    """What a fit estimated, in the terms of all annotators of the labels."""
    assert labels.classes is not None
    counting = fit.posterior.counting
    common, measured = 0.0, False
    if not counting.independent:
        per_class = float(fit.class_counts.sum() / fit.vote_weight.sum()) / counting.n_classes
        common = has_common_errors(fit.correlation, fit.correlation_error, per_class)
        measured = common < _MEASURED
    merit = np.full(len(active), fit.merit.mean())
    merit[active] = fit.merit
    position = np.where(active, np.cumsum(active) - 1, -1)
    return FittedAnnotators(
        labels.annotators, labels.classes, fit.posterior.annotators.among(active), fit.class_prior, merit,
        labels.scale, counting.sharing.at(position), Discount(common, measured), fit.comparable,
        choices=_choices(fit, common, measured),
    )  # fmt: skip


def _choices(fit: LabelsOnlyFit, common: float, measured: bool) -> tuple[Choice, ...]:
    sharing = fit.posterior.counting.sharing
    if fit.posterior.counting.independent:
        return ()
    n_pairs = len(sharing)
    why = "groups were given" if sharing.given else "pairs of annotators who disagree less than independent ones would"
    copies = Choice("near copies", n_pairs, limit=COPY_KAPPA, reason=why if n_pairs else "no two annotators are copies")
    errors = Choice(
        "discount for correlated errors", common, fit.correlation,
        reason="estimated from the labels" if measured else "assumed, as is typical: these labels do not show it",
    )  # fmt: skip
    why = "errors look correlated, so votes count more" if fit.anchor else "errors do not look correlated"
    anchor = Choice("weight of the vote shares", fit.anchor, fit.correlation, reason=why)
    return copies, errors, anchor


def calibrated(
    fitted: FittedAnnotators, proba: Floats, training: TrainingSet
) -> tuple[FittedAnnotators, Floats, TruthCheck | None]:
    """A fit, and the probabilities of the examples that take part, calibrated by known answers if there are any."""
    known = training.known
    if known is None:
        return fitted, proba, None
    by_truth = calibrate(proba, training.used_labels, known)
    chosen = chosen_classes(by_truth.held_out, fitted.scale.consensus, fitted.levels)
    check = check_classes(by_truth.held_out, known.answers, chosen, at_random=by_truth.representative)
    fitted = replace(fitted, calibration=by_truth.calibration)
    return fitted, by_truth.calibration.apply(proba, training.used_labels), check


def fit_results(
    training: TrainingSet,
    fitted: FittedAnnotators,
    rounds: Any,
    proba: Floats,
    check: TruthCheck | None,
    *,
    steepness: float,
    by_labels: Floats | None = None,
    model_proba: Floats | None = None,
) -> FitResults:
    """What a fit found out about all of its examples and annotators, known answers being certain.

    Probabilities are of (n_examples, n_classes); those `by_labels` alone are the same if there is no classifier.
    """
    labels = training.labels
    consensus = training.with_truth(fitted.as_consensus(labels.examples, proba))
    return replace(
        fitted.results(labels).with_truth(labels, training.truth),
        n_examples=len(labels),
        consensus=consensus,
        label_consensus=consensus if by_labels is None else fitted.as_consensus(labels.examples, by_labels),
        disagreement=training.disagreement,
        steepness=steepness,
        objective=rounds.objective,
        converged=rounds.converged,
        truth_check=check and check.beside(consensus.confidence[training.unknown]),
        model_proba=model_proba,
    )
