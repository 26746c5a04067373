"""What all estimators here have in common: results under the same names, frames, accuracy on labels of a crowd."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import align, as_labels
from crowdwise.labels._encode import encode_declared
from crowdwise.labels._frames import library_of
from crowdwise.model_file import save
from crowdwise.results.fit_results import ABOUT_EXAMPLES, FitResults
from crowdwise.training_set import check_sample_weight

Method = TypeVar("Method", bound=Callable[..., Any])
# The attribute that is never in a file or pickle: what a model can be solved again from.
IN_MEMORY = "_kept"


def all_or_nothing(fit: Method) -> Method:
    """A `fit` that leaves the estimator as it was before if it does not come to its end, by an error or Ctrl-C."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            fitted = fit(self, *args, **kwargs)
            inputs = [*args, *kwargs.values()][::-1]  # it comes from labels rather than features
            self._frame_library = next(filter(None, map(library_of, inputs)), None)
            return fitted
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


class CrowdMixin:
    """Results of a fit under the names that all models share, as data frames and files; predictions and accuracy."""

    results_: FitResults
    classes_: Array
    decision_function: Callable[[Any], Array]

    if not TYPE_CHECKING:  # a checker should know the names, not that any name may do

        def __getattr__(self, name: str) -> Any:
            """Why there is no such attribute."""
            if name in ABOUT_EXAMPLES and "results_" in vars(self) and not self.results_.has_examples:
                raise AttributeError(
                    f"{name} is about single examples, which a fit on blocks does not keep. For the consensus on any "
                    "examples call consensus(X, labels)."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _keep(self, results: FitResults) -> None:
        """Store what the fit found out about its examples and annotators."""
        for name in self.results_.attributes() if "results_" in vars(self) else ():  # of a fit before
            vars(self).pop(name, None)
        self.results_ = results
        vars(self).update(results.attributes())

    def _learned(self) -> dict[str, Any]:
        """All that was learned, without what `results_` gives again: what a file has to hold besides the settings."""
        of_results = self.results_.attributes() if "results_" in vars(self) else {}
        without = {*self.get_params(deep=False), *of_results, IN_MEMORY}  # type: ignore[attr-defined]
        return {name: value for name, value in vars(self).items() if name not in without}

    def _put_back(self, learned: dict[str, Any]) -> None:
        """Be fitted as the model that `_learned` was of."""
        vars(self).update(learned)
        if "results_" in learned:
            self._keep(learned["results_"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `crowdwise.load` reads.

        The file is complete or not there at all: what was there before stays until then. It holds arrays and JSON, no
        pickle.

        Parameters
        ----------
        path : str or path
            Where it goes.
        """
        check_is_fitted(self)
        save(self, path)

    def consensus_frame(self) -> Any:
        """The consensus on the examples of `fit`, one row per example.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            The kind of frame that `fit` was given; pandas if it was none, polars where that is not installed.
        """
        check_is_fitted(self)
        return self.results_.consensus_frame(getattr(self, "_frame_library", None))

    def annotators_frame(self) -> Any:
        """Scores and flags of the annotators of `fit`, one row per annotator.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
            The kind of frame that `fit` was given; pandas if it was none, polars where that is not installed.
        """
        check_is_fitted(self)
        return self.results_.annotators_frame(getattr(self, "_frame_library", None))

    def _repr_html_inner(self) -> str:
        """What notebooks show: scikit-learn's diagram, and what the fit found."""
        return str(estimator_html_repr(self)) + (self.results_._repr_html_() if "results_" in vars(self) else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any) -> Array:
        """The class of the highest score; of classes with an order what their scale takes as the consensus.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        classes : ndarray of shape (n_examples,)
        """
        check_is_fitted(self)
        return self._classes_of(X)

    def _classes_of(self, X: Any) -> Array:
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels that the model predicts; with one label per example this is accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels, or the truth.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        score : float
        """
        _, labels = align(X, as_labels(y))
        weight = check_sample_weight(sample_weight, X, labels)
        predicted = self.predict(X)
        if labels.n_labels == 0:
            raise LabelError("there is no label to compare predictions with.")
        assert labels.classes is not None
        if (encode_declared(labels.classes, self.classes_) < 0).all():
            raise LabelError(
                f"none of the classes of these labels, {labels.classes.tolist()}, is known to the model, whose classes "
                f"are {self.classes_.tolist()}."
            )
        right = labels.values == encode_declared(predicted, labels.classes)[labels.example_index]
        return float(np.average(right, weights=weight[labels.example_index]))
