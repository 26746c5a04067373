"""A fit and some of its examples -> plain rows about them: what was said, by whom, and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise.crowd.easy_weights import easiness
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting.columns import easy_to_hard, mean_ratings
from crowdwise.reporting.quality import changed_examples, majority_shares
from crowdwise.reporting.record import FitRecord
from crowdwise.results.consensus import Consensus
from crowdwise.results.suggest import best_first, next_labels

# How many rows the lists have at most, and how much of a text or a name they show: a page of a million examples stays
# small. A name is an identifier or a class.
MOST_ROWS, MOST_ORDERED = 60, 5000
TEXT_LENGTH, SHORT_LENGTH, NAME_LENGTH = 500, 90, 80
_MOST_NAMES = 12


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers, bools and None stay, NaN is None, all else is text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def named(value: Any) -> str:
    """A name, cut in its middle if it is long: names that begin alike, as those of files do, often end differently."""
    text = str(value)
    half = NAME_LENGTH // 2
    return text if len(text) <= NAME_LENGTH else f"{text[: half - 1].rstrip()}…{text[-half:].lstrip()}"


def excerpt(value: Any, length: int) -> str:
    """The beginning of a text."""
    text = str(value)
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples of a fit, with what else is known of them.

    Parameters
    ----------
    record : FitRecord
        The fit and its labels.
    texts : sequence of str or None
        A text per example, None where there is none.
    truth : ndarray of shape (n_examples,) or None
        The right classes as text, or ratings as numbers; None where they are unknown.
    """

    record: FitRecord
    texts: Any
    truth: Array | None

    def rows(self, chosen: Positions, *, length: int = TEXT_LENGTH, who: bool = True) -> list[dict[str, Any]]:
        """What there is to say about some examples, in their order; texts are cut to `length`."""
        results, labels = self.record.results, self.record.labels[chosen]
        consensus, (first, tied) = results.consensus, _first(labels)
        weight = easiness(results.disagreement[chosen], results.steepness)
        sure = consensus.confidence if isinstance(consensus, Consensus) else consensus.std
        rows = []
        for place, i in enumerate(chosen.tolist()):
            row: dict[str, Any] = {
                "example": named(consensus.examples[i]),
                "label": _answer(consensus.label[i]),
                "sure": float(sure[i]),
                "first": first[place],
                "tied": bool(tied[place]),
                "labels": int(labels.labels_per_example[place]),
                "disagreement": float(results.disagreement[i]),
                "easiness": float(weight[place]),
            }
            if self.texts is not None:
                row["text"] = None if self.texts[i] is None else excerpt(self.texts[i], length)
            if self.truth is not None:
                row["truth"] = self.truth[i]
            if who:
                row["said"] = self._said(i)
            rows.append(row)
        return rows

    def _said(self, i: int) -> list[dict[str, Any]]:
        """Who gave which label to one example, the most frequent label first."""
        labels = self.record.labels
        some = slice(labels.indptr[i], labels.indptr[i + 1])
        values, who = labels.values[some], labels.annotators[labels.annotator_index[some]]
        given, counts = np.unique(values, return_counts=True)
        order = np.argsort(-counts, kind="stable") if labels.classes is not None else np.arange(len(given))
        return [
            {
                "label": _answer(given[k] if labels.classes is None else labels.classes[given[k]]),
                "n": int(counts[k]),
                "annotators": [named(name) for name in who[values == given[k]][:_MOST_NAMES]],
            }
            for k in order
        ]


def _first(labels: CrowdLabels) -> tuple[list[str | float | None], Bools]:
    """The majority's answer, " or " between those that tie, and whether they do; the plain mean of ratings.

    None without labels.
    """
    if labels.classes is None:
        return [plain(value) for value in mean_ratings(labels)], np.zeros(len(labels), dtype=bool)
    leads = majority_shares(labels) > 0
    names = [named(name) for name in labels.classes]
    return [" or ".join(names[k] for k in np.flatnonzero(row)) or None for row in leads], leads.sum(axis=1) > 1


def _answer(value: Any) -> str | float:
    """A class as text; a rating as a number."""
    return float(value) if isinstance(value, float) else named(value)


def listed(total: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows, and of how many they are a part."""
    return {"total": total, "shown": len(rows), "rows": rows}


def changed(examples: Examples) -> dict[str, Any]:
    """Examples whose consensus is not the majority vote, the surest first; ratings far from the plain mean."""
    record = examples.record
    if record.classes is None:
        labelled = np.flatnonzero(record.labels.labels_per_example)
        step = np.abs(record.results.consensus.label - mean_ratings(record.labels))[labelled]
        return listed(len(labelled), examples.rows(labelled[np.argsort(-step, kind="stable")[:MOST_ROWS]]))
    differs, tied = changed_examples(record)
    rows = np.flatnonzero(differs)
    surest = rows[np.argsort(-record.proba[rows].max(axis=1), kind="stable")[:MOST_ROWS]]
    return listed(len(rows), examples.rows(surest)) | {"ties": int(tied.sum())}


def contested(examples: Examples) -> dict[str, Any]:
    """Examples with the most disagreement; of equal ones those first of which the consensus is least sure."""
    record = examples.record
    order = easy_to_hard(record)[::-1]
    split = (record.labels.labels_per_example > 1) & (record.results.disagreement > 0)
    return listed(int(split.sum()), examples.rows(order[split[order]][:MOST_ROWS]))


def ordered(examples: Examples) -> dict[str, Any]:
    """All examples from easy to hard, or as many of them, evenly spread, as a page can hold."""
    order = easy_to_hard(examples.record)
    place = np.arange(len(order))
    if len(order) > MOST_ORDERED:
        place = np.linspace(0, len(order) - 1, MOST_ORDERED).round().astype(np.intp)
    rows = examples.rows(order[place], length=SHORT_LENGTH, who=False)
    return listed(len(order), [row | {"order": int(at) + 1} for row, at in zip(rows, place, strict=True)])


def upcoming(examples: Examples, gain: Floats, n: int) -> dict[str, Any]:
    """What to label next."""
    order = best_first(examples.record.results, gain)
    found = next_labels(examples.record.results, examples.record.labels, gain, order[:n])
    more = zip(examples.rows(order[:n]), found.gain.tolist(), found.reason.tolist(), strict=True)
    return listed(len(order), [row | {"gain": bits, "reason": reason} for row, bits, reason in more])
