"""Do real annotators disagree near the boundary? The diagnosis of every real crowd with features or text.

python benchmarks/diagnose.py               all of them, with truth and without
python benchmarks/diagnose.py music         one
python benchmarks/diagnose.py simulated     the simulated crowds of any_classifier.py, with and without truth
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from crowd_sets import WITH_FEATURES, load, simulated_crowd

from crowdwise import diagnose
from crowdwise.diagnosis import Diagnosis
from crowdwise.exceptions import CrowdWarning


def simulated(n_trials: int = 30) -> None:
    for clarity in (1.0, 2.0, 5.0):
        for missing in (0.0, 0.7):
            found = [_trial(seed, clarity, missing) for seed in range(n_trials)]
            with_truth, without = np.mean([[one.correlation.value for one in pair] for pair in found], axis=0)
            weight = np.sum([[one.weight for one in pair] for pair in found], axis=0)
            print(
                f"clarity {clarity:g}, missing {missing:g}: mean rank correlation {with_truth:+.2f} with truth, "
                f"{without:+.2f} without; weight in {weight[0]} and {weight[1]} of {n_trials}",
                flush=True,
            )


def _trial(seed: int, clarity: float, missing: float) -> tuple[Diagnosis, Diagnosis]:
    X, truth, labels = simulated_crowd(seed, clarity, missing)
    return diagnose(X[:500], labels, truth[:500]), diagnose(X[:500], labels)


def main() -> None:
    warnings.simplefilter("ignore", CrowdWarning)
    if sys.argv[1:] == ["simulated"]:
        return simulated()
    for name in sys.argv[1:] or WITH_FEATURES:
        data = load(name)
        start = time.perf_counter()
        with_truth = diagnose(data.X, data.labels, data.truth)
        seconds = time.perf_counter() - start
        without = diagnose(data.X, data.labels)
        print(f"=== {name} ({seconds:.1f} s)\n{with_truth}")
        print(f"Without truth: distance {without.correlation}\n               signed   {without.signed_correlation}")
        print(f"               {without.advice}\n", flush=True)
    return None


if __name__ == "__main__":
    main()
