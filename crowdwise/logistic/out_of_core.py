"""Blocks or Dask collections, which are read once per round -> the logistic model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from crowdwise.arrays import Array, Positions
from crowdwise.checks import check_choice, check_seed
from crowdwise.cluster.blocks import DaskBlocks
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.groups import check_groups
from crowdwise.em.levels import Reading
from crowdwise.em.together import Together
from crowdwise.em.with_features import WithFeaturesMixin
from crowdwise.exceptions import CrowdConvergenceWarning, DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.logistic.blocks import CheckedBlock, Mapper, in_threads, on_dask, recoded, total
from crowdwise.logistic.fitted import FittedLogistic
from crowdwise.logistic.over_blocks import Beginning, BlockFit, BlockRounds, BlockSettings
from crowdwise.logistic.survey import Survey
from crowdwise.progress import Reporter
from crowdwise.results import StreamResults
from crowdwise.streaming import StreamMixin
from crowdwise.threads import one_blas_thread
from crowdwise.training_set import note_unlabelled
from crowdwise.weights.class_weights import check_class_weight
from crowdwise.weights.curricula import Curriculum, check_curriculum


def _reading_of(fitted: LogisticOutOfCoreMixin) -> Reading:
    """How a fit reads classes."""
    annotators = fitted.fitted_.annotators
    return Reading(annotators.by, annotators.levels)


def _begin(first: LogisticOutOfCoreMixin, survey: Survey) -> Beginning:
    """Where the rounds over blocks begin; annotators without a label in the sample are taken to be as the crowd."""
    fitted = first.fitted_
    active = np.flatnonzero(survey.labels_per_annotator > 0)
    return Beginning(
        fitted.annotators.behaviour.of(active),
        fitted.annotators.class_prior,
        fitted.coef / first.temperature_,
        fitted.intercept_at_zero / first.temperature_,
        first.temperature_,
    )


def _together(first: LogisticOutOfCoreMixin, survey: Survey, groups: Positions | None) -> Together:
    """Who shares a vote among all annotators of blocks: as users say, or as the sample shows."""
    among = first.fitted_.annotators
    if groups is not None:  # some of them may have no label in the sample
        return replace(among.together, group=groups)
    return among.together.at(encode_declared(survey.annotators, among.annotators).astype(np.int64))


class LogisticOutOfCoreMixin(StreamMixin, WithFeaturesMixin):
    """Learns from blocks that are read again in every round."""

    _kept_in = "stream_"
    fitted_: FittedLogistic
    feature_names_in_: Array
    l2_: float
    temperature_: float
    fit: Any  # of the estimator, in memory
    class_prior: float
    cross_fit: int
    curriculum: Curriculum | None
    class_weight: dict[Any, float] | str | None
    scale: Scale
    fit_intercept: bool
    max_rounds: int
    tol: float
    random_state: int | np.random.Generator | None

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any, reporter: Reporter) -> None:
        self._fit_blocks(DaskBlocks.of(X, y, sample_weight), groups, reporter, on_dask)

    def _fit_blocks(self, blocks: Any, groups: Any, reporter: Reporter, mapper: Mapper[Any] = in_threads) -> None:
        """Learn from blocks that can be read again, of which no example is kept."""
        curriculum = check_curriculum(self.curriculum)
        if not curriculum.is_mixture:
            raise ValueError(
                f"curriculum={curriculum!r} ranks the examples in every round, and blocks are not kept. Use Fixed(), "
                "Smooth(...) or Fading(...), or fit in memory."
            )
        if check_choice("informative_abstentions", self.informative_abstentions, (True, False)):
            raise ValueError(
                "informative_abstentions=True makes abstentions answers, and blocks have labels alone. Use "
                "informative_abstentions=False, or fit in memory."
            )
        with one_blas_thread():
            survey = total(Survey.of, blocks, mapper)
            if survey is None:
                raise DataError("there are no blocks to learn from.")
            survey.check()
            note_unlabelled(survey.n_unlabelled, survey.n_examples + survey.n_unlabelled)
            groups = check_groups(groups, survey.annotators)
            if survey.is_complete:
                self._fit_rows(survey.rows(), survey, groups, reporter)
                self.n_passes_ = 1
            else:
                self._fit_rounds(blocks, survey, curriculum, groups, mapper, reporter)
            if survey.feature_names is not None:
                self.feature_names_in_ = np.array(survey.feature_names, dtype=object)

    def _fit_rows(self, rows: CheckedBlock, seen: Survey, groups: Any, reporter: Reporter) -> None:
        """Learn from rows that are all of the examples, as in memory; results are about annotators alone."""
        self.fit(rows.X, rows.labels, rows.weight, groups=groups, on_round=reporter.on_round)
        results = self.results_
        del self.results_
        for name in results.attributes():
            delattr(self, name)
        self.classes_ = seen.classes
        self._keep(
            StreamResults(results.annotators, seen.n_examples, results.steepness, results.objective, results.converged)
        )

    def _fit_rounds(
        self, blocks: Any, survey: Survey, curriculum: Curriculum, groups: Positions | None, mapper: Mapper[Any],
        reporter: Reporter,
    ) -> None:  # fmt: skip
        """Learn in rounds over all blocks, beginning with a fit to the sample."""
        sample = survey.sample()
        first = self._fit_sample(sample, groups)
        reporter.step(f"sample of {len(sample):,} examples")
        together, active = _together(first, survey, groups), np.flatnonzero(survey.labels_per_annotator > 0)
        settings = self._block_settings(first, curriculum, together.at(active), len(active))
        rounds = BlockRounds(blocks, survey, settings, _begin(first, survey), mapper, reporter)
        self._keep_blocks(first, survey, together, rounds.sample.labels, rounds.fit())
        reporter.done()

    def _fit_sample(self, sample: CheckedBlock, groups: Any = None) -> LogisticOutOfCoreMixin:
        """A fit in memory to the sample: what has to be chosen is chosen by it."""
        first: Any = clone(self).set_params(verbose=0, warm_start=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdConvergenceWarning)  # the rounds go on
            first.fit(sample.X, sample.labels, sample.weight, groups=groups)
        return first

    def _chosen_joint(self, first: LogisticOutOfCoreMixin) -> bool:
        """Whether annotators are estimated from the consensus of labels and classifier."""
        return len(first.fitted_.annotators.behaviour.share) == 1 if self.joint == "auto" else bool(self.joint)

    def _label_steepness(self, first: LogisticOutOfCoreMixin) -> float:
        """What labels alone are weighted by: features that do not predict the truth are no reason for weights."""
        return 0.0 if self.steepness == "auto" and not first.model_weight_ else first.steepness_

    def _block_settings(
        self, first: LogisticOutOfCoreMixin, curriculum: Curriculum, together: Together, n_annotators: int
    ) -> BlockSettings:
        reading = _reading_of(first)
        return BlockSettings(
            reading,
            reading.annotator_model(self.annotator_model, together.n_voters(n_annotators)),
            self._chosen_joint(first),
            first.steepness_,
            self._label_steepness(first),
            first.l2_,
            bool(first.model_weight_),
            self.class_prior,
            self.cross_fit,
            curriculum,
            check_class_weight(self.class_weight, first.classes_),
            self.scale,
            self.fit_intercept,
            self.max_rounds,
            self.tol,
            check_seed(self.random_state),
            together,
        )

    def _keep_blocks(
        self, first: LogisticOutOfCoreMixin, survey: Survey, together: Together, sample: CrowdLabels, fit: BlockFit
    ) -> None:
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = survey.n_features
        self.temperature_, self.model_weight_ = fit.temperature, first.model_weight_
        self.steepness_, self.l2_, self.n_passes_ = first.steepness_, first.l2_, fit.n_passes + 1
        fitted = replace(fit.annotators, together=together)
        self.by_votes_ = together.by_votes
        self.fitted_ = FittedLogistic(fitted, fit.coef, fit.intercept, fit.shift, fit.class_weight, first.model_weight_)
        self._keep_record()
        annotators = fitted.results(recoded(sample, survey.annotators, survey.classes), survey.labels_per_annotator)
        self.classes_ = survey.classes
        self._keep(StreamResults(annotators, survey.n_examples, first.steepness_, fit.objective, fit.converged))

    def _check_settings(self) -> float:
        """Raise if a setting makes no sense; the steepness, NaN for "auto"."""
        raise NotImplementedError

    def _keep_record(self) -> None:
        self.coef_, self.intercept_ = self.fitted_.coef.T, self.fitted_.intercept_at_zero
        self.confusion_, self.class_prior_ = self.fitted_.annotators.confusion, self.fitted_.annotators.class_prior
        self.class_weight_ = self.fitted_.class_weight
