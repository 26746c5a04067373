"""A fitted model, a Dask collection -> predictions and consensus, computed block by block when they are asked for."""

from __future__ import annotations

import importlib
import pickle
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from crowdwise.arrays import Array
from crowdwise.cluster.blocks import DaskBlocks, as_new, is_dask_frame, rows_whole
from crowdwise.consensus import Consensus
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.out_of_core.blocks import Block
from crowdwise.results import ABOUT_EXAMPLES

# What a model keeps of its fit and no prediction needs: it would travel with every block.
_HEAVY = ABOUT_EXAMPLES | {"results_", "sums_", "stream_"}


@dataclass(frozen=True, eq=False)
class LazyConsensus:
    """The consensus on the rows of Dask collections, computed when it is asked for.

    Dask arrays if the features are a Dask array, else series and a data frame with the index of the features.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.
    label : dask.array.Array or dask.dataframe.Series of shape (n_examples,)
        The class of every example, as `Consensus` has it.
    confidence : dask.array.Array or dask.dataframe.Series of shape (n_examples,)
        The probability of that class.
    proba : dask.array.Array or dask.dataframe.DataFrame of shape (n_examples, n_classes)
        Probability of every class; columns of a data frame are named as those of ``Consensus.to_frame()``.
    mean : dask.array.Array, dask.dataframe.Series or None, default=None
        The mean level of every example; None for classes without an order.
    """

    classes: Array
    label: Any
    confidence: Any
    proba: Any
    mean: Any = None


@dataclass(frozen=True, eq=False)
class LazyRatingConsensus:
    """The consensus on ratings of the rows of Dask collections, computed when it is asked for.

    Parameters
    ----------
    label : dask.array.Array or dask.dataframe.Series of shape (n_examples,)
        The rating.
    std : dask.array.Array or dask.dataframe.Series of shape (n_examples,)
        Its standard deviation.
    """

    label: Any
    std: Any


def lazily(model: Any, method: str, X: Any) -> Any:
    """What a method of a fitted model gives for the rows of a Dask collection, not computed yet.

    An array, or for a data frame a series or frame with its index.
    """
    X = rows_whole(X)
    like = getattr(model, method)(_one_row(X))[:0]
    call = partial(_call, pickle.dumps(_for_workers(model)), method, like)
    if is_dask_frame(X):
        columns = model.classes_.tolist() if like.ndim == 2 else None
        frame = partial(_framed, call, columns)
        return X.map_partitions(frame, meta=frame(X._meta))
    if like.ndim == 1:
        return X.map_blocks(call, drop_axis=1, meta=like)
    return X.map_blocks(call, chunks=(X.chunks[0], (like.shape[1],)), meta=like)


def lazy_consensus(model: Any, X: Any, labels: Any, *, use_model: bool) -> Any:
    """The consensus of a fitted model on the rows of Dask collections, not computed yet.

    Labels may be anything that `consensus` takes; if they are a collection, its blocks hold the same rows as those of
    X.
    """
    classes = getattr(model, "classes_", None)
    names = ["label", "std"] if classes is None else [f"p({name})" for name in classes.tolist()]
    blocks = DaskBlocks.of(X, labels, kind="rating" if classes is None else "class")
    find = partial(_consensus_of_block, _for_workers(model), use_model, len(names))
    if is_dask_frame(X):
        frame = importlib.import_module("pandas").DataFrame
        frames = blocks.delayed(partial(_framed, find, names))
        meta = frame(np.empty((0, len(names))), columns=names, index=X._meta.index)
        found = importlib.import_module("dask.dataframe").from_delayed(
            frames, meta=meta, divisions=X.divisions if X.known_divisions else None
        )
    else:
        array = importlib.import_module("dask.array")
        shapes = [(n if n != n else int(n), len(names)) for n in blocks.n_rows]
        parts = zip(blocks.delayed(find), shapes, strict=True)
        found = array.concatenate([array.from_delayed(part, shape, dtype=np.float64) for part, shape in parts])
    if classes is None:
        return LazyRatingConsensus(_column(found, "label", 0), _column(found, "std", 1))
    like = _like(model, X, classes)
    label, confidence = _per_row(found, like, "label"), _per_row(found, like, "confidence")
    mean = None if like.levels is None else _per_row(found, like, "mean")
    return LazyConsensus(classes, label, confidence, found, mean)


def _consensus_of_block(model: Any, use_model: bool, n_columns: int, block: Block) -> Array:
    """Probabilities of classes, or rating and standard deviation, of the examples of a block."""
    if block.X.shape[0] == 0:
        return np.empty((0, n_columns))
    found = model.consensus(block.X, block.y, use_model=use_model)
    return found.proba if isinstance(found, Consensus) else np.column_stack([found.label, found.std])


def _column(found: Any, name: str, number: int) -> Any:
    return found[name] if is_dask_frame(found) else found[:, number]


def _like(model: Any, X: Any, classes: Array) -> Consensus:
    """The consensus on no examples, which says how the model reads probabilities."""
    labels = CrowdLabels.from_matrix(np.array([[None]]), classes=classes)
    found: Consensus = model.consensus(_one_row(X), labels)
    return replace(found, examples=found.examples[:0], proba=found.proba[:0])


def _per_row(proba: Any, like: Consensus, what: str) -> Any:
    """What probabilities say about every example."""
    find = partial(_of_consensus, what, like)
    if is_dask_frame(proba):
        frame = partial(_framed, find, None)
        return proba.map_partitions(frame, meta=frame(proba._meta))
    return proba.map_blocks(find, drop_axis=1, meta=find(like.proba))


def _of_consensus(what: str, like: Consensus, proba: Any) -> Array:
    values = np.asarray(proba)
    found: Array = getattr(replace(like, examples=np.arange(len(values)), proba=values), what)
    return found


def _call(model: bytes, method: str, nothing: Array, X: Any) -> Array:
    """What a method of a model gives for a block, which may be empty."""
    return nothing if X.shape[0] == 0 else getattr(pickle.loads(model), method)(as_new(X))


def _framed(find: Any, columns: list[Any] | None, block: Any) -> Any:
    """What is found in a block, as a series or a data frame with the index of its features."""
    pandas = importlib.import_module("pandas")
    index = (block.X if isinstance(block, Block) else block).index
    if columns is None:
        return pandas.Series(find(block), index=index)
    return pandas.DataFrame(find(block), index=index, columns=columns)


def _one_row(X: Any) -> Any:
    """A row with the columns of X, to see what a prediction looks like."""
    zeros = np.zeros((1, X.shape[1]))
    return importlib.import_module("pandas").DataFrame(zeros, columns=X.columns) if is_dask_frame(X) else zeros


def _for_workers(model: Any) -> Any:
    """The same model without what it keeps of the examples of its fit."""
    light = type(model)(**model.get_params(deep=False))
    vars(light).update({name: value for name, value in vars(model).items() if name not in _HEAVY})
    return light
