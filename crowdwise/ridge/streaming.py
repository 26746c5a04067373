"""What all ridge models share to learn from streams: `partial_fit`, `merge`, and solving when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from crowdwise.arrays import Array, Floats
from crowdwise.cluster.blocks import DaskBlocks
from crowdwise.crowd.differences import Scale
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_column, as_ids, encode_declared, tidy
from crowdwise.mixins import all_or_nothing
from crowdwise.out_of_core.blocks import Block, Blocks, map_blocks
from crowdwise.progress import OnRound, Reporter
from crowdwise.results import ABOUT_EXAMPLES, StreamResults
from crowdwise.ridge.blocks_problem import BlockRows
from crowdwise.ridge.features import available_cores, one_blas_thread
from crowdwise.ridge.stream import Stream
from crowdwise.ridge.stream_sums import StreamPlan, StreamSums, SumsTooLargeError
from crowdwise.training_set import check_features, check_sample_weight
from crowdwise.weights.curricula import Curriculum

# What stays when sums grow: everything else that was learnt has to be solved for again.
_LASTING = ("n_features_in_", "feature_names_in_")
# Blocks that are summed up at a time: each is in memory.
_MOST_THREADS = 2
# Why rows are not read again where sums are too large: (nothing is chosen over folds, something is).
_WHY_NOT_ROWS = (
    "These blocks come from an iterator and cannot be read again: give a function that begins one, a list, a file or "
    "an array.",
    "Blocks are read again in every round by CrowdRidgeClassifier and CrowdRidgeRegressor alone.",
)


def _can_stream(model: Any) -> bool:
    return model._why_no_stream() is None


class StreamMixin:
    """Learns from blocks of examples, one after the other, exactly as from all of them together."""

    sums_: StreamSums
    scale: Scale
    verbose: int

    @available_if(_can_stream)  # type: ignore[untyped-decorator]
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
        one `fit` on all of their examples, to rounding, and the order of blocks does not matter. Rounds are solved when
        a result is first asked for. Folds are drawn by a hash of the features, which `fit` does differently: what is
        chosen over folds is the same for the same examples in any blocks, but may differ from what `fit` chooses. The
        precision of the model, the accuracy of annotators and `steepness="auto"` are found from a sample of at most
        20,000 examples. Results about single examples are not kept: `consensus` gives them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features; there may be no row.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none.
        sample_weight : float, or array-like, series or mapping of shape (n_examples,), default=None
            How often each example counts.
        classes : array-like of shape (n_classes,), default=None
            All classes there are going to be, at the first call; a label outside them is an error. By default classes
            are added as they come.
        annotators : array-like of shape (n_annotators,), default=None
            All annotators there are going to be, at the first call; any other is an error. By default annotators are
            added as they come: what was there before is unlabelled by them.
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
        if "sums_" not in vars(self) and "fitted_" in vars(self):
            warn(
                "a stream begins with this block: what fit has learnt is no part of it, for fit keeps no sums. Use "
                "partial_fit from the first block on."
            )
        block = Block(X, y, sample_weight)
        self._restart(self._with_block(self._stream_plan(), block, classes, annotators, batch))
        return self

    def block_sums(self, X: Any, y: Any, sample_weight: Any = None, *, batch: Any = None) -> StreamSums:
        """The sums over one block alone: to be computed anywhere, added with ``+`` and given to `merge`.

        The model only says which sums; what it has learnt is neither used nor changed.

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
        sums : StreamSums

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
        worker = type(self)(**self.get_params(deep=False))  # type: ignore[attr-defined]
        return worker._with_block(worker._checked_plan(), Block(X, y, sample_weight), batch=batch)

    def _checked_plan(self) -> StreamPlan:
        if reason := self._why_no_stream():
            raise ValueError(f"there are no sums for these settings: {reason}")
        return self._stream_plan()

    def _with_block(
        self, plan: StreamPlan, block: Block, classes: Any = None, annotators: Any = None, batch: Any = None
    ) -> StreamSums:
        """The sums so far and those of one more block."""
        names = batch_names(batch)
        begun = "sums_" in vars(self)
        X, labels, weight = self._checked(plan, block, reset=not begun)
        before = self._sums_before(plan, X.shape[1], classes, annotators)
        before.check_batches(names)
        sums = StreamSums.of(plan, X, _in_declared(labels, before), weight, near=before)
        return before + replace(sums, feature_names=vars(self).get("feature_names_in_"), batches=names)

    def _checked(self, plan: StreamPlan, block: Block, *, reset: bool) -> tuple[Any, CrowdLabels, Floats]:
        """Features, labels and weights of a block."""
        X, labels = check_features(self, block.X, block.y, plan.kind, reset=reset, least=0)
        return X, labels, check_sample_weight(block.sample_weight, X, labels, rescale=False)

    def _fit_blocks(self, blocks: Blocks, given: dict[str, Any], on_round: OnRound | None) -> None:
        """Learn from all blocks, one after the other."""
        plan = self._checked_plan()
        if extra := [name for name, value in given.items() if value is not None]:
            raise ValueError(
                f"{', '.join(extra)} cannot be given beside blocks, which have their own labels and weights."
            )
        reporter = Reporter(type(self).__name__, self.verbose, on_round)
        try:
            self._add_blocks(plan, blocks, reporter)
            self._solve(reporter)
        except SumsTooLargeError as error:
            if plan.tuned or not blocks.again:
                raise SumsTooLargeError(f"{error} {_WHY_NOT_ROWS[plan.tuned]}") from None
            self._read_again(plan, blocks, reporter)

    def _add_blocks(self, plan: StreamPlan, blocks: Blocks, reporter: Reporter) -> None:
        """The sums over all blocks: what is found in the first one tells the threads how to sum up the others."""
        self._forget_stream()
        coming = iter(blocks)
        first = next(coming, None)
        if first is None:
            raise DataError("there are no blocks to learn from.")
        total = near = self._with_block(plan, first)

        def sums_of(block: Block) -> StreamSums:
            return StreamSums.of(plan, *self._checked(plan, block, reset=False), near=near)

        reporter.step(f"block 1: {total.n_given:,} examples")
        for number, sums in enumerate(map_blocks(sums_of, coming, min(available_cores(), _MOST_THREADS)), start=2):
            total = total + replace(sums, feature_names=near.feature_names)
            near = replace(near, kept=total.kept)  # fewer rows of later blocks can still be kept; the rest stays
            reporter.step(f"block {number}: {total.n_given:,} examples")
        self._restart(total)

    def _read_again(self, plan: StreamPlan, blocks: Blocks, reporter: Reporter) -> None:
        """Learn by reading all blocks in every round; one more time before, to find out about labels."""
        self._add_blocks(replace(plan, by_level=False, labels_only=True), blocks, reporter)
        sums = self.sums_
        stream = Stream.of(sums, scale=self.scale, weighting=plan.by_level)
        rows = BlockRows(blocks, lambda block: self._checked(plan, block, reset=False), sums, stream.data, self.scale)
        self._learn_stream(replace(stream, rows=rows), reporter)
        vars(self).pop("sums_")  # they are of labels alone: nothing can be added to them
        vars(self).pop("_stream_settings")

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, on_round: OnRound | None) -> None:
        """Learn from the blocks of Dask collections, which are summed up where they are."""
        plan = self._checked_plan()
        blocks = DaskBlocks.of(X, y, sample_weight, kind=plan.kind)
        reporter = Reporter(type(self).__name__, self.verbose, on_round)
        settings = type(self)(**self.get_params(deep=False))  # type: ignore[attr-defined]
        vars(self).pop("feature_names_in_", None)  # of an earlier fit
        try:
            self._merge_sums(blocks.total(partial(_sums_of_block, settings)))
        except SumsTooLargeError as error:
            raise SumsTooLargeError(f"{error} Dask collections cannot be read again: use read_blocks.") from None
        reporter.step(f"{len(blocks.parts):,} blocks: {self.sums_.n_given:,} examples")
        self._solve(reporter)

    @all_or_nothing
    def merge(self, other: Any) -> Self:
        """Join what another model has learnt from other blocks: the same as if this one had seen them too.

        Parameters
        ----------
        other : estimator or StreamSums
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
        if isinstance(other, StreamSums):
            return self._merge_sums(other)
        if type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} can be merged with another one; got {type(other).__name__}.")
        for model, whose in ((self, "this model"), (other, "the other model")):
            if "sums_" not in vars(model):
                raise DataError(f"merge joins models fitted by partial_fit, and {whose} was not.")
        mine, theirs = (_shown(model._stream_settings) for model in (self, other))
        if different := sorted(name for name in mine if mine[name] != theirs[name]):
            name = different[0]
            raise DataError(f"models with other settings cannot be merged: {name} is {mine[name]} and {theirs[name]}.")
        return self._merge_sums(other.sums_)

    def _merge_sums(self, sums: StreamSums) -> Self:
        plan, n_features = self._checked_plan(), len(sums.statistics.shift)
        self._restart(self._sums_before(plan, n_features, None, None) + sums)
        self.n_features_in_ = n_features
        if sums.feature_names is not None:
            self.feature_names_in_ = sums.feature_names
        return self

    def _sums_before(self, plan: StreamPlan, n_features: int, classes: Any, annotators: Any) -> StreamSums:
        """The sums so far, or those of nothing; what is declared must be what was declared at first."""
        if classes is not None and plan.kind == "rating":
            raise ValueError("ratings are numbers and have no classes to declare.")
        known = None if classes is None else declared_classes(classes, "classes")
        names = None if annotators is None else as_ids(annotators, "annotators")
        if "sums_" not in vars(self):
            return StreamSums.nothing(plan, n_features, known, names)
        sums = self.sums_
        if plan != sums.plan:
            raise DataError(
                f"a setting that the sums of this stream depend on was changed after its first block: they are for "
                f"{sums.plan}, not for {plan}. Start with a new model."
            )
        declared = {"classes": (known, sums.classes if sums.fixed_classes else None)}
        declared["annotators"] = names, sums.annotators if sums.fixed_annotators else None
        for what, (now, then) in declared.items():
            if now is not None and (then is None or not np.array_equal(now, then)):
                raise ValueError(f"{what} can be declared at the first call of partial_fit, and later only the same.")
        return sums

    def _restart(self, sums: StreamSums) -> None:
        """Keep sums, and forget what was solved from fewer."""
        self._forget_stream()
        self.sums_ = sums
        self._stream_settings = self.get_params(deep=False)  # type: ignore[attr-defined]

    def _forget_stream(self) -> None:
        """Forget what was learnt, sums and all."""
        learnt = [name for name in vars(self) if name.endswith("_") and name not in _LASTING]
        for name in [*learnt, "_stream_settings"]:
            vars(self).pop(name, None)

    def _solve(self, reporter: Reporter | None = None) -> None:
        """Solve the rounds with the settings of the last block, whatever was set since."""
        solver = type(self)(**self._stream_settings)
        vars(solver).update({name: vars(self)[name] for name in _LASTING if name in vars(self)})
        stream = Stream.of(self.sums_, scale=solver.scale, weighting=self.sums_.plan.by_level)
        solver._learn_stream(stream, reporter or Reporter(type(self).__name__, solver.verbose))
        vars(self).update({name: value for name, value in vars(solver).items() if name.endswith("_")})

    def _why_no_stream(self) -> str | None:
        """Why these settings do not suit a stream, if they do not."""
        settings = self.get_params(deep=False)  # type: ignore[attr-defined]
        curriculum, class_weight = settings["curriculum"], settings.get("class_weight")
        if isinstance(curriculum, Curriculum) and not curriculum.is_mixture:
            return (
                f"curriculum={curriculum!r} looks at the examples in every round, and a stream keeps none. Use "
                "Fixed(), Smooth(...) or Fading(...), or fit."
            )
        if class_weight is not None:
            return (
                f"class_weight={class_weight!r} looks at the consensus on every example in every round, and a stream "
                "keeps none. Use class_weight=None with sample_weight, or fit."
            )
        return None

    def _stream_plan(self) -> StreamPlan:
        """What sums depend on; raises if a setting makes no sense."""
        raise NotImplementedError

    def _learn_stream(self, stream: Stream, reporter: Reporter) -> None:
        """Solve the rounds and store what was learnt."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            is_result = name.endswith("_") and not name.startswith("_") and name not in _LASTING
            streamed = "sums_" in vars(self) or isinstance(vars(self).get("results_"), StreamResults)
            if streamed and name in ABOUT_EXAMPLES:
                raise AttributeError(
                    f"{name} is about single examples, which are not kept of blocks (partial_fit). For the consensus "
                    "on any examples call consensus(X, labels)."
                )
            if is_result and "sums_" in vars(self) and "fitted_" not in vars(self):
                self._solve()
                if name in vars(self):
                    return vars(self)[name]
            if name == "partial_fit":
                raise AttributeError(f"there is no partial_fit with these settings: {self._why_no_stream()}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _sums_of_block(model: Any, block: Block) -> StreamSums:
    """What is mapped over the blocks of a cluster."""
    with one_blas_thread():
        return model.block_sums(*block)


def declared_classes(classes: Any, what: str) -> Array:
    values = as_column(classes, what)
    as_ids(values, what)
    return tidy(values.tolist())


def _in_declared(labels: CrowdLabels, sums: StreamSums) -> CrowdLabels:
    """Labels in the classes and among the annotators that were declared, if any were."""
    if sums.fixed_annotators and (encode_declared(labels.annotators, sums.annotators) < 0).any():
        unknown = labels.annotators[encode_declared(labels.annotators, sums.annotators) < 0]
        raise LabelError(
            f"the annotators {unknown[:3].tolist()} are not among those declared, such as "
            f"{sums.annotators[:3].tolist()}. Name the columns of y as declared: CrowdLabels.from_matrix(y, "
            "annotators=...)."
        )
    if not sums.fixed_classes or labels.classes is None or sums.classes is None:
        return labels
    return labels.with_classes(sums.classes)


def batch_names(batch: Any) -> tuple[Any, ...]:
    try:
        hash(batch)
    except TypeError:
        raise TypeError(f"batch must be a name, such as a string or a number; got {batch!r}.") from None
    return () if batch is None else (batch,)


def _shown(settings: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in settings.items() if name != "verbose"}
