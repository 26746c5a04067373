"""A run, or files of labels and features -> a studio, and the folder in which its answers are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy import sparse

from crowdwise._files import write_file
from crowdwise.exceptions import DataError
from crowdwise.results.fit_results import FitResults
from crowdwise.ridge.classifier import CrowdRidgeClassifierCV
from crowdwise.runs.inputs import Inputs, PathLike
from crowdwise.runs.models import Settings, estimator_of
from crowdwise.runs.saved_run import open_run
from crowdwise.session import Session
from crowdwise.studio._state import Studio

JOURNAL, _NOTE = "answers.jsonl", "studio.json"


def of_run(path: PathLike, model: str = "auto", **session: Any) -> tuple[Studio, Path]:
    """The studio of a run of ``crowdwise fit``; answers are kept in its folder.

    It opens with the model of the run, or with another one that is asked for. What the run has found is used until the
    first answer, so that no fit is waited for, and the first screen has the numbers of the report.
    """
    run = open_run(path)
    title = f"{run.path.name}: {run.note['inputs'][0]['path']}"
    settings, summary = Settings(**run.note["settings"]), run.note.get("summary")
    if model != "auto":
        settings = replace(settings, model=model)
    studio = of_inputs(run.inputs(), run.path, settings, title=title, fitted=run.model(), summary=summary, **session)
    return studio, run.path


def of_inputs(
    inputs: Inputs,
    folder: Path,
    settings: Settings | None = None,
    *,
    title: str = "crowdwise",
    pictures: Path | None = None,
    experts: tuple[str, ...] = (),
    fitted: Any = None,
    summary: Mapping[str, Any] | None = None,
) -> Studio:
    """The studio of what was read; the journal of its answers is in the folder, and goes on if it is there.

    Known answers are used in the fits, and measure people. `fitted` is the model of a run of these inputs and `summary`
    what is said of it, used as long as they are what the studio itself would find.
    """
    labels, settings = inputs.labels, settings or Settings()
    if labels.classes is None:
        raise DataError("the studio is for classes. Ratings have a report: crowdwise fit --ratings.")
    can_be_ridge = inputs.X is not None and not sparse.issparse(inputs.X) and labels.levels is None
    about_model = ""
    if settings.model == "auto" and can_be_ridge and fitted is None:
        settings = replace(settings, model="ridge")
        about_model = "Ridge follows the sliders live; crowdwise fit uses the logistic model by default."
    settings = settings.settled(features=inputs.X is not None, truth=bool(inputs.truth), scale=labels.scale.name)
    labels = settings.known_of(labels if inputs.truth is None else labels.with_truth(inputs.truth))
    _check_same(folder, labels.shape, labels.n_labels)
    model = estimator_of(settings)
    is_same = type(fitted) is (FitResults if model is None else type(model))
    if fitted is not None and not is_same:
        about_model = "The run itself has another model, so its report has other numbers."
    elif fitted is not None and inputs.truth and not settings.use_truth:
        about_model = "It uses the known answers, which the run only compared its consensus with (see --use-truth)."
    elif fitted is not None and settings.model == "logistic" and can_be_ridge:
        about_model = "For sliders that follow live, open the run with --model ridge."
    if not is_same or (inputs.truth and not settings.use_truth):
        fitted, summary = None, None
    elif model is not None:
        model = fitted
    if isinstance(model, CrowdRidgeClassifierCV):  # the sliders solve it again, however large it is
        model.set_params(keep_sums=True)
    session = Session(
        labels,
        None if model is None else inputs.X,
        model=model,
        texts=inputs.texts,
        experts=experts,
        journal=folder / JOURNAL,
    )
    if model is None:
        session.settings = {} if settings.steepness == "auto" else {"steepness": settings.steepness}
        if fitted is not None:
            session._keep(fitted, 0)
    names = None if inputs.features is None else inputs.features.recipe.feature_names
    return Studio(session, title, feature_names=names, pictures=pictures, summary=summary, about_model=about_model)


def _check_same(folder: Path, shape: tuple[int, ...], n_labels: int) -> None:
    """Raise if the folder has the answers to other examples."""
    note, size = folder / _NOTE, {"examples": shape[0], "annotators": shape[1], "labels": n_labels}
    if not note.is_file():
        write_file(note, json.dumps(size) + "\n")
    elif json.loads(note.read_bytes()) != size:
        raise DataError(f"{folder} has the answers of a session with other labels. Choose another folder: --out.")
