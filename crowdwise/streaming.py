"""What all models that learn from batches, blocks and Dask collections share: what begins, what is kept, and solving
when a result is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from crowdwise.arrays import Array, Floats
from crowdwise.cluster.blocks import is_dask
from crowdwise.exceptions import DataError, warn
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_column, as_ids, tidy
from crowdwise.out_of_core.blocks import Block, Blocks
from crowdwise.progress import OnRound, Reporter
from crowdwise.results import ABOUT_EXAMPLES, StreamResults
from crowdwise.training_set import check_features, check_sample_weight

# What stays when a batch is added: everything else that was learnt is found again when it is asked for.
_LASTING = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False)
class Declared:
    """All classes and annotators there are going to be; None where they are added as they come."""

    classes: Array | None = None
    annotators: Array | None = None

    @classmethod
    def of(cls, classes: Any, annotators: Any) -> Declared:
        """What a user declared."""
        return cls(
            None if classes is None else _declared_classes(classes),
            None if annotators is None else as_ids(annotators, "annotators"),
        )

    def check_same(self, then: Declared) -> None:
        """Raise if something is declared that was not declared like this at first."""
        for what in ("classes", "annotators"):
            now, before = getattr(self, what), getattr(then, what)
            if now is not None and (before is None or not np.array_equal(now, before)):
                raise ValueError(f"{what} can be declared at the first call of partial_fit, and later only the same.")


def _declared_classes(classes: Any) -> Array:
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


def _shown(settings: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in settings.items() if name != "verbose"}


def can_stream(model: Any) -> bool:
    """Whether the settings of a model suit a stream."""
    return model._why_no_stream() is None


class StreamMixin:
    """Learns from batches, one after the other, and finds results when they are asked for."""

    # Name of the attribute with all that is kept of the batches; it makes a model fitted.
    _kept_in: ClassVar[str]
    get_params: Callable[..., dict[str, Any]]
    verbose: int

    def _has_begun(self) -> bool:
        """Whether there was a batch."""
        return self._kept_in in vars(self)

    def _add_batch(self, block: Block, classes: Any, annotators: Any, batch: Any) -> Self:
        """What `partial_fit` does."""
        if not self._has_begun() and "fitted_" in vars(self):
            warn(
                "a stream begins with this block: what fit learned is not part of it, because fit keeps no sums. Use "
                "partial_fit from the first block on."
            )
        self._restart(self._with_batch(block, Declared.of(classes, annotators), batch_names(batch)))
        return self

    def _checked_batch(self, block: Block, kind: Kind, *, reset: bool) -> tuple[Any, CrowdLabels, Floats]:
        """Features, labels and weights of a batch."""
        X, labels = check_features(self, block.X, block.y, kind, reset=reset, least=0)
        return X, labels, check_sample_weight(block.sample_weight, X, labels, rescale=False)

    def _fit_out_of_core(
        self, X: Any, y: Any, sample_weight: Any, truth: Any, groups: Any, on_round: OnRound | None
    ) -> bool:
        """Learn from a Dask collection or from blocks, if X is that; whether it is."""
        if truth is not None and (is_dask(X) or isinstance(X, Blocks)):
            raise ValueError(
                "truth is held out example by example, and examples of blocks and Dask collections are not kept. Give "
                "what is known as the labels of one more annotator, or fit in memory."
            )
        if is_dask(X):
            self._fit_dask(X, y, sample_weight, groups, Reporter(type(self).__name__, self.verbose, on_round))
            return True
        if isinstance(X, Blocks):
            given = {"y": y, "sample_weight": sample_weight}
            if names := [name for name, value in given.items() if value is not None]:
                raise ValueError(
                    f"{', '.join(names)} cannot be given beside blocks, which have their own labels and weights."
                )
            self._fit_blocks(X, groups, Reporter(type(self).__name__, self.verbose, on_round))
            return True
        return False

    def _check_mergeable(self, other: Any) -> None:
        """Raise unless another model learnt from batches of the same kind, with the same settings."""
        if type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} can be merged with another one; got {type(other).__name__}.")
        for model, whose in ((self, "this model"), (other, "the other model")):
            if not model._has_begun():
                raise DataError(f"merge joins models fitted by partial_fit, and {whose} was not.")
        mine, theirs = (_shown(model._stream_settings) for model in (self, other))
        if different := sorted(name for name in mine if mine[name] != theirs[name]):
            name = different[0]
            raise DataError(f"models with other settings cannot be merged: {name} is {mine[name]} and {theirs[name]}.")
        lasting = [tuple(map(str, np.ravel(vars(model).get(name, ())))) for name in _LASTING for model in (self, other)]
        if lasting[0::2] != lasting[1::2]:
            raise DataError(
                "models can be merged if they have the same features, with the same names and in the same order."
            )

    def _restart(self, kept: Any) -> None:
        """Keep what there is of all batches, and forget what was found from fewer."""
        self._forget_stream()
        setattr(self, self._kept_in, kept)
        self._stream_settings = self.get_params(deep=False)

    def _forget_stream(self) -> None:
        """Forget what was learnt, the stream and all."""
        learnt = [name for name in vars(self) if name.endswith("_") and name not in _LASTING]
        for name in [*learnt, "_stream_settings"]:
            vars(self).pop(name, None)

    def _solve(self, reporter: Reporter | None = None, groups: Any = None) -> None:
        """Find what was learnt with the settings of the last batch, whatever was set since."""
        solver = type(self)(**self._stream_settings)
        vars(solver).update({name: vars(self)[name] for name in _LASTING if name in vars(self)})
        solver._learn_kept(vars(self)[self._kept_in], groups, reporter or Reporter(type(self).__name__, solver.verbose))
        learnt = {name: value for name, value in vars(solver).items() if name.endswith("_") and name not in _LASTING}
        vars(self).update(learnt)

    def _why_no_stream(self) -> str | None:
        """Why these settings do not suit a stream, if they do not."""
        class_weight = self.get_params(deep=False).get("class_weight")
        if class_weight is None:
            return None
        return (
            f"class_weight={class_weight!r} looks at the consensus on every example in every round, and a stream "
            "keeps none. Use class_weight=None with sample_weight, or fit."
        )

    def _with_batch(self, block: Block, declared: Declared, names: tuple[Any, ...]) -> Any:
        """What is to be kept after one more batch."""
        raise NotImplementedError

    def _learn_kept(self, kept: Any, groups: Any, reporter: Reporter) -> None:
        """Store what is learnt from what was kept; `groups` of annotators have one vote together."""
        raise NotImplementedError

    def _fit_blocks(self, blocks: Blocks, groups: Any, reporter: Reporter) -> None:
        """Learn from all blocks."""
        raise NotImplementedError

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any, reporter: Reporter) -> None:
        """Learn from the blocks of Dask collections, where they are."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            if name in ABOUT_EXAMPLES and (self._has_begun() or isinstance(vars(self).get("results_"), StreamResults)):
                raise AttributeError(
                    f"{name} is about single examples, which neither partial_fit nor a fit on blocks keeps. For the "
                    "consensus on any examples call consensus(X, labels)."
                )
            is_result = name.endswith("_") and not name.startswith("_") and name not in _LASTING
            if is_result and self._has_begun() and "fitted_" not in vars(self):
                self._solve()
                if name in vars(self):
                    return vars(self)[name]
            if name == "partial_fit":
                raise AttributeError(f"there is no partial_fit with these settings: {self._why_no_stream()}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
