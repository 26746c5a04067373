"""Labels -> numbers about examples and annotators, without features."""

from crowdwise.crowd._disagreement import disagreement, easiness
from crowdwise.crowd.alternative_annotator import alternative_annotator_test
from crowdwise.crowd.coefficients import krippendorff_alpha
from crowdwise.crowd.kappas import cohen_kappas

__all__ = [
    "alternative_annotator_test",
    "cohen_kappas",
    "disagreement",
    "easiness",
    "krippendorff_alpha",
]
