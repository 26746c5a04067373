"""Learn from annotators who disagree."""

from crowdwise.crowd.agreement import cohen_kappas, krippendorff_alpha
from crowdwise.crowd.disagreement import disagreement
from crowdwise.crowd.easiness import easiness
from crowdwise.diagnosis import diagnose
from crowdwise.em.aggregate import aggregate
from crowdwise.em.any_classifier import CrowdClassifier
from crowdwise.em.logistic import CrowdLogisticClassifier
from crowdwise.labels.align import align
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.model_selection import crowd_scorer
from crowdwise.ridge.classifier import CrowdRidgeClassifier
from crowdwise.ridge.classifier_cv import CrowdRidgeClassifierCV
from crowdwise.ridge.regressor import CrowdRidgeRegressor
from crowdwise.simulate import simulate_annotators
from crowdwise.theory import EasyFirstPerceptron
from crowdwise.weights.curricula import Fading, Fixed, SelfPaced, Smooth

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
    "align",
    "cohen_kappas",
    "crowd_scorer",
    "diagnose",
    "disagreement",
    "easiness",
    "krippendorff_alpha",
    "simulate_annotators",
]

__version__ = "0.1.0"
