"""Do real annotators disagree near the boundary? The diagnosis of every real crowd with features or text.

python benchmarks/diagnose.py               all parts below
python benchmarks/diagnose.py example       the diagnosis of one crowd as it is printed
python benchmarks/diagnose.py real          all real crowds, with truth and without
python benchmarks/diagnose.py simulated     the simulated crowds of any_classifier.py, with truth and without
"""

from __future__ import annotations

import warnings

import numpy as np
from crowd_sets import SIMULATED, WITH_FEATURES, load, missing_text, simulated_crowd
from tables import Place, Run, parser

from crowdwise import diagnose
from crowdwise.diagnosis import Diagnosis
from crowdwise.exceptions import CrowdWarning

PAGE = "docs/evidence/diagnosis.md"
PLACES = {part: Place(PAGE, f"diagnose {part}") for part in ("example", "real", "simulated")}


def example(run: Run, name: str = "medical_cause") -> None:
    """One crowd with its truth, as users see it."""
    data = load(name)
    printed = f">>> print(diagnose(X, labels, truth))\n{diagnose(data.X, data.labels, data.truth)}"
    run.text(PLACES["example"], f"```\n{printed}\n```")


def real(run: Run, names: tuple[str, ...]) -> None:
    """A row per crowd."""
    columns = (
        "crowd", "labels per example", "rank correlation (truth)", "signed (truth)", "without truth",
        "majority wrong: unanimous", "most disputed (examples)", "explained by who labelled", "alpha",
        "advice",
    )  # fmt: skip
    rows = []
    for name in names:
        data = load(name)
        with_truth, without = diagnose(data.X, data.labels, data.truth), diagnose(data.X, data.labels)
        rows.append([name, *cells(with_truth, without)])
    run.table(PLACES["real"], columns, rows)


def cells(with_truth: Diagnosis, without: Diagnosis) -> list[str]:
    """What is shown of a crowd."""
    close, first, last = with_truth.correlation, with_truth.levels[0], with_truth.levels[-1]
    return [
        f"{with_truth.n_labels / with_truth.n_examples:.1f}",
        f"{close.value:+.2f} ({close.low:+.2f} to {close.high:+.2f})",
        f"{with_truth.signed_correlation.value:+.2f}",
        f"{without.correlation.value:+.2f}",
        f"{100 * first.majority_error:.0f} %",
        f"{100 * last.majority_error:.0f} % ({last.n_examples:,})",
        f"{100 * with_truth.annotator_share:.0f} %",
        f"{with_truth.alpha:.2f}",
        "weight" if without.weight else "don't",
    ]


def simulated(run: Run, n_trials: int) -> None:
    """A row per level of noise and share of missing labels."""
    columns = ("p", "labels missing", "rank correlation (truth)", "without truth", "advice to weight")
    rows = []
    for clarity, missing in SIMULATED:
        found = [_trial(seed, clarity, missing) for seed in range(n_trials)]
        correlations = np.mean([[one.correlation.value for one in pair] for pair in found], axis=0)
        weight = sum(without.weight for _, without in found)
        row = [f"{clarity:g}", missing_text(missing), *(f"{value:+.2f}" for value in correlations)]
        rows.append([*row, f"{weight} of {n_trials}"])
    run.table(PLACES["simulated"], columns, rows, f"{n_trials} crowds per row.")


def _trial(seed: int, clarity: float, missing: float) -> tuple[Diagnosis, Diagnosis]:
    X, truth, labels = simulated_crowd(seed, clarity, missing)
    return diagnose(X[:500], labels, truth[:500]), diagnose(X[:500], labels)


def main() -> None:
    arguments = parser(__doc__, PLACES)
    arguments.add_argument("--trials", type=int, default=30, help="simulated crowds per row: %(default)s")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    if "example" in options.parts:
        example(run)
    if "real" in options.parts:
        real(run, ("music",) if options.quick else WITH_FEATURES)
    if "simulated" in options.parts:
        simulated(run, 2 if options.quick else options.trials)


if __name__ == "__main__":
    main()
