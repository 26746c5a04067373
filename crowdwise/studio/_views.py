"""What each route answers: values that JSON can hold, put together from the sections of the report and the session."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise import formats
from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise._text import count
from crowdwise.diagnosis import margins
from crowdwise.exceptions import CrowdWarning, DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.paper.theory import EasyFirstPerceptron
from crowdwise.reporting import agreement as agreement_section
from crowdwise.reporting import annotators as annotators_section
from crowdwise.reporting import consensus as consensus_section
from crowdwise.reporting.examples import rows_of
from crowdwise.reporting.fit import Fit, accuracy_of, estimate, named, plain
from crowdwise.reporting.summarize import how_it_was_made, summary_of
from crowdwise.results.fit_results import FitResults
from crowdwise.ridge.curve import Refit
from crowdwise.studio._schema import Problem
from crowdwise.studio._state import Position, Studio

Answer = dict[str, Any]
_MOST_LEVELS, _BINS, _MOST_COEFFICIENTS = 100, 40, 30
_WHOLE_TEXT = 100_000
# A perceptron is fed with at most so many examples, from so many on, and its mistakes are counted in so many regions.
_MOST_FED, _LEAST_FED, _REGIONS = 5000, 10, 10
_LAST, _CHECKED_ENOUGH = 10, 10


# ---------------------------------------------------------------------------------------------------------------------
# The first screen


def start(studio: Studio) -> Answer:
    """What there is, in three sentences and four numbers."""
    session, texts = studio.session, studio.texts
    labels, has_labels = session.labels, session.labels.n_labels > 0
    summary: Answer = {"headline": [], "numbers": []}
    if has_labels:
        fit = studio.fit()
        summary = studio.section("start", lambda: summary_of(fit))
    size = {"examples": len(labels), "annotators": labels.n_annotators, "labels": labels.n_labels}
    position = studio.position
    return {
        "title": studio.title,
        "version": session.version,
        "headline": summary["headline"],
        "numbers": summary["numbers"],
        "size": size,
        "classes": _classes(labels.classes),
        "people": session.people,
        "position": vars(position),
        "has": {
            "features": session.model is not None,
            "texts": texts is not None and studio.pictures is None,
            "pictures": studio.pictures is not None,
            "truth": bool((session._truth >= 0).any()),
            "l2": session.has_l2,
        },
    } | _follows(studio)


def _follows(studio: Studio) -> Answer:
    """How a slider is followed, and what is recomputed then."""
    if studio.session.is_slow:
        words = "Every position is a new fit of the classifier, in the background; the last position wins."
        return {"follows": "fit", "recomputed": words}
    if studio.session.model is None:
        return {"follows": "labels", "recomputed": "Every position is a new consensus of all labels."}
    words = "Every position is solved from sums that are kept: no pass over the data."
    return {"follows": "sums", "recomputed": words}


def now(studio: Studio) -> Answer:
    """What may have changed since the last look."""
    session = studio.session
    return {
        "version": session.version,
        "labels": session.labels.n_labels,
        "answers": sum(len(session.done_by(person)) for person in session.people),
        "is_pending": session.is_pending,
        "position": vars(studio.position),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Explore


def refit(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """What a position weighs, and how much each annotator counts."""
    found = studio.refit(Position(steepness, l2, without), seat)
    names = map(named, found.annotators)
    return {
        "position": {"steepness": found.steepness, "l2": plain(found.l2), "without": without},
        "levels": _levels(found),
        "effective": found.effective,
        "examples": round(float(found.n_each.sum())),
        "annotators": [
            {"annotator": name, "expertise": plain(value)} for name, value in zip(names, found.expertise, strict=True)
        ],
        "coefficients": _largest(studio, found.coef[0]) if len(found.coef) else [],
    }


def _levels(found: Refit) -> list[Answer]:
    """How many examples have which disagreement, and what each weighs; neighbours together if they are many."""
    some = np.unique(np.linspace(0, len(found.levels), min(len(found.levels), _MOST_LEVELS), endpoint=False, dtype=int))
    n_each = np.add.reduceat(found.n_each, some)
    return [
        {"disagreement": float(level), "examples": round(float(n)), "weight": float(weight)}
        for level, n, weight in zip(found.levels[some], n_each, found.weight[some], strict=True)
    ]


def curve(studio: Studio, l2: Any, without: Any, seat: str) -> Answer:
    """Criteria, effective examples and expertise at every steepness."""
    _check_follows_sums(studio)
    found = studio.curve(l2, without, seat)
    return {
        "l2": found.l2,
        "without": without,
        "steepness": found.steepness.tolist(),
        "criteria": [
            {"name": name, "title": title, "higher_is_better": higher, "values": [plain(value) for value in values]}
            for name, title, higher, values in found.criteria
        ],
        "effective": found.effective.tolist(),
        "annotators": [named(name) for name in found.annotators],
        "expertise": [[plain(value) for value in row] for row in found.expertise.T],
    }


def _check_follows_sums(studio: Studio) -> None:
    if studio.session.is_slow or studio.session.model is None:
        raise Problem(409, "the model keeps no sums, so that every steepness would be a fit: see /refit.json.")


def _position(fit: Fit, without: str | None) -> Answer:
    l2 = getattr(fit.model, "l2_", None)
    return {"steepness": float(fit.results.steepness), "l2": plain(l2), "without": without}


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
        "before": _position(before, before_without),
        "after": _position(after, without),
        "flipped": {"total": total, "moves": moves},
        "reranked": reranked,
        "words": words,
    }


def _moves(before: FitResults, after: FitResults) -> list[Answer]:
    """From which class to which how many examples went."""
    names = _classes(after.classes)
    n = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(n, (before.codes, after.codes), 1)
    np.fill_diagonal(n, 0)
    return [{"from": names[k], "to": names[c], "n": int(n[k, c])} for k, c in np.argwhere(n).tolist()]


def _reranked(before: FitResults, after: FitResults) -> list[Answer]:
    """Annotators of both with another rank by expertise, from 1."""
    ranks = [_ranks(results) for results in (before, after)]
    both = [name for name in ranks[0] if name in ranks[1] and ranks[0][name] != ranks[1][name]]
    both.sort(key=lambda name: -abs(ranks[0][name] - ranks[1][name]))
    return [{"annotator": named(name), "before": ranks[0][name], "after": ranks[1][name]} for name in both]


def _ranks(results: FitResults) -> dict[Any, int]:
    order = np.argsort(-np.nan_to_num(results.expertise, nan=-1.0), kind="stable")
    return {name: rank for rank, name in enumerate(results.annotators[order].tolist(), start=1)}


def annotators(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """All annotators."""
    position = Position(steepness, l2, without)
    fit = studio.fit(position, seat)
    return studio.section("annotators", lambda: _annotators(fit), position)


def _annotators(fit: Fit) -> Answer:
    found = annotators_section.data(fit)
    bias = dict(zip(map(named, fit.results.annotators), annotators_section.class_bias(fit), strict=True))
    rows = [row | {"bias": [plain(value) for value in bias[row["annotator"]]]} for row in found["annotators"]["rows"]]
    comparable = {"comparable": found["comparable"], "classes": _classes(fit.results.classes)}
    return found["annotators"] | {"rows": rows} | comparable


def annotator(studio: Studio, name: str, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """One annotator."""
    who = studio.annotator(name)
    fit = studio.fit(Position(steepness, l2, without), seat)
    listed = annotators(studio, steepness, l2, without, seat)
    row = next((row for row in listed["rows"] if row["annotator"] == named(who)), None)
    if row is None:
        raise Problem(404, f"{name[:80]!r} is left out here.", "name")
    done = [one for one in studio.session.done_by(name) if one.label is not None]
    tens = [done[at : at + _LAST] for at in range(0, len(done), _LAST)]
    over_time = [
        {
            "from": ten[0].time,
            "to": ten[-1].time,
            "answers": len(ten),
            "agrees": float(np.mean([fit.results.label[one.example] == one.label for one in ten])),
        }
        for ten in tens
    ]
    return {"annotator": row, "classes": listed["classes"], "over_time": over_time}


def pairs(studio: Studio) -> Answer:
    """Agreement of pairs of annotators."""
    labels = studio.session.labels
    return {"pairs": studio.section("pairs", lambda: agreement_section.pairs(labels))}


def _margin(fit: Fit) -> Floats:
    """The gap between the two most probable classes: of the classifier out of fold, else of the consensus."""
    proba = fit.results.proba if fit.results.model_proba is None else fit.results.model_proba
    return margins(proba, np.zeros(len(proba), dtype=np.intp))[0]


def map_(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """The density of all examples."""
    fit = studio.fit(Position(steepness, l2, without), seat)
    top = max(1.0, float(fit.results.disagreement.max(initial=0.0)))
    counts, x, y = np.histogram2d(_margin(fit), fit.results.disagreement, _BINS, ((0.0, 1.0), (0.0, top)))
    by = "consensus" if fit.results.model_proba is None else "classifier, out of fold"
    return {
        "margin_is": f"gap between the two most probable classes of the {by}",
        "margin_edges": x.tolist(),
        "disagreement_edges": y.tolist(),
        "counts": counts.astype(np.int64).tolist(),
    }


def examples(studio: Studio, order: str, search: str, page: int, size: int, seat: str, **given: Any) -> Answer:
    """One page of a list."""
    fit = studio.fit(Position(given["steepness"], given["l2"], given["without"]), seat)
    margin = _margin(fit)
    keep = _within(margin, given["margin_low"], given["margin_high"])
    keep &= _within(fit.results.disagreement, given["disagreement_low"], given["disagreement_high"])
    if given["one"] is not None:
        keep &= _apart(studio, fit, given["one"], given["other"])
    if search:
        keep &= _matching(studio, search)
    if order == "flipped":
        before = Position(given["before_steepness"], given["before_l2"], given["before_without"])
        keep &= studio.fit(before, seat).results.codes != fit.results.codes
    chosen = _ordered(fit, order, keep)
    shown = chosen[page * size : (page + 1) * size]
    return {"total": len(chosen), "page": page, "size": size, "rows": _rows(fit, shown, margin)}


def _rows(fit: Fit, chosen: Positions, margin: Floats, **wanted: Any) -> list[Answer]:
    more = zip(rows_of(fit, chosen, **wanted), chosen.tolist(), margin[chosen].tolist(), strict=True)
    return [{"row": at, "margin": gap} | row for row, at, gap in more]


def _within(values: Floats, low: float | None, high: float | None) -> Bools:
    return (values >= (-np.inf if low is None else low)) & (values <= (np.inf if high is None else high))


def _apart(studio: Studio, fit: Fit, one: str, other: str | None) -> Bools:
    """Examples that an annotator labelled differently from another one, or from the consensus."""
    theirs = fit.results.codes if other is None else _codes_of(studio.session.labels, studio.annotator(other))
    ours = _codes_of(studio.session.labels, studio.annotator(one))
    return (ours >= 0) & (theirs >= 0) & (ours != theirs)


def _codes_of(labels: CrowdLabels, who: Any) -> Array:
    """The label of an annotator for every example, -1 where there is none."""
    codes = np.full(len(labels), -1)
    theirs = labels.annotator_index == labels.annotators.tolist().index(who)
    codes[labels.example_index[theirs]] = labels.values[theirs]
    return codes


def _matching(studio: Studio, search: str) -> Bools:
    """Examples whose id or text has some words in it."""
    words, examples = search.casefold(), studio.session.labels.examples.tolist()
    texts = [""] * len(examples) if studio.texts is None else studio.texts
    found = (words in f"{example}\n{text}".casefold() for example, text in zip(examples, texts, strict=True))
    return np.fromiter(found, dtype=bool, count=len(examples))


def _ordered(fit: Fit, order: str, keep: Bools) -> Positions:
    results, chosen = fit.results, fit.easy_to_hard
    if order in ("hardest", "contested"):
        chosen = chosen[::-1]
    if order == "contested":
        keep = keep & (results.disagreement > 0) & (fit.labels.labels_per_example > 1)
    elif order == "overridden":
        keep = keep & consensus_section.changed_examples(fit)
    if order in ("unsure", "flipped", "overridden"):
        chosen = np.argsort(results.confidence, kind="stable")
    return chosen[keep[chosen]]


def example(studio: Studio, row: int, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """One example."""
    studio.example(row)
    fit = studio.fit(Position(steepness, l2, without), seat)
    results, at = fit.results, np.array([row])
    model = None if results.model_proba is None else results.model_proba[row].tolist()
    return {
        "example": _rows(fit, at, _margin(fit), length=_WHOLE_TEXT)[0],
        "classes": _classes(results.classes),
        "proba": results.proba[row].tolist(),
        "model_proba": model,
    }


def picture(studio: Studio, row: int) -> Path:
    """The file with the picture of an example: its name is a text of ours, never what a client sends."""
    studio.example(row)
    if studio.pictures is None or studio.texts is None or studio.texts[row] is None:
        raise Problem(404, "there is no picture of this example.", "row")
    folder = studio.pictures.resolve()
    path = (folder / str(studio.texts[row])).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise Problem(404, f"there is no picture {str(studio.texts[row])[:80]!r} in the folder of pictures.", "row")
    return path


# ---------------------------------------------------------------------------------------------------------------------
# Label


def label(studio: Studio, person: str, rule: Any, check: float) -> Answer:
    """What to ask a person next, and what they did."""
    session = studio.session
    try:
        offered = session.next(person, rule=rule, check=check)
    except ValueError as error:
        raise Problem(422, str(error), "rule") from None
    done = session.done_by(person)
    last = {one.example: one for one in done}
    answered = sum(one.label is not None for one in last.values())
    facts = session.checked(person)
    return {
        "person": person,
        "version": session.version,
        "classes": _classes(session.labels.classes),
        "next": _shown(studio, session.position_of(offered[0])) if offered else None,
        "last": [
            _shown(studio, one.example) | {"code": None if one.label is None else session.code_of(one.label)}
            for one in list(reversed(done))[:_LAST]
        ],
        "progress": {
            "answers": answered,
            "skipped": len(last) - answered,
            "left": session.n_left(person),
            "checked": facts["checked"],
            "right": facts["right"],
            "accuracy": _accuracy(studio, person, facts),
        },
        "is_pending": session.is_pending,
        "stop": None,
    }


def _shown(studio: Studio, row: int) -> Answer:
    text = None if studio.texts is None or studio.texts[row] is None else str(studio.texts[row])[:_WHOLE_TEXT]
    return {"row": row, "example": named(studio.session.labels.examples[row]), "text": text}


def _accuracy(studio: Studio, person: str, facts: dict[str, Any]) -> Answer:
    """On known answers if these are enough; else as the fit estimates it."""
    if facts["checked"] >= _CHECKED_ENOUGH:
        return estimate(facts["accuracy"], facts["low"], facts["high"])
    result = studio.session.result
    if result is None or person not in result.annotators.tolist():
        return accuracy_of(np.zeros(0))
    columns, at = result.annotator_columns(), result.annotators.tolist().index(person)
    return estimate(*(columns[f"accuracy{end}"][at] for end in ("", "_low", "_high")))


def answer(studio: Studio, person: str, row: int, code: int) -> Answer:
    """Count an answer."""
    session, given = studio.session, studio.example(row)
    classes = session.labels.classes
    assert classes is not None
    if code >= len(classes):
        raise Problem(422, f"there are {len(classes)} classes, from 0; got {code}.", "code")
    session.answer(given, person, classes[code : code + 1].tolist()[0])
    return _done(studio, row, person, code)


def skip(studio: Studio, person: str, row: int) -> Answer:
    """Count an example as skipped."""
    studio.session.skip(studio.example(row), person)
    return _done(studio, row)


def undo(studio: Studio, person: str) -> Answer:
    """Take back the last thing that a person did."""
    try:
        return _done(studio, studio.session.position_of(studio.session.undo(person)))
    except DataError as error:
        raise Problem(409, str(error), "person") from None


def _done(studio: Studio, row: int, person: str | None = None, code: int | None = None) -> Answer:
    session = studio.session
    known = session.known_answer(studio.example(row)) if person is not None and person not in session.experts else None
    right = None if known is None else session.code_of(known)
    checked = None if right is None else {"code": right, "is_right": right == code}
    return {"row": row, "version": session.version, "checked": checked}


def retune(studio: Studio) -> Answer:
    """Choose l2 and steepness anew."""
    studio.session.retune()
    return now(studio)


def export(studio: Studio, format: str) -> tuple[str, str, bytes]:
    """A file: its name, what it is, and its content."""
    session = studio.session
    result = session.result
    if format != "csv" and result is None:
        raise Problem(409, "there are no labels yet.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        if format == "csv":
            session.save(path)
            return "labels.csv", "text/csv", path.read_bytes()
        assert result is not None
        if format == "consensus":
            formats.write(result.consensus, path)
            return "consensus.csv", "text/csv", path.read_bytes()
        examples = result.examples.tolist()
        shown = examples if studio.texts is None else studio.texts
        texts = {example: str(text) for example, text in zip(examples, shown, strict=True)}
        formats.write(result.consensus, path, format=format, texts=texts)
        return "consensus.json", "application/json", path.read_bytes()


# ---------------------------------------------------------------------------------------------------------------------
# Model


def model(studio: Studio, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """What was learned, how good it is, and what was decided."""
    fit = studio.fit(Position(steepness, l2, without), seat)
    settings = how_it_was_made(fit)
    quality = consensus_section.data(fit)
    known = quality["truth_check"]
    return {
        "name": settings["model"]["name"],
        "position": _position(fit, without),
        "settings": settings["model"]["settings"],
        "choices": settings["choices"],
        "coefficients": coefficients(studio, fit),
        "classifier": quality["classifier"],
        "reliability": None if known is None else known.get("reliability"),
        "truth_check": known,
        "theory": studio.section("theory", lambda: theory(studio)),
    }


def theory(studio: Studio) -> Answer | None:
    """Mistakes of a perceptron that is fed once, easy examples first, beside the most that it can make."""
    session = studio.session
    X, labels = session.X, session.labels
    fed = np.flatnonzero(labels.labels_per_example)
    fed = fed[:: max(len(fed) // _MOST_FED, 1)]
    if X is None or sparse.issparse(X) or labels.classes is None or len(labels.classes) != 2 or len(fed) < _LEAST_FED:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        perceptron = EasyFirstPerceptron(n_epochs=1, max_regions=_REGIONS).fit(np.asarray(X)[fed], labels[fed])
    bound, per_region = perceptron.bound(), perceptron.mistakes_per_region_.tolist()
    words = (
        f"Fed with {count(len(fed), 'labelled example')}, easy ones first, a perceptron makes "
        f"{count(bound.n_mistakes, 'mistake')}; it cannot make more than {bound.value:,.0f}."
    )
    return {
        "bound": plain(bound.value),
        "novikoff": plain(bound.novikoff),
        "mistakes": bound.n_mistakes,
        "examples": len(fed),
        "theorem": 3 if bound.deviation > 0 else 2,
        "regions": [{"region": k, "mistakes": n} for k, n in enumerate(per_region, start=1)],
        "words": words,
    }


def coefficients(studio: Studio, fit: Fit) -> list[Answer]:
    """The largest coefficients of every score, by size."""
    coef: Array | None = getattr(fit.model, "coef_", None)
    if coef is None:
        return []
    classes = _classes(fit.results.classes)
    of = classes[-1:] if len(coef) == 1 else classes
    return [
        {"of": name, "total": len(values), "rows": _largest(studio, values)}
        for name, values in zip(of, np.asarray(coef), strict=True)
    ]


def _largest(studio: Studio, values: Floats) -> list[Answer]:
    names, largest = studio.feature_names, np.argsort(-np.abs(values), kind="stable")[:_MOST_COEFFICIENTS].tolist()
    return [{"name": str(i) if names is None else named(names[i]), "value": float(values[i])} for i in largest]


def _classes(classes: Array | None) -> list[str]:
    return [] if classes is None else [named(name) for name in classes]


# What openapi.json calls them.
VIEWS: dict[str, Callable[..., Any]] = {
    one.__name__.rstrip("_"): one
    for one in (
        start, now, curve, refit, explore, annotators, annotator, pairs, map_, examples, example, picture, label,
        answer, skip, undo, retune, export, model,
    )
}  # fmt: skip


def as_json(answer: Any) -> bytes:
    """A view as it is sent."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace")
