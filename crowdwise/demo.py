"""A real crowd -> files in a folder, and the commands that a newcomer would type there."""

from __future__ import annotations

import re
from pathlib import Path

from crowdwise.datasets import fetch_crowd
from crowdwise.runs.inputs import PathLike
from crowdwise.runs.new_folder import holds_only, new_folder
from crowdwise.runs.result_table import ResultTable

# The names of the files, and of the folder that the first command makes.
FILES = ("labels.csv", "texts.csv", "truth.csv", "SOURCE.txt")
RUN = "run"
ABOUT = """\
74 people were shown 2,040 pairs of a name in the news and a web address, such as
"Barack Obama - http://dbpedia.org/page/Barack_Obama", and were asked: is this the page about it, yes or no?
Each pair was answered by 2 to 17 people, who often disagree. The right answers are known, and used only to judge."""
SOURCE = """\
ZenCrowd, G. Demartini, D. E. Difallah, P. Cudré-Mauroux (WWW 2012), as published in
https://github.com/orchidproject/active-crowd-toolkit under the Apache License 2.0.
Changes: workers are named w0, w1, ...; of several answers of a worker to a pair, the last one is kept.
"""
COMMANDS = (
    ("fit", "labels.csv", "texts.csv", "--text", "text", "--truth", "truth.csv", "--out", RUN),
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
    ['task,worker,label', '0,w0,no']
    """
    data = fetch_crowd("zencrowd_us")
    given, tasks, names = data.labels.to_table(), data.labels.examples.tolist(), data.classes
    tables = {
        "labels.csv": {
            "task": given["example"].tolist(),
            "worker": given["annotator"].tolist(),
            "label": [names[code] for code in given["label"]],
        },
        "texts.csv": {"task": tasks, "text": [re.sub("-(?=https?:)", " - ", text, count=1) for text in data.texts]},
        "truth.csv": {"task": tasks, "label": [names[code] for code in data.truth]},
    }
    with new_folder(out, may_replace=lambda old: force and holds_only(old, (*FILES, RUN))) as folder:
        for name, columns in tables.items():
            (folder / name).write_text(ResultTable(name, columns).as_csv(), encoding="utf-8")
        (folder / "SOURCE.txt").write_text(SOURCE, encoding="utf-8")
    return Path(out)
