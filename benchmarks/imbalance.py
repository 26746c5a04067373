"""A rare class: throw examples of the larger class away, as the paper did, or weight classes by the consensus?

python benchmarks/imbalance.py sets           one share of the rare class, 100 versions of six data sets
python benchmarks/imbalance.py dials          shares of 1 to 50 %, four crowds; means over the six sets
python benchmarks/imbalance.py frequencies    how well the share of the rare class is estimated

A version has two thirds of each class to learn from and the rest to test; of the smaller class so many are kept that it
has the wanted share. Crowds: "even" are ten annotators who are right with a probability of their own anywhere, from
0.65 to 0.95; "p = 1" to "p = 5" are the paper's simulated annotators (ten, one always right and one always
wrong), who err near the boundary of a linear model. Nothing is drawn again. All methods get the same labels. "By truth"
drops examples of the larger class by the truth, as the paper did, "by vote" by the majority vote, which is all that one
has in practice; "all" keeps all; "balanced" weights classes by the consensus of every round, "by frequencies" by the
class frequencies that Dawid and Skene's model estimates once. AU-PRC is that of the wanted share in the test part too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifierCV, aggregate, rate, simulate_annotators
from crowdwise.datasets import fetch_libsvm
from crowdwise.em import Confusion
from crowdwise.exceptions import CrowdWarning
from crowdwise.model_selection import balanced_subsample

PAGE = "docs/evidence/weighting.md"
# Web pages, census, genes, cells, patients, credit.
SETS = ("w5a", "a5a", "splice_scale", "breast-cancer_scale", "diabetes_scale", "german.numer_scale")
CROWDS = ("even", "p = 1", "p = 2", "p = 5")
SHARES = (0.01, 0.05, 0.2, 0.5)
MOST_NEGATIVE, FEWEST_POSITIVE, N_COMPONENTS, N_KNOWN = 400, 5, 50, 50
METHODS = ("by truth", "by vote", "all", "balanced", "by frequencies")
ESTIMATES = ("majority vote", "all labels", "`aggregate(labels)`", "Dawid and Skene", f"{N_KNOWN} known answers")
PLACES = {part: Place(PAGE, f"imbalance {part}") for part in ("sets", "dials", "frequencies")}


@cache
def pool(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All examples of a set, at most so many; wide ones as components. +1 is the smaller class."""
    if name == "simulated":
        X, y = make_classification(900, 10, weights=(0.7,), random_state=0)
        return X, np.where(y == 1, 1, -1)
    data = fetch_libsvm(name)
    X, truth = data.X, np.asarray(data.truth)
    if sparse.issparse(X):
        X = TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(X)
    return X, truth if (truth > 0).mean() <= 0.5 else -truth


def version(name: str, share: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Features and truth to learn from, with this share of the rare class, and to test."""
    X, truth = pool(name)
    parts = []
    for side in (1, -1):
        rows = rng.permutation(np.flatnonzero(truth == side))
        parts.append((rows[: 2 * len(rows) // 3], rows[2 * len(rows) // 3 :]))
    (positive, positive_test), (negative, negative_test) = parts
    negative = negative[:MOST_NEGATIVE]
    n_positive = max(round(share / (1 - share) * len(negative)), FEWEST_POSITIVE)
    if n_positive > len(positive):
        n_positive, negative = len(positive), negative[: round((1 - share) / share * len(positive))]
    rows = rng.permutation(np.append(positive[:n_positive], negative))
    test = np.append(positive_test, negative_test)
    return X[rows], truth[rows], X[test], truth[test]


def labels_of(crowd: str, X: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> CrowdLabels:
    """Labels of all training examples."""
    if crowd == "even":
        right = rng.random((len(truth), 10)) < rng.uniform(0.65, 0.95, 10)
        return CrowdLabels.from_matrix(np.where(right, truth[:, np.newaxis], -truth[:, np.newaxis]))
    # As clear as in the paper's version, in which there is as much of either class.
    subset = balanced_subsample(truth, random_state=rng)
    scores = RidgeClassifier(alpha=1.0).fit(X[subset], truth[subset]).decision_function(X)
    scores = np.clip(scores / np.abs(scores[subset]).max(), -1, 1)
    clarity = float(crowd.removeprefix("p = "))
    return simulate_annotators(X, truth, clarity=clarity, scores=scores, paper=True, random_state=rng)


def dawid_skene(labels: CrowdLabels) -> float:
    """The share of the rare class by the published model."""
    prior = aggregate(labels, annotator_model=Confusion(), errors_in_common=False).class_prior
    assert prior is not None
    return float(np.clip(prior[-1], 1e-3, 1 - 1e-3)) if len(prior) > 1 else 1e-3


def work(labels: CrowdLabels, truth: np.ndarray, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Rows and class weights of the methods."""
    everything = np.arange(len(truth))
    vote = labels.majority(tie="random", random_state=rng)
    by_vote = balanced_subsample(vote, random_state=rng) if len(np.unique(vote)) > 1 else everything
    frequency = dawid_skene(labels)
    weights = {1: 0.5 / frequency, -1: 0.5 / (1 - frequency)}
    return [
        (balanced_subsample(truth, random_state=rng), None),
        (by_vote, None),
        (everything, None),
        (everything, "balanced"),
        (everything, weights),
    ]


def crowd_of(name: str, share: float, crowd: str, seed: int) -> tuple[CrowdLabels, tuple[np.ndarray, ...], Any]:
    """Labels, a version and the generator that drew both."""
    place = SETS.index(name) if name in SETS else len(SETS)
    rng = np.random.default_rng([seed, place, CROWDS.index(crowd), round(100 * share)])
    drawn = version(name, share, rng)
    return labels_of(crowd, *drawn[:2], rng), drawn, rng


@cache
def areas(name: str, share: float, crowd: str, seed: int) -> np.ndarray:
    """AU-ROC and AU-PRC of the methods on one version."""
    labels, (X, truth, X_test, truth_test), rng = crowd_of(name, share, crowd, seed)
    is_rare = truth_test > 0
    weight = np.where(is_rare, share / is_rare.mean(), (1 - share) / (1 - is_rare.mean()))
    found = []
    for rows, class_weight in work(labels, truth, rng):
        model = CrowdRidgeClassifierCV((0.0,), cv=5, tol=1e-4, class_weight=class_weight).fit(X[rows], labels[rows])
        scores = model.decision_function(X_test)
        found.append([roc_auc_score(is_rare, scores), average_precision_score(is_rare, scores, sample_weight=weight)])
    return np.transpose(found)


def estimates(name: str, share: float, crowd: str, seed: int) -> np.ndarray:
    """The true share of the rare class in a version, and what each estimate says."""
    labels, (_, truth, *_), rng = crowd_of(name, share, crowd, seed)
    result = aggregate(labels)
    assert result.class_prior is not None
    known = rng.choice(len(truth), N_KNOWN, replace=False)
    corrected = rate(result, labels, truth=dict(zip(known.tolist(), truth[known], strict=True)), target=1).value
    shares = [(side > 0).mean() for side in (truth, labels.majority(), labels.to_matrix())]
    return np.array([*shares, result.class_prior[-1], dawid_skene(labels), corrected])


def both(means: np.ndarray, digits: int) -> list[str]:
    """A cell per method: AU-ROC/AU-PRC."""
    return [f"{roc:.{digits}f}/{prc:.{digits}f}" for roc, prc in zip(*means, strict=True)]


def sets_table(run: Run, sets: tuple[str, ...], n_versions: int) -> None:
    """Per set, at 5 %."""
    rows = []
    for name in sets:
        means = np.mean([areas(name, 0.05, "even", seed) for seed in range(n_versions)], axis=0)
        rows.append([name, *both(means, 3)])
        print(rows[-1], flush=True)
    note = f"AU-ROC/AU-PRC: 5 % of a rare class, annotators who err evenly, {n_versions} versions of each set."
    run.table(PLACES["sets"], ("data", *METHODS), rows, note)


def means_of(measure: Callable[..., np.ndarray], sets: tuple[str, ...], n_versions: int) -> Iterator[tuple[Any, ...]]:
    """Crowd, share, and the mean over versions of all sets."""
    for crowd, share in product(CROWDS, SHARES):
        drawn = [measure(name, share, crowd, seed) for name in sets for seed in range(n_versions)]
        yield crowd, share, np.mean(drawn, axis=0)


def dials_table(run: Run, sets: tuple[str, ...], n_versions: int) -> None:
    """Means over sets, per crowd and share."""
    rows = []
    for crowd, share, means in means_of(areas, sets, n_versions):
        rows.append([f"{crowd}, {share:.0%}", *both(means, 2)])
        print(rows[-1], flush=True)
    note = f"Means over the {len(sets)} sets, {n_versions} versions of each."
    run.table(PLACES["dials"], ("crowd, rare class", *METHODS), rows, note)


def frequencies_table(run: Run, sets: tuple[str, ...], n_versions: int) -> None:
    """Means of the estimates, per crowd and share."""
    rows = [
        [crowd, *(f"{mean:.1%}" for mean in means)]
        for crowd, share, means in means_of(estimates, sets, n_versions)
        if share < SHARES[-1]
    ]
    columns = ("crowd", "rare class", *ESTIMATES)
    run.table(PLACES["frequencies"], columns, rows, f"Means over the {len(sets)} sets, {n_versions} versions of each.")


PARTS = {"sets": sets_table, "dials": dials_table, "frequencies": frequencies_table}


def main() -> None:
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--versions", type=int, default=100, help="of each data set")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    sets, n_versions = (("simulated",), 1) if options.quick else (SETS, options.versions)
    # Half of the time of the metrics would be their checks.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for part in options.parts:
            PARTS[part](run, sets, n_versions)


if __name__ == "__main__":
    main()
