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
        if columns := [name for name in header if plain_name(name) in usual]:
            return columns
    return []


def _check_column(name: str, header: Sequence[str], role: str, column: str) -> None:
    if column not in header:
        raise LabelError(f"{name} has no column {column!r} for {role}; its columns are {some_names(header)}.")


def find_columns(name: str, header: Sequence[str], named: dict[str, str | None]) -> dict[str, str]:
    """The column of each role: the one that was named, else the one whose name is like it."""
    columns: dict[str, list[str]] = {}
    for role, column in named.items():
        if column is not None:
            _check_column(name, header, role, column)
        usual = [candidate for candidate in candidates(header, role) if candidate not in named.values()]
        columns[role] = usual if column is None else [column]
    if all(len(several) == 1 for several in columns.values()) and len({c for (c,) in columns.values()}) == len(columns):
        return {role: column for role, (column,) in columns.items()}
    doubts = []
    for role, several in columns.items():
        if len(several) > 1:
            doubts.append(f"{' and '.join(map(repr, several))} may both hold the {role}")
        elif not several:
            doubts.append(f"no column is named like the {role}")
    flags = " ".join(
        f"--{role} {shell_word(several[0]) if len(several) == 1 else 'COLUMN'}" for role, several in columns.items()
    )
    headless = (
        "" if any(columns.values()) else " If its first line is not a header, add one, such as task,worker,label."
    )
    raise LabelError(
        f"{name}: {'; '.join(doubts) or 'one column cannot be two things'}. Its columns are {some_names(header)}. Say "
        f"which is which: {flags} (in Python: {', '.join(f'{role}=...' for role in columns)}); a table with a column "
        f"per annotator: --wide (wide=True).{headless}"
    )


def shell_word(name: str) -> str:
    """A name as it is typed in a shell."""
    return name if re.fullmatch(r"[\w.:/-]+", name) else "'" + name.replace("'", "'\\''") + "'"


def find_example(
    name: str, header: Sequence[str], named: str | None, option: str = "--example", not_like: Sequence[str] = TEXT_WORDS
) -> str | None:
    """The column with the example's id in a table with a row per example; None if no column is named like it.

    It is the one named with an option, else the only one that is named like ids and not like `not_like`.
    """
    if named is not None:
        _check_column(name, header, "example", named)
        return named
    columns = [column for column in candidates(header, "example") if plain_name(column) not in not_like]
    if len(columns) > 1:
        raise LabelError(
            f"{name}: {' and '.join(map(repr, columns))} may both hold the ids of the examples. Name the right one: "
            f"{option} {shell_word(columns[0])} (in Python: {option.removeprefix('--')}={columns[0]!r})."
        )
    return columns[0] if columns else None


def check_ids(place_of: Callable[[int], str], column: str, ids: Sequence[str]) -> None:
    """An error unless every row has an id, and no two the same; `place_of` a position is for messages."""
    first: dict[str, int] = {}
    for i, example in enumerate(ids):
        if not example or first.setdefault(example, i) != i:
            fault = f"{example!r} occurs a second time, after {place_of(first[example])}" if example else "it is empty"
            raise LabelError(
                f"{place_of(i)}: every example needs one row and an id of its own, and in the column {column!r} "
                f"{fault}."
            )


def text_column(header: Sequence[str], taken: Sequence[str], named: str | None = None) -> str | None:
    """The column that holds what was labelled: the one named, if it is there, else the only one with such a name."""
    if named is not None:
        return named if named in header else None
    columns: dict[str, list[str]] = {}
    for name in header:
        if name not in taken:
            columns.setdefault(plain_name(name), []).append(name)
    return next((columns[word][0] for word in TEXT_WORDS if len(columns.get(word, ())) == 1), None)


class SeveralQuestionsError(LabelError):
    """Annotators answered several questions, and none was picked."""

    def __init__(self, name: str, questions: tuple[str, ...]) -> None:
        self.questions = questions
        super().__init__(
            f"{name} has {len(questions)} questions: {', '.join(questions)}. Pick one: --question "
            f"{shell_word(questions[0])} (in Python: question={questions[0]!r}); or fit each: crowdwise fit --question "
            "all."
        )


def choose_question(name: str, questions: Iterable[str], named: str | None) -> str:
    """The question whose answers are the labels: the one named, or the only one."""
    names = list(dict.fromkeys(questions))
    if named is not None:
        if named in names:
            return named
        raise LabelError(f"{name} has no question {named!r}; its questions are {', '.join(names) or '(none)'}.")
    if not names:
        raise LabelError(f"{name}: none of its questions was answered with a class or a rating.")
    if len(names) > 1:
        raise SeveralQuestionsError(name, tuple(names))
    return names[0]
