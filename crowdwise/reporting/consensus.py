"""How good consensus, majority vote and classifier are: on known answers, or what one overrides of the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools
from crowdwise._text import count
from crowdwise.reporting._svg import (
    BOTTOM,
    LEFT,
    TOP,
    WIDTH,
    Markup,
    interval_rows,
    line,
    picture,
    share_ticks,
    tag,
    text,
)
from crowdwise.reporting._words import interval, percent
from crowdwise.reporting.examples import MOST_ROWS, mean_ratings, rows_of
from crowdwise.reporting.fit import Fit, Summary, accuracy_of, estimate, listed, named
from crowdwise.results.fit_results import is_representative
from crowdwise.truths.check import HALF_WIDTH, share_interval

_UNSURE = 0.8  # below this probability a consensus is called unsure
_MOST_CLASSES = 20
_N_BINS = 20  # of the histogram of confidence
_RARE = 0.05  # a class that is given on fewer of the examples may be a slip
PAGES = (("consensus", "Consensus"),)


def data(fit: Fit) -> dict[str, Any]:
    """The consensus beside known answers and the majority vote, and the examples on which they differ."""
    return {
        "quality": quality(fit),
        "classifier": classifier(fit),
        "truth_check": _truth_check(fit),
        "changed": _changed(fit),
    }


def quality(fit: Fit) -> dict[str, Any]:
    """How good the consensus is likely to be, and where truth is known, is."""
    results, labelled = fit.results, fit.labels.labels_per_example > 0
    known = None
    if fit.known is not None:  # an answer that the fit was given judges nothing
        known = np.where(results.has_truth, np.nan if results.classes is None else -1, fit.known)
    if results.classes is None:
        errors = None if known is None else _rating_errors(fit, known)
        return {"typical_error": float(np.sqrt((results.std**2).mean())), "known": errors}
    names = [named(name) for name in results.classes]
    consensus = np.bincount(results.codes[labelled], minlength=len(names)).tolist()
    majority, given = (fit.votes == 1).sum(axis=0).tolist(), (fit.labels._tally > 0).sum(axis=0).tolist()
    by_class = [
        {"name": name, "majority": one, "consensus": other}
        for name, one, other in zip(names, majority, consensus, strict=True)
    ]
    more = [
        {"name": name, "given": one, "consensus": other}
        for name, one, other in zip(names, given, consensus, strict=True)
        if other > one
    ]
    return {
        "by_class": by_class if len(names) <= _MOST_CLASSES else None,
        "more_than_given": more,
        "tied": int(((fit.votes > 0) & (fit.votes < 1)).any(axis=1).sum()),
        "unsure": int((results.confidence < _UNSURE).sum()),
        "unsure_below": _UNSURE,
        "by_confidence": np.histogram(results.confidence, _N_BINS, (0.0, 1.0))[0].tolist(),
        "known": None if known is None else known_accuracy(fit, known),
    }


def known_accuracy(fit: Fit, truth: Array) -> dict[str, Any]:
    """How often consensus and majority vote are right on the labelled examples of known truth, -1 where unknown.

    With what the consensus states, and whether these examples may be a random draw.
    """
    results = fit.results
    known = np.flatnonzero((truth >= 0) & (fit.labels.labels_per_example > 0))
    ours = (results.codes[known] == truth[known]).astype(np.float64)
    theirs = fit.votes[known, truth[known].astype(np.intp)]
    gap = ours - theirs if len(known) else np.array([np.nan])
    half = HALF_WIDTH * float(gap.std()) / len(gap) ** 0.5
    return {
        "n": len(known),
        "consensus": accuracy_of(ours),
        "majority": accuracy_of(theirs),
        "difference": estimate(gap.mean(), gap.mean() - half, gap.mean() + half),
        "stated": estimate(results.confidence[known].mean() if len(known) else np.nan),
        "at_random": len(known) == 0 or is_representative(results, fit.labels.labels_per_example > 0, truth),
        "reliability": _reliability(fit, truth),
    }


def _rating_errors(fit: Fit, truth: Array) -> dict[str, Any]:
    """Root mean squared errors of the consensus and of the plain mean where truth and ratings are there."""
    at = ~np.isnan(truth) & (fit.labels.labels_per_example > 0)
    answers = {"consensus": fit.results.label, "mean": mean_ratings(fit.labels)}
    if not at.any():
        return {"n": 0, "consensus": None, "mean": None}
    errors = {name: float(np.sqrt(((given - truth)[at] ** 2).mean())) for name, given in answers.items()}
    return {"n": int(at.sum()), **errors}


def classifier(fit: Fit) -> dict[str, Any] | None:
    """How good the classifier alone is, out of fold, against the consensus and known answers; None without one."""
    results, proba = fit.results, fit.results.model_proba
    if proba is None:
        return None
    predicted, labelled = proba.argmax(axis=1), fit.labels.labels_per_example > 0
    known = (fit.answers >= 0) & labelled
    return {
        "consensus": accuracy_of((predicted == results.codes)[labelled & ~results.has_truth]),
        "truth": accuracy_of((predicted == fit.answers)[known]),
        "n_truths": int(known.sum()),
        "out_of_fold": getattr(fit.model, "cross_fit", None) != 0,
    }


def _truth_check(fit: Fit) -> dict[str, Any] | None:
    """How good the consensus is by the known answers of the fit, and the majority vote; how many may follow."""
    check = fit.results.truth_check
    if check is None:
        return None
    unknown = int(((fit.labels.labels_per_example > 0) & ~fit.results.has_truth).sum())
    majority = None
    if fit.results.classes is not None:
        majority = known_accuracy(fit, fit.own_truth)["majority"]["value"]
    return check.plain() | {"unknown": unknown, "majority": majority}


def _changed(fit: Fit) -> dict[str, Any]:
    """Examples whose consensus is not the majority vote, the surest first; ratings far from the plain mean."""
    results = fit.results
    if results.classes is None:
        at = np.flatnonzero(fit.labels.labels_per_example)
        first = np.abs(results.label - mean_ratings(fit.labels))[at]
        return listed(len(at), rows_of(fit, at[np.argsort(-first, kind="stable")[:MOST_ROWS]]))
    differs, tied = changed_examples(fit)
    at = np.flatnonzero(differs)
    surest = at[np.argsort(-results.proba[at].max(axis=1), kind="stable")[:MOST_ROWS]]
    return listed(len(at), rows_of(fit, surest)) | {"ties": int(tied.sum())}


def changed_examples(fit: Fit) -> tuple[Bools, Bools]:
    """Which examples have a consensus that is not the majority's, and which had a tie that the consensus decides.

    Of those whose answer the fit was given neither.
    """
    share = fit.votes[np.arange(len(fit.votes)), fit.results.codes]
    found = (fit.labels.labels_per_example > 0) & ~fit.results.has_truth
    return found & (share == 0), found & (share > 0) & (share < 1)


def known_part(summary: Summary) -> dict[str, Any] | None:
    """How good the consensus is where the answer is known; None if it is known of no example."""
    part: dict[str, Any] | None = summary["quality"]["known"]
    return part if part and part["n"] else None


def quality_sentence(summary: Summary) -> str:
    """How good the consensus is where answers are known; else what it does that the majority vote does not."""
    known = known_part(summary)
    if summary["truth_check"] and not known:
        return truth_sentence(summary)
    if summary["kind"] == "rating":
        return _rating_sentence(summary["quality"], known)
    if known:
        ours, theirs = known["consensus"], known["majority"]
        return (
            f"On the {count(known['n'], 'example')} with a known answer, consensus accuracy is "
            f"{percent(ours['value'], 1)} (95% interval {interval(ours, 100, 1)}) and majority-vote accuracy "
            f"{percent(theirs['value'], 1)} ({interval(theirs, 100, 1)}){_ties_drawn(summary)}{_if_chosen(known)}."
        )
    features = " and uses the features" if summary["model"]["uses_features"] else ""
    if summary["size"]["annotators"] == 1 and not features:
        return "The consensus is the label of the only annotator."
    return f"The consensus weights annotators by their estimated reliability{features}: it {changed_words(summary)}."


def _rating_sentence(quality: dict[str, Any], known: dict[str, Any] | None) -> str:
    if known:
        return (
            f"On the {count(known['n'], 'example')} with a known answer, the root mean squared error of the consensus "
            f"is {known['consensus']:.3g}, that of the plain mean {known['mean']:.3g}."
        )
    return (
        "The consensus weights annotators by their estimated reliability; its standard error is estimated to be "
        f"{quality['typical_error']:.3g} if annotators err independently."
    )


def _if_chosen(known: dict[str, Any]) -> str:
    return "" if known["at_random"] else "; these examples are not a random draw, so this may not hold for the others"


def _ties_drawn(summary: Summary) -> str:
    return ", ties broken at random" if summary["quality"]["tied"] else ""


def changed_words(summary: Summary) -> str:
    """How many answers of the majority the consensus overrides, how many ties it breaks, how many are unsure."""
    part, quality = summary["changed"], summary["quality"]
    changed = f"on {count(part['total'], 'example')}" if part["total"] else "nowhere"
    ties = f" and breaks {count(part['ties'], 'tie')}" if part["ties"] else ""
    unsure = count(quality["unsure"], "example is", "examples are") if quality["unsure"] else "no example is"
    return f"overrides the majority {changed}{ties}; {unsure} below {percent(quality['unsure_below'])} confidence"


def classifier_sentence(summary: Summary) -> str:
    """How good the classifier is on examples that it was not fitted to; nothing without one."""
    words = _classifier_words(summary)
    return f"The classifier’s {words}." if words else ""


def _classifier_words(summary: Summary) -> str:
    part = summary["classifier"]
    if not part:
        return ""
    where = "out-of-fold accuracy" if part["out_of_fold"] else "accuracy on its own training examples"
    found = f"{where} is {percent(part['consensus']['value'], 1)} against the consensus"
    if not part["n_truths"]:
        return found
    true = f"{percent(part['truth']['value'], 1)} ({interval(part['truth'], 100, 1)})"
    return f"{found} and {true} on {count(part['n_truths'], 'known answer')}"


def truth_sentence(summary: Summary) -> str:
    """How good the consensus is by the known answers of the fit, each held out."""
    check = summary["truth_check"]
    used = "Calibrated with" if check.get("at_random", True) else "Annotators were compared on"
    if "error" in check:
        found = f"held-out error {check['error']:.3g} (95% interval {check['low']:.3g} to {check['high']:.3g}), "
        found += f"stated {check['std']:.3g}"
    else:
        found = f"held-out accuracy {percent(check['accuracy'], 1)} (95% interval {interval(check, 100, 1)}), "
        found += f"mean confidence {percent(check['confidence'], 1)}"
        if check["majority"] is not None and summary["size"]["annotators"] > 1:
            found += f"; majority vote {percent(check['majority'], 1)}{_ties_drawn(summary)}"
    return f"{used} {count(check['n'], 'known answer')}: {found}. {_more_truths(check)}".rstrip()


def _more_truths(check: dict[str, Any]) -> str:
    """How exact that would be with more known answers: with as many as are needed, or with all there can be."""
    needed, unknown = check["needed"], check["unknown"]
    if not check.get("at_random", True) and unknown:
        return (
            "These examples are not a random draw, so this may not hold for the others (mean confidence "
            f"{percent(check['others'], 1)}): add answers to examples drawn at random (crowdwise next --at-random)."
        )
    if not needed or not unknown or ("error" in check and needed > unknown):
        return ""
    if "error" in check:
        return f"{needed:,} more would narrow the interval to ±{percent(check['within'])}."
    if needed <= unknown:
        return f"{needed:,} more would narrow the interval to ±{100 * check['within']:.0f} points."
    low, high = share_interval(check["accuracy"], check["n"] + unknown)
    return f"All {unknown:,} others would narrow the interval to ±{50 * float(high - low):.0f} points."


def calibration_sentence(summary: Summary) -> str | None:
    """A word of caution where known answers show that the fit is too sure, or not sure enough."""
    known = known_part(summary)
    if summary["kind"] == "rating" or not known:
        return None
    expected, actual = known["stated"]["value"], known["consensus"]
    if actual["low"] <= expected <= actual["high"]:
        return None
    return (
        f"{'Overconfident' if expected > actual['high'] else 'Underconfident'}: predicted {percent(expected, 1)} "
        f"correct, actual {percent(actual['value'], 1)}. Use confidence to rank examples only, or calibrate it with "
        "these answers (--use-truth; truth=... in Python)."
    )


def rare_class_sentence(summary: Summary) -> str | None:
    """A word of caution where a rare class is the consensus on more examples than anybody gave it to."""
    more = summary["quality"].get("more_than_given") or ()
    rare = [row for row in more if row["given"] < _RARE * summary["size"]["examples"]]
    if not rare:
        return None
    return (
        f"Caution: “{rare[0]['name']}” was given on {count(rare[0]['given'], 'example')} and is the consensus on "
        f"{rare[0]['consensus']:,}. If it is a slip or means no answer, leave it out (--missing, missing=...) and fit "
        "again."
    )


def lines(summary: Summary) -> list[str]:
    """All of it for a terminal."""
    known = known_part(summary)
    if summary["kind"] == "rating":
        return [f"Consensus   {quality_sentence(summary)}"]
    alone = summary["size"]["annotators"] == 1 and not summary["model"]["uses_features"]
    found = [f"Consensus   {'the label of the only annotator' if alone else changed_words(summary)}"]
    if caution := rare_class_sentence(summary):
        found.append(f"            {caution}")
    if words := _classifier_words(summary):
        found.append(f"Classifier  {words}")
    if summary["truth_check"]:
        found.append(f"Truth       {truth_sentence(summary)}")
    if known:
        ours, theirs = known["consensus"], f", majority vote {percent(known['majority']['value'], 1)}"
        found.append(
            f"Truth       {count(known['n'], 'known answer')}: consensus accuracy {percent(ours['value'], 1)} "
            f"({interval(ours, 100, 1)}){theirs if summary['size']['annotators'] > 1 else ''}{_if_chosen(known)}"
        )
    if caution := calibration_sentence(summary):
        found.append(f"            {caution}")
    return found


def numbers(summary: Summary) -> list[dict[str, Any]]:
    """The numbers of the first screen: accuracy where it is measured, what is overridden, what is unsure."""
    quality, part = summary["quality"], summary["changed"]
    if summary["kind"] == "rating":
        error = {"value": f"{quality['typical_error']:.3g}", "name": "estimated error of a rating"}
        single = {"value": f"{summary['size']['single']:,}", "name": "examples with one label"}
        return [error | {"note": "if annotators err independently"}, single | {"note": "not compared"}]
    note = f"and {count(part['ties'], 'tie')} broken" if part["ties"] else "no tie to break"
    changed = {"value": f"{part['total']:,}", "name": "majority answers overridden", "note": note}
    note = f"below {percent(quality['unsure_below'])} confidence"
    unsure = {"value": f"{quality['unsure']:,}", "name": "unsure examples", "note": note, "act": quality["unsure"] > 0}
    return [*_accuracy(summary), changed, unsure]


def _accuracy(summary: Summary) -> list[dict[str, str]]:
    """The measured accuracy of the consensus; without known answers that of the classifier against the consensus."""
    name = "consensus accuracy"
    if known := known_part(summary):
        value, note = known["consensus"]["value"], f"{count(known['n'], 'known answer')}, "
        note += interval(known["consensus"], 100, 1)
    elif check := summary["truth_check"]:
        how = "held out" if check["at_random"] else "not a random draw"
        value, note = check["accuracy"], f"{count(check['n'], 'known answer')}, {how}, {interval(check, 100, 1)}"
    elif part := summary["classifier"]:
        value, name = part["consensus"]["value"], "classifier accuracy"
        note = f"against the consensus{', out of fold' if part['out_of_fold'] else ''}"
    else:
        return []
    return [{"value": percent(value, 1), "name": name, "note": note}]


def accuracies(quality: dict[str, Any], classifier: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Accuracies on known answers by what has them; nothing without known answers."""
    known = quality["known"]
    if not known or not known["n"]:
        return {}
    found = {"consensus": known["consensus"], "majority vote": known["majority"]}
    return found | ({"classifier": classifier["truth"]} if classifier and classifier["n_truths"] else {})


def comparison(summary: Summary) -> Markup | None:
    """Accuracies of consensus, majority vote and classifier on known answers, with intervals; None without any."""
    rows = accuracies(summary["quality"], summary["classifier"])
    if not rows:
        return None
    low = math.floor(10 * max(min(row["low"] for row in rows.values()) - 0.03, 0.0)) / 10
    shown = [
        (name, row["value"], row["low"], row["high"], percent(row["value"], 1).replace("over ", ">"), "")
        for name, row in rows.items()
    ]
    words = "; ".join(f"{name}: {100 * row['value']:.1f}%" for name, row in rows.items())
    label = f"Accuracy on known answers. {words}."
    return interval_rows(shown, (low, 1.0), share_ticks(low), label, "accuracy on known answers")


def _reliability(fit: Fit, truth: Array) -> list[dict[str, Any]]:
    """By tenths of confidence, how many known answers there are, the mean confidence, and how often it is right."""
    known = np.flatnonzero((truth >= 0) & (fit.labels.labels_per_example > 0))
    sure, right = fit.results.confidence[known], (fit.results.codes[known] == truth[known]).astype(np.float64)
    tenth = np.minimum((10 * sure).astype(np.intp), 9)
    found = []
    for k in np.unique(tenth).tolist():
        at = tenth == k
        found.append({"n": int(at.sum()), "stated": float(sure[at].mean()), **accuracy_of(right[at])})
    return found


def confidence_picture(summary: Summary) -> Markup:
    """How many examples have how much confidence."""
    counts, right = summary["quality"]["by_confidence"], WIDTH - 16
    most = max(*counts, 1)
    parts = [
        *_frame(right),
        *(text(LEFT - 8, _up(share) + 4, f"{share * most:,.0f}", anchor="end") for share in (0, 1)),
    ]
    for k, n in enumerate(counts):
        x, width = LEFT + (right - LEFT) * k / len(counts), (right - LEFT) / len(counts)
        kind = "column" if (k + 0.5) / len(counts) >= summary["quality"]["unsure_below"] else "column below"
        if n:
            title = tag("title", f"{n:,} examples with {100 * k // len(counts)}% to {100 * (k + 1) // len(counts)}%")
            box = {"x": x + 1, "y": _up(n / most), "width": width - 2, "height": max(BOTTOM - _up(n / most), 1.0)}
            parts.append(tag("rect", title, **box, rx=1.5, class_=kind))
    words = f"{sum(counts):,} examples by the confidence of their consensus."
    return picture(BOTTOM + 46, f"Histogram: {words}", [*parts, *_confidence_axis(right, "examples")])


def reliability_picture(summary: Summary) -> Markup:
    """Accuracy on known answers against confidence: on the diagonal, confidence is what it states."""
    right = WIDTH - 16
    parts = [*_frame(right), line(LEFT, _up(0), right, _up(1), "diagonal")]
    parts += [text(LEFT - 8, _up(share) + 4, f"{100 * share:.0f}%", anchor="end") for share in (0, 0.5, 1)]
    for row in summary["quality"]["known"]["reliability"]:
        x = LEFT + (right - LEFT) * row["stated"]
        title = tag(
            "title",
            f"{count(row['n'], 'known answer')}: stated {percent(row['stated'])}, right {percent(row['value'])}",
        )
        parts.append(line(x, _up(row["low"]), x, _up(row["high"]), "interval"))
        parts.append(tag("circle", title, cx=x, cy=_up(row["value"]), r=4.5, class_="dot"))
    label = "Reliability: accuracy on known answers against confidence, by tenths."
    return picture(BOTTOM + 46, label, [*parts, *_confidence_axis(right, "accuracy")])


def _up(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _frame(right: float) -> list[Markup]:
    return [line(LEFT, _up(share), right, _up(share), "grid") for share in (0, 0.5, 1)]


def _confidence_axis(right: float, upwards: str) -> list[Markup]:
    marks = [text(LEFT + (right - LEFT) * k / 5, BOTTOM + 18, f"{20 * k}%", anchor="middle") for k in range(6)]
    titles = [text((LEFT + right) / 2, BOTTOM + 38, "confidence", anchor="middle", kind="axis")]
    return [*marks, *titles, text(LEFT, TOP - 6, upwards, kind="axis")]
