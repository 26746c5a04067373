"""How labels are read as arrays, selected, and grow: each gives new arrays, and new labels that share the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from crowdwise._arrays import Array, Positions
from crowdwise._checks import check_choice, check_seed
from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import (
    as_column,
    as_ids,
    as_objects,
    encode,
    encode_declared,
    find_ids,
    loses_digits,
    renumbered,
    shown,
    smallest_integer_type,
)
from crowdwise.labels._frames import find_column, table_columns
from crowdwise.labels._label_rows import LabelRows
from crowdwise.labels.scale import is_known


def _room_for_gaps(values: Array) -> tuple[type, float | None]:
    """A type that holds `values` and "missing", and what is missing then: numbers if no digit is lost, else objects."""
    is_number = values.dtype.kind == "f" or (values.dtype.kind in "iu" and not loses_digits(values))
    return (np.float64, np.nan) if is_number else (object, None)


@dataclass(frozen=True, eq=False, repr=False)
class LabelArrays(LabelRows):
    """Labels that are read as arrays, and parts and extensions of them."""

    # ------------------------------------------------------------------ as arrays

    def __iter__(self) -> Iterator[tuple[Any, dict[Any, Any]]]:
        """The id of each example with its labels by annotator."""
        table = self.to_table()
        annotators, labels = table["annotator"].tolist(), table["label"].tolist()
        for name, start, stop in zip(self.examples.tolist(), self.indptr[:-1], self.indptr[1:], strict=True):
            yield name, dict(zip(annotators[start:stop], labels[start:stop], strict=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """One value per example, as scikit-learn's tools need it: the known answer, else the majority or mean rating.

        Ties go to the first class. An example without either is an error; `to_matrix` gives the matrix.
        """
        if copy is False:
            raise ValueError("labels are not stored as one value per example: np.asarray(labels) has to copy them.")
        truth = self.scale.no_answers(len(self)) if self.truth is None else self.truth
        known = is_known(truth)
        if (lacking := ~known & (self.labels_per_example == 0)).any():
            raise LabelError(
                f"example {shown(self.examples[lacking][0])} has neither a label nor a known answer, so there is no "
                "one value per example. Leave such examples out; to_matrix() gives the matrix with gaps."
            )
        if self.classes is None:
            values: Array = self._sum_per_example(self.values) / np.maximum(self.labels_per_example, 1)
        else:
            values = self._tally.argmax(axis=1) if len(self.classes) else np.zeros(len(self), dtype=np.intp)
        values = self._named(np.where(known, truth, values))
        return values if dtype is None else values.astype(dtype)

    def to_matrix(self) -> Array:
        """The matrix with a row per example and a column per annotator.

        Returns
        -------
        matrix : ndarray of shape (n_examples, n_annotators)
            Missing labels are NaN among numbers and None among anything else.
        """
        labels = self._named(self.values)
        if self.is_complete:
            return labels.reshape(self.shape).copy()
        dtype, nothing = _room_for_gaps(labels)
        matrix: Array = np.full(self.shape, nothing, dtype=dtype)
        matrix[self.example_index, self.annotator_index] = labels
        return matrix

    def to_table(self) -> dict[str, Array]:
        """The columns "example", "annotator" and "label", a row per label.

        Returns
        -------
        table : dict of ndarray of shape (n_labels,)
        """
        return {
            "example": self.examples[self.example_index],
            "annotator": self.annotators[self.annotator_index],
            "label": self._named(self.values.copy()),
        }

    def _named(self, values: Array) -> Array:
        """Classes by their names; numbers as they are."""
        return values if self.classes is None else self.classes[values]

    def counts(self) -> NDArray[np.int64]:
        """How many labels of each class every example has.

        Returns
        -------
        counts : ndarray of shape (n_examples, n_classes)
        """
        return self._tally.astype(np.int64)

    def majority(
        self, tie: Literal["first", "random"] = "first", random_state: int | np.random.Generator | None = None
    ) -> Array:
        """The class that most annotators chose, for every example.

        A report, which has the accuracy of the majority vote, counts a tie as a fair draw instead.

        Parameters
        ----------
        tie : {"first", "random"}, default="first"
            Which of the tied classes to take: the first in `classes`, or one at random.
        random_state : int, Generator or None, default=None
            Seed of the random choice.

        Returns
        -------
        majority : ndarray of shape (n_examples,)
            Missing (NaN among numbers, else None) for examples without labels.
        """
        classes = self._need_classes("majority")
        check_choice("tie", tie, ("first", "random"))
        if len(classes) == 0:
            return np.full(self.n_examples, None, dtype=object)
        counts = self._tally.astype(np.float64)
        if tie == "random":  # less than one vote: only tied classes change places
            counts += check_seed(random_state).random(counts.shape) * 0.5
        chosen = classes[counts.argmax(axis=1)]
        empty = self.labels_per_example == 0
        if empty.any():
            dtype, nothing = _room_for_gaps(classes)
            chosen = chosen.astype(dtype)
            chosen[empty] = nothing
        return chosen

    # ------------------------------------------------------------------ parts

    def __getitem__(self, rows: Any) -> Self:
        """The labels of some examples: an index array, a mask or a slice; all annotators and classes stay."""
        if isinstance(rows, tuple):  # scikit-learn selects with (rows, ...)
            if len(rows) != 2 or rows[1] is not Ellipsis:
                raise IndexError("labels are selected by example only: labels[rows].")
            rows = rows[0]
        if isinstance(rows, int | np.integer):
            raise IndexError(f"select a list or slice of examples: labels[[{rows}]], not labels[{rows}].")
        n = self.n_examples  # of a slice, no list of all examples is made
        chosen = np.arange(*rows.indices(n)) if isinstance(rows, slice) else np.arange(n)[rows]
        if chosen.ndim != 1:
            raise IndexError(
                f"labels are selected by one list of examples; got an index of {np.ndim(rows)} dimensions."
            )
        lengths = self.labels_per_example[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        place = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        part = replace(
            self,
            indptr=indptr,
            annotator_index=self.annotator_index[place],
            values=self.values[place],
            examples=self.examples[chosen],
            abstentions=None if self.abstentions is None else self.abstentions[chosen],
            truth=None if self.truth is None else self.truth[chosen],
        )
        vars(part)["_warned"] = self._warned  # a grid search makes many parts and warns once
        return part

    def select_annotators(self, keep: ArrayLike) -> Self:
        """The labels of some annotators (a mask over `annotators`); all examples and classes stay.

        Parameters
        ----------
        keep : array-like of bool of shape (n_annotators,)
            Which annotators to keep.

        Returns
        -------
        labels : CrowdLabels
        """
        mask = np.asarray(keep)
        if mask.dtype != bool or mask.shape != (self.n_annotators,):
            raise LabelError(
                f"keep must be a mask with True or False for each of the {self.n_annotators} annotators; "
                f"got {mask.dtype} of shape {mask.shape}."
            )
        if mask.all():
            return self
        part = self._part(mask[self.annotator_index])
        return replace(
            part,
            annotator_index=renumbered(mask)[part.annotator_index],
            annotators=self.annotators[mask],
            abstentions=None if self.abstentions is None else self.abstentions[:, mask],
            groups=None if self.groups is None else self.groups[mask],
        )

    def _of_classes(self, keep: ArrayLike) -> Self:
        """The labels that are of some classes (a mask over `classes`); all examples and annotators stay."""
        classes, mask = self._need_classes("of_classes"), np.asarray(keep, dtype=bool)
        part, number = self._part(mask[self.values]), renumbered(mask)
        truth = None if self.truth is None else np.append(np.where(mask, number, -1), -1)[self.truth]
        return replace(part, values=number[part.values], classes=classes[mask], truth=truth)

    def _part(self, mask: NDArray[np.bool_]) -> Self:
        """Some of the labels (a mask over all of them)."""
        indptr = np.concatenate([[0], np.cumsum(mask)])[self.indptr]
        return replace(self, indptr=indptr, annotator_index=self.annotator_index[mask], values=self.values[mask])

    def _with_classes(self, classes: Array) -> Self:
        """The same labels, coded by other classes, among which are all that labels were given of."""
        before = self._need_classes("with_classes")
        if before is classes or np.array_equal(before, classes):
            return self
        table = encode_declared(before, classes)
        used = np.unique(self.values if self.truth is None else [*self.values, *self.truth[self.truth >= 0]])
        if (table[used] < 0).any():
            unknown = before[used[table[used] < 0]].tolist()
            raise LabelError(f"the classes {unknown} are not among those of the fit, {classes.tolist()}.")
        truth = None if self.truth is None else np.append(table, -1)[self.truth]
        return replace(self, values=table[self.values], classes=classes, truth=truth)

    # ------------------------------------------------------------------ growing

    def append(
        self, table: Any = None, *, example: Any = None, annotator: Any = None, label: Any = None, new: bool = False
    ) -> Self:
        """New labels with one more, or with those of a table; examples and annotators keep their places.

        Parameters
        ----------
        table : data frame or mapping of columns, default=None
            A row per label; `example`, `annotator` and `label` are then names of columns, found by default.
        example, annotator, label : str, number or column name, default=None
            Of one label: ids as in these labels.
        new : bool, default=False
            Whether there may be new annotators and classes; unknown examples are always an error.

        Returns
        -------
        labels : CrowdLabels

        Examples
        --------
        >>> from crowdwise import CrowdLabels
        >>> labels = CrowdLabels.from_matrix([["a", None], ["b", "b"]], annotators=["ann", "bob"])
        >>> labels.append(example=0, annotator="bob", label="b").to_matrix().tolist()
        [['a', 'b'], ['b', 'b']]
        """
        named = {"example": example, "annotator": annotator, "label": label}
        if table is None:
            examples, annotators, labels = (as_column([value], "labels") for value in named.values())
        else:
            columns = table_columns(table)
            examples, annotators, labels = (
                columns[find_column(list(columns), role, name)] for role, name in named.items()
            )
        grown = self._with_annotators(_with_names(self.annotators, annotators, "annotator", new=new))
        if self.classes is None:
            values: Array = labels.astype(np.float64)
        else:
            classes = _with_names(self.classes, labels, "class", new=new)
            if len(classes) > len(self.classes):
                classes = self.scale.in_order(classes, self.classes) if self.scale.has_order else classes
                classes = classes if self.declared_classes else encode(classes)[1]
            grown, values = grown._with_classes(classes), find_ids(labels, classes)
        return grown._with_inserted(self._places(examples, "example"), find_ids(annotators, grown.annotators), values)

    def without(self, *, example: Any = None, annotator: Any = None) -> Self:
        """New labels without those of an example, of an annotator, or the one of an annotator for an example.

        Parameters
        ----------
        example, annotator : str or number, default=None
            Ids; one of both at least. Examples and annotators keep their places.

        Returns
        -------
        labels : CrowdLabels
        """
        if example is None and annotator is None:
            raise TypeError("without needs example=, annotator= or both.")
        begin, end = 0, self.n_labels
        if example is not None:
            row = int(self._places(as_column([example], "ids"), "example")[0])
            begin, end = int(self.indptr[row]), int(self.indptr[row + 1])
        gone = np.arange(begin, end)
        if annotator is not None:
            column = self._places(as_column([annotator], "ids"), "annotator")[0]
            gone = begin + np.flatnonzero(self.annotator_index[begin:end] == column)
        rows = np.searchsorted(self.indptr, gone, side="right") - 1
        index, values = np.delete(self.annotator_index, gone), np.delete(self.values, gone)
        return self._with_arrays(self.indptr - self._n_before(rows), index, values)

    def _places(self, names: Array, role: Literal["example", "annotator"]) -> Positions:
        known = self.examples if role == "example" else self.annotators
        one_example = len(names) == 1 and role == "example" and known.dtype == object
        places = self._place_of_example(names) if one_example else find_ids(names, known)
        if (places < 0).any():
            raise LabelError(
                f"{role} {shown(names[places < 0][0])} is not among those of the labels (such as {known[:3].tolist()})."
            )
        return places

    def _place_of_example(self, name: Array) -> Positions:
        """By its hash, for to compare objects takes long where examples are many."""
        with suppress(TypeError):  # of a value that has no hash
            alike = np.flatnonzero(self._example_hashes == hash(name.tolist()[0]))
            if (place := find_ids(name, self.examples[alike]))[0] >= 0:
                return alike[place]
        return find_ids(name, self.examples)  # times of another unit have another hash

    @cached_property
    def _example_hashes(self) -> NDArray[np.int64]:
        return np.fromiter(map(hash, self.examples.tolist()), np.int64, self.n_examples)

    def _with_arrays(self, indptr: Array, annotator_index: Array, values: Array) -> Self:
        """Other labels of the same examples, and what is known of these."""
        changed = replace(self, indptr=indptr, annotator_index=annotator_index, values=values)
        if "_example_hashes" in vars(self):
            vars(changed)["_example_hashes"] = self._example_hashes
        return changed

    def _n_before(self, rows: Positions) -> Positions:
        """How many of some labels, whose examples these are, stand before each example and at the end."""
        return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.n_examples))])

    def _with_annotators(self, annotators: Array) -> Self:
        """The same labels with more annotators, who come last."""
        if (n_new := len(annotators) - self.n_annotators) == 0:
            return self
        abstentions = self.abstentions
        if abstentions is not None:
            shape = self.n_examples, len(annotators)
            abstentions = sparse.csr_array((abstentions.data, abstentions.indices, abstentions.indptr), shape=shape)
        return replace(
            self,
            annotators=annotators,
            annotator_index=self.annotator_index.astype(smallest_integer_type(len(annotators)), copy=False),
            abstentions=abstentions,
            groups=None if self.groups is None else as_objects([*self.groups, *[None] * n_new]),
        )

    def _with_inserted(self, rows: Positions, columns: Positions, values: Array) -> Self:
        """The same labels and some more, which are not there yet."""
        order = np.lexsort([columns, rows])
        rows, columns, values = rows[order], columns[order], values[order]
        places = np.empty(len(rows), dtype=np.intp)
        for i, (row, annotator) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            begin, end = int(self.indptr[row]), int(self.indptr[row + 1])
            places[i] = begin + np.searchsorted(self.annotator_index[begin:end], annotator)
            is_there = places[i] < end and self.annotator_index[places[i]] == annotator
            if is_there or (i > 0 and (rows[i - 1], columns[i - 1]) == (row, annotator)):
                raise LabelError(
                    f"annotator {shown(self.annotators[annotator])} has labelled example {shown(self.examples[row])} "
                    "already. Take the label back first: labels.without(example=..., annotator=...)."
                )
        index, values = np.insert(self.annotator_index, places, columns), np.insert(self.values, places, values)
        return self._with_arrays(self.indptr + self._n_before(rows), index, values)


def _with_names(known: Array, names: Array, role: str, *, new: bool) -> Array:
    """Known names and others; an error if some are unknown and may not be new."""
    unknown = names[find_ids(names, known) < 0]
    if not len(unknown):
        return known
    if not new:
        raise LabelError(
            f"{role} {shown(unknown[0])} is not among those of the labels (such as {known[:3].tolist()}). If it is "
            "new: append(..., new=True)."
        )
    return as_ids([*known.tolist(), *encode(unknown, ids=True)[1].tolist()], role)
