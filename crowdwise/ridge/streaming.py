"""What all ridge models share: from what `fit` was given to what is kept, and sums that add, of batches and blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crowdwise.arrays import Floats
from crowdwise.checks import check_choice, check_rounds, check_seed
from crowdwise.cluster.blocks import DaskBlocks
from crowdwise.crowd.differences import Scale
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels.align import align, as_labels, with_ids_of
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.mixins import CrowdResultsMixin, all_or_nothing
from crowdwise.out_of_core.blocks import Block, Blocks, map_blocks, n_rows
from crowdwise.progress import Reporter
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.fitted import FittedRidge, check_new, ridge_results
from crowdwise.ridge.path import Folds, PathFit, ridge_path
from crowdwise.ridge.stream import Stream
from crowdwise.ridge.stream_plan import StreamPlan
from crowdwise.ridge.stream_sums import StreamSums
from crowdwise.streaming import Declared, StreamMixin, batch_names, can_stream
from crowdwise.threads import available_cores, one_blas_thread, sharing_cores
from crowdwise.training_set import TrainingSet, check_features, note_effective_number
from crowdwise.truths.known import known_answers
from crowdwise.weights.curricula import Curriculum, check_curriculum

# Blocks that are summed up at a time: each is in memory.
_MOST_THREADS = 2
# Blocks whose sums are added before they are added to all: the sample that is kept of all takes longest.
_TOGETHER = 8

# Solves for some steepnesses and l2s with a weighting: `ridge_path` of the data at hand.
Path = Callable[..., list[PathFit]]


class RidgeStreamMixin(StreamMixin, CrowdResultsMixin):
    """Learns from blocks of examples, one after the other, exactly as from all of them together."""

    _kept_in = "sums_"
    sums_: StreamSums
    fitted_: FittedRidge
    label_score_: Floats
    l2_: float
    route_: str
    model_precision_: float
    n_features_in_: int
    scale: Scale
    fit_intercept: bool
    max_rounds: int
    tol: float
    curriculum: Curriculum | None
    random_state: Any

    @available_if(can_stream)  # type: ignore[untyped-decorator]
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
        return self._add_batch(Block(X, y, sample_weight), classes, annotators, batch)

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
        return self._sums_of(self._checked_plan(), Block(X, y, sample_weight), batch_names(batch))

    def _sums_of(self, plan: StreamPlan, block: Block, names: tuple[Any, ...] = ()) -> StreamSums:
        """The sums over one block alone."""
        worker = type(self)(**self.get_params(deep=False))
        return worker._with_block(plan, block, names=names)

    def _checked_plan(self) -> StreamPlan:
        if reason := self._why_no_stream():
            raise ValueError(f"there are no sums for these settings: {reason}")
        return self._stream_plan()

    def _with_batch(self, block: Block, declared: Declared, names: tuple[Any, ...]) -> StreamSums:
        return self._with_block(self._stream_plan(), block, declared, names)

    def _with_block(
        self, plan: StreamPlan, block: Block, declared: Declared | None = None, names: tuple[Any, ...] = ()
    ) -> StreamSums:
        """The sums so far and those of one more block."""
        X, labels, weight = self._checked_batch(block, plan.kind, reset=not self._has_begun())
        before = self._sums_before(plan, X.shape[1], declared or Declared())
        before.check_batches(names)
        known = Declared(before.classes, before.annotators) if self._has_begun() else declared or Declared()
        sums = StreamSums.of(plan, X, _among_known(labels, known), weight, near=before)
        return before + replace(sums, feature_names=vars(self).get("feature_names_in_"), batches=names)

    def _fit_blocks(self, blocks: Blocks, groups: Any, reporter: Reporter) -> None:
        """Learn from all blocks, one after the other."""
        plan = self._checked_plan()
        self._add_blocks(plan, blocks, reporter)
        self._solve(reporter, groups)

    def _add_blocks(self, plan: StreamPlan, blocks: Blocks, reporter: Reporter) -> None:
        """The sums over all blocks: what is found in the first one tells the threads how to sum up the others."""
        self._forget_stream()
        coming = iter(blocks)
        first = next(coming, None)
        if first is None:
            raise DataError("there are no blocks to learn from.")
        n_threads = min(available_cores(), _MOST_THREADS)

        def sums_of(block: Block) -> StreamSums:
            with sharing_cores(n_threads):
                sums = StreamSums.of(plan, *self._checked_batch(block, plan.kind, reset=False), near=near)
                return replace(sums, feature_names=near.feature_names)

        with one_blas_thread():
            total = near = self._with_block(plan, first)
            reporter.step(f"block 1: {total.n_given:,} examples")
            n_examples, waiting = total.n_given, None
            for number, sums in enumerate(map_blocks(sums_of, coming, n_threads, n_rows(first)), start=2):
                n_examples += sums.n_given
                waiting = sums if waiting is None else waiting + sums
                if number % _TOGETHER == 0:
                    total, waiting = total + waiting, None
                    near = replace(near, kept=total.kept)  # of later blocks fewer rows can still be kept
                reporter.step(f"block {number}: {n_examples:,} examples")
        self._restart(total if waiting is None else total + waiting)

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any, reporter: Reporter) -> None:
        """Learn from the blocks of Dask collections, which are summed up where they are."""
        plan = self._checked_plan()
        blocks = DaskBlocks.of(X, y, sample_weight, kind=plan.kind)
        settings = type(self)(**self.get_params(deep=False))
        vars(self).pop("feature_names_in_", None)  # of an earlier fit
        self._merge_sums(blocks.total(partial(_sums_of_block, settings, plan)), plan)
        reporter.step(f"{len(blocks.parts):,} blocks: {self.sums_.n_given:,} examples")
        self._solve(reporter, groups)

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
            return self._merge_sums(other, self._checked_plan())
        self._check_mergeable(other)
        return self._merge_sums(other.sums_, self._checked_plan())

    def _merge_sums(self, sums: StreamSums, plan: StreamPlan) -> Self:
        n_features = sums.kept.X.shape[1]
        self._restart(self._sums_before(plan, n_features, Declared()) + sums)
        self.n_features_in_ = n_features
        if sums.feature_names is not None:
            self.feature_names_in_ = sums.feature_names
        return self

    def _sums_before(self, plan: StreamPlan, n_features: int, declared: Declared) -> StreamSums:
        """The sums so far, or those of nothing; what is declared must be what was declared at first."""
        if declared.classes is not None and plan.kind == "rating":
            raise ValueError("ratings are numbers and have no classes to declare.")
        if not self._has_begun():
            return StreamSums.nothing(plan, n_features, declared.classes, declared.annotators)
        sums = self.sums_
        if plan != sums.plan:
            raise DataError(
                f"a setting that the sums of this stream depend on was changed after its first block: they are for "
                f"{sums.plan}, not for {plan}. Start with a new model."
            )
        declared.check_same(Declared(sums.classes, sums.annotators))
        return sums

    def _learn_kept(self, kept: StreamSums, groups: Any, reporter: Reporter) -> None:
        stream = Stream.of(kept, groups, scale=self.scale, weighting=kept.plan.by_level)
        self._learn(stream.data, stream.folds, reporter, stream)

    def _why_no_stream(self) -> str | None:
        curriculum = self.get_params(deep=False)["curriculum"]
        if isinstance(curriculum, Curriculum) and not curriculum.is_mixture:
            return (
                f"curriculum={curriculum!r} looks at the examples in every round, and a stream keeps none. Use "
                "Fixed(), Smooth(...) or Fading(...), or fit."
            )
        return super()._why_no_stream()

    def _data(
        self, X: Any, y: Any, sample_weight: Any, truth: Any, kind: Kind, init: str, *, weighting: bool
    ) -> RidgeData:
        """What `fit` was given, checked; `weighting` says whether disagreement is going to be used."""
        checked, labels = check_features(self, X, y, kind)
        answers = known_answers(truth, X, labels)
        training = TrainingSet.of(checked, labels, sample_weight, truth=answers, scale=self.scale, weighting=weighting)
        return RidgeData.of(training, intercept=self.fit_intercept, init=init)

    def _check_settings(self) -> Curriculum:
        """Raise if a setting cannot be used; the curriculum."""
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_rounds(self.max_rounds, self.tol)
        check_seed(self.random_state)
        return check_curriculum(self.curriculum)

    def _learn(
        self, data: RidgeData, folds: Folds, reporter: Reporter, stream: Stream | None = None, groups: Any = None
    ) -> None:
        """Solve the rounds, and store what was learnt."""
        source = None if stream is None else stream.sums
        path = partial(
            ridge_path, data, folds=folds, max_rounds=self.max_rounds, tol=self.tol, reporter=reporter, source=source
        )
        with one_blas_thread():
            self._keep_fit(data, folds, self._best_fit(data, folds, path), stream, groups)
        reporter.done()

    def _keep_fit(self, data: RidgeData, folds: Folds, fit: PathFit, stream: Stream | None, groups: Any) -> FittedRidge:
        """Store what was learnt, and say what is remarkable about it."""
        fit.warn(data, self.tol)
        if stream is None:
            note_effective_number(data.easiness(fit.steepness) * data.training.sample_weight, self.n_features_in_)
            found = ridge_results(data, folds, fit, groups)
            self.fitted_, self.label_score_ = found.fitted, flat(found.label_score)
            self._keep(found.results)
        else:
            stream.note_effective_number(fit.steepness)
            self.fitted_, results = stream.results(fit)
            self._keep(results)
        self.l2_, self.route_ = fit.l2, fit.route
        self.model_precision_ = self.fitted_.model_precision
        return self.fitted_

    def _consensus(self, X: Any, labels: Any, *, use_model: bool) -> Any:
        """The consensus on whatever features and labels the model is given."""
        check_is_fitted(self)
        classes = self.fitted_.classes
        X, labels = align(X, as_labels(labels, kind="rating" if classes is None else "class"))
        labels = with_ids_of(X, labels)
        if classes is not None:
            labels = labels.with_classes(classes)
        return self.fitted_.consensus(check_new(self, X), labels, use_model=use_model)

    def _stream_plan(self) -> StreamPlan:
        """What sums depend on; raises if a setting makes no sense."""
        raise NotImplementedError

    def _best_fit(self, data: RidgeData, folds: Folds, path: Path) -> PathFit:
        """The fit to be kept, of those that `path` makes for steepnesses and l2s."""
        raise NotImplementedError


def flat(scores: Floats) -> Floats:
    """One dimension if there is one target."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _sums_of_block(model: Any, plan: StreamPlan, block: Block) -> StreamSums:
    """What is mapped over the blocks of a cluster."""
    with one_blas_thread():
        sums: StreamSums = model._sums_of(plan, block)
        return sums


def _among_known(labels: CrowdLabels, known: Declared) -> CrowdLabels:
    """Labels in the classes that are known, by annotators who are."""
    declare = "Declare all of them at the first call of partial_fit:"
    if known.annotators is not None:
        unknown = labels.annotators[encode_declared(labels.annotators, known.annotators) < 0]
        if len(unknown):
            raise LabelError(
                f"the annotators {unknown[:3].tolist()} are not among those declared or in the first block, such as "
                f"{known.annotators[:3].tolist()}. {declare} annotators=... They are the columns of y, named by "
                "CrowdLabels.from_matrix(y, annotators=...)."
            )
    if known.classes is None:
        return labels
    try:
        return labels.with_classes(known.classes)
    except LabelError as error:
        raise LabelError(f"{error} {declare} classes=...") from None
