"""The paper's tables as `crowdwise reproduce` makes them, in short, written into their page.

    python benchmarks/reproduction.py [table1 | seeds | table3 | table4] ... [--write]

Table 2 with its ten seeds takes eight minutes of one core, table 4 half an hour; tables 1 and 3 are quick. Tables 3 and
4 need the LIBSVM sets in the directory that CROWDWISE_DATA names.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tables import Place, Run, markdown, parser

from crowdwise.datasets import data_directory
from crowdwise.paper.reproduce import Options, reproduce
from crowdwise.paper.reproduce.tables import Table

PAGE = "docs/evidence/reproduction.md"
# Per table: the experiment, its settings besides the defaults, and the columns on the page; none if notes are enough.
PARTS = {
    "table1": ("table1", {}, ()),
    "seeds": ("table2", {"seeds": 10}, (0, 1, 2, 6, 7)),
    "table3": ("table3", {}, ()),
    "table4": ("table4", {}, ()),
}
NEED_DATA = ("table3", "table4")
PLACES = {part: Place(PAGE, f"reproduction {part}") for part in PARTS}


def short(table: Table, columns: Sequence[int]) -> str:
    """Some columns of the rows of p = 1; without columns, how many rows agree, and what there is to say about rows.

    The first note explains cells.
    """
    if columns:
        shown = [table.columns, *(row for row in table.rows if row[0].endswith("p=1"))]
        head, *rows = ([row[column] for column in columns] for row in shown)
        return markdown(head, rows)
    agree = sum(row[-1].startswith("agrees") for row in table.rows)
    remarks = [f"{row[0]}: {row[-1].removeprefix('agrees; ')}." for row in table.rows if row[-1] != "agrees"]
    return "\n\n".join([" ".join([f"{agree} of {len(table.rows)} rows agree.", *remarks]), *table.notes[1:]])


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    run = Run(options, [PLACES[part] for part in options.parts])
    for part in options.parts:
        experiment, settings, columns = PARTS[part]
        if options.quick and experiment in NEED_DATA and not any(data_directory().glob("libsvm/*")):
            print(f"{part} is left out: there are no LIBSVM sets; set CROWDWISE_DATA.")
            continue
        with tempfile.TemporaryDirectory() as folder:
            wanted = Options(out=Path(folder), jobs=-1, quick=options.quick, progress=False, **settings)
            run.text(PLACES[part], short(reproduce(experiment, wanted).table, columns))


if __name__ == "__main__":
    main()
