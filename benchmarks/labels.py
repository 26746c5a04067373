"""How long it takes to make labels from integer arrays, to add and take back one, and how much memory they take.

    python benchmarks/labels.py [--examples N]

The labels of 1,000,000 examples, five each by 10,000 annotators, should take a few seconds and less than 100 MB.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
from tables import Run, parser
from timing import median_seconds

from crowdwise import CrowdLabels

N_ANNOTATORS = 10_000
LABELS_EACH = 5


def long_table(n_examples: int) -> dict[str, np.ndarray]:
    """Rows in random order, no (example, annotator) twice."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, N_ANNOTATORS, n_examples)[:, np.newaxis]
    order = rng.permutation(n_examples * LABELS_EACH)
    return {
        "example": np.repeat(np.arange(n_examples), LABELS_EACH)[order],
        "annotator": ((first + np.arange(LABELS_EACH) * 7) % N_ANNOTATORS).ravel()[order],
        "label": rng.integers(0, 2, n_examples * LABELS_EACH),
    }


def kept_and_peak(table: dict[str, np.ndarray]) -> tuple[float, float]:
    """Megabytes of the labels, and the most that was in use while they were made."""
    tracemalloc.start()
    labels = CrowdLabels.from_table(table)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert labels.n_labels == len(table["label"])
    return kept / 1e6, peak / 1e6


def one_label(table: dict[str, np.ndarray]) -> None:
    """Print how long one label more or less takes, per million labels; examples as numbers and as texts."""
    for kind in ("numbers", "texts"):
        names = table["example"] if kind == "numbers" else np.array([f"example {i}" for i in table["example"]], object)
        labels = CrowdLabels.from_table({**table, "example": names})
        example, million = labels.examples[-1], labels.n_labels / 1e6
        who = np.setdiff1d(labels.annotators, labels.annotators[labels.annotator_index[-LABELS_EACH:]])[0]
        grown = labels.append(example=example, annotator=who, label=1)
        more = median_seconds(lambda: labels.append(example=example, annotator=who, label=1), 9)  # noqa: B023
        less = median_seconds(lambda: grown.without(example=example, annotator=who), 9)  # noqa: B023
        print(f"  append      {1e3 * more / million:8.2f} ms per million labels, examples named by {kind}")
        print(f"  without     {1e3 * less / million:8.2f} ms per million labels")


def main() -> None:
    arguments = parser(__doc__, writes=False)
    arguments.add_argument("--examples", type=int, default=1_000_000, help="%(default)s")
    options = arguments.parse_args()
    Run(options)
    n_examples = 10_000 if options.quick else options.examples
    table = long_table(n_examples)
    print(f"{n_examples:,} examples x {LABELS_EACH} labels by {N_ANNOTATORS:,} annotators, from integer arrays")
    print(f"  from_table  {median_seconds(lambda: CrowdLabels.from_table(table), 3):8.2f} s")
    one_label(table)
    kept, peak = kept_and_peak(table)
    print(f"  kept        {kept:8.1f} MB")
    print(f"  peak        {peak:8.1f} MB beside the table")


if __name__ == "__main__":
    main()
