"""Blocks of examples, one after the other or each on its own -> a ridge model: sums that add, exactly as of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from crowdwise._arrays import Array
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels._encode import as_column, as_ids, encode_declared, tidy
from crowdwise.mixins import all_or_nothing
from crowdwise.ridge.base import RidgeBase
from crowdwise.ridge.sums import RidgeSums
from crowdwise.rows.chunks import Chunk, recoded


class RidgeModel(RidgeBase):
    """Learns from batches too, and joins what models have learned from other batches."""

    @available_if(lambda self: self._why_no_sums() is None)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        annotators: Any = None,
        batch: Any = None,
    ) -> Self:
        """Learn from one more block of labelled examples.

        What is kept of a block is sums (`sums_`), so that many blocks give the coefficients, intercept and expertise of
        one `fit` on all of their examples, to rounding, and the order of blocks does not matter. The rounds are solved
        from the sums after every block; for many small blocks, add their `block_sums` and `merge` the total. Folds are
        drawn by a hash of the features, which `fit` does differently: what is chosen over folds is the same for the
        same examples in any blocks, but may differ from what `fit` chooses. The precision of the model, the accuracy of
        annotators are found from a sample of at most 20,000 examples. Results about single
        examples are not kept: `consensus` gives them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features; there may be no row, but in the first block.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none.
        sample_weight : float, or array-like, series or mapping of shape (n_examples,), default=None
            How often each example counts.
        classes : array-like of shape (n_classes,), default=None
            All classes there are going to be, at the first call; by default those of the first block. A label outside
            them is an error.
        annotators : array-like of shape (n_annotators,), default=None
            All annotators there are going to be, at the first call; by default those of the first block. Any other is
            an error.
        batch : str, int or tuple, default=None
            Name of the block. The same name twice is an error, so that no block is counted twice; blocks without a name
            are not compared.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> import numpy as np
        >>> from crowdwise import CrowdRidgeClassifier
        >>> rng = np.random.default_rng(0)
        >>> model = CrowdRidgeClassifier()
        >>> for day in ("monday", "tuesday"):
        ...     X = rng.normal(size=(300, 2))
        ...     y = X[:, :1] + rng.normal(size=(300, 3)) * [0.1, 1.0, 2.0] > 0
        ...     model = model.partial_fit(X, y, batch=day)
        >>> int(model.expertise_.argmax()), model.sums_.n_examples
        (0, 600)
        """
        before = vars(self).get("sums_")
        if before is None and "fitted_" in vars(self):
            warn(
                "a stream begins with this block: the earlier fit is not part of it, because its sums use other folds. "
                "Use partial_fit from the first block on."
            )
        plan, batches = self._plan(), _batch_names(batch)
        chunk = Chunk.of((X, y, sample_weight), plan.scale, self, reset=before is None)
        sums = RidgeSums.of(plan, _with_declared(chunk, classes, annotators, before), batches)
        return self._learn_sums(sums if before is None else before.checked(plan) + sums)

    def block_sums(self, X: Any, y: Any, sample_weight: Any = None, *, batch: Any = None) -> RidgeSums:
        """The sums over one block alone: to be computed anywhere, added with ``+`` and given to `merge`.

        The model only determines which sums; what it has learned is neither used nor changed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features; there may be no row.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none.
        sample_weight : float, or array-like, series or mapping of shape (n_examples,), default=None
            How often each example counts.
        batch : str, int or tuple, default=None
            Name of the block, as in `partial_fit`.

        Returns
        -------
        sums : RidgeSums

        Examples
        --------
        >>> import numpy as np
        >>> from functools import reduce
        >>> from operator import add
        >>> from crowdwise import CrowdRidgeClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2))
        >>> y = X[:, :1] + rng.normal(size=(600, 3)) * [0.1, 1.0, 2.0] > 0
        >>> model = CrowdRidgeClassifier()
        >>> parts = [model.block_sums(X[at], y[at]) for at in (slice(0, 200), slice(200, 600))]
        >>> int(model.merge(reduce(add, parts)).expertise_.argmax())
        0
        """
        plan = self._plan()
        return RidgeSums.of(plan, Chunk.of((X, y, sample_weight), plan.scale), _batch_names(batch))

    @all_or_nothing
    def merge(self, other: Any) -> Self:
        """Join what another model has learned from other blocks: the same as if this one had seen them too.

        Parameters
        ----------
        other : estimator or RidgeSums
            A model of the same class and settings, fitted by `partial_fit`, which stays as it is; or sums that
            `block_sums` of such a model gave, added up.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> from crowdwise import CrowdRidgeClassifier
        >>> one = CrowdRidgeClassifier().partial_fit([[0.0], [1.0]], [[0, 0], [1, 1]])
        >>> other = CrowdRidgeClassifier().partial_fit([[0.2], [0.9]], [[0, 1], [1, 1]])
        >>> one.merge(other).sums_.n_examples
        4
        """
        if not isinstance(other, RidgeSums):
            _check_mergeable(self, other)
            other = other.sums_
        plan, before = self._plan(), vars(self).get("sums_")
        other.check_mergeable(plan)
        return self._learn_sums(other if before is None else before.checked(plan) + other)


def _with_declared(chunk: Chunk, classes: Any, annotators: Any, before: RidgeSums | None) -> Chunk:
    """Labels coded by what was declared, now or for the sums so far; raises if there are others."""
    labels = chunk.labels
    if classes is not None and labels.classes is None:
        raise ValueError("ratings are numbers and have no classes to declare.")
    declared: dict[str, Array | None] = {
        "classes": None if classes is None else _class_names(classes),
        "annotators": None if annotators is None else as_ids(annotators, "annotators"),
    }
    for name, values in declared.items() if before is not None else ():
        known = getattr(before.summary, name)  # type: ignore[union-attr]
        if values is not None and not np.array_equal(values, known):
            raise ValueError(f"{name} can be declared at the first call of partial_fit, and later only the same.")
        declared[name] = known
    names, known_annotators = declared["classes"], declared["annotators"]
    declare = "Declare all of them at the first call of partial_fit:"
    known_annotators = labels.annotators if known_annotators is None else known_annotators
    if len(unknown := labels.annotators[encode_declared(labels.annotators, known_annotators) < 0]):
        raise LabelError(
            f"the annotators {unknown[:3].tolist()} are not among those declared or in the first block, such as "
            f"{known_annotators[:3].tolist()}. {declare} annotators=... They are the columns of y, named by "
            "CrowdLabels.from_matrix(y, annotators=...)."
        )
    try:
        return replace(chunk, labels=recoded(labels, known_annotators, names))
    except LabelError as error:
        raise LabelError(f"{error} {declare} classes=...") from None


def _class_names(classes: Any) -> Array:
    values = as_column(classes, "classes")
    as_ids(values, "classes")
    return tidy(values.tolist())


def _batch_names(batch: Any) -> tuple[Any, ...]:
    """The name of a batch, if it has one."""
    try:
        hash(batch)
    except TypeError:
        raise TypeError(f"batch must be a name, such as a string or a number; got {batch!r}.") from None
    return () if batch is None else (batch,)


def _check_mergeable(model: Any, other: Any) -> None:
    """Raise unless another model learned from batches of the same kind, with the same settings."""
    if type(other) is not type(model):
        raise TypeError(f"a {type(model).__name__} can be merged with another one; got {type(other).__name__}.")
    for side, whose in ((model, "this model"), (other, "the other model")):
        if "sums_" not in vars(side):
            raise DataError(f"merge joins models fitted by partial_fit, and {whose} was not.")
    mine, theirs = (side.get_params(deep=False) for side in (model, other))
    for name in sorted(mine.keys() - {"verbose"}):
        if repr(mine[name]) != repr(theirs[name]):
            raise DataError(
                f"models with other settings cannot be merged: {name} is {mine[name]!r} and {theirs[name]!r}."
            )
