"""Rows of a marketplace's results -> their examples: tasks that show the same are one, whatever their ids."""

from __future__ import annotations

from collections.abc import Sequence


class SameInputs:
    """The id of the first task that showed something, for all tasks that show it.

    Examples
    --------
    >>> from crowdwise.formats.same_inputs import SameInputs
    >>> tasks = SameInputs()
    >>> tasks.example("t1", ["a picture"]), tasks.example("t2", ["a picture"]), tasks.n_merged
    ('t1', 't1', 1)
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, ...], str] = {}
        self._merged: set[str] = set()

    @property
    def n_merged(self) -> int:
        """How many tasks show what another one shows."""
        return len(self._merged)

    def example(self, task: str, inputs: Sequence[str]) -> str:
        """The example of a task; its id, and what it shows, may be empty."""
        if not any(inputs):
            return task
        first = self._first.setdefault(tuple(inputs), task or " / ".join(inputs))
        if task and first != task:
            self._merged.add(task)
        return first
