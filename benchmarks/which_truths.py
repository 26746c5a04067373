"""Which examples should people answer? Fifty truths of examples that were drawn at random, or chosen.

python benchmarks/which_truths.py --write          five sets of judges and four crowds, ten draws each: minutes
python benchmarks/which_truths.py --sets framing   some sets

The sets of judges are those of `judges.py`; the others are crowds of people, labels alone. Of each way to choose
examples: how often the consensus is right on all examples (the known ones included), and on the others, on which it is
also measured without truths; its calibration error there; how often it is right on the truths, each held out, which is
what a user sees; and in how many draws a warning says that the truths do not calibrate the others. Means over sets.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np
from calibration import calibration
from judges import Judges, crowd, load, majority, set_names
from tables import Place, Run, parser

from crowdwise import aggregate, suggest_labels
from crowdwise.datasets import CROWD_NAMES
from crowdwise.exceptions import CrowdWarning
from crowdwise.results import FitResults

PLACE = Place("docs/evidence/judges.md", "which_truths")
CROWDS = ("bm", "dog", "ducks", "rte")
N_TRUTHS, N_DRAWS = 50, 10
COLUMNS = (
    "examples that people answer", "right on all", "right on the others", "without truths", "calibration error",
    "right on the truths, held out", "draws with a warning",
)  # fmt: skip

# Positions of the examples to answer, from the judges, the fit without truths, how many, and a generator.
Way = Callable[[Judges, FitResults, int, np.random.Generator], np.ndarray]


def at_random(judges: Judges, alone: FitResults, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(len(judges.truth))[:n]


def least_sure(judges: Judges, alone: FitResults, n: int, rng: np.random.Generator) -> np.ndarray:
    """What is recommended for a person."""
    place = {example: i for i, example in enumerate(judges.labels.examples.tolist())}
    found = suggest_labels(alone, judges.labels, n=n).examples.tolist()
    return np.array([place[example] for example in found], dtype=np.intp)


def half_of_each(judges: Judges, alone: FitResults, n: int, rng: np.random.Generator) -> np.ndarray:
    first = least_sure(judges, alone, n // 2, rng)
    others = np.setdiff1d(np.arange(len(judges.truth)), first)
    return np.concatenate([first, rng.permutation(others)[: n - len(first)]])


def contested(judges: Judges, alone: FitResults, n: int, rng: np.random.Generator) -> np.ndarray:
    """Any on which annotators differ."""
    differ = np.flatnonzero(majority(judges, np.empty(0)).max(axis=1) < 1)
    return rng.permutation(differ)[:n]


def clear(judges: Judges, alone: FitResults, n: int, rng: np.random.Generator) -> np.ndarray:
    """As gold questions are: of the surest quarter."""
    surest = np.argsort(-alone.confidence, kind="stable")[: max(n, len(judges.truth) // 4)]
    return rng.permutation(surest)[:n]


WAYS: dict[str, Way] = {
    "at random": at_random,
    "half at random, half the least sure": half_of_each,
    "the least sure": least_sure,
    "any contested ones": contested,
    "clear ones": clear,
}


def chosen_sets(options: Namespace) -> Iterator[Judges]:
    """The sets that were asked for, as far as enough examples are left; a quick run has one that is always there."""
    for name in ["bluebirds"] if options.quick else options.sets or [*set_names(), *CROWDS]:
        judges = load(name) if name not in CROWD_NAMES else crowd(name)
        if len(judges.truth) >= 2 * N_TRUTHS:
            yield judges


def measure(judges: Judges, alone: FitResults, known: np.ndarray) -> tuple[float, ...]:
    """The figures of one choice."""
    assert judges.labels.classes is not None
    names, rest = judges.labels.classes[judges.truth], np.setdiff1d(np.arange(len(judges.truth)), known)
    truth = dict(zip(judges.labels.examples[known].tolist(), names[known].tolist(), strict=True))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", CrowdWarning)
        found = aggregate(judges.labels, truth=truth)
    assert found.truth_check is not None
    right, _, error = calibration(found.proba[rest], judges.truth[rest])
    before = calibration(alone.proba[rest], judges.truth[rest])[0]
    warned = any("unlike the others" in str(one.message) for one in told)
    return float((found.label == names).mean()), right, before, error, found.truth_check.accuracy, float(warned)


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--sets", nargs="+", help="names of sets; all by default")
    options = made.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run, found = Run(options, [PLACE]), {name: [] for name in WAYS}
    n_draws = 2 if options.quick else N_DRAWS
    names = []
    for judges in chosen_sets(options):
        names.append(judges.name)
        alone = aggregate(judges.labels)
        for name, way in WAYS.items():
            draws = range(1 if way is least_sure else n_draws)
            each = [measure(judges, alone, way(judges, alone, N_TRUTHS, np.random.default_rng(i))) for i in draws]
            found[name].append(np.mean(each, axis=0))
    rows = []
    for name, each in found.items():
        *means, warned = np.mean(each, axis=0)
        rows.append([name, *(f"{mean:.3f}" for mean in means), f"{warned:.0%}"])
    run.table(
        PLACE, COLUMNS, rows, f"Means over {len(names)} sets with {2 * N_TRUTHS} truths or more; {n_draws} draws each."
    )


if __name__ == "__main__":
    main()
