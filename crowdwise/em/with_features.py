"""What models of labels and features share: the start from labels alone, and the annotators of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.checks import check_choice
from crowdwise.consensus import ConsensusBy
from crowdwise.em.anchors import Estimated, calibrate_by_truths
from crowdwise.em.annotators import Annotators, Behaviour
from crowdwise.em.confusion import AnnotatorModel, Incidence, Shared
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.guard import note_misleading
from crowdwise.em.labels_alone import (
    TOLERANCE,
    HardExamples,
    LabelsFit,
    check_hard_examples,
    first_annotators,
    fit_labels,
    vote_shares,
    who_errs_together,
)
from crowdwise.em.levels import ClassKind, Reading, reading_of
from crowdwise.em.priors import ClassFrequencies
from crowdwise.em.rounds import Rounds
from crowdwise.em.together import Together
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.mixins import CrowdClassifierMixin
from crowdwise.progress import Reporter
from crowdwise.training_set import TrainingSet
from crowdwise.truths.check import TruthCheck
from crowdwise.truths.known import Known
from crowdwise.weights.round_weights import SoftTargets

Joint = bool | Literal["auto"]
Init = Literal["labels", "votes"]


@dataclass(frozen=True)
class Start:
    """Where the rounds of a classifier begin."""

    annotators: Annotators  # estimated from labels alone, or not yet
    posterior: Floats  # (n_examples, n_classes): the first consensus
    joint: bool  # whether annotators are estimated anew from the consensus of labels and classifier
    alone: LabelsFit  # what labels alone say: where the rounds end if the classifier does not count

    @classmethod
    def believed(cls, labels: CrowdLabels, known: Known | None = None) -> Start:
        """The labels of one annotator, but for known classes: nobody is there to compare with."""
        votes = vote_shares(labels) if known is None else known.hold(vote_shares(labels))
        annotators = Annotators.of(Incidence.of(labels), Shared(), votes, 1)
        annotators.behaviour = Behaviour.always_right(votes.shape[1])
        alone = LabelsFit(annotators, ClassFrequencies(0.0), Rounds.none(votes))
        return cls(annotators, votes, False, alone)


class WithFeaturesMixin(CrowdClassifierMixin):
    """A classifier beside the labels, which begins with what labels alone say."""

    steepness: float | Literal["auto"]
    kind: ClassKind
    consensus_by: ConsensusBy | None
    informative_abstentions: bool
    annotator_model: AnnotatorModel | None
    hard_examples: HardExamples
    errors_in_common: bool
    joint: Joint
    init: Init
    tol: float
    steepness_: float
    model_weight_: float

    def _reading(self, training: TrainingSet) -> Reading:
        return reading_of(training.labels, self.kind, self.consensus_by, self.informative_abstentions)

    def _together(self, training: TrainingSet, weight: Floats, groups: Any) -> Together:
        reading = self._reading(training)
        return who_errs_together(
            training, weight, reading.annotator_model(self.annotator_model, training.core.n_annotators),
            difficulties=check_hard_examples(self.hard_examples, reading),
            groups=groups, errors_in_common=self.errors_in_common,
        )  # fmt: skip

    def _labels_alone(self, training: TrainingSet, weight: Floats, together: Together, reporter: Reporter) -> Start:
        """What labels alone say, where the rounds begin; a single annotator is believed."""
        labels, known, reading = training.core, training.known, self._reading(training)
        if labels.n_annotators == 1:
            return Start.believed(labels, known)
        difficulties = check_hard_examples(self.hard_examples, reading)
        check_choice("joint", self.joint, (True, False, "auto"))
        check_choice("init", self.init, ("labels", "votes"))
        model = reading.annotator_model(self.annotator_model, together.n_voters(labels.n_annotators))
        fit = fit_labels(
            labels, weight, model,
            together=together, known=known, difficulties=difficulties, tol=min(TOLERANCE, self.tol), reporter=reporter,
        )  # fmt: skip
        n_difficulties = fit.annotators.n_difficulties
        joint = n_difficulties == 1 if self.joint == "auto" else self.joint
        if self.init == "labels":
            return Start(fit.annotators, fit.rounds.posterior, joint, fit)
        annotators, votes = first_annotators(labels, model, fit.together, n_difficulties, known)
        return Start(annotators if joint else fit.annotators, votes, joint, fit)

    def _without_features(self, training: TrainingSet, start: Start, reporter: Reporter) -> Start:
        """What labels alone say; features that do not predict the truth are no reason for weights either."""
        note_misleading()
        self.model_weight_ = 0.0
        if self.steepness == "auto" and self.steepness_ > 0:
            return self._labels_alone(training, training.sample_weight, start.alone.together, reporter)
        return start

    def _fitted_annotators(
        self, training: TrainingSet, start: Start, rounds: Rounds, targets: SoftTargets
    ) -> tuple[FittedAnnotators, TruthCheck | None]:
        """How annotators answer and how frequent classes are, by labels and classifier if that counts.

        With how truths calibrate the consensus, and how good it is by them.
        """
        reading, alone, together = self._reading(training), start.alone, start.alone.together
        if self.model_weight_:
            annotators, frequency = start.annotators, np.average(targets.posterior, axis=0, weights=targets.weight)
            of_annotators = rounds.log_prior if start.joint else alone.rounds.log_prior
        else:
            annotators, frequency, of_annotators = alone.annotators, alone.prior.frequency, alone.rounds.log_prior
        estimated = None
        if training.core.n_annotators > 1:
            estimated = Estimated(annotators, rounds.log_prior, of_annotators, targets.weight, together)
        calibration, check = calibrate_by_truths(training.core, training.known, estimated, reading)
        fitted = FittedAnnotators.of(training, annotators.behaviour, frequency, reading, together, calibration)
        return fitted, check
