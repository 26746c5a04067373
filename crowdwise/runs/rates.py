"""Labels or a run, and files of known answers and groups -> the share of a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rates import Rate, rate
from crowdwise.runs.inputs import PathLike, read_inputs, read_truth
from crowdwise.runs.run import Info, is_run, open_run
from crowdwise.tables import open_table


def rate_of(
    source: PathLike,
    *,
    truth: PathLike | None = None,
    target: str | None = None,
    by: PathLike | None = None,
    labels_as: Mapping[str, Any] | None = None,
    info: Info = lambda _: None,
) -> Rate:
    """The share of a class, by a file of labels or the folder of a run; see `crowdwise.rate`.

    Parameters
    ----------
    source : str or path
        A file of labels, or a run.
    truth : str or path, default=None
        A table of known answers; by default those of the run.
    target : str, default=None
        The class.
    by : str or path, default=None
        A table of two columns: example and group.
    labels_as : mapping, default=None
        How labels are read.
    info : callable, default=nothing
        Is given each note.

    Returns
    -------
    rate : Rate
    """
    if is_run(source):
        run = open_run(source)
        model, inputs = run.model(), run.kept
    else:
        inputs = read_inputs(source, labels_as=dict(labels_as or {}))
        model = aggregate(inputs.labels)
    labels, answers, notes = inputs.labels, inputs.truth, inputs.notes
    if truth is not None:
        answers, more = read_truth(truth, labels)
        notes = (*notes, *more)
    for note in notes:
        info(note)
    wanted = target
    if target is not None and labels.classes is not None:  # classes may be numbers, and an option is a text
        wanted = {str(name): name for name in labels.classes.tolist()}.get(target, target)
    return rate(model, labels, answers, target=wanted, by=None if by is None else _groups(by, labels))


def _groups(path: PathLike, labels: CrowdLabels) -> np.ndarray:
    """The group of every example."""
    table = open_table(path)
    if len(table.header) != 2:
        raise DataError(
            f"{table.source.name} must have two columns, example and group; found {list(table.header)}. Keep these two."
        )
    group = dict(zip(*table.columns(list(table.header)).values(), strict=True))
    names = [str(example) for example in labels.examples.tolist()]
    if missing := [name for name in names if name not in group]:
        raise DataError(f"{table.source.name} has no group for {len(missing):,} examples, such as {missing[0]!r}.")
    return np.array([group[name] for name in names], dtype=object)
