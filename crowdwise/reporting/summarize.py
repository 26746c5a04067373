"""A fit and its labels -> one plain dict, from which every report is made; its first sentences and lines."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator

from crowdwise._text import count, versions
from crowdwise.exceptions import CrowdWarning
from crowdwise.rates import rate
from crowdwise.reporting import agreement, annotators, consensus, disagreement, drift, examples
from crowdwise.reporting.fit import Fit, Summary, estimate, named, percent, percent_interval, plain, rounded

VERSION = 1
# Modules with the `data` of a section, its sentences and pictures, and its `PAGES`: names of templates, and of links.
SECTIONS = (consensus, annotators, drift, agreement, disagreement, examples)
PAGES = (*(page for section in SECTIONS for page in section.PAGES), ("settings", "Settings"))
_PACKAGES = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy"}  # as people write them


def summarize(
    model: Any,
    labels: Any,
    *,
    X: Any = None,
    texts: Any = None,
    truth: Any = None,
    times: Any = None,
    command: str | None = None,
    title: str | None = None,
) -> Summary:
    """All that a report shows, as a dict that JSON can hold.

    Parameters
    ----------
    model : estimator or FitResults
        A fitted model, or the result of `aggregate`.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels that it was fitted to.
    X : array-like or sparse matrix of shape (n_examples, n_features), default=None
        The features that it was fitted to, for margins.
    texts : sequence of str, series or mapping, default=None
        Texts to show: a mapping or a series by the ids of the examples, else one per example in the order of the fit.
    truth : array-like, series or mapping, default=None
        Known answers for some or all examples, in the same way.
    times : array-like of shape (n_labels,), default=None
        When each label was given, see `crowdwise.slices.accuracy_over_time`.
    command : str, default=None
        The command that makes the report again.
    title : str, default=None
        Title of the report, such as the name of a file and a date.

    Returns
    -------
    summary : dict
        With a "version", which changes when a key is renamed or gets another meaning.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.reporting import summarize
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> summary = summarize(aggregate(labels), labels)
    >>> summary["version"], summary["size"]["labels"]
    (1, 12)
    """
    return summary_of(Fit.of(model, labels, X=X, texts=texts, truth=truth, times=times), command, title)


def summary_of(fit: Fit, command: str | None = None, title: str | None = None) -> Summary:
    """The same of a fit that was put together before."""
    classes = fit.results.classes
    summary: Summary = {
        "version": VERSION,
        "title": title,
        "kind": "rating" if classes is None else "class",
        "size": _size(fit),
        "ordered": fit.labels.scale.name == "ordinal",
        "classes": None if classes is None else [named(name) for name in classes],
        "rate": _rate(fit),
        "has_texts": fit.texts is not None,
        "command": command,
    }
    for section in SECTIONS:
        summary |= section.data(fit)
    summary |= how_it_was_made(fit)
    return summary | {"headline": headline(summary), "numbers": _numbers(summary)}


def _size(fit: Fit) -> dict[str, Any]:
    labels, per_example = fit.labels, fit.labels.labels_per_example
    spread = {"min": int(per_example.min()), "mean": float(per_example.mean()), "max": int(per_example.max())}
    return {
        "examples": len(labels),
        "annotators": labels.n_annotators,
        "labels": labels.n_labels,
        "labels_per_example": spread,
        "unlabelled": int((per_example == 0).sum()),
        "single": int((per_example == 1).sum()),
    }


def _rate(fit: Fit) -> dict[str, Any] | None:
    """How frequent the second of two classes is, such as a pass rate, corrected by known answers; else None."""
    if fit.results.classes is None or len(fit.results.classes) != 2:
        return None
    names = fit.results.classes.tolist()
    answers = {i: names[code] for i, code in zip(fit.labels.examples.tolist(), fit.answers, strict=True) if code >= 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the consensus states whether they are a random draw
        share = rate(fit.results, fit.labels, answers or None)
    part = {"target": named(share.target), "uncorrected": share.uncorrected, "known": share.n_known}
    return part | estimate(share.value, share.low, share.high)


def how_it_was_made(fit: Fit) -> dict[str, Any]:
    """The model, its settings and automatic choices, and versions."""
    model, results = fit.model, fit.results
    is_estimator = isinstance(model, BaseEstimator)
    settings = model.get_params(deep=False) if is_estimator else {}
    return {
        "model": {
            "name": type(model).__name__ if is_estimator else "aggregate",
            "uses_features": is_estimator,
            "settings": {name: named(repr(value)) for name, value in settings.items()},
            "steepness": float(results.steepness),
            "rounds": results.n_rounds,
            "converged": bool(results.converged),
        },
        "choices": [{name: plain(value) for name, value in vars(choice).items()} for choice in results.choices],
        "versions": {_PACKAGES.get(name, name): value for name, value in versions().items() if name != "platform"},
    }


def headline(summary: Summary) -> list[str]:
    """How far the crowd agrees, how good consensus and classifier are, what to do next."""
    advice, classifier = annotators.advice(summary), consensus.classifier_words(summary)
    if examples.worth_labelling(summary):
        advice.append(examples.next_words(summary))
    elif summary["next"]["rows"]:
        advice.append(_enough_labels(summary))
    return [
        f"{agreement.agreement_sentence(summary)} {agreement.votes_sentence(summary)}".strip(),
        consensus.quality_sentence(summary) + (f" The classifier’s {classifier}." if classifier else ""),
        f"Next, {'; '.join(advice)}." if advice else "No obvious next step.",
    ]


def _enough_labels(summary: Summary) -> str:
    """What to do where no example is unsure."""
    if not summary["next"]["rows"]:
        return "nothing to check: every answer is known"
    if summary["size"]["annotators"] == 1:
        return "have a second annotator label some of the examples: one alone cannot be compared with anyone"
    if consensus.calibration_sentence(summary).startswith("Overconfident"):
        return "ask experts or clarify the question: more labels from this crowd would repeat its errors"
    if summary["truth_check"] or summary["quality"]["known"]:
        return "nothing to check: every example has high confidence"
    return (
        "have an expert check a few dozen examples drawn at random: the consensus is sure of all, and only known "
        "answers can show errors that the whole crowd makes"
    )


def _numbers(summary: Summary) -> list[dict[str, Any]]:
    """The numbers of the first screen, each with what it is and a note."""
    numbers = [agreement.number(summary), *consensus.numbers(summary), annotators.number(summary)][:4]
    if share := summary["rate"]:
        how = f"corrected by {count(share['known'], 'known answer')}"
        note = f"{percent_interval(share)}, {how if share['known'] else 'by the consensus, not corrected'}"
        numbers.append({"value": percent(share["value"], 1), "name": f"rate of “{share['target']}”", "note": note})
    return numbers


def _rate_line(summary: Summary) -> str:
    """The rate for a terminal; nothing that is not corrected."""
    share = summary["rate"]
    if not share or not share["known"]:
        return ""
    return (
        f"{percent(share['value'], 1)} “{share['target']}” ({percent_interval(share)}), corrected by "
        f"{count(share['known'], 'known answer')}; {percent(share['uncorrected'], 1)} by the consensus alone"
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
    kind = "ratings" if summary["kind"] == "rating" else f"labels of {len(summary['classes'])} classes"
    spread = "" if per["min"] == per["max"] else f" ({per['min']:,} to {per['max']:,})"
    crowd = f"{count(size['examples'], 'example')}, {count(size['annotators'], 'annotator')}, {size['labels']:,} {kind}"
    first = "; ".join(f"{row['example']} ({row['reason']})" for row in examples.worth_labelling(summary))
    lines = [
        ("Crowd", f"{crowd}; {rounded(per['mean'])} per example{spread}"),
        *agreement.lines(summary),
        *consensus.lines(summary),
        ("Rate", _rate_line(summary)),
        *annotators.lines(summary),
        ("Drift", drift.sentence(summary)),
        ("Next", f"have an expert check: {first}" if first else _enough_labels(summary)),
        ("Caution", "" if summary["model"]["converged"] else "not converged; allow more rounds"),
    ]
    return [f"{title:12}{words}" for title, words in lines if words]
