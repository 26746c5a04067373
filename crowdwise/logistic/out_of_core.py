"""Blocks, Dask collections or batches -> the logistic model.

Blocks are read once per round. Batches are exact as long as all examples are kept, then this is stepwise EM.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from crowdwise.arrays import Array, Positions
from crowdwise.checks import check_choice, check_seed
from crowdwise.cluster.blocks import DaskBlocks
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.groups import check_groups
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.levels import Reading, reading_of
from crowdwise.em.together import Together
from crowdwise.em.with_features import WithFeaturesMixin
from crowdwise.exceptions import CrowdConvergenceWarning, DataError, LabelError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.logistic.blocks import CheckedBlock, Mapper, in_threads, on_dask, recoded, total
from crowdwise.logistic.fitted import FittedLogistic
from crowdwise.logistic.over_blocks import Beginning, BlockFit, BlockRounds, BlockSettings, in_unit, sample_features
from crowdwise.logistic.stepwise import Chosen, Stepwise
from crowdwise.logistic.stream import LogisticStream
from crowdwise.logistic.survey import Survey
from crowdwise.mixins import all_or_nothing
from crowdwise.out_of_core.blocks import Block
from crowdwise.progress import Reporter
from crowdwise.results import StreamResults
from crowdwise.softmax.features import undo
from crowdwise.streaming import Declared, StreamMixin, can_stream
from crowdwise.threads import one_blas_thread
from crowdwise.training_set import note_unlabelled
from crowdwise.weights.class_weights import check_class_weight
from crowdwise.weights.curricula import Curriculum, Fixed, check_curriculum


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
    """Learns from blocks that are read again in every round, or from batches, one after the other."""

    _kept_in = "stream_"
    stream_: LogisticStream
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
        """Learn from one more batch of labelled examples.

        The first examples (20,000, or fewer if they have many features) are kept, and as long as all are, the result is
        that of `fit` on all of them, found when it is first asked for. From the batch on that is too much, this is
        stepwise EM: what `fit` finds (steepness, l2, hard examples, copies, whether the classifier counts) stays as it
        was found on a sample of the examples so far; every further batch is scored by the model before it, its sums are
        added to those kept, and the parameters are estimated anew. That is near `fit` on everything, not equal to it,
        and the order of the batches matters a little. Results about single examples are not kept: `consensus` gives
        them.

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
            are added as they come, as long as all examples are kept.
        annotators : array-like of shape (n_annotators,), default=None
            All annotators there are going to be, at the first call; any other is an error. By default annotators are
            added as they come: what was there before is unlabelled by them.
        batch : str, int or tuple, default=None
            Name of the batch. The same name twice is an error, so that no batch is counted twice; batches without a
            name are not compared.

        Returns
        -------
        self : estimator
        """
        return self._add_batch(Block(X, y, sample_weight), classes, annotators, batch)

    def _with_batch(self, block: Block, declared: Declared, names: tuple[Any, ...]) -> LogisticStream:
        self._check_settings()
        checked = CheckedBlock.of(self._checked_batch(block, "class", reset=not self._has_begun()))
        return self._after(self._stream_before(checked.X.shape[1], declared), checked, names)

    def _after(self, before: LogisticStream, batch: CheckedBlock, names: tuple[Any, ...]) -> LogisticStream:
        """What is kept after one more batch."""
        after = before.with_batch(batch, names)
        if after.stepwise is not None:
            return replace(after, stepwise=self._step(after.stepwise, after, [batch]))
        if not after.is_complete:
            return replace(after, stepwise=self._step(self._first_step(after), after, [before.rows(), batch]))
        return after

    @all_or_nothing
    def merge(self, other: Any) -> Self:
        """Join what another model has learnt from other batches.

        As long as all examples of both are kept, the result is that of `fit` on all of them. If those of one model are,
        they are one more batch of the other. Beyond that, the statistics of both are added, each batch as it was judged
        by the model that met it, what was chosen stays as the model with more examples chose it, and the parameters are
        estimated anew: near `fit` on everything, not equal to it.

        Parameters
        ----------
        other : CrowdLogisticClassifier
            With the same settings, fitted by `partial_fit`; it stays as it is.

        Returns
        -------
        self : estimator

        Examples
        --------
        >>> from crowdwise import CrowdLogisticClassifier
        >>> one = CrowdLogisticClassifier().partial_fit([[0.0], [1.0]], [[0, 0], [1, 1]])
        >>> other = CrowdLogisticClassifier().partial_fit([[0.2], [0.9]], [[0, 1], [1, 1]])
        >>> one.merge(other).stream_.seen.n_examples
        4
        """
        self._check_mergeable(other)
        self._check_settings()
        mine, theirs = self.stream_, other.stream_
        if mine.stepwise is None:
            mine, theirs = theirs, mine
        mine.check_declared_with(theirs)
        if mine.stepwise is None or theirs.stepwise is None:  # the latter at least
            self._restart(self._after(mine, theirs.rows(), theirs.batches).declared_as(mine, theirs))
            return self
        n_annotators = len(set(mine.seen.annotators.tolist()) | set(theirs.seen.annotators.tolist()))
        model = self._stream_reading(mine).annotator_model(self.annotator_model, mine.stepwise.n_voters(n_annotators))
        with one_blas_thread():
            joined = mine.joined(theirs, model, fit_intercept=self.fit_intercept)
        self._restart(joined.declared_as(mine, theirs))
        return self

    def _check_settings(self) -> float:
        """Raise if a setting makes no sense; the steepness, NaN for "auto"."""
        raise NotImplementedError

    def _stream_before(self, n_features: int, declared: Declared) -> LogisticStream:
        """What was kept so far; what is declared must be what was declared at first."""
        if not self._has_begun():
            return LogisticStream.nothing(n_features, declared)
        declared.check_same(self.stream_.declared)
        return self.stream_

    def _why_no_stream(self) -> str | None:
        if not isinstance(self.curriculum, Fixed | None):
            return (
                f"curriculum={self.curriculum!r} changes weights from round to round, and every batch of a stream has "
                "one. Use Fixed(), or fit."
            )
        if self.informative_abstentions:
            return (
                "informative_abstentions=True makes abstentions answers, and a stream has labels alone. Use "
                "informative_abstentions=False, or fit."
            )
        return super()._why_no_stream()

    def _first_step(self, stream: LogisticStream) -> Stepwise:
        rows = stream.rows()
        first = self._fit_sample(rows)
        features = sample_features(rows, centred=self.fit_intercept)
        begin = _begin(first, stream.seen)
        behaviour, classes = first.fitted_.annotators.behaviour, stream.seen.classes
        n_annotators, n_states = len(stream.seen.annotators), behaviour.share.size
        theta = in_unit(begin, features)
        return Stepwise(
            chosen=Chosen(
                first.steepness_, self._label_steepness(first), features.penalty(first.l2_), self._chosen_joint(first),
                first.model_weight_, self.cross_fit == 0,
            ),
            n_examples=0,
            counts=np.zeros((n_annotators, n_states, len(classes))),
            share=np.zeros(behaviour.share.shape),
            mass=np.zeros(len(classes)),
            gram=np.zeros((theta.shape[1], len(theta), len(theta))),
            pull=np.zeros(theta.shape),
            behaviour=behaviour.of(np.arange(n_annotators)),
            log_frequency=np.log(np.maximum(begin.class_prior, np.finfo(np.float64).tiny)),
            theta=theta,
            temperature=first.temperature_,
            unit=features.unit,
            shift=features.rows.shift,
            spread=features.spread(),
            together=_together(first, stream.seen, None),
            given=np.zeros((n_annotators, 2)),
        )  # fmt: skip

    def _step(self, stepwise: Stepwise, stream: LogisticStream, blocks: list[CheckedBlock]) -> Stepwise:
        seen, chosen = stream.seen, stepwise.chosen
        levels = stream.weighting(self.scale, chosen.steepness, chosen.label_steepness)
        n_voters = stepwise.n_voters(len(seen.annotators))
        model = self._stream_reading(stream).annotator_model(self.annotator_model, n_voters)
        with one_blas_thread():
            return stepwise.step(blocks, seen.annotators, seen.classes, model, levels, fit_intercept=self.fit_intercept)

    def _stream_reading(self, stream: LogisticStream) -> Reading:
        return reading_of(stream.rows().labels[:0], self.kind, self.consensus_by)

    def _learn_kept(self, kept: LogisticStream, groups: Any, reporter: Reporter) -> None:
        seen, rows, stepwise = kept.seen, kept.rows(), kept.stepwise
        if seen.n_examples == 0:
            raise LabelError("there is no label yet: no example of the stream so far has one.")
        if stepwise is None:
            self._fit_rows(rows, seen, groups, reporter)
            return
        active = seen.labels_per_annotator > 0
        behaviour = stepwise.behaviour.of(np.flatnonzero(active)).among(active)
        reading = self._stream_reading(kept)
        annotators = FittedAnnotators(
            seen.annotators, seen.classes, behaviour, stepwise.class_prior, reading.by, reading.levels,
            stepwise.together,
        )  # fmt: skip
        self.by_votes_ = stepwise.together.by_votes
        coef = undo(stepwise.theta * stepwise.temperature, stepwise.unit, stepwise.shift, stepwise.spread)
        chosen = stepwise.chosen
        self.temperature_, self.model_weight_ = stepwise.temperature, chosen.model_weight
        self.l2_ = chosen.l2 * stepwise.unit * stepwise.unit
        self.fitted_ = FittedLogistic(annotators, *coef, np.ones(len(seen.classes)), chosen.model_weight)
        self._keep_record()
        self.classes_ = seen.classes
        found = annotators.results(rows.labels, seen.labels_per_annotator)
        self._keep(StreamResults(found, seen.n_examples, chosen.steepness, np.empty(0), True))

    def _keep_record(self) -> None:
        self.coef_, self.intercept_ = self.fitted_.coef.T, self.fitted_.intercept_at_zero
        self.confusion_, self.class_prior_ = self.fitted_.annotators.confusion, self.fitted_.annotators.class_prior
        self.class_weight_ = self.fitted_.class_weight
