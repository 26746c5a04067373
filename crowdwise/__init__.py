"""Learn from annotators who disagree."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdwise.crowd._agreement import agreement
    from crowdwise.diagnosis import diagnose
    from crowdwise.em.aggregate import aggregate
    from crowdwise.em.any_classifier import CrowdClassifier
    from crowdwise.formats._read import read_labels
    from crowdwise.labels._align import align
    from crowdwise.labels.crowd_labels import CrowdLabels
    from crowdwise.logistic.classifier import CrowdLogisticClassifier
    from crowdwise.model_file import load
    from crowdwise.rates import rate
    from crowdwise.reporting.report import report
    from crowdwise.results._error_correlation import error_correlation
    from crowdwise.results.suggest import suggest_labels
    from crowdwise.ridge.classifier import CrowdRidgeClassifier, CrowdRidgeClassifierCV
    from crowdwise.ridge.regressor import CrowdRidgeRegressor
    from crowdwise.rows.read import read_blocks
    from crowdwise.session.session import Session
    from crowdwise.simulate import simulate_annotators
    from crowdwise.slices import slice_accuracy

# Names for everyday work, and where each is; imported when first asked for, so that `crowdwise --help` starts at once.
_HOMES = {
    "CrowdClassifier": "em.any_classifier",
    "CrowdLabels": "labels.crowd_labels",
    "CrowdLogisticClassifier": "logistic.classifier",
    "CrowdRidgeClassifier": "ridge.classifier",
    "CrowdRidgeClassifierCV": "ridge.classifier",
    "CrowdRidgeRegressor": "ridge.regressor",
    "Session": "session.session",
    "aggregate": "em.aggregate",
    "agreement": "crowd._agreement",
    "align": "labels._align",
    "diagnose": "diagnosis",
    "error_correlation": "results._error_correlation",
    "load": "model_file",
    "rate": "rates",
    "read_blocks": "rows.read",
    "read_labels": "formats._read",
    "report": "reporting.report",
    "simulate_annotators": "simulate",
    "slice_accuracy": "slices",
    "suggest_labels": "results.suggest",
}
# The other public names, by subject; docs/api.rst lists them.
_ROOMS = ("crowd", "datasets", "em", "formats", "model_selection", "paper", "plots", "reporting", "results", "weights")

__all__ = [
    "CrowdClassifier",
    "CrowdLabels",
    "CrowdLogisticClassifier",
    "CrowdRidgeClassifier",
    "CrowdRidgeClassifierCV",
    "CrowdRidgeRegressor",
    "Session",
    "aggregate",
    "agreement",
    "align",
    "diagnose",
    "error_correlation",
    "load",
    "rate",
    "read_blocks",
    "read_labels",
    "report",
    "simulate_annotators",
    "slice_accuracy",
    "suggest_labels",
]

__version__ = "0.1.0"


if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(f"crowdwise.{_HOMES[name]}"), name)
        elif name in _ROOMS:
            value = import_module(f"crowdwise.{name}")
        else:
            raise AttributeError(f"module 'crowdwise' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_ROOMS})
