"""What all ridge models share: from what `fit` was given to what is kept, and sums that add, of batches and blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_choice, check_rounds, check_seed, check_whole
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.exceptions import DataError, warn
from crowdwise.labels.align import align, as_labels, with_ids_of
from crowdwise.labels.scale import ScaleName
from crowdwise.labels.truth import known_answers
from crowdwise.mixins import CrowdResultsMixin, all_or_nothing
from crowdwise.results.fit_results import ABOUT_EXAMPLES
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.fitted import FittedRidge, ridge_results
from crowdwise.ridge.partial import (
    Names,
    add_block,
    batch_names,
    check_mergeable,
    check_same_plan,
    sums_of_block,
    sums_of_blocks,
    sums_of_dask,
)
from crowdwise.ridge.path import Folds, KeptFit, KeptSums, PathFit, ridge_path
from crowdwise.ridge.summed import SummedData
from crowdwise.ridge.sums import RidgeSums, SumsPlan
from crowdwise.rows.blocks import Block, Blocks
from crowdwise.rows.dask_blocks import is_dask
from crowdwise.rows.features import check_new
from crowdwise.training_set import TrainingSet, check_features, warn_if_few_effective
from crowdwise.weights.curricula import Curriculum, check_curriculum

# What keep_sums="auto" keeps of a fit, in bytes.
_MOST_KEPT = 2**26
# What `at` needs, besides sums of blocks; never in files and pickles.
_IN_MEMORY = ("_kept_fit",)

# Solves for some steepnesses and l2s with a weighting: `ridge_path` of the data at hand.
Path = Callable[..., list[PathFit]]


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
    relative_to: RelativeTo
    fit_intercept: bool
    max_rounds: int
    tol: float
    curriculum: Curriculum | None
    random_state: Any
    keep_sums: Literal["auto"] | bool
    verbose: int
    _kept_fit: KeptFit

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
                "a stream begins with this block: what fit learned is not part of it, for its sums are of other folds. "
                "Use partial_fit from the first block on."
            )
        names, block = Names.of(classes, annotators, before), Block(X, y, sample_weight)
        return self._learn_sums(add_block(self, self._plan(), before, block, names, batch_names(batch)))

    def block_sums(self, X: Any, y: Any, sample_weight: Any = None, *, batch: Any = None) -> RidgeSums:
        """The sums over one block alone: to be computed anywhere, added with ``+`` and given to `merge`.

        The model only says which sums; what it has learned is neither used nor changed.

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
        return sums_of_block(self, self._checked_plan(), Block(X, y, sample_weight), batch_names(batch))

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
            check_mergeable(self, other)
            other = other.sums_
        plan = self._checked_plan()
        before = vars(self).get("sums_", RidgeSums.nothing(plan, other.kept.X.shape[1]))
        check_same_plan(plan, before)
        return self._learn_sums(self._with_features_of(before + other))

    def at(self, *, steepness: Any = None, l2: float | None = None) -> Self:
        """The model that a fit with another steepness or l2 gives, from the sums of this fit.

        The rows are not summed up again, so that it takes milliseconds; they are scored once, for results about single
        examples, and must not have been changed in place. Sums per level of disagreement that the fit itself had no
        need for are made by the first call, unless ``keep_sums=True`` had the fit make them. After `partial_fit` or a
        fit on blocks, all comes from `sums_`.

        Parameters
        ----------
        steepness : float or "auto", default=None
            As in the model's settings, in the place of which it comes; None leaves what is there.
        l2 : float, default=None
            The same for l2.

        Returns
        -------
        model : estimator
            A new one, fitted; this one stays as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from crowdwise import CrowdRidgeClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 2))
        >>> y = X[:, :1] + rng.normal(size=(300, 3)) * [0.1, 1.0, 2.0] > 0
        >>> model = CrowdRidgeClassifier().fit(X, y)
        >>> steeper = model.at(steepness=5.0, l2=0.1)
        >>> np.allclose(steeper.coef_, CrowdRidgeClassifier(5.0, l2=0.1).fit(X, y).coef_, rtol=1e-8)
        True
        """
        check_is_fitted(self)
        kept: KeptFit | None = vars(self).get("_kept_fit")
        settings = self.get_params(deep=False) if kept is None else kept.settings
        model = type(self)(**settings | self._settings_at(steepness, l2))
        for name in ("n_features_in_", "feature_names_in_", "_frame_library"):
            if name in vars(self):
                setattr(model, name, vars(self)[name])
        model._check_settings()
        if "sums_" in vars(self):
            plan = model._plan()
            check_same_plan(replace(plan, by_level=self.sums_.plan.by_level), self.sums_)
            if plan.by_level and not self.sums_.plan.by_level:
                raise DataError(
                    "the sums of this model are for steepness=0 and have levels of disagreement added up. Begin with "
                    "another steepness; at(steepness=0) then gives this model."
                )
            return model._learn_sums(self.sums_)
        if kept is None:
            raise DataError(
                "the sums of this fit were not kept: by default they are up to "
                f"{_MOST_KEPT // 2**20} MB with the examples, and never in files. Fit with keep_sums=True."
            )
        kept.sums.by_level = True
        model._learn(kept.data, kept.folds, Reporter(type(self).__name__, self.verbose), kept=kept.sums)
        if not self._may_keep(kept):
            kept.sums.sums = None
        return model

    def _settings_at(self, steepness: Any, l2: float | None) -> dict[str, Any]:
        """The settings of a model with another steepness or l2."""
        return {name: value for name, value in (("steepness", steepness), ("l2", l2)) if value is not None}

    def _may_keep(self, kept: KeptFit) -> bool:
        return self.keep_sums is True or (self.keep_sums == "auto" and kept.n_bytes <= _MOST_KEPT)

    def _kept(self) -> dict[str, Any]:
        return {name: value for name, value in super()._kept().items() if name not in _IN_MEMORY}

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _IN_MEMORY}

    def _fit_out_of_core(self, X: Any, y: Any, sample_weight: Any, truth: Any, on_round: OnRound | None) -> bool:
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
            sums = sums_of_blocks(self, plan, X, reporter)
        else:
            vars(self).pop("feature_names_in_", None)  # of an earlier fit
            sums = self._with_features_of(sums_of_dask(self, plan, X, y, sample_weight, reporter))
        self._learn_sums(sums, reporter)
        return True

    def _with_features_of(self, sums: RidgeSums) -> RidgeSums:
        """Sums that were computed elsewhere, whose features are now those of this model."""
        self.n_features_in_ = sums.kept.X.shape[1]
        if sums.feature_names is not None:
            self.feature_names_in_ = sums.feature_names
        return sums

    def _forget(self) -> None:
        """Forget what was learned, but for the names of features."""
        used = [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]
        for name in [*used, *_IN_MEMORY]:
            vars(self).pop(name, None)

    def _learn_sums(self, sums: RidgeSums, reporter: Reporter | None = None) -> Self:
        """Store what is learned from sums, and the sums."""
        summed = SummedData.of(sums, self.relative_to)
        self._forget()
        self.sums_ = sums
        self._learn(summed.data, summed.folds, reporter or Reporter(type(self).__name__, self.verbose), summed)
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
        self, X: Any, y: Any, sample_weight: Any, truth: Any, scale: ScaleName, init: str, *, weighting: bool
    ) -> RidgeData:
        """What `fit` was given, checked; `weighting` says whether disagreement is going to be used."""
        checked, labels = check_features(self, X, y, scale)
        answers = known_answers(truth, X, labels)
        training = TrainingSet.of(
            checked, labels, sample_weight, truth=answers, relative_to=self.relative_to, weighting=weighting
        )
        return RidgeData.of(training, intercept=self.fit_intercept, init=init)

    def _check_settings(self) -> Curriculum:
        """Raise if a setting cannot be used; the curriculum."""
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_choice("keep_sums", self.keep_sums, ("auto", True, False))
        check_whole("max_rounds", self.max_rounds)
        check_rounds(self.max_rounds, self.tol)
        check_seed(self.random_state)
        return check_curriculum(self.curriculum)

    def _learn(
        self,
        data: RidgeData,
        folds: Folds,
        reporter: Reporter,
        summed: SummedData | None = None,
        kept: KeptSums | None = None,
    ) -> None:
        """Solve the rounds, and store what was learned; from sums that there are of these data, or of more."""
        sums = kept or KeptSums(self.keep_sums is True)
        fit_in_memory = KeptFit(self.get_params(deep=False), data, folds, sums)
        data = replace(data)  # what it finds out about its steepness is not kept
        source = None if summed is None else summed.levels
        path = partial(
            ridge_path, data, folds=folds, max_rounds=self.max_rounds, tol=self.tol, reporter=reporter, source=source,
            make_sums=sums.make,
        )  # fmt: skip
        with one_blas_thread():
            fit = self._best_fit(data, folds, path)
            fit.warn(data, self.tol)
            if summed is None:
                warn_if_few_effective(data.easiness(fit.steepness) * data.training.sample_weight, self.n_features_in_)
                found = ridge_results(data, folds, fit)
                self.fitted_, self.label_score_ = found.fitted, flat(found.label_score)
                self._keep(found.results)
            else:
                summed.warn_if_few_effective(fit.steepness)
                self.fitted_, results = summed.results(fit)
                self._keep(results)
        self.l2_, self.route_ = fit.l2, fit.route
        if self.fitted_.scaling is None:
            self.model_precision_ = self.fitted_.model_precision
        else:
            self.temperature_ = self.fitted_.scaling.temperature
        self._keep_coefficients(data, fit)
        if summed is None and self._may_keep(fit_in_memory):
            self._kept_fit = fit_in_memory
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
        X, labels = align(X, as_labels(labels, scale="interval" if classes is None else "nominal"))
        labels = with_ids_of(X, labels)
        if classes is not None:
            labels = labels._with_classes(classes)
        return self.fitted_.consensus(check_new(self, X), labels, use_model=use_model)

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            """Why there is no such attribute."""
            if name in ABOUT_EXAMPLES and "results_" in vars(self) and not self.results_.has_examples:
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
