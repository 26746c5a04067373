"""Batches one after the other -> the logistic model: exact as long as all examples are kept, then stepwise EM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from crowdwise.arrays import Array, FrozenArrays
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.em.blocks import CheckedBlock, recoded
from crowdwise.em.stepwise import Levels, Stepwise
from crowdwise.em.survey import Survey, sample_keys
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels.encode import as_ids, encode_declared
from crowdwise.mixins import all_or_nothing
from crowdwise.results import ABOUT_EXAMPLES, StreamResults
from crowdwise.ridge.data import EXACT_COLUMNS
from crowdwise.ridge.kept_rows import KeptRows
from crowdwise.ridge.streaming import batch_names, declared_classes
from crowdwise.training_set import check_features, check_sample_weight
from crowdwise.weights.curricula import Fixed

# What stays when a batch is added: everything else that was learnt is found again when it is asked for.
_LASTING = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False)
class LogisticStream(FrozenArrays):
    """All that is kept of the examples of a stream.

    Parameters
    ----------
    seen : Survey
        Who and what was in the batches.
    kept : KeptRows
        A sample of the rows; all of them, as long as there is room.
    fixed_classes, fixed_annotators : bool
        Whether they were declared, so that there can be no others.
    batches : tuple
        Names of the batches.
    stepwise : Stepwise or None
        The statistics, once there are more rows than are kept.
    """

    seen: Survey
    kept: KeptRows
    fixed_classes: bool = False
    fixed_annotators: bool = False
    batches: tuple[Any, ...] = ()
    stepwise: Stepwise | None = None

    @classmethod
    def nothing(cls, n_features: int, classes: Array | None, annotators: Array | None) -> LogisticStream:
        """Of no examples, with the classes and annotators that were declared, if any were."""
        if n_features + 1 > EXACT_COLUMNS:
            raise DataError(
                f"a stream is summed up in products of its features, for at most {EXACT_COLUMNS - 1} of them; X has "
                f"{n_features}. Use fit, or fewer features."
            )
        known, names = (np.zeros(0, dtype=np.int64) if given is None else given for given in (classes, annotators))
        none = np.zeros(0, dtype=np.int64)
        seen = Survey(
            n_features=n_features,
            feature_names=None,
            n_examples=0,
            n_unlabelled=0,
            classes=known,
            annotators=names,
            labels_per_class=np.zeros(len(known), dtype=np.int64),
            labels_per_annotator=np.zeros(len(names), dtype=np.int64),
            levels=none,
            examples_per_level=none,
            kept=(),
        )
        kept = KeptRows.none(n_features, ratings=False)
        return cls(seen, kept, classes is not None, annotators is not None)

    def with_batch(self, block: CheckedBlock, names: tuple[Any, ...]) -> LogisticStream:
        """The same after one more batch, from which the statistics have not been made yet."""
        if shared := set(self.batches) & set(names):
            raise DataError(
                f"the batch {sorted(map(repr, shared))[0]} has been learnt from already: adding it again would count "
                "its examples twice. Leave it out, or give it another id if it holds other examples."
            )
        self._check_declared(block)
        seen = self.seen + Survey.of(block, keep=False)
        at = [encode_declared(old, new).astype(np.intp) for old, new in self._names(seen)]
        labels = recoded(block.labels, seen.annotators, seen.classes)
        kept = self.kept.recoded(*at) + KeptRows.of(
            sample_keys(block), block.X, labels, block.weight, np.zeros(len(block), dtype=np.int64), self.kept.bound
        )
        return replace(self, seen=seen, kept=kept, batches=self.batches + names)

    def _names(self, seen: Survey) -> list[tuple[Array, Array]]:
        return [(self.seen.annotators, seen.annotators), (self.seen.classes, seen.classes)]

    def _check_declared(self, block: CheckedBlock) -> None:
        labels, seen = block.labels, self.seen
        assert labels.classes is not None
        given = labels.classes[np.unique(labels.values)] if labels.n_labels else labels.classes[:0]
        for names, known, fixed, what in (
            (labels.annotators, seen.annotators, self.fixed_annotators, "annotators"),
            (given, seen.classes, self.fixed_classes or self.stepwise is not None, "classes"),
        ):
            if fixed and len(names) and (unknown := encode_declared(names, known) < 0).any():
                raise LabelError(
                    f"the {what} {names[unknown][:3].tolist()} are not among those known, such as "
                    f"{known[:3].tolist()}. Declare all {what} at the first call of partial_fit: {what}=[...]."
                )

    @property
    def is_complete(self) -> bool:
        """Whether all rows so far are kept."""
        return len(self.kept) == self.seen.n_examples

    def rows(self) -> CheckedBlock:
        """The rows that are kept."""
        labels = self.kept.labels(self.seen.annotators, self.seen.classes)
        return CheckedBlock(self.kept.X, replace(labels, declared_classes=self.fixed_classes), self.kept.weight)

    def weighting(self, scale: Scale, steepness: float, label_steepness: float) -> Levels:
        """What examples of every level of disagreement count."""
        differs = self.seen.disagreement(scale)
        weights = (example_weights(differs, value) for value in (steepness, label_steepness))
        return Levels(self.seen.levels, *weights)


def _can_stream(model: Any) -> bool:
    return model._why_no_stream() is None


class LogisticStreamMixin:
    """Learns from batches, one after the other."""

    stream_: LogisticStream

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
        """Learn from one more batch of labelled examples.

        The first examples (20,000, or fewer if they have many features) are kept, and as long as all are, the result is
        that of `fit` on all of them, found when it is first asked for. From the batch on that is too much, this is
        stepwise EM: what `fit` chooses (steepness, l2, hard examples, whether the classifier counts) stays as it was
        chosen on a sample of the examples so far; every further batch is scored by the model before it, its sums are
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
        self._check_settings()
        begun = "stream_" in vars(self)
        if not begun and "fitted_" in vars(self):
            warn(
                "a stream begins with this block: what fit has learnt is no part of it, for fit keeps no sums. Use "
                "partial_fit from the first block on."
            )
        names = batch_names(batch)
        X, labels = check_features(self, X, y, "class", reset=not begun, least=0)
        weight = check_sample_weight(sample_weight, X, labels, rescale=False)
        before = self._stream_before(X.shape[1], classes, annotators)
        block = CheckedBlock.of((X, labels, weight))
        after = before.with_batch(block, names)
        if before.stepwise is not None:
            after = replace(after, stepwise=self._step(before.stepwise, after, [block]))
        elif not after.is_complete:
            after = replace(after, stepwise=self._step(self._first_step(after), after, [before.rows(), block]))
        self._forget_stream()
        self.stream_ = after
        self._stream_settings = self.get_params(deep=False)  # type: ignore[attr-defined]
        return self

    def _stream_before(self, n_features: int, classes: Any, annotators: Any) -> LogisticStream:
        """What was kept so far; what is declared must be what was declared at first."""
        known = None if classes is None else declared_classes(classes, "classes")
        names = None if annotators is None else as_ids(annotators, "annotators")
        if "stream_" not in vars(self):
            return LogisticStream.nothing(n_features, known, names)
        stream = self.stream_
        declared = {"classes": (known, stream.seen.classes if stream.fixed_classes else None)}
        declared["annotators"] = names, stream.seen.annotators if stream.fixed_annotators else None
        for what, (now, then) in declared.items():
            if now is not None and (then is None or not np.array_equal(now, then)):
                raise ValueError(f"{what} can be declared at the first call of partial_fit, and later only the same.")
        return stream

    def _forget_stream(self) -> None:
        """Forget what was learnt, the stream and all."""
        learnt = [name for name in vars(self) if name.endswith("_") and name not in _LASTING]
        for name in [*learnt, "_stream_settings"]:
            vars(self).pop(name, None)

    def _solve(self) -> None:
        """Find what was learnt with the settings of the last batch, whatever was set since."""
        solver = type(self)(**self._stream_settings)
        solver._learn_stream(self.stream_)
        learnt = {name: value for name, value in vars(solver).items() if name.endswith("_") and name not in _LASTING}
        vars(self).update(learnt)

    def _why_no_stream(self) -> str | None:
        """Why these settings do not suit a stream, if they do not."""
        settings = self.get_params(deep=False)  # type: ignore[attr-defined]
        if not isinstance(settings["curriculum"], Fixed | None):
            return (
                f"curriculum={settings['curriculum']!r} changes weights from round to round, and every batch of a "
                "stream has one. Use Fixed(), or fit."
            )
        if settings["class_weight"] is not None:
            return (
                f"class_weight={settings['class_weight']!r} looks at the consensus on every example in every round, "
                "and a stream keeps none. Use class_weight=None with sample_weight, or fit."
            )
        if settings["informative_abstentions"]:
            return (
                "informative_abstentions=True makes abstentions answers, and a stream has labels alone. Use "
                "informative_abstentions=False, or fit."
            )
        return None

    def _check_settings(self) -> float:
        """Raise if a setting makes no sense."""
        raise NotImplementedError

    def _first_step(self, stream: LogisticStream) -> Stepwise:
        """Statistics of nothing, with the parameters of a fit to the rows that are kept."""
        raise NotImplementedError

    def _step(self, stepwise: Stepwise, stream: LogisticStream, blocks: list[CheckedBlock]) -> Stepwise:
        """The statistics after one more batch, which the stream has in it."""
        raise NotImplementedError

    def _learn_stream(self, stream: LogisticStream) -> None:
        """Store what was learnt."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            is_stream = "stream_" in vars(self)
            if name in ABOUT_EXAMPLES and (is_stream or isinstance(vars(self).get("results_"), StreamResults)):
                how = "partial_fit" if is_stream else "a fit on blocks"
                raise AttributeError(
                    f"{name} is about single examples, which {how} does not keep. For the consensus on any "
                    "examples call consensus(X, labels)."
                )
            is_result = name.endswith("_") and not name.startswith("_") and name not in _LASTING
            if is_result and is_stream and "fitted_" not in vars(self):
                self._solve()
                if name in vars(self):
                    return vars(self)[name]
            if name == "partial_fit":
                raise AttributeError(f"there is no partial_fit with these settings: {self._why_no_stream()}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
