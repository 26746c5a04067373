"""Intraclass correlations: how much of the variance of ratings is between examples, in the six usual forms."""

from __future__ import annotations

import numpy as np
from scipy import stats

from crowdwise._arrays import Array, Floats
from crowdwise.crowd.coefficients import Estimate
from crowdwise.labels.crowd_labels import CrowdLabels


def intraclass_correlations(labels: CrowdLabels, values: Floats, confidence: float = 0.95) -> dict[str, Estimate]:
    """Shrout and Fleiss's forms by name: ICC(1,1) to ICC(3,k).

    One-way forms take all examples with two ratings or more; k is the mean number of their ratings, as ANOVA of unequal
    groups has it. Two-way forms take the examples that all annotators rated, and are left out where there are
    fewer than two. Intervals are exact for ICC(1) and ICC(3), Satterthwaite's for ICC(2), if errors are normal.

    Parameters
    ----------
    labels : CrowdLabels
    values : ndarray of shape (n_labels,)
        The numbers that labels stand for.
    confidence : float, default=0.95

    Returns
    -------
    forms : dict from str to Estimate

    References
    ----------
    Shrout and Fleiss (1979), Intraclass correlations. McGraw and Wong (1996), Forming inferences about some intraclass
    correlation coefficients.
    """
    number = labels.labels_per_example
    forms = _one_way(labels.example_index, values, number, confidence)
    complete = number == labels.n_annotators
    if labels.n_annotators > 1 and complete.sum() > 1:
        table = np.empty((labels.n_examples, labels.n_annotators))
        table[labels.example_index, labels.annotator_index] = values
        forms |= _two_way(table[complete], confidence)
    order = sorted(forms, key=lambda name: (name[-2] == "k", name))
    return {name: forms[name] for name in order}


def _one_way(example: Array, values: Floats, number: Array, confidence: float) -> dict[str, Estimate]:
    keep = (number > 1)[example]
    _, example = np.unique(example[keep], return_inverse=True)
    values = values[keep]
    size = np.bincount(example)
    n, total = len(size), len(values)
    if n < 2:
        return {}
    mean = np.bincount(example, values) / size
    between = float((size * (mean - values.mean()) ** 2).sum()) / (n - 1)
    within = float(((values - mean[example]) ** 2).sum()) / (total - n)
    k = (total - float((size**2).sum()) / total) / (n - 1)
    single = _from_ratio(between, within, k, n - 1, total - n, confidence)
    return {"ICC(1,1)": single, "ICC(1,k)": single.of_mean(k)}


def _two_way(table: Floats, confidence: float) -> dict[str, Estimate]:
    n, k = table.shape
    rows, columns, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    between = k * float(((rows - mean) ** 2).sum()) / (n - 1)
    raters = n * float(((columns - mean) ** 2).sum()) / (k - 1)
    freedom = (n - 1) * (k - 1)
    error = float(((table - rows[:, np.newaxis] - columns + mean) ** 2).sum()) / freedom
    consistent = _from_ratio(between, error, k, n - 1, freedom, confidence)
    absolute = _absolute(between, raters, error, n, k, confidence)
    forms = {"ICC(2,1)": absolute, "ICC(3,1)": consistent}
    return forms | {name.replace("1)", "k)"): form.of_mean(k) for name, form in forms.items()}


def _from_ratio(between: float, within: float, k: float, above: int, below: int, confidence: float) -> Estimate:
    """The correlation by a ratio of mean squares, whose interval is that of F."""
    if between <= 0 and within <= 0:
        return Estimate(np.nan, np.nan, np.nan)
    if within <= 0:
        return Estimate(1.0, 1.0, 1.0)
    tail = (1 + confidence) / 2
    ratio = between / within
    ends = (ratio, ratio / stats.f.ppf(tail, above, below), ratio * stats.f.ppf(tail, below, above))
    return Estimate(*(float((x - 1) / (x + k - 1)) for x in ends))


def _absolute(between: float, raters: float, error: float, n: int, k: int, confidence: float) -> Estimate:
    """Agreement in absolute terms: raters are a random draw, and their offsets count as errors."""
    whole = between + (k - 1) * error + k / n * (raters - error)
    if whole <= 0:
        return Estimate(np.nan, np.nan, np.nan)
    value = (between - error) / whole
    if error <= 0:
        return Estimate(value, np.nan, np.nan)
    share = k * value * raters / error
    rest = n * (1 + (k - 1) * value) - k * value
    freedom = (k - 1) * (n - 1) * (share + rest) ** 2 / ((n - 1) * share**2 + rest**2)
    tail = (1 + confidence) / 2
    high, low = stats.f.ppf(tail, n - 1, freedom), stats.f.ppf(tail, freedom, n - 1)
    noise = k * raters + (k * n - k - n) * error
    return Estimate(
        float(value),
        float(n * (between - high * error) / (high * noise + n * between)),
        float(n * (low * between - error) / (noise + n * low * between)),
    )
