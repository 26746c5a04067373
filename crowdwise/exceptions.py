"""Errors and warnings, all on one screen."""

from sklearn.exceptions import ConvergenceWarning


class DataError(ValueError):
    """The data given cannot be used as they are; the message says where and what to do."""


class LabelError(DataError):
    """A label, or the place of a label, is not what was declared or expected."""


class AlignmentError(DataError):
    """The examples of the features and of the labels are not the same ones."""


class BoundError(DataError):
    """Margins, radius or regions that no sequence of examples can have."""


class CrowdWarning(UserWarning):
    """Something worth knowing about labels or a fit; the result is still right."""


class CrowdConvergenceWarning(CrowdWarning, ConvergenceWarning):
    """The rounds stopped before they settled."""
