"""What is known of labels -> the model of annotators; how far annotators are above or below the truth in levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise.em.confusion import Abstaining, AnnotatorModel, check_annotator_model
from crowdwise.em.ordinal import Ordinal
from crowdwise.labels.crowd_labels import CrowdLabels

# Ranks that vary by less are all the same but for rounding.
_SMALLEST_SQUARE = 1e-24


def uses_abstentions(labels: CrowdLabels) -> bool:
    """Whether abstaining is an answer of annotators, and someone abstained."""
    return labels.informative_abstentions and labels.n_abstentions > 0


def model_of_annotators(given: Any, labels: CrowdLabels) -> AnnotatorModel:
    """The model of annotators that was given; by default confusion matrices shrunk to the crowd's."""
    if labels.levels is not None and isinstance(given, Ordinal) and given.levels is None:
        given = replace(given, levels=tuple(labels.levels.tolist()))
    model = check_annotator_model(given)
    return Abstaining(model) if uses_abstentions(labels) else model


def level_scores(confusion: Floats, class_prior: Floats, levels: Floats) -> tuple[Floats, Floats, Floats]:
    """Three numbers per annotator: offset, spread and rank correlation; NaN for annotators without labels.

    The offset is how far labels are above the truth on average, the spread the standard deviation around that, both in
    the unit of the levels; the rank correlation is Spearman's, of label and truth, and 0 if all labels are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.em.levels import level_scores
    >>> lenient = np.array([[[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]])
    >>> scores = level_scores(lenient, np.array([0.5, 0.5, 0.0]), np.array([1.0, 2.0, 3.0]))
    >>> [score.round(4).tolist() for score in scores]
    [[0.75], [0.433], [0.5774]]
    """
    joint = class_prior[:, np.newaxis] * confusion
    above = levels - levels[:, np.newaxis]
    offset = np.einsum("lkc,kc->l", joint, above)
    spread = np.sqrt(np.einsum("lkc,lkc->l", joint, (above - offset[:, np.newaxis, np.newaxis]) ** 2))
    label = joint.sum(axis=1)
    ranks = [np.cumsum(share, axis=-1) - share / 2 - 0.5 for share in (class_prior, label)]
    together = np.einsum("lkc,k,lc->l", joint, *ranks)
    squares = (class_prior @ ranks[0] ** 2) * np.einsum("lc,lc->l", label, ranks[1] ** 2)
    correlation = np.divide(together, np.sqrt(squares), out=0.0 * offset, where=squares > _SMALLEST_SQUARE)
    return offset, spread, correlation
