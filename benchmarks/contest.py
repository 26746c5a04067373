"""What every method of `crowds.py` is given, what it gives back, and how it is timed.

Needs NumPy and scikit-learn alone, because the peers run in an environment of their own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV


@dataclass(frozen=True)
class Answers:
    """Labels as plain arrays, a place for every label, sorted by example and then by annotator."""

    example: np.ndarray
    annotator: np.ndarray
    value: np.ndarray
    n_examples: int
    n_annotators: int
    n_classes: int

    def of(self, rows: np.ndarray) -> Answers:
        """The labels of some examples, in ascending order; annotators keep their numbers."""
        place = np.full(self.n_examples, -1)
        place[rows] = np.arange(len(rows))
        kept = place[self.example] >= 0
        columns = place[self.example][kept], self.annotator[kept], self.value[kept]
        return Answers(*columns, len(rows), self.n_annotators, self.n_classes)

    def matrix(self) -> np.ndarray:
        """A row per example, a column per annotator, NaN where there is no label."""
        filled = np.full((self.n_examples, self.n_annotators), np.nan)
        filled[self.example, self.annotator] = self.value
        return filled


Scores = Callable[[np.ndarray], np.ndarray]
# Gives a class for every example, what scores the classes of unseen examples if the method is a classifier, and where
# the method states it, how probable these classes are.
Fit = Callable[[], tuple[np.ndarray, Scores | None] | tuple[np.ndarray, Scores | None, np.ndarray]]
# Puts features (or None) and labels into the form that a package wants; the fit alone is timed.
Method = Callable[[Any, Answers], Fit]


@dataclass(frozen=True)
class Task:
    """Labels, features if there are any, and splits: rows to learn from, their features, those of unseen examples."""

    answers: Answers
    X: np.ndarray | None
    splits: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    def save(self, path: Path) -> None:
        """Write everything to one file."""
        arrays = {f"split_{i}_{j}": part for i, split in enumerate(self.splits) for j, part in enumerate(split)}
        if self.X is not None:
            arrays["X"] = self.X
        np.savez(path, **vars(self.answers), **arrays)

    @classmethod
    def load(cls, path: Path) -> Task:
        """Read what `save` wrote."""
        with np.load(path) as file:
            sizes = {name: int(file[name]) for name in ("n_examples", "n_annotators", "n_classes")}
            answers = Answers(file["example"], file["annotator"], file["value"], **sizes)
            n_splits = sum(name.endswith("_0") for name in file.files)
            splits = [tuple(file[f"split_{i}_{j}"] for j in range(3)) for i in range(n_splits)]
            return cls(answers, file["X"] if "X" in file.files else None, splits)


def same_classifier(X: np.ndarray, codes: np.ndarray, n_classes: int) -> tuple[Scores, float]:
    """Logistic regression, its C chosen by cross-validation: the classifier of every method that has none.

    A class of fewer than five examples cannot be in every fold: it is left out if two others remain, else C is 1. A
    consensus of one class gives a constant classifier.
    """
    classes, counts = np.unique(codes, return_counts=True)
    if len(classes) == 1:
        return lambda rows: spread(np.ones((len(rows), 1)), classes, n_classes), 1.0
    common = np.isin(codes, classes[counts >= 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if (counts >= 5).sum() < 2:
            model, C = plain_logistic(1.0).fit(X, codes), 1.0
        else:
            model = LogisticRegressionCV(
                Cs=np.logspace(-4, 1, 6), cv=5, l1_ratios=(0.0,), scoring="neg_log_loss", max_iter=1000,
                use_legacy_attributes=False,
            ).fit(X[common], codes[common])  # fmt: skip
            C = float(model.C_)
    return lambda rows: spread(model.predict_proba(rows), model.classes_, n_classes), C


def plain_logistic(C: float) -> LogisticRegression:
    """The same classifier with a C that is known."""
    return LogisticRegression(C=C, max_iter=1000)


def spread(proba: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """A column for every class, 0 for those that the classifier never met."""
    columns = np.zeros((len(proba), n_classes))
    columns[:, classes.astype(int)] = proba
    return columns


class Clock:
    """Seconds since it was made, on the wall and of this process; the latter are fairer on a busy machine."""

    def __init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Both."""
        return time.perf_counter() - self.start[0], time.process_time() - self.start[1]


def play(method: Method, task: Task, repeat: int = 1) -> Iterator[dict[str, Any]]:
    """The consensus on all examples, the seconds of its classifier, the scores of the unseen examples of every split.

    Each as soon as it is known: a classifier that fails does not hide the consensus.
    """
    times = []
    for _ in range(repeat):
        fit = method(task.X, task.answers)
        clock = Clock()
        codes, scores, *confidence = fit()
        times.append(clock.read())
    seconds, cpu_seconds = np.median(times, axis=0)
    stated = {"confidence": confidence[0]} if confidence else {}
    yield {"consensus": codes, "seconds": seconds, "cpu_seconds": cpu_seconds, **stated}
    clock = Clock()
    is_separate = scores is None and task.X is not None
    if is_separate:
        scores, _ = same_classifier(task.X, codes, task.answers.n_classes)
    yield {"cpu_seconds": clock.read()[1] if is_separate else np.nan}
    for rows, X, X_test in task.splits:
        if len(rows) < task.answers.n_examples:
            codes, scores, *_ = method(X, task.answers.of(rows))()
            if scores is None:
                scores, _ = same_classifier(X, codes, task.answers.n_classes)
        yield {"scores": scores(X_test)}


def serve(method_of: Callable[[str], Method], name: str, task: str, directory: str, repeat: str) -> None:
    """Play a method on the task in a file; write results to a directory as they come, each whole or not at all."""
    for i, part in enumerate(play(method_of(name), Task.load(Path(task)), int(repeat))):
        unfinished = Path(directory) / "unfinished.npz"
        np.savez(unfinished, **part)
        unfinished.rename(Path(directory) / f"{i}.npz")
