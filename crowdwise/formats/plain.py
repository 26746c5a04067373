"""Plain tables -> labels: a row per label, or a row per example with a column per annotator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from crowdwise._text import some_names
from crowdwise.exceptions import LabelError
from crowdwise.formats.answers import NUMBER, Answers
from crowdwise.formats.label_file import WIDE, LabelFile, Wishes, make_label_file
from crowdwise.formats.names import (
    TEXT_WORDS,
    candidates,
    find_columns,
    find_example,
    plain_name,
    shell_word,
    text_column,
)
from crowdwise.labels.encode import as_objects
from crowdwise.labels.mistakes import plain_spelling, refuse_id_column
from crowdwise.tables import Block, Table

# Columns that hold more values in all are not taken for those of annotators unless they are said to be.
_MOST_CLASSES = 20
# A column with so many answers, most of which nobody else gave, is hardly that of an annotator.
_MANY_ANSWERS = 10
_ONE_OF_MANY = re.compile(
    r"(annotator|worker|rater|judge|coder|labell?er|assessor|grader|expert|user|participant|reviewer|ann|anno)_?([0-9]+|[a-z])"
)


def read_plain(table: Table, wishes: Wishes) -> LabelFile:
    """Labels from a plain table, long or wide."""
    if wishes.question is not None:
        raise LabelError(
            f"{table.source.name} is a plain table, which has no questions: name the column with --label COLUMN."
        )
    if _is_wide(table.header, wishes):
        return _read_wide(table, wishes)
    if wishes.wide is None and _looks_wide(table, wishes):
        how = "seen by their values; if it is not so, name --example, --annotator and --label"
        return _read_wide(table, wishes, how=how)
    return _read_long(table, wishes)


def _is_wide(header: Sequence[str], wishes: Wishes) -> bool:
    """Whether there is a column per annotator: said so, or all but the ids and texts are numbered annotators."""
    if wishes.wide is not None:
        return wishes.wide
    if not (wishes.annotator is None and wishes.label is None):
        return isinstance(wishes.annotator, tuple)
    numbered = [name for name in header if _ONE_OF_MANY.fullmatch(plain_name(name))]
    ids = [name for name in (wishes.example, *candidates(header, "example")) if name is not None]
    text = text_column(header, ids, wishes.text)
    return len(numbered) >= 2 and {*header} <= {*numbered, *ids, text, *candidates(header, "truth")}


def _looks_wide(table: Table, wishes: Wishes) -> bool:
    """Whether nothing is named like an annotator or a label, and all columns beside ids and texts hold the same few.

    Where ids repeat, or are not there and labels are numbers, a row may as well be a label: that is a doubt.
    """
    header = table.header
    if wishes.annotator or wishes.label or candidates(header, "annotator") or candidates(header, "label"):
        return False
    named = [name for name in candidates(header, "example") if plain_name(name) not in TEXT_WORDS]
    ids = named if wishes.example is None else [wishes.example]
    others = (*ids, text_column(header, ids, wishes.text), *candidates(header, "truth"))
    block = next(table.blocks(), None)
    if block is None or not header or len(ids) > 1 or not set(ids) <= set(header):
        return False
    cells = dict(zip(header, block.columns, strict=True))
    none = {"", *wishes.missing, *wishes.abstain}
    given = [set(cells[name]) for name in header if name not in others]
    if ids and len(set(cells[ids[0]])) < len(cells[ids[0]]):
        return False
    if not ids and any(NUMBER.fullmatch(value) for values in given for value in values - none):
        return False
    return _same_few(given, none, len(block.columns[0]))


def _same_few(columns: Sequence[set[str]], none: set[str], n_rows: int) -> bool:
    """Whether columns have few values in all, and mostly values that others have.

    Each also has at least half of the values, or gaps: an annotator of few examples gives few classes.
    """
    columns = [cells for cells in columns if cells - none]
    filled = [cells - none for cells in columns]
    known = set().union(*filled)
    if len(filled) < 2 or not len(known) <= min(_MOST_CLASSES, n_rows):
        return False
    often = Counter(value for values in filled for value in values)
    shared = {value for value, n in often.items() if n > 1}
    return all(
        2 * len(values & shared) >= len(values) and (2 * len(values) >= len(known) or bool(cells & none))
        for cells, values in zip(columns, filled, strict=True)
    )


def _read_long(table: Table, wishes: Wishes) -> LabelFile:
    given = {"example": wishes.example, "annotator": _single(wishes.annotator), "label": wishes.label}
    found = find_columns(table.source.name, table.header, given)
    at = [table.position(column) for column in found.values()]
    text = text_column(table.header, list(found.values()), wishes.text) if wishes.texts else None
    answers = Answers(wishes.missing, strip=wishes.strip)
    answers.notes += [*table.notes, "columns: " + ", ".join(f"{column} -> {role}" for role, column in found.items())]
    for block in table.blocks():
        columns: Sequence[Sequence[str]] = [block.columns[i] for i in at]
        if "" in columns[0] or "" in columns[1]:
            columns = _without_empty_rows(table, block, columns, list(found.values()), answers.missing)
            answers.left_out["empty rows"] += len(block.columns[0]) - len(columns[0])
        answers.extend(*columns)
        if text is not None:
            for example, words in zip(block.columns[at[0]], block.columns[table.position(text)], strict=True):
                answers.texts.setdefault(example, words)
        if wishes.on_rows is not None:
            wishes.on_rows(len(answers))
    if text is not None:
        answers.notes.append(f"texts: {text}")
    answers.notes += _unused(table.header, [*found.values(), text])
    return make_label_file(table.source.name, "table", answers, wishes)


def _unused(header: Sequence[str], used: Collection[str | None]) -> list[str]:
    """A sentence that names the columns that are not used, if there are any."""
    others = _without(header, used)
    return [f"columns that are not used: {some_names(others)}"] if others else []


def _without(names: Iterable[str], others: Iterable[str | None]) -> list[str]:
    """The names that are not among others, in time that grows with how many there are of both."""
    left_out = {*others}
    return [name for name in names if name not in left_out]


def _single(annotator: str | tuple[str, ...] | None) -> str | None:
    if isinstance(annotator, tuple):
        raise LabelError(
            "annotator must be one column of a table with a row per label; several are those of a wide table."
        )
    return annotator


def _without_empty_rows(
    table: Table, block: Block, columns: Sequence[Sequence[str]], names: Sequence[str], missing: Collection[str]
) -> Sequence[Sequence[str]]:
    """The rows in which something is; an error if a label is without its example or annotator."""
    rows = []
    for i, row in enumerate(zip(*columns, strict=True)):
        if not any(row):
            continue
        if (not row[0] or not row[1]) and row[2] not in missing:
            role, name = ("example", names[0]) if not row[0] else ("annotator", names[1])
            raise LabelError(
                f"{table.source.name}, line {block.line_of(i)}: every label needs its {role}, and the column "
                f"{name!r} is empty there. Fill it in, or remove the row."
            )
        rows.append(row)
    return list(zip(*rows, strict=True)) if rows else [(), (), ()]


def _read_wide(table: Table, wishes: Wishes, how: str = "") -> LabelFile:
    name, header = table.source.name, table.header
    found = find_example(name, header, wishes.example)
    ids = [] if found is None else [found]
    text = text_column(header, ids, wishes.text)
    annotators = _annotator_columns(table, wishes, [*ids, *([text] if text else [])])
    known = _without(candidates(header, "truth"), [*ids, text, *annotators])
    truth = known[0] if len(known) == 1 else None
    columns = table.columns([*ids, *[column for column in (text, truth) if column], *annotators])
    examples = columns[ids[0]] if ids else [str(i) for i in range(len(columns[annotators[0]]))]
    if not ids:
        _refuse_ids(columns, annotators, wishes)
    none = {"", *wishes.missing, *wishes.abstain}
    if wishes.annotator is None and wishes.kind == "class":
        _refuse_no_annotator(name, {each: columns[each] for each in annotators}, none)
    _refuse_empty_or_repeated(table, ids, examples)
    answers = Answers(wishes.missing, strip=wishes.strip)
    answers.notes += [*table.notes, f"a column per annotator: {some_names(annotators)}{how and f' ({how})'}"]
    answers.notes.append(
        f"columns: {ids[0]} -> example" if ids else "examples are numbered from 0: no column is named like them"
    )
    for annotator in annotators:
        answers.extend(examples, [annotator] * len(examples), columns[annotator])
    if text:
        answers.notes.append(f"texts: {text}")
        answers.texts.update(zip(examples, columns[text], strict=True))
    if truth:
        given = {example: cell for example, cell in zip(examples, columns[truth], strict=True) if cell not in none}
        answers.truth.update(given)
        answers.notes.append(f"known answers: {truth} ({len(given):,})")
    answers.notes += _unused(header, [*ids, text, truth, *annotators])
    return make_label_file(name, WIDE, answers, wishes)


def _annotator_columns(table: Table, wishes: Wishes, taken: Sequence[str]) -> list[str]:
    if wishes.annotator is None:
        columns = _without(table.header, [*taken, *candidates(table.header, "truth")])
    else:
        columns = [wishes.annotator] if isinstance(wishes.annotator, str) else list(wishes.annotator)
    for name in columns:
        table.position(name)
    if not columns:
        raise LabelError(
            f"{table.source.name}: no column is left for an annotator; the columns are {some_names(table.header)}."
        )
    return columns


def _refuse_ids(columns: dict[str, list[str]], annotators: list[str], wishes: Wishes) -> None:
    matrix = as_objects([cell for name in annotators for cell in columns[name]]).reshape(len(annotators), -1).T
    matrix[matrix == ""] = None
    refuse_id_column(matrix, annotators, ratings=wishes.kind == "rating")


def _refuse_no_annotator(name: str, columns: dict[str, list[str]], none: set[str]) -> None:
    """An error if a column gives other answers than columns that share theirs: a text, a source, a confidence."""
    given = {annotator: set(map(plain_spelling, set(cells) - none)) for annotator, cells in columns.items()}
    often = Counter(value for values in given.values() for value in values)
    alike = _answers_in_common(list(given.values()))
    own = [
        annotator
        for annotator, values in given.items()
        if sum(cell not in none for cell in columns[annotator]) >= _MANY_ANSWERS
        and (2 * sum(often[value] > 1 for value in values) < len(values) or values.isdisjoint(alike))
        and not _ONE_OF_MANY.fullmatch(plain_name(annotator))
    ]
    others = _without(columns, own)
    if own and len(others) >= 2:
        one = next(cell for cell in columns[own[0]] if cell not in none)
        raise LabelError(
            f"{name}: the column {own[0]!r} does not look like an annotator: its values ({one[:40]!r}, ...) differ "
            f"from those of {others[0]!r} and {others[1]!r}. Name the annotators' columns: "
            f"--annotator {shell_word(','.join(others))} --wide (in Python: annotator=[...]); name {own[0]!r} too if "
            "it is one."
        )


def _answers_in_common(columns: Sequence[set[str]]) -> set[str]:
    """The values of columns that share values, one with another: of several such sets those of the fewest values."""
    set_of: dict[str, set[str]] = {}  # a value -> all values of its columns, the same set for each of them
    shared: list[str] = []  # at least one value of every such set
    for values in columns:
        touching = sorted({id(held := set_of[value]): held for value in values if value in set_of}.values(), key=len)
        whole = touching.pop() if touching else set()
        shared += [value for value in values if value in whole][:1]
        for part in (values, *touching):  # the smaller ones join the largest
            whole |= part
            set_of.update(dict.fromkeys(part, whole))
    return min((set_of[value] for value in shared), key=len, default=set())


def _refuse_empty_or_repeated(table: Table, ids: Sequence[str], examples: Sequence[str]) -> None:
    if not ids or (len(set(examples)) == len(examples) and "" not in examples):
        return
    seen: set[str] = set()
    for number, example in enumerate(examples, start=1):
        if not example or example in seen:
            what = f"{example!r} occurs a second time" if example else "it is empty"
            raise LabelError(
                f"{table.source.name}, row {number} after the header: a table with a column per annotator has a row "
                f"per example, and in the column {ids[0]!r} {what}."
            )
        seen.add(example)
