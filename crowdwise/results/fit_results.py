"""What `aggregate` and every fitted model found out about the examples and the annotators: one record for all.

All arrays are read-only: ``.copy()`` gives one of your own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array, Bools, Floats, FrozenArrays, Positions, ratio, read_only
from crowdwise._text import table
from crowdwise.crowd._disagreement import easiness
from crowdwise.exceptions import AlignmentError, DataError, LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import encode_declared
from crowdwise.labels._frames import is_frame, make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import LabelScale, is_known
from crowdwise.model_file import save
from crowdwise.results.consensus import Consensus, RatingConsensus
from crowdwise.truths.check import RatingCheck, TruthCheck, share_interval, spread_interval
from crowdwise.truths.representativeness import Representativeness

Flags = dict[Any, tuple[str, ...]]
# Fitted models have these under the same name with an underscore, unless they are None, ...
_OF_ALL_FITS = (
    "accuracy",
    "annotator_flags",
    "annotators",
    "choices",
    "classes",
    "converged",
    "expertise",
    "n_rounds",
    "objective",
    "steepness",
)
# ... and these about single examples, of which a fit on blocks has none.
_OF_EXAMPLES = {"consensus_": "label", "disagreement_": "disagreement", "examples_": "examples"}
_OF_CLASSES = {"consensus_proba_": "proba", "consensus_confidence_": "confidence"}
_OF_RATINGS = {"consensus_std_": "std"}
ABOUT_EXAMPLES = frozenset({*_OF_EXAMPLES, *_OF_CLASSES, *_OF_RATINGS, "truth_check_", "label_score_"})


@dataclass(frozen=True)
class Choice:
    """One decision that a fit took by itself.

    Parameters
    ----------
    name : str
        What was decided.
    chosen : str or float
        The outcome.
    score, limit : float or None, default=None
        What was compared with what; None if there was nothing to compare.
    reason : str, default=""
        Why, in a sentence.
    """

    name: str
    chosen: str | float
    score: float | None = None
    limit: float | None = None
    reason: str = ""


@dataclass(frozen=True, repr=False, eq=False)
class FitResults(FrozenArrays):
    """What a fit found out about its examples and annotators; what `aggregate` gives, and `results_` of every model.

    Parameters
    ----------
    annotators : ndarray of shape (n_annotators,)
        Their names.
    n_labels : ndarray of shape (n_annotators,)
        How many labels each gave.
    expertise : ndarray of shape (n_annotators,)
        A precision: one over the mean squared error of their labels, coded as in the paper (two different classes
        are 4 apart), and of labels with an order one over the squared spread. Larger is better; NaN for annotators
        without labels.
    accuracy : ndarray of shape (n_annotators,) or None
        Estimated probability of being right about an example; NaN for annotators without labels, None for ratings.
    annotator_flags : dict from annotator to tuple of str
        Warnings per annotator; annotators without any are left out.
    consensus : Consensus or RatingConsensus
        By labels and model together, the model's part being out of fold: of one that has not seen the example. Empty
        after a fit on blocks, of which no examples are kept.
    label_consensus : Consensus or RatingConsensus
        By labels alone; by the model alone for examples without labels.
    offset : ndarray of shape (n_annotators,) or None, default=None
        For labels with an order: how many levels above the truth their labels are on average, negative if below. For
        ratings without features: how much higher than the others they rate.
    spread : ndarray of shape (n_annotators,) or None, default=None
        Where there is an offset: the standard deviation of their labels around that: smaller is more consistent.
    rank_correlation : ndarray of shape (n_annotators,) or None, default=None
        For labels with an order: Spearman's correlation of their labels with the truth, which no offset lowers.
    abstention : ndarray of shape (n_annotators, n_classes) or None, default=None
        Probability of abstaining if the truth is k, where abstentions are answers.
    vote_weight : ndarray of shape (n_annotators,) or None, default=None
        The mean share of a vote that each annotator's labels have: 1 unless they share with others.
    effective_votes : float, default=nan
        How many independent votes the labels of an average example carry as much information as.
    n_truths : ndarray of shape (n_annotators,) or None, default=None
        How many examples of known class each labelled; None if no class is known.
    truth_accuracy : ndarray of shape (n_annotators,) or None, default=None
        The share of these that each was right about; NaN for annotators who labelled none of them.
    crowd_expertise : float, default=nan
        For ratings: the expertise of an average annotator.
    fitted : FittedAnnotators or None, default=None
        How annotators answer, which gives the consensus on other labels; None for ratings.
    raters : Raters or None, default=None
        For ratings without features: how each annotator rates.
    n_examples : int, default=0
        How many examples there were.
    disagreement : ndarray of shape (n_examples,), default=nothing
        How much the annotators of each example disagree.
    steepness : float, default=0.0
        How fast easiness falls with it.
    objective : ndarray of shape (n_rounds,), default=no rounds
        One value per round.
    converged : bool, default=True
        Whether the rounds converged.
    truth_check : TruthCheck, RatingCheck or None, default=None
        How good the consensus is by the truths that the fit was given, each held out; None without truths.
    model_proba : ndarray of shape (n_examples, n_classes) or None, default=None
        Probabilities by the classifier alone, each example's from a model that has not seen it; None without one.
    truth : ndarray of shape (n_examples,) or None, default=None
        Known answers that the fit was given: positions of classes, -1 where unknown, or ratings, NaN there.
    choices : tuple of Choice, default=()
        The decisions that the fit took by itself.
    frame_library : {"pandas", "polars"} or None, default=None
        What made the data frame that the labels came in, if they did.
    """

    annotators: Array
    n_labels: Array
    expertise: Floats
    accuracy: Floats | None
    annotator_flags: Flags
    consensus: Consensus | RatingConsensus
    label_consensus: Consensus | RatingConsensus
    offset: Floats | None = None
    spread: Floats | None = None
    rank_correlation: Floats | None = None
    abstention: Floats | None = None
    vote_weight: Floats | None = None
    effective_votes: float = np.nan
    n_truths: Array | None = None
    truth_accuracy: Floats | None = None
    crowd_expertise: float = np.nan
    fitted: Any = None
    raters: Any = None
    n_examples: int = 0
    disagreement: Floats = field(default_factory=lambda: np.zeros(0))
    steepness: float = 0.0
    objective: Floats = field(default_factory=lambda: np.zeros(0))
    converged: bool = True
    truth_check: TruthCheck | RatingCheck | None = None
    model_proba: Floats | None = None
    truth: Array | None = None
    choices: tuple[Choice, ...] = ()
    frame_library: str | None = None

    def with_truth(self, labels: CrowdLabels, truth: Array | None) -> Self:
        """The same with the known answers of all examples, and how often each annotator is right about the classes."""
        if truth is None or labels.classes is None or not (truth >= 0).any():
            return replace(self, truth=truth)
        answer = truth[labels.example_index]
        known = (answer >= 0).astype(np.float64)
        n_truths = labels._sum_per_annotator(known)
        right = labels._sum_per_annotator(known * (labels.values == answer))
        share = ratio(right, n_truths, np.nan)
        return replace(self, truth=truth, n_truths=n_truths.astype(np.int64), truth_accuracy=share)

    def without_examples(self, n_examples: int) -> Self:
        """The same of so many examples that are not kept."""
        none = self.consensus.none()
        unknown: dict[str, Any] = dict.fromkeys(("truth_check", "model_proba", "truth"))
        return replace(
            self,
            n_examples=n_examples,
            consensus=none,
            label_consensus=none,
            disagreement=np.zeros(0),
            **unknown,
        )

    @property
    def has_examples(self) -> bool:
        """Whether results of single examples are kept."""
        return len(self.consensus) > 0

    @property
    def _of_classes(self) -> Consensus:
        if not isinstance(self.consensus, Consensus):
            raise LabelError("ratings have no classes, and so no probabilities of classes.")
        return self.consensus

    @property
    def examples(self) -> Array:
        """Identifiers of the examples, in the order of all results."""
        return self.consensus.examples

    @property
    def label(self) -> Array:
        """The consensus: the most probable class (or as the labels' scale asks), or the rating."""
        return self.consensus.label

    @property
    def classes(self) -> Array | None:
        """The classes; None for ratings."""
        return None if self.fitted is None else self.fitted.classes

    @property
    def proba(self) -> Floats:
        """Probability of every class, of shape (n_examples, n_classes)."""
        return self._of_classes.proba

    @property
    def codes(self) -> Positions:
        """The position of every example's consensus among the classes."""
        return self._of_classes.codes

    @property
    def confidence(self) -> Floats:
        """The probability of the consensus, calibrated if truths were given."""
        return self._of_classes.confidence

    @property
    def mean(self) -> Floats | None:
        """The mean level of every example, which may be between two levels; None for classes without an order."""
        return self._of_classes.mean

    @property
    def std(self) -> Any:
        """The standard deviation of every rating; None for classes."""
        return getattr(self.consensus, "std", None)

    @property
    def easiness(self) -> Floats:
        """The weight of every example that follows from its disagreement."""
        return read_only(easiness(self.disagreement, self.steepness))

    @property
    def confusion(self) -> Floats:
        """Probability of the label c (last axis) if the truth is k; NaN for annotators without labels."""
        if self.fitted is None:
            raise LabelError("ratings have no classes, and so no confusion matrices.")
        return np.asarray(self.fitted.confusion)

    @property
    def class_prior(self) -> Floats:
        """How frequent each class is."""
        return np.asarray(self.fitted.class_prior)

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.objective)

    @property
    def has_truth(self) -> Bools:
        """The examples whose answer the fit was given."""
        return np.zeros(self.n_examples, dtype=bool) if self.truth is None else is_known(self.truth)

    def attributes(self) -> dict[str, Any]:
        """The attributes that every fitted model has, by name."""
        attributes = {f"{name}_": getattr(self, name) for name in _OF_ALL_FITS if getattr(self, name) is not None}
        if not self.has_examples:
            return attributes
        names = _OF_EXAMPLES | (_OF_CLASSES if isinstance(self.consensus, Consensus) else _OF_RATINGS)
        return (
            attributes | {key: getattr(self, name) for key, name in names.items()} | {"truth_check_": self.truth_check}
        )

    def consensus_frame(self, library: str | None = None) -> Any:
        """The consensus, one row per example.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is the labels' own, else pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        if not self.has_examples:
            raise DataError(
                "examples of blocks are not kept: consensus(X, labels).to_frame() gives the consensus on any."
            )
        return self.consensus.to_frame(library or self.frame_library)

    def annotators_frame(self, library: str | None = None) -> Any:
        """Scores and flags of the annotators, one row per annotator.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is the labels' own, else pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return make_frame(self.annotator_columns(), library or self.frame_library)

    def annotator_columns(self) -> dict[str, Any]:
        """The columns of `annotators_frame`: estimates with the ends of their 95% intervals."""
        columns: dict[str, Any] = {
            "annotator": self.annotators,
            "labels": self.n_labels,
            "expertise": self.expertise,
        }
        if self.accuracy is not None:
            columns |= _with_ends("accuracy", self.accuracy, share_interval(self.accuracy, self.n_labels))
            if self.offset is not None:  # levels: the offset of the whole crowd is not known, so no interval would hold
                del columns["accuracy_low"], columns["accuracy_high"]
        if self.truth_accuracy is not None:
            ends = share_interval(self.truth_accuracy, self.n_truths)
            columns |= {"truths": self.n_truths} | _with_ends("truth_accuracy", self.truth_accuracy, ends)
        if self.raters is not None:
            columns |= self.raters.columns()
        elif self.offset is not None:
            columns["offset"] = self.offset
            columns |= _with_ends("spread", self.spread, spread_interval(self.spread, self.n_labels))
            columns["rank_correlation"] = self.rank_correlation
        return columns | {"flags": self.flags_in_words()}

    def flags_in_words(self) -> list[str]:
        """The flags of every annotator, with semicolons; empty without any."""
        return ["; ".join(self.annotator_flags.get(name, ())) for name in self.annotators.tolist()]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of this to a file, which `crowdwise.load` reads; see there.

        Parameters
        ----------
        path : str or path
            Where it goes.
        """
        save(self, path)

    def __repr__(self) -> str:
        examples = "" if self.has_examples else " (of blocks, not kept)"
        accuracy = ""
        if self.accuracy is not None:
            known = self.accuracy[~np.isnan(self.accuracy)]
            span = f"{known.min():.2f} to {known.max():.2f}" if len(known) else "unknown: no two share an example"
            accuracy = f"; estimated accuracy of annotators {span}"
        check = "" if self.truth_check is None else f"\n  {self.truth_check!r}"
        return (
            f"FitResults: {self.n_examples:,} examples{examples}, {len(self.annotators):,} annotators, {self._ending}"
            f"{accuracy}{check}"
        )

    @property
    def _ending(self) -> str:
        return f"{self.n_rounds} rounds, {'converged' if self.converged else 'not converged'}"

    def _repr_html_(self) -> str:
        sure = "of blocks, not kept"
        if self.has_examples and isinstance(self.consensus, Consensus):
            sure = f"mean confidence {self.confidence.mean():.3g}"
        elif self.has_examples:
            sure = f"mean standard deviation {self.std.mean():.3g}"
        facts = [
            [f"{self.n_examples:,} examples", sure],
            [f"{len(self.annotators):,} annotators", f"{len(self.annotator_flags):,} flagged"],
            ["rounds", self._ending.replace(" rounds", "")],
        ]
        return table(facts) + self._annotators_html()

    def _annotators_html(self) -> str:
        """The annotators of the highest and lowest expertise."""
        order = np.argsort(-np.nan_to_num(self.expertise, nan=-1.0), kind="stable").tolist()
        shown = order if len(order) <= 6 else [*order[:3], *order[-3:]]
        columns = {"annotator": self.annotators, "labels": self.n_labels, "expertise": self.expertise}
        if self.accuracy is not None:
            columns["estimated accuracy"] = self.accuracy
        rows = zip(*(column[shown].tolist() for column in columns.values()), strict=True)
        flags = self.flags_in_words()
        return table(
            [[*row, flags[i]] for row, i in zip(rows, shown, strict=True)],
            head=[*columns, ""],
            title="Annotators of the highest and lowest expertise",
        )


def _with_ends(name: str, values: Any, ends: tuple[Any, Any]) -> dict[str, Any]:
    return {name: values, f"{name}_low": ends[0], f"{name}_high": ends[1]}


def fit_and_labels(model: Any, labels: Any) -> tuple[FitResults, CrowdLabels]:
    """What a model or `aggregate` found, and the labels of the fit in the order of its examples and in its classes."""
    results = results_of(model)
    consensus = results.consensus
    if not isinstance(consensus, Consensus):
        return results, _in_order_of(as_labels(labels, scale="interval"), results)
    scale = LabelScale("nominal" if consensus.levels is None else "ordinal", consensus.by)
    return results, replace(_in_order_of(as_labels(labels), results), scale=scale)


def results_of(model: Any) -> FitResults:
    """What a fitted model found out about its examples and annotators; the result of `aggregate` is that already."""
    results = model
    if not isinstance(model, FitResults):
        if not hasattr(model, "fit"):
            swapped = isinstance(model, CrowdLabels) or is_frame(model)
            order = " Are labels and model the other way round?" if swapped else ""
            raise TypeError(
                "a fitted model of crowdwise or the result of aggregate() is needed; got "
                f"{type(model).__name__}.{order}"
            )
        check_is_fitted(model)
        results = getattr(model, "results_", None)
    if not isinstance(results, FitResults):
        raise TypeError(
            f"{type(model).__name__} does not estimate a consensus of annotators. Use one of the crowd models, such as "
            "CrowdLogisticClassifier, or aggregate(labels)."
        )
    if not results.has_examples:
        raise TypeError(
            f"this {type(model).__name__} was fitted to blocks, whose examples are not kept. Fit in memory for this."
        )
    return results


def _in_order_of(labels: CrowdLabels, results: FitResults) -> CrowdLabels:
    """The labels of a fit in the order of its results and in its classes; an error if they are other labels."""
    if not np.array_equal(labels.annotators, results.annotators):
        raise LabelError(
            f"these labels are not those of the fit: they are of {labels.n_annotators} annotators (such as "
            f"{labels.annotators[:3].tolist()}), and the fit had {len(results.annotators)} (such as "
            f"{results.annotators[:3].tolist()}). Give the labels that the model was fitted to."
        )
    if len(labels) != results.n_examples:
        raise AlignmentError(
            f"these labels are of {len(labels)} examples, and the fit had {results.n_examples}. Give the labels that "
            "the model was fitted to."
        )
    if labels.id_source != "position" and not np.array_equal(labels.examples, results.examples):
        place = encode_declared(results.examples, labels.examples).astype(np.intp)
        if (np.sort(place) == np.arange(len(labels))).all():
            labels = labels[place]
        elif labels._named_examples:
            raise AlignmentError(
                f"the examples of these labels (such as {labels.examples[:3].tolist()}) are not those of the fit (such "
                f"as {results.examples[:3].tolist()}). Give the labels that the model was fitted to."
            )
    return labels if results.classes is None else labels._with_classes(results.classes)


def is_representative(results: FitResults, is_labelled: Bools, answers: Array) -> bool:
    """Whether the examples of known answer may be a random draw; ratings do not show it."""
    if results.classes is None:
        return True
    if isinstance(check := results.truth_check, TruthCheck):
        return check.at_random
    labelled = np.flatnonzero(is_labelled)
    known = np.flatnonzero(answers[labelled] >= 0)
    return Representativeness.of(results.proba[labelled], known, answers[labelled][known]).is_representative
