"""Do intervals of rates cover? The share of a class by the consensus and a few known answers.

python benchmarks/rates.py --write     all public sets, 200 draws each: a minute
python benchmarks/rates.py --quick     a simulated panel, a few draws

A draw takes as many examples as a set has (at most 1,000) with replacement, so that the whole set is what the rate is
about, and then some known answers at random. Of each class (at most four of a set, those of 1% to 99%): whether the
interval holds the true rate, how wide it is, and how far the rate is off, corrected by known answers, by the consensus
alone, and by the known answers alone (Wilson's interval).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tables import Place, Run, parser
from trust_sets import FAMILIES, all_rows, draws

from crowdwise import aggregate
from crowdwise.rates import post_stratified
from crowdwise.truths.check import share_interval

PLACE = Place("docs/evidence/rates.md", "rates")
METHODS = ("corrected", "consensus alone", "known answers alone")
COLUMNS = ("set", *(f"{method}, {n}" for n in (50, 100) for method in METHODS if n == 50 or method == "corrected"))
N_DRAWS, MOST = 200, 1000


def proxies(quick: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Of each set the consensus and the truth of the examples whose truth is known."""
    if quick:
        crowd = next(iter(FAMILIES["labels"].values()))(np.random.default_rng(0))
        yield "simulated", aggregate(crowd.labels).codes, crowd.truth
        return
    for row in all_rows():
        if row.kind == "labels" and row.group == "real":
            crowd = next(iter(draws(row, 1)))
            yield row.name, aggregate(crowd.labels).codes[crowd.known], crowd.truth[crowd.known]


def measure(answer: np.ndarray, truth: np.ndarray, n_known: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Whether the interval covers, its width, and the error: three methods by three figures, the mean over draws."""
    figures, true, n = [], float(truth.mean()), min(len(truth), MOST)
    known = np.arange(n) < n_known
    for _ in range(n_draws):
        rows = rng.integers(len(truth), size=n)
        said, right = answer[rows], truth[rows]
        share = float(right[known].mean())
        shares = [
            post_stratified(said, known, right, 0.95),
            post_stratified(said, np.zeros(n, dtype=bool), right, 0.95),
            (share, *map(float, share_interval(share, n_known))),
        ]
        figures.append([(low <= true <= high, high - low, abs(value - true)) for value, low, high in shares])
    return np.mean(figures, axis=0)


def main() -> None:
    options = parser(__doc__).parse_args()
    run, rows, n_sets = Run(options, [PLACE]), [], 0
    everything: dict[int, list[np.ndarray]] = {50: [], 100: []}
    for name, codes, truth in proxies(options.quick):
        classes = [k for k in range(4) if 0.01 < (truth == k).mean() < 0.99]
        cells = []
        for n_known, figures in everything.items():
            rng = np.random.default_rng([n_known, len(truth)])
            n_draws = 5 if options.quick else N_DRAWS
            found = [measure(codes == k, truth == k, n_known, n_draws, rng) for k in classes]
            figures += found
            cells += row_of(n_known, found)
        n_sets += 1
        print(name, *cells, sep=" | ", flush=True)
    n_classes = len(everything[50])
    rows.append(
        [
            f"{n_classes} classes of {n_sets} sets",
            *(cell for n, found in everything.items() for cell in row_of(n, found)),
        ]
    )
    lowest = ", ".join(f"{min(one[0, 0] for one in found):.0%} with {n}" for n, found in everything.items())
    note = f"Cells: coverage / mean width / mean error. Lowest coverage of one class, corrected: {lowest}."
    run.table(PLACE, COLUMNS, rows, note)


def row_of(n_known: int, found: list[np.ndarray]) -> list[str]:
    """The cells of all methods, or of the first alone where more answers are known."""
    means = np.mean(found, axis=0)
    return [f"{covers:.0%} / {width:.2f} / {error:.3f}" for covers, width, error in means[: 3 if n_known == 50 else 1]]


if __name__ == "__main__":
    main()
