"""The pictures of a report with matplotlib, as displays in the manner of scikit-learn.

Each is made with `from_model`, keeps what it shows, draws it with `plot(ax=...)`, and has `ax_` and `figure_` then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from crowdwise._text import how_to_install
from crowdwise.exceptions import LabelError, MissingExtraError
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import shown
from crowdwise.reporting.agreement import pairs
from crowdwise.reporting.annotators import annotator_columns
from crowdwise.reporting.consensus import accuracies, classifier, quality
from crowdwise.reporting.disagreement import by_disagreement, margin
from crowdwise.reporting.fit import Fit

__all__ = [
    "AccuracyDisplay",
    "AnnotatorsDisplay",
    "ConfusionDisplay",
    "DisagreementDisplay",
    "EasyToHardDisplay",
    "KappaDisplay",
    "MarginDisplay",
]

# The two colours of the report, apart for everybody.
_BLUE, _ORANGE = "#0b5fa5", "#b84a00"
_MOST_ANNOTATORS = 40


class _Display:
    """What is shown, and how it comes onto axes."""

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : object
            Itself, with `ax_` and `figure_`.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise MissingExtraError(f"plots need matplotlib: {how_to_install('plot')}.") from None
            _, ax = pyplot.subplots()
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


class _FitDisplay(_Display):
    """What a fit and its labels are enough for."""

    @classmethod
    def from_model(cls, model: Any, labels: Any, *, ax: Any = None) -> Self:
        """Draw it for a fitted model or the result of `aggregate`.

        Parameters
        ----------
        model : estimator or FitResults
            What was fitted.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            The labels that it was fitted to.
        ax : matplotlib Axes, default=None
            Where to draw.

        Returns
        -------
        display : object
            Itself, with `ax_` and `figure_`.
        """
        return cls._of(Fit.of(model, labels)).plot(ax=ax)

    @classmethod
    def _of(cls, fit: Fit) -> Self:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class AccuracyDisplay(_Display):
    """Accuracies of consensus, majority vote and classifier on known answers, with 95% intervals.

    Parameters
    ----------
    quality : dict
        What a summary has under "quality"; with known answers.
    classifier : dict or None, default=None
        What a summary has under "classifier".

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.plots import AccuracyDisplay
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> AccuracyDisplay.from_model(aggregate(labels), labels, truth=["a", "b", "a", "b"]).ax_.get_xlabel()
    'accuracy on known answers'
    """

    quality: dict[str, Any]
    classifier: dict[str, Any] | None = None

    @classmethod
    def from_model(cls, model: Any, labels: Any, *, truth: Any, ax: Any = None) -> Self:
        """Draw it for a fitted model or the result of `aggregate`.

        Parameters
        ----------
        model : estimator or FitResults
            What was fitted.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            The labels that it was fitted to; classes.
        truth : array-like, series or mapping
            Right answers, as far as they are known.
        ax : matplotlib Axes, default=None
            Where to draw.

        Returns
        -------
        display : AccuracyDisplay
        """
        fit = _of_classes("AccuracyDisplay", model, labels, truth=truth)
        return cls(quality(fit), classifier(fit)).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        rows = accuracies(self.quality, self.classifier)
        for y, part in enumerate(rows.values()):
            ax.plot([part["low"], part["high"]], [y, y], color=_BLUE, alpha=0.5, linewidth=2.5)
            ax.plot([part["value"]], [y], "o", color=_BLUE)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.invert_yaxis()
        ax.set_xlabel("accuracy on known answers")


@dataclass(eq=False, repr=False)
class AnnotatorsDisplay(_FitDisplay):
    """The estimated accuracy of annotators with 95% intervals; of levels and ratings their expertise; best first.

    Parameters
    ----------
    columns : dict
        "annotator", and "accuracy" with "accuracy_low" and "accuracy_high", or "expertise".

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.plots import AnnotatorsDisplay
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> AnnotatorsDisplay.from_model(aggregate(labels), labels).ax_.get_xlabel()
    'estimated accuracy'
    """

    columns: dict[str, Any]

    @classmethod
    def _of(cls, fit: Fit) -> Self:
        return cls(annotator_columns(fit))

    def _draw(self, ax: Any) -> None:
        score = "accuracy" if "accuracy_low" in self.columns else "expertise"
        value = np.asarray(self.columns[score])
        order = np.argsort(-np.nan_to_num(value, nan=-1.0), kind="stable")
        order = order[~np.isnan(value[order])]
        if len(order) > _MOST_ANNOTATORS:  # the best and the worst
            order = np.concatenate([order[: _MOST_ANNOTATORS // 2], order[-_MOST_ANNOTATORS // 2 :]])
        y = np.arange(len(order))
        if score == "accuracy":
            ends = np.asarray(self.columns["accuracy_low"])[order], np.asarray(self.columns["accuracy_high"])[order]
            ax.hlines(y, *ends, color=_BLUE, alpha=0.5, linewidth=2.5)
            ax.set_xlim(0, 1)
        ax.plot(value[order], y, "o", color=_BLUE, markersize=4)
        ax.set_yticks(y, [str(self.columns["annotator"][i]) for i in order])
        ax.invert_yaxis()
        ax.set_xlabel("estimated accuracy" if score == "accuracy" else "expertise")


@dataclass(eq=False, repr=False)
class ConfusionDisplay(_Display):
    """What an annotator answers for examples of every class, as the fit estimates it.

    Parameters
    ----------
    confusion : ndarray of shape (n_classes, n_classes)
        Probability of saying c (last axis) if the truth is k.
    classes : sequence
        The classes.
    annotator : object
        Whose it is.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.plots import ConfusionDisplay
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> ConfusionDisplay.from_model(aggregate(labels), labels, annotator=2).ax_.get_title()
    'annotator 2'
    """

    confusion: Any
    classes: Any
    annotator: Any

    @classmethod
    def from_model(cls, model: Any, labels: Any, *, annotator: Any, ax: Any = None) -> Self:
        """Draw it for a fitted model or the result of `aggregate`.

        Parameters
        ----------
        model : estimator or FitResults
            What was fitted.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            The labels that it was fitted to; classes.
        annotator : object
            Name of the annotator.
        ax : matplotlib Axes, default=None
            Where to draw.

        Returns
        -------
        display : ConfusionDisplay
        """
        results = _of_classes("ConfusionDisplay", model, labels).results
        chosen = np.asarray(results.annotators == annotator)
        if not chosen.any():
            known = ", ".join(map(shown, results.annotators[:5]))
            raise LabelError(f"there is no annotator {shown(annotator)}; the annotators are {known}, ...")
        return cls(results.confusion[chosen][0], results.classes, annotator).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.imshow(self.confusion, cmap="Blues", vmin=0, vmax=1)
        for k, row in enumerate(np.asarray(self.confusion)):
            for c, share in enumerate(row):
                ax.text(
                    c, k, f"{100 * share:.0f}%", ha="center", va="center", color="white" if share > 0.6 else "black"
                )
        names = [str(name) for name in self.classes]
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(len(names)), names)
        ax.set(xlabel="answer", ylabel="class (estimated)", title=f"annotator {self.annotator}")


@dataclass(eq=False, repr=False)
class KappaDisplay(_Display):
    """Cohen's kappa of every pair of the annotators with the most labels, those first who agree most.

    Parameters
    ----------
    grid : dict
        "annotators" and "kappa", a list of rows with None where a pair shares too few examples.

    Examples
    --------
    >>> from crowdwise.plots import KappaDisplay
    >>> KappaDisplay.from_labels([["a", "a", "b"], ["b", "b", "b"]] * 6).ax_.get_title()
    "Cohen's kappa"
    """

    grid: dict[str, Any]

    @classmethod
    def from_labels(cls, labels: Any, *, ax: Any = None) -> Self:
        """Draw it for labels.

        Parameters
        ----------
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Classes.
        ax : matplotlib Axes, default=None
            Where to draw.

        Returns
        -------
        display : KappaDisplay
        """
        comparison = pairs(as_labels(labels))
        if comparison is None:
            raise LabelError("no two annotators share ten examples: there is no pair to compare.")
        return cls(comparison["grid"]).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        values = np.array([[np.nan if value is None else value for value in row] for row in self.grid["kappa"]])
        image = ax.imshow(values, cmap="RdBu", vmin=-1, vmax=1)
        ax.figure.colorbar(image, ax=ax)
        names = self.grid["annotators"]
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
        ax.set_title("Cohen's kappa")


@dataclass(eq=False, repr=False)
class DisagreementDisplay(_FitDisplay):
    """How many examples have how much disagreement, and what they weigh.

    Parameters
    ----------
    part : dict
        What a summary has under "disagreement".

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.plots import DisagreementDisplay
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> DisagreementDisplay.from_model(aggregate(labels), labels).ax_.get_ylabel()
    'examples'
    """

    part: dict[str, Any]

    @classmethod
    def _of(cls, fit: Fit) -> Self:
        return cls(by_disagreement(fit))

    def _draw(self, ax: Any) -> None:
        ax.stairs(self.part["counts"], self.part["edges"], fill=True, color=_BLUE)
        ax.set(xlabel="disagreement", ylabel="examples")
        weights = ax.twinx()
        weights.plot(*np.transpose(self.part["curve"]), color=_ORANGE)
        weights.set_ylim(0, 1.05)
        weights.set_ylabel("weight", color=_ORANGE)


@dataclass(eq=False, repr=False)
class MarginDisplay(_Display):
    """Distance from the model's boundary against disagreement: examples, and quartiles by level.

    Parameters
    ----------
    part : dict
        What a summary has under "margin".

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import CrowdRidgeClassifier, simulate_annotators
    >>> from crowdwise.plots import MarginDisplay
    >>> X, truth = make_blobs(100, centers=2, cluster_std=3.0, random_state=0)
    >>> labels = simulate_annotators(X, truth, random_state=0)
    >>> MarginDisplay.from_model(CrowdRidgeClassifier().fit(X, labels), labels, X).ax_.get_xlabel()
    'disagreement'
    """

    part: dict[str, Any]

    @classmethod
    def from_model(cls, model: Any, labels: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw it for a fitted classifier.

        Parameters
        ----------
        model : estimator
            What was fitted.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            The labels that it was fitted to; classes.
        X : array-like or sparse matrix of shape (n_examples, n_features)
            The features that it was fitted to.
        ax : matplotlib Axes, default=None
            Where to draw.

        Returns
        -------
        display : MarginDisplay
        """
        part = margin(_of_classes("MarginDisplay", model, labels, X=X))
        if part is None:
            raise LabelError("disagreement or the distance from the boundary does not vary: there is nothing to show.")
        return cls(part).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.plot(*np.transpose(self.part["points"]), ".", color=_BLUE, alpha=0.25)
        for level in self.part["levels"]:
            x = level["disagreement"]
            ax.plot([x, x], [level["low"], level["high"]], color=_BLUE, linewidth=2.5, alpha=0.6)
            ax.plot([x], [level["median"]], "o", color=_BLUE)
        title = "rank correlation {value:+.2f} ({low:+.2f} to {high:+.2f})".format(**self.part["correlation"])
        ax.set(xlabel="disagreement", ylabel="distance from the boundary", title=title)


@dataclass(eq=False, repr=False)
class EasyToHardDisplay(_FitDisplay):
    """Disagreement of the examples in their order from easy to hard.

    Parameters
    ----------
    disagreement : ndarray of shape (n_examples,)
        In that order.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.plots import EasyToHardDisplay
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> EasyToHardDisplay.from_model(aggregate(labels), labels).disagreement.tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    disagreement: Any

    @classmethod
    def _of(cls, fit: Fit) -> Self:
        return cls(fit.results.disagreement[fit.easy_to_hard])

    def _draw(self, ax: Any) -> None:
        ax.fill_between(np.arange(1, len(self.disagreement) + 1), self.disagreement, color=_BLUE, alpha=0.5)
        ax.set(xlabel="examples from easy to hard", ylabel="disagreement", ylim=(0, None))


def _of_classes(display: str, model: Any, labels: Any, **known: Any) -> Fit:
    """A fit of classes; an error for ratings."""
    fit = Fit.of(model, labels, **known)
    if fit.results.classes is None:
        raise LabelError(f'{display} needs classes, and these labels are numbers (scale="interval").')
    return fit
