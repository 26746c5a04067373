"""Two fits, such as of two weeks -> which annotators and examples changed, and agreement then and now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array
from crowdwise._limits import NAMED
from crowdwise._text import count, some_names
from crowdwise.crowd.coefficients import krippendorff_alpha
from crowdwise.exceptions import DataError
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import encode_declared
from crowdwise.labels._frames import make_frame
from crowdwise.results.fit_results import FitResults, results_of
from crowdwise.truths.check import HALF_WIDTH

# What is compared of annotators, the first that both fits have with an interval, in words.
_SCORES = {
    "truth_accuracy": "accuracy on known answers",
    "accuracy": "estimated accuracy",
    "correlation": "correlation with the consensus",
    "spread": "spread",
}


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """What changed from one fit to another.

    Parameters
    ----------
    n_examples : tuple of int
        How many examples the first fit has, the second, and both.
    annotators : dict of columns
        Those of both fits: "annotator", labels, score and its interval "before" and "after", "clear" where the two
        intervals do not overlap, and "new_flags".
    score : str
        What is compared of them: "truth_accuracy" if both have known answers, "accuracy", "correlation" of ratings,
        "spread" of levels, or "expertise", which has no interval.
    added, removed : list
        Annotators of the second fit only, and of the first only.
    examples : dict of columns
        Examples of both fits whose consensus changed, the surest first: "example", "before", "after", and "confidence"
        before and after. Ratings have changed if their 95% intervals do not overlap.
    shares : dict from class to pair of float
        How frequent each class is in the consensus before and after; empty for ratings.
    alpha : tuple of float or None
        Krippendorff's alpha before and after; None if it is not known.
    drift : tuple of str, default=()
        How accuracy changed within the first fit and within the second, in words; empty where labels have no times.
    """

    n_examples: tuple[int, int, int]
    annotators: dict[str, Array]
    score: str
    added: list[Any]
    removed: list[Any]
    examples: dict[str, Array]
    shares: dict[Any, tuple[float, float]]
    alpha: tuple[float, float] | None = None
    drift: tuple[str, ...] = ()

    def annotators_frame(self, library: str | None = None) -> Any:
        """The annotators of both fits as a data frame."""
        return make_frame(self.annotators, library)

    def examples_frame(self, library: str | None = None) -> Any:
        """The examples that changed as a data frame."""
        return make_frame(self.examples, library)

    def lines(self) -> list[str]:
        """The comparison in words."""
        first, second, both = self.n_examples
        lines = [f"Examples    {first:,} before, {second:,} after, {both:,} in both"]
        if self.alpha is not None:
            lines.append(f"Agreement   Krippendorff's alpha {self.alpha[0]:.2f} before, {self.alpha[1]:.2f} after")
        if both:
            n = len(self.examples["example"])
            such = [f"{e} ({b} to {a})" for e, b, a in zip(*self._first_changes(), strict=True)]
            named = f", such as {'; '.join(such)}" if such else ""
            lines.append(
                f"Consensus   changed on {n:,} of {count(both, 'common example')} ({100 * n / both:.1f}%){named}"
            )
        if self.shares:
            parts = [f"{name}: {100 * b:.1f}% before, {100 * a:.1f}% after" for name, (b, a) in self.shares.items()]
            more = f"; {len(parts) - 2 * NAMED} more" if len(parts) > 2 * NAMED else ""
            lines.append(f"Classes     {'; '.join(parts[: 2 * NAMED])}{more}")
        clear = np.flatnonzero(self.annotators["clear"])
        still = len(self.annotators["clear"]) - len(clear)
        changes = [self._changed(i) for i in clear.tolist()]
        if still:
            changes.append(f"no clear change of {count(still, 'other annotator' if changes else 'annotator')}")
        if changes:
            lines.append(f"Annotators  {'; '.join(changes)}")
        for when, words in zip(("before", "after"), self.drift, strict=False):
            if words:
                lines.append(f"Drift       {when}: {words}")
        flags = zip(self.annotators["annotator"].tolist(), self.annotators["new_flags"].tolist(), strict=True)
        if new := [f"{name} ({flag})" for name, flag in flags if flag]:
            lines.append(f"Flagged     newly: {some_names(new)}")
        for title, names in (("Added", self.added), ("Removed", self.removed)):
            if names:
                lines.append(f"{title:12}{some_names(list(map(str, names)))}")
        return lines

    def _first_changes(self) -> list[list[str]]:
        rows = [self.examples[name][:NAMED].tolist() for name in ("example", "before", "after")]
        return [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in column] for column in rows]

    def _changed(self, i: int) -> str:
        def shown(when: str) -> str:
            value, low, high = (float(self.annotators[f"{self.score}{end}_{when}"][i]) for end in ("", "_low", "_high"))
            if "accuracy" in self.score:
                return f"{100 * value:.0f}% ({100 * low:.0f} to {100 * high:.0f})"
            return f"{value:.2g} ({low:.2g} to {high:.2g})"

        name, score = self.annotators["annotator"][i], _SCORES[self.score]
        return f"{name}: {score} {shown('before')} before, {shown('after')} after"

    def __repr__(self) -> str:
        return "\n".join(["Comparison", *(f"  {line}" for line in self.lines())])


def compare(first: Any, second: Any, *, labels: tuple[Any, Any] | None = None) -> Comparison:
    """What changed from one fit to another: annotators, examples, classes and agreement.

    Parameters
    ----------
    first, second : estimator or FitResults
        Fitted models or results of `aggregate`. Examples and annotators are matched by their ids.
    labels : pair of CrowdLabels or array-like, default=None
        What they were fitted to, for Krippendorff's alpha.

    Returns
    -------
    comparison : Comparison

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.results import compare
    >>> before = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "b"]]
    >>> after = [["b", "b", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "b"]]
    >>> compare(aggregate(before), aggregate(after), labels=(before, after))
    Comparison
      Examples    4 before, 4 after, 4 in both
      Agreement   Krippendorff's alpha 0.69 before, 1.00 after
      Consensus   changed on 1 of 4 common examples (25.0%), such as 0 (a to b)
      Classes     a: 50.0% before, 25.0% after; b: 50.0% before, 75.0% after
      Annotators  no clear change of 3 annotators
    """
    before, after = results_of(first), results_of(second)
    if (before.classes is None) != (after.classes is None):
        raise DataError("one fit has classes and the other ratings: compare two of the same kind.")
    place = encode_declared(after.examples, before.examples).astype(np.intp)
    both = np.flatnonzero(place >= 0)
    score, annotators, added, removed = _annotators(before, after)
    alpha = None
    if labels is not None:
        scale: Any = "interval" if before.classes is None else None
        alpha_before, alpha_after = (krippendorff_alpha(as_labels(part, scale=scale)) for part in labels)
        alpha = alpha_before, alpha_after
    return Comparison(
        (before.n_examples, after.n_examples, len(both)),
        annotators,
        score,
        added,
        removed,
        _examples(before, place[both], after, both),
        _shares(before, after),
        alpha,
    )


def _examples(before: FitResults, rows_before: Array, after: FitResults, rows_after: Array) -> dict[str, Array]:
    name = "std" if before.classes is None else "confidence"
    sure = getattr(before, name)[rows_before], getattr(after, name)[rows_after]
    label = before.label[rows_before], after.label[rows_after]
    if before.classes is None:
        clearness = np.abs(label[1] - label[0]) / np.hypot(*sure)
        changed = np.flatnonzero(clearness > HALF_WIDTH)
    else:
        clearness = np.minimum(*sure)
        changed = np.flatnonzero([a != b for a, b in zip(label[0].tolist(), label[1].tolist(), strict=True)])
    changed = changed[np.argsort(-clearness[changed], kind="stable")]
    columns = {"example": after.examples[rows_after], "before": label[0], "after": label[1]}
    columns |= {f"{name}_before": sure[0], f"{name}_after": sure[1]}
    return {name: column[changed] for name, column in columns.items()}


def _shares(before: FitResults, after: FitResults) -> dict[Any, tuple[float, float]]:
    if before.classes is None or after.classes is None:
        return {}
    names = dict.fromkeys([*before.classes.tolist(), *after.classes.tolist()])
    old, new = Counter(before.label.tolist()), Counter(after.label.tolist())
    return {name: (old[name] / len(before.label), new[name] / len(after.label)) for name in names}


def _annotators(before: FitResults, after: FitResults) -> tuple[str, dict[str, Array], list[Any], list[Any]]:
    """The score that both have, the columns of the annotators of both, who was added and who was removed."""
    tables = [results.annotator_columns() for results in (before, after)]
    score = next((name for name in _SCORES if all(f"{name}_low" in table for table in tables)), "expertise")
    place = encode_declared(after.annotators, before.annotators).astype(np.intp)
    both = np.flatnonzero(place >= 0)
    columns: dict[str, Array] = {"annotator": after.annotators[both]}
    for when, table, rows in (("before", tables[0], place[both]), ("after", tables[1], both)):
        for name in ("labels", score, f"{score}_low", f"{score}_high"):
            columns[f"{name}_{when}"] = np.asarray(table.get(name, np.full(len(table[score]), np.nan)))[rows]
    low, high = (
        np.stack([columns[f"{score}_{end}_{when}"] for when in ("before", "after")]) for end in ("low", "high")
    )
    columns["clear"] = low.max(axis=0) > high.min(axis=0)
    names = columns["annotator"].tolist()
    new = [[f for f in after.annotator_flags.get(n, ()) if f not in before.annotator_flags.get(n, ())] for n in names]
    columns["new_flags"] = np.array(["; ".join(flags) for flags in new], dtype=object)
    removed = np.setdiff1d(np.arange(len(before.annotators)), place[both])
    return score, columns, after.annotators[place < 0].tolist(), before.annotators[removed].tolist()
