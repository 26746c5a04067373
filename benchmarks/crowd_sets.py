"""Real crowds as features, labels and truth, with unseen examples to test on.

Features never see the truth, and are made from the labelled examples alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from crowdwise import CrowdLabels
from crowdwise.datasets import CROWD_NAMES, fetch_crowd

WITH_FEATURES = ("music", "sentiment", "medical_cause", "product", "zencrowd_us")
LABELS_ONLY = tuple(name for name in CROWD_NAMES if name not in WITH_FEATURES)
_PAIRS = ("product", "zencrowd_us")
_COMPONENTS = {"sentiment": 300, "medical_cause": 100}


@dataclass(frozen=True)
class CrowdSet:
    """Features of the examples that a crowd labelled (None if there are none), and of others with truth if any."""

    name: str
    X: Any
    labels: CrowdLabels
    truth: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None
    raw: Any


@dataclass(frozen=True)
class Split:
    """The labelled examples to learn from and their features; unseen examples and their truth."""

    rows: np.ndarray
    X: np.ndarray
    X_test: np.ndarray
    truth_test: np.ndarray


def load(name: str) -> CrowdSet:
    """A set with its features."""
    data = fetch_crowd(name)
    raw = data.X if data.X is not None else data.texts and np.array(data.texts, dtype=object)
    if raw is None:
        return CrowdSet(name, None, data.labels, data.truth, None, None)
    features = _features(name).fit(raw)
    unseen = data.X_test if data.X_test is not None else data.texts_test
    test = None if unseen is None else (features.transform(unseen), data.truth_test)
    return CrowdSet(name, features.transform(raw), data.labels, data.truth, test, raw)


def splits(data: CrowdSet, n_splits: int = 5, own_test: bool = True) -> Iterator[Split]:
    """All labelled examples and the test examples of the set; where it has none, one of five parts held out in turn."""
    if data.test is not None and own_test:
        yield Split(np.arange(len(data.truth)), data.X, *data.test)
    elif data.X is not None:
        for rows, unseen in KFold(n_splits, shuffle=True, random_state=0).split(data.X):
            features = _features(data.name).fit(data.raw[rows])
            X, X_test = (features.transform(data.raw[which]) for which in (rows, unseen))
            yield Split(rows, X, X_test, data.truth[unseen])


def _features(name: str) -> Any:
    if name == "music":
        return StandardScaler()
    if name in _PAIRS:
        # The model code counts for more if the names are alike, and so on: products of two features.
        return make_pipeline(PairFeatures(), PolynomialFeatures(2, include_bias=False), StandardScaler())
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
    return make_pipeline(words, TruncatedSVD(_COMPONENTS[name], random_state=0), StandardScaler())


class PairFeatures(TransformerMixin, BaseEstimator):
    """How alike the two halves of "name ||| name" or "mention-address" are, in words, characters and model codes."""

    def fit(self, texts: Any, y: None = None) -> PairFeatures:
        left, right, source = zip(*map(_halves, texts), strict=True)
        self.grams_ = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True).fit(left + right)
        self.words_ = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit(left + right)
        self.sources_ = [name for name, count in Counter(source).most_common()[1:] if count >= 20]
        return self

    def transform(self, texts: Any) -> np.ndarray:
        left, right, source = zip(*map(_halves, texts), strict=True)
        cosines = [_cosines(by.transform(left), by.transform(right)) for by in (self.grams_, self.words_)]
        shares = np.array([_shares(*pair) for pair in zip(left, right, strict=True)])
        sources = [[float(name == known) for name in source] for known in self.sources_]
        return np.column_stack([*cosines, shares, *sources])


def _halves(text: str) -> tuple[str, str, str]:
    """The two names in small letters, and where the second comes from if that is known."""
    if " ||| " in text:
        left, right = text.lower().split(" ||| ")
        return left, right, ""
    link = re.fullmatch(r"(.*)-https?://([^/]+)/(.*?)/?", text)
    if link is None:  # no address is given
        return re.sub(r"-.*_undisclosedLink\d+$", "", text).lower(), "", "undisclosed"
    mention, host, path = link.groups()
    name = re.sub(r"\$[0-9A-F]{4}|\.html$|[_-]", " ", unquote(path.split("/")[-1]))
    return mention.lower(), name.lower(), "/".join([host, *path.split("/")[:-1]])


def _cosines(left: Any, right: Any) -> np.ndarray:
    return np.asarray(left.multiply(right).sum(axis=1)).ravel()


def _shares(left: str, right: str) -> list[float]:
    """What part of each name is also in the other, as words, as model codes and as character triples; and lengths."""
    parts = [(set(re.findall(r"\w+", name)), _codes(name), {name[i : i + 3] for i in range(len(name) - 2)})
             for name in (left, right)]  # fmt: skip
    both = [len(a & b) / max(len(of), 1) for a, b in zip(*parts, strict=True) for of in (a, b)]
    joined = [re.sub(r"\W", "", name) for name in (left, right)]
    written = [float(any(code in joined[1 - side] for code in parts[side][1])) for side in (0, 1)]
    numbers = [set(re.findall(r"(?<![\w-])[\d.]+(?![\w-])", name)) for name in (left, right)]
    other_numbers = float(bool(numbers[0] and numbers[1]) and not numbers[0] & numbers[1])
    lengths = [np.log1p(len(left)), np.log1p(len(right)), len(parts[0][1]), len(parts[1][1])]
    return [*both, *written, other_numbers, float(left == right), *lengths]


def _codes(name: str) -> set[str]:
    """Words of at least four signs with a digit among them, without hyphens: model numbers."""
    return {code for word in re.findall(r"[\w/-]+", name)
            if len(code := re.sub(r"\W", "", word)) > 3 and re.search(r"\d", code)}  # fmt: skip
