"""Labels alone -> consensus: how annotators answer and the classes, estimated together without features."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._checks import check_choice, check_number, check_rounds
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.choices import Choice
from crowdwise.consensus import Consensus, ConsensusBy
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.fitted import FittedAnnotators, calibrated, fitted_annotators, sharing_of
from crowdwise.em.labels_only import LabelsOnlyFit, fit_labels, warn_if_not_converged
from crowdwise.em.levels import ClassKind, scale_of, warn_if_no_abstentions
from crowdwise.em.posterior import Counting
from crowdwise.em.round_weights import own_weight
from crowdwise.labels.align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import known_answers
from crowdwise.model_file import save
from crowdwise.results import AnnotatorResults, FitResults, Flags, results_html
from crowdwise.rows.chunks import MemoryChunks
from crowdwise.training_set import TrainingSet
from crowdwise.truths.check import TruthCheck


@dataclass(frozen=True, repr=False, eq=False)
class Aggregation:
    """The consensus of the labels of a crowd, and how far each annotator can be trusted.

    Parameters
    ----------
    results : FitResults
        All results about the examples and annotators.
    fitted : FittedAnnotators
        How annotators answer; gives the consensus on other labels.
    frame_library : {"pandas", "polars"} or None, default=None
        What made the data frame that the labels came in, if they did.
    """

    results: FitResults
    fitted: FittedAnnotators
    frame_library: str | None = None

    @property
    def consensus(self) -> Consensus:
        """The class of every example with the probability of every class."""
        assert isinstance(self.results.consensus, Consensus)
        return self.results.consensus

    @property
    def annotator_results(self) -> AnnotatorResults:
        """Scores and flags of the annotators."""
        return self.results.annotators

    @property
    def disagreement(self) -> Floats:
        """How far the annotators of each example differ."""
        return self.results.disagreement

    @property
    def steepness(self) -> float:
        """How fast the weight of an example fell with disagreement."""
        return self.results.steepness

    @property
    def objective(self) -> Floats:
        """Log-likelihood plus log priors after every round."""
        return self.results.objective

    @property
    def converged(self) -> bool:
        """Whether the rounds ended as they should; False if `max_rounds` was given and did not suffice."""
        return self.results.converged

    @property
    def truth_check(self) -> TruthCheck | None:
        """How good the consensus is by the known answers, each held out; None without any."""
        check = self.results.truth_check
        assert check is None or isinstance(check, TruthCheck)
        return check

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The decisions that the fit took by itself, with score, limit and reason."""
        return self.results.choices

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
        """Warnings per annotator; annotators without any are left out."""
        return self.annotator_results.flags

    @property
    def vote_weight(self) -> Floats:
        """The mean share of a vote that each annotator's labels have: 1 unless they share with near copies."""
        assert self.annotator_results.vote_weight is not None
        return self.annotator_results.vote_weight

    @property
    def effective_votes(self) -> float:
        """How many independent votes the labels of an average example carry as much information as."""
        return self.annotator_results.effective_votes

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
        ending = f"{self.n_rounds}{'' if self.converged else ', not converged'}"
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
        known = self.accuracy[~np.isnan(self.accuracy)]
        accuracy = "estimated accuracy of annotators "
        accuracy += f"{known.min():.2f} to {known.max():.2f}" if len(known) else "unknown: no two share an example"
        return (
            f"Aggregation: {len(self.label):,} examples, {len(self.annotators):,} annotators, "
            f"{len(self.classes)} classes\n"
            f"  {self.n_rounds} rounds{'' if self.converged else ', not converged'}; {accuracy}{check}"
        )


def aggregate(
    labels: Any,
    *,
    truth: Any = None,
    kind: ClassKind = "class",
    consensus_by: ConsensusBy | None = None,
    informative_abstentions: bool = False,
    annotator_model: AnnotatorModel | None = None,
    errors_in_common: bool = True,
    groups: Any = None,
    steepness: float = 0.0,
    max_rounds: int | None = None,
    tol: float = 1e-5,
    verbose: int = 0,
    on_round: OnRound | None = None,
) -> Aggregation:
    """The consensus of labels without features, and the accuracy of every annotator.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes; a column per annotator, NaN or None where there is no label.
    truth : array-like of shape (n_examples,), series, mapping or frame, default=None
        The true classes of some examples, None or NaN elsewhere; if it has ids, they are those of the labels' examples.
        Their probability is 1, and the probabilities of all other examples are calibrated by them, each known answer
        held out. Annotators are estimated from labels alone.
    kind : {"class", "ordinal"}, default="class"
        Whether classes have an order, as stars do: numbers have theirs, that of anything else is declared with
        `labels.in_order` or `classes=`.
    consensus_by : {"mode", "median", "mean"} or None, default=None
        What is taken of the probabilities as the label: the most probable class; for classes with an order also the
        median (the default there), or the level nearest to the mean.
    informative_abstentions : bool, default=False
        Whether abstaining, as declared with ``abstain=``, is an answer of annotators that depends on the class. By
        default abstentions are left out.
    annotator_model : Shared, Confusion, OneCoin, Ordinal or None, default=None
        What is estimated of an annotator: a confusion matrix shrunk towards the crowd's (`Shared`, the default), one of
        their own, how often they are right, or how far they are above or below the truth (`Ordinal`). See
        `crowdwise.em`.
    errors_in_common : bool, default=True
        Whether annotators may have errors in common. If so, near copies share a vote, the rounds are few and anchored
        at the votes, and stated probabilities allow for correlated errors. False assumes independent errors, with
        rounds to convergence: the method of Dawid and Skene.
    groups : mapping, series or array-like, default=None
        Annotators who share one vote: a group by annotator's name, such as the family of a model, or one per annotator
        in their order. Annotators that are not named are alone. By default near copies are detected.
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all equally.
    max_rounds : int or None, default=None
        The most rounds; by default two, or a thousand if errors are taken to be independent.
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
    """
    check_rounds(max_rounds, tol)
    reporter = Reporter("aggregate", verbose, on_round)
    steepness, crowd = check_number("steepness", steepness), as_labels(labels)
    independent = not check_choice("errors_in_common", errors_in_common, (True, False))
    warn_if_no_abstentions(crowd, informative_abstentions)
    scale = scale_of(crowd, kind, consensus_by, informative_abstentions)
    answers = known_answers(truth, crowd, crowd)
    training = TrainingSet.of(crowd.examples, crowd, None, truth=answers, weighting=steepness > 0)
    model = scale.annotator_model(annotator_model)
    weight = example_weights(training.weighing_disagreement, steepness)
    with one_blas_thread():  # products here are too thin to be shared
        sharing = sharing_of(training, groups, independent=independent)
        counting = Counting(len(training.classes), sharing, scale.informative_abstentions, independent)
        patterns, counts, where = distinct_patterns(training.used_labels, weight)
        chunks = MemoryChunks.of(patterns, counts)
        report = reporter.rounds("labels")
        fit = fit_labels(chunks, counting, model, own_weight, max_rounds=max_rounds, tol=tol, report=report)
        fitted = fitted_annotators(crowd.annotators, training.active, training.classes, scale, fit)
        proba = chunks.gather(lambda chunk: fitted.stated(chunk, fit.posterior, fit.merit))
        proba = proba if where is None else proba[where]
        fitted, proba, check = calibrated(fitted, proba, training)
    reporter.done()
    warn_if_not_converged(fit, tol)
    return Aggregation(_results(training, fitted, fit, proba, check, steepness), fitted, crowd.frame_library)


def _results(
    training: TrainingSet,
    fitted: FittedAnnotators,
    fit: LabelsOnlyFit,
    of_used: Floats,
    check: TruthCheck | None,
    steepness: float,
) -> FitResults:
    """Results in the terms of the caller: all examples and all annotators."""
    labels = training.labels
    proba = np.tile(fitted.class_prior, (len(labels), 1))
    if fitted.answers.has_abstentions:  # which tell something about an example without labels too
        proba = fitted.proba(labels)
    proba[training.used] = of_used
    consensus = training.with_truth(fitted.as_consensus(labels.examples, proba))
    return FitResults(
        consensus,
        consensus,
        fitted.results(labels).against(labels, training.truth),
        training.disagreement,
        steepness,
        fit.objective,
        fit.converged,
        check and check.beside(consensus.confidence[training.unknown]),
        truth=training.truth,
        choices=fitted.choices,
    )


def distinct_patterns(labels: CrowdLabels, weight: Floats) -> tuple[CrowdLabels, Floats, Positions | None]:
    """Examples with the same labels taken together, where labels are complete and patterns few.

    An example per pattern, the sums of their weights, and the pattern of each example; None for the latter if examples
    are as they were.
    """
    n_classes = 0 if labels.classes is None else len(labels.classes)
    are_few = labels.n_annotators * math.log(max(n_classes, 2)) < math.log(max(len(labels) / 2, 1))
    if not (labels.is_complete and are_few):
        return labels, weight, None
    key = np.zeros(len(labels), dtype=np.int64)
    for column in labels.values.reshape(labels.shape).T:
        key = key * n_classes + column
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    return labels[first], np.bincount(where, weight).astype(np.float64), where
