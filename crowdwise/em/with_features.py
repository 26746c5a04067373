"""What models of labels and features share: the start from labels alone, and the annotators of a fit."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.consensus import ConsensusBy
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.guard import note_misleading
from crowdwise.em.labels_alone import (
    HardExamples,
    Init,
    Joint,
    Start,
    check_hard_examples,
    start_from_labels,
    who_errs_together,
)
from crowdwise.em.levels import ClassKind, Reading, reading_of
from crowdwise.em.together import Together
from crowdwise.mixins import CrowdClassifierMixin
from crowdwise.progress import Reporter
from crowdwise.training_set import TrainingSet
from crowdwise.truths.calibration import Calibration
from crowdwise.weights.round_weights import SoftTargets


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
            training, weight, reading.annotator_model(self.annotator_model),
            difficulties=check_hard_examples(self.hard_examples, reading),
            groups=groups, errors_in_common=self.errors_in_common,
        )  # fmt: skip

    def _labels_alone(self, training: TrainingSet, weight: Floats, together: Together, reporter: Reporter) -> Start:
        """What labels alone say; a single annotator is believed."""
        if training.core.n_annotators == 1:
            return Start.believed(training.core, training.known)
        return start_from_labels(
            training.core, weight, self.annotator_model, known=training.known, reading=self._reading(training),
            hard_examples=self.hard_examples, joint=self.joint, init=self.init, together=together, tol=self.tol,
            reporter=reporter,
        )  # fmt: skip

    def _without_features(self, training: TrainingSet, start: Start, reporter: Reporter) -> Start:
        """What labels alone say; features that do not predict the truth are no reason for weights either."""
        note_misleading()
        self.model_weight_ = 0.0
        if self.steepness == "auto" and self.steepness_ > 0:
            return self._labels_alone(training, training.sample_weight, start.alone.together, reporter)
        return start

    def _fitted_annotators(
        self, training: TrainingSet, start: Start, targets: SoftTargets, calibration: Calibration | None
    ) -> FittedAnnotators:
        """How annotators answer and how frequent classes are: by labels and classifier, if that counts."""
        if self.model_weight_:
            frequency = np.average(targets.posterior, axis=0, weights=targets.weight)
            behaviour = start.annotators.behaviour
        else:
            frequency, behaviour = start.alone.prior.frequency, start.alone.annotators.behaviour
        reading, together = self._reading(training), start.alone.together
        return FittedAnnotators.of(training, behaviour, frequency, reading, together, calibration)
