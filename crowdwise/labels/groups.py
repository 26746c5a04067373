"""Groups of annotators as users give them, by name or in order -> a number per annotator."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Positions
from crowdwise._text import count
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels.encode import as_objects, encode, encode_declared, is_missing, shown
from crowdwise.labels.frames import index_of
from crowdwise.labels.mistakes import perhaps


def check_groups(groups: Any, annotators: Array) -> Positions | None:
    """The group of each annotator, as a number; None if there are no groups.

    A group by annotator's name, or one per annotator in their order. Those who are not named, or whose group is
    missing, are alone.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.labels.groups import check_groups
    >>> check_groups({"ann": "x", "cem": "x"}, np.array(["ann", "bob", "cem"])).tolist()
    [0, 1, 0]
    """
    if groups is None:
        return None
    given = _by_annotator(groups, annotators)
    alone = np.array([is_missing(value) for value in given.tolist()], dtype=bool)
    group = np.arange(len(annotators)) + len(annotators)
    if not alone.all():
        group[~alone] = encode(given[~alone], ids=True)[0]
    return numbered(group)


def _by_annotator(groups: Any, annotators: Array) -> Array:
    """The group of each annotator as it was given, None where there is none."""
    if isinstance(groups, Mapping):
        names, values = as_objects(list(groups)), as_objects(list(groups.values()))
    elif (index := index_of(groups)) is not None:
        names, values = index, as_objects(list(groups))
    else:
        if isinstance(groups, str) or not hasattr(groups, "__len__") or len(groups) != len(annotators):
            raise LabelError(
                f"groups must be a mapping from annotator to group, a series with annotators as its index, or one "
                f"group for each of the {len(annotators)} annotators; got {groups!r}."
            )
        return as_objects(list(groups))
    place = encode_declared(names, annotators).astype(np.intp)
    known = place >= 0
    if not known.any():
        raise LabelError(
            f"groups names {count(len(names), 'annotator')} (such as {names[:3].tolist()}), and none of those who gave "
            f"labels (such as {annotators[:3].tolist()}). Name them as in the labels, each with its group: "
            f"{{{shown(annotators[0])}: 'a', ...}}."
        )
    if not known.all():
        unknown = count(int((~known).sum()), "annotator who has", "annotators who have")
        first, others = names[~known][0], np.setdiff1d(np.arange(len(annotators)), place)
        near = get_close_matches(str(first), [str(name) for name in annotators[others].tolist()], 1)
        warn(f"groups names {unknown} no labels, such as {first!r}{perhaps(list(map(repr, near)))}.")
    given = np.full(len(annotators), None, dtype=object)
    given[place[known]] = values[known]
    return given


def numbered(group: Array) -> Positions:
    """The same groups, numbered in the order of their first members."""
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which]
