"""Labels -> how far annotators agree, in the numbers that are usually reported, each with an interval."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_choice, check_number, check_seed, check_whole
from crowdwise.crowd.coefficients import (
    Coefficient,
    Estimate,
    Patterns,
    alpha_interval,
    alpha_nominal,
    alpha_ordinal,
    chance_corrected,
    fleiss_chance,
    gwet_chance,
    patterns_of_levels,
    patterns_of_numbers,
    percent_agreement,
    resamples,
    uniform_chance,
)
from crowdwise.crowd.icc import intraclass_correlations
from crowdwise.crowd.kappas import PairAgreement, Weights, distances, kappas_of_pairs, resampled_kappas
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import shown
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName

# With more levels than this, only alpha of interval data and percent agreement are given.
_MOST_LEVELS = 100
# With more pairs than this, kappas have no intervals.
_MOST_PAIRS = 1000


@dataclass(frozen=True, repr=False, eq=False)
class Agreement:
    """How far annotators agree, in the numbers that are usually reported; prints as a few lines of text.

    Parameters
    ----------
    scale : {"nominal", "ordinal", "interval"}
        That of the labels.
    weights : {"linear", "quadratic"} or None
        How AC2 and the kappas weigh levels that are further apart; None for nominal labels.
    confidence : float
        Level of the intervals.
    n_examples, n_annotators, n_labels : int
        Size of the crowd; only examples with two labels or more are counted.
    alpha : Estimate
        Krippendorff's alpha.
    ac : Estimate
        Gwet's AC1 for nominal labels, else AC2. It depends on how many classes there are, with or without labels.
    fleiss, brennan_prediger : Estimate
        Kappas by the chance that labels are drawn from all labels, or evenly from all classes; weighted as AC2 is.
    percent : Estimate
        Share of pairs of labels of an example that are the same, averaged over examples. Not corrected for chance.
    icc : dict from str to Estimate
        Intraclass correlations by name, ICC(1,1) to ICC(3,k), if labels are numbers. One-way forms take all examples
        with two labels or more, two-way forms those that everybody labelled. Intervals are those of F.
    pairs : PairAgreement
        Cohen's kappa of every pair of annotators, weighted for ordinal and interval labels.
    notes : tuple of str
        What is undefined or left out, and why.
    """

    scale: ScaleName
    weights: Weights | None
    confidence: float
    n_examples: int
    n_annotators: int
    n_labels: int
    alpha: Estimate
    ac: Estimate
    fleiss: Estimate
    brennan_prediger: Estimate
    percent: Estimate
    icc: dict[str, Estimate]
    pairs: PairAgreement
    notes: tuple[str, ...]

    def _named(self) -> dict[str, Estimate]:
        return {
            "Krippendorff's alpha": self.alpha,
            "Gwet's AC1" if self.weights is None else "Gwet's AC2": self.ac,
            "Fleiss' kappa": self.fleiss,
            "Brennan-Prediger": self.brennan_prediger,
            "percent agreement": self.percent,
            **self.icc,
        }

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else f", {self.weights} weights"
        lines = [
            f"Agreement of {self.n_annotators:,} annotators on {self.n_examples:,} examples with two labels or more "
            f"({self.scale}{weighted}; {100 * self.confidence:g}% intervals)",
            *(f"  {name:21} {estimate}" for name, estimate in self._named().items() if self._applies(estimate)),
            *(f"  {line}" for line in self._pairs_in_words()),
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _applies(self, estimate: Estimate) -> bool:
        """Whether to print it: what needs levels is left out for ratings without, and a note says so."""
        return self.scale != "interval" or np.isnan(self.alpha.value) or not np.isnan(estimate.value)

    def _pairs_in_words(self) -> list[str]:
        known = self.pairs.kappa[~np.isnan(self.pairs.kappa)]
        if len(known) == 0:
            return [] if self.scale == "interval" else ["Cohen's kappa: of no pair"]
        return [
            f"Cohen's kappa of {len(known):,} pairs: median {np.median(known):.3f}, "
            f"from {known.min():.3f} to {known.max():.3f}"
        ]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON; NaN is None."""
        measures = {name: _without_nan(asdict(estimate)) for name, estimate in self._named().items()}
        columns = {name: np.asarray(column).tolist() for name, column in vars(self.pairs).items()}
        pairs = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {
            "scale": self.scale,
            "weights": self.weights,
            "confidence": self.confidence,
            "examples": self.n_examples,
            "annotators": self.n_annotators,
            "labels": self.n_labels,
            "measures": measures,
            "pairs": [_without_nan(pair) for pair in pairs],
            "notes": list(self.notes),
        }

    def to_frame(self) -> Any:
        """A data frame with the columns "measure", "value", "low" and "high"; the kappas are in ``pairs.to_frame()``.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        estimates = self._named()
        columns = {
            name: np.array([getattr(estimate, name) for estimate in estimates.values()])
            for name in ("value", "low", "high")
        }
        return make_frame({"measure": np.array(list(estimates), dtype=object)} | columns)


def agreement(
    labels: Any,
    *,
    weights: Weights | None = None,
    min_shared: int = 10,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Agreement:
    """Krippendorff's alpha, Gwet's AC, kappas, percent agreement and intraclass correlations, each with an interval.

    Intervals are percentiles of a bootstrap over examples, and over the shared examples for a pair of annotators: they
    are about other examples, not about other annotators. Resamples in which a coefficient is undefined are skipped.
    Those of intraclass correlations are by the F distribution.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Their scale decides, see `CrowdLabels.with_scale`. Nominal: labels differ or do not. Ordinal: classes have an
        order, that of ``labels.classes``. Interval: labels are numbers.
    weights : {"linear", "quadratic"} or None, default=None
        How AC2 and the kappas weigh levels that are further apart: by the steps between them (ordinal), or the
        difference of the numbers (interval), or the square of it. None is quadratic, as alpha is; nominal labels have
        no weights.
    min_shared : int, default=10
        Leave out pairs of annotators with fewer examples in common.
    n_resamples : int, default=1000
        How many bootstrap resamples.
    confidence : float, default=0.95
        Level of the intervals.
    random_state : int, Generator or None, default=0
        Seed of the resamples.

    Returns
    -------
    agreement : Agreement
        With `alpha`, `ac`, `fleiss`, `brennan_prediger` and `percent`, each with `value`, `low` and `high`; `icc`, and
        `pairs`.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability. Gwet (2014), Handbook of inter-rater reliability,
    4th edition. Fleiss (1971), Measuring nominal scale agreement among many raters. Brennan and Prediger (1981),
    Coefficient kappa. Cohen (1968), Weighted kappa. Shrout and Fleiss (1979), Intraclass correlations.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, agreement
    >>> labels = CrowdLabels.from_matrix([[1, 1, 2], [2, 2, 2], [3, 4, 3], [4, 4, None], [1, 2, 1]])
    >>> found = agreement(labels.with_scale("ordinal"), min_shared=4)
    >>> round(found.alpha.value, 3), bool(found.alpha.low < found.alpha.value < found.alpha.high)
    (0.793, True)
    >>> found.to_frame()["measure"].tolist()[:5]
    ["Krippendorff's alpha", "Gwet's AC2", "Fleiss' kappa", 'Brennan-Prediger', 'percent agreement']
    """
    crowd = as_labels(labels, scale=None)
    scale = crowd.scale.name
    weights = _check_weights(weights, scale)
    check_whole("min_shared", min_shared)
    check_whole("n_resamples", n_resamples)
    confidence = check_number("confidence", confidence, above=True, high=1.0)
    rng = check_seed(random_state)
    paired = crowd.labels_per_example > 1
    if not paired.any():
        raise LabelError("no example has two labels: there is nothing to compare.")
    levelled, places, patterns = _on_scale(crowd)
    distance = None if patterns.counts is None else distances(places, weights)
    coefficients: dict[str, Coefficient] = {"alpha": _ALPHAS[scale], "percent": percent_agreement}
    if distance is not None:
        coefficients |= {name: chance_corrected(distance, chance) for name, chance in _CHANCES.items()}
    estimates = _estimates(coefficients, patterns, n_resamples, confidence, rng)
    if distance is None:
        nothing = np.zeros(0)
        pairs = PairAgreement(nothing, nothing, nothing.astype(np.int64), nothing, nothing, nothing)
    else:
        pairs = _kappas(levelled, distance, min_shared, n_resamples, confidence, rng)
    undefined = Estimate(np.nan, np.nan, np.nan)
    return Agreement(
        scale=scale,
        weights=weights,
        confidence=confidence,
        n_examples=int(paired.sum()),
        n_annotators=int((crowd[paired].labels_per_annotator > 0).sum()),
        n_labels=int(crowd.labels_per_example[paired].sum()),
        alpha=estimates["alpha"],
        **{name: estimates.get(name, undefined) for name in _CHANCES},
        percent=estimates["percent"],
        icc=_intraclass(crowd, confidence),
        pairs=pairs,
        notes=(*_notes(levelled, estimates, pairs), *_without_width(patterns, confidence)),
    )


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in values.items()}


_ALPHAS: dict[ScaleName, Coefficient] = {
    "nominal": alpha_nominal,
    "ordinal": alpha_ordinal,
    "interval": alpha_interval,
}


_CHANCES = {"ac": gwet_chance, "fleiss": fleiss_chance, "brennan_prediger": uniform_chance}


def _intraclass(crowd: CrowdLabels, confidence: float) -> dict[str, Estimate]:
    """For ratings, and for levels that are numbers."""
    values = crowd.values if crowd.classes is None else crowd.classes[crowd.values]
    is_number = crowd.scale.has_order and values.dtype.kind in "iuf"
    return intraclass_correlations(crowd, _standard(values.astype(np.float64)), confidence) if is_number else {}


def _check_weights(weights: Any, scale: ScaleName) -> Weights | None:
    check_choice("weights", weights, ("linear", "quadratic", None))
    if scale == "nominal":
        if weights is not None:
            raise ValueError('nominal labels have no order to weigh: give them one, labels.with_scale("ordinal").')
        return None
    return weights or "quadratic"


def _on_scale(crowd: CrowdLabels) -> tuple[CrowdLabels, Floats, Patterns]:
    """Labels as levels, the places of the levels on the scale, and patterns of them.

    Ratings of too many values to be levels stay as they are; the places are those of the labels then.
    """
    if crowd.classes is None:
        levels, codes = np.unique(crowd.values, return_inverse=True)
        if len(levels) > _MOST_LEVELS:
            places = _standard(crowd.values)
            return crowd, places, patterns_of_numbers(crowd, codes, places)
        crowd = replace(crowd, values=codes, classes=levels)
    assert crowd.classes is not None
    places = np.arange(len(crowd.classes), dtype=np.float64)
    if crowd.scale.name == "interval":
        places = _standard(crowd.classes.astype(np.float64))
    return crowd, places, patterns_of_levels(crowd, places)


def _standard(numbers: Floats) -> Floats:
    """Numbers as shares of their range, so that squares neither vanish nor overflow."""
    with np.errstate(over="ignore"):
        span = float(np.ptp(numbers))
    if not np.isfinite(span):
        raise LabelError("the labels are too far apart for their differences to be squared: rescale them.")
    return (numbers - numbers.min()) / span if span > 0 else np.zeros(len(numbers))


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
    estimates = {}
    for name, coefficient in coefficients.items():
        value = coefficient(as_they_are, patterns)
        low, high = _interval(value, np.concatenate(drawn[name])[np.newaxis], confidence)
        estimates[name] = Estimate(float(value[0]), float(low[0]), float(high[0]))
    return estimates


def _interval(value: Floats, drawn: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Percentiles of the resamples in which a number is defined, row by row; NaN where the number itself is not."""
    ends = np.full((2, len(value)), np.nan)
    defined = ~np.isnan(value) & ~np.isnan(drawn).all(axis=1)
    if defined.any():
        tail = (1 - confidence) / 2
        ends[:, defined] = np.nanquantile(drawn[defined], [tail, 1 - tail], axis=1)
    return ends[0], ends[1]


def _kappas(
    labels: CrowdLabels,
    distance: Floats,
    min_shared: int,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> PairAgreement:
    """Kappas of pairs, with intervals if there are not too many."""
    first, second, n_shared, kappa = kappas_of_pairs(labels, distance, min_shared)
    low, high = np.full((2, len(first)), np.nan)
    if len(first) <= _MOST_PAIRS:
        low, high = _interval(kappa, resampled_kappas(labels, first, second, distance, n_resamples, rng), confidence)
    return PairAgreement(labels.annotators[first], labels.annotators[second], n_shared, kappa, low, high)


def _notes(labels: CrowdLabels, estimates: dict[str, Estimate], pairs: PairAgreement) -> list[str]:
    notes = []
    if np.isnan(estimates["alpha"].value):
        notes.append(
            "all labels that can be compared are the same, so alpha and the kappas are undefined: this may be "
            "agreement or the habit of giving one answer"
        )
    if labels.classes is None:
        notes.append(f"the ratings have more than {_MOST_LEVELS} different values: AC2 and kappas need levels")
    elif labels.scale.name == "ordinal" and labels.classes.dtype.kind not in "biuf":
        notes.append(f"the levels are in the order {_levels_in_words(labels.classes)}")
    if len(pairs) > _MOST_PAIRS:
        notes.append(f"kappas have intervals for at most {_MOST_PAIRS:,} pairs, and there are {len(pairs):,}")
    return notes


def _without_width(patterns: Patterns, confidence: float) -> list[str]:
    """What is reported if annotators agree on all examples alike, which no resample changes."""
    part = patterns.only_paired()
    share = part.same / (part.n_labels * (part.n_labels - 1))
    if part.counts is None or share.min() < share.max():
        return []
    unlike = 1 - (1 - confidence) ** (1 / part.times.sum())  # if more were otherwise, one would be among these
    return [
        f"annotators agree on {100 * share[0]:.3g}% of the pairs of labels of every example, so the interval of "
        f"percent agreement has no width; up to {100 * unlike:.2g}% of other examples may still differ"
    ]


def _levels_in_words(classes: Array) -> str:
    return " < ".join(shown(name) for name in classes[:8]) + (" < ..." if len(classes) > 8 else "")
