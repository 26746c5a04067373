"""Labels -> what the rounds of a classifier begin with: annotators, a posterior, and who is to judge annotators."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.em.aggregate import settle, vote_shares
from crowdwise.em.confusion import AnnotatorModelName, Incidence, model_of_annotators
from crowdwise.em.hard_examples import Annotators, Kinds
from crowdwise.labels.crowd_labels import CrowdLabels

Joint = bool | Literal["auto"]
Init = Literal["labels", "votes"]

# Labels alone are only the beginning.
_MOST_ROUNDS, _TOLERANCE = 1000, 1e-4


def first_annotators(
    labels: CrowdLabels,
    weight: Floats,
    annotator_model: AnnotatorModelName,
    strength: float,
    *,
    kinds: Kinds,
    joint: Joint,
    init: Init,
) -> tuple[Annotators, Floats, bool]:
    """What the rounds of a classifier begin with.

    Parameters
    ----------
    labels : CrowdLabels
        Classes; every annotator has a label.
    weight : ndarray of shape (n_examples,)
        How much each example counts.
    annotator_model, strength, kinds
        As in `aggregate`.
    joint : bool or "auto"
        Whether annotators are to be estimated anew from the consensus of labels and classifier; "auto" if labels
        have shown one kind of examples only.
    init : {"labels", "votes"}
        The first posterior: that of labels alone, or the vote.

    Returns
    -------
    annotators : Annotators
    posterior : ndarray of shape (n_examples, n_classes)
    joint : bool
    """
    if not (isinstance(joint, bool | np.bool_) or (isinstance(joint, str) and joint == "auto")):
        raise ValueError(f'joint must be True, False or "auto"; got {joint!r}.')
    if init not in ("labels", "votes"):
        raise ValueError(f'init must be "labels" or "votes"; got {init!r}.')
    votes = vote_shares(labels)
    if labels.n_annotators == 1:  # there is nobody to be compared with
        alone = Annotators.of(Incidence.of(labels), model_of_annotators(annotator_model, strength), votes, 1)
        alone.estimate(votes, weight)
        return alone, votes, False
    settled = settle(
        labels, weight, annotator_model, strength, kinds=kinds, class_prior=1.0, max_rounds=_MOST_ROUNDS, tol=_TOLERANCE
    )
    n_kinds = settled.annotators.n_kinds
    joint = n_kinds == 1 if isinstance(joint, str) else bool(joint)
    if joint and init == "votes":
        model = model_of_annotators(annotator_model, strength)
        return Annotators.of(Incidence.of(labels), model, votes, n_kinds), votes, joint
    return settled.annotators, settled.posterior if init == "labels" else votes, joint
