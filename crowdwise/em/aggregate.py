"""Labels alone -> consensus: how annotators answer and the classes, estimated together without features."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from crowdwise._arrays import Floats, Positions
from crowdwise._checks import check_choice, check_number, check_rounds
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import example_weights
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.fitted import calibrated, counting_of, fit_results, fitted_annotators
from crowdwise.em.labels_only import fit_labels, warn_if_not_converged
from crowdwise.em.ordinal import model_of_annotators
from crowdwise.em.ratings import fit_ratings, rating_results
from crowdwise.labels._align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import known_answers
from crowdwise.results.fit_results import FitResults
from crowdwise.rows.chunks import MemoryChunks
from crowdwise.training_set import TrainingSet


def aggregate(
    labels: Any,
    *,
    truth: Any = None,
    annotator_model: AnnotatorModel | None = None,
    errors_in_common: bool = True,
    steepness: float = 0.0,
    max_rounds: int | None = None,
    tol: float = 1e-5,
    verbose: int = 0,
    on_round: OnRound | None = None,
) -> FitResults:
    """The consensus of labels without features, and the accuracy of every annotator.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        A column per annotator, NaN or None where there is no label. What is known about labels comes with them: an
        order of classes and how the label is chosen (`with_scale`), annotators who share a vote (`with_groups`; by
        default near copies are detected), abstentions that depend on the class (`with_abstentions`). For ratings
        (``scale="interval"``) the true rating is estimated with each annotator's offset, slope and error
        (`results.raters`).
    truth : array-like of shape (n_examples,), series, mapping or frame, default=None
        The true classes of some examples, None or NaN elsewhere; if it has ids, they are those of the labels' examples.
        Their probability is 1, and the probabilities of all other examples are calibrated by them, each known answer
        held out. Annotators are estimated from labels alone.
    annotator_model : Shared, Confusion, OneCoin, Ordinal or None, default=None
        What is estimated for each annotator: a confusion matrix shrunk towards the crowd's (`Shared`, the default), a
        separate one, how often they are right, or how far they are above or below the truth (`Ordinal`). See
        `crowdwise.em`.
    errors_in_common : bool, default=True
        Whether annotators may make the same errors. If so, near copies share a vote, the rounds are few and anchored
        at the votes, and stated probabilities allow for correlated errors. False assumes independent errors, with
        rounds to convergence: the method of Dawid and Skene.
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all equally.
    max_rounds : int or None, default=None
        Maximum number of rounds; by default two, or a thousand if errors are assumed to be independent.
    tol : float, default=1e-05
        Stop when the probabilities of the average example change by no more than this.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.
    on_round : callable, default=None
        Called with a `Round` after every round: number, objective, change, seconds and stage.

    Returns
    -------
    results : FitResults
        In the order of the labels' examples: `results.consensus_frame()` has their identifiers beside the results.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> result = aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> result.label.tolist(), int(result.accuracy.argmin())
    ([1, 0, 1, 0, 1], 2)
    """
    check_rounds(max_rounds, tol)
    reporter = Reporter("aggregate", verbose, on_round)
    steepness, crowd = check_number("steepness", steepness), as_labels(labels, scale=None)
    independent = not check_choice("errors_in_common", errors_in_common, (True, False))
    answers = known_answers(truth, crowd, crowd)
    training = TrainingSet.of(crowd.examples, crowd, None, truth=answers, weighting=steepness > 0, one_class=True)
    if crowd.classes is None:
        if steepness or annotator_model is not None:
            raise ValueError("steepness and annotator_model are for classes, and these labels are numbers.")
        raters = fit_ratings(crowd, max_rounds=max_rounds, tol=tol, report=reporter.rounds("ratings"))
        reporter.done()
        return rating_results(training, raters)
    model = model_of_annotators(annotator_model, crowd)
    weight = example_weights(training.weighing_disagreement, steepness)
    with one_blas_thread():  # products here are too thin to be shared
        counting = counting_of(crowd, training.used_labels, independent=independent)
        patterns, counts, where = distinct_patterns(training.used_labels, weight)
        chunks = MemoryChunks.of(patterns, counts)
        report = reporter.rounds("labels")
        fit = fit_labels(chunks, counting, model, max_rounds=max_rounds, tol=tol, report=report)
        fitted = fitted_annotators(crowd, training.active, fit)
        of_used = chunks.gather(lambda chunk: fitted.stated(chunk, fit.posterior, fit.merit))
        fitted, of_used, check = calibrated(fitted, of_used if where is None else of_used[where], training)
        proba = np.tile(fitted.class_prior, (len(crowd), 1))
        if fitted.answers.has_abstentions:  # which are evidence about an example without labels too
            proba = fitted.proba(crowd)
        proba[training.used] = of_used
    reporter.done()
    warn_if_not_converged(fit, tol)
    results = fit_results(training, fitted, fit, proba, check, steepness=steepness)
    return replace(results, frame_library=crowd.frame_library)


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
