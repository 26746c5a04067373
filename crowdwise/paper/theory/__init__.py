"""Why easy examples first: the perceptron, its mistake bounds, and margins estimated from annotators."""

from crowdwise.paper.theory.alignment import alignment_expertise
from crowdwise.paper.theory.balls import ball_averages, ball_radii, simulate_ball_annotators
from crowdwise.paper.theory.bounds import (
    Regions,
    break_even_spread,
    count_regions,
    deviation,
    equal_mistakes_bound,
    improvement,
    noisy_bound,
    novikoff_bound,
    regions,
    spread_bound,
)
from crowdwise.paper.theory.counted import MistakeBound, laguerre_samuelson, mistake_bound, noise_factors, progress
from crowdwise.paper.theory.inputs import label_signs, weighted_majority
from crowdwise.paper.theory.margins import (
    MarginEstimates,
    estimate_labels,
    estimate_margins,
    margin_upper_bounds,
    nested_ball_margins,
)
from crowdwise.paper.theory.online import feed
from crowdwise.paper.theory.perceptron import EasyFirstPerceptron

__all__ = [
    "EasyFirstPerceptron",
    "MarginEstimates",
    "MistakeBound",
    "Regions",
    "alignment_expertise",
    "ball_averages",
    "ball_radii",
    "break_even_spread",
    "count_regions",
    "deviation",
    "equal_mistakes_bound",
    "estimate_labels",
    "estimate_margins",
    "feed",
    "improvement",
    "label_signs",
    "laguerre_samuelson",
    "margin_upper_bounds",
    "mistake_bound",
    "nested_ball_margins",
    "noise_factors",
    "noisy_bound",
    "novikoff_bound",
    "progress",
    "regions",
    "simulate_ball_annotators",
    "spread_bound",
    "weighted_majority",
]
