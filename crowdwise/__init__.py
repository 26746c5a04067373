"""Learn from annotators who disagree."""

from crowdwise.disagreement import disagreement
from crowdwise.easiness import curriculum_order, easiness
from crowdwise.inputs import align, as_labels
from crowdwise.labels import CrowdLabels
from crowdwise.simulate import flip_score, simulate_annotators
from crowdwise.theory import EasyFirstPerceptron

__all__ = [
    "CrowdLabels",
    "EasyFirstPerceptron",
    "align",
    "as_labels",
    "curriculum_order",
    "disagreement",
    "easiness",
    "flip_score",
    "simulate_annotators",
]

__version__ = "0.1.0"
