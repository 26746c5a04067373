"""The folder of a run -> its results again, predictions, what changed since another run, and rates of classes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crowdwise import formats
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import DataError, MissingDataError, OutputError
from crowdwise.features import Recipe, read_features
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import is_known
from crowdwise.model_file import load
from crowdwise.rates import Rate, rate
from crowdwise.results.compare import Comparison, compare
from crowdwise.results.fit_results import results_of
from crowdwise.runs.inputs import Inputs, PathLike, read_inputs, read_truth
from crowdwise.runs.models import Settings
from crowdwise.runs.new_folder import recover
from crowdwise.runs.result_table import ResultTable
from crowdwise.runs.run import LABELS, MODEL, NOTE, RECIPE, SCHEMA, Info, Run, described, is_run
from crowdwise.tables import open_table


@dataclass(frozen=True)
class SavedRun:
    """The folder of a run.

    Parameters
    ----------
    path : Path
        The folder.
    note : dict
        What its run.json states.
    """

    path: Path
    note: dict[str, Any]

    @cached_property
    def kept(self) -> Inputs:
        """The labels and known answers that it was fitted to; features and texts are not kept."""
        labels = load(self._kept(LABELS))
        return Inputs(labels.with_truth(None), truth=_answers(labels), question=self.note.get("question"))

    @cached_property
    def _run(self) -> Run:
        return Run(self.kept, Settings(**self.note["settings"]), self.model())

    def table(self, name: str) -> ResultTable:
        """One of the tables: "consensus", "annotators" or "next"."""
        return self._run.table(name)

    def next(self, n: int = 50, **how: Any) -> ResultTable:
        """The same as `Run.next`."""
        return self._run.next(n, **how)

    def inputs(self) -> Inputs:
        """What the run was fitted to: labels as they are kept, features and texts from their files, if these are there.

        An error if such a file is not what it was.
        """
        reading: dict[str, Any] = self.note["reading"]
        features_as = reading.get("features_as") or {}
        files: dict[str, Any] = {file["what"]: file for file in self.note["inputs"]}
        features = files.get("features")
        if reading.get("show") is not None or (features_as.get("text") and features is None):
            # Labels have the texts, and have to be read again.
            paths: dict[str, Any] = {role: self._unchanged(file) for role, file in files.items()}
            return read_inputs(**paths, **reading)
        if features is None:
            return self.kept
        path = self.path / RECIPE
        settings = {name: value for name, value in features_as.items() if name in ("id", "ids")}
        table = read_features(
            self._unchanged(features),
            encoding=reading["labels_as"].get("encoding"),
            recipe=Recipe.from_json(path.read_bytes()) if path.is_file() else None,
            **settings,
        )
        if table.ids.tolist() != list(map(str, self.kept.labels.examples.tolist())):
            raise DataError(f"the examples of {features['path']} are not those of {self.path}: make the run again.")
        return replace(self.kept, features=table, texts=table.texts)

    def _unchanged(self, noted: dict[str, Any]) -> Path:
        """A file that went in; an error if it is not there, or is another one."""
        path = Path(noted["path"])
        if "sha256" not in noted or not path.is_file():
            raise MissingDataError(f"{path}, which {self.path} was fitted to, no longer exists.")
        if described(noted["what"], path) != noted:
            raise DataError(f"{path} has changed since {self.path} was fitted: make the run again.")
        return path

    def model(self) -> Any:
        """The fitted model, or the result of `aggregate`."""
        return load(self._kept(MODEL))

    def _kept(self, name: str) -> Path:
        """A file of the run; an error if someone took it away."""
        path = self.path / name
        if not path.is_file():
            again = self.note.get("command") or "crowdwise fit"
            raise MissingDataError(f"{path} no longer exists: make the run again ({again}).")
        return path

    def predict(
        self,
        features: PathLike,
        *,
        id: str | None = None,
        ids: PathLike | None = None,
        encoding: str | None = None,
        info: Info = lambda _: None,
    ) -> ResultTable:
        """What the model answers for new examples.

        Parameters
        ----------
        features : str or path
            A file like the one of the fit.
        id : str, default=None
            Its column with the ids of the examples, if its name does not state so.
        ids : str or path, default=None
            File with the ids of the rows of a NumPy file.
        encoding : str, default=None
            Such as "latin-1"; by default UTF-8, or UTF-16 if the file begins with its mark.
        info : callable, default=nothing
            Is given notes about the file.

        Returns
        -------
        table : ResultTable
            "example", "label", and "confidence" and "p(...)" per class, or "score" of a model without probabilities;
            for ratings "example" and "label".
        """
        if not (self.path / RECIPE).is_file():
            raise DataError(f"{self.path} was fitted to labels alone: without features nothing can be predicted.")
        recipe = Recipe.from_json((self.path / RECIPE).read_bytes())
        table = read_features(features, id=id, ids=ids, encoding=encoding, recipe=recipe)
        for note in table.notes:
            info(note)
        model = self.model()
        columns: dict[str, Any] = {"example": table.ids, "label": model.predict(table.X)}
        if hasattr(model, "predict_proba"):
            proba = np.asarray(model.predict_proba(table.X))
            columns["confidence"] = proba.max(axis=1)
            columns |= {f"p({name})": p for name, p in zip(model.classes_.tolist(), proba.T, strict=True)}
        elif hasattr(model, "decision_function"):
            scores = np.asarray(model.decision_function(table.X))
            columns["score"] = scores if scores.ndim == 1 else scores.max(axis=1)
        return ResultTable("predictions", columns)

    def export(
        self,
        path: PathLike,
        format: str = "csv",
        *,
        tasks: PathLike | None = None,
        question: str | None = None,
        force: bool = False,
    ) -> None:
        """Write the consensus for another tool.

        Parameters
        ----------
        path : str or path
            The file.
        format : str, default="csv"
            One of `crowdwise.formats.CONSENSUS_FORMATS`.
        tasks, question
            See `crowdwise.formats.write`; the question is by default that of the run.
        force : bool, default=False
            Whether to replace a file that is there.
        """
        if os.path.lexists(path) and not force:
            raise OutputError(f"{os.fspath(path)} already exists. Choose another name, or replace it: --force.")
        consensus = results_of(self.model()).consensus
        formats.write(consensus, path, format=format, tasks=tasks, question=question or self.note.get("question"))


def open_run(path: PathLike) -> SavedRun:
    """The folder that `fit` left.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    run : SavedRun
    """
    folder = Path(path)
    recover(Path(os.path.realpath(folder)))
    if not folder.is_dir():
        raise MissingDataError(f"there is no folder {folder}; a run of crowdwise fit was expected.")
    return SavedRun(folder, _read_note(folder))


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        note = json.loads((folder / NOTE).read_bytes())
    except FileNotFoundError:
        raise DataError(f"{folder} is not a run of crowdwise fit: it has no {NOTE}.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{folder / NOTE} is damaged: {error}. Make the run again.") from error
    if not isinstance(note, dict) or not str(note.get("schema", "")).startswith("crowdwise.run/"):
        raise DataError(f"{folder / NOTE} is not the note of a run of crowdwise fit.")
    if note["schema"] != SCHEMA:
        raise DataError(
            f"{folder} was written by crowdwise {note.get('versions', {}).get('crowdwise')} as {note['schema']}; "
            f"this version reads {SCHEMA}. Use that version, or make the run again."
        )
    return note


def _answers(labels: CrowdLabels) -> dict[Any, Any] | None:
    """The known answers that labels carry, by example; None without any."""
    if labels.truth is None:
        return None
    known = np.flatnonzero(is_known(labels.truth))
    values = labels.truth[known] if labels.classes is None else labels.classes[labels.truth[known]]
    return dict(zip(labels.examples[known].tolist(), values.tolist(), strict=True))


def compare_runs(first: PathLike, second: PathLike) -> Comparison:
    """What changed from one run to another.

    Parameters
    ----------
    first, second : str or path
        Folders that `fit` left.

    Returns
    -------
    comparison : Comparison
    """
    runs = [open_run(path) for path in (first, second)]
    comparison = compare(*(run._run.results_with_truth() for run in runs))
    before, after = ((run.note["found"].get("alpha") or {}).get("value") for run in runs)
    alpha = None if before is None or after is None else (before, after)
    return replace(comparison, alpha=alpha, drift=tuple(run.note["found"].get("drift", "") for run in runs))


def rate_of(
    source: PathLike,
    *,
    truth: PathLike | None = None,
    target: str | None = None,
    by: PathLike | None = None,
    labels_as: Mapping[str, Any] | None = None,
    info: Info = lambda _: None,
) -> Rate:
    """The share of a class, by a file of labels or the folder of a run; see `crowdwise.rate`.

    Parameters
    ----------
    source : str or path
        A file of labels, or a run.
    truth : str or path, default=None
        A table of known answers; by default those of the run.
    target : str, default=None
        The class.
    by : str or path, default=None
        A table of two columns: example and group.
    labels_as : mapping, default=None
        How labels are read.
    info : callable, default=nothing
        Is given each note.

    Returns
    -------
    rate : Rate
    """
    if is_run(source):
        run = open_run(source)
        model, inputs = run.model(), run.kept
    else:
        inputs = read_inputs(source, labels_as=dict(labels_as or {}))
        model = aggregate(inputs.labels)
    labels, answers, notes = inputs.labels, inputs.truth, inputs.notes
    if truth is not None:
        answers, truth_notes = read_truth(truth, labels)
        notes = (*notes, *truth_notes)
    for note in notes:
        info(note)
    spelt = {} if labels.classes is None else {str(name): name for name in labels.classes.tolist()}
    wanted = spelt.get(target, target) if target is not None else None  # classes may be numbers, an option is a text
    return rate(model, labels, answers, target=wanted, by=None if by is None else _groups(by, labels))


def _groups(path: PathLike, labels: CrowdLabels) -> np.ndarray:
    """The group of every example."""
    table = open_table(path)
    if len(table.header) != 2:
        raise DataError(
            f"{table.source.name} must have two columns, example and group; found {list(table.header)}. Keep these two."
        )
    group = dict(zip(*table.columns(list(table.header)).values(), strict=True))
    names = [str(example) for example in labels.examples.tolist()]
    if missing := [name for name in names if name not in group]:
        raise DataError(f"{table.source.name} has no group for {len(missing):,} examples, such as {missing[0]!r}.")
    return np.array([group[name] for name in names], dtype=object)
