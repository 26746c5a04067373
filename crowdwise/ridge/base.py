"""What all ridge models share: from what `fit` was given to what is kept, and sums that add, of batches and blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crowdwise.arrays import Array, Floats
from crowdwise.checks import check_choice, check_rounds, check_seed, check_whole
from crowdwise.cluster.blocks import DaskBlocks, is_dask
from crowdwise.crowd.differences import Scale
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels.align import align, as_labels, with_ids_of
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_column, as_ids, encode_declared, tidy
from crowdwise.mixins import CrowdResultsMixin, all_or_nothing
from crowdwise.out_of_core.blocks import Block, Blocks, map_blocks, n_rows
from crowdwise.progress import OnRound, Reporter
from crowdwise.results import ABOUT_EXAMPLES, StreamResults
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.fitted import FittedRidge, ridge_results
from crowdwise.ridge.path import Folds, PathFit, ridge_path
from crowdwise.ridge.summed import SummedData
from crowdwise.ridge.sums import RidgeSums, SumsPlan
from crowdwise.rows.features import check_new
from crowdwise.threads import available_cores, one_blas_thread, sharing_cores
from crowdwise.training_set import TrainingSet, check_features, check_sample_weight, note_effective_number
from crowdwise.truths.known import known_answers
from crowdwise.weights.curricula import Curriculum, check_curriculum

# Blocks that are summed up at a time: each is in memory.
_MOST_THREADS = 2
# Blocks whose sums are added before they are added to all: the sample that is kept of all takes longest.
_TOGETHER = 8

# Solves for some steepnesses and l2s with a weighting: `ridge_path` of the data at hand.
Path = Callable[..., list[PathFit]]


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
            return labels.with_classes(self.classes)
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


class RidgeModel(CrowdResultsMixin):
    """Learns from examples in memory, or from blocks of them, exactly as from all of them together.

    A model says which sums it needs (`_plan`), and which of the fits of a path it keeps (`_best_fit`).
    """

    sums_: RidgeSums
    fitted_: FittedRidge
    label_score_: Floats
    l2_: float
    route_: str
    model_precision_: float
    temperature_: float
    n_features_in_: int
    feature_names_in_: Array
    get_params: Callable[..., dict[str, Any]]
    scale: Scale
    fit_intercept: bool
    max_rounds: int
    tol: float
    curriculum: Curriculum | None
    random_state: Any
    verbose: int

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
        annotators and `steepness="auto"` are found from a sample of at most 20,000 examples. Results about single
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
                "a stream begins with this block: what fit learned is not part of it, because fit keeps no sums. Use "
                "partial_fit from the first block on."
            )
        plan, names = self._plan(), Names.of(classes, annotators, before)
        return self._learn_sums(self._add(plan, before, Block(X, y, sample_weight), names, _batch_names(batch)))

    def block_sums(self, X: Any, y: Any, sample_weight: Any = None, *, batch: Any = None) -> RidgeSums:
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
        worker = type(self)(**self.get_params(deep=False))
        return worker._add(self._checked_plan(), None, Block(X, y, sample_weight), batches=_batch_names(batch))

    @all_or_nothing
    def merge(self, other: Any) -> Self:
        """Join what another model has learnt from other blocks: the same as if this one had seen them too.

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
            self._check_mergeable(other)
            other = other.sums_
        plan = self._checked_plan()
        before = vars(self).get("sums_", RidgeSums.nothing(plan, other.kept.X.shape[1]))
        _check_same_plan(plan, before)
        return self._learn_sums(self._with_features_of(before + other))

    def _check_mergeable(self, other: Any) -> None:
        """Raise unless another model learnt from batches of the same kind, with the same settings."""
        if type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} can be merged with another one; got {type(other).__name__}.")
        for model, whose in ((self, "this model"), (other, "the other model")):
            if "sums_" not in vars(model):
                raise DataError(f"merge joins models fitted by partial_fit, and {whose} was not.")
        mine, theirs = (model.get_params(deep=False) for model in (self, other))
        for name in sorted(mine.keys() - {"verbose"}):
            if repr(mine[name]) != repr(theirs[name]):
                raise DataError(
                    f"models with other settings cannot be merged: {name} is {mine[name]!r} and {theirs[name]!r}."
                )

    def _add(
        self,
        plan: SumsPlan,
        before: RidgeSums | None,
        block: Block,
        names: Names = Names(),
        batches: tuple[Any, ...] = (),
    ) -> RidgeSums:
        """The sums so far, if there are any, and those of one more block."""
        if names.classes is not None and plan.kind == "rating":
            raise ValueError("ratings are numbers and have no classes to declare.")
        X, labels, weight = self._checked_block(block, plan.kind, reset=before is None)
        if before is None:
            before = RidgeSums.nothing(plan, X.shape[1], names.classes, names.annotators)
        _check_same_plan(plan, before)
        before.check_batches(batches)
        sums = RidgeSums.of(plan, X, names.checked(labels), weight, near=before)
        return before + replace(sums, feature_names=vars(self).get("feature_names_in_"), batches=batches)

    def _checked_block(self, block: Block, kind: Kind, *, reset: bool) -> tuple[Any, CrowdLabels, Floats]:
        """Features, labels and weights of a block."""
        X, labels = check_features(self, block.X, block.y, kind, reset=reset, least=0)
        return X, labels, check_sample_weight(block.sample_weight, X, labels, rescale=False)

    def _fit_out_of_core(
        self, X: Any, y: Any, sample_weight: Any, truth: Any, groups: Any, on_round: OnRound | None
    ) -> bool:
        """Learn from a Dask collection or from blocks, if X is that; whether it is."""
        self._forget()
        if not is_dask(X) and not isinstance(X, Blocks):
            return False
        if truth is not None:
            raise ValueError(
                "truth is held out example by example, and examples of blocks and Dask collections are not kept. Give "
                "what is known as the labels of one more annotator, or fit in memory."
            )
        plan, reporter = self._checked_plan(), Reporter(type(self).__name__, self.verbose, on_round)
        if isinstance(X, Blocks):
            given = {"y": y, "sample_weight": sample_weight}
            if names := [name for name, value in given.items() if value is not None]:
                raise ValueError(
                    f"{', '.join(names)} cannot be given beside blocks, which have their own labels and weights."
                )
            sums = self._sums_of_blocks(plan, X, reporter)
        else:
            blocks = DaskBlocks.of(X, y, sample_weight, kind=plan.kind)
            worker = type(self)(**self.get_params(deep=False))
            vars(self).pop("feature_names_in_", None)  # of an earlier fit
            sums = self._with_features_of(blocks.total(partial(_sums_of_block, worker, plan)))
            reporter.step(f"{len(blocks.parts):,} blocks: {sums.n_given:,} examples")
        self._learn_sums(sums, groups, reporter)
        return True

    def _sums_of_blocks(self, plan: SumsPlan, blocks: Blocks, reporter: Reporter) -> RidgeSums:
        """The sums over all blocks: what is found in the first one tells the threads how to sum up the others."""
        coming = iter(blocks)
        first = next(coming, None)
        if first is None:
            raise DataError("there are no blocks to learn from.")
        n_threads = min(available_cores(), _MOST_THREADS)

        def sums_of(block: Block) -> RidgeSums:
            with sharing_cores(n_threads):
                sums = RidgeSums.of(plan, *self._checked_block(block, plan.kind, reset=False), near=near)
                return replace(sums, feature_names=near.feature_names)

        with one_blas_thread():
            total = near = self._add(plan, None, first)
            reporter.step(f"block 1: {total.n_given:,} examples")
            n_examples, waiting = total.n_given, None
            for number, sums in enumerate(map_blocks(sums_of, coming, n_threads, n_rows(first)), start=2):
                n_examples += sums.n_given
                waiting = sums if waiting is None else waiting + sums
                if number % _TOGETHER == 0:
                    total, waiting = total + waiting, None
                    near = replace(near, kept=total.kept)  # of later blocks fewer rows can still be kept
                reporter.step(f"block {number}: {n_examples:,} examples")
        return total if waiting is None else total + waiting

    def _with_features_of(self, sums: RidgeSums) -> RidgeSums:
        """Sums that were computed elsewhere, whose features are now those of this model."""
        self.n_features_in_ = sums.kept.X.shape[1]
        if sums.feature_names is not None:
            self.feature_names_in_ = sums.feature_names
        return sums

    def _forget(self) -> None:
        """Forget what was learnt, but for the names of features."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            del vars(self)[name]

    def _learn_sums(self, sums: RidgeSums, groups: Any = None, reporter: Reporter | None = None) -> Self:
        """Store what is learnt from sums, and the sums."""
        summed = SummedData.of(sums, self.scale)
        self._forget()
        self.sums_ = sums
        self._learn(summed.data, summed.folds, reporter or Reporter(type(self).__name__, self.verbose), groups, summed)
        return self

    def _why_no_sums(self) -> str | None:
        """Why there are no sums for these settings, if there are none."""
        settings = self.get_params(deep=False)
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

    def _checked_plan(self) -> SumsPlan:
        if reason := self._why_no_sums():
            raise ValueError(f"there are no sums for these settings: {reason}")
        return self._plan()

    def _plan(self) -> SumsPlan:
        """What sums depend on; raises if a setting makes no sense."""
        raise NotImplementedError

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
        check_whole("max_rounds", self.max_rounds)
        check_rounds(self.max_rounds, self.tol)
        check_seed(self.random_state)
        return check_curriculum(self.curriculum)

    def _learn(
        self, data: RidgeData, folds: Folds, reporter: Reporter, groups: Any, summed: SummedData | None = None
    ) -> None:
        """Solve the rounds, and store what was learnt."""
        source = None if summed is None else summed.levels
        path = partial(
            ridge_path, data, folds=folds, max_rounds=self.max_rounds, tol=self.tol, reporter=reporter, source=source
        )
        with one_blas_thread():
            fit = self._best_fit(data, folds, path)
            fit.warn(data, self.tol)
            if summed is None:
                note_effective_number(data.easiness(fit.steepness) * data.training.sample_weight, self.n_features_in_)
                found = ridge_results(data, folds, fit, groups)
                self.fitted_, self.label_score_ = found.fitted, flat(found.label_score)
                self._keep(found.results)
            else:
                summed.note_effective_number(fit.steepness)
                self.fitted_, results = summed.results(fit, groups)
                self._keep(results)
        self.l2_, self.route_ = fit.l2, fit.route
        if self.fitted_.scaling is None:
            self.model_precision_ = self.fitted_.model_precision
        else:
            self.temperature_ = self.fitted_.scaling.temperature
        self._keep_coefficients(data, fit)
        reporter.done()

    def _best_fit(self, data: RidgeData, folds: Folds, path: Path) -> PathFit:
        """The fit to be kept, of those that `path` makes for steepnesses and l2s."""
        raise NotImplementedError

    def _keep_coefficients(self, data: RidgeData, fit: PathFit) -> None:
        """Store the coefficients of `fitted_` in the shape that scikit-learn has for such models."""
        raise NotImplementedError

    def _consensus(self, X: Any, labels: Any, *, use_model: bool) -> Any:
        """The consensus on whatever features and labels the model is given."""
        check_is_fitted(self)
        classes = self.fitted_.classes
        X, labels = align(X, as_labels(labels, kind="rating" if classes is None else "class"))
        labels = with_ids_of(X, labels)
        if classes is not None:
            labels = labels.with_classes(classes)
        return self.fitted_.consensus(check_new(self, X), labels, use_model=use_model)

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            """Why there is no such attribute."""
            if name in ABOUT_EXAMPLES and isinstance(vars(self).get("results_"), StreamResults):
                raise AttributeError(
                    f"{name} is about single examples, which neither partial_fit nor a fit on blocks keeps. For the "
                    "consensus on any examples call consensus(X, labels)."
                )
            if name == "partial_fit":
                raise AttributeError(f"there is no partial_fit with these settings: {self._why_no_sums()}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def flat(scores: Floats) -> Floats:
    """One dimension if there is one target."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _sums_of_block(model: RidgeModel, plan: SumsPlan, block: Block) -> RidgeSums:
    """What is mapped over the blocks of a cluster."""
    with one_blas_thread():
        return type(model)(**model.get_params(deep=False))._add(plan, None, block)


def _check_same_plan(plan: SumsPlan, sums: RidgeSums) -> None:
    if plan != sums.plan:
        raise DataError(
            "a setting that the sums of this stream depend on was changed after its first block: they are for "
            f"{sums.plan}, not for {plan}. Start with a new model."
        )
