"""Groups of annotators as users give them, by name or in order -> a number per annotator."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Positions
from crowdwise._text import count
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels._encode import as_objects, encode, encode_declared, is_missing, shown
from crowdwise.labels._frames import named_values
from crowdwise.labels._mistakes import perhaps


def check_groups(groups: Any, annotators: Array) -> Array | None:
    """The group of each annotator, None for those who are alone; None if there are no groups.

    Groups are given by annotator's name, or in the order of annotators.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.labels._groups import check_groups
    >>> check_groups({"ann": "x", "cem": "x"}, np.array(["ann", "bob", "cem"])).tolist()
    ['x', None, 'x']
    """
    if groups is None:
        return None
    return as_objects([None if is_missing(group) else group for group in _by_annotator(groups, annotators).tolist()])


def group_numbers(groups: Array) -> Positions:
    """A number per annotator, from 0 in the order of their first members; annotators without a group are alone."""
    alone = np.array([group is None for group in groups.tolist()], dtype=bool)
    number = np.arange(len(groups)) + len(groups)
    if not alone.all():
        number[~alone] = encode(groups[~alone], ids=True)[0]
    return numbered(number)


def groups_by_name(groups: Array | None, annotators: Array) -> dict[Any, Any] | None:
    """Groups by annotator's name, so that those of several parts can be joined; None if there are no groups."""
    return None if groups is None else dict(zip(annotators.tolist(), groups.tolist(), strict=True))


def joined_groups(first: dict[Any, Any] | None, second: dict[Any, Any] | None) -> dict[Any, Any] | None:
    """The groups of two parts."""
    return first if second is None else (first or {}) | second


def groups_in_order(by_name: dict[Any, Any] | None, annotators: Array) -> Array | None:
    """The group of each annotator; None if there are no groups."""
    return None if by_name is None else as_objects([by_name.get(name) for name in annotators.tolist()])


def _by_annotator(groups: Any, annotators: Array) -> Array:
    """The group of each annotator as it was given, None where there is none."""
    names, values = named_values(groups)
    if names is None:
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
        first, not_named = names[~known][0], np.delete(annotators, place[known])
        near = get_close_matches(str(first), [str(name) for name in not_named.tolist()], 1)
        warn(f"groups names {unknown} no labels, such as {first!r}{perhaps(list(map(repr, near)))}.")
    in_order = np.full(len(annotators), None, dtype=object)
    in_order[place[known]] = as_objects(list(values))[known]
    return in_order


def numbered(group: Array) -> Positions:
    """The same groups, numbered in the order of their first members."""
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which]
