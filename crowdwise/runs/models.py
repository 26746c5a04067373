"""What the user asked for -> the model that fits it, or an error where settings do not go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crowdwise._checks import check_choice, check_number
from crowdwise._limits import STEEPNESSES_BY_TRUTH
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName
from crowdwise.logistic.classifier import CrowdLogisticClassifier
from crowdwise.ridge.classifier import CrowdRidgeClassifierCV
from crowdwise.ridge.regressor import CrowdRidgeRegressor
from crowdwise.weights.curricula import named_curriculum

MODELS = ("auto", "logistic", "ridge", "labels-only")
Setting = float | str


@dataclass(frozen=True)
class Settings:
    """Which model is wanted, and how.

    Parameters
    ----------
    model : {"auto", "logistic", "ridge", "labels-only"}, default="auto"
        "auto" is logistic if there are features, else labels-only; ridge if known answers choose, and for ratings.
    steepness : float or "auto", default="auto"
        How fast an example's weight falls with disagreement; "auto" is 0, 2 for ratings, and chosen for ridge.
    l2 : float or "auto", default="auto"
        Strength of the penalty on coefficients, of logistic and ridge; "auto" is 1 for ratings.
    choose_by_truth : bool, default=False
        Whether known answers choose the steepness of ridge, which uses them then.
    use_truth : bool, default=False
        Whether known answers are used in the fit; by default they judge the result only.
    informative_abstentions : bool, default=False
        Whether abstaining is an answer that depends on the class; not for ridge.
    groups : sequence of sequences of str, default=()
        Annotators who share one vote: a sequence of names per group. By default copies are detected.
    curriculum : str, default="fixed"
        Of logistic and ridge, how weights change from round to round: "fixed", "fading", "smooth" or "self-paced", with
        numbers behind a colon, such as "fading:2" or "self-paced:0.5,1.2".
    """

    model: str = "auto"
    steepness: Setting = "auto"
    l2: Setting = "auto"
    choose_by_truth: bool = False
    use_truth: bool = False
    informative_abstentions: bool = False
    groups: Sequence[Sequence[str]] = ()
    curriculum: str = "fixed"

    def settled(self, *, features: bool, truth: bool, scale: ScaleName = "nominal") -> Settings:
        """The same with the model that "auto" stands for; raises if settings do not go together.

        Parameters
        ----------
        features, truth : bool
            Whether there are features, and known answers.
        scale : {"nominal", "ordinal", "interval"}, default="nominal"
            That of the labels; not ordinal for ridge.

        Returns
        -------
        settings : Settings

        Examples
        --------
        >>> from crowdwise.runs import Settings
        >>> Settings().settled(features=True, truth=False).model
        'logistic'
        """
        check_choice("model", self.model, MODELS)
        check_number("steepness", self.steepness, auto=True)
        check_number("l2", self.l2, auto=True)
        named_curriculum(self.curriculum)
        model = self.model
        if model == "auto":
            with_features = "ridge" if scale == "interval" or self.choose_by_truth else "logistic"
            model = with_features if features else "labels-only"
        if model != "labels-only" and not features:
            raise ValueError(
                f"the model {model} learns from features, and none are given. Name a file of them after the labels, or "
                "use --model labels-only."
            )
        for fault in (*self._faults_of_scale(model, scale), *self._faults_of_model(model)):
            raise ValueError(fault)
        use_truth = self.use_truth or self.choose_by_truth
        if use_truth and not truth:
            raise DataError("there are no known answers to use: add --truth FILE.")
        return replace(self, model=model, use_truth=use_truth)

    def _faults_of_scale(self, model: str, scale: ScaleName) -> Iterator[str]:
        """Why these settings are not for labels of this scale."""
        if scale == "ordinal" and model == "ridge":
            yield "the model ridge cannot use the order of classes; logistic and labels-only can."
        if scale != "interval":
            return
        if model == "logistic":
            yield "the model logistic is for classes; for ratings, use ridge or labels-only."
        if model == "labels-only" and (self.steepness, self.l2) != ("auto", "auto"):
            yield "ratings without features have no steepness and no l2."
        if self.choose_by_truth:
            yield "known answers choose among models of classes; ratings use them with --use-truth."
        if self.informative_abstentions:
            yield "models of ratings leave abstentions out."

    def _faults_of_model(self, model: str) -> Iterator[str]:
        """Why these settings are not for this model."""
        if model == "labels-only" and self.l2 != "auto":
            yield f"the model {model} has no l2; it belongs to the models logistic and ridge."
        if model == "labels-only" and self.curriculum != "fixed":
            yield f"the model {model} has no curriculum; it belongs to the models logistic and ridge."
        if model != "ridge" and self.choose_by_truth:
            yield f"known answers choose the steepness of the model ridge, not of {model}."
        if model == "ridge" and self.informative_abstentions:
            yield "the model ridge leaves abstentions out; logistic and labels-only can learn from them."

    def known_of(self, labels: CrowdLabels) -> CrowdLabels:
        """Labels with the groups and abstentions of these settings.

        Names of annotators are texts, whatever they are in the labels.
        """
        spelt = {str(name): name for name in labels.annotators.tolist()}
        group: dict[Any, int] = {}
        for number, names in enumerate(self.groups):
            for name in names:
                if group.setdefault(spelt.get(name, name), number) != number:
                    raise DataError(f"an annotator can be in one group only; {name!r} is in two.")
        labels = labels.with_groups(group) if group else labels
        return labels.with_abstentions() if self.informative_abstentions else labels


def estimator_of(settings: Settings, scale: ScaleName = "nominal") -> Any:
    """The model that is wanted, not fitted, of settings that are `settled`; None for labels alone.

    With a fixed seed, so that the same command gives the same result.

    Examples
    --------
    >>> from crowdwise.runs import Settings
    >>> from crowdwise.runs.models import estimator_of
    >>> estimator_of(Settings(model="logistic", steepness=2.0))
    CrowdLogisticClassifier(steepness=2.0)
    """
    if settings.model == "labels-only":
        return None
    options: dict[str, Any] = {}
    if settings.curriculum != "fixed":
        options = {"curriculum": named_curriculum(settings.curriculum), "random_state": 0}
    values = {"steepness": settings.steepness, "l2": settings.l2}
    given: dict[str, Any] = {name: value for name, value in values.items() if value != "auto"}
    if scale == "interval":
        return CrowdRidgeRegressor(**given, **options)
    if settings.model == "logistic":
        return CrowdLogisticClassifier(**given, **options)
    if settings.choose_by_truth:
        options["steepnesses"] = STEEPNESSES_BY_TRUTH
    listed = {"steepness": "steepnesses", "l2": "l2s"}
    return CrowdRidgeClassifierCV(**options | {listed[name]: (value,) for name, value in given.items()})
