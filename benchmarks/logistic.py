"""How long `CrowdLogisticClassifier()` takes beside one logistic regression of scikit-learn on the truth.

    python benchmarks/logistic.py

Labels of 200 annotators, five per example; medians of fits within one run. The last row has sparse
features, as words of sentences are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tables import Place, Run, parser
from timing import median_seconds, peak_megabytes

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate

Size = tuple[int, int, int]

SIZES: tuple[Size, ...] = (
    (10_000, 50, 2), (100_000, 50, 2), (1_000_000, 50, 2), (100_000, 50, 8), (1_000, 512, 8),
)  # fmt: skip
SPARSE: Size = (5_000, 12_500, 2)
PLACE = Place("docs/evidence/speed.md", "logistic")
N_ANNOTATORS, LABELS_EACH = 200, 5
WORDS_EACH = 17


def crowd(n_examples: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, CrowdLabels]:
    """Features, truth drawn from a logistic model of them, and labels of annotators from good to bad."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_examples, n_features))
    return X, *labelled(X, 2 / np.sqrt(n_features), n_classes, rng)


def words(n_examples: int, n_features: int, n_classes: int) -> tuple[Any, np.ndarray, CrowdLabels]:
    """The same with rows of length one in which few columns are not zero, the first ones most often (Zipf)."""
    rng = np.random.default_rng(0)
    often = 1 / np.arange(5, n_features + 5)
    column = rng.choice(n_features, n_examples * WORDS_EACH, p=often / often.sum())
    value = -np.log(often)[column]  # a rare word counts for more
    X = sparse.csr_array((value, column, np.arange(0, len(column) + 1, WORDS_EACH)), shape=(n_examples, n_features))
    X.sum_duplicates()
    X = sparse.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, np.newaxis]))
    return X, *labelled(X, 2.0, n_classes, rng)


def labelled(X: Any, steep: float, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, CrowdLabels]:
    """Truth by a logistic model, and labels."""
    n_examples, n_features = X.shape
    scores = steep * (X @ rng.standard_normal((n_features, n_classes)))
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
    return truth, CrowdLabels.from_table(table, examples=np.arange(n_examples), classes=np.arange(n_classes))


def timed(size: Size, make: Any = crowd) -> tuple[str, ...]:
    """A row of the table."""
    X, truth, labels = make(*size)
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    repeats = 3 if n_bytes <= 100_000_000 else 1
    plain = median_seconds(lambda: LogisticRegression().fit(X, truth), repeats)
    labels_only = median_seconds(lambda: aggregate(labels), repeats)
    before = peak_megabytes()
    ours = median_seconds(lambda: CrowdLogisticClassifier().fit(X, labels), repeats)
    extra = max(peak_megabytes() - before, 0.0) * 2**20 / n_bytes
    n_examples, n_features, n_classes = size
    name = f"{n_examples:,} x {n_features:,}, {n_classes}{', sparse' if sparse.issparse(X) else ''}"
    return (
        name,
        f"{plain:.2f} s",
        f"{ours:.2f} s",
        f"{ours / plain:.1f}",
        f"{labels_only:.2f} s",
        f"{100 * extra:.0f} %",
    )


def main() -> None:
    options = parser(__doc__).parse_args()
    run = Run(options, [PLACE])
    sizes = ((1_000, 5, 2), (1_000, 5, 3)) if options.quick else SIZES
    rows = [*map(timed, sizes), timed((500, 1_000, 2) if options.quick else SPARSE, words)]
    columns = (
        "examples x features, classes", "scikit-learn on the truth", "`CrowdLogisticClassifier()`", "ratio",
        "`aggregate(labels)`", "extra memory, of X",
    )  # fmt: skip
    run.table(PLACE, columns, rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
