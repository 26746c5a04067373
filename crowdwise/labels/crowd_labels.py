"""CrowdLabels: who gave which example what label; read and checked once, then selected, converted and counted."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from crowdwise._arrays import Array
from crowdwise._checks import check_choice, check_seed
from crowdwise._text import count, table
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels._build import parts_of_matrix, parts_of_table
from crowdwise.labels._encode import (
    as_column,
    as_ids,
    as_objects,
    encode,
    encode_declared,
    loses_digits,
    shown,
    smallest_integer_type,
    tidy,
)
from crowdwise.labels._frames import library_of
from crowdwise.labels._groups import check_groups
from crowdwise.labels._grow import inserted, left, new_rows, with_names
from crowdwise.labels._label_rows import LabelRows
from crowdwise.labels.scale import NOMINAL, ConsensusBy, LabelScale, ScaleName, check_order

# Ratings of more different values are no classes.
_MOST_LEVELS = 100


def _type_with_gaps(values: Array) -> tuple[type, float | None]:
    """A type that holds `values` and "missing", and what is missing then: numbers if no digit is lost, else objects."""
    is_number = values.dtype.kind == "f" or (values.dtype.kind in "iu" and not loses_digits(values))
    return (np.float64, np.nan) if is_number else (object, None)


def has_value(answers: Array) -> NDArray[np.bool_]:
    """Which answers are known: classes from 0 on, ratings that are numbers."""
    return ~np.isnan(answers) if answers.dtype.kind == "f" else answers >= 0


def _widened(labels: CrowdLabels, n_annotators: int) -> Any:
    """Abstentions of labels with more annotators."""
    if labels.abstentions is None or labels.n_annotators == n_annotators:
        return labels.abstentions
    found = sparse.csr_array(labels.abstentions)
    return sparse.csr_array((found.data, found.indices, found.indptr), shape=(labels.n_examples, n_annotators))


@dataclass(frozen=True, eq=False, repr=False)
class CrowdLabels(LabelRows):
    """Labels of many annotators, stored row by row; absent labels take no space.

    Make one with `from_matrix` (a column per annotator) or `from_table` (a row per label). Labels are classes (whole
    numbers, strings, bools, times), perhaps with an order, or real numbers, see `with_scale`; numbers with a fraction
    are classes only if they are declared. Row `i` is ``annotator_index[indptr[i]:indptr[i + 1]]`` with the
    labels at the same places of ``values``. Iteration gives each example's id and its labels by annotator,
    ``np.asarray`` one value per example. All arrays are read-only.

    Parameters
    ----------
    indptr : ndarray of shape (n_examples + 1,)
        Where the labels of each example begin.
    annotator_index : ndarray of shape (n_labels,)
        Position in `annotators` of who gave each label, ascending within an example.
    values : ndarray of shape (n_labels,)
        Position in `classes` of each label, or the rating itself.
    annotators : ndarray of shape (n_annotators,)
        Names of the annotators, exactly as they came.
    examples : ndarray of shape (n_examples,)
        Identifiers of the examples, exactly as they came; positions if none were given.
    classes : ndarray of shape (n_classes,) or None
        The classes, sorted unless they were declared in another order; None for ratings.
    id_source : {"position", "default", "given", "sorted"}, default="position"
        Where `examples` come from: they are positions, a default index (0, 1, 2, ... of a pandas object), identifiers
        in the caller's order, or identifiers of a table, sorted. `align` matches features by them.
    abstentions : sparse array of shape (n_examples, n_annotators) or None, default=None
        A one where an annotator answered with one of the values declared in ``abstain=``; such answers are no labels.
        `abstentions_per_annotator` and `abstentions_per_example` count them.
    frame_library : {"pandas", "polars"} or None, default=None
        What made the data frame that the labels came in, if they did: frames of results are made with the same.
    declared_classes : bool, default=False
        Whether the caller gave the classes, and so their order.
    truth : ndarray of shape (n_examples,) or None, default=None
        Known answers, see `with_truth`: positions of classes, -1 where nothing is known; or ratings, NaN there.
    groups : ndarray of shape (n_annotators,) or None, default=None
        The group of each annotator, None of those who are alone, see `with_groups`.
    scale : LabelScale, default=NOMINAL
        Whether labels are classes, classes with an order or numbers, see `with_scale`.
    informative_abstentions : bool, default=False
        Whether abstaining is an answer that depends on the class, see `with_abstentions`.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([["cat", "cat", None], ["dog", "cat", "dog"]])
    >>> labels
    CrowdLabels: 2 examples, 3 annotators, 5 labels of 2 classes
      labels per example: 2 to 3, mean 2.5; missing: 16.7%
      classes: 'cat', 'dog'
    >>> labels.majority().tolist()
    ['cat', 'dog']
    >>> for example, given in labels:
    ...     print(example, given)
    0 {0: 'cat', 1: 'cat'}
    1 {0: 'dog', 1: 'cat', 2: 'dog'}
    """

    # ------------------------------------------------------------------ constructors

    @classmethod
    def from_matrix(
        cls,
        values: ArrayLike,
        *,
        annotators: ArrayLike | None = None,
        examples: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        missing: object = np.nan,
        abstain: ArrayLike | None = None,
        scale: ScaleName = "nominal",
    ) -> CrowdLabels:
        """Labels from a matrix with a row per example and a column per annotator.

        Parameters
        ----------
        values : array, list of lists or data frame of shape (n_examples, n_annotators)
            None, NaN and ``pandas.NA`` are missing. The columns of a data frame name the annotators,
            an index (pandas) the examples.
        annotators : sequence of shape (n_annotators,), default=None
            Names; by default the columns of a data frame, else 0, 1, 2, ...
        examples : sequence of shape (n_examples,), default=None
            Identifiers; by default the index of a pandas frame, else positions.
        classes : sequence, default=None
            Every class there is; a label outside them is an error. By default the labels found, sorted; numbers with
            a fraction are an error then.
        missing : object, default=nan
            One more value that means "no label", such as -1.
        abstain : sequence, default=None
            Answers such as "Unsure" that are no labels: they are left out and counted in `abstentions_per_annotator`
            and `abstentions_per_example`. One that nobody gave is a warning, unless classes are declared.
        scale : {"nominal", "ordinal", "interval"}, default="nominal"
            Classes; classes with an order, that of numbers or of `classes`; or real numbers.

        Returns
        -------
        labels : CrowdLabels

        Examples
        --------
        >>> from crowdwise import CrowdLabels
        >>> CrowdLabels.from_matrix([[1, -1], [0, 1]], missing=-1).n_labels
        3
        """
        parts = parts_of_matrix(
            values,
            annotators=annotators,
            examples=examples,
            classes=classes,
            missing=missing,
            abstain=abstain,
            scale=scale,
        )
        return cls(**parts, frame_library=library_of(values)).with_scale(scale)

    @classmethod
    def from_table(
        cls,
        table: object,
        *,
        example: Hashable | None = None,
        annotator: Hashable | None = None,
        label: Hashable | None = None,
        on_duplicate: Literal["error", "first", "last"] = "error",
        examples: ArrayLike | None = None,
        annotators: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        missing: object = np.nan,
        abstain: ArrayLike | None = None,
        scale: ScaleName = "nominal",
    ) -> CrowdLabels:
        """Labels from a long table with a row per label.

        Parameters
        ----------
        table : data frame or mapping of columns
            Rows with a missing label are passed over.
        example : column name, default=None
            Column with the example's identifier; by default "example", "task", "item", ...
        annotator : column name, default=None
            Column with the annotator's name; by default "annotator", "worker", "rater", ...
        label : column name, default=None
            Column with the label; by default "label", "rating", "answer", ...
        on_duplicate : {"error", "first", "last"}, default="error"
            What to do when an annotator gave one example two different labels. The same label twice
            counts once, with a warning.
        examples : sequence, default=None
            Every example there is, in the order of your features; those without a label are kept.
            By default the examples found, sorted (in order of appearance if they cannot be sorted).
        annotators : sequence, default=None
            Every annotator there is, likewise.
        classes : sequence, default=None
            Every class there is; a label outside them is an error. By default the labels found, sorted; numbers with
            a fraction are an error then.
        missing : object, default=nan
            One more value that means "no label", such as -1.
        abstain : sequence, default=None
            Answers such as "Unsure" that are no labels: they are left out and counted in `abstentions_per_annotator`
            and `abstentions_per_example`. One that nobody gave is a warning, unless classes are declared.
        scale : {"nominal", "ordinal", "interval"}, default="nominal"
            Classes; classes with an order, that of numbers or of `classes`; or real numbers.

        Returns
        -------
        labels : CrowdLabels

        Examples
        --------
        >>> from crowdwise import CrowdLabels
        >>> table = {"task": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], "label": [1, 0, 1]}
        >>> CrowdLabels.from_table(table).counts().tolist()
        [[1, 1], [0, 1]]
        >>> table["label"] = ["yes", "Unsure", "no"]
        >>> labels = CrowdLabels.from_table(table, abstain=["Unsure"])
        >>> labels.classes.tolist(), labels.abstentions_per_annotator.tolist()
        (['no', 'yes'], [0, 1])
        """
        parts = parts_of_table(
            table,
            columns={"example": example, "annotator": annotator, "label": label},
            on_duplicate=on_duplicate,
            examples=examples,
            annotators=annotators,
            classes=classes,
            missing=missing,
            abstain=abstain,
            scale=scale,
        )
        return cls(**parts, frame_library=library_of(table)).with_scale(scale)

    # ------------------------------------------------------------------ what it is

    def __repr__(self) -> str:
        cells = max(self.n_examples * self.n_annotators, 1)
        per_example = self.labels_per_example if self.n_examples else np.zeros(1, dtype=np.int64)
        what = count(self.n_labels, "rating" if self.classes is None else "label")
        what += "" if self.classes is None else f" of {count(len(self.classes), 'class', 'classes')}"
        lines = [
            f"CrowdLabels: {count(self.n_examples, 'example')}, {count(self.n_annotators, 'annotator')}, {what}",
            f"  labels per example: {per_example.min()} to {per_example.max()}, mean {per_example.mean():.3g}; "
            f"missing: {100 * (1 - self.n_labels / cells):.1f}%",
        ]
        if self.classes is None:
            lines.append(f"  range: {self.values.min():g} to {self.values.max():g}" if self.n_labels else "  no rating")
        else:
            names = [reprlib.repr(value) for value in self.classes[:8].tolist()]  # shortens long names
            lines.append("  classes: " + ", ".join(names) + (", ..." if len(self.classes) > 8 else ""))
        if self.n_abstentions:
            lines.append(f"  abstentions: {self.n_abstentions:,}, which are no labels")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show: the same as text, and the labels of the first examples."""
        first, columns = self[: min(5, self.n_examples)], min(8, self.n_annotators)
        rows = [
            [name, *(given.get(who) for who in self.annotators[:columns].tolist())]
            for name, given in zip(first.examples.tolist(), (given for _, given in first), strict=True)
        ]
        head = ["example", *self.annotators[:columns].tolist()]
        return f"<pre>{escape(repr(self))}</pre>" + table(rows, head=head)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CrowdLabels):
            return NotImplemented
        if (self.scale, self.shape) != (other.scale, other.shape):
            return False
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._parts(), other._parts(), strict=True))

    # Equal by content, which is too much to hash: typeshed has no other way to say so.
    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[Array, ...]:
        classes = np.zeros(0) if self.classes is None else self.classes
        nothing = np.zeros(0)
        abstained = (self.abstentions.indptr, self.abstentions.indices) if self.n_abstentions else (nothing, nothing)
        known = tuple(nothing if part is None else part for part in (self.truth, self.groups))
        names = self.annotators, self.examples, classes
        return self.indptr, self.annotator_index, self.values, *names, *abstained, *known

    # ------------------------------------------------------------------ other views

    def __iter__(self) -> Iterator[tuple[Any, dict[Any, Any]]]:
        """The id of each example with its labels by annotator."""
        table = self.to_table()
        annotators, given = table["annotator"].tolist(), table["label"].tolist()
        for name, start, stop in zip(self.examples.tolist(), self.indptr[:-1], self.indptr[1:], strict=True):
            yield name, dict(zip(annotators[start:stop], given[start:stop], strict=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """One value per example, as scikit-learn's tools need it: the known answer, else the majority or mean rating.

        Ties go to the first class. An example without either is an error; `to_matrix` gives the matrix.
        """
        if copy is False:
            raise ValueError("labels are not stored as one value per example: np.asarray(labels) has to copy them.")
        known = np.zeros(len(self), dtype=bool) if self.truth is None else has_value(self.truth)
        if (lacking := ~known & (self.labels_per_example == 0)).any():
            raise LabelError(
                f"example {shown(self.examples[lacking][0])} has neither a label nor a known answer, so there is no "
                "one value per example. Leave such examples out; to_matrix() gives the matrix with gaps."
            )
        if self.classes is None:
            ratings = self._sum_per_example(self.values) / np.maximum(self.labels_per_example, 1)
            values: Array = np.where(known, 0.0 if self.truth is None else self.truth, ratings)
        else:
            codes = self._tally.argmax(axis=1) if len(self.classes) else np.zeros(len(self), dtype=np.intp)
            values = self.classes[np.where(known, 0 if self.truth is None else self.truth, codes)]
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, rows: Any) -> CrowdLabels:
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
        if self.is_complete and self.n_annotators:
            wide = (len(chosen), self.n_annotators)
            flat_index = self.annotator_index.reshape(self.shape)[: len(chosen)].ravel()
            if len(chosen) > self.n_examples:
                flat_index = np.broadcast_to(self.annotator_index[: self.n_annotators], wide).ravel()
            flat_values = self.values.reshape(self.shape)[chosen].ravel()
        else:
            at = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
            flat_index, flat_values = self.annotator_index[at], self.values[at]
        part = replace(
            self,
            indptr=indptr,
            annotator_index=flat_index,
            values=flat_values,
            examples=self.examples[chosen],
            abstentions=None if self.abstentions is None else self.abstentions[chosen],
            truth=None if self.truth is None else self.truth[chosen],
        )
        vars(part)["_warned"] = self._warned  # a grid search makes many parts and warns once
        return part

    def select_annotators(self, keep: ArrayLike) -> CrowdLabels:
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
        kept = mask[self.annotator_index]
        position = np.cumsum(mask) - 1
        counts = np.concatenate([[0], np.cumsum(kept)])[self.indptr]
        index = position[self.annotator_index[kept]].astype(smallest_integer_type(int(mask.sum())))
        return replace(
            self,
            indptr=counts,
            annotator_index=index,
            values=self.values[kept],
            annotators=self.annotators[mask],
            abstentions=None if self.abstentions is None else self.abstentions[:, mask],
            groups=None if self.groups is None else self.groups[mask],
        )

    def _with_classes(self, classes: Array) -> CrowdLabels:
        """The same labels, coded by other classes, among which are all that labels were given of."""
        mine = self._need_classes("with_classes")
        if np.array_equal(mine, classes):
            return self
        table = encode_declared(mine, classes)
        used = np.unique(self.values if self.truth is None else [*self.values, *self.truth[self.truth >= 0]])
        if (table[used] < 0).any():
            unknown = mine[used[table[used] < 0]].tolist()
            raise LabelError(f"the classes {unknown} are not among those of the fit, {classes.tolist()}.")
        truth = None if self.truth is None else np.append(table, -1)[self.truth]
        return replace(self, values=table[self.values], classes=classes, truth=truth)

    def _of_classes(self, keep: ArrayLike) -> CrowdLabels:
        """The labels that are of some classes (a mask over `classes`); all examples and annotators stay."""
        classes, mask = self._need_classes("of_classes"), np.asarray(keep, dtype=bool)
        kept = mask[self.values]
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.indptr]
        index, values = self.annotator_index[kept], (np.cumsum(mask) - 1)[self.values[kept]]
        values = values.astype(smallest_integer_type(int(mask.sum())))
        truth = None if self.truth is None else np.append(np.where(mask, np.cumsum(mask) - 1, -1), -1)[self.truth]
        return replace(self, indptr=indptr, annotator_index=index, values=values, classes=classes[mask], truth=truth)

    # ------------------------------------------------------------------ what is known about labels, and more of them

    def with_truth(self, truth: Any) -> CrowdLabels:
        """The same labels with known answers of some examples, which every model then uses as `truth=`.

        Parameters
        ----------
        truth : array-like of shape (n_examples,), series, mapping or frame
            The right answers, None or NaN elsewhere; if it has ids, they are those of the examples.

        Returns
        -------
        labels : CrowdLabels

        Examples
        --------
        >>> from crowdwise import CrowdLabels
        >>> labels = CrowdLabels.from_matrix([["a", "b"], ["b", "b"]]).with_truth({0: "b"})
        >>> np.asarray(labels).tolist()
        ['b', 'b']
        """
        from crowdwise.labels.truth import known_answers  # which matches them by the ids of labels

        return replace(self, truth=known_answers(truth, self, replace(self, truth=None)))

    def with_groups(self, groups: Any) -> CrowdLabels:
        """The same labels, some annotators of which share a vote.

        Parameters
        ----------
        groups : mapping, series or array-like
            A group by annotator's name, such as the family of a model, or one per annotator in their order. Annotators
            that are not named are alone.

        Returns
        -------
        labels : CrowdLabels
        """
        return replace(self, groups=check_groups(groups, self.annotators))

    def with_scale(
        self, scale: ScaleName, *, levels: ArrayLike | None = None, consensus: ConsensusBy | None = None
    ) -> CrowdLabels:
        """The same labels as classes ("nominal"), as classes with an order ("ordinal") or as numbers ("interval").

        Parameters
        ----------
        scale : {"nominal", "ordinal", "interval"}
            Numbers become classes and classes that are numbers become numbers if the scale says so.
        levels : sequence, default=None
            Every class from the lowest to the highest; there may be some without labels. By default the order of
            numbers, or the one that was declared.
        consensus : {"mode", "median", "mean"} or None, default=None
            What is taken of the probabilities of classes with an order: the most probable class (the default), the
            median or the level nearest to the mean.

        Returns
        -------
        labels : CrowdLabels

        Examples
        --------
        >>> from crowdwise import CrowdLabels
        >>> labels = CrowdLabels.from_matrix([["good", "ok"], ["bad", "ok"]])
        >>> labels.with_scale("ordinal", levels=["bad", "ok", "good"]).classes.tolist()
        ['bad', 'ok', 'good']
        """
        of = LabelScale.of(scale, consensus)
        if levels is not None and scale != "ordinal":
            raise ValueError('levels belong to the ordinal scale: with_scale("ordinal", levels=...).')
        if of == self.scale == NOMINAL:
            return self
        if scale == "interval":
            return replace(as_numbers(self), scale=of)
        labels = as_classes(self) if levels is None else in_order(as_classes(self), levels)
        if scale == "ordinal":
            assert labels.classes is not None
            check_order(labels.classes, declared=labels.declared_classes)
        return replace(labels, scale=of)

    def with_abstentions(self, *, informative: bool = True) -> CrowdLabels:
        """The same labels, abstentions of which are answers of annotators that depend on the class.

        Parameters
        ----------
        informative : bool, default=True
            Whether models use abstentions, as declared with ``abstain=``; by default labels leave them out.

        Returns
        -------
        labels : CrowdLabels
        """
        if check_choice("informative", informative, (True, False)) and not self.n_abstentions:
            warn(
                "with_abstentions has no effect: these labels have no abstentions. Say which answers are, with "
                "abstain=[...], when labels are made or read."
            )
        return replace(self, informative_abstentions=informative)

    def append(
        self, table: Any = None, *, example: Any = None, annotator: Any = None, label: Any = None, new: bool = False
    ) -> CrowdLabels:
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
        rows, who, given = new_rows(table, example, annotator, label)
        grown = replace(self, annotators=with_names(self.annotators, who, "annotator", new=new))
        if self.groups is not None:
            alone = [None] * (grown.n_annotators - self.n_annotators)
            grown = replace(grown, groups=as_objects([*self.groups, *alone]))
        if self.classes is None:
            values: Array = given.astype(np.float64)
        else:
            classes = with_names(self.classes, given, "class", new=new)
            if len(classes) > len(self.classes) and not self.declared_classes:
                classes = encode(classes)[1]
            grown = grown._with_classes(classes)
            values = encode_declared(given, classes)
        at = encode_declared(rows, self.examples).astype(np.intp)
        if (at < 0).any():
            unknown = rows[at < 0][0]
            raise LabelError(
                f"example {shown(unknown)} is not among those of the labels (such as {self.examples[:3].tolist()})."
            )
        position = encode_declared(who, grown.annotators).astype(np.intp)
        parts: Any = inserted(grown, at, position, values)
        return replace(grown, **parts, abstentions=_widened(self, grown.n_annotators))

    def without(self, *, example: Any = None, annotator: Any = None) -> CrowdLabels:
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
        gone = np.ones(self.n_labels, dtype=bool)
        for name, known, index in (
            (example, self.examples, self.example_index), (annotator, self.annotators, self.annotator_index)
        ):  # fmt: skip
            if name is None:
                continue
            place = int(encode_declared(as_column([name], "ids"), known)[0])
            if place < 0:
                raise LabelError(f"{shown(name)} is not among those of the labels (such as {known[:3].tolist()}).")
            gone &= index == place
        parts: Any = left(self, gone)
        return replace(self, **parts)

    def to_matrix(self) -> Array:
        """The matrix with a row per example and a column per annotator.

        Returns
        -------
        matrix : ndarray of shape (n_examples, n_annotators)
            Missing labels are NaN among numbers and None among anything else.
        """
        given = self.values if self.classes is None else self.classes[self.values]
        if self.is_complete:
            return given.reshape(self.shape).copy()
        dtype, nothing = _type_with_gaps(given)
        matrix: Array = np.full(self.shape, nothing, dtype=dtype)
        matrix[self.example_index, self.annotator_index] = given
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
            "label": self.values.copy() if self.classes is None else self.classes[self.values],
        }

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

        A report, which says how often the majority vote is right, counts a tie as a fair draw instead.

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
            dtype, nothing = _type_with_gaps(classes)
            chosen = chosen.astype(dtype)
            chosen[empty] = nothing
        return chosen


def in_order(labels: CrowdLabels, levels: ArrayLike) -> CrowdLabels:
    """The same labels with their classes in another order; there may be some without labels."""
    wanted = tidy(as_ids(levels, "levels").tolist())
    assert labels.classes is not None
    lacking = encode_declared(labels.classes, wanted) < 0
    if lacking.any():
        raise LabelError(
            f"levels must name all classes in their order; {labels.classes[lacking].tolist()} are not among "
            f"{wanted.tolist()}."
        )
    return replace(labels._with_classes(wanted), declared_classes=True)


def as_classes(labels: CrowdLabels) -> CrowdLabels:
    """The same labels as classes: of numbers, the different ones."""
    if labels.classes is not None:
        return labels
    known = np.zeros(0) if labels.truth is None else labels.truth[has_value(labels.truth)]
    classes = np.unique(np.concatenate([labels.values, known]))
    if len(classes) > _MOST_LEVELS:
        raise LabelError(
            f"these ratings have {len(classes):,} different values, and labels that are classes have at most "
            f"{_MOST_LEVELS}: round the ratings first."
        )
    names = tidy(classes.tolist())
    truth = labels.truth
    if truth is not None:
        truth = np.where(has_value(truth), np.searchsorted(classes, truth), -1)
    values = np.searchsorted(classes, labels.values).astype(smallest_integer_type(len(classes)))
    return replace(labels, values=values, classes=names, truth=truth, declared_classes=False)


def as_numbers(labels: CrowdLabels) -> CrowdLabels:
    """The same labels as numbers: the classes, which must be numbers."""
    if labels.classes is None:
        return labels
    if labels.classes.dtype.kind not in "biuf":
        raise LabelError(
            f"the interval scale needs numbers, and the classes are {labels.classes[:8].tolist()}: use "
            'scale="ordinal" if they have an order, or make the labels numbers first.'
        )
    numbers = labels.classes.astype(np.float64)
    truth = None if labels.truth is None else np.append(numbers, np.nan)[labels.truth]
    return replace(labels, values=numbers[labels.values], classes=None, truth=truth, declared_classes=False)
