"""Batches, blocks and Dask collections -> RidgeSums: what may be added to what, and how blocks are summed up."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise._progress import Reporter
from crowdwise._threads import available_cores, one_blas_thread, sharing_cores
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_column, as_ids, encode_declared, tidy
from crowdwise.labels.scale import ScaleName
from crowdwise.ridge.sums import RidgeSums, SumsPlan
from crowdwise.rows.blocks import Block, Blocks, map_blocks, n_rows
from crowdwise.rows.dask_blocks import DaskBlocks
from crowdwise.training_set import check_features, check_sample_weight

# Blocks that are summed up at a time: each is in memory.
_MOST_THREADS = 2
# Blocks whose sums are added before they are added to all: the sample that is kept of all takes longest.
_TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Names:
    """Classes and annotators that labels may have; None where any will do."""

    classes: Array | None = None
    annotators: Array | None = None

    @classmethod
    def of(cls, classes: Any, annotators: Any, before: RidgeSums | None) -> Names:
        """What a user declared, or those of the sums so far, which have to be what is declared again."""
        declared = cls(
            None if classes is None else _class_names(classes),
            None if annotators is None else as_ids(annotators, "annotators"),
        )
        if before is None:
            return declared
        for what in ("classes", "annotators"):
            now = getattr(declared, what)
            if now is not None and not np.array_equal(now, getattr(before, what)):
                raise ValueError(f"{what} can be declared at the first call of partial_fit, and later only the same.")
        return cls(before.classes, before.annotators)

    def checked(self, labels: CrowdLabels) -> CrowdLabels:
        """Labels in these classes; raises if there are others, or other annotators."""
        declare = "Declare all of them at the first call of partial_fit:"
        if self.annotators is not None:
            unknown = labels.annotators[encode_declared(labels.annotators, self.annotators) < 0]
            if len(unknown):
                raise LabelError(
                    f"the annotators {unknown[:3].tolist()} are not among those declared or in the first block, such "
                    f"as {self.annotators[:3].tolist()}. {declare} annotators=... They are the columns of y, named by "
                    "CrowdLabels.from_matrix(y, annotators=...)."
                )
        if self.classes is None:
            return labels
        try:
            return labels._with_classes(self.classes)
        except LabelError as error:
            raise LabelError(f"{error} {declare} classes=...") from None


def _class_names(classes: Any) -> Array:
    values = as_column(classes, "classes")
    as_ids(values, "classes")
    return tidy(values.tolist())


def batch_names(batch: Any) -> tuple[Any, ...]:
    """The name of a batch, if it has one."""
    try:
        hash(batch)
    except TypeError:
        raise TypeError(f"batch must be a name, such as a string or a number; got {batch!r}.") from None
    return () if batch is None else (batch,)


def add_block(
    model: Any,
    plan: SumsPlan,
    before: RidgeSums | None,
    block: Block,
    names: Names = Names(),
    batches: tuple[Any, ...] = (),
) -> RidgeSums:
    """The sums so far, if there are any, and those of one more block, whose features are checked for a model."""
    if names.classes is not None and plan.scale == "interval":
        raise ValueError("ratings are numbers and have no classes to declare.")
    X, labels, weight = _checked_block(model, block, plan.scale, reset=before is None)
    if before is None:
        before = RidgeSums.nothing(plan, X.shape[1], names.classes, names.annotators)
    check_same_plan(plan, before)
    before.check_batches(batches)
    sums = RidgeSums.of(plan, X, names.checked(labels), weight, near=before)
    return before + replace(sums, feature_names=vars(model).get("feature_names_in_"), batches=batches)


def _checked_block(model: Any, block: Block, scale: ScaleName, *, reset: bool) -> tuple[Any, CrowdLabels, Floats]:
    """Features, labels and weights of a block."""
    X, labels = check_features(model, block.X, block.y, scale, reset=reset, least=0)
    return X, labels, check_sample_weight(block.sample_weight, X, labels, rescale=False)


def sums_of_blocks(model: Any, plan: SumsPlan, blocks: Blocks, reporter: Reporter) -> RidgeSums:
    """The sums over all blocks: what is found in the first one tells the threads how to sum up the others."""
    n_threads = min(available_cores(), _MOST_THREADS)

    def sums_of(block: Block) -> RidgeSums:
        with sharing_cores(n_threads):
            sums = RidgeSums.of(plan, *_checked_block(model, block, plan.scale, reset=False), near=near)
            return replace(sums, feature_names=near.feature_names)

    # Both have threads, which end here and not wherever garbage is collected after an error: that may wait for ever.
    with one_blas_thread(), closing(iter(blocks)) as coming:
        first = next(coming, None)
        if first is None:
            raise DataError("there are no blocks to learn from.")
        total = near = add_block(model, plan, None, first)
        reporter.step(f"block 1: {total.n_given:,} examples")
        n_examples, waiting = total.n_given, None
        with closing(map_blocks(sums_of, coming, n_threads, n_rows(first))) as results:
            for number, sums in enumerate(results, start=2):
                n_examples += sums.n_given
                waiting = sums if waiting is None else waiting + sums
                if number % _TOGETHER == 0:
                    total, waiting = total + waiting, None
                    near = replace(near, kept=total.kept)  # of later blocks fewer rows can still be kept
                reporter.step(f"block {number}: {n_examples:,} examples")
        return total if waiting is None else total + waiting


def sums_of_dask(model: Any, plan: SumsPlan, X: Any, y: Any, sample_weight: Any, reporter: Reporter) -> RidgeSums:
    """The sums over the blocks of Dask collections, computed where they are."""
    blocks = DaskBlocks.of(X, y, sample_weight, scale=plan.scale)
    sums = blocks.total(partial(_in_one_thread, type(model)(**model.get_params(deep=False)), plan))
    reporter.step(f"{len(blocks.parts):,} blocks: {sums.n_given:,} examples")
    return sums


def sums_of_block(model: Any, plan: SumsPlan, block: Block, batches: tuple[Any, ...] = ()) -> RidgeSums:
    """The sums over one block alone, whatever the model has learned."""
    return add_block(type(model)(**model.get_params(deep=False)), plan, None, block, batches=batches)


def _in_one_thread(model: Any, plan: SumsPlan, block: Block) -> RidgeSums:
    """What is mapped over the blocks of a cluster."""
    with one_blas_thread():
        return sums_of_block(model, plan, block)


def check_mergeable(one: Any, other: Any) -> None:
    """Raise unless another model learned from batches of the same kind, with the same settings."""
    if type(other) is not type(one):
        raise TypeError(f"a {type(one).__name__} can be merged with another one; got {type(other).__name__}.")
    for model, whose in ((one, "this model"), (other, "the other model")):
        if "sums_" not in vars(model):
            raise DataError(f"merge joins models fitted by partial_fit, and {whose} was not.")
    mine, theirs = (model.get_params(deep=False) for model in (one, other))
    for name in sorted(mine.keys() - {"verbose"}):
        if repr(mine[name]) != repr(theirs[name]):
            raise DataError(
                f"models with other settings cannot be merged: {name} is {mine[name]!r} and {theirs[name]!r}."
            )


def check_same_plan(plan: SumsPlan, sums: RidgeSums) -> None:
    if plan != sums.plan:
        raise DataError(
            "a setting that the sums of this stream depend on was changed after its first block: they are for "
            f"{sums.plan}, not for {plan}. Start with a new model."
        )
