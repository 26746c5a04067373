"""Files -> a fitted model and its results, kept in a folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdwise._checks import check_choice
from crowdwise._files import Unchanged, write_file
from crowdwise._progress import OnRound
from crowdwise._text import how_to_install, versions
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import DataError, MissingExtraError
from crowdwise.model_file import save
from crowdwise.reporting.annotators import annotator_columns
from crowdwise.reporting.drift import sentence
from crowdwise.reporting.examples import consensus_columns
from crowdwise.reporting.fit import Fit
from crowdwise.reporting.report import RENDERERS, aliases_of, with_aliases
from crowdwise.reporting.summarize import summary_of
from crowdwise.results.fit_results import FitResults
from crowdwise.results.suggest import suggest_labels
from crowdwise.runs.inputs import Inputs, PathLike, read_inputs
from crowdwise.runs.models import Settings, estimator_of
from crowdwise.runs.new_folder import is_replaceable, new_folder, recover, write_note
from crowdwise.runs.result_table import ResultTable

NOTE, MODEL, LABELS, RECIPE, NAMES = "run.json", "model.crowdwise", "labels.crowdwise", "features.json", "names.csv"
SCHEMA = "crowdwise.run/1"
_MOST_NEXT = 10_000  # rows of next.csv
_ALIASES = (
    f"report: annotators whose names look like personal data are A1, A2, ...; {NAMES} has the key, --names keeps them"
)
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
        data = self.inputs
        return Fit.of(self.model, data.labels, X=data.X, texts=data.texts, truth=data.truth, times=data.times)

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
        settings: dict[str, Any] = {"n": n, "crowd": crowd, "at_random": at_random, "random_state": seed}
        return ResultTable("next", suggest_labels(self.model, self.inputs.labels, **settings).columns())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the report shows, as a plain dictionary."""
        return summary_of(self._fit, self.command, self.title)

    def results_with_truth(self) -> FitResults:
        """The results, with all answers that are known and how often each annotator is right about them."""
        return self._fit.results.with_truth(self._fit.labels, self._fit.answers)

    def chosen(self) -> dict[str, Any]:
        """The settings that the fit chose where none were given, and what it is compared by with another run."""
        results, l2 = self._fit.results, getattr(self.model, "l2_", None)
        chosen = {
            "model": self.settings.model,
            "steepness": float(results.steepness),
            "converged": results.converged,
            "alpha": self.summary["alpha"],
            "drift": sentence(self.summary),
        }
        return chosen if l2 is None else chosen | {"l2": float(l2)}


def fit(
    labels: PathLike,
    features: PathLike | None = None,
    *,
    out: PathLike | None = None,
    force: bool = False,
    truth: PathLike | None = None,
    settings: Settings | None = None,
    command: str | None = None,
    report: Literal["html", "md", "json"] = "html",
    names: bool = False,
    info: Info = lambda _: None,
    on_round: OnRound | None = None,
    **reading: Any,
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
        Called with a `Round` after every round of the fit.
    **reading
        labels_as, features_as, join, show and time of `read_inputs`.

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
    paths = (("labels", labels), ("features", features), ("truth", truth))
    files = {role: path for role, path in paths if path is not None}
    unchanged = Unchanged(files.values())

    def read_and_fit() -> Run:
        inputs = read_inputs(labels, features, truth=truth, **reading)
        for note in inputs.notes:
            info(note)
        unchanged.check()
        return replace(fit_inputs(inputs, settings, on_round), command=command, title=_title(labels, **reading))

    if out is None:
        return read_and_fit()
    if find_spec("jinja2") is None:  # before the work begins
        raise MissingExtraError(f"The report needs Jinja2: {how_to_install('cli')}.")
    started = datetime.now(UTC)
    with new_folder(out, may_replace=lambda old: force and may_be_replaced(old)) as folder:
        sources = [described(role, path) for role, path in files.items()]
        run = read_and_fit()
        if _write_results(run, folder, report, names=names):
            info(_ALIASES)
        asked = {"command": command, "settings": asdict(settings or Settings()), "inputs": sources}
        write_note(folder, NOTE, SCHEMA, asked | _about(run, reading, started))
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
        Called with a `Round` after every round of the fit.

    Returns
    -------
    run : Run
    """
    labels, X, truth = inputs.labels, inputs.X, inputs.truth
    scale = labels.scale.name
    settings = (settings or Settings()).settled(features=X is not None, truth=bool(truth), scale=scale)
    crowd, model = settings.known_of(labels), estimator_of(settings, scale)
    options: dict[str, Any] = {"truth": truth if settings.use_truth else None, "on_round": on_round}
    if model is None:
        steepness: Any = 0.0 if settings.steepness == "auto" else settings.steepness
        return Run(inputs, settings, aggregate(crowd, steepness=steepness, **options))
    return Run(inputs, settings, model.fit(X, crowd, **options))


def is_run(path: PathLike) -> bool:
    """Whether a path is the folder of a run."""
    recover(Path(os.path.realpath(path)))
    return (Path(path) / NOTE).is_file()


def may_be_replaced(folder: Path) -> bool:
    """True if a folder is a run with nothing else in it; else an error."""
    return is_replaceable(folder, NOTE, SCHEMA, "is not a run of crowdwise fit")


def _title(labels: PathLike, labels_as: Mapping[str, Any] | None = None, **_: Any) -> str:
    parts = (Path(labels).name, (labels_as or {}).get("question"), f"{datetime.now():%d %B %Y}".lstrip("0"))
    return " · ".join(filter(None, parts))


def _write_results(run: Run, folder: Path, form: str, *, names: bool) -> bool:
    """Write all but the note; whether the report has aliases in place of names of annotators."""
    aliases = {} if names else aliases_of(run.inputs.labels.annotators.tolist())
    tables = [run.table(name) for name in ("consensus", "annotators", "next")]
    if aliases:
        tables.append(ResultTable("names", {"in_report": [*aliases.values()], "annotator": [*aliases]}))
    for table in tables:
        table.write(folder)
    write_file(folder / f"report.{form}", RENDERERS[f".{form}"](with_aliases(run.summary, aliases)))
    run.model.save(folder / MODEL)
    labels = replace(run.inputs.labels, abstentions=None)  # which no table shows
    save(labels.with_truth(run.inputs.truth), folder / LABELS)
    if run.inputs.features is not None and run.settings.model != "labels-only":
        write_file(folder / RECIPE, run.inputs.features.recipe.to_json())
    return bool(aliases)


def _about(run: Run, reading: dict[str, Any], started: datetime) -> dict[str, Any]:
    """What the note states of a run besides what it was asked for."""
    finished = datetime.now(UTC)
    labels_as = {name: value for name, value in (reading.get("labels_as") or {}).items() if not callable(value)}
    return {
        "scale": run.inputs.labels.scale.name,
        "question": run.inputs.question,
        "found": run.chosen(),
        "summary": {name: run.summary[name] for name in ("headline", "numbers")},
        "reading": reading | {"labels_as": labels_as},
        "notes": list(run.inputs.notes),
        "versions": versions(),
        "started": started.isoformat(timespec="seconds"),
        "finished": finished.isoformat(timespec="seconds"),
        "seconds": round((finished - started).total_seconds(), 2),
    }


def described(role: str, path: PathLike) -> dict[str, Any]:
    """A file that went in, so that another one of the same name is noticed."""
    name = os.fspath(path)
    if not os.path.isfile(path):  # standard input, a named pipe, a folder with a file per annotator
        return {"what": role, "path": name}
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"what": role, "path": name, "bytes": file.tell(), "sha256": digest}
