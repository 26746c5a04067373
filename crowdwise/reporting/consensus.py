"""How good consensus, majority vote and classifier are: on known answers, or what one overrides of the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools
from crowdwise._limits import ENOUGH_TRUTHS, FEW, MOST_ROWS, N_BINS, RARE_ON_EXAMPLES, UNSURE
from crowdwise._text import count
from crowdwise.reporting._svg import Markup, Plot, histogram, interval_rows, share_ticks
from crowdwise.reporting.examples import mean_ratings, rows_of
from crowdwise.reporting.fit import Fit, Summary, accuracy_of, estimate, listed, named, percent, percent_interval
from crowdwise.results.fit_results import is_representative
from crowdwise.truths.check import RatingCheck, by_tenth, reliability_rows, share_interval

_PERCENT = {k / 5: f"{20 * k}%" for k in range(6)}  # marks of an axis of shares
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
    """How sure the consensus is of how many examples, and where truth is known, how good."""
    results = fit.results
    if results.classes is None:
        return {"typical_error": float(np.sqrt((results.std**2).mean())), "known": _rating_errors(fit)}
    consensus = np.bincount(results.codes[fit.labelled], minlength=len(results.classes)).tolist()
    majority, labelled = (fit.votes == 1).sum(axis=0).tolist(), (fit.labels._tally > 0).sum(axis=0).tolist()
    rows = list(zip(map(named, results.classes), majority, labelled, consensus, strict=True))
    by_class = [{"name": name, "majority": n, "consensus": ours} for name, n, _, ours in rows]
    return {
        "by_class": by_class if len(by_class) <= MOST_ROWS else None,
        "more_than_given": [{"name": name, "given": n, "consensus": ours} for name, _, n, ours in rows if ours > n],
        "tied": int(fit.tied.sum()),
        "ties_broken": int((fit.tied & ~results.has_truth).sum()),
        "fixed": int((fit.labelled & results.has_truth).sum()),
        "unsure": int((results.confidence < UNSURE).sum()),
        "unsure_below": UNSURE,
        "by_confidence": np.histogram(results.confidence[~results.has_truth], N_BINS, (0.0, 1.0))[0].tolist(),
        "known": known_accuracy(fit, fit.judging),
    }


def known_accuracy(fit: Fit, truth: Array) -> dict[str, Any] | None:
    """How often consensus and majority vote are right on the labelled examples of known truth; None without any.

    With what the consensus states, and whether these examples may be a random draw.
    """
    results, known = fit.results, np.flatnonzero((truth >= 0) & fit.labelled)
    if len(known) == 0:
        return None
    sure, ours = results.confidence[known], (results.codes[known] == truth[known]).astype(np.float64)
    return {
        "n": len(known),
        "consensus": accuracy_of(ours),
        "majority": accuracy_of(fit.votes[known, truth[known]]),
        "stated": estimate(sure.mean()),
        "at_random": is_representative(results, fit.labelled, truth),
        "reliability": reliability_rows(by_tenth(sure, ours)),
    }


def _rating_errors(fit: Fit) -> dict[str, Any] | None:
    """Root mean squared errors of the consensus and of the plain mean where truth is known, and what it states."""
    known = ~np.isnan(fit.judging) & fit.labelled
    if not known.any():
        return None
    answers = {"consensus": fit.results.label, "mean": mean_ratings(fit.labels)}
    errors = {name: float(np.sqrt(((ratings - fit.judging)[known] ** 2).mean())) for name, ratings in answers.items()}
    return {"n": int(known.sum()), **errors, "stated": float(np.sqrt((fit.results.std[known] ** 2).mean()))}


def classifier(fit: Fit) -> dict[str, Any] | None:
    """How good the classifier alone is, out of fold, against the consensus and known answers; None without one."""
    results = fit.results
    if fit.model_codes is None:
        return None
    predicted, known = fit.model_codes, (fit.answers >= 0) & fit.labelled
    return {
        "consensus": accuracy_of((predicted == results.codes)[fit.labelled & ~results.has_truth]),
        "truth": accuracy_of((predicted == fit.answers)[known]),
        "n_truths": int(known.sum()),
        "out_of_fold": getattr(fit.model, "cross_fit", None) != 0,
    }


def _truth_check(fit: Fit) -> dict[str, Any] | None:
    """How good the consensus is by the known answers of the fit, and the majority vote; how many may follow."""
    check, known = fit.results.truth_check, fit.labelled & fit.results.has_truth
    if check is None:
        return None
    majority = None if fit.results.classes is None else float(fit.votes[known, fit.answers[known]].mean())
    return check.plain() | {"unknown": int((fit.labelled & ~known).sum()), "majority": majority}


def _changed(fit: Fit) -> dict[str, Any]:
    """Examples whose consensus is not the majority vote, the surest first; ratings far from the plain mean."""
    results = fit.results
    if results.classes is None:
        rows, first = np.flatnonzero(fit.labelled), np.abs(results.label - mean_ratings(fit.labels))
    else:
        rows, first = np.flatnonzero(changed_examples(fit)), results.proba.max(axis=1)
    return listed(len(rows), rows_of(fit, rows[np.argsort(-first[rows], kind="stable")[:MOST_ROWS]]))


def changed_examples(fit: Fit) -> Bools:
    """Which examples have a majority that the consensus overrides; none of those whose answer the fit was given."""
    by_majority = fit.votes[np.arange(len(fit.votes)), fit.results.codes] > 0
    return fit.labelled & ~fit.results.has_truth & ~fit.tied & ~by_majority


def quality_sentence(summary: Summary) -> str:
    """How good the consensus is where answers are known; else what it does that the majority vote does not."""
    if measured := known_sentence(summary) or truth_sentence(summary):
        return measured
    if _is_single_label(summary):
        return "The consensus is the label of the only annotator."
    how = "The consensus weights annotators by their estimated reliability"
    how += " and uses the features" if summary["model"]["uses_features"] else ""
    if summary["kind"] == "rating":
        error = f"{summary['quality']['typical_error']:.3g}"
        return f"{how}; its standard error is estimated to be {error} if annotators err independently."
    return f"{how}: it {changed_words(summary)}."


def _is_single_label(summary: Summary) -> bool:
    return summary["size"]["annotators"] == 1 and not summary["model"]["uses_features"]


def known_sentence(summary: Summary) -> str:
    """How good the consensus is by answers that the fit was not given; nothing without any."""
    known = summary["quality"]["known"]
    if not known:
        return ""
    where = f"On the {count(known['n'], 'example')} with a known answer"
    if summary["kind"] == "rating":
        return (
            f"{where}, the root mean squared error of the consensus is {known['consensus']:.3g}, that of the plain "
            f"mean {known['mean']:.3g}."
        )
    ours, theirs = known["consensus"], known["majority"]
    vote = f" and majority-vote accuracy {percent(theirs['value'], 1)} ({percent_interval(theirs)})"
    chosen = "; these examples are not a random draw, so this may not hold for the others"
    return (
        f"{where}, consensus accuracy is {percent(ours['value'], 1)} (95% interval {percent_interval(ours)})"
        f"{vote + _ties_drawn(summary) if summary['size']['annotators'] > 1 else ''}"
        f"{'' if known['at_random'] else chosen}."
    )


def _ties_drawn(summary: Summary) -> str:
    return ", ties broken at random" if summary["quality"]["tied"] else ""


def changed_words(summary: Summary) -> str:
    """How many answers of the majority the consensus overrides, how many ties it breaks, how many are unsure."""
    total, quality = summary["changed"]["total"], summary["quality"]
    changed = f"on {count(total, 'example')}" if total else "nowhere"
    ties = f" and breaks {count(quality['ties_broken'], 'tie')}" if quality["ties_broken"] else ""
    unsure = count(quality["unsure"], "example is", "examples are") if quality["unsure"] else "no example is"
    return f"overrides the majority {changed}{ties}; {unsure} below {percent(quality['unsure_below'])} confidence"


def classifier_words(summary: Summary) -> str:
    """How good the classifier is on examples that it was not fitted to; nothing without one."""
    part = summary["classifier"]
    if not part:
        return ""
    where = "out-of-fold accuracy" if part["out_of_fold"] else "accuracy on its own training examples"
    measured = []
    if _is_beside_consensus(part):
        measured.append(f"{percent(part['consensus']['value'], 1)} against the consensus")
    if part["n_truths"]:
        true = f"{percent(part['truth']['value'], 1)} ({percent_interval(part['truth'])})"
        measured.append(f"{true} on {count(part['n_truths'], 'known answer')}")
    return f"{where} is {' and '.join(measured)}"


def _is_beside_consensus(part: dict[str, Any]) -> bool:
    """Whether any labelled example has a consensus that is not an answer given to the fit."""
    return part["consensus"]["value"] is not None


def truth_sentence(summary: Summary) -> str:
    """How good the consensus is by the known answers of the fit, each held out; nothing without any."""
    check = summary["truth_check"]
    if not check:
        return ""
    used = "Calibrated with" if check.get("at_random", True) else "Annotators were compared on"
    if "error" in check:
        words = f"held-out error {check['error']:.3g} (95% interval {check['low']:.3g} to {check['high']:.3g}), "
        words += f"stated {check['std']:.3g}"
    else:
        words = f"held-out accuracy {percent(check['accuracy'], 1)} (95% interval {percent_interval(check)}), "
        words += f"mean confidence {percent(check['confidence'], 1)}"
        if summary["size"]["annotators"] > 1:
            words += f"; majority vote {percent(check['majority'], 1)}{_ties_drawn(summary)}"
    return f"{used} {count(check['n'], 'known answer')}: {words}. {_more_truths(check)}".rstrip()


def _more_truths(check: dict[str, Any]) -> str:
    """How exact that would be with more known answers: with as many as are needed, or with all there can be."""
    needed, unknown = check["needed"], check["unknown"]
    if not check.get("at_random", True) and unknown:
        return (
            "These examples are not a random draw, so this may not hold for the others (mean confidence "
            f"{percent(check['others'], 1)}): add answers for examples drawn at random (crowdwise next --at-random)."
        )
    if not needed or not unknown or ("error" in check and needed > unknown):
        return ""
    if "error" in check:
        return f"{needed:,} more would narrow the interval to ±{percent(check['within'])}."
    if needed <= unknown:
        return f"{needed:,} more would narrow the interval to ±{100 * check['within']:.0f} points."
    low, high = share_interval(check["accuracy"], check["n"] + unknown)
    return f"Answers for all {unknown:,} others would give ±{50 * float(high - low):.0f} points."


def calibration_sentence(summary: Summary) -> str:
    """A word of caution where known answers show that confidence is too high or too low; else nothing.

    That is of all known answers, or of those of some confidence.
    """
    known = summary["quality"]["known"]
    if not known:
        return ""
    if summary["kind"] == "rating":
        return _rating_caution(known)
    stated, actual, where = known["stated"]["value"], known["consensus"], ""
    if actual["low"] <= stated <= actual["high"]:
        rows = [row for row in known["reliability"] if row["n"] >= ENOUGH_TRUTHS and _is_far(row)]
        if not rows:
            return ""
        actual = max(rows, key=lambda row: row["n"] * abs(row["stated"] - row["value"]))
        stated, where = actual["stated"], f" on {count(actual['n'], 'example')}"
    return (
        f"{'Overconfident' if stated > actual['value'] else 'Underconfident'}{where}: predicted {percent(stated, 1)} "
        f"correct, actual {percent(actual['value'], 1)}. Use confidence to rank examples only, or calibrate it with "
        "these answers (--use-truth; truth=... in Python)."
    )


def _rating_caution(known: dict[str, Any]) -> str:
    """The same of the standard deviation that ratings state, if it is outside the interval of their error."""
    low, high = RatingCheck(known["n"], known["consensus"], known["stated"]).interval
    if low <= known["stated"] <= high:
        return ""
    return (
        f"{'Overconfident' if known['stated'] < low else 'Underconfident'}: predicted error {known['stated']:.3g}, "
        f"actual {known['consensus']:.3g}. Calibrate it with these answers (--use-truth; truth=... in Python)."
    )


def _is_far(row: dict[str, Any]) -> bool:
    """Whether confidence is off by five points, and by half more than the interval, as several tenths are compared."""
    low, high = (row["value"] + 1.5 * (row[end] - row["value"]) for end in ("low", "high"))
    return bool(abs(row["stated"] - row["value"]) > 0.05 and not low <= row["stated"] <= high)


def rare_class_sentence(summary: Summary) -> str:
    """A word of caution where a rare class is the consensus on more examples than anybody gave it to."""
    more = summary["quality"].get("more_than_given") or ()
    rare = [row for row in more if row["given"] < RARE_ON_EXAMPLES * summary["size"]["examples"]]
    if not rare:
        return ""
    return (
        f"Caution: “{rare[0]['name']}” was given on {count(rare[0]['given'], 'example')} and is the consensus on "
        f"{rare[0]['consensus']:,}. If it is a slip or means no answer, leave it out (--missing, missing=...) and fit "
        "again."
    )


def lines(summary: Summary) -> list[tuple[str, str]]:
    """All of it for a terminal."""
    if summary["kind"] == "rating":
        return [("Consensus", quality_sentence(summary)), ("", calibration_sentence(summary))]
    overrides = "the label of the only annotator" if _is_single_label(summary) else changed_words(summary)
    return [
        ("Consensus", overrides),
        ("", rare_class_sentence(summary)),
        ("Classifier", classifier_words(summary)),
        ("Truth", truth_sentence(summary)),
        ("Truth", known_sentence(summary)),
        ("", calibration_sentence(summary)),
    ]


def numbers(summary: Summary) -> list[dict[str, Any]]:
    """The numbers of the first screen: accuracy where it is measured, what is overridden, what is unsure."""
    quality = summary["quality"]
    if summary["kind"] == "rating":
        error = {"value": f"{quality['typical_error']:.3g}", "name": "estimated error of a rating"}
        error["note"] = "if annotators err independently"
        if known := quality["known"]:
            error = {"value": f"{known['consensus']:.3g}", "name": "error of a rating"}
            error["note"] = f"root mean square, {count(known['n'], 'known answer')}"
        return [error]
    note = f"and {count(quality['ties_broken'], 'tie')} broken" if quality["ties_broken"] else "no tie to break"
    changed = {"value": f"{summary['changed']['total']:,}", "name": "majority answers overridden", "note": note}
    note = f"below {percent(quality['unsure_below'])} confidence"
    unsure = {"value": f"{quality['unsure']:,}", "name": "unsure examples", "note": note, "act": quality["unsure"] > 0}
    return [*_accuracy(summary), changed, unsure]


def _accuracy(summary: Summary) -> list[dict[str, str]]:
    """The measured accuracy of the consensus; without known answers that of the classifier against the consensus."""
    name = "consensus accuracy"
    if known := summary["quality"]["known"]:
        value, note = known["consensus"]["value"], f"{count(known['n'], 'known answer')}, "
        note += percent_interval(known["consensus"])
    elif check := summary["truth_check"]:
        how = "held out" if check["at_random"] else "not a random draw"
        value, note = check["accuracy"], f"{count(check['n'], 'known answer')}, {how}, {percent_interval(check)}"
    elif (part := summary["classifier"]) and _is_beside_consensus(part):
        value, name = part["consensus"]["value"], "classifier accuracy"
        note = f"against the consensus{', out of fold' if part['out_of_fold'] else ''}"
    else:
        return []
    return [{"value": percent(value, 1), "name": name, "note": note}]


def accuracies(quality: dict[str, Any], classifier: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Accuracies on known answers by what has them; nothing without known answers."""
    if not (known := quality["known"]):
        return {}
    rows = {"consensus": known["consensus"], "majority vote": known["majority"]}
    return rows | ({"classifier": classifier["truth"]} if classifier and classifier["n_truths"] else {})


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
    axis, words = "accuracy on known answers", "; ".join(f"{name}: {values}" for name, *_, values, _ in shown)
    return interval_rows(shown, (low, 1.0), share_ticks(low), f"{axis.capitalize()}. {words}.", axis)


def confidence_picture(summary: Summary) -> Markup:
    """How many examples have how much confidence."""
    part = summary["quality"]
    edges = np.linspace(0, 1, len(part["by_confidence"]) + 1).tolist()
    plot = histogram(
        edges, part["by_confidence"], "confidence", _PERCENT, "{:.0%} to {:.0%}", below=part["unsure_below"]
    )
    return plot.picture(f"Histogram: {sum(part['by_confidence']):,} examples by the confidence of their consensus.")


def reliability_picture(summary: Summary) -> Markup:
    """Accuracy on known answers against confidence: on the diagonal, confidence is what it states."""
    marks = {0: "0%", 0.5: "50%", 1: "100%"}
    plot = Plot((0, 1), (0, 1)).axes("confidence", _PERCENT, "accuracy", marks, grid=marks)
    plot.polyline([(0, 0), (1, 1)], "diagonal")
    for row in summary["quality"]["known"]["reliability"]:
        if row["n"] < FEW:  # these show nothing
            continue
        title = f"{count(row['n'], 'known answer')}: stated {percent(row['stated'])}, right {percent(row['value'])}"
        plot.interval(row["stated"], row["value"], row["low"], row["high"], title)
    return plot.picture("Reliability: accuracy on known answers against confidence, by tenths.")
