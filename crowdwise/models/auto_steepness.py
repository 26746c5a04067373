"""Features and labels -> the steepness: do contested labels follow from anything?

Weights leave out what contested examples would teach. Where most annotators go wrong together on hard examples, as in
the paper's simulation, that is noise or worse, and leaving it out is a great gain. On the real crowds that we know it
is not: contested labels are less often right, but they can still be told from the features, and leaving them out
costs. Both can be seen without any truth: learn from the easy examples, and see whether the majority among the
contested ones is ranked better than by chance. How steep the weights should be can be seen in the same way: a model
that is led astray follows contested labels and forgets easy ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from crowdwise.consensus import Ballot
from crowdwise.criteria import contested_examples, easiest_examples, ranking, standard_errors_above_chance
from crowdwise.easiness import example_weights
from crowdwise.folds import content_folds
from crowdwise.labels import CrowdLabels
from crowdwise.models.preparation import Prepared, row_space
from crowdwise.models.ridge_fit import N_FOLDS, cross_fitted_scores
from crowdwise.rows import Rows, one_blas_thread
from crowdwise.softmax import Scaling
from crowdwise.targets import Targets

Floats = NDArray[np.float64]

# The steepness that is tried first: in the paper's simulation the best for all data sets together.
_FIRST = 4.0
# Those to choose from where contested labels teach nothing. Less leaves too much of them, more too few examples.
_STEEP = (3.0, _FIRST, 5.0, 6.0)
# How sure one has to be that contested labels can be told, in standard errors.
_SURE = 2.0
# With fewer contested examples nothing can be told either way.
_FEWEST = 20
# More examples than this make the answer no surer.
_ENOUGH = 20_000
# Penalty of the ridge regression that scores contested examples, relative to the features' variance and number of rows.
_PENALTY = 0.1


def steepness_by(scores_of: Callable[[Floats], Floats], labels: CrowdLabels, disagreement: Floats) -> float:
    """The steepness that suits a crowd.

    Parameters
    ----------
    scores_of : callable
        From weights of the examples to scores of models that have not seen the example, one column for two classes,
        else one a class.
    labels : CrowdLabels
        Classes.
    disagreement : ndarray of shape (n_examples,)
        Of each example.

    Returns
    -------
    steepness : float
        0 if the majority among contested examples is ranked surely better than by chance; else the steepness under
        which it is ranked worst, compared with the majority among easy examples.
    """
    contested, easy = contested_examples(disagreement, labels.tally), easiest_examples(disagreement, labels.tally)
    if len(contested) < _FEWEST:
        return 0.0
    majority, n_classes = labels.tally.argmax(axis=1), labels.tally.shape[1]

    def scored(steepness: float) -> Floats:
        return scores_of(example_weights(disagreement, steepness))

    def gap(scores: Floats) -> float:
        told, misled = (ranking(scores[rows], majority[rows], n_classes) for rows in (easy, contested))
        return np.nan_to_num(told, nan=0.5) - misled  # easy examples may be of one class

    first = scored(_FIRST)
    above = standard_errors_above_chance(first[contested], majority[contested], n_classes)
    if not above < _SURE:
        return 0.0
    gaps = {steepness: gap(first if steepness == _FIRST else scored(steepness)) for steepness in _STEEP}
    return max(gaps, key=lambda steepness: gaps[steepness])


def auto_steepness(prepared: Prepared) -> float:
    """The steepness that suits a crowd, contested examples being scored by ridge regression on the shares of votes.

    Parameters
    ----------
    prepared : Prepared
        Checked features and labels.

    Returns
    -------
    steepness : float
    """
    X, labels, weight = prepared.original.X, prepared.core, prepared.sample_weight
    disagreement = prepared.disagreement[prepared.learnt]
    if len(labels) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(labels), _ENOUGH, replace=False))
        X, labels, weight, disagreement = X[some], labels[some], weight[some], disagreement[some]

    def scores_of(easiness: Floats) -> Floats:
        original = Rows.of(X, intercept=True)
        space = row_space(original)
        rows = original if space is None else space.rows
        targets = Targets.of(labels, intercept=True)
        votes = Ballot.of(labels, np.ones(labels.n_annotators)).mean_targets(targets)
        variance = Scaling.of(X, weight, centred=True, alike=True).size[0] ** 2
        with one_blas_thread(rows.n_columns):
            return cross_fitted_scores(
                rows, easiness * weight, votes, _PENALTY * len(labels) * variance, content_folds(X, N_FOLDS)
            )

    return steepness_by(scores_of, labels, disagreement)
