"""Labels -> how far annotators agree beyond chance: all of them together, and each pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.checks import check_choice, check_number, check_seed, check_whole
from crowdwise.crowd.coefficients import (
    Coefficient,
    Patterns,
    alpha_interval,
    alpha_nominal,
    alpha_ordinal,
    gwet_ac,
    patterns_of_levels,
    patterns_of_numbers,
    percent_agreement,
    resamples,
)
from crowdwise.crowd.disagreement import disagreement
from crowdwise.crowd.resampled_kappas import resampled_kappas
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown
from crowdwise.labels.frames import make_frame

Measurement = Literal["nominal", "ordinal", "interval"]
Weights = Literal["linear", "quadratic"]

# With more levels than this, only alpha of interval data and percent agreement are given.
_MOST_LEVELS = 100
# With more pairs than this, kappas have no intervals.
_MOST_PAIRS = 1000


def krippendorff_alpha(labels: CrowdLabels) -> float:
    """Krippendorff's alpha: agreement corrected for chance, whatever labels are missing.

    One minus the disagreement within examples over the disagreement between any two labels of the crowd. Classes differ
    or do not (nominal); ratings differ by the square of their difference (interval).

    Parameters
    ----------
    labels : CrowdLabels
        Classes or ratings. Examples with fewer than two labels say nothing and are left out.

    Returns
    -------
    alpha : float
        1 for perfect agreement, around 0 for chance, below 0 for less than that. NaN if all labels are the same: nobody
        can show then whether annotators agree or know one answer only.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, krippendorff_alpha
    >>> labels = CrowdLabels.from_matrix([["a", "a", None], ["b", "b", "b"], ["a", "b", "a"], ["b", None, "b"]])
    >>> round(krippendorff_alpha(labels), 3)
    0.625
    """
    n = labels.labels_per_example
    paired = n > 1
    if not paired.any():
        raise LabelError("no example has two labels: there is nothing to compare.")
    kept = labels[paired]
    within = float((disagreement(kept, scale=None) / (n[paired] - 1)).sum()) / kept.n_labels
    at_random = _pair_sum_of_all(kept) / (kept.n_labels * (kept.n_labels - 1))
    return float(1 - within / at_random) if at_random > 0 else float("nan")


def _pair_sum_of_all(labels: CrowdLabels) -> float:
    """What `disagreement` would be if all labels were of one example: the sum over unordered pairs."""
    if labels.classes is None:
        return float(labels.n_labels * ((labels.values - labels.values.mean()) ** 2).sum())
    counts = labels.tally.sum(axis=0, dtype=np.float64)
    return 2.0 * (counts.sum() ** 2 - (counts**2).sum())  # four for a pair that differs


@dataclass(frozen=True, repr=False, eq=False)
class PairAgreement:
    """Cohen's kappa of every pair of annotators who share examples.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs,)
        Names of the two annotators, in the order of the labels' annotators.
    n_shared : ndarray of shape (n_pairs,)
        How many examples both labelled.
    kappa : ndarray of shape (n_pairs,)
        Agreement beyond chance; NaN if both gave one and the same class to all of them.
    low, high : ndarray of shape (n_pairs,) or None, default=None
        Ends of the interval of kappa, where one was asked for.
    """

    first: Array
    second: Array
    n_shared: Codes
    kappa: Floats
    low: Floats | None = None
    high: Floats | None = None

    def __len__(self) -> int:
        return len(self.kappa)

    def __repr__(self) -> str:
        known = self.kappa[~np.isnan(self.kappa)]
        median = f"; median kappa {np.median(known):.2f}" if len(known) else ""
        return f"PairAgreement: {len(self):,} pairs of annotators who share examples{median}"

    def to_frame(self) -> Any:
        """A data frame with the columns "first", "second", "shared", "kappa" and its interval, one row per pair.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        columns = {"first": self.first, "second": self.second, "shared": self.n_shared, "kappa": self.kappa}
        if self.low is not None and self.high is not None:
            columns |= {"low": self.low, "high": self.high}
        return make_frame(columns)


def cohen_kappas(labels: CrowdLabels, *, min_shared: int = 1) -> PairAgreement:
    """Cohen's kappa of every pair of annotators, on the examples that both labelled.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.
    min_shared : int, default=1
        Leave out pairs with fewer examples in common.

    Returns
    -------
    pairs : PairAgreement
        With `first`, `second`, `n_shared` and `kappa`; in proportion to the pairs that share examples, not to all.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, cohen_kappas
    >>> labels = CrowdLabels.from_matrix([[0, 0, None], [1, 1, None], [0, 1, None], [1, 1, 1]])
    >>> pairs = cohen_kappas(labels, min_shared=2)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.n_shared.tolist(), pairs.kappa.tolist()
    ([0], [1], [4], [0.5])
    """
    check_whole("min_shared", min_shared)
    if labels.classes is None:
        raise LabelError('cohen_kappas needs classes, and these labels are real numbers (kind="rating").')
    nominal = _distances(np.arange(len(labels.classes), dtype=np.float64), None)
    first, second, n_shared, kappa = _kappas_of_pairs(labels, nominal, min_shared)
    return PairAgreement(labels.annotators[first], labels.annotators[second], n_shared, kappa)


def _kappas_of_pairs(labels: CrowdLabels, distance: Floats, min_shared: int) -> tuple[Codes, Codes, Codes, Floats]:
    """Pairs of annotators who share enough examples, how many these are, and their kappa.

    It is one minus the distance between their labels over the distance of labels drawn from what each of them uses.
    """
    given = _matrix(labels, np.ones(labels.n_labels))
    first, second, n_shared = _pairs(given, min_shared)
    of_class = [_matrix(labels, (labels.values == k).astype(np.float64)) for k in range(len(distance))]
    use = np.zeros((len(first), len(distance)))  # of each class by the first of the pair, on the examples they share
    for k, of_first in enumerate(of_class):
        use[:, k] = _at(of_first.T @ given, first, second)
    farthest = distance.max(initial=0.0)
    observed, by_chance = n_shared * farthest, np.zeros(len(first))
    for k, of_second in enumerate(of_class):
        near = _matrix(labels, farthest - distance[labels.values, k])  # of unordered classes few are near
        observed -= _at(near.T @ of_second, first, second)
        by_chance += use @ distance[:, k] * _at(given.T @ of_second, first, second)
    kappa = 1 - np.divide(n_shared * observed, by_chance, out=np.full(len(first), np.nan), where=by_chance > 0)
    return first, second, n_shared, kappa


def _matrix(labels: CrowdLabels, per_label: Floats) -> sparse.csr_array:
    """A sparse matrix of examples by annotators with a number for every label; zeros are not stored."""
    stored = per_label != 0
    entries = (per_label[stored], (labels.example_index[stored], labels.annotator_index[stored]))
    return sparse.csr_array(entries, shape=labels.shape)


def _pairs(given: sparse.csr_array, min_shared: int) -> tuple[Codes, Codes, Codes]:
    """The pairs of annotators who share so many examples, sorted, and how many these are."""
    found = sparse.coo_array(sparse.triu(given.T @ given, k=1))
    order = np.lexsort(found.coords[::-1])
    order = order[found.data[order] >= min_shared]
    first, second = (axis[order].astype(np.int64) for axis in found.coords)
    return first, second, found.data[order].astype(np.int64)


def _at(products: sparse.csr_array, rows: Codes, columns: Codes) -> Floats:
    """Entries of a sparse matrix at many places at once; zero where nothing is stored."""
    stored = sparse.coo_array(products)
    width = stored.shape[1]
    key = stored.coords[0].astype(np.int64) * width + stored.coords[1]
    order = np.argsort(key)
    wanted = rows * width + columns
    place = np.minimum(np.searchsorted(key, wanted, sorter=order), max(len(key) - 1, 0))
    if len(key) == 0:
        return np.zeros(len(wanted))
    found = order[place]
    return np.where(key[found] == wanted, stored.data[found], 0.0)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Parameters
    ----------
    value : float
        The number; NaN if it is undefined.
    low, high : float
        Ends of the interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "undefined"
        return f"{self.value:.3f}  ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, repr=False, eq=False)
class Agreement:
    """How far annotators agree, in the numbers that are usually reported; prints as a few lines of text.

    Parameters
    ----------
    kind : {"nominal", "ordinal", "interval"}
        What was taken for the scale of the labels.
    weights : {"linear", "quadratic"} or None
        How AC2 and the kappas weigh levels that are further apart; None for nominal labels.
    confidence : float
        Of the intervals.
    n_examples, n_annotators, n_labels : int
        Size of the crowd; only examples with two labels or more are counted.
    alpha : Estimate
        Krippendorff's alpha.
    ac : Estimate
        Gwet's AC1 for nominal labels, else AC2. It depends on how many classes there are, with or without labels.
    percent : Estimate
        Share of pairs of labels of an example that are the same, averaged over examples. Not corrected for chance.
    pairs : PairAgreement
        Cohen's kappa of every pair of annotators, weighted for ordinal and interval labels.
    notes : tuple of str
        What is undefined or left out, and why.
    """

    kind: Measurement
    weights: Weights | None
    confidence: float
    n_examples: int
    n_annotators: int
    n_labels: int
    alpha: Estimate
    ac: Estimate
    percent: Estimate
    pairs: PairAgreement
    notes: tuple[str, ...]

    def _named(self) -> dict[str, Estimate]:
        return {
            "Krippendorff's alpha": self.alpha,
            "Gwet's AC1" if self.weights is None else "Gwet's AC2": self.ac,
            "percent agreement": self.percent,
        }

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else f", {self.weights} weights"
        lines = [
            f"Agreement of {self.n_annotators:,} annotators on {self.n_examples:,} examples with two labels or more "
            f"({self.kind}{weighted}; {100 * self.confidence:g} % intervals)",
            *(f"  {name:21} {estimate}" for name, estimate in self._named().items()),
            f"  {self._pairs_in_words()}",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _pairs_in_words(self) -> str:
        known = self.pairs.kappa[~np.isnan(self.pairs.kappa)]
        if len(known) == 0:
            return "Cohen's kappa: of no pair"
        return (
            f"Cohen's kappa of {len(known):,} pairs: median {np.median(known):.3f}, "
            f"from {known.min():.3f} to {known.max():.3f}"
        )

    def to_frame(self) -> Any:
        """A data frame with the columns "measure", "value", "low" and "high"; the kappas are in ``pairs.to_frame()``.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        found = self._named()
        columns = {name: np.array([getattr(one, name) for one in found.values()]) for name in ("value", "low", "high")}
        return make_frame({"measure": np.array(list(found), dtype=object)} | columns)


def agreement(
    labels: Any,
    kind: Measurement | None = None,
    *,
    weights: Weights | None = None,
    min_shared: int = 10,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Agreement:
    """Krippendorff's alpha, Gwet's AC1 or AC2, percent agreement and Cohen's kappas, each with an interval.

    The intervals are percentiles of a bootstrap over examples, and over the shared examples for a pair of annotators:
    they say what other examples would change, not what other annotators would. Resamples in which a coefficient is
    undefined are passed over.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes or ratings.
    kind : {"nominal", "ordinal", "interval"} or None, default=None
        The scale. Nominal: labels differ or do not. Ordinal: classes have an order, that of ``labels.classes`` (declare
        it if words are not in alphabetical order). Interval: labels are numbers. None is nominal for classes and
        interval for ratings.
    weights : {"linear", "quadratic"} or None, default=None
        How AC2 and the kappas weigh levels that are further apart: by the steps between them (ordinal), or the
        difference of the numbers (interval), or the square of it. None is quadratic, as alpha is; nominal labels have
        no weights.
    min_shared : int, default=10
        Leave out pairs of annotators with fewer examples in common.
    n_resamples : int, default=1000
        How many bootstrap resamples.
    confidence : float, default=0.95
        Of the intervals.
    random_state : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    agreement : Agreement
        With `alpha`, `ac` and `percent`, each with `value`, `low` and `high`; and `pairs`.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability. Gwet (2014), Handbook of inter-rater reliability,
    4th edition. Cohen (1968), Weighted kappa.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, agreement
    >>> labels = CrowdLabels.from_matrix([[1, 1, 2], [2, 2, 2], [3, 4, 3], [4, 4, None], [1, 2, 1]])
    >>> found = agreement(labels, "ordinal", min_shared=4)
    >>> round(found.alpha.value, 3), bool(found.alpha.low < found.alpha.value < found.alpha.high)
    (0.793, True)
    >>> found.to_frame()["measure"].tolist()
    ["Krippendorff's alpha", "Gwet's AC2", 'percent agreement']
    """
    crowd = labels if isinstance(labels, CrowdLabels) else as_labels(labels)
    kind = check_choice("kind", kind, ("nominal", "ordinal", "interval", None))
    kind = kind or ("nominal" if crowd.classes is not None else "interval")
    weights = _check_weights(weights, kind)
    check_whole("min_shared", min_shared)
    check_whole("n_resamples", n_resamples)
    confidence = check_number("confidence", confidence, above=True, high=1.0)
    rng = check_seed(random_state)
    paired = crowd.labels_per_example > 1
    if not paired.any():
        raise LabelError("no example has two labels: there is nothing to compare.")
    levelled, places, patterns = _on_scale(crowd, kind)
    distance = None if patterns.counts is None else _distances(places, weights)
    coefficients: dict[str, Coefficient] = {"alpha": _ALPHAS[kind], "percent": percent_agreement}
    if distance is not None:
        coefficients["ac"] = gwet_ac(distance)
    found = _estimates(coefficients, patterns, n_resamples, confidence, rng)
    pairs = _no_pairs() if distance is None else _kappas(levelled, distance, min_shared, n_resamples, confidence, rng)
    undefined = Estimate(np.nan, np.nan, np.nan)
    return Agreement(
        kind=kind,
        weights=weights,
        confidence=confidence,
        n_examples=int(paired.sum()),
        n_annotators=int((crowd[paired].labels_per_annotator > 0).sum()),
        n_labels=int(crowd.labels_per_example[paired].sum()),
        alpha=found["alpha"],
        ac=found.get("ac", undefined),
        percent=found["percent"],
        pairs=pairs,
        notes=tuple(_notes(levelled, kind, found, pairs)),
    )


_ALPHAS: dict[Measurement, Coefficient] = {
    "nominal": alpha_nominal,
    "ordinal": alpha_ordinal,
    "interval": alpha_interval,
}


def _check_weights(weights: Any, kind: Measurement) -> Weights | None:
    check_choice("weights", weights, ("linear", "quadratic", None))
    if kind == "nominal":
        if weights is not None:
            raise ValueError(f'nominal labels have no order to weigh: use kind="ordinal" with weights="{weights}".')
        return None
    return weights or "quadratic"


def _on_scale(crowd: CrowdLabels, kind: Measurement) -> tuple[CrowdLabels, Floats, Patterns]:
    """Labels as levels, the places of the levels on the scale, and patterns of them.

    Ratings of too many values to be levels stay as they are; the places are those of the labels then.
    """
    if crowd.classes is None:
        levels, codes = np.unique(crowd.values, return_inverse=True)
        if len(levels) > _MOST_LEVELS:
            if kind != "interval":
                raise LabelError(
                    f"these ratings have {len(levels):,} different values, and {kind} agreement is for at most "
                    f'{_MOST_LEVELS} levels: use kind="interval", or round the ratings first.'
                )
            places = _standard(crowd.values)
            return crowd, places, patterns_of_numbers(crowd, codes, places)
        crowd = replace(crowd, values=codes, classes=levels)
    assert crowd.classes is not None
    places = np.arange(len(crowd.classes), dtype=np.float64)
    if kind == "interval":
        if crowd.classes.dtype.kind not in "biuf":
            raise LabelError(
                f"interval agreement needs numbers, and the classes are {_levels_in_words(crowd.classes)}: use "
                'kind="ordinal" if they have an order, or make the labels numbers first.'
            )
        places = _standard(crowd.classes.astype(np.float64))
    return crowd, places, patterns_of_levels(crowd, places)


def _standard(numbers: Floats) -> Floats:
    """Numbers as shares of their range, so that squares neither vanish nor overflow."""
    with np.errstate(over="ignore"):
        span = float(np.ptp(numbers))
    if not np.isfinite(span):
        raise LabelError("the labels are too far apart for their differences to be squared: rescale them.")
    return (numbers - numbers.min()) / span if span > 0 else np.zeros(len(numbers))


def _distances(places: Floats, weights: Weights | None) -> Floats:
    """How far apart two levels are."""
    apart = np.abs(places[:, np.newaxis] - places)
    if weights is None:
        return (apart > 0).astype(np.float64)
    return apart if weights == "linear" else apart**2


def _estimates(
    coefficients: dict[str, Coefficient],
    patterns: Patterns,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> dict[str, Estimate]:
    """Each coefficient of the examples as they are, with its interval over resamples of them."""
    as_they_are = patterns.times[np.newaxis]
    drawn: dict[str, list[Floats]] = {name: [] for name in coefficients}
    for block in resamples(patterns.times, n_resamples, rng):
        for name, coefficient in coefficients.items():
            drawn[name].append(coefficient(block, patterns))
    found = {}
    for name, coefficient in coefficients.items():
        value = coefficient(as_they_are, patterns)
        low, high = _interval(value, np.concatenate(drawn[name])[np.newaxis], confidence)
        found[name] = Estimate(float(value[0]), float(low[0]), float(high[0]))
    return found


def _interval(value: Floats, drawn: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Percentiles of the resamples in which a number is defined, row by row; NaN where the number itself is not."""
    ends = np.full((2, len(value)), np.nan)
    defined = ~np.isnan(value) & ~np.isnan(drawn).all(axis=1)
    if defined.any():
        tail = (1 - confidence) / 2
        ends[:, defined] = np.nanquantile(drawn[defined], [tail, 1 - tail], axis=1)
    return ends[0], ends[1]


def _no_pairs() -> PairAgreement:
    nothing = np.zeros(0)
    return PairAgreement(nothing, nothing, nothing.astype(np.int64), nothing, nothing, nothing)


def _kappas(
    labels: CrowdLabels,
    distance: Floats,
    min_shared: int,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> PairAgreement:
    """Kappas of pairs, with intervals if there are not too many."""
    first, second, n_shared, kappa = _kappas_of_pairs(labels, distance, min_shared)
    low, high = np.full((2, len(first)), np.nan)
    if len(first) <= _MOST_PAIRS:
        low, high = _interval(kappa, resampled_kappas(labels, first, second, distance, n_resamples, rng), confidence)
    return PairAgreement(labels.annotators[first], labels.annotators[second], n_shared, kappa, low, high)


def _notes(labels: CrowdLabels, kind: Measurement, found: dict[str, Estimate], pairs: PairAgreement) -> list[str]:
    notes = []
    if np.isnan(found["alpha"].value):
        notes.append(
            "all labels that can be compared are the same: whether annotators agree or know one answer only cannot be "
            "told, so alpha and the kappas are undefined"
        )
    if labels.classes is None:
        notes.append(f"the ratings have more than {_MOST_LEVELS} different values: AC2 and kappas need levels")
    elif kind == "ordinal" and labels.classes.dtype == object:
        notes.append(f"the levels are taken in the order {_levels_in_words(labels.classes)}")
    if len(pairs) > _MOST_PAIRS:
        notes.append(f"kappas have intervals for at most {_MOST_PAIRS:,} pairs, and there are {len(pairs):,}")
    return notes


def _levels_in_words(classes: Array) -> str:
    return " < ".join(shown(name) for name in classes[:8]) + (" < ..." if len(classes) > 8 else "")
