"""Files -> a fitted model and its results, kept in a folder; and from that folder back to results and predictions."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from crowdwise import formats
from crowdwise._checks import check_choice
from crowdwise._files import Unchanged, write_file
from crowdwise._progress import OnRound
from crowdwise._text import how_to_install, versions
from crowdwise.exceptions import DataError, MissingDataError, MissingExtraError, OutputError
from crowdwise.features import Recipe, read_features
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import is_known
from crowdwise.model_file import load, save
from crowdwise.reporting.annotators import annotator_columns
from crowdwise.reporting.drift import sentence
from crowdwise.reporting.examples import consensus_columns
from crowdwise.reporting.fit import Fit
from crowdwise.reporting.report import RENDERERS, aliases_of, with_aliases
from crowdwise.reporting.summarize import summary_of
from crowdwise.results.compare import Comparison, compare
from crowdwise.results.fit_results import FitResults, results_of
from crowdwise.results.suggest import suggest_labels
from crowdwise.runs.inputs import Inputs, Join, PathLike, read_inputs
from crowdwise.runs.models import Settings, fit_model
from crowdwise.runs.new_folder import holds_only, new_folder, recover
from crowdwise.runs.result_table import ResultTable

NOTE, MODEL, LABELS, RECIPE, NAMES = "run.json", "model.crowdwise", "labels.crowdwise", "features.json", "names.csv"
_SCHEMA = "crowdwise.run/1"
_MOST_NEXT = 10_000
Info = Callable[[str], object]


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model, what it was fitted to, and its results.

    Parameters
    ----------
    inputs : Inputs
        What it was fitted to.
    settings : Settings
        What was wanted, with the model that "auto" stands for.
    model : estimator or FitResults
        The fitted model, or the result of `aggregate`.
    command : str, default=None
        What makes the run again.
    title : str, default=None
        What its report is called.
    """

    inputs: Inputs
    settings: Settings
    model: Any
    command: str | None = None
    title: str | None = None

    @cached_property
    def _fit(self) -> Fit:
        given = self.inputs
        about = {"X": given.X, "texts": given.texts, "truth": given.truth, "times": given.times}
        return Fit.of(self.model, given.labels, **about)

    def table(self, name: str) -> ResultTable:
        """One of the tables.

        "consensus" has a row per example, in the order of the fit; "annotators" one per annotator, the best first;
        "next" one per example to check.

        Examples
        --------
        >>> from crowdwise import CrowdLabels
        >>> from crowdwise.runs import Inputs, fit_inputs
        >>> run = fit_inputs(Inputs(CrowdLabels.from_matrix([[1, 0, 0], [0, 0, 0], [1, 1, 1]])))
        >>> run.table("consensus").columns["order"].tolist()
        [3, 1, 2]
        """
        check_choice("name", name, ("consensus", "annotators", "next"))
        if name == "next":
            return self.next(_MOST_NEXT)
        if name == "consensus":
            return ResultTable(name, consensus_columns(self._fit))
        columns = annotator_columns(self._fit)
        best_first = np.argsort(-columns["expertise"], kind="stable")  # NaN comes last
        return ResultTable(name, {key: np.asarray(column)[best_first] for key, column in columns.items()})

    def next(self, n: int = 50, *, crowd: bool = False, at_random: bool = False, seed: int = 0) -> ResultTable:
        """At most n examples for an expert to check, the least sure first; or see `suggest_labels`.

        Columns are "example", "label", "confidence" (of classes), "labels" (how many it has), "gain" (expected
        information in bits) and "reason".
        """
        found = suggest_labels(self.model, self.inputs.labels, n=n, crowd=crowd, at_random=at_random, random_state=seed)
        return ResultTable("next", found.columns())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the report shows, as a plain dictionary."""
        return summary_of(self._fit, self.command, self.title)

    def judged(self) -> FitResults:
        """The results, with all answers that are known and how often each annotator is right about them."""
        return self._fit.results.with_truth(self._fit.labels, self._fit.answers)

    def found(self) -> dict[str, Any]:
        """The settings that were chosen where none were given."""
        results = self._fit.results
        found: dict[str, Any] = {"model": self.settings.model, "steepness": float(results.steepness)}
        found |= {"converged": results.converged, "alpha": self.summary["alpha"]}
        found["drift"] = sentence(self.summary)
        return found if (l2 := getattr(self.model, "l2_", None)) is None else found | {"l2": float(l2)}


def fit(
    labels: PathLike,
    features: PathLike | None = None,
    *,
    out: PathLike | None = None,
    force: bool = False,
    truth: PathLike | None = None,
    labels_as: Mapping[str, Any] | None = None,
    features_as: Mapping[str, Any] | None = None,
    join: Join = "exact",
    show: str | None = None,
    time: str | None = None,
    settings: Settings | None = None,
    command: str | None = None,
    report: Literal["html", "md", "json"] = "html",
    names: bool = False,
    info: Info = lambda _: None,
    on_round: OnRound | None = None,
) -> Run:
    """Fit a model to files, and leave a folder with everything that was found.

    Parameters
    ----------
    labels, features, truth : str or path
        The files, see `read_inputs`; the last two by default None.
    out : str or path, default=None
        The folder; by default nothing is written.
    force : bool, default=False
        Whether to replace a folder of an earlier run.
    labels_as, features_as, join, show, time
        See `read_inputs`.
    settings : Settings, default=None
        Which model, and how; by default all is chosen.
    command : str, default=None
        What makes the run again, to be noted in it.
    report : {"html", "md", "json"}, default="html"
        Form of the report.
    names : bool, default=False
        Whether the report shows names of annotators that look like personal data. By default they are A1, A2, ...
        there, and the file names.csv has the key.
    info : callable, default=nothing
        Is given notes about the files.
    on_round : callable, default=None
        Is given a `Round` after every round of the fit.

    Returns
    -------
    run : Run

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.runs import fit, open_run
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "".join(f"{i},{who},{'yes' if i % 2 else 'no'}\\n" for i in range(6) for who in ("ann", "bob"))
    >>> _ = (folder / "labels.csv").write_text("task,worker,label\\n" + rows)
    >>> run = fit(folder / "labels.csv", out=folder / "run")
    >>> open_run(folder / "run").table("consensus").columns["label"][:2].tolist()
    ['no', 'yes']
    """
    if is_run(labels):
        raise DataError(f"{os.fspath(labels)} is the folder of a run; a file of labels was expected.")
    check_choice("report", report, ("html", "md", "json"))
    wanted = settings or Settings()
    given = {"labels": labels, "features": features, "truth": truth}
    files = {what: path for what, path in given.items() if path is not None}

    def work(unchanged: Unchanged) -> Run:
        reading = {"labels_as": labels_as, "features_as": features_as, "join": join, "show": show, "time": time}
        inputs = read_inputs(labels, features, truth=truth, **reading)  # type: ignore[arg-type]
        for note in inputs.notes:
            info(note)
        unchanged.check()
        parts = (Path(labels).name, (labels_as or {}).get("question"), f"{datetime.now():%d %B %Y}".lstrip("0"))
        title = " · ".join(filter(None, parts))
        return replace(fit_inputs(inputs, wanted, on_round), command=command, title=title)

    if out is None:
        return work(Unchanged(files.values()))
    if find_spec("jinja2") is None:  # before the work begins
        raise MissingExtraError(f"The report needs Jinja2: {how_to_install('cli')}.")
    began, started = monotonic(), _now()
    with new_folder(out, may_replace=lambda old: force and check_is_run(old)) as folder:
        unchanged, inputs = Unchanged(files.values()), [_described(what, path) for what, path in files.items()]
        run = work(unchanged)
        aliases = {} if names else aliases_of(run.inputs.labels.annotators.tolist())
        _write(run, folder, report, aliases)
        if aliases:
            info(
                f"report: annotators whose names look like personal data are A1, A2, ...; {NAMES} has the key, --names "
                "keeps them"
            )
        note = {
            "schema": _SCHEMA,
            "command": command,
            "settings": asdict(wanted),
            "scale": run.inputs.labels.scale.name,
            "question": run.inputs.question,
            "found": run.found(),
            "summary": {name: run.summary[name] for name in ("headline", "numbers")},
            "inputs": inputs,
            "reading": {
                "labels_as": {name: value for name, value in (labels_as or {}).items() if not callable(value)},
                "features_as": dict(features_as or {}),
                "join": join,
                "show": show,
                "time": time,
            },
            "notes": list(run.inputs.notes),
            "versions": versions(),
            "started": started,
            "finished": _now(),
            "seconds": round(monotonic() - began, 2),
            "files": sorted([*(path.name for path in folder.iterdir()), NOTE]),
        }
        write_file(folder / NOTE, json.dumps(note, indent=2, ensure_ascii=False) + "\n")
    return run


def fit_inputs(inputs: Inputs, settings: Settings | None = None, on_round: OnRound | None = None) -> Run:
    """Fit a model to what was read.

    Parameters
    ----------
    inputs : Inputs
        Labels, and features if there are any.
    settings : Settings, default=None
        Which model, and how; by default all is chosen.
    on_round : callable, default=None
        Is given a `Round` after every round of the fit.

    Returns
    -------
    run : Run
    """
    scale = inputs.labels.scale.name
    wanted = (settings or Settings()).settled(features=inputs.X is not None, truth=bool(inputs.truth), scale=scale)
    return Run(inputs, wanted, fit_model(inputs.labels, inputs.X, wanted, inputs.truth, on_round))


def _write(run: Run, folder: Path, form: str, aliases: Mapping[str, str]) -> None:
    tables = [run.table(name) for name in ("consensus", "annotators", "next")]
    if aliases:
        tables.append(ResultTable("names", {"in_report": [*aliases.values()], "annotator": [*aliases]}))
    for table in tables:
        with open(folder / f"{table.name}.csv", "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(table.csv_parts())
    page = RENDERERS[f".{form}"](with_aliases(run.summary, aliases))
    write_file(folder / f"report.{form}", page)
    run.model.save(folder / MODEL)
    labels = replace(run.inputs.labels, abstentions=None)  # which no table shows
    save(labels.with_truth(run.inputs.truth), folder / LABELS)
    if run.inputs.features is not None and run.settings.model != "labels-only":
        write_file(folder / RECIPE, run.inputs.features.recipe.to_json())


def _described(what: str, path: PathLike) -> dict[str, Any]:
    """A file that went in, so that another one of the same name is noticed."""
    name = os.fspath(path)
    if not os.path.isfile(path):  # standard input, a named pipe, a folder with a file per annotator
        return {"what": what, "path": name}
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"what": what, "path": name, "bytes": file.tell(), "sha256": digest}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
        named = [one for one in self.note["inputs"] if one["what"] == "features"]
        if reading["show"] is not None or (reading["features_as"].get("text") and not named):  # labels have the texts
            files = {one["what"]: self._unchanged(one) for one in self.note["inputs"]}
            return read_inputs(files["labels"], files.get("features"), truth=files.get("truth"), **reading)
        if not named:
            return self.kept
        path = self.path / RECIPE
        settings = {name: value for name, value in reading["features_as"].items() if name in ("id", "ids")}
        table = read_features(
            self._unchanged(named[0]),
            encoding=reading["labels_as"].get("encoding"),
            recipe=Recipe.from_json(path.read_bytes()) if path.is_file() else None,
            **settings,
        )
        if table.ids.tolist() != list(map(str, self.kept.labels.examples.tolist())):
            raise DataError(f"the examples of {named[0]['path']} are not those of {self.path}: make the run again.")
        return replace(self.kept, features=table, texts=table.texts)

    def _unchanged(self, noted: dict[str, Any]) -> Path:
        """A file that went in; an error if it is not there, or is another one."""
        path = Path(noted["path"])
        if "sha256" not in noted or not path.is_file():
            raise MissingDataError(f"{path}, which {self.path} was fitted to, is not there any more.")
        if _described(noted["what"], path) != noted:
            raise DataError(f"{path} is not the file any more that {self.path} was fitted to: make the run again.")
        return path

    def model(self) -> Any:
        """The fitted model, or the result of `aggregate`."""
        return load(self._kept(MODEL))

    def _kept(self, name: str) -> Path:
        """A file of the run; an error if someone took it away."""
        path = self.path / name
        if not path.is_file():
            again = self.note.get("command") or "crowdwise fit"
            raise MissingDataError(f"{path} is not there any more: make the run again ({again}).")
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
            Such as "latin-1"; by default UTF-8, or UTF-16 where the file begins with its mark.
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
        return predictions(self.model(), table.ids.tolist(), table.X)

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
            raise OutputError(f"{os.fspath(path)} is there already. Choose another name, or replace it: --force.")
        consensus = results_of(self.model()).consensus
        formats.write(consensus, path, format=format, tasks=tasks, question=question or self.note.get("question"))


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
    found = compare(*(run._run.judged() for run in runs))
    before, after = ((run.note["found"].get("alpha") or {}).get("value") for run in runs)
    alpha = None if before is None or after is None else (before, after)
    return replace(found, alpha=alpha, drift=tuple(run.note["found"].get("drift", "") for run in runs))


def predictions(model: Any, ids: list[Any], X: Any) -> ResultTable:
    """A row per example with the class or rating that a fitted model predicts."""
    columns: dict[str, list[Any]] = {"example": ids, "label": model.predict(X).tolist()}
    if hasattr(model, "predict_proba"):
        proba = np.asarray(model.predict_proba(X))
        columns["confidence"] = proba.max(axis=1).tolist()
        columns |= {f"p({name})": p.tolist() for name, p in zip(model.classes_.tolist(), proba.T, strict=True)}
    elif hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        columns["score"] = (scores if scores.ndim == 1 else scores.max(axis=1)).tolist()
    return ResultTable("predictions", columns)


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


def is_run(path: PathLike) -> bool:
    """Whether a path is the folder of a run."""
    recover(Path(os.path.realpath(path)))
    return (Path(path) / NOTE).is_file()


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        note = json.loads((folder / NOTE).read_bytes())
    except FileNotFoundError:
        raise DataError(f"{folder} is no run of crowdwise fit: it has no {NOTE}.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{folder / NOTE} is damaged: {error}. Make the run again.") from error
    if not isinstance(note, dict) or not str(note.get("schema", "")).startswith("crowdwise.run/"):
        raise DataError(f"{folder / NOTE} is not the note of a run of crowdwise fit.")
    if note["schema"] != _SCHEMA:
        raise DataError(
            f"{folder} was written by crowdwise {note.get('versions', {}).get('crowdwise')} as {note['schema']}; "
            f"this version reads {_SCHEMA}. Use that version, or make the run again."
        )
    return note


def check_is_run(folder: Path) -> bool:
    """True if a folder is a run with nothing else in it; else an error, for it must not be replaced."""
    try:
        ours = {*_read_note(folder)["files"]}
    except (DataError, KeyError, TypeError) as error:
        raise OutputError(
            f"{folder} is not replaced, for it is no run of crowdwise fit. Choose another folder with --out."
        ) from error
    return holds_only(folder, ours)
