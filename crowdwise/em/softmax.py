"""Features and soft classes -> multinomial logistic regression, by SciPy's L-BFGS from a nearby start."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit

from crowdwise.arrays import Floats


def log_probabilities(X: Any, theta: Floats) -> Floats:
    """Logarithms of the class probabilities of each row.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Features.
    theta : ndarray of shape (n_features + 1, n_columns)
        Coefficients with the intercept last; one column for two classes, else one a class.

    Returns
    -------
    log_probabilities : ndarray of shape (n_examples, n_classes)
    """
    return log_softmax(np.asarray(X @ theta[:-1]) + theta[-1])


def log_softmax(scores: Floats) -> Floats:
    """Logarithms of probabilities that are as exp(score); a few passes over columns are much faster than over rows.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, 1) or (n_examples, n_classes)
        Of every class; one column is the second of two classes compared with the first.

    Returns
    -------
    log_probabilities : ndarray of shape (n_examples, n_classes)
    """
    if scores.shape[1] == 1:
        second = log_expit(scores)
        return np.hstack([second - scores, second])
    shifted = scores - reduce(np.maximum, scores.T)[:, np.newaxis]
    return np.asarray(shifted - np.log(reduce(np.add, np.exp(shifted).T))[:, np.newaxis])


def fit_softmax(
    X: Any,
    posterior: Floats,
    weight: Floats,
    *,
    l2: float | Floats,
    start: Floats | None = None,
    fit_intercept: bool = True,
    class_prior: float = 0.0,
    max_steps: int = 100,
) -> Floats:
    """Coefficients that maximise the weighted log-likelihood of soft classes minus l2 / 2 times their squared length.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Features.
    posterior : ndarray of shape (n_examples, n_classes)
        How much each example is of each class.
    weight : ndarray of shape (n_examples,)
        How much each example counts.
    l2 : float or ndarray of shape (n_features,)
        Strength of the penalty, of each feature if it is an array; one over scikit-learn's C.
    start : ndarray of shape (n_features + 1, n_columns), default=None
        Where to begin.
    fit_intercept : bool, default=True
        Whether there is an intercept, which is not penalised.
    class_prior : float, default=0.0
        Examples added in the middle of the features, evenly of all classes.
    max_steps : int, default=100
        The most steps of L-BFGS.

    Returns
    -------
    theta : ndarray of shape (n_features + 1, n_columns)
    """
    n_features, n_classes = X.shape[1], posterior.shape[1]
    shape = (n_features + 1, 1 if n_classes == 2 else n_classes)
    total = weight.sum()
    middle = np.append(np.asarray(X.T @ weight) / total, 1.0)
    weighted = posterior * weight[:, np.newaxis]
    strength = np.broadcast_to(np.asarray(l2, dtype=np.float64), n_features)[:, np.newaxis]

    def loss(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(shape)
        log_p = log_probabilities(X, theta)
        away = np.exp(log_p) * weight[:, np.newaxis] - weighted
        slope = np.empty(shape)
        columns = np.ascontiguousarray(away[:, 1:]) if shape[1] == 1 else away  # products with slices are slow
        slope[:-1] = np.asarray(X.T @ columns) + strength * theta[:-1]
        slope[-1] = columns.sum(axis=0)
        value = -np.einsum("ik,ik->", weighted, log_p) + float((strength * theta[:-1] ** 2).sum()) / 2
        if class_prior > 0:
            log_middle = log_softmax(middle[np.newaxis] @ theta)
            value -= class_prior / n_classes * float(log_middle.sum())
            pull = class_prior * (np.exp(log_middle) - 1 / n_classes)
            slope += np.outer(middle, pull[:, 1:] if shape[1] == 1 else pull)
        if not fit_intercept:
            slope[-1] = 0.0
        return float(value) / total, slope.ravel() / total

    begin = np.zeros(shape) if start is None else start
    options = {"maxiter": max_steps, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x).reshape(shape)
