"""A small crowd as files, for tests of runs and of the command line."""

import csv

import numpy as np

ANNOTATORS = ("ann", "bob", "cy", "dee", "eve")


def write_crowd(folder, n_examples=60, seed=0):
    """labels.csv, features.csv (number, category, text) and truth.csv; eve is mostly wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_examples)
    names = np.array(["no", "yes"])
    accuracy = dict(zip(ANNOTATORS, (0.95, 0.9, 0.85, 0.8, 0.1), strict=True))
    labels = [
        (i, who, names[truth[i] if rng.random() < share else 1 - truth[i]])
        for i in range(n_examples)
        for who, share in accuracy.items()
        if rng.random() < 0.8
    ]
    size = truth * 2.0 + rng.normal(size=n_examples)
    words = [("good fine film" if value else "bad poor film") + f" number{i % 7}" for i, value in enumerate(truth)]
    colours = np.array(["red", "blue"])[rng.integers(0, 2, n_examples)]
    rows = zip(range(n_examples), size.round(3), colours, words, strict=True)
    for name, header, content in (
        ("labels.csv", ("task", "worker", "label"), labels),
        ("features.csv", ("task", "size", "colour", "text"), rows),
        ("truth.csv", ("task", "label"), zip(range(n_examples), names[truth], strict=True)),
    ):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *content])
    return folder
