"""What the rounds estimated -> a record that gives the consensus on any labels, and the results of the fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import _safe_indexing

from crowdwise.arrays import Array, Floats
from crowdwise.consensus import Consensus, ConsensusBy
from crowdwise.crowd.beyond_class import estimated_common
from crowdwise.crowd.flags import flag_annotators
from crowdwise.crowd.votes import mean_effective_number
from crowdwise.em.annotators import Behaviour, label_residuals
from crowdwise.em.levels import CLASSES, Reading, offset_and_spread
from crowdwise.em.rounds import Rounds, expectation
from crowdwise.em.together import Together, vote_strength
from crowdwise.exceptions import LabelError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.results import AnnotatorResults, FitResults
from crowdwise.training_set import TrainingSet
from crowdwise.truths.calibration import Calibration
from crowdwise.truths.check import TruthCheck

# Two different classes are this far apart in the paper's code, +1 and -1 squared: what expertise is measured by.
_CLASS_DISTANCE = 4.0
# An annotator who is always right would have infinite expertise.
_SMALLEST_ERROR = 1e-8


@dataclass(frozen=True, eq=False)
class FittedAnnotators:
    """How the annotators of a fit answer and how frequent classes are: what gives new labels a posterior.

    Parameters
    ----------
    annotators : ndarray of shape (n_annotators,)
        Their names.
    classes : ndarray of shape (n_classes,)
        The classes.
    behaviour : Behaviour
        How they answer; NaN for those without labels.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.
    by : {"mode", "median", "mean"}, default="mode"
        Which class of a posterior is the label.
    levels : ndarray of shape (n_classes,) or None, default=None
        Where each class is; None if classes have no order.
    together : Together, default=Together()
        Who shares a vote, and what may be stated; by default annotators err independently.
    calibration : Calibration or None, default=None
        How truths calibrate the consensus of labels and model, if there were any.
    """

    annotators: Array
    classes: Array
    behaviour: Behaviour
    class_prior: Floats
    by: ConsensusBy = "mode"
    levels: Floats | None = None
    together: Together = field(default_factory=Together)
    calibration: Calibration | None = None

    @classmethod
    def of(
        cls,
        training: TrainingSet,
        behaviour: Behaviour,
        prior: Floats,
        reading: Reading = CLASSES,
        together: Together | None = None,
        calibration: Calibration | None = None,
    ) -> FittedAnnotators:
        """From the behaviour of the annotators that took part among all of them."""
        active = training.active
        position = np.where(active, np.cumsum(active) - 1, -1)
        together = Together() if together is None else together.at(position)
        names, among = training.labels.annotators, behaviour.among(active)
        return cls(names, training.classes, among, prior, reading.by, reading.levels, together, calibration)

    @cached_property
    def confusion(self) -> Floats:
        """Probability that each annotator says c (last axis) if the truth is k; NaN for annotators without labels.

        Where abstentions are answers, of the labels that an annotator gives.
        """
        return self.behaviour.answers()

    @cached_property
    def abstention(self) -> Floats | None:
        """Probability that each annotator abstains if the truth is k; None where abstentions are no answers."""
        return self.behaviour.by_class()[..., -1] if self.behaviour.has_abstentions else None

    @cached_property
    def accuracy(self) -> Floats:
        """Probability that each annotator is right about an example drawn at random; NaN for those without labels."""
        return np.einsum("lkk,k->l", self.confusion, self.class_prior)

    @cached_property
    def strength(self) -> Floats:
        """How much the votes of each annotator say; 0 for those without labels."""
        return vote_strength(self.behaviour.by_class(), self.class_prior)

    @property
    def expertise(self) -> Floats:
        """One over the mean squared error that goes with the accuracy; 1 if there is nobody to compare with."""
        precision = 1 / np.maximum(_CLASS_DISTANCE * (1 - self.accuracy), _SMALLEST_ERROR)
        alone = (~np.isnan(precision)).sum() == 1
        return np.where(np.isnan(precision), np.nan, 1.0) if alone else precision

    def results(self, labels: CrowdLabels, n_labels: NDArray[np.int64] | None = None) -> AnnotatorResults:
        """Scores and flags of the annotators; `labels` are those of the fit, or some, of so many per annotator."""
        offset, spread = None, None
        if self.levels is None:
            by_chance = np.einsum("lkc,k,c->l", self.confusion, self.class_prior, self.class_prior)
            agreement = self.accuracy - by_chance
        else:  # who is harsh may be hardly ever right and still order examples well
            offset, spread = offset_and_spread(self.confusion, self.class_prior, self.levels)
            away = self.levels - self.class_prior @ self.levels  # from the mean level
            agreement = (self.confusion @ self.levels) @ (self.class_prior * away)
        together = self.together
        flags = flag_annotators(labels, agreement, n_labels, None if together.given else together.group)
        n_labels = labels.labels_per_annotator if n_labels is None else n_labels
        return AnnotatorResults(
            self.annotators,
            n_labels,
            self.expertise,
            self.accuracy,
            flags,
            offset,
            spread,
            self.abstention,
            together.numbers(labels.n_annotators),
            mean_effective_number(labels, self.strength, together.group, together.common),
        )

    def as_consensus(self, examples: Array, proba: Floats) -> Consensus:
        """Probabilities of the classes, read as this fit reads them."""
        return Consensus(examples, self.classes, proba, self.by, self.levels)

    def posterior(self, labels: CrowdLabels, log_prior: Floats | None = None) -> Floats:
        """Probabilities of the classes by labels of these annotators; one who is unknown counts as the crowd.

        They are not calibrated by truths; `consensus` is. Labels are coded by `classes`. Before these are looked at,
        the frequency of classes is believed by default.
        """
        position = encode_declared(labels.annotators, self.annotators).astype(np.int64)
        given = labels.labels_per_annotator > 0
        if given.any() and (position[given] < 0).all():
            raise LabelError(
                f"none of the {labels.n_annotators} annotators of these labels (such as "
                f"{labels.annotators[:3].tolist()}) is among those of the fit (such as "
                f"{self.annotators[:3].tolist()}). Name them as in the fit."
            )
        log_prior = np.log(self.class_prior) if log_prior is None else log_prior
        together, behaviour = self.together.at(position), self.behaviour.of(position)
        likelihood = behaviour.log_likelihood(behaviour.incidence(labels, together.parts(labels)))
        strength = vote_strength(behaviour.by_class(), self.class_prior)
        return together.stated(expectation(log_prior, likelihood)[0], labels, log_prior, strength)

    def estimated_common(self, labels: CrowdLabels) -> float:
        """The correlation of errors that labels of the annotators of the fit show, in their order."""
        together, behaviour = self.together, self.behaviour
        likelihood = behaviour.log_likelihood(behaviour.incidence(labels, together.parts(labels)))
        posterior = expectation(np.log(self.class_prior), likelihood)[0]
        return estimated_common(labels, posterior, self.confusion, np.ones(len(labels)), together.group)

    def residuals(self, labels: CrowdLabels) -> Floats:
        """What the labels of these annotators say beyond what was to be expected of them, given all labels.

        Labels are coded by `classes`, of the annotators of the fit in their order; (n_labels, n_classes) comes out.
        """
        incidence = self.behaviour.incidence(labels, self.together.parts(labels))
        by_difficulty = self.behaviour.by_difficulty(incidence) + np.log(self.class_prior)
        return label_residuals(labels, softmax(by_difficulty.reshape(len(labels), -1), axis=1), self.behaviour)

    def calibrated(self, proba: Floats, labels: CrowdLabels) -> Floats:
        """Probabilities as truths calibrate them; as they are if there were none."""
        return proba if self.calibration is None else self.calibration.apply(proba, labels)

    def consensus(
        self, labels: CrowdLabels, log_prior: Floats, *, use_model: bool = True, calibrated: bool = True
    ) -> Consensus:
        """The consensus on any labels, coded by any of `classes`; `log_prior` is that of a classifier.

        Without `use_model` the frequency of classes takes its place, except on examples without labels.
        """
        labels = labels.with_classes(self.classes)
        proba = self.posterior(labels, log_prior if use_model else None)
        if not use_model:
            empty = labels.labels_per_example == 0
            proba[empty] = np.exp(log_prior[empty])
        return self.as_consensus(labels.examples, self.calibrated(proba, labels) if calibrated else proba)


class FittedModel(Protocol):
    """A classifier and the annotators of its fit."""

    @property
    def annotators(self) -> FittedAnnotators: ...

    def consensus(self, X: Any, labels: CrowdLabels, *, use_model: bool = True) -> Consensus: ...


def fit_results(
    training: TrainingSet, fitted: FittedModel, rounds: Rounds, steepness: float, check: TruthCheck | None = None
) -> FitResults:
    """What a fit found out about all of its examples and annotators.

    Examples that did not take part have the posterior of their labels and the final classifier.
    """
    labels, annotators = training.labels, fitted.annotators
    proba, by_labels = np.empty((len(labels), len(annotators.classes))), annotators.posterior(labels)
    active = np.flatnonzero(training.active)
    together, strength = annotators.together.at(active), annotators.strength[active]
    stated = together.stated(rounds.posterior, training.core, rounds.log_prior, strength)
    proba[training.learnt] = annotators.calibrated(stated, training.core)
    if len(others := training.others):
        proba[others] = fitted.consensus(_safe_indexing(training.X, others), labels[others]).proba
        unlabelled = labels.labels_per_example == 0
        by_labels[unlabelled] = proba[unlabelled]
    consensus = training.with_truth(annotators.as_consensus(labels.examples, proba))
    return FitResults(
        consensus,
        annotators.as_consensus(labels.examples, by_labels),
        annotators.results(labels).against(labels, training.truth),
        training.disagreement,
        steepness,
        rounds.objective,
        rounds.converged,
        check and check.beside(consensus.confidence[training.unknown]),
    )
