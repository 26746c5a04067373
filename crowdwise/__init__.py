"""Learn from annotators who disagree."""

from crowdwise.aggregation import aggregate
from crowdwise.agreement import cohen_kappas, krippendorff_alpha
from crowdwise.curricula import Fading, Fixed, SelfPaced, Smooth
from crowdwise.diagnosis import diagnose
from crowdwise.disagreement import disagreement
from crowdwise.easiness import curriculum_order, easiness
from crowdwise.inputs import align, as_labels
from crowdwise.labels import CrowdLabels
from crowdwise.model_selection import CrowdKFold, crowd_scorer
from crowdwise.models.any_classifier import CrowdClassifier
from crowdwise.models.logistic import CrowdLogisticClassifier
from crowdwise.models.ridge import CrowdRidgeClassifier
from crowdwise.models.ridge_cv import CrowdRidgeClassifierCV
from crowdwise.models.ridge_regressor import CrowdRidgeRegressor
from crowdwise.simulate import flip_score, simulate_annotators
from crowdwise.theory import EasyFirstPerceptron

__all__ = [
    "CrowdClassifier",
    "CrowdKFold",
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
    "align",
    "as_labels",
    "cohen_kappas",
    "crowd_scorer",
    "curriculum_order",
    "diagnose",
    "disagreement",
    "easiness",
    "flip_score",
    "krippendorff_alpha",
    "simulate_annotators",
]

__version__ = "0.1.0"
