"""The teacher's seat: what a position of the sliders weighs and changes, and what is known of annotators."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._text import count
from crowdwise.reporting import agreement as agreement_section
from crowdwise.reporting import annotators as annotators_section
from crowdwise.reporting.fit import Fit, named, plain
from crowdwise.results.fit_results import FitResults
from crowdwise.ridge.curve import Refit
from crowdwise.studio._examples import margin_of
from crowdwise.studio._model import largest_coefficients
from crowdwise.studio._schema import Problem
from crowdwise.studio._state import Answer, Position, Studio, class_names, position_of

# Levels of disagreement that are sent, cells of the map in each direction, and answers of a person that are one point.
_MOST_LEVELS, _BINS, _ANSWERS_PER_POINT = 100, 40, 10


def refit(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """What a position weighs, and how much each annotator counts."""
    solved = studio.refit(Position(steepness, l2, without), seat)
    expertise = zip(map(named, solved.annotators), solved.expertise, strict=True)
    return {
        "position": {"steepness": solved.steepness, "l2": plain(solved.l2), "without": without},
        "levels": _levels(solved),
        "effective": solved.effective,
        "examples": round(float(solved.n_each.sum())),
        "annotators": [{"annotator": name, "expertise": plain(value)} for name, value in expertise],
        "coefficients": largest_coefficients(studio, solved.coef[0]) if len(solved.coef) else [],
    }


def _levels(solved: Refit) -> list[Answer]:
    """How many examples have which disagreement, and what each weighs; neighbours together if they are many."""
    n_levels = len(solved.levels)
    first = np.unique(np.linspace(0, n_levels, min(n_levels, _MOST_LEVELS), endpoint=False, dtype=int))
    n_each = np.add.reduceat(solved.n_each, first)
    return [
        {"disagreement": float(level), "examples": round(float(n)), "weight": float(weight)}
        for level, n, weight in zip(solved.levels[first], n_each, solved.weight[first], strict=True)
    ]


def curve(studio: Studio, l2: Any, without: Any, seat: str) -> Answer:
    """Criteria, effective examples and expertise at every steepness."""
    if not studio.solves_sums:
        raise Problem(409, "the model keeps no sums, so that every steepness would be a fit: see /refit.json.")
    all_steepnesses = studio.curve(l2, without, seat)
    return {
        "l2": all_steepnesses.l2,
        "without": without,
        "steepness": all_steepnesses.steepness.tolist(),
        "criteria": [
            {"name": name, "title": title, "higher_is_better": higher, "values": [plain(value) for value in values]}
            for name, title, higher, values in all_steepnesses.criteria
        ],
        "effective": all_steepnesses.effective.tolist(),
        "annotators": [named(name) for name in all_steepnesses.annotators],
        "expertise": [[plain(value) for value in row] for row in all_steepnesses.expertise.T],
    }


def explore(
    studio: Studio,
    steepness: Any,
    l2: Any,
    without: Any,
    before_steepness: Any,
    before_l2: Any,
    before_without: Any,
    seat: str,
) -> Answer:
    """What changed from one position to another."""
    before = studio.fit(Position(before_steepness, before_l2, before_without), seat)
    after = studio.fit(Position(steepness, l2, without), seat)
    moves = _moves(before.results, after.results)
    reranked = _reranked(before.results, after.results)
    total = sum(move["n"] for move in moves)
    words = f"{count(total, 'answer')} flipped, {count(len(reranked), 'annotator')} with another rank."
    return {
        "before": position_of(before, before_without),
        "after": position_of(after, without),
        "flipped": {"total": total, "moves": moves},
        "reranked": reranked,
        "words": words,
    }


def _moves(before: FitResults, after: FitResults) -> list[Answer]:
    """From which class to which how many examples went."""
    names = class_names(after.classes)
    n = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(n, (before.codes, after.codes), 1)
    np.fill_diagonal(n, 0)
    return [{"from": names[k], "to": names[c], "n": int(n[k, c])} for k, c in np.argwhere(n).tolist()]


def _reranked(before: FitResults, after: FitResults) -> list[Answer]:
    """Annotators of both with another rank by expertise, from 1."""
    old, new = _ranks(before), _ranks(after)
    moved = [name for name in old if name in new and old[name] != new[name]]
    moved.sort(key=lambda name: -abs(old[name] - new[name]))
    return [{"annotator": named(name), "before": old[name], "after": new[name]} for name in moved]


def _ranks(results: FitResults) -> dict[Any, int]:
    order = np.argsort(-np.nan_to_num(results.expertise, nan=-1.0), kind="stable")
    return {name: rank for rank, name in enumerate(results.annotators[order].tolist(), start=1)}


def annotators(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """All annotators."""
    position = Position(steepness, l2, without)
    fit = studio.fit(position, seat)
    return studio.section("annotators", lambda: _annotators(fit), position)


def _annotators(fit: Fit) -> Answer:
    section = annotators_section.data(fit)
    listed = section["annotators"]
    bias = dict(zip(map(named, fit.results.annotators), annotators_section.class_bias(fit), strict=True))
    rows = [row | {"bias": [plain(value) for value in bias[row["annotator"]]]} for row in listed["rows"]]
    classes = class_names(fit.results.classes)
    return listed | {"rows": rows, "comparable": section["comparable"], "classes": classes}


def annotator(studio: Studio, name: str, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """One annotator."""
    shown = named(studio.annotator(name))
    fit = studio.fit(Position(steepness, l2, without), seat)
    listed = annotators(studio, steepness, l2, without, seat)
    row = next((row for row in listed["rows"] if row["annotator"] == shown), None)
    if row is None:
        raise Problem(404, f"{name[:80]!r} is left out here.", "name")
    return {"annotator": row, "classes": listed["classes"], "over_time": _over_time(studio, fit, name)}


def _over_time(studio: Studio, fit: Fit, person: str) -> list[Answer]:
    """How often the answers of a person in this session agree with the consensus."""
    answers = [done for done in studio.session.done_by(person) if done.label is not None]
    starts = range(0, len(answers), _ANSWERS_PER_POINT)
    points = [answers[start : start + _ANSWERS_PER_POINT] for start in starts]
    return [
        {
            "from": point[0].time,
            "to": point[-1].time,
            "answers": len(point),
            "agrees": float(np.mean([fit.results.label[answer.example] == answer.label for answer in point])),
        }
        for point in points
    ]


def pairs(studio: Studio) -> Answer:
    """Agreement of pairs of annotators."""
    labels = studio.session.labels
    return {"pairs": studio.section("pairs", lambda: agreement_section.pairs(labels))}


def map_(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """The density of all examples."""
    fit = studio.fit(Position(steepness, l2, without), seat)
    top = max(1.0, float(fit.results.disagreement.max(initial=0.0)))
    counts, x, y = np.histogram2d(margin_of(fit), fit.results.disagreement, _BINS, ((0.0, 1.0), (0.0, top)))
    by = "consensus" if fit.results.model_proba is None else "classifier, out of fold"
    return {
        "margin_is": f"gap between the two most probable classes of the {by}",
        "margin_edges": x.tolist(),
        "disagreement_edges": y.tolist(),
        "counts": counts.astype(np.int64).tolist(),
    }
