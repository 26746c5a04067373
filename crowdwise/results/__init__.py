"""What a fit found out: one record for `aggregate` and all models, and what can be asked of it."""

from crowdwise.results._error_correlation import ErrorCorrelation, error_correlation
from crowdwise.results.compare import Comparison, compare
from crowdwise.results.consensus import Consensus, RatingConsensus
from crowdwise.results.fit_results import Choice, FitResults
from crowdwise.results.suggest import NextLabels, suggest_labels

__all__ = [
    "Choice",
    "Comparison",
    "Consensus",
    "ErrorCorrelation",
    "FitResults",
    "NextLabels",
    "RatingConsensus",
    "compare",
    "error_correlation",
    "suggest_labels",
]
