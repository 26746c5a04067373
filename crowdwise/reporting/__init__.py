"""A fit and its labels -> a report: one summary, and pages made from it."""

from crowdwise.reporting.summarize import summarize
from crowdwise.reporting.words import summary_lines

__all__ = ["summarize", "summary_lines"]
