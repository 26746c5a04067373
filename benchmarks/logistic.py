"""How long `CrowdLogisticClassifier()` takes beside one logistic regression of scikit-learn on the truth.

    python benchmarks/logistic.py

Labels of 200 annotators, five per example; medians of fits in turn within one run. Then `aggregate` alone.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from tables import Place, Run, parser
from timing import median_seconds, peak_megabytes

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate

SIZES = ((10_000, 50, 2), (100_000, 50, 2), (100_000, 50, 8), (1_000_000, 50, 2), (1_000, 512, 8))
PLACE = Place("docs/evidence/models.md", "logistic speed")
N_ANNOTATORS, LABELS_EACH = 200, 5


def crowd(n_examples: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, CrowdLabels]:
    """Features, truth drawn from a logistic model of them, and labels of annotators from good to bad."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_examples, n_features))
    scores = 2 * X @ rng.standard_normal((n_features, n_classes)) / np.sqrt(n_features)
    truth = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    first = rng.integers(0, N_ANNOTATORS, n_examples)[:, np.newaxis]
    who = (first + 37 * np.arange(LABELS_EACH)) % N_ANNOTATORS
    right = rng.random(who.shape) < np.linspace(0.5, 0.95, N_ANNOTATORS)[who]
    wrong = (truth[:, np.newaxis] + rng.integers(1, n_classes, who.shape)) % n_classes
    table = {
        "example": np.repeat(np.arange(n_examples), LABELS_EACH),
        "annotator": who.ravel(),
        "label": np.where(right, truth[:, np.newaxis], wrong).ravel(),
    }
    return X, truth, CrowdLabels.from_table(table, examples=np.arange(n_examples), classes=np.arange(n_classes))


def main() -> None:
    options = parser(__doc__).parse_args()
    run = Run(options, [PLACE])
    rows = []
    for size in ((1_000, 5, 2), (1_000, 5, 3)) if options.quick else SIZES:
        X, truth, labels = crowd(*size)
        repeats = 3 if X.size <= 10_000_000 else 1
        plain = median_seconds(lambda X=X, truth=truth: LogisticRegression().fit(X, truth), repeats)
        alone = median_seconds(lambda labels=labels: aggregate(labels), repeats)
        before = peak_megabytes()
        ours = median_seconds(lambda X=X, labels=labels: CrowdLogisticClassifier().fit(X, labels), repeats)
        extra = max(peak_megabytes() - before, 0.0) * 2**20 / X.nbytes
        n_examples, n_features, n_classes = size
        rows.append((
            f"{n_examples:,} x {n_features}, {n_classes}", f"{plain:.2f} s", f"{ours:.2f} s", f"{ours / plain:.1f}",
            f"{alone:.2f} s", f"{100 * extra:.0f} %",
        ))  # fmt: skip
    columns = (
        "examples x features, classes", "scikit-learn on the truth", "`CrowdLogisticClassifier()`", "ratio",
        "`aggregate(labels)`", "extra memory, of X",
    )  # fmt: skip
    run.table(PLACE, columns, rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
