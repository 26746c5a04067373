"""Would generalised least squares make a better consensus of the ridge model than votes by expertise?

python benchmarks/least_squares.py --write

Residuals of labels from the model's scores give the correlations of annotators, shrunk where they share few examples.
Weights of the labels of an example are then the inverse of their covariance times ones, instead of one precision each;
negative weights are taken as zero. Accuracy, mean confidence and expected calibration error of the labels' consensus.
"""

from __future__ import annotations

import warnings

import numpy as np
from calibration import calibration, shown
from crowd_sets import WITH_FEATURES, load
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifier
from crowdwise.crowd.pairs import one_hot, residual_pairs
from crowdwise.crowd.votes import vote_parts
from crowdwise.exceptions import CrowdWarning
from crowdwise.ridge.expertise import Votes

PLACE = Place("docs/evidence/models.md", "least_squares")
COLUMNS = ("set", "each by expertise", "copies share a vote", "generalised least squares", "negative weights")
# Eigenvalues of a matrix of correlations are at least this: shrunk pair by pair, it may be none.
SMALLEST = 0.1


def correlations(model: CrowdRidgeClassifier, X: np.ndarray, labels: CrowdLabels) -> np.ndarray:
    """Of the residuals of every two annotators."""
    scores = model.decision_function(X)
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    pairs = residual_pairs(labels, one_hot(labels) - (1 + scores[labels.example_index]) / 2)
    matrix = np.eye(labels.n_annotators)
    matrix[pairs.first, pairs.second] = matrix[pairs.second, pairs.first] = pairs.correlation
    return matrix


def weights(labels: CrowdLabels, expertise: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """What each label counts by the covariance of all labels of its example."""
    found = np.empty(labels.n_labels)
    for start, stop in zip(labels.indptr[:-1], labels.indptr[1:], strict=True):
        who = labels.annotator_index[start:stop]
        values, vectors = np.linalg.eigh(correlation[np.ix_(who, who)])
        inverse = (vectors / np.maximum(values, SMALLEST)) @ vectors.T
        root = np.sqrt(expertise[who])
        found[start:stop] = root * (inverse @ root)
    return found


def main() -> None:
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run, rows = Run(options, [PLACE]), []
    for name in ("medical_cause",) if options.quick else WITH_FEATURES:
        data = load(name)
        labels, model = data.labels, CrowdRidgeClassifier().fit(data.X, data.labels)
        expertise = model.expertise_
        given = weights(labels, expertise, correlations(model, data.X, labels))
        parts = (
            None,
            vote_parts(labels, model.annotator_group_),
            np.maximum(given, 0.0) / expertise[labels.annotator_index],
        )
        found = [Votes.of(labels, expertise, part).consensus(labels).proba for part in parts]
        cells = [shown(*calibration(proba, data.truth)) for proba in found]
        rows.append([name, *cells, f"{100 * np.mean(given < 0):.0f} %"])
    run.table(PLACE, COLUMNS, rows)


if __name__ == "__main__":
    main()
