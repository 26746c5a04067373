"""Errors and warnings, all on one screen."""

import os
import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

_HOME = os.path.dirname(__file__) + os.sep


class DataError(ValueError):
    """The data given cannot be used as they are; the message has the place and what to do."""


class LabelError(DataError):
    """A label, or the place of a label, is not what was declared or expected."""


class AlignmentError(DataError):
    """The examples of the features and of the labels are not the same ones."""


class ModelFileError(DataError):
    """A model cannot be kept in a file, or a file is damaged, no model or of a newer version; the message has it."""


class BoundError(DataError):
    """Margins, radius or regions that no sequence of examples can have."""


class CrowdWarning(UserWarning):
    """Something worth knowing about labels or a fit; the result is still right."""


class CrowdConvergenceWarning(CrowdWarning, ConvergenceWarning):
    """The rounds stopped before they settled."""


class MissingDataError(FileNotFoundError):
    """A data set is not in the data directory and could not be fetched; the message has the file and its place."""


class MissingExtraError(ImportError):
    """An optional package is needed here; the message names the extra to install."""


class OutputError(OSError):
    """The results cannot be written where they should go."""


class BusyError(RuntimeError):
    """Another process is at work in the same place, or on a file that is being read."""


class WorkerError(RuntimeError):
    """A process that did part of the work was ended from outside; the message has what is kept."""


def warn(message: str, category: type[Warning] = CrowdWarning) -> None:
    """Warn, and blame the line outside this package that led here, however deep the call is."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
