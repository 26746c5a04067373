"""From files to answers: what the commands do, in one line of Python each."""

from crowdwise.runs._check import Check, check
from crowdwise.runs.inputs import Inputs, read_inputs
from crowdwise.runs.models import Settings
from crowdwise.runs.result_table import ResultTable
from crowdwise.runs.run import Run, fit, fit_inputs, is_run
from crowdwise.runs.saved_run import SavedRun, compare_runs, open_run

__all__ = [
    "Check",
    "Inputs",
    "ResultTable",
    "Run",
    "SavedRun",
    "Settings",
    "check",
    "compare_runs",
    "fit",
    "fit_inputs",
    "is_run",
    "open_run",
    "read_inputs",
]
