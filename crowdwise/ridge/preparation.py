"""What the EM models still take from here, until they use `TrainingSet`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from crowdwise.arrays import Array, Bools, Floats
from crowdwise.checks import check_rounds
from crowdwise.crowd.disagreement import Scale
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.features import N_FOLDS, Rows, RowSpace, check_finite, row_space
from crowdwise.ridge.fitted import check_new as checked
from crowdwise.training_set import TrainingSet, _disagreement_of_all, check_features, note_effective_number

__all__ = ["N_FOLDS", "Consensus", "Prepared", "check_rounds", "checked", "note_effective_number", "prepare"]

disagreement_of_all = _disagreement_of_all


@dataclass(frozen=True)
class Consensus:
    label: Array
    confidence: Floats
    score: Floats
    uses_model: bool


@dataclass(frozen=True)
class Prepared:
    labels: CrowdLabels
    learnt: Bools
    heard: Bools
    rows: Rows
    space: RowSpace | None
    core: CrowdLabels
    sample_weight: Floats
    disagreement: Floats
    unlabelled: Any

    @property
    def classes(self) -> Array:
        assert self.labels.classes is not None
        return self.labels.classes

    @property
    def original(self) -> Rows:
        return self.rows if self.space is None else self.space.original


def participants(labels: CrowdLabels, weight: Floats, steepest: float) -> tuple[Bools, Bools, Bools, CrowdLabels]:
    training = TrainingSet.of(np.zeros((len(labels), 0)), labels, weight, weighting=steepest > 0)
    return labels.labels_per_example > 0, training.learnt, training.heard, training.core


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    kind: Any,
    scale: Scale,
    fit_intercept: bool,
    steepest: float,
) -> Prepared:
    X, labels = check_features(estimator, X, y, kind)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    training = TrainingSet.of(X, labels, weight, scale=scale, weighting=steepest > 0)
    check_finite(X)
    original = Rows.of(training.rows, intercept=fit_intercept)
    space = row_space(original)
    labelled = labels.labels_per_example > 0
    return Prepared(
        labels=labels,
        learnt=training.learnt,
        heard=training.heard,
        rows=original if space is None else space.rows,
        space=space,
        core=training.core,
        sample_weight=training.sample_weight,
        disagreement=training.disagreement,
        unlabelled=X[~labelled],
    )
