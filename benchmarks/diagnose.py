"""Do real annotators disagree near the boundary? The diagnosis of every real crowd with features or text."""

from __future__ import annotations

import warnings

from crowd_sets import WITH_FEATURES, load
from tables import Place, Run, parser

from crowdwise import diagnose
from crowdwise.exceptions import CrowdWarning

PLACE = Place("docs/evidence/weighting.md", "diagnose")
COLUMNS = ("crowd", "rank correlation (truth)", "majority wrong: unanimous", "most disputed (examples)", "advice")


def row(name: str) -> list[str]:
    """What is shown of a crowd; the advice is that without the truth."""
    data = load(name)
    with_truth, without = diagnose(data.X, data.labels, data.truth), diagnose(data.X, data.labels)
    close, first, last = with_truth.correlation, with_truth.levels[0], with_truth.levels[-1]
    return [
        name,
        f"{close.value:+.2f} ({close.low:+.2f} to {close.high:+.2f})",
        f"{100 * first.majority_error:.0f} %",
        f"{100 * last.majority_error:.0f} % ({last.n_examples:,})",
        "weight" if without.weight else "don't",
    ]


def main() -> None:
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACE])
    run.table(PLACE, COLUMNS, [row(name) for name in (WITH_FEATURES[:1] if options.quick else WITH_FEATURES)])


if __name__ == "__main__":
    main()
