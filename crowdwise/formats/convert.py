"""A file of labels in one format -> a file in another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from crowdwise._checks import check_choice
from crowdwise.exceptions import OutputError
from crowdwise.formats.csv_file import safe_cell, save_file, write_csv
from crowdwise.formats.label_file import LabelFile
from crowdwise.formats.read import read
from crowdwise.labels.align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels

LABEL_FORMATS = ("table", "wide", "crowd-kit", "peerannot")
# Labels that are turned into rows at a time.
_BLOCK = 2**16


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    source_format: str | None = None,
    target_format: str = "table",
    force: bool = False,
    **options: Any,
) -> LabelFile:
    """Read a file of labels and write it in another format.

    Parameters
    ----------
    source : str or path
        The file to read; "-" is standard input.
    target : str or path
        The file to write.
    source_format : str, default=None
        One of `FORMATS`; by default it is guessed.
    target_format : {"table", "wide", "crowd-kit", "peerannot"}, default="table"
        A row per label, a column per annotator, crowd-kit's long table, or peerannot's JSON.
    force : bool, default=False
        Whether to replace a file that is there.
    **options : keywords
        Those of `read`.

    Returns
    -------
    file : LabelFile
        What was read; `notes` has what to say, of the writing too.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise import formats
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "labels.csv").write_text("item,rater,rating\\n7,ann,1\\n7,bob,0\\n")
    >>> file = formats.convert(folder / "labels.csv", folder / "wide.csv", target_format="wide")
    >>> (folder / "wide.csv").read_text().splitlines()
    ['example,ann,bob', '7,1,0']
    """
    check_choice("target_format", target_format, LABEL_FORMATS)
    if os.path.lexists(target) and not force:
        raise OutputError(
            f"{os.fspath(target)} is there already. Choose another name, or replace it: --force (force=True)."
        )
    file = read(source, format=source_format, **options)
    notes = write_labels(file.labels, target, format=target_format)
    return replace(file, notes=(*file.notes, *notes))


def write_labels(labels: Any, path: str | os.PathLike[str], *, format: str = "table") -> tuple[str, ...]:
    """Write labels to a file.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels.
    path : str or path
        The file.
    format : {"table", "wide", "crowd-kit", "peerannot"}, default="table"
        A row per label, a column per annotator, crowd-kit's long table, or peerannot's JSON.

    Returns
    -------
    notes : tuple of str
        What to say: cells that were changed so that no spreadsheet takes them for formulas.
    """
    check_choice("format", format, LABEL_FORMATS)
    labels = as_labels(labels, kind=None)
    if format == "peerannot":
        document = {str(example): {str(who): label for who, label in given.items()} for example, given in labels}
        save_file(path, json.dumps(document, default=str) + "\n")
        return ()
    if format == "crowd-kit":
        write_csv(path, ("task", "worker", "label"), _rows(labels), safe=False)
        return ()
    if format == "wide":
        annotators = labels.annotators.tolist()
        rows = ([example, *(given.get(who, "") for who in annotators)] for example, given in labels)
        write_csv(path, ("example", *annotators), rows)
    else:
        write_csv(path, ("example", "annotator", "label"), _rows(labels))
    return _changed(labels)


def _rows(labels: CrowdLabels) -> Iterator[tuple[Any, Any, Any]]:
    for start in range(0, labels.n_examples, _BLOCK):
        table = labels[start : start + _BLOCK].to_table()
        yield from zip(*(table[name].tolist() for name in ("example", "annotator", "label")), strict=True)


def _changed(labels: CrowdLabels) -> tuple[str, ...]:
    names = (labels.examples, labels.annotators, *(() if labels.classes is None else (labels.classes,)))
    changed = [name for array in names for name in array.tolist() if safe_cell(name) != name]
    if not changed:
        return ()
    return (
        f"names that a spreadsheet would take for formulas have an apostrophe before them: {len(changed):,}, such as "
        f"{safe_cell(changed[0])!r}. The format crowd-kit has them as they are.",
    )
