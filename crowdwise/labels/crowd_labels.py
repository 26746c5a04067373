"""CrowdLabels: who gave which example what label; read and checked once, then selected, converted and counted."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from crowdwise._arrays import Array
from crowdwise._checks import check_choice
from crowdwise._text import count, table
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels._build import Declared, parts_of_matrix, parts_of_table
from crowdwise.labels._encode import as_ids, encode_declared, smallest_integer_type, tidy
from crowdwise.labels._groups import check_groups
from crowdwise.labels._label_arrays import LabelArrays
from crowdwise.labels.scale import NOMINAL, ConsensusBy, LabelScale, ScaleName, check_order, is_known

# Ratings of more different values are no classes.
_MOST_LEVELS = 100


@dataclass(frozen=True, eq=False, repr=False)
class CrowdLabels(LabelArrays):
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
            and `abstentions_per_example`. One that was never given is a warning, unless classes are declared.
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
        declared = Declared(scale, classes, abstain, missing, examples, annotators)
        return cls(**parts_of_matrix(values, declared)).with_scale(scale)

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
            and `abstentions_per_example`. One that was never given is a warning, unless classes are declared.
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
        declared = Declared(scale, classes, abstain, missing, examples, annotators, on_duplicate)
        columns = {"example": example, "annotator": annotator, "label": label}
        return cls(**parts_of_table(table, columns, declared)).with_scale(scale)

    # ------------------------------------------------------------------ what it is

    def __repr__(self) -> str:
        cells = max(self.n_examples * self.n_annotators, 1)
        per_example = self.labels_per_example if self.n_examples else np.zeros(1, dtype=np.int64)
        labels = count(self.n_labels, "rating" if self.classes is None else "label")
        labels += "" if self.classes is None else f" of {count(len(self.classes), 'class', 'classes')}"
        lines = [
            f"CrowdLabels: {count(self.n_examples, 'example')}, {count(self.n_annotators, 'annotator')}, {labels}",
            f"  labels per example: {per_example.min()} to {per_example.max()}, mean {per_example.mean():.3g}; "
            f"missing: {100 * (1 - self.n_labels / cells):.1f}%",
        ]
        if self.classes is None:
            lines.append(f"  range: {self.values.min():g} to {self.values.max():g}" if self.n_labels else "  no rating")
        else:
            names = [reprlib.repr(value) for value in self.classes[:8].tolist()]  # shortens long names
            lines.append("  classes: " + ", ".join(names) + (", ..." if len(self.classes) > 8 else ""))
        if self.n_abstentions:
            lines.append(f"  abstentions: {self.n_abstentions:,} (not used as labels)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What notebooks show: the same as text, and the labels of the first examples."""
        annotators = self.annotators[:8].tolist()
        rows = [[example, *map(labels.get, annotators)] for example, labels in self[:5]]
        return f"<pre>{escape(repr(self))}</pre>" + table(rows, head=["example", *annotators])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CrowdLabels):
            return NotImplemented
        if (self.scale, self.shape) != (other.scale, other.shape):
            return False
        pairs = zip(self._parts(), other._parts(), strict=True)
        return all(
            np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == theirs.dtype.kind == "f")
            for mine, theirs in pairs  # of ratings, truth is NaN where it is not known
        )

    # Equal by content, which is too much to hash: typeshed has no other way to declare it.
    __hash__ = None  # type: ignore[assignment]

    def _parts(self) -> tuple[Array, ...]:
        labels = self.indptr, self.annotator_index, self.values, self.annotators, self.examples
        abstained = (self.abstentions.indptr, self.abstentions.indices) if self.n_abstentions else (None, None)
        known = self.classes, self.truth, self.groups, *abstained
        return *labels, *(np.zeros(0) if part is None else part for part in known)

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
            Numbers become classes and classes that are numbers become numbers, as the scale needs it.
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
        if not of.has_classes:
            return replace(_as_numbers(self), scale=of)
        labels = _as_classes(self) if levels is None else _in_order(_as_classes(self), levels)
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


def _in_order(labels: CrowdLabels, levels: ArrayLike) -> CrowdLabels:
    """The same labels with their classes in another order; there may be some without labels."""
    classes = tidy(as_ids(levels, "levels").tolist())
    assert labels.classes is not None
    lacking = encode_declared(labels.classes, classes) < 0
    if lacking.any():
        raise LabelError(
            f"levels must name all classes in their order; {labels.classes[lacking].tolist()} are not among "
            f"{classes.tolist()}."
        )
    return replace(labels._with_classes(classes), declared_classes=True)


def _as_classes(labels: CrowdLabels) -> CrowdLabels:
    """The same labels as classes: of numbers, the different ones."""
    if labels.classes is not None:
        return labels
    known = np.zeros(0) if labels.truth is None else labels.truth[is_known(labels.truth)]
    classes = np.unique(np.concatenate([labels.values, known]))
    if len(classes) > _MOST_LEVELS:
        raise LabelError(
            f"these ratings have {len(classes):,} different values, and labels that are classes have at most "
            f"{_MOST_LEVELS}: round the ratings first."
        )
    truth = labels.truth
    if truth is not None:
        truth = np.where(is_known(truth), np.searchsorted(classes, truth), -1)
    values = np.searchsorted(classes, labels.values).astype(smallest_integer_type(len(classes)))
    return replace(labels, values=values, classes=tidy(classes.tolist()), truth=truth, declared_classes=False)


def _as_numbers(labels: CrowdLabels) -> CrowdLabels:
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
