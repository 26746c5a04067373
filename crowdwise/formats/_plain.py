"""Plain tables -> labels: a row per label, or a row per example with a column per annotator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from crowdwise._text import some_names
from crowdwise.exceptions import LabelError
from crowdwise.formats._answers import NUMBER, WIDE, Answers, ReadOptions
from crowdwise.formats._names import (
    candidates,
    check_ids,
    find_columns,
    find_example,
    plain_name,
    shell_word,
    text_column,
)
from crowdwise.labels._encode import as_objects
from crowdwise.labels._mistakes import MANY_EXAMPLES, plain_spelling, refuse_id_column
from crowdwise.tables import Block, Table

# Columns that hold more values in all are not taken for those of annotators unless they are named.
_MOST_CLASSES = 20
# So many words, or characters, make a text rather than the name of a class.
_WORDS_OF_TEXT, _LENGTH_OF_TEXT = 3, 30
_ONE_OF_MANY = re.compile(
    r"(annotator|worker|rater|judge|coder|labell?er|assessor|grader|expert|user|participant|reviewer|ann|anno)_?([0-9]+|[a-z])"
)


def read_plain(table: Table, answers: Answers) -> str:
    """Take a plain table, long or wide; which of them it is."""
    options = answers.options
    if options.question is not None:
        raise LabelError(
            f"{table.source.name} is a plain table, which has no questions: name the column with --label COLUMN."
        )
    answers.notes += table.notes
    first = next(table.blocks(), None)
    cells = dict(zip(table.header, first.columns if first else [()] * len(table.header), strict=True))
    texts = [name for name in cells if _holds_texts(cells[name])]
    if _is_wide(table.header, options, texts):
        _read_wide(table, answers, cells, texts)
        return WIDE
    if options.wide is None and _looks_wide(answers.name, cells, options, texts):
        seen = " (recognised by their values; if wrong, give --example, --annotator and --label)"
        _read_wide(table, answers, cells, texts, seen)
        return WIDE
    _read_long(table, answers)
    return "table"


def _holds_texts(cells: Sequence[str]) -> bool:
    """Whether most cells of a column are long, and most of them different: texts, and not the names of classes."""
    filled = [cell for cell in cells if cell]
    long = sum(len(cell) >= _LENGTH_OF_TEXT or len(cell.split()) >= _WORDS_OF_TEXT for cell in filled)
    return len(filled) >= MANY_EXAMPLES and 2 * long > len(filled) and 2 * len(set(filled)) > len(filled)


def _holds_ids(cells: Sequence[str]) -> bool:
    """Whether all cells of a column are different and no fractions."""
    return (
        len(cells) >= MANY_EXAMPLES
        and all(cells)
        and len(set(cells)) == len(cells)
        and not any(NUMBER.fullmatch(cell) and "." in cell for cell in cells)
    )


def _id_column(name: str, cells: Mapping[str, Sequence[str]], options: ReadOptions, texts: Sequence[str]) -> str | None:
    """The column with the examples' ids in a table with a row per example: by its name, else by its values."""
    short = _without(cells, texts)
    if options.example is None and (named := find_example(name, short, None)):
        return named
    by_values = [column for column in _without(short, options.annotator or ()) if _holds_ids(cells[column])]
    if options.example is None and options.scale.has_classes and len(by_values) == 1:
        return by_values[0]
    return find_example(name, list(cells), options.example)


def _is_wide(header: Sequence[str], options: ReadOptions, texts: Sequence[str]) -> bool:
    """Whether there is a column per annotator: by the options, or all but the ids and texts are numbered annotators."""
    if options.wide is not None:
        return options.wide
    if options.annotator is not None or options.label is not None:
        return isinstance(options.annotator, tuple)
    numbered = [name for name in header if _ONE_OF_MANY.fullmatch(plain_name(name))]
    ids = [name for name in (options.example, *candidates(header, "example")) if name is not None]
    text = text_column(header, ids, options.text)
    return len(numbered) >= 2 and {*header} <= {*numbered, *ids, text, *texts, *candidates(header, "truth")}


def _looks_wide(name: str, cells: Mapping[str, Sequence[str]], options: ReadOptions, texts: Sequence[str]) -> bool:
    """Whether nothing is named like an annotator or a label, and all columns beside ids and texts hold the same few.

    Where ids repeat, or labels are numbers without ids and texts, a row may as well be a label: that is a doubt.
    """
    header = _without(cells, texts)
    if options.annotator or options.label or candidates(header, "annotator") or candidates(header, "label"):
        return False
    id_column = _id_column(name, cells, options, texts)
    ids = [id_column] if id_column else []
    no_annotators = (*ids, text_column(header, ids, options.text), *candidates(header, "truth"))
    if not header or (ids and len(set(cells[ids[0]])) < len(cells[ids[0]])):
        return False
    columns, none = [set(cells[column]) for column in _without(header, no_annotators)], options.no_labels
    if not ids and not texts and any(NUMBER.fullmatch(value) for column in columns for value in column - none):
        return False
    return _same_few(columns, none, len(cells[header[0]]))


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


def _read_long(table: Table, answers: Answers) -> None:
    options = answers.options
    if isinstance(options.annotator, tuple):
        raise LabelError(
            "annotator must be one column of a table with a row per label; several are those of a wide table."
        )
    named = {"example": options.example, "annotator": options.annotator, "label": options.label}
    column_of = find_columns(table.source.name, table.header, named)
    names = list(column_of.values())
    text = text_column(table.header, names, options.text) if options.texts else None
    answers.notes.append("columns: " + ", ".join(f"{column} -> {role}" for role, column in column_of.items()))
    for block in table.blocks():
        columns: Sequence[Sequence[str]] = [block.columns[table.position(name)] for name in names]
        if text is not None:
            for example, words in zip(columns[0], block.columns[table.position(text)], strict=True):
                if example:
                    answers.texts.setdefault(example, words)
        if "" in columns[0] or "" in columns[1]:
            columns = _without_empty_rows(table, block, columns, names, {"", *options.missing})
            answers.left_out["empty rows"] += len(block.columns[0]) - len(columns[0])
        answers.extend(*columns)
        if options.on_rows is not None:
            options.on_rows(len(answers))
    if text is not None:
        answers.notes.append(f"texts: {text}")
    answers.notes += _unused(table.header, [*names, text])


def _unused(header: Sequence[str], used: Collection[str | None]) -> list[str]:
    """A note that names the columns that are not read as labels, if there are any."""
    unused = _without(header, used)
    return [f"other columns: {some_names(unused)}"] if unused else []


def _without(names: Iterable[str], left_out: Iterable[str | None]) -> list[str]:
    """The names that are not left out, in time that grows with how many there are of both."""
    left_out = {*left_out}
    return [name for name in names if name not in left_out]


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


def _read_wide(
    table: Table, answers: Answers, cells: Mapping[str, Sequence[str]], texts: Sequence[str], how: str = ""
) -> None:
    header, options, none = table.header, answers.options, answers.options.no_labels
    id_column = _id_column(answers.name, cells, options, texts)
    text = text_column(header, [id_column] if id_column else [], options.text)
    if text is None and options.text is None and texts:
        text = texts[0]
    annotators = _annotator_columns(table, options, [id_column, text, *texts])
    known = _without(candidates(header, "truth"), [id_column, text, *annotators])
    truth = known[0] if len(known) == 1 else None
    columns = table.columns([*(name for name in (id_column, text, truth) if name), *annotators])
    if id_column:
        examples = columns[id_column]
        check_ids(table.place, id_column, examples)
    else:
        examples = [str(i) for i in range(len(columns[annotators[0]]))]
        _refuse_ids(columns, annotators, options)
    if options.annotator is None and options.scale.has_classes:
        _refuse_no_annotator(answers.name, {name: columns[name] for name in annotators}, none)
    answers.notes.append(f"a column per annotator: {some_names(annotators)}{how}")
    answers.notes.append(
        f"columns: {id_column} -> example"
        if id_column
        else "examples are numbered from 0: no column is named like them"
    )
    for annotator in annotators:
        answers.extend(examples, [annotator] * len(examples), columns[annotator])
    if text:
        answers.notes.append(f"texts: {text}")
        answers.texts.update(zip(examples, columns[text], strict=True))
    if truth:
        answers.truth |= {key: cell for key, cell in zip(examples, columns[truth], strict=True) if cell not in none}
        answers.notes.append(f"known answers: {truth} ({len(answers.truth):,})")
    answers.notes += _unused(header, [id_column, text, truth, *annotators])


def _annotator_columns(table: Table, options: ReadOptions, taken: Sequence[str | None]) -> list[str]:
    if options.annotator is None:
        columns = _without(table.header, [*taken, *candidates(table.header, "truth")])
    else:
        columns = [options.annotator] if isinstance(options.annotator, str) else list(options.annotator)
    if not columns:
        raise LabelError(
            f"{table.source.name}: no column is left for an annotator; the columns are {some_names(table.header)}."
        )
    return columns


def _refuse_ids(columns: dict[str, list[str]], annotators: list[str], options: ReadOptions) -> None:
    matrix = as_objects([cell for name in annotators for cell in columns[name]]).reshape(len(annotators), -1).T
    matrix[matrix == ""] = None
    refuse_id_column(matrix, annotators, ratings=not options.scale.has_classes)


def _refuse_no_annotator(name: str, columns: dict[str, list[str]], none: set[str]) -> None:
    """An error if a column gives other answers than columns that share theirs: a text, a source, a confidence."""
    answers = {annotator: set(map(plain_spelling, set(cells) - none)) for annotator, cells in columns.items()}
    n_columns = Counter(value for values in answers.values() for value in values)
    alike = _answers_in_common(list(answers.values()))
    strange = [
        annotator
        for annotator, values in answers.items()
        if sum(cell not in none for cell in columns[annotator]) >= MANY_EXAMPLES
        and (2 * sum(n_columns[value] > 1 for value in values) < len(values) or values.isdisjoint(alike))
        and not _ONE_OF_MANY.fullmatch(plain_name(annotator))
    ]
    usual = _without(columns, strange)
    if strange and len(usual) >= 2:
        first = next(cell for cell in columns[strange[0]] if cell not in none)
        raise LabelError(
            f"{name}: the column {strange[0]!r} does not look like an annotator: its values ({first[:40]!r}, ...) "
            f"differ from those of {usual[0]!r} and {usual[1]!r}. Name the annotators' columns: "
            f"--annotator {shell_word(','.join(usual))} --wide (in Python: annotator=[...]); name {strange[0]!r} too "
            "if it is one."
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
