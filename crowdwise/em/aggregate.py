"""Labels alone -> consensus: how annotators answer and the classes, estimated together without features."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise.arrays import Array, Floats, Positions
from crowdwise.checks import check_number, check_rounds
from crowdwise.consensus import Consensus, ConsensusBy
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.em.anchors import Estimated, calibrate_by_truths
from crowdwise.em.annotators import Behaviour
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.em.guard import note_votes
from crowdwise.em.labels_alone import HardExamples, check_hard_examples, fit_labels, vote_shares, who_errs_together
from crowdwise.em.levels import ClassKind, Reading, check_abstentions, reading_of
from crowdwise.em.rounds import note_convergence
from crowdwise.em.together import Together
from crowdwise.labels.align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.model_file import save
from crowdwise.progress import OnRound, Reporter
from crowdwise.results import AnnotatorResults, Flags, results_html
from crowdwise.threads import one_blas_thread
from crowdwise.training_set import TrainingSet
from crowdwise.truths.calibration import Calibration
from crowdwise.truths.check import TruthCheck
from crowdwise.truths.known import Known, known_answers
from crowdwise.weights.round_weights import RoundWeights


@dataclass(frozen=True, repr=False, eq=False)
class Aggregation:
    """What the labels of a crowd say, and how far each annotator can be trusted.

    Parameters
    ----------
    consensus : Consensus
        The class of every example with the probability of every class; examples without labels have the frequency of
        the classes.
    fitted : FittedAnnotators
        How annotators answer; gives the posterior of other labels.
    annotator_results : AnnotatorResults
        Scores and flags of the annotators.
    disagreement : ndarray of shape (n_examples,)
        How far the annotators of each example differ.
    hardness : ndarray of shape (n_examples,)
        Probability that the example is hard for everybody; zeros if there are no hard examples.
    hard_examples : bool
        Whether there are hard examples.
    objective : ndarray of shape (n_rounds,)
        Log-likelihood plus log priors after every round. It never falls, but for a little where `Shared` and `Ordinal`
        make the crowd's matrix, which annotators are drawn towards, anew.
    converged : bool
        Whether the probabilities changed by no more than the tolerance in the last round.
    steepness : float, default=0.0
        How fast the weight of an example fell with disagreement.
    frame_library : {"pandas", "polars"} or None, default=None
        What made the data frame that the labels came in, if they did.
    truth_check : TruthCheck or None, default=None
        How good the consensus is by the truths that were given, each held out; None without truths.
    """

    consensus: Consensus
    fitted: FittedAnnotators
    annotator_results: AnnotatorResults
    disagreement: Floats
    hardness: Floats
    hard_examples: bool
    objective: Floats
    converged: bool
    steepness: float = 0.0
    frame_library: str | None = None
    truth_check: TruthCheck | None = None

    @property
    def examples(self) -> Array:
        """Identifiers of the examples, in the order of all results."""
        return self.consensus.examples

    @property
    def classes(self) -> Array:
        """The classes."""
        return self.consensus.classes

    @property
    def label(self) -> Array:
        """The class of every example: the most probable one, or for labels with an order the median by default."""
        return self.consensus.label

    @property
    def confidence(self) -> Floats:
        """Its probability, calibrated if truths were given; if not, allowing for errors in common as far as known."""
        return self.consensus.confidence

    @property
    def proba(self) -> Floats:
        """Probability of every class, of shape (n_examples, n_classes)."""
        return self.consensus.proba

    @property
    def mean(self) -> Floats | None:
        """The mean level of every example, which may be between two levels; None for classes without an order."""
        return self.consensus.mean

    @property
    def class_prior(self) -> Floats:
        """How frequent each class is."""
        return self.fitted.class_prior

    @property
    def annotators(self) -> Array:
        """Names of the annotators."""
        return self.fitted.annotators

    @property
    def confusion(self) -> Floats:
        """Probability that an annotator says c (last axis) if the truth is k; NaN for annotators without labels."""
        return self.fitted.confusion

    @property
    def accuracy(self) -> Floats:
        """Probability that an annotator is right about an example; NaN for annotators without labels."""
        return self.fitted.accuracy

    @property
    def truth_accuracy(self) -> Floats | None:
        """Share of the known answers that an annotator is right about; NaN for none of them, None without truths."""
        return self.annotator_results.truth_accuracy

    @property
    def abstention(self) -> Floats | None:
        """Probability that an annotator abstains if the truth is k (last axis); None if abstentions say nothing."""
        return self.fitted.abstention

    @property
    def offset(self) -> Floats | None:
        """Levels that an annotator's labels are above the truth on average; None for classes without an order."""
        return self.annotator_results.offset

    @property
    def spread(self) -> Floats | None:
        """Standard deviation of an annotator's labels around that, in levels; None for classes without an order."""
        return self.annotator_results.spread

    @property
    def expertise(self) -> Floats:
        """A precision: one over the mean squared error that goes with the accuracy."""
        return self.annotator_results.expertise

    @property
    def annotator_flags(self) -> Flags:
        """What is remarkable about annotators; those of whom nothing is are left out."""
        return self.annotator_results.flags

    @property
    def annotator_group(self) -> Positions:
        """A number per annotator: those of the same number share one vote."""
        return self.fitted.together.numbers(len(self.annotators))

    @property
    def effective_annotators(self) -> float:
        """How many independent votes the labels of an average example are worth; see `errors_in_common`."""
        return self.annotator_results.effective_number

    @property
    def by_votes(self) -> bool:
        """Whether the consensus is the majority vote, because the model's classes do not correspond to the labels."""
        return self.fitted.together.by_votes

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.objective)

    def to_frame(self) -> Any:
        """The consensus, one row per example.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            The labels' own kind of frame; pandas if they were in none, polars where that is not installed.
        """
        return self.consensus.to_frame(self.frame_library)

    def consensus_frame(self) -> Any:
        """The same as `to_frame`, by the name that it has in models.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return self.to_frame()

    def annotators_frame(self) -> Any:
        """Scores and flags of the annotators, one row per annotator.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        return self.annotator_results.to_frame(self.frame_library)

    def _repr_html_(self) -> str:
        ending = f"{self.n_rounds}, {'settled' if self.converged else 'not settled'}"
        return results_html(self.consensus, self.annotator_results, ending)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of this to a file, which `crowdwise.load` reads; see there.

        Parameters
        ----------
        path : str or path
            Where it goes.
        """
        save(self, path)

    def __repr__(self) -> str:
        check = "" if self.truth_check is None else f"\n  {self.truth_check!r}"
        return (
            f"Aggregation: {len(self.label):,} examples, {len(self.annotators):,} annotators, "
            f"{len(self.classes)} classes{', easy and hard examples' if self.hard_examples else ''}\n"
            f"  {self.n_rounds} rounds, {'settled' if self.converged else 'not settled'}; estimated accuracy of "
            f"annotators {np.nanmin(self.accuracy):.2f} to {np.nanmax(self.accuracy):.2f}"
            f"{check}"
        )


def aggregate(
    labels: Any,
    *,
    truth: Any = None,
    kind: ClassKind = "class",
    consensus_by: ConsensusBy | None = None,
    informative_abstentions: bool = False,
    annotator_model: AnnotatorModel | None = None,
    hard_examples: HardExamples = "auto",
    errors_in_common: bool = True,
    groups: Any = None,
    class_prior: float = 1.0,
    steepness: float = 0.0,
    scale: Scale = "observed",
    max_rounds: int = 1000,
    tol: float = 1e-5,
    verbose: int = 0,
    on_round: OnRound | None = None,
) -> Aggregation:
    """The consensus of labels without features: the method of Dawid and Skene, smoothed, and with hard examples.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes; a column per annotator, NaN or None where there is no label.
    truth : array-like of shape (n_examples,), series, mapping or frame, default=None
        The true classes of some examples, None or NaN elsewhere; if it has ids, they are those of the labels' examples.
        Their probability is 1, annotators are estimated from them, and the confidence of all other examples is
        calibrated by them, each truth held out. With fifteen or more per annotator, the consensus is mixed with
        logistic regressions on the votes, which learn the errors that annotators have in common.
    kind : {"class", "ordinal"}, default="class"
        Whether classes have an order, as stars do: numbers have theirs, that of anything else is declared with
        `labels.in_order` or `classes=`. Annotators may then be harsh or lenient.
    consensus_by : {"mode", "median", "mean"} or None, default=None
        What is taken of the probabilities as the label: the most probable class; for classes with an order also the
        median (the default there, which errs by the fewest levels), or the level nearest to the mean.
    informative_abstentions : bool, default=False
        Whether abstaining, as declared with ``abstain=``, is an answer of annotators that depends on the class. By
        default abstentions are left out.
    annotator_model : Shared, Confusion, OneCoin, Ordinal or None, default=None
        What is estimated of an annotator: a confusion matrix drawn towards the crowd's (`Shared`, the default), one of
        their own, how often they are right, or how far they are above or below the truth (`Ordinal`, the default for
        classes with an order). See `crowdwise.em`.
    hard_examples : bool or "auto", default="auto"
        Whether every class may have hard examples, on which annotators err in another way. False is the method of Dawid
        and Skene; "auto" is whichever makes the labels more probable, and False for classes with an order.
    errors_in_common : bool, default=True
        Whether annotators may err together. If so, those who copy each other share one vote, probabilities allow for
        errors in common (the usual amount, or less if labels show hardly any), and the consensus is the majority vote
        if the model's classes do not correspond to the labels (`by_votes`). False assumes independent errors, as Dawid
        and Skene do.
    groups : mapping, series or array-like, default=None
        Annotators who share one vote: a group by annotator's name, such as the family of a model, or one per annotator
        in their order. Annotators that are not named are alone. By default those who copy each other are detected.
    class_prior : float, default=1.0
        Examples of every class added when the frequency of classes is estimated.
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all alike.
    scale : {"observed", "possible"} or None, default="observed"
        How disagreement is scaled, see `disagreement`.
    max_rounds : int, default=1000
        The most rounds.
    tol : float, default=1e-05
        Stop when the probabilities of the average example change by no more than this.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also a line per round, on standard error.
    on_round : callable, default=None
        Is given a `Round` after every round: number, objective, change, seconds and stage.

    Returns
    -------
    aggregation : Aggregation
        In the order of the labels' examples: `aggregation.to_frame()` has their identifiers beside the results.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> result = aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> result.label.tolist(), int(result.accuracy.argmin())
    ([1, 0, 1, 0, 1], 2)

    The third annotator gives a star more than the others do:

    >>> stars = 20 * [[1, 1, 2], [3, 3, 4], [2, 2, 3], [4, None, 5], [None, None, 4]]
    >>> result = aggregate(stars, kind="ordinal")
    >>> result.label[:5].tolist(), result.offset.round(1).tolist()
    ([1, 3, 2, 4, 3], [0.0, 0.0, 1.0])
    """
    check_number("class_prior", class_prior)
    check_rounds(max_rounds, tol)
    reporter = Reporter("aggregate", verbose, on_round)
    steepness, crowd = check_number("steepness", steepness), as_labels(labels)
    check_abstentions(crowd, informative_abstentions)
    reading = reading_of(crowd, kind, consensus_by, informative_abstentions)
    difficulties = check_hard_examples(hard_examples, reading)
    answers = known_answers(truth, crowd, crowd)
    training = TrainingSet.of(crowd.examples, crowd, None, truth=answers, scale=scale, weighting=steepness > 0)
    model = reading.annotator_model(annotator_model, training.core.n_annotators)
    if training.core.n_annotators == 1:
        return _believed(training, reading, steepness)
    weight = example_weights(training.weighing_disagreement, steepness)
    known = training.known
    with one_blas_thread():  # products here are too thin to be shared
        together = who_errs_together(
            training, weight, model,
            difficulties=difficulties, groups=groups, errors_in_common=errors_in_common,
        )  # fmt: skip
        model = reading.annotator_model(annotator_model, together.n_voters(training.core.n_annotators))
        patterns, weight, where = distinct_patterns(training.core, weight, known)
        if known is not None and where is not None:
            known = Known(where[known.at], known.answers)
        fit = fit_labels(
            patterns, weight, model,
            together=together, known=known, difficulties=difficulties, class_prior=class_prior,
            max_rounds=max_rounds, tol=tol,
            reporter=reporter,
        )  # fmt: skip
        estimated = Estimated(fit.annotators, fit.rounds.log_prior, fit.rounds.log_prior, weight, fit.together)
        calibration, check = calibrate_by_truths(patterns, known, estimated, reading)
    reporter.done()
    note_convergence(fit.rounds, RoundWeights.fixed(weight), tol)
    if fit.together.by_votes:
        note_votes(fit.together, known is not None, kind)
    posterior, hardness = fit.believed(patterns), fit.annotators.hardness(fit.rounds.posterior)
    if where is not None:
        posterior, hardness = posterior[where], hardness[where]
    return _aggregation(
        training,
        reading,
        fit.annotators.behaviour,
        np.exp(fit.prior.log_frequency),
        posterior,
        hardness,
        calibration,
        check,
        together=fit.together,
        hard_examples=fit.annotators.n_difficulties > 1,
        steepness=steepness,
        objective=fit.rounds.objective,
        converged=fit.rounds.converged,
    )


def _believed(training: TrainingSet, reading: Reading, steepness: float) -> Aggregation:
    """What one annotator says: nobody is there to compare with."""
    posterior = vote_shares(training.core)
    behaviour = Behaviour.always_right(posterior.shape[1])
    hardness = np.zeros(len(posterior))
    calibration, check = calibrate_by_truths(training.core, training.known, None, reading)
    frequency = posterior.mean(axis=0)
    return _aggregation(
        training, reading, behaviour, frequency, posterior, hardness, calibration, check, steepness=steepness
    )


def _aggregation(
    training: TrainingSet,
    reading: Reading,
    behaviour: Behaviour,
    class_prior: Floats,
    posterior: Floats,
    hardness: Floats,
    calibration: Calibration | None,
    check: TruthCheck | None,
    *,
    steepness: float,
    together: Together | None = None,
    hard_examples: bool = False,
    objective: Floats | None = None,
    converged: bool = True,
) -> Aggregation:
    """Results in the terms of the caller: all examples and all annotators."""
    labels = training.labels
    fitted = FittedAnnotators.of(training, behaviour, class_prior, reading, together, calibration)
    proba = np.tile(class_prior, (len(labels), 1))
    if behaviour.has_abstentions:  # which say something of an example without labels too
        proba = fitted.posterior(labels)
    proba[training.learnt] = fitted.calibrated(posterior, training.core)
    how_hard = np.zeros(len(labels))
    how_hard[training.learnt] = hardness
    consensus = training.with_truth(fitted.as_consensus(labels.examples, proba))
    return Aggregation(
        consensus,
        fitted,
        fitted.results(labels).against(labels, training.truth),
        training.disagreement,
        how_hard,
        hard_examples,
        np.empty(0) if objective is None else objective,
        converged,
        steepness,
        labels.frame_library,
        check and check.beside(consensus.confidence[training.unknown]),
    )


def distinct_patterns(
    labels: CrowdLabels, weight: Floats, known: Known | None = None
) -> tuple[CrowdLabels, Floats, Positions | None]:
    """Examples with the same labels taken together, where labels are complete and patterns few.

    An example per pattern, the sums of their weights, and the pattern of each example; None for the latter if examples
    are as they were. Those whose class is known are patterns of their own, and come first.
    """
    n_classes = 0 if labels.classes is None else len(labels.classes)
    are_few = labels.n_annotators * math.log(max(n_classes, 2)) < math.log(max(len(labels) / 2, 1))
    if not (labels.is_complete and are_few):
        return labels, weight, None
    matrix = labels.values.reshape(labels.shape)
    key = np.zeros(len(labels), dtype=np.int64)
    for column in matrix.T:
        key = key * n_classes + column
    if known is not None:
        key[known.at] = np.arange(-len(known), 0)
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    sums = np.bincount(where, weight).astype(np.float64)
    return labels[first], sums, where
