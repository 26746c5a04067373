"""How far the annotators agree, and how many independent votes their labels carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdwise._limits import AGREEMENT, ENOUGH_TRUTHS, MOSTLY_INDEPENDENT
from crowdwise._text import count
from crowdwise.crowd._agreement import agreement
from crowdwise.crowd._disagreement import disagreement
from crowdwise.crowd.coefficients import krippendorff_alpha
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting._words import decimal, interval, rounded
from crowdwise.reporting.fit import Fit, Summary, estimate, plain
from crowdwise.results._error_correlation import votes_by_truth
from crowdwise.results.fit_results import is_representative
from crowdwise.truths.check import HALF_WIDTH

PAGES = ()  # it has its place in the first sentences


def data(fit: Fit) -> dict[str, Any]:
    """Krippendorff's alpha, and the number of independent votes."""
    return {"alpha": alpha_interval(fit.labels), "votes": _votes(fit)}


def alpha_interval(labels: CrowdLabels) -> dict[str, Any]:
    """Krippendorff's alpha with an interval over examples that might have been drawn instead.

    All None if no example has two labels. If classes have an order, it is the one that uses it.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.reporting.agreement import alpha_interval
    >>> alpha_interval(CrowdLabels.from_matrix([[0, 0], [1, 1], [0, 1], [1, 1]] * 25))["value"] > 0.4
    True
    """
    paired = labels.labels_per_example > 1
    if not paired.any():
        return estimate(np.nan)
    kept = labels[paired]
    if labels.scale.name == "ordinal":
        found = agreement(kept, min_shared=len(kept) + 1).alpha
        return estimate(found.value, found.low, found.high)
    alpha = krippendorff_alpha(kept)
    n, n_labels = kept.labels_per_example, kept.n_labels
    within = disagreement(kept, relative_to=None) / (n - 1)
    if kept.classes is None:
        spread = (kept.values - kept.values.mean()) ** 2
        at_random, moved = spread.mean(), spread - spread.mean()
    else:
        share = kept._tally.sum(axis=0) / n_labels
        at_random, moved = 2 * (1 - (share**2).sum()), 4 * ((share**2).sum() - share[kept.values])
    if not at_random > 0:
        return estimate(alpha)
    # How far one example more of each kind would move alpha, which is a ratio of two means.
    mean_within = within.sum() / n_labels
    influence = mean_within / at_random * kept._sum_per_example(moved) - (within - mean_within * n)
    error = float(np.sqrt((influence**2).sum())) / (n_labels * at_random)
    return estimate(alpha, alpha - HALF_WIDTH * error, min(alpha + HALF_WIDTH * error, 1.0))


def _votes(fit: Fit) -> dict[str, Any]:
    """How many independent votes there are, how that is known, and how many annotators share one, and why."""
    results, fitted = fit.results, fit.results.fitted
    shared = 0 if results.vote_weight is None else int((results.vote_weight < 1).sum())
    why = "groups were given" if fitted is not None and fitted.sharing.given else "their labels are near copies"
    votes = {"effective": plain(results.effective_votes), "shared": shared, "why": why, "truths": 0}
    if fitted is None:
        return votes
    n_truths = int(((fit.answers >= 0) & (fit.labels.labels_per_example > 1)).sum())
    if n_truths < ENOUGH_TRUTHS or not is_representative(results, fit.labelled, fit.answers):
        return votes
    effective = votes_by_truth(results, fit.labels, fit.answers)
    return votes | {"effective": effective, "truths": n_truths}


def alpha_name(*, ordered: bool) -> str:
    """What the agreement is called: where classes have an order, alpha knows it."""
    return f"Krippendorff's alpha{' for ordered labels' if ordered else ''}"


def agreement_words(alpha: Mapping[str, float | None]) -> str:
    """How far annotators agree, by an alpha that is known."""
    value, low = alpha["value"], alpha.get("low")
    assert value is not None
    if value < 0:
        return "agree less than by chance"
    if low is not None and low <= 0:
        return "agree little more than by chance"
    return f"agree {next(word for least, word in AGREEMENT if value >= least)}"


def agreement_sentence(summary: Summary) -> str:
    """How far the annotators agree beyond chance."""
    alpha, who = summary["alpha"], count(summary["size"]["annotators"], "annotator")
    if summary["size"]["annotators"] == 1:
        return "There is one annotator, so neither agreement nor accuracy can be estimated."
    if alpha["value"] is None:
        if summary["size"]["labels_per_example"]["max"] < 2:
            return f"No two of these {who} share an example, so their accuracies cannot be compared."
        return f"All labels of these {who} are the same, so agreement beyond chance is unknown."
    span = "" if alpha["low"] is None else f" (95% interval {interval(alpha)})"
    name = alpha_name(ordered=summary.get("ordered", False))
    return (
        f"These {who} {agreement_words(alpha)}: {name} is {decimal(alpha['value'])}{span}, where 0 is chance and 1 is "
        "perfect."
    )


def votes_sentence(summary: Summary) -> str:
    """How many independent votes an example has by known answers, and who shares one.

    What labels alone say is left out: on real crowds it is a half to two thirds of what known answers show.
    """
    votes = summary["votes"]
    if summary["size"]["annotators"] == 1:
        return ""
    shared = f"{count(votes['shared'], 'annotator')} share votes: {votes['why']}." if votes["shared"] else ""
    if not votes["truths"]:
        return shared
    labels = summary["size"]["labels_per_example"]["mean"]
    independent = votes["effective"] >= MOSTLY_INDEPENDENT * labels
    return (
        f"{'Errors are mostly independent' if independent else 'Annotators make the same mistakes'}: {rounded(labels)} "
        f"labels carry about as much information as {rounded(votes['effective'])} independent ones (measured on "
        f"{count(votes['truths'], 'known answer')}). {shared}"
    ).rstrip()


def lines(summary: Summary) -> list[tuple[str, str]]:
    """The same for a terminal."""
    return [("Agreement", agreement_sentence(summary)), ("Votes", votes_sentence(summary))]


def number(summary: Summary) -> dict[str, str]:
    """The agreement on the first screen."""
    alpha = summary["alpha"]
    value = "–" if alpha["value"] is None else decimal(alpha["value"])
    span = "" if alpha["low"] is None else f", {interval(alpha)}"
    return {"value": value, "name": "agreement beyond chance", "note": alpha_name(ordered=summary["ordered"]) + span}
