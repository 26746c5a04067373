"""A summary -> sentences: three that open the page, and about ten lines for a terminal."""

from __future__ import annotations

from typing import Any

from crowdwise.counts import count
from crowdwise.reporting.quality import share_interval

Summary = dict[str, Any]

# From which alpha on a crowd is said to agree in some way; Krippendorff himself asks for 0.667, better 0.8.
_AGREEMENT = ((0.8, "closely"), (0.667, "fairly well"), (0.4, "moderately"), (0.2, "weakly"), (0.0, "little"))
_NOTICEABLE = 0.005
_LITTLE_GAIN = 0.02  # in bits
_NAMED = 3
_RARE = 0.05  # a class that is given on fewer of the examples may be a slip
_MEASURED = 20  # with so many known answers per annotator, these are compared by them
_ADVERSE = "worse than chance"
# Chance is what the frequencies of answers and classes give, which is more than a half where one class is frequent.
WHAT_CHANCE_IS = "shuffled, the same answers would agree more with the consensus"


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage, never rounded up to 100 % nor down to 0 %."""
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share < 1 and float(text) >= 100:
        return f"over {100 - least:.{digits}f} %"
    if share > 0 and float(text) <= 0:
        return f"under {least:.{digits}f} %"
    return f"{text} %"


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
    """How far the crowd agrees and how many votes that are, what the consensus is worth, what to do next."""
    agreement = f"{agreement_sentence(summary)} {votes_sentence(summary)}".strip()
    return [agreement, quality_sentence(summary), next_sentence(summary)]


def agreement_sentence(summary: Summary) -> str:
    """How far the annotators agree beyond chance."""
    alpha, who = summary["alpha"], count(summary["size"]["annotators"], "annotator")
    if summary["size"]["annotators"] == 1:
        return "There is one annotator, so nothing can be said about agreement."
    if alpha["value"] is None:
        if summary["size"]["labels_per_example"]["max"] < 2:
            return f"No example has two labels, so it is unknown whether these {who} agree."
        return f"All labels of these {who} are the same, so it is unknown whether they agree beyond chance."
    value = alpha["value"]
    how = next((f"agree {word}" for least, word in _AGREEMENT if value >= least), "agree less than by chance")
    if alpha["low"] is not None and alpha["low"] <= 0 <= value:
        how = "agree hardly more than by chance"
    span = "" if alpha["low"] is None else f" (95 % interval {interval(alpha)})"
    return f"These {who} {how}: {alpha_name(summary)} is {decimal(value)}{span}, where 0 is chance and 1 is perfect."


def alpha_name(summary: Summary) -> str:
    """What the agreement is called: where classes have an order, alpha knows it."""
    return f"Krippendorff’s alpha{' for ordered labels' if summary.get('ordered') else ''}"


def votes_sentence(summary: Summary) -> str:
    """How many independent votes an example has; nothing if that is not known."""
    votes = summary["votes"]
    if votes["effective"] is None or summary["size"]["annotators"] == 1:
        return ""
    labels = summary["size"]["labels_per_example"]["mean"]
    groups = "one group has one vote" if votes["shared"] == 1 else f"{votes['shared']:,} groups have one vote each"
    copies = f" ({groups})" if votes["shared"] else ""
    return (
        f"The {rounded(labels)} labels of an example{copies} say as much as about {rounded(votes['effective'])} "
        f"independent votes, {errors_words(votes['by'], votes['truths'])}."
    )


def errors_words(source: str, n_truths: int = 0) -> str:
    """How it is known how many errors annotators have in common, on which the number of independent votes depends."""
    if source == "truths":
        return f"by the errors that annotators have in common on {count(n_truths, 'known answer')}"
    return {
        "usual": "if annotators have as many errors in common as is usual",
        "labels": "as labels show few errors in common",
        "independent": "if annotators err independently",
    }[source]


def _known(summary: Summary) -> dict[str, Any] | None:
    """What known truth says of the consensus; None if it is known of no example."""
    part: dict[str, Any] | None = summary["quality"]["known"]
    return part if part and part["n"] else None


def quality_sentence(summary: Summary) -> str:
    """How much better the consensus is than the majority vote, known or estimated, and why."""
    quality, known = summary["quality"], _known(summary)
    if summary["truth_check"] and not known:
        return truth_sentence(summary)
    if summary["kind"] == "rating":
        return _rating_sentence(quality, known)
    if known:
        ours, theirs = known["consensus"], known["majority"]
        return (
            f"On the {count(known['n'], 'example')} of known truth the consensus is right for "
            f"{percent(ours['value'], 1)} (95 % interval {interval(ours, 100, 1)}) and the majority vote"
            f"{_ties_drawn(summary)} for {percent(theirs['value'], 1)} ({interval(theirs, 100, 1)}); it counts "
            f"annotators by how reliable they are{_and_model(summary)}{_if_chosen(known)}."
        )
    if summary["size"]["annotators"] == 1:
        return "The consensus is what this one annotator says, as there is nobody to compare with."
    gap = quality["estimated"]["difference"]["value"]
    if gap < _NOTICEABLE:
        effect = "to change little on this crowd"
    else:
        effect = f"to make it right on {in_hundred(gap)} than the majority vote"
    return (
        f"The consensus counts annotators by how reliable they are{_and_model(summary)}, which is estimated {effect}; "
        "the estimate is too high where annotators err less independently than is usual."
    )


def truth_sentence(summary: Summary) -> str:
    """How good the consensus is by the truths that the fit learnt from, each held out."""
    check = summary["truth_check"]
    learnt = f"{count(check['n'], 'known answer')} {'was' if check['n'] == 1 else 'were'} learnt from"
    if "error" in check:
        found = f"off by {check['error']:.3g} (95 % interval {check['low']:.3g} to {check['high']:.3g})"
        found += f" and says {check['std']:.3g}"
    else:
        found = f"right for {percent(check['accuracy'], 1)} of them (95 % interval {interval(check, 100, 1)})"
        found += f" and {percent(check['confidence'], 1)} sure on average"
        if check["majority"] is not None and summary["size"]["annotators"] > 1:
            found += f"; the majority vote{_ties_drawn(summary)} is right for {percent(check['majority'], 1)}"
    return f"{learnt}: held out in turn, the consensus is {found}. {_more_truths(check)}".rstrip()


def _more_truths(check: dict[str, Any]) -> str:
    """How exact that would be with more known answers: with as many as are needed, or with all there can be."""
    needed, unknown = check["needed"], check["unknown"]
    if not check.get("at_random", True) and unknown:
        return (
            "These examples are no random draw, so this says little about the others, on which mean confidence is "
            f"{percent(check['others'], 1)}. Answers to examples drawn at random would show more (crowdwise next "
            "--at-random)."
        )
    if not needed or not unknown or ("error" in check and needed > unknown):
        return ""
    if "error" in check:
        return f"With {needed:,} more of them, the interval would be ±{percent(check['within'])}."
    if needed <= unknown:
        return f"With {needed:,} more of them, the interval would be ±{100 * check['within']:.0f} points."
    low, high = share_interval(check["accuracy"], check["n"] + unknown)
    return f"With those of all {unknown:,} other examples, the interval would be ±{50 * float(high - low):.0f} points."


def _if_chosen(known: dict[str, Any]) -> str:
    """A word of caution where the examples of known truth are no random draw."""
    return "" if known["at_random"] else "; these examples are no random draw, so this says little about the others"


def _ties_drawn(summary: Summary) -> str:
    """What becomes of the majority's ties, where there are any: of two classes, each is half right."""
    return " (ties drawn by lot)" if summary["quality"]["tied"] else ""


def in_hundred(share: float) -> str:
    """A difference of two shares, in examples."""
    return f"{100 * share:.1f} more examples in 100"


def calibration_sentence(summary: Summary) -> str | None:
    """A word of caution where known truth shows that the fit is surer than it should be."""
    known = _known(summary)
    if summary["kind"] == "rating" or not known:
        return None
    expected = known["stated"]["value"]
    if expected <= known["consensus"]["high"]:
        return None
    alone = summary["size"]["annotators"] == 1
    why = "Labels of one annotator are taken as they are" if alone else "Annotators share errors here"
    return (
        f"The fit is surer than it should be: it expects {percent(expected, 1)} of these to be right, and "
        f"{percent(known['consensus']['value'], 1)} are. {why}: take confidence as an order, "
        "or let the fit learn from these answers (--use-truth; in Python, truth=... of fit), which calibrates it."
    )


def rare_class_sentence(summary: Summary) -> str | None:
    """A word of caution where a rare class is the consensus on more examples than anybody gave it to."""
    found = summary["quality"].get("more_than_given")
    rare = [row for row in found or () if row["given"] < _RARE * summary["size"]["examples"]]
    if not rare:
        return None
    row = rare[0]
    return (
        f"Caution: “{row['name']}” was given on {count(row['given'], 'example')} and is the consensus on "
        f"{row['consensus']:,}. Is it a slip, or no answer at all? Then leave it out (--missing, missing=...) and fit "
        "again."
    )


def _and_model(summary: Summary) -> str:
    return " and learns from the features" if summary["model"]["uses_features"] else ""


def _rating_sentence(quality: dict[str, Any], known: dict[str, Any] | None) -> str:
    if known:
        return (
            f"On the {count(known['n'], 'example')} of known truth the consensus is off by {known['consensus']:.3g} "
            f"(root mean squared) and the plain mean of the ratings by {known['mean']:.3g}."
        )
    return (
        f"A rating of the consensus is estimated to be off by about {quality['typical_error']:.3g}, if annotators err "
        "independently; annotators count by how reliable they are, which the plain mean does not do."
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
        return [
            first,
            error | {"note": "by the fit's own probabilities"},
            single | {"note": "nobody to compare with"},
            last,
        ]
    if (check := summary["truth_check"]) and not known:
        second = {"value": percent(check["accuracy"], 1), "name": "of the consensus is right"}
        second["note"] = f"{count(check['n'], 'known answer')}, held out in turn, {interval(check, 100, 1)}"
        if not check["at_random"]:
            second["name"] = "right on the known examples"
            second["note"] = f"{count(check['n'], 'known answer')}, no random draw; {interval(check, 100, 1)}"
    elif known:
        ours = known["consensus"]
        second = {"value": percent(ours["value"], 1), "name": "of the consensus is right"}
        second["note"] = f"known truth of {count(known['n'], 'example')}, {interval(ours, 100, 1)}"
    else:
        gap = quality["estimated"]["difference"]["value"]
        second = {"value": f"+{100 * gap:.1f}", "name": "more examples right in 100 than the majority vote"}
        second["note"] = "estimated by the fit's own probabilities"
    part = summary["changed"]
    third = {"value": f"{part['total']:,}", "name": "majority answers changed"}
    third["note"] = f"and {count(part['ties'], 'tie')} decided" if part["ties"] else "there was no tie to decide"
    unsure = {"value": f"{quality['unsure']:,}", "name": "examples unsure"}
    unsure["note"] = f"below {percent(quality['unsure_below'])} confidence"
    return [first, second, third, unsure]


def flagged(summary: Summary, flag: str) -> list[str]:
    """Annotators with a flag that begins in some way."""
    rows = summary["annotators"]["rows"]
    return [row["annotator"] for row in rows if any(given.startswith(flag) for given in row["flags"])]


def chance_sentence(summary: Summary) -> str | None:
    """What the flag means, where somebody has it: beside an accuracy above a half it looks like a contradiction."""
    return f"{_ADVERSE.capitalize()} means: {WHAT_CHANCE_IS}." if flagged(summary, _ADVERSE) else None


def next_sentence(summary: Summary) -> str:
    """What to do next: whom to look at, and what to label again."""
    advice = []
    if adverse := flagged(summary, _ADVERSE):
        verb = "answers" if len(adverse) == 1 else "answer"
        advice.append(f"look at the labels of {some_of(adverse)}, who {verb} {_ADVERSE} ({WHAT_CHANCE_IS})")
    if copies := flagged(summary, "same labels as"):
        advice.append(f"ask whether {some_of(copies)} worked independently, as their labels are the same as another’s")
    rows, unsure = summary["next"]["rows"], summary["quality"].get("unsure", 0)
    if rows and (rows[0]["gain"] < _LITTLE_GAIN or summary["size"]["annotators"] == 1):
        advice.append(_enough_labels(summary))
    elif rows:
        first = f"“{rows[0]['example']}” ({rows[0]['reason']})"
        what, to = ("find out the right answer", "to") if summary["truth_check"] else ("ask for one more label", "on")
        of = f" {to} each of the {count(unsure, 'example')} that the consensus is unsure about" if unsure > 1 else ""
        advice.append(f"{what}{of}, first {to} {first}")
    return f"Next, {'; '.join(advice)}." if advice else "There is nothing that stands out to be done next."


def _enough_labels(summary: Summary) -> str:
    """What to do where one more label would say little."""
    if summary["size"]["annotators"] == 1:
        return "ask a second annotator about some of the examples, as nobody can be compared with this one"
    if calibration_sentence(summary):
        return "ask experts or clarify the question, as more labels of this crowd would repeat errors that it shares"
    if summary["truth_check"] or _known(summary):
        return "ask for no more labels, as one more is expected to say little about any example"
    return (
        "find out the right answer to a few dozen examples yourself, as one more label is expected to say little and "
        "only known answers can show errors that the crowd shares"
    )


def summary_lines(summary: Summary) -> list[str]:
    """About ten lines that a person can read: how good is this crowd, who stands out, what to do next.

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
        *([f"Votes       {said}"] if (said := votes_sentence(summary)) else []),
        *_quality_lines(summary),
        *_changed_lines(summary),
        *_annotator_lines(summary),
        *_next_lines(summary),
    ]
    if not summary["model"]["converged"]:
        lines.append("Caution     the rounds stopped before they settled; allow more of them")
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
    quality, known = summary["quality"], _known(summary)
    if summary["kind"] == "rating":
        return [f"Consensus   {quality_sentence(summary)}"]
    gap = quality["estimated"]["difference"]["value"]
    more = f"right on {in_hundred(gap)} than" if gap >= _NOTICEABLE else "about as often right as"
    if summary["size"]["annotators"] == 1:
        lines = ["Consensus   what this one annotator says: there is nobody to compare with"]
    elif summary["truth_check"]:
        lines = [f"Consensus   estimated to be {more} the majority vote"]
    else:
        lines = [
            f"Consensus   estimated to be {more} the majority vote, by the fit's",
            "            own probabilities (too high where annotators share more errors than usual)",
        ]
    if summary["truth_check"]:
        lines.append(f"Truth       {truth_sentence(summary)}")
    if known:
        ours, theirs = known["consensus"], f", majority vote for {percent(known['majority']['value'], 1)}"
        lines.append(
            f"Truth       known for {count(known['n'], 'example')}: consensus right for {percent(ours['value'], 1)} "
            f"({interval(ours, 100, 1)}){theirs if summary['size']['annotators'] > 1 else ''}{_if_chosen(known)}"
        )
    if caution := calibration_sentence(summary):
        lines.append(f"            {caution}")
    return lines


def changed_words(summary: Summary) -> str:
    """How many answers of the majority are changed, and how many ties decided if there are any."""
    part = summary["changed"]
    changed = count(part["total"], "majority answer") if part["total"] else "no majority answer"
    return changed + (f", {count(part['ties'], 'tie')} decided" if part["ties"] else "")


def _changed_lines(summary: Summary) -> list[str]:
    if summary["kind"] == "rating":
        return []
    quality = summary["quality"]
    lines = [
        f"Changed     {changed_words(summary)}; "
        f"{count(quality['unsure'], 'example') if quality['unsure'] else 'no example'} below "
        f"{percent(quality['unsure_below'])} confidence"
    ]
    if caution := rare_class_sentence(summary):
        lines.append(f"            {caution}")
    return lines


def _annotator_lines(summary: Summary) -> list[str]:
    rows = [row for row in summary["annotators"]["rows"] if row["labels"] and "few labels" not in row["flags"]]
    measured = (summary["truth_check"] or {}).get("at_random", False)
    if measured and all(row.get("truths", 0) >= _MEASURED for row in rows):  # who errs with others is overestimated
        rows = sorted(rows, key=lambda row: -row["truth_accuracy"])
    lines = []
    if len(rows) > 1:
        best, worst = rows[0], rows[-1]
        if best.get("accuracy") is not None and percent(best["accuracy"]) == percent(worst["accuracy"]):
            lines.append(f"Annotators  all about alike (estimated accuracy {percent(best['accuracy'])})")
        else:
            lines.append(f"Annotators  best {_scored(best)}; worst {_scored(worst)}")
    by_flags: dict[str, list[str]] = {}
    for row in rows:
        if row["flags"]:
            by_flags.setdefault("; ".join(row["flags"]), []).append(row["annotator"])
    if by_flags:
        meant = {flags: flags.replace(_ADVERSE, f"{_ADVERSE}: {WHAT_CHANCE_IS}") for flags in by_flags}
        groups = [f"{some_of(names)} ({meant[flags]})" for flags, names in by_flags.items()]
        more = ["and more"] if len(groups) > _NAMED else []
        lines.append(f"Stand out   {'; '.join([*groups[:_NAMED], *more])}")
    return lines


def _scored(row: dict[str, Any]) -> str:
    if row.get("accuracy") is None:
        return f"{row['annotator']} (expertise {row['expertise']:.3g}, {count(row['labels'], 'label')})"
    known = ""
    if row.get("truth_accuracy") is not None:
        known = f"right on {percent(row['truth_accuracy'])} of {count(row['truths'], 'known answer')}, "
    share = percent(row["accuracy"])
    return f"{row['annotator']} ({known}estimated accuracy {share}, {count(row['labels'], 'label')})"


def _next_lines(summary: Summary) -> list[str]:
    rows = [row for row in summary["next"]["rows"][:_NAMED] if row["gain"] >= _LITTLE_GAIN]
    if not rows or summary["size"]["annotators"] == 1:
        return [f"Next        {_enough_labels(summary)}"]
    first = "; ".join(f"{row['example']} ({row['reason']})" for row in rows)
    return [f"Next        {'find out the right answer to' if summary['truth_check'] else 'label again'}: {first}"]
