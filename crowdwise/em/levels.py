"""Labels, and what the user says of their order -> where each class is, and what is taken of a posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_choice
from crowdwise.em.confusion import Abstaining, AnnotatorModel, check_annotator_model
from crowdwise.em.ordinal import Ordinal
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.mistakes import beside_numbers
from crowdwise.results.consensus import ConsensusBy

ClassKind = Literal["class", "ordinal"]
# Squares of the differences between larger levels overflow.
_LARGEST = 1e150
# Ranks that vary by less are all the same but for rounding.
_SMALLEST_SQUARE = 1e-24


@dataclass(frozen=True)
class LabelScale:
    """How labels are read."""

    by: ConsensusBy = "mode"  # which class of a posterior is the label
    levels: Floats | None = None  # (n_classes,): where each class is; None if classes have no order
    informative_abstentions: bool = False  # whether abstaining is an answer of annotators

    def annotator_model(self, given: Any) -> AnnotatorModel:
        """The model of annotators that was given; by default confusion matrices shrunk to the crowd's."""
        if self.levels is not None and isinstance(given, Ordinal) and given.levels is None:
            given = replace(given, levels=tuple(self.levels.tolist()))
        model = check_annotator_model(given)
        return Abstaining(model) if self.informative_abstentions else model


CLASSES = LabelScale()


def check_kind(kind: Any, consensus_by: Any) -> ConsensusBy:
    """Which class of a posterior is the label; raises if that does not go with the kind of labels.

    None is the mode.
    """
    check_choice("kind", kind, ("class", "ordinal"))
    by: ConsensusBy = check_choice("consensus_by", consensus_by, (None, "mode", "median", "mean"))
    if by in ("median", "mean") and kind == "class":
        raise ValueError(f'consensus_by="{by}" needs classes with an order: kind="ordinal".')
    return by or "mode"


def scale_of(
    labels: CrowdLabels, kind: Any, consensus_by: Any = None, informative_abstentions: Any = False
) -> LabelScale:
    """How labels are to be read; an error if they are to have an order and nobody said which.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.em.levels import scale_of
    >>> labels = CrowdLabels.from_matrix([["bad", "good"]], classes=["bad", "ok", "good"])
    >>> scale_of(labels, "ordinal").levels.tolist()
    [1.0, 2.0, 3.0]
    """
    kind = "ordinal" if labels.ordered else kind
    by = check_kind(kind, consensus_by)
    informative = bool(informative_abstentions and labels.n_abstentions)
    if kind == "class":
        return LabelScale(by, informative_abstentions=informative)
    assert labels.classes is not None
    return LabelScale(by, levels_of(labels.classes, declared=labels.declared_classes), informative)


def warn_if_no_abstentions(labels: CrowdLabels, informative_abstentions: Any) -> None:
    """Warn if abstentions are to be used and there are none."""
    if check_choice("informative_abstentions", informative_abstentions, (True, False)) and not labels.n_abstentions:
        warn(
            "informative_abstentions has no effect: these labels have no abstentions. Say which answers are, with "
            "abstain=[...], when labels are made or read."
        )


def levels_of(classes: Array, *, declared: bool) -> Floats:
    """Where each class is: numbers as they are, anything else 1, 2, 3, ... in the order that was declared."""
    if classes.dtype.kind in "biuf":
        levels = classes.astype(np.float64)
        steps = np.diff(levels)
        if not ((steps > 0).all() or (steps < 0).all()):
            raise LabelError(
                f"numbers have an order of their own, and these classes were declared in another: {classes.tolist()}. "
                "Declare them from the lowest to the highest."
            )
        if np.abs(levels).max(initial=0) > _LARGEST:
            raise LabelError(
                f"levels beyond {_LARGEST:g} are too far apart for their differences to be squared: rescale them."
            )
        return levels
    if not declared and classes.dtype.kind not in "mM":
        words = beside_numbers(classes)
        no_level = f" If {' and '.join(map(repr, words))} means no answer, say so first: abstain={words}, --abstain."
        raise LabelError(
            f'kind="ordinal" needs classes with an order, and {classes.tolist()[:8]} have none of their own. Declare '
            "it from the lowest to the highest: labels.in_order([...]), or classes=[...] when labels are made; "
            f"--classes A,B,... on the command line.{no_level if words else ''}"
        )
    return np.arange(1.0, len(classes) + 1)


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
