"""The paper's tables as `crowdwise reproduce` makes them, written into their page.

    python benchmarks/reproduction.py [table1 | table2 | seeds | table3 | table4] ... [--write]

Table 2 takes a minute of one core, its ten seeds eight, table 4 half an hour; tables 1 and 3 are quick. Tables 3 and 4
need the LIBSVM sets in the directory that CROWDWISE_DATA names.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tables import Place, Run, parser

from crowdwise.paper.reproduce import Options, reproduce

PAGE = "docs/evidence/reproduction.md"
# The name of the experiment, and its settings besides the defaults.
PARTS = {
    "table1": ("table1", {}),
    "table2": ("table2", {}),
    "seeds": ("table2", {"seeds": 10}),
    "table3": ("table3", {}),
    "table4": ("table4", {}),
}
PLACES = {part: Place(PAGE, f"reproduction {part}") for part in PARTS}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    run = Run(options, [PLACES[part] for part in options.parts])
    for part in options.parts:
        experiment, settings = PARTS[part]
        with tempfile.TemporaryDirectory() as folder:
            wanted = Options(out=Path(folder), jobs=-1, quick=options.quick, progress=False, **settings)
            run.text(PLACES[part], reproduce(experiment, wanted).as_text())


if __name__ == "__main__":
    main()
