"""Names of columns -> what they hold (the example, the annotator, ...); names of questions -> one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from crowdwise._text import some_names
from crowdwise.exceptions import LabelError

# What people call the columns; more than `labels.frames.USUAL_NAMES` has, for here a doubt is an error. A name of a
# later group counts where no column has one of an earlier group.
_WORDS = {
    "example": (
        ("example", "task", "item", "question", "unit", "document", "doc", "sample", "instance", "object", "hit",
         "sentence_id", "text_id", "tweet_id", "image_id", "comment_id", "post_id", "pair_id", "orig_id", "prompt_id",
         "query_id", "conversation_id", "case_id", "record_id"),
        ("id", "uid", "uuid", "index", "key", "row", "image"),
        ("column_1", "text", "sentence"),
    ),
    "annotator": (
        ("annotator", "worker", "rater", "judge", "coder", "labeler", "labeller", "assessor", "turker", "grader",
         "amt_worker", "crowdworker", "performer", "llm", "judge_model", "llm_judge"),
        ("user", "participant", "expert", "reviewer", "username", "who", "person", "subject"),
    ),
    "label": (
        ("label", "rating", "answer", "response", "annotation", "judgment", "judgement", "vote", "verdict"),
        ("class", "category", "value", "score", "choice", "label_id", "class_id", "grade", "output", "winner",
         "preference", "decision"),
    ),
    "truth": (
        ("truth", "gold", "ground_truth", "gold_label", "gold_answer", "gold_standard", "true_label", "truth_label",
         "correct_label", "correct_answer"),
    ),
}  # fmt: skip
TEXT_WORDS = (
    "text", "sentence", "tweet", "comment", "document", "content", "sentence_text", "comment_text", "body", "prompt",
)  # fmt: skip
_SUFFIXES = {"example": ("", "_id", "_ids", "_name"), "annotator": ("", "_id", "_ids", "_name")}


def plain_name(name: str) -> str:
    """A name in small letters with underscores: "WorkerId", "worker id" and "WORKER_ID" are one.

    Examples
    --------
    >>> from crowdwise.formats._names import plain_name
    >>> plain_name("WorkerId"), plain_name("!amt worker-ID")
    ('worker_id', 'amt_worker_id')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", parted).strip("_").lower()


def candidates(header: Sequence[str], role: str) -> list[str]:
    """The columns that may hold something by their names: none, one, or several in doubt."""
    for words in _WORDS[role]:
        usual = {word + suffix for word in words for suffix in _SUFFIXES.get(role, ("",))}
        if found := [name for name in header if plain_name(name) in usual]:
            return found
    return []


def find_columns(name: str, header: Sequence[str], given: dict[str, str | None]) -> dict[str, str]:
    """The column of each role: the one given, else the one that is named like it."""
    for role, column in given.items():
        if column is not None and column not in header:
            raise LabelError(f"{name} has no column {column!r} for {role}; its columns are {some_names(header)}.")
    taken = {column for column in given.values() if column is not None}
    found = {
        role: [column] if column is not None else [c for c in candidates(header, role) if c not in taken]
        for role, column in given.items()
    }
    if all(len(columns) == 1 for columns in found.values()) and len({c[0] for c in found.values()}) == len(found):
        return {role: columns[0] for role, columns in found.items()}
    raise LabelError(_doubt(name, header, found))


def _doubt(name: str, header: Sequence[str], found: dict[str, list[str]]) -> str:
    said = []
    for role, columns in found.items():
        if len(columns) > 1:
            said.append(f"{' and '.join(map(repr, columns))} may both hold the {role}")
        elif not columns:
            said.append(f"no column is named like the {role}")
    doubt = "; ".join(said) or "one column cannot be two things"
    flags = " ".join(
        f"--{role} {shell_word(columns[0]) if len(columns) == 1 else 'COLUMN'}" for role, columns in found.items()
    )
    headless = "" if any(found.values()) else " If its first line is no header, add one, such as task,worker,label."
    return (
        f"{name}: {doubt}. Its columns are {some_names(header)}. Say which is which: {flags} (in Python: "
        f"{', '.join(f'{role}=...' for role in found)}); a table with a column per annotator: --wide (wide=True)."
        f"{headless}"
    )


def shell_word(name: str) -> str:
    """A name as it is typed in a shell."""
    return name if re.fullmatch(r"[\w.:/-]+", name) else "'" + name.replace("'", "'\\''") + "'"


def find_example(
    name: str, header: Sequence[str], given: str | None, option: str = "--example", not_like: Sequence[str] = TEXT_WORDS
) -> str | None:
    """The column with the example's id in a table with a row per example; None if no column is named like it.

    It is the one given with an option, else the only one that is named like ids and not like `not_like`.
    """
    if given is not None:
        if given not in header:
            raise LabelError(f"{name} has no column {given!r} for example; its columns are {some_names(header)}.")
        return given
    found = [column for column in candidates(header, "example") if plain_name(column) not in not_like]
    if len(found) > 1:
        raise LabelError(
            f"{name}: {' and '.join(map(repr, found))} may both hold the ids of the examples. Name the right one: "
            f"{option} {shell_word(found[0])} (in Python: {option.removeprefix('--')}={found[0]!r})."
        )
    return found[0] if found else None


def check_ids(place_of: Callable[[int], str], column: str, ids: Sequence[str]) -> None:
    """An error unless every row has an id, and no two the same; `place_of` a position is for messages."""
    first: dict[str, int] = {}
    for i, example in enumerate(ids):
        if not example or first.setdefault(example, i) != i:
            what = f"{example!r} occurs a second time, after {place_of(first[example])}" if example else "it is empty"
            raise LabelError(
                f"{place_of(i)}: every example needs one row and an id of its own, and in the column {column!r} {what}."
            )


def text_column(header: Sequence[str], taken: Sequence[str], given: str | None = None) -> str | None:
    """The column that holds what was labelled: the one given, if it is there, else the only one that is named so."""
    if given is not None:
        return given if given in header else None
    named: dict[str, list[str]] = {}
    for name in header:
        named.setdefault(plain_name(name), []).append(name)
    found = ([name for name in named.get(word, ()) if name not in taken] for word in TEXT_WORDS)
    return next((names[0] for names in found if len(names) == 1), None)


class SeveralQuestionsError(LabelError):
    """Annotators answered several questions, and none was picked."""

    def __init__(self, name: str, questions: tuple[str, ...]) -> None:
        self.questions = questions
        super().__init__(
            f"{name} has {len(questions)} questions: {', '.join(questions)}. Pick one: --question "
            f"{shell_word(questions[0])} (in Python: question={questions[0]!r}); or fit each: crowdwise fit --question "
            "all."
        )


def choose_question(name: str, questions: Iterable[str], wanted: str | None) -> str:
    """The question whose answers are the labels: the one wanted, or the only one."""
    names = list(dict.fromkeys(questions))
    if wanted is not None:
        if wanted in names:
            return wanted
        raise LabelError(f"{name} has no question {wanted!r}; its questions are {', '.join(names) or '(none)'}.")
    if not names:
        raise LabelError(f"{name}: there is no question in it that was answered with a class or a rating.")
    if len(names) > 1:
        raise SeveralQuestionsError(name, tuple(names))
    return names[0]
