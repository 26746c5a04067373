"""Learn from annotators who disagree."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdwise.common_errors import errors_in_common
    from crowdwise.crowd.agreement import agreement, cohen_kappas, krippendorff_alpha
    from crowdwise.crowd.alternative_annotator import alternative_annotator_test
    from crowdwise.crowd.disagreement import disagreement
    from crowdwise.crowd.easiness import easiness
    from crowdwise.crowd.label_tables import label_statistics, tally_labels
    from crowdwise.diagnosis import diagnose
    from crowdwise.em.aggregate import aggregate
    from crowdwise.em.any_classifier import CrowdClassifier
    from crowdwise.em.logistic import CrowdLogisticClassifier
    from crowdwise.formats.read import read_labels
    from crowdwise.labels.align import align
    from crowdwise.labels.crowd_labels import CrowdLabels
    from crowdwise.model_file import load
    from crowdwise.model_selection import crowd_scorer
    from crowdwise.out_of_core.read import read_blocks
    from crowdwise.relabel import what_to_label_next
    from crowdwise.reporting.report import report
    from crowdwise.ridge.classifier import CrowdRidgeClassifier
    from crowdwise.ridge.classifier_cv import CrowdRidgeClassifierCV
    from crowdwise.ridge.regressor import CrowdRidgeRegressor
    from crowdwise.simulate import simulate_annotators
    from crowdwise.slices import slice_accuracy
    from crowdwise.theory import EasyFirstPerceptron
    from crowdwise.weights.curricula import Fading, Fixed, SelfPaced, Smooth

# Where each public name is; it is imported when it is first asked for, so that `crowdwise --help` starts at once.
_HOMES = {
    "CrowdClassifier": "em.any_classifier",
    "CrowdLabels": "labels.crowd_labels",
    "CrowdLogisticClassifier": "em.logistic",
    "CrowdRidgeClassifier": "ridge.classifier",
    "CrowdRidgeClassifierCV": "ridge.classifier_cv",
    "CrowdRidgeRegressor": "ridge.regressor",
    "EasyFirstPerceptron": "theory",
    "Fading": "weights.curricula",
    "Fixed": "weights.curricula",
    "SelfPaced": "weights.curricula",
    "Smooth": "weights.curricula",
    "aggregate": "em.aggregate",
    "agreement": "crowd.agreement",
    "align": "labels.align",
    "alternative_annotator_test": "crowd.alternative_annotator",
    "cohen_kappas": "crowd.agreement",
    "crowd_scorer": "model_selection",
    "diagnose": "diagnosis",
    "disagreement": "crowd.disagreement",
    "easiness": "crowd.easiness",
    "errors_in_common": "common_errors",
    "krippendorff_alpha": "crowd.agreement",
    "label_statistics": "crowd.label_tables",
    "load": "model_file",
    "read_blocks": "out_of_core.read",
    "read_labels": "formats.read",
    "report": "reporting.report",
    "simulate_annotators": "simulate",
    "slice_accuracy": "slices",
    "tally_labels": "crowd.label_tables",
    "what_to_label_next": "relabel",
}
_PACKAGES = ("datasets", "formats", "plots", "reporting", "theory")

__all__ = [
    "CrowdClassifier",
    "CrowdLabels",
    "CrowdLogisticClassifier",
    "CrowdRidgeClassifier",
    "CrowdRidgeClassifierCV",
    "CrowdRidgeRegressor",
    "EasyFirstPerceptron",
    "Fading",
    "Fixed",
    "SelfPaced",
    "Smooth",
    "aggregate",
    "agreement",
    "align",
    "alternative_annotator_test",
    "cohen_kappas",
    "crowd_scorer",
    "diagnose",
    "disagreement",
    "easiness",
    "errors_in_common",
    "krippendorff_alpha",
    "label_statistics",
    "load",
    "read_blocks",
    "read_labels",
    "report",
    "simulate_annotators",
    "slice_accuracy",
    "tally_labels",
    "what_to_label_next",
]

__version__ = "0.1.0"


if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(f"crowdwise.{_HOMES[name]}"), name)
        elif name in _PACKAGES:
            value = import_module(f"crowdwise.{name}")
        else:
            raise AttributeError(f"module 'crowdwise' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_PACKAGES})
