"""CrowdClassifier around logistic regression: is its consensus better than the majority's, and at which steepness?"""

from __future__ import annotations

import warnings

import numpy as np
from crowd_sets import WITH_FEATURES, load
from sklearn.linear_model import LogisticRegression
from tables import Place, Run, parser

from crowdwise import CrowdClassifier
from crowdwise.exceptions import CrowdWarning

STEEPNESSES = (0.0, 2.0, 5.0)
PLACE = Place("docs/evidence/weighting.md", "any_classifier")
COLUMNS = ("crowd", "majority vote", *(f"steepness {steepness:g}" for steepness in STEEPNESSES))


def row(name: str) -> list[str]:
    """Accuracies of the consensus."""
    data = load(name)
    models = [CrowdClassifier(LogisticRegression(C=0.1, max_iter=2000), steepness=each) for each in STEEPNESSES]
    answers = [data.labels.majority(), *(model.fit(data.X, data.labels).consensus_ for model in models)]
    return [name, *(f"{np.mean(answer == data.truth):.3f}" for answer in answers)]


def main() -> None:
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACE])
    run.table(PLACE, COLUMNS, [row(name) for name in (("medical_cause",) if options.quick else WITH_FEATURES)])


if __name__ == "__main__":
    main()
