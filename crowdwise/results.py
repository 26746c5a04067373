"""What every fitted model says about the examples and the annotators of its fit: one meaning for all models.

All arrays are read-only: ``.copy()`` gives one of your own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from crowdwise._arrays import Array, Floats, FrozenArrays, ratio, read_only
from crowdwise._text import table
from crowdwise.choices import Choice
from crowdwise.consensus import Consensus, RatingConsensus
from crowdwise.crowd.easy_weights import easiness
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.frames import make_frame
from crowdwise.truths.check import RatingCheck, TruthCheck

Flags = dict[Any, tuple[str, ...]]


@dataclass(frozen=True, repr=False, eq=False)
class AnnotatorResults(FrozenArrays):
    """How far each annotator can be trusted.

    Parameters
    ----------
    annotators : ndarray of shape (n_annotators,)
        Their names.
    n_labels : ndarray of shape (n_annotators,)
        How many labels each gave.
    expertise : ndarray of shape (n_annotators,)
        A precision: one over the mean squared error of their labels, coded as in the paper (two different classes
        are 4 apart). Larger is better; NaN for annotators without labels.
    accuracy : ndarray of shape (n_annotators,) or None
        Estimated probability of being right about an example; NaN for annotators without labels, None for ratings.
    flags : dict from annotator to tuple of str
        Warnings per annotator; annotators without any are left out.
    offset : ndarray of shape (n_annotators,) or None, default=None
        For labels with an order: how many levels above the truth their labels are on average, negative if below.
    spread : ndarray of shape (n_annotators,) or None, default=None
        For labels with an order: the standard deviation of their labels around that, in levels.
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
    """

    annotators: Array
    n_labels: Array
    expertise: Floats
    accuracy: Floats | None
    flags: Flags
    offset: Floats | None = None
    spread: Floats | None = None
    abstention: Floats | None = None
    vote_weight: Floats | None = None
    effective_votes: float = np.nan
    n_truths: Array | None = None
    truth_accuracy: Floats | None = None

    def against(self, labels: CrowdLabels, truth: Array | None) -> Self:
        """The same, with how often each is right about the examples whose class is known.

        `truth` has the known answers of all examples, as `known_answers` gives them. Of ratings nothing is added.
        """
        if truth is None or labels.classes is None or not (truth >= 0).any():
            return self
        answer = truth[labels.example_index]
        known = (answer >= 0).astype(np.float64)
        n_truths = labels.sum_per_annotator(known)
        right = labels.sum_per_annotator(known * (labels.values == answer))
        return replace(self, n_truths=n_truths.astype(np.int64), truth_accuracy=ratio(right, n_truths, np.nan))

    def __len__(self) -> int:
        return len(self.annotators)

    def __repr__(self) -> str:
        known = self.expertise[~np.isnan(self.expertise)]
        span = f"; expertise {known.min():.3g} to {known.max():.3g}" if len(known) else ""
        return f"AnnotatorResults: {len(self):,} annotators, {len(self.flags):,} of them flagged{span}"

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row per annotator.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        columns: dict[str, Any] = {
            "annotator": self.annotators,
            "labels": self.n_labels,
            "expertise": self.expertise,
            "accuracy": self.accuracy,
            "truths": self.n_truths,
            "truth_accuracy": self.truth_accuracy,
            "offset": self.offset,
            "spread": self.spread,
            "flags": ["; ".join(self.flags.get(name, ())) for name in self.annotators.tolist()],
        }
        return make_frame({name: column for name, column in columns.items() if column is not None}, library)


def results_html(consensus: Consensus | RatingConsensus, annotators: AnnotatorResults, ending: str) -> str:
    """What notebooks show of a fit: how sure it is, and the annotators that stand out."""
    sure = consensus.confidence if isinstance(consensus, Consensus) else consensus.std
    what = "confidence" if isinstance(consensus, Consensus) else "standard deviation"
    facts = [
        [f"{len(consensus):,} examples", f"mean {what} {sure.mean():.3g}"],
        [f"{len(annotators):,} annotators", f"{len(annotators.flags):,} flagged"],
        ["rounds", ending],
    ]
    return table(facts) + _annotators_html(annotators)


def _annotators_html(annotators: AnnotatorResults) -> str:
    """The annotators that stand out."""
    order = np.argsort(-np.nan_to_num(annotators.expertise, nan=-1.0), kind="stable")
    shown = order if len(order) <= 6 else np.concatenate([order[:3], order[-3:]])
    accuracy = annotators.accuracy
    rows = [
        [
            annotators.annotators[i],
            int(annotators.n_labels[i]),
            float(annotators.expertise[i]),
            None if accuracy is None else float(accuracy[i]),
            "; ".join(annotators.flags.get(annotators.annotators[i], ())),
        ]
        for i in shown
    ]
    head = ["annotator", "labels", "expertise", "" if accuracy is None else "estimated accuracy", ""]
    return table(rows, head=head, title="Annotators of the highest and lowest expertise")


def _attributes(annotators: AnnotatorResults, steepness: float, objective: Floats, converged: bool) -> dict[str, Any]:
    """The attributes of fitted models that are not about single examples, by name."""
    total = np.nansum(annotators.expertise)
    found = {
        "steepness_": steepness,
        "annotators_": annotators.annotators,
        "expertise_": annotators.expertise,
        "expertise_share_": read_only(np.nan_to_num(annotators.expertise) / total),
        "annotator_flags_": annotators.flags,
        "vote_weight_": annotators.vote_weight,
        "effective_votes_": annotators.effective_votes,
        "n_rounds_": len(objective),
        "converged_": converged,
        "objective_": objective,
    }
    optional = {
        "accuracy_": annotators.accuracy,
        "offset_": annotators.offset,
        "spread_": annotators.spread,
        "abstention_": annotators.abstention,
        "truth_accuracy_": annotators.truth_accuracy,
    }
    return found | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, repr=False, eq=False)
class FitResults(FrozenArrays):
    """What a fit found out about its examples and annotators.

    Parameters
    ----------
    consensus : Consensus or RatingConsensus
        By labels and model together, the model's part being out of fold: of one that has not seen the example.
    label_consensus : Consensus or RatingConsensus
        By labels alone; by the model alone for examples without labels.
    annotators : AnnotatorResults
        Scores and flags of the annotators.
    disagreement : ndarray of shape (n_examples,)
        How far the annotators of each example differ.
    steepness : float
        How fast easiness falls with it.
    objective : ndarray of shape (n_rounds,)
        One value per round.
    converged : bool
        Whether the rounds settled.
    truth_check : TruthCheck, RatingCheck or None, default=None
        How good the consensus is by the truths that the fit was given, each held out; None without truths.
    model_proba : ndarray of shape (n_examples, n_classes) or None, default=None
        Probabilities by the classifier alone, each example's from a model that has not seen it; None without one.
    truth : ndarray of shape (n_examples,) or None, default=None
        Known answers that the fit was given: positions of classes, -1 where unknown, or ratings, NaN there.
    choices : tuple of Choice, default=()
        The decisions that the fit took by itself.
    """

    consensus: Consensus | RatingConsensus
    label_consensus: Consensus | RatingConsensus
    annotators: AnnotatorResults
    disagreement: Floats
    steepness: float
    objective: Floats
    converged: bool
    truth_check: TruthCheck | RatingCheck | None = None
    model_proba: Floats | None = None
    truth: Array | None = None
    choices: tuple[Choice, ...] = ()

    def __repr__(self) -> str:
        ending = "converged" if self.converged else "not converged"
        return (
            f"FitResults: {len(self.consensus):,} examples, {len(self.annotators):,} annotators, "
            f"{len(self.objective)} rounds, {ending}"
        )

    def _repr_html_(self) -> str:
        ending = f"{len(self.objective)}, {'converged' if self.converged else 'not converged'}"
        return results_html(self.consensus, self.annotators, ending)

    def attributes(self) -> dict[str, Any]:
        """The attributes that every fitted model has, by name."""
        found = _attributes(self.annotators, self.steepness, self.objective, self.converged) | {
            "examples_": self.consensus.examples,
            "disagreement_": self.disagreement,
            "easiness_": read_only(easiness(self.disagreement, self.steepness)),
            "consensus_": self.consensus.label,
            "label_consensus_": self.label_consensus.label,
            "truth_check_": self.truth_check,
            "choices_": self.choices,
        }
        if isinstance(self.consensus, RatingConsensus):
            return found | {"consensus_std_": self.consensus.std}
        assert isinstance(self.label_consensus, Consensus)
        if self.consensus.mean is not None:
            found["consensus_mean_"] = self.consensus.mean
        return found | {
            "classes_": self.consensus.classes,
            "consensus_proba_": self.consensus.proba,
            "consensus_confidence_": self.consensus.confidence,
            "label_proba_": self.label_consensus.proba,
        }


# What a model says about single examples of its fit.
ABOUT_EXAMPLES = frozenset(
    {
        "consensus_",
        "consensus_confidence_",
        "consensus_mean_",
        "consensus_proba_",
        "consensus_std_",
        "disagreement_",
        "easiness_",
        "examples_",
        "label_consensus_",
        "label_proba_",
        "label_score_",
    }
)


@dataclass(frozen=True, repr=False, eq=False)
class StreamResults(FrozenArrays):
    """What a model that learned from a stream found out: about its annotators, for examples are not kept.

    Parameters
    ----------
    annotators : AnnotatorResults
        Scores and flags of the annotators.
    n_examples : int
        How many examples there were.
    steepness : float
        How fast easiness falls with disagreement.
    objective : ndarray of shape (n_rounds,)
        One value per round.
    converged : bool
        Whether the rounds settled.
    """

    annotators: AnnotatorResults
    n_examples: int
    steepness: float
    objective: Floats
    converged: bool

    def __repr__(self) -> str:
        ending = "converged" if self.converged else "not converged"
        return (
            f"StreamResults: {self.n_examples:,} examples, {len(self.annotators):,} annotators, "
            f"{len(self.objective)} rounds, {ending}"
        )

    def _repr_html_(self) -> str:
        facts = [
            [f"{self.n_examples:,} examples", "of a stream, not kept"],
            ["rounds", f"{len(self.objective)}, {'converged' if self.converged else 'not converged'}"],
        ]
        return table(facts) + _annotators_html(self.annotators)

    def attributes(self) -> dict[str, Any]:
        """The attributes that every model has after learning from a stream, by name."""
        return _attributes(self.annotators, self.steepness, self.objective, self.converged)
