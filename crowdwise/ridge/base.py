"""What all ridge models share: from what `fit` was given to what is kept, and what is solved again from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_choice, check_number, check_rounds, check_seed, check_whole
from crowdwise._limits import N_FOLDS
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.exceptions import AlignmentError, DataError
from crowdwise.labels._align import align, as_labels, with_ids_of
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName
from crowdwise.labels.truth import known_answers
from crowdwise.mixins import IN_MEMORY, CrowdMixin, all_or_nothing
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.fitted import FittedRidge, ridge_results
from crowdwise.ridge.rounds import RidgePath, Search, Settled, warn_if_undetermined
from crowdwise.ridge.sums import RidgeSums, SumsPlan, sums_to_solve
from crowdwise.rows.chunks import chunks_of
from crowdwise.rows.features import check_new, is_dask
from crowdwise.rows.read import Blocks
from crowdwise.training_set import (
    TrainingSet,
    check_features,
    check_sample_weight,
    warn_if_few_effective,
    warn_if_no_disagreement,
    warn_if_unlabelled,
)
from crowdwise.weights.curricula import Curriculum, check_curriculum
from crowdwise.weights.folds import Folds

# What keep_sums="auto" keeps of a fit, in bytes.
_MOST_KEPT = 2**26


class RidgeBase(CrowdMixin):
    """Learns from examples in memory or from the sums over blocks, and is solved again from what it keeps.

    A model has a grid of steepnesses and l2s (`_grid`), folds, and keeps one of the fits of a path (`_best_fit`).
    """

    sums_: RidgeSums
    fitted_: FittedRidge
    coef_: Floats
    intercept_: Any
    n_features_in_: int
    get_params: Callable[..., dict[str, Any]]
    relative_to: RelativeTo
    init: Any
    fit_intercept: bool
    max_rounds: int
    tol: float
    curriculum: Curriculum | None
    random_state: Any
    keep_sums: Literal["auto"] | bool
    verbose: int
    _kept: tuple[RidgePath, dict[str, Any]]  # and the settings when it was fitted
    _scale: ScaleName = "nominal"
    _inits: tuple[str, ...] = ("majority", "mean")
    _tuned = False  # whether something is chosen over folds

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        truth: Any = None,
        *,
        on_round: OnRound | None = None,
    ) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features), Blocks or Dask collection
            Features; or what `read_blocks` makes of data that need not fit into memory. Blocks, and those of a Dask
            array or data frame, are learned from as `partial_fit` does, with the results that it has.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,), default=None
            Labels: a column per annotator, NaN or None where there is none. Blocks have their own.
        sample_weight : float, or array-like, series or mapping of shape (n_examples,), default=None
            How often each example counts.
        truth : array-like of shape (n_examples,), series, mapping or frame, default=None
            The true classes or ratings of some examples, None or NaN elsewhere; anything with ids names those of the
            examples. They take the place of these examples' labels in the model, errors of annotators are against
            them, and all others' confidence is calibrated by them, each truth being held out. `criterion` of
            `CrowdRidgeClassifierCV` uses them too.
        on_round : callable, default=None
            Called with a `Round` after every round: number, objective, change, seconds and stage.

        Returns
        -------
        self : estimator
        """
        self._forget()
        search = self._search(on_round)
        if is_dask(X) or isinstance(X, Blocks):
            if truth is not None:
                raise ValueError(
                    "truth is held out example by example, and examples of blocks and Dask collections are not kept. "
                    "Give what is known as the labels of one more annotator, or fit in memory."
                )
            plan = self._plan()
            chunks = chunks_of(X, y, sample_weight, plan.scale, search.reporter.step)
            return self._learn_sums(chunks.total(partial(RidgeSums.of, plan)), search)
        checked, labels = check_features(self, X, y, self._scale)
        weight = None if sample_weight is None else check_sample_weight(sample_weight, checked, labels)
        data = self._data(checked, labels, weight, known_answers(truth, X, labels))
        path = RidgePath(data, self._folds(data), self.keep_sums is True, sample_weight=weight)
        return self._learn(path, search)

    def _data(
        self, X: Any, labels: CrowdLabels, weight: Any, truth: Array | None, before: RidgeData | None = None
    ) -> RidgeData:
        """What is to be learned from."""
        training = TrainingSet.of(
            X, labels, weight, truth=truth, relative_to=self.relative_to, weighting=any(self._grid()[0]),
            one_class=True,
        )  # fmt: skip
        return RidgeData.of(training, intercept=self.fit_intercept, init=self.init, before=before)

    def _folds(self, data: RidgeData) -> Folds:
        """What examples are scored out of."""
        return Folds.by_content(data.training.rows, *self._fold_plan())

    def _is_splitter(self) -> bool:
        """Whether folds are those of a splitter, which may look at labels."""
        return False

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Any:
        """The consensus on any examples, by their labels and by the model.

        The model may have seen the examples of `fit`; for these, `consensus_` has the consensus with models that have
        not. An annotator that `fit` did not see counts as the crowd's average.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Labels, in any order of annotators: they are matched by name.
        use_model : bool, default=True
            Whether the model's score counts for examples that have labels. It always does for those without.

        Returns
        -------
        consensus : Consensus or RatingConsensus
            With `examples`, `label`, and `confidence` and `proba` of classes or `std` of ratings.
        """
        check_is_fitted(self)
        X, labels = align(X, as_labels(labels, scale=self._scale))
        labels = with_ids_of(X, labels)
        if self.fitted_.classes is not None:
            labels = labels._with_classes(self.fitted_.classes)
        return self.fitted_.consensus(check_new(self, X), labels, use_model=use_model)

    def at(self, *, steepness: Any = None, l2: float | None = None) -> Self:
        """The model that a fit with another steepness or l2 gives, from the sums of this fit.

        The rows are not summed up again, so that it takes milliseconds; they are scored once, for results about single
        examples, and must not have been changed in place. Sums per level of disagreement that the fit itself had no
        need for are made by the first call, unless ``keep_sums=True`` had the fit make them. After `partial_fit` or a
        fit on blocks, all comes from `sums_`.

        Parameters
        ----------
        steepness : float, default=None
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
        model = self._new(self._settings_at(steepness, l2))
        if "sums_" in vars(self):
            plan = model._plan()
            self.sums_.checked(replace(plan, by_level=self.sums_.plan.by_level))
            if plan.by_level and not self.sums_.plan.by_level:
                raise DataError(
                    "the sums of this model are for steepness=0 and have levels of disagreement added up. Begin with "
                    "another steepness; at(steepness=0) then gives this model."
                )
            return model._learn_sums(self.sums_)
        path = self._path()
        path.by_level = True
        model._learn(path, model._search())
        if not self._may_keep(path):
            path.sums = None
        return model

    def relabelled(self, labels: Any, truth: Any = None) -> Self:
        """The model that a fit to other labels of the same examples gives, from the sums of this fit.

        Rows whose labels changed are taken out of the sums and added again, so that one label more or less takes
        milliseconds; all rows are scored once, for results about single examples. The sums go on to the new model: if
        this one is asked once more, they are made anew. That is also done where a new annotator or class has come, or
        where labels are complete now and were not before, or the reverse.

        Parameters
        ----------
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            All labels, of the examples of `fit` in their order.
        truth : array-like of shape (n_examples,), series, mapping or frame, default=None
            As in `fit`. What `fit` was given must be given again.

        Returns
        -------
        model : estimator
            A new one, fitted; this one stays as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from crowdwise import CrowdLabels, CrowdRidgeClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 2))
        >>> labels = CrowdLabels.from_matrix(X[:, :1] + rng.normal(size=(300, 3)) * [0.1, 1.0, 2.0] > 0)
        >>> model = CrowdRidgeClassifier(keep_sums=True).fit(X, labels)
        >>> fewer = labels.without(example=7, annotator=2)
        >>> np.allclose(model.relabelled(fewer).coef_, CrowdRidgeClassifier().fit(X, fewer).coef_, rtol=1e-8)
        True
        """
        model, path = self._new({}), self._path()
        before = path.data.training
        labels = _of_same_examples(as_labels(labels, scale=self._scale), before.labels)
        known = known_answers(truth, before.X, labels)
        data = model._data(before.X, labels, path.sample_weight, known, before=path.data)
        same = data.rows is path.data.rows and not model._is_splitter()
        folds = path.folds if same else model._folds(data)
        return model._learn(path.relabelled(data, folds, tuned=self._tuned), model._search())

    def _new(self, settings: dict[str, Any]) -> Self:
        """A model with the settings of the fit but for some, not fitted."""
        check_is_fitted(self)
        of_fit = self._kept[1] if IN_MEMORY in vars(self) else self.get_params(deep=False)
        model = type(self)(**of_fit | settings)
        for name in ("n_features_in_", "feature_names_in_", "_frame_library"):
            if name in vars(self):
                setattr(model, name, vars(self)[name])
        return model

    def _path(self) -> RidgePath:
        if IN_MEMORY not in vars(self):
            raise DataError(
                "the sums of this fit were not kept: by default they are up to "
                f"{_MOST_KEPT // 2**20} MB with the examples, and never in files. Fit with keep_sums=True."
            )
        return self._kept[0]

    def _settings_at(self, steepness: Any, l2: float | None) -> dict[str, Any]:
        """The settings of a model with another steepness or l2."""
        return {name: value for name, value in (("steepness", steepness), ("l2", l2)) if value is not None}

    def _may_keep(self, path: RidgePath) -> bool:
        return self.keep_sums is True or (self.keep_sums == "auto" and path.n_bytes <= _MOST_KEPT)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != IN_MEMORY}

    def _forget(self) -> None:
        """Forget what was learned, but for the names of features."""
        used = [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]
        for name in [*used, IN_MEMORY]:
            vars(self).pop(name, None)

    def _learn_sums(self, sums: RidgeSums, search: Search | None = None) -> Self:
        """Store what is learned from sums, and the sums."""
        summary = sums.summary
        summary.check(one_class=True)
        warn_if_unlabelled(summary.n_unlabelled, summary.n_given)
        if sums.plan.by_level:
            warn_if_no_disagreement(sums.statistics.n_annotators, summary.most_labels)
        data, folds, levels = sums_to_solve(sums, self.relative_to)
        self._forget()
        vars(self).pop("feature_names_in_", None)
        self.n_features_in_ = summary.n_features
        if summary.feature_names is not None:
            self.feature_names_in_ = np.array(summary.feature_names, dtype=object)
        self.sums_ = sums
        path = RidgePath(data, folds, by_level=True, sums=levels, of_more=True)
        return self._learn(path, search or self._search(), sums)

    def _why_no_sums(self) -> str | None:
        """Why there are no sums for these settings, if there are none."""
        settings = self.get_params(deep=False)
        curriculum, class_weight = settings["curriculum"], settings.get("class_weight")
        if not isinstance(self.init, str):
            return f"init has a value for every example, and a stream keeps none. Use one of {self._inits}."
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

    def _plan(self) -> SumsPlan:
        """What sums depend on; raises if a setting makes no sense, or not for sums."""
        if reason := self._why_no_sums():
            raise ValueError(f"there are no sums for these settings: {reason}")
        weighted = any(self._search().steepnesses)
        return SumsPlan(self._scale, bool(self.fit_intercept), self.init, *self._fold_plan(), weighted, self._tuned)

    def _fold_plan(self) -> tuple[int, int]:
        """How many folds blocks have, and their seed."""
        return N_FOLDS, 0

    def _search(self, on_round: OnRound | None = None) -> Search:
        """What is solved for; raises if a setting cannot be used."""
        steepnesses, l2s = self._grid()
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_choice("keep_sums", self.keep_sums, ("auto", True, False))
        if isinstance(self.init, str) or np.ndim(self.init) != 1:
            check_choice("init", self.init, self._inits)
        check_whole("max_rounds", self.max_rounds)
        check_rounds(self.max_rounds, self.tol)
        check_seed(self.random_state)
        curriculum, settings = check_curriculum(self.curriculum), self.get_params(deep=False)
        reporter = Reporter(type(self).__name__, self.verbose, on_round)
        return Search(
            steepnesses, l2s, curriculum, settings.get("class_weight"), self.random_state, self.max_rounds, self.tol,
            reporter, self._tuned, settings.get("tune") != "once",
        )  # fmt: skip

    def _grid(self) -> tuple[list[float], Floats]:
        """The steepnesses and the l2s to choose from; raises if one makes no sense."""
        settings = self.get_params(deep=False)
        return [check_number("steepness", settings["steepness"])], np.array([check_number("l2", settings["l2"])])

    def _learn(self, path: RidgePath, search: Search, sums: RidgeSums | None = None) -> Self:
        """Solve the rounds, and store what was learned; from `sums`, if the data are a sample of theirs."""
        with one_blas_thread():
            fit = self._best_fit(path, search)
            fit.warn(self.tol)
            warn_if_undetermined(fit, path.data)
            if sums is None:
                weight = path.data.easiness(fit.weights.steepness) * path.data.training.sample_weight
                warn_if_few_effective(weight, self.n_features_in_)
                self.fitted_, results, label_score = ridge_results(path, fit)
                self.label_score_ = flat(label_score)
            else:
                weight, count = sums.weight_of_levels(path.sums, fit.weights.steepness)
                warn_if_few_effective(weight, self.n_features_in_, count)
                self.fitted_, results, _ = ridge_results(path, fit, sums.summary.labels_per_annotator)
                results = results.without_examples(sums.n_examples)
        self._keep(results)
        self.l2_, self.route_ = fit.l2, fit.route
        fitted = self.fitted_
        self.coef_, self.intercept_ = fitted.coef, fitted.intercept
        if fitted.scaling is None:
            self.coef_, self.intercept_ = fitted.coef[0], float(fitted.intercept[0])
            self.model_precision_ = fitted.model_precision
        else:
            self.classes_, self.temperature_ = path.data.training.classes, fitted.scaling.temperature
            class_weight = fit.weights.class_weight
            self.class_weight_ = np.ones(len(self.classes_)) if class_weight is None else class_weight
        if sums is None and self._may_keep(path):
            self._kept = path, self.get_params(deep=False)
        search.reporter.done()
        return self

    def _best_fit(self, path: RidgePath, search: Search) -> Settled:
        """The fit to be kept."""
        return path.solve(search)[0]

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            if name == "partial_fit":
                raise AttributeError(f"there is no partial_fit with these settings: {self._why_no_sums()}")
            return super().__getattr__(name)


def _of_same_examples(labels: CrowdLabels, like: CrowdLabels) -> CrowdLabels:
    """Labels with the ids of the examples of a fit; raises if they are of others."""
    if len(labels) != len(like) or (labels._named_examples and not np.array_equal(labels.examples, like.examples)):
        raise AlignmentError(
            f"labels must be those of the {len(like)} examples of fit, in their order (such as "
            f"{like.examples[:3].tolist()}); got {len(labels)} examples (such as {labels.examples[:3].tolist()}). Take "
            "the labels of fit and append to them, or fit anew."
        )
    return replace(labels, examples=like.examples, id_source=like.id_source)


def flat(scores: Floats) -> Floats:
    """One dimension if there is one target."""
    return scores[:, 0] if scores.shape[1] == 1 else scores
