"""Real crowds -> labels, truth, and features or texts where there are any."""

from __future__ import annotations

import csv
import os
import warnings
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from crowdwise._arrays import Floats
from crowdwise.datasets._store import known_files, read_file
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels.crowd_labels import CrowdLabels

_ABOUT = {
    "bluebirds": "Indigo bunting or blue grosbeak; every annotator labelled every image (Welinder et al. 2010).",
    "bm": "Sentiment of tweets (Mozafari et al. 2014).",
    "dog": "Four breeds of dogs (Zhou et al. 2012).",
    "ducks": "Is there a duck in the image; `species` says what there is (Welinder et al. 2010).",
    "medical_cause": "Does the sentence say that one term causes the other (Dumitrache, Aroyo, Welty 2018). `truth` is "
    "one expert's view, `truth_adjudicated` (NaN where there is none) the authors' decision, `terms` the two terms.",
    "music": "Genre of songs, with audio features of very different ranges: standardise (Rodrigues et al. 2013).",
    "product": "Do two names mean the same product; 12% do (Wang et al. 2012). A text is 'name ||| name'.",
    "rte": "Does a sentence follow from another (Snow et al. 2008).",
    "sentiment": "Is a sentence of a film review positive (Rodrigues et al. 2013).",
    "weather": "Weather sentiment of tweets (Venanzi et al. 2015).",
    "zencrowd_us": "Does an address denote the thing mentioned (Demartini et al. 2012). A text is 'mention-address'.",
}
_CLASS_NAMES = {
    "weather": ["negative", "neutral", "positive", "not about weather", "cannot tell"],
    "zencrowd_us": ["no", "yes"],
}
_REPEATED = {
    "weather": "5 labels repeat an (example, annotator) with the same answer and count once.",
    "zencrowd_us": "1,035 labels repeat an (example, annotator): 795 pairs, 116 of them with different answers. The "
    "last answer counts, as someone's correction.",
}

CROWD_NAMES: tuple[str, ...] = tuple(_ABOUT)


def fetch_crowd(name: str, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """A real crowdsourced data set, from the data directory.

    bluebirds, weather and zencrowd_us come with crowdwise. The files are a tidied collection without a site of its own,
    so nothing is downloaded: an error names the file and its place. Every file is checked against its known sha256.

    Where an annotator labelled an example more than once (zencrowd_us and weather), the last answer counts.

    Parameters
    ----------
    name : str
        One of `CROWD_NAMES`, such as "music" or "sentiment".
    data_home : str or path, default=None
        The data directory; see `data_directory`.

    Returns
    -------
    data : Bunch
        - labels : CrowdLabels
        - truth : ndarray of shape (n_examples,), integers from 0
        - X : ndarray of shape (n_examples, n_features), or None (only music has features)
        - texts : list of str, or None
        - X_test, texts_test, truth_test : further examples without labels, or None
        - classes : what the integers mean, or None if they have no names
        - name, DESCR : what it is
        - truth_adjudicated, terms (medical_cause), species (ducks)

    Examples
    --------
    >>> from crowdwise.datasets import fetch_crowd
    >>> fetch_crowd("bluebirds").labels.shape
    (108, 39)
    """
    if name not in CROWD_NAMES:
        raise ValueError(f"no crowd is called {name!r}; the names are {', '.join(CROWD_NAMES)}.")
    paths = [path for path in known_files() if path.startswith(f"crowd/{name}/")]
    hint = f"The set consists of {', '.join(path.split('/')[-1] for path in paths)}."
    tables = {path.split("/")[-1].removesuffix(".csv"): _read_table(path, data_home, hint) for path in paths}
    truth = tables["truth"]
    examples = np.array(truth["task"], dtype=np.int64)
    labels = _labels(tables["labels"], examples, np.unique(_integers(truth["label"])))
    data = Bunch(labels=labels, truth=_integers(truth["label"]), name=name)
    data.X = _features(tables.get("features"), examples)
    data.texts = _column(tables.get("texts"), "text", examples)
    data.X_test, data.texts_test, data.truth_test = _test_part(tables)
    named = tables["classes"]["name"] if "classes" in tables else _CLASS_NAMES.get(name)
    data.classes = named and list(named)
    data.update(_extras(tables, examples))
    data.DESCR = f"{name}: {_ABOUT[name]} {labels!r}. {_REPEATED.get(name, '')}".strip()
    return data


Table = dict[str, list[str]]


def _read_table(path: str, data_home: Any, hint: str) -> Table:
    content = read_file(path, data_home, url=None, hint=hint).decode()
    header, *rows = csv.reader(StringIO(content, newline=""))
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def _labels(table: Table, examples: NDArray[np.int64], classes: NDArray[np.int64]) -> CrowdLabels:
    columns = {"task": _integers(table["task"]), "worker": table["worker"], "label": _integers(table["label"])}
    # w0, w1, ..., w10: by number, not by spelling.
    annotators = sorted(set(table["worker"]), key=lambda worker: int(worker[1:]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the repeated labels are known and described
        return CrowdLabels.from_table(
            columns, on_duplicate="last", examples=examples, annotators=annotators, classes=classes
        )


def _integers(column: list[str]) -> NDArray[np.int64]:
    return np.array(column, dtype=np.int64)


def _in_order(table: Table, examples: NDArray[np.int64]) -> list[int]:
    """For every example, the row of the table about it; -1 if there is none."""
    row_of = {int(task): row for row, task in enumerate(table["task"])}
    return [row_of.get(int(example), -1) for example in examples]


def _column(table: Table | None, column: str, examples: NDArray[np.int64]) -> list[str] | None:
    return None if table is None else [table[column][row] for row in _in_order(table, examples)]


def _features(table: Table | None, examples: NDArray[np.int64]) -> Floats | None:
    if table is None:
        return None
    columns = [table[column] for column in table if column != "task"]
    return np.array(columns, dtype=np.float64).T.copy()[_in_order(table, examples)]


def _test_part(tables: dict[str, Table]) -> tuple[Any, Any, Any]:
    if "test_features" in tables:
        truth = tables["test_truth"]
        return _features(tables["test_features"], _integers(truth["task"])), None, _integers(truth["label"])
    if "test_texts" in tables:
        return None, tables["test_texts"]["text"], _integers(tables["test_texts"]["label"])
    return None, None, None


def _extras(tables: dict[str, Table], examples: NDArray[np.int64]) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if "truth_adjudicated" in tables:
        table = tables["truth_adjudicated"]
        values = np.array([*table["label"], "nan"], dtype=np.float64)
        extras["truth_adjudicated"] = values[_in_order(table, examples)]  # -1 is the NaN at the end
    if "terms" in tables:
        first, second = (_column(tables["terms"], column, examples) or [] for column in ("term1", "term2"))
        extras["terms"] = list(zip(first, second, strict=True))
    if "species" in tables:
        extras["species"] = _column(tables["species"], "species", examples)
    return extras
