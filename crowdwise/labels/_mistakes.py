"""Labels that look like a mistake (a long table, a column of ids, a name spelt twice) -> an error or a warning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdwise._arrays import Array
from crowdwise._text import count
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels._encode import encode, missing_mask, shown
from crowdwise.labels._frames import USUAL_NAMES

# Columns of these names hold ids if their values are all different.
_ID_NAMES = {*USUAL_NAMES["example"], "id", "index", "key", "row", "uuid", "name", "unnamed: 0"}
# In so many examples, one annotator does not give all of them different labels while the others use few classes.
MANY_EXAMPLES = 10
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
_ZEROS = re.compile(r"^0+(?=[0-9])|(?<=[0-9])\.0+$")
# What is answered in the place of an answer, in plain spelling; yes and no are answers, beside numbers too.
_NO_ANSWERS = re.compile(
    "[?]+|n/?a|idk|(i |i'?m |i am )?(skip(ped)?|unsure|undecided|abstain|no answer|not (sure|applicable)|"
    "(don'?t|do not) know|(can'?t|cannot) (tell|say)|prefer not to say)"
)
_ANSWERS = frozenset({"yes", "no", "true", "false"})


def refuse_long_table(names: Sequence[object]) -> None:
    """Refuse columns that are named as in a long table: they are no annotators."""
    lowered = {str(name).lower(): name for name in names}
    if not all(lowered.keys() & set(USUAL_NAMES[role]) for role in ("annotator", "label")):
        return
    usual = lowered.keys() & set(USUAL_NAMES["example"])
    ids = sorted(lowered.keys() & _ID_NAMES)
    if usual or ids:
        how = "table" if usual else f"table, example={lowered[ids[0]]!r}"
        raise LabelError(
            f"the columns {list(names)} look like a long table with a row per label, not like a column per annotator: "
            f"use CrowdLabels.from_table({how})."
        )


def refuse_id_column(matrix: Array, names: Sequence[object] | None, *, ratings: bool) -> None:
    """Refuse a column whose values are all different, beside columns of a few classes: ids, and no annotator.

    Ratings may well all be different; only a column with the name of an id is refused.
    """
    if matrix.shape[1] < 2:
        return
    for j in range(matrix.shape[1]):
        named = names is not None and str(names[j]).lower() in _ID_NAMES
        if (ratings and not named) or not _all_different(matrix[:, j]):
            continue
        n_values = len(_distinct(np.delete(matrix, j, axis=1)))
        n_rows = len(matrix)
        if (named and (ratings or n_values < n_rows)) or (n_rows >= MANY_EXAMPLES and 2 * n_values <= n_rows):
            column = f"column {shown(names[j])}" if names is not None else f"column number {j} (from 0)"
            raise LabelError(
                f"{column} looks like ids of the examples, not like an annotator: its {len(matrix)} values are all "
                f"different, such as {matrix[:3, j].tolist()}. Make it the index, frame.set_index(...), or drop it; "
                "if it does hold labels, declare the classes with CrowdLabels.from_matrix(..., classes=...)."
            )


def _distinct(values: Array) -> set[object]:
    try:
        return set(values[~missing_mask(values)].tolist())
    except TypeError:  # values without a hash are refused later
        return set()


def _all_different(column: Array) -> bool:
    """Whether there are at least two values, none is missing and no two are the same."""
    parts = (column[:MANY_EXAMPLES], column)  # of most columns the first few are enough
    return len(column) >= 2 and all(len(_distinct(part)) == len(part) for part in parts)


def refuse_fractions(classes: Array) -> None:
    """Refuse numbers with a fraction as classes, unless they were declared."""
    if classes.dtype.kind != "f":
        return
    fractions = classes[classes != np.round(classes)]
    if len(fractions):
        raise LabelError(
            f"Unknown label type: continuous. Expected classes, got {fractions[0]}: declare the classes with "
            'classes=... (--classes); for ratings, scale="interval" (--ratings).'
        )


def perhaps_no_answers(classes: Array) -> list[Any]:
    """Classes that may mean no answer, beside two or more others.

    These are words such as "Unsure", one or two words among numbers, and -1 where the others begin at 0.
    """
    names = classes.tolist()
    if classes.dtype.kind in "if":
        return [-1] if {-1, 0, 1} <= set(names) and min(names) == -1 else []
    words = [name for name in map(str, names) if not _NUMBER.fullmatch(name)]
    meant = [word for word in words if _NO_ANSWERS.fullmatch(plain_spelling(word))]
    beside_numbers = 0 < len(words) <= 2 and _ANSWERS.isdisjoint(map(plain_spelling, words))
    meant = meant or (words if beside_numbers else [])
    return meant if len(names) - len(meant) >= 2 else []


def note_no_answers(classes: Array) -> None:
    """Warn if classes may mean no answer."""
    if meant := perhaps_no_answers(classes):
        option = "missing=-1 (--missing -1)" if meant == [-1] else f"abstain={meant} (--abstain)"
        warn(
            f"{' and '.join(map(repr, meant))} {'counts as a class' if len(meant) == 1 else 'count as classes'}. If it "
            f"means no answer: {option}. If not, declare all classes: classes=[...] (--classes)."
        )


def plain_spelling(name: str) -> str:
    """A name without what people do not mean: spaces at its ends, capitals, how accents are coded."""
    return unicodedata.normalize("NFC", name).strip().casefold()


def spelt_alike(classes: Array) -> list[list[str]]:
    """Groups of classes that differ only in spaces at their ends, in capitals or in how accents are coded."""
    spellings: dict[str, list[str]] = {}
    for name in classes.tolist():
        if isinstance(name, str):
            spellings.setdefault(plain_spelling(name), []).append(name)
    return [names for names in spellings.values() if len(names) > 1]


def note_spellings(classes: Array) -> None:
    """Warn if classes are spelt alike."""
    if alike := spelt_alike(classes):
        shown_names = "; ".join(", ".join(map(repr, names)) for names in alike[:3])
        warn(
            f"{sum(map(len, alike))} classes differ only in spaces, capitals or the encoding of accents and count as "
            f"different: {shown_names}. Make them one: --strip, or read_labels(..., strip=True); for a "
            "frame, frame.apply(lambda column: column.str.strip().str.lower())."
        )


def note_never_given(values: Array, abstain: Array) -> None:
    """Warn if answers that were declared to be none are not among those given, with those that may be meant."""
    if len(abstain) == 0:
        return
    spellings: dict[str, list[str]] = {}
    for value in encode(values, ids=True)[1].tolist():
        spellings.setdefault(plain_spelling(str(value)), []).append(shown(value))
    meant = (spellings.get(plain_spelling(str(value)), []) for value in abstain.tolist())
    named = ", ".join(shown(value) + perhaps(alike) for value, alike in zip(abstain.tolist(), meant, strict=True))
    warn(f"abstain must name answers as they were given; nobody gave {named}.")


def perhaps(meant: Sequence[str]) -> str:
    """A question in brackets, whether these names are meant by another; nothing if there are none."""
    if not meant:
        return ""
    names = ", ".join(meant)
    return f" (is {names} meant?)" if len(meant) == 1 else f" (are {names} meant? Name each by itself)"


def ids_spelt_otherwise(left: Array, right: Array) -> str:
    """Why ids of two sides that are not the same may be meant to be, and what to do; nothing if they may not.

    They may if they are the same without spaces at their ends, leading zeros and ".0", as numbers or as text.
    """
    known = {_bare_id(name): name for name in right.tolist()}
    pairs = [(name, known[bare]) for name in left.tolist() if (bare := _bare_id(name)) in known]
    if not pairs:
        return ""
    texts = [(str(a), str(b)) for a, b in pairs]
    point = any(("." in a) != ("." in b) for a, b in texts)
    zeros = not point and any(a.strip() != b.strip() for a, b in texts)
    causes = {
        "a decimal point (spreadsheets and pandas write whole numbers of a column with gaps so)": point,
        "leading zeros": zeros,
        "spaces at the ends": any(text != text.strip() for pair in texts for text in pair),
        "being text or a number": any(a == b for a, b in texts),
    }
    reasons = " and ".join(cause for cause, is_cause in causes.items() if is_cause)
    dropped = "; spreadsheets drop leading zeros, and so does pandas.read_csv without dtype=str" if zeros else ""
    first = " and ".join(map(shown, pairs[0]))
    return (
        f"{count(len(pairs), 'id')} would match but for {reasons}, such as {first}: write them the same way on both "
        f"sides{dropped}."
    )


def ids_shifted(left: Array, right: Array) -> str:
    """What to do where one side counts from 0 and the other from 1; nothing if all ids match, or not even so."""
    names = [[str(name) for name in side.tolist()] for side in (left, right)]
    if not all(name.isdecimal() for side in names for name in side):
        return ""
    numbers, known = (set(map(int, side)) for side in names)
    for shift in (-1, 1):
        if not numbers <= known and {number + shift for number in numbers} <= known:
            first = min(numbers)
            return (
                f"The ids look shifted by one: {first} on one side is perhaps {first + shift} on the other. Count from "
                "the same number on both sides."
            )
    return ""


def _bare_id(name: object) -> str:
    return _ZEROS.sub("", str(name).strip())
