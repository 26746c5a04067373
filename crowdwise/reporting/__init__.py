"""A fit and its labels -> a report: one summary, and pages made from it."""

from crowdwise.reporting.report import render_html, render_json, render_markdown
from crowdwise.reporting.summarize import summarize, summary_lines

__all__ = ["render_html", "render_json", "render_markdown", "summarize", "summary_lines"]
