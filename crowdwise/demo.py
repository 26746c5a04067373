"""A real crowd -> files in a folder, and the commands that a newcomer would type there."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from crowdwise.datasets import fetch_crowd
from crowdwise.runs.inputs import PathLike
from crowdwise.runs.new_folder import holds_only, new_folder
from crowdwise.runs.result_table import ResultTable

# The names of the files, and of the folder that the first command makes.
FILES = ("labels.csv", "truth.csv", "SOURCE.txt")
RUN = "run"
ABOUT = """\
39 people looked at 108 photographs of birds and said of each: is it an indigo bunting or a blue grosbeak?
Everyone labelled every photograph, and they often disagree. The right answers are known, and used only to judge.
The labels are 0 and 1; the data do not tell which bird is which."""
SOURCE = """\
P. Welinder, S. Branson, S. Belongie, P. Perona: The multidimensional wisdom of crowds (NIPS 2010), as published in
demo/bluebirds of https://github.com/welinder/cubam (fe5ba700) under the Clear BSD licence, which follows.
Changes: workers are named w0, w1, ...; labels are 0 and 1; the tables have the columns task, worker, label.

"""
COMMANDS = (
    ("fit", "labels.csv", "--truth", "truth.csv", "--out", RUN),
    ("next", RUN, "-n", "3"),
)


def write_demo(out: PathLike, *, force: bool = False) -> Path:
    """Write the crowd as the files that people have; with `force` over the folder of an earlier demonstration.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.demo import write_demo
    >>> folder = write_demo(Path(tempfile.mkdtemp()) / "demo")
    >>> (folder / "labels.csv").read_text().splitlines()[:2]
    ['task,worker,label', '11573,w0,1']
    """
    data = fetch_crowd("bluebirds")
    task, worker, label = data.labels.to_table().values()
    tables = {
        "labels": {"task": task, "worker": worker, "label": label},
        "truth": {"task": data.labels.examples, "label": data.truth},
    }
    with new_folder(out, may_replace=lambda old: force and holds_only(old, (*FILES, RUN))) as folder:
        for name, columns in tables.items():
            ResultTable(name, columns).write(folder)
        licence = files("crowdwise.datasets").joinpath("shipped", "LICENSE.clear-bsd.txt").read_text(encoding="utf-8")
        (folder / "SOURCE.txt").write_text(SOURCE + licence.lstrip(), encoding="utf-8")
    return Path(out)
