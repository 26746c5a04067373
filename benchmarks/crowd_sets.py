"""Real crowds (features or text, labels and truth of the sets in $CROWDWISE_DATA/crowd) and simulated ones."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdwise import CrowdLabels, simulate_annotators

WITH_FEATURES = ("music", "sentiment", "medical_cause", "product", "zencrowd_us")


@dataclass(frozen=True)
class CrowdSet:
    """Features of the examples that a crowd labelled, and of others with truth if there are any."""

    name: str
    X: np.ndarray
    labels: CrowdLabels
    truth: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None


def home() -> Path:
    """The directory with the sets."""
    found = os.environ.get("CROWDWISE_DATA")
    if not found or not (Path(found) / "crowd").is_dir():
        sys.exit("Set CROWDWISE_DATA to a directory with crowd/.")
    return Path(found) / "crowd"


def load(name: str) -> CrowdSet:
    """Standardised features, or a hundred components of the words; the last of an annotator's labels counts."""
    folder = home() / name
    if (folder / "features.csv.gz").exists():
        raw = pd.read_csv(folder / "features.csv.gz", index_col="task")
        features = StandardScaler().fit(raw)
    else:
        raw = pd.read_csv(folder / "texts.csv.gz", index_col="task")["text"].fillna("")
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
        features = make_pipeline(words, TruncatedSVD(100, random_state=0), StandardScaler()).fit(raw)
    table = pd.read_csv(folder / "labels.csv")
    labels = CrowdLabels.from_table(table, examples=raw.index, on_duplicate="last")
    truth = pd.read_csv(folder / "truth.csv", index_col="task")["label"].reindex(raw.index).to_numpy()
    return CrowdSet(name, np.asarray(features.transform(raw)), labels, truth, _test(folder, features))


def _test(folder: Path, features: object) -> tuple[np.ndarray, np.ndarray] | None:
    if (folder / "test_features.csv.gz").exists():
        raw = pd.read_csv(folder / "test_features.csv.gz", index_col="task")
        truth = pd.read_csv(folder / "test_truth.csv", index_col="task")["label"].reindex(raw.index).to_numpy()
    elif (folder / "test_texts.csv.gz").exists():
        table = pd.read_csv(folder / "test_texts.csv.gz")
        raw, truth = table["text"], table["label"].to_numpy()
    else:
        return None
    return np.asarray(features.transform(raw)), truth


def simulated_crowd(seed: int, clarity: float, missing: float) -> tuple[np.ndarray, np.ndarray, CrowdLabels]:
    """A thousand examples with truth; labels of ten annotators, an expert and an adversary for the first half."""
    X, truth = make_classification(1000, 10, n_informative=5, n_redundant=0, random_state=seed)
    settings = {"clarity": clarity, "experts": 1, "adversaries": 1, "missing": missing}
    return X, truth, simulate_annotators(X[:500], truth[:500], 10, random_state=seed, **settings)
