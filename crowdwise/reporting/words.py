"""A summary -> sentences: three that open the page, and about ten lines for a terminal."""

from __future__ import annotations

from typing import Any

from crowdwise._text import count
from crowdwise.reporting.quality import share_interval

Summary = dict[str, Any]

# From which alpha on a crowd is said to agree in some way; Krippendorff himself asks for 0.667, better 0.8.
_AGREEMENT = ((0.8, "closely"), (0.667, "fairly well"), (0.4, "moderately"), (0.2, "weakly"), (0.0, "little"))
_LITTLE_GAIN = 0.02  # in bits
_NAMED = 3
_RARE = 0.05  # a class that is given on fewer of the examples may be a slip
_MEASURED = 20  # with so many known answers per annotator, these are compared by them
_ADVERSE = "worse than chance"
# Chance is what the frequencies of answers and classes give, which is more than a half where one class is frequent.
WHAT_CHANCE_IS = "agree with the consensus less than random answers would"
_MOSTLY = 0.8  # from this part of the votes on, errors are called mostly independent


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage, never rounded up to 100% nor down to 0%."""
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share < 1 and float(text) >= 100:
        return f"over {100 - least:.{digits}f}%"
    if share > 0 and float(text) <= 0:
        return f"under {least:.{digits}f}%"
    return f"{text}%"


def short_percent(share: float) -> str:
    """The same for a narrow column."""
    return percent(share).replace("over ", "> ").replace("under ", "< ")


def decimal(value: float, digits: int = 2) -> str:
    """A number with the sign of typography."""
    return f"{value:.{digits}f}".replace("-", "−")


def rounded(value: float) -> str:
    """A number to one digit after the point, and none where that is zero."""
    return f"{value:,.1f}".removesuffix(".0")


def joined(names: list[str]) -> str:
    """Names with commas, and "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def some_of(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - _NAMED
    return joined(names if more <= 1 else [*names[:_NAMED], count(more, "other")])


def interval(part: dict[str, Any], scale: float = 1.0, digits: int = 2) -> str:
    """The ends of an interval."""
    return f"{decimal(scale * part['low'], digits)} to {decimal(scale * part['high'], digits)}"


def headline(summary: Summary) -> list[str]:
    """How far the crowd agrees, how good consensus and classifier are, what to do next."""
    agreement = f"{agreement_sentence(summary)} {votes_sentence(summary)}".strip()
    quality = f"{quality_sentence(summary)} {classifier_sentence(summary)}".strip()
    return [agreement, quality, next_sentence(summary)]


def agreement_sentence(summary: Summary) -> str:
    """How far the annotators agree beyond chance."""
    alpha, who = summary["alpha"], count(summary["size"]["annotators"], "annotator")
    if summary["size"]["annotators"] == 1:
        return "There is one annotator, so neither agreement nor accuracy can be estimated."
    if alpha["value"] is None:
        if summary["size"]["labels_per_example"]["max"] < 2:
            return f"No two of these {who} share an example, so their accuracies cannot be compared."
        return f"All labels of these {who} are the same, so agreement beyond chance is unknown."
    value = alpha["value"]
    how = next((f"agree {word}" for least, word in _AGREEMENT if value >= least), "agree less than by chance")
    if alpha["low"] is not None and alpha["low"] <= 0 <= value:
        how = "agree hardly more than by chance"
    span = "" if alpha["low"] is None else f" (95% interval {interval(alpha)})"
    return f"These {who} {how}: {alpha_name(summary)} is {decimal(value)}{span}, where 0 is chance and 1 is perfect."


def alpha_name(summary: Summary) -> str:
    """What the agreement is called: where classes have an order, alpha knows it."""
    return f"Krippendorff’s alpha{' for ordered labels' if summary.get('ordered') else ''}"


def votes_sentence(summary: Summary) -> str:
    """How many independent votes an example has, and who shares one; nothing that is only assumed."""
    votes = summary["votes"]
    if summary["size"]["annotators"] == 1:
        return ""
    shared = f"{count(votes['shared'], 'annotator')} share votes: {votes['why']}." if votes["shared"] else ""
    if votes["by"] not in ("truths", "labels") or votes["effective"] is None:
        return shared
    labels = summary["size"]["labels_per_example"]["mean"]
    independent = votes["effective"] >= _MOSTLY * labels
    source = f"measured on {count(votes['truths'], 'known answer')}" if votes["by"] == "truths" else "by the labels"
    return (
        f"{'Errors are mostly independent' if independent else 'Annotators make the same mistakes'}: {rounded(labels)} "
        f"labels carry about as much information as {rounded(votes['effective'])} independent ones ({source}). {shared}"
    ).rstrip()


def _known(summary: Summary) -> dict[str, Any] | None:
    """How good the consensus is where the answer is known; None if it is known of no example."""
    part: dict[str, Any] | None = summary["quality"]["known"]
    return part if part and part["n"] else None


def quality_sentence(summary: Summary) -> str:
    """How good the consensus is where answers are known; else what it does that the majority vote does not."""
    known = _known(summary)
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


def changed_words(summary: Summary) -> str:
    """How many answers of the majority the consensus overrides, how many ties it breaks, how many are unsure."""
    part, quality = summary["changed"], summary["quality"]
    changed = f"on {count(part['total'], 'example')}" if part["total"] else "nowhere"
    ties = f" and breaks {count(part['ties'], 'tie')}" if part["ties"] else ""
    unsure = count(quality["unsure"], "example") if quality["unsure"] else "no example"
    verb = "are" if quality["unsure"] > 1 else "is"
    below = f"{unsure} {verb} below {percent(quality['unsure_below'])} confidence"
    return f"overrides the majority {changed}{ties}; {below}"


def classifier_sentence(summary: Summary) -> str:
    """How good the classifier is on examples that it was not fitted to; nothing without one."""
    part = summary["classifier"]
    return f"The classifier’s {_classifier_words(part)}." if part else ""


def _classifier_words(part: dict[str, Any]) -> str:
    found = f"out-of-fold accuracy is {percent(part['consensus']['value'], 1)} against the consensus"
    if not part["out_of_fold"]:
        found = (
            f"accuracy on its own training examples is {percent(part['consensus']['value'], 1)} against the consensus"
        )
    if part["n_truths"]:
        true = part["truth"]
        found += (
            f" and {percent(true['value'], 1)} ({interval(true, 100, 1)}) on {count(part['n_truths'], 'known answer')}"
        )
    return found


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


def _if_chosen(known: dict[str, Any]) -> str:
    """A word of caution where the examples with a known answer are no random draw."""
    return "" if known["at_random"] else "; these examples are not a random draw, so this may not hold for the others"


def _ties_drawn(summary: Summary) -> str:
    """What becomes of the majority's ties, where there are any: of two classes, each is half right."""
    return ", ties broken at random" if summary["quality"]["tied"] else ""


def calibration_sentence(summary: Summary) -> str | None:
    """A word of caution where known answers show that the fit is too sure, or not sure enough."""
    known = _known(summary)
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


def _is_overconfident(summary: Summary) -> bool:
    known = _known(summary)
    return summary["kind"] != "rating" and bool(known) and known["stated"]["value"] > known["consensus"]["high"]  # type: ignore[index]


def rare_class_sentence(summary: Summary) -> str | None:
    """A word of caution where a rare class is the consensus on more examples than anybody gave it to."""
    found = summary["quality"].get("more_than_given")
    rare = [row for row in found or () if row["given"] < _RARE * summary["size"]["examples"]]
    if not rare:
        return None
    row = rare[0]
    return (
        f"Caution: “{row['name']}” was given on {count(row['given'], 'example')} and is the consensus on "
        f"{row['consensus']:,}. If it is a slip or means no answer, leave it out (--missing, missing=...) and fit "
        "again."
    )


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


def numbers(summary: Summary) -> list[dict[str, str]]:
    """The four numbers of the first screen, each with what it is and a note."""
    alpha, quality, known = summary["alpha"], summary["quality"], _known(summary)
    first = {"value": "–" if alpha["value"] is None else decimal(alpha["value"]), "name": "agreement beyond chance"}
    first["note"] = alpha_name(summary) + ("" if alpha["low"] is None else f", {interval(alpha)}")
    flags = sum(bool(row["flags"]) for row in summary["annotators"]["rows"])
    last = {"value": f"{flags:,}", "name": "annotators flagged", "note": f"of {summary['annotators']['total']:,}"}
    if summary["kind"] == "rating":
        error = {"value": f"{quality['typical_error']:.3g}", "name": "estimated error of a rating"}
        single = {"value": f"{summary['size']['single']:,}", "name": "examples with one label"}
        return [first, error | {"note": "if annotators err independently"}, single | {"note": "not compared"}, last]
    part = summary["changed"]
    changed = {"value": f"{part['total']:,}", "name": "majority answers overridden"}
    changed["note"] = f"and {count(part['ties'], 'tie')} broken" if part["ties"] else "no tie to break"
    unsure = {"value": f"{quality['unsure']:,}", "name": "unsure examples"}
    unsure["note"] = f"below {percent(quality['unsure_below'])} confidence"
    accuracy = _accuracy_number(summary, known)
    return [first, changed, unsure, last] if accuracy is None else [first, accuracy, changed, unsure]


def _accuracy_number(summary: Summary, known: dict[str, Any] | None) -> dict[str, str] | None:
    """The measured accuracy of the consensus; without known answers that of the classifier against the consensus."""
    if known:
        ours = known["consensus"]
        note = f"{count(known['n'], 'known answer')}, {interval(ours, 100, 1)}"
        return {"value": percent(ours["value"], 1), "name": "consensus accuracy", "note": note}
    if check := summary["truth_check"]:
        how = "held out" if check["at_random"] else "not a random draw"
        note = f"{count(check['n'], 'known answer')}, {how}, {interval(check, 100, 1)}"
        return {"value": percent(check["accuracy"], 1), "name": "consensus accuracy", "note": note}
    if part := summary["classifier"]:
        note = f"against the consensus{', out of fold' if part['out_of_fold'] else ''}"
        return {"value": percent(part["consensus"]["value"], 1), "name": "classifier accuracy", "note": note}
    return None


def flagged(summary: Summary, flag: str) -> list[str]:
    """Annotators with a flag that begins in some way."""
    rows = summary["annotators"]["rows"]
    return [row["annotator"] for row in rows if any(given.startswith(flag) for given in row["flags"])]


def chance_sentence(summary: Summary) -> str | None:
    """What the flag means, where somebody has it: beside an accuracy above a half it looks like a contradiction."""
    if not flagged(summary, _ADVERSE):
        return None
    return f"Annotators flagged “{_ADVERSE}” {WHAT_CHANCE_IS}."


def _chance_words(names: list[str]) -> str:
    """What annotators who are worse than chance do, or one of them does."""
    return WHAT_CHANCE_IS if len(names) > 1 else WHAT_CHANCE_IS.replace("agree", "agrees", 1)


def next_sentence(summary: Summary) -> str:
    """What to do next: whom to look at, and what to label again."""
    advice = []
    if adverse := flagged(summary, _ADVERSE):
        advice.append(f"look at the labels of {some_of(adverse)}, who {_chance_words(adverse)}")
    if copies := flagged(summary, "same labels as"):
        advice.append(f"ask whether {some_of(copies)} worked independently, as their labels are the same as another’s")
    rows, unsure = summary["next"]["rows"], summary["quality"].get("unsure", 0)
    if rows and (rows[0]["gain"] < _LITTLE_GAIN or summary["size"]["annotators"] == 1):
        advice.append(_enough_labels(summary))
    elif rows:
        first = f"“{rows[0]['example']}” ({rows[0]['reason']})"
        what = "have an expert check" if summary["truth_check"] else "collect one more label on"
        of = f" the {count(unsure, 'unsure example')}, starting with" if unsure > 1 else ""
        advice.append(f"{what}{of} {first}")
    return f"Next, {'; '.join(advice)}." if advice else "No next step stands out."


def _enough_labels(summary: Summary) -> str:
    """What to do where one more label would change little."""
    if summary["size"]["annotators"] == 1:
        return "have a second annotator label some of the examples: one alone cannot be compared with anyone"
    if _is_overconfident(summary):
        return "ask experts or clarify the question: more labels of this crowd would repeat its common errors"
    if summary["truth_check"] or _known(summary):
        return "no more labels are needed: one more is expected to change little on any example"
    return (
        "have an expert check a few dozen examples: one more label is expected to change little, and only known "
        "answers can show errors that the whole crowd makes"
    )


def summary_lines(summary: Summary) -> list[str]:
    """About ten lines that a person can read: how good are crowd and consensus, who is flagged, what to do next.

    Parameters
    ----------
    summary : dict
        What `summarize` gives.

    Returns
    -------
    lines : list of str
    """
    size, per = summary["size"], summary["size"]["labels_per_example"]
    of = "ratings" if summary["kind"] == "rating" else f"labels of {len(summary['classes'])} classes"
    spread = "" if per["min"] == per["max"] else f" ({per['min']:,} to {per['max']:,})"
    lines = [
        f"Crowd       {count(size['examples'], 'example')}, {count(size['annotators'], 'annotator')}, "
        f"{size['labels']:,} {of}; {rounded(per['mean'])} per example{spread}",
        f"Agreement   {_alpha_line(summary)}",
        *([f"Votes       {sentence}"] if (sentence := votes_sentence(summary)) else []),
        *_quality_lines(summary),
        *_annotator_lines(summary),
        *_next_lines(summary),
    ]
    if not summary["model"]["converged"]:
        lines.append("Caution     not converged; allow more rounds")
    return lines


def _alpha_line(summary: Summary) -> str:
    alpha = summary["alpha"]
    if alpha["value"] is None:
        sentence = agreement_sentence(summary)
        return f"unknown: {sentence[0].lower()}{sentence[1:]}"
    span = "" if alpha["low"] is None else f" ({interval(alpha)})"
    name = alpha_name(summary).replace("’", "'")
    return f"{name} {decimal(alpha['value'])}{span}; 0 is chance, 1 is perfect"


def _quality_lines(summary: Summary) -> list[str]:
    known = _known(summary)
    if summary["kind"] == "rating":
        return [f"Consensus   {quality_sentence(summary)}"]
    alone = summary["size"]["annotators"] == 1 and not summary["model"]["uses_features"]
    lines = [f"Consensus   {'the label of the only annotator' if alone else changed_words(summary)}"]
    if caution := rare_class_sentence(summary):
        lines.append(f"            {caution}")
    if part := summary["classifier"]:
        lines.append(f"Classifier  {_classifier_words(part)}")
    if summary["truth_check"]:
        lines.append(f"Truth       {truth_sentence(summary)}")
    if known:
        ours, theirs = known["consensus"], f", majority vote {percent(known['majority']['value'], 1)}"
        lines.append(
            f"Truth       {count(known['n'], 'known answer')}: consensus accuracy {percent(ours['value'], 1)} "
            f"({interval(ours, 100, 1)}){theirs if summary['size']['annotators'] > 1 else ''}{_if_chosen(known)}"
        )
    if caution := calibration_sentence(summary):
        lines.append(f"            {caution}")
    return lines


def _annotator_lines(summary: Summary) -> list[str]:
    rows = [row for row in summary["annotators"]["rows"] if row["labels"] and "few labels" not in row["flags"]]
    measured = (summary["truth_check"] or {}).get("at_random", False)
    if measured and all(row.get("truths", 0) >= _MEASURED for row in rows):  # accuracy by labels hides common errors
        rows = sorted(rows, key=lambda row: -row["truth_accuracy"])
    lines = []
    if len(rows) > 1 and summary["comparable"]:
        best, worst = rows[0], rows[-1]
        if best.get("accuracy") is not None and percent(best["accuracy"]) == percent(worst["accuracy"]):
            lines.append(f"Annotators  all about the same (estimated accuracy {percent(best['accuracy'])})")
        else:
            lines.append(f"Annotators  best {_scored(best)}; worst {_scored(worst)}")
    by_flags: dict[str, list[str]] = {}
    for row in rows:
        if row["flags"]:
            by_flags.setdefault("; ".join(row["flags"]), []).append(row["annotator"])
    if by_flags:
        groups = [
            f"{some_of(names)}: {flags.replace(_ADVERSE, _chance_words(names))}" for flags, names in by_flags.items()
        ]
        more = ["and more"] if len(groups) > _NAMED else []
        lines.append(f"Flagged     {'; '.join([*groups[:_NAMED], *more])}")
    return lines


def _scored(row: dict[str, Any]) -> str:
    if row.get("accuracy") is None:
        return f"{row['annotator']} (expertise {row['expertise']:.3g}, {count(row['labels'], 'label')})"
    known = ""
    if row.get("truth_accuracy") is not None:
        known = f"accuracy {percent(row['truth_accuracy'])} on {count(row['truths'], 'known answer')}, "
    share = percent(row["accuracy"])
    return f"{row['annotator']} ({known}estimated accuracy {share}, {count(row['labels'], 'label')})"


def _next_lines(summary: Summary) -> list[str]:
    rows = [row for row in summary["next"]["rows"][:_NAMED] if row["gain"] >= _LITTLE_GAIN]
    if not rows or summary["size"]["annotators"] == 1:
        return [f"Next        {_enough_labels(summary)}"]
    first = "; ".join(f"{row['example']} ({row['reason']})" for row in rows)
    return [f"Next        {'have an expert check' if summary['truth_check'] else 'label again'}: {first}"]
