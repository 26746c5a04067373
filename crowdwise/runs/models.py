"""Labels, perhaps features, and what the user wants -> a fitted model, or the result of `aggregate`."""

from __future__ import annotations

from typing import Any

from crowdwise.checks import check_choice, check_number
from crowdwise.em.aggregate import aggregate
from crowdwise.em.any_classifier import CrowdClassifier
from crowdwise.em.logistic import CrowdLogisticClassifier
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.classifier_cv import PAPER_L2S, CrowdRidgeClassifierCV

MODELS = ("auto", "logistic", "ridge", "forest", "labels-only")
Setting = float | str


def choose_model(model: str, *, features: bool, by_truth: bool = False) -> str:
    """The model that "auto" stands for, or the one named.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    features : bool
        Whether there are features.
    by_truth : bool, default=False
        Whether known answers choose the steepness.

    Returns
    -------
    model : str

    Examples
    --------
    >>> from crowdwise.runs.models import choose_model
    >>> choose_model("auto", features=True), choose_model("auto", features=False)
    ('logistic', 'labels-only')
    """
    check_choice("model", model, MODELS)
    if model == "auto":
        model = "ridge" if by_truth else "logistic"
        return model if features else "labels-only"
    if model != "labels-only" and not features:
        raise DataError(
            f"the model {model} learns from features, and none are given. Name a file of them after the labels, or use "
            "--model labels-only."
        )
    return model


def fit_model(
    labels: CrowdLabels,
    X: Any = None,
    *,
    model: str = "auto",
    steepness: Setting = "auto",
    l2: Setting = "auto",
    truth: dict[Any, Any] | None = None,
) -> Any:
    """Fit the model that is wanted.

    Parameters
    ----------
    labels : CrowdLabels
        Who said what.
    X : array or sparse matrix of shape (n_examples, n_features), default=None
        Features of the same examples.
    model : {"auto", "logistic", "ridge", "forest", "labels-only"}, default="auto"
        "auto" is logistic if there are features, else labels-only.
    steepness : float or "auto", default="auto"
        How fast an example's weight falls with disagreement.
    l2 : float or "auto", default="auto"
        Strength of the penalty on coefficients, of logistic and ridge.
    truth : dict from example to label, default=None
        Known answers that choose the steepness of ridge.

    Returns
    -------
    fitted : estimator or Aggregation

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.runs.models import fit_model
    >>> fit_model(CrowdLabels.from_matrix([[1, 1, 0], [0, 0, 0], [1, 1, 1]])).label.tolist()
    [1, 0, 1]
    """
    check_number("steepness", steepness, auto=True)
    check_number("l2", l2, auto=True)
    model = choose_model(model, features=X is not None, by_truth=truth is not None)
    if truth is not None and model != "ridge":
        raise DataError("known answers choose the steepness of the model ridge only: --model ridge --choose-by-truth.")
    if l2 != "auto" and model not in ("logistic", "ridge"):
        raise DataError(f"the model {model} has no l2; it belongs to the models logistic and ridge.")
    if model == "labels-only":
        return aggregate(labels, steepness=0.0 if steepness == "auto" else float(steepness))
    if model == "logistic":
        return CrowdLogisticClassifier(steepness, l2=l2).fit(X, labels)  # type: ignore[arg-type]
    if model == "ridge":
        return _ridge(steepness, l2, choose=truth is not None).fit(X, labels, truth=truth)
    from sklearn.ensemble import RandomForestClassifier  # slow to import

    return CrowdClassifier(RandomForestClassifier(), steepness=steepness, random_state=0).fit(X, labels)  # type: ignore[arg-type]


def _ridge(steepness: Setting, l2: Setting, *, choose: bool) -> CrowdRidgeClassifierCV:
    candidates: Any = "auto" if steepness == "auto" else (float(steepness),)
    if choose and steepness == "auto":
        candidates = (0.0, 1.0, 2.0, 3.0, 5.0)
    return CrowdRidgeClassifierCV(candidates, l2s=PAPER_L2S if l2 == "auto" else (float(l2),))
