"""A fitted model <-> one file: arrays, and a manifest in JSON. Nothing in it is run when it is read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from crowdwise._files import sweep_beside, write_file
from crowdwise.exceptions import MissingDataError, MissingExtraError, ModelFileError, OutputError
from crowdwise.model_file._archive import MANIFEST, ArchiveReader, ArchiveWriter
from crowdwise.model_file._codec import MODELS, Decoder, Encoder, check_lengths

FORMAT = "crowdwise model"
# Counts up when files change in a way that earlier versions of crowdwise would not understand.
FORMAT_VERSION = 1


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model or an aggregation to a file; what was there before stays until the new file is complete."""
    target = Path(os.path.realpath(path))
    try:
        write_file(target, lambda file: _write(model, file))
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"the model cannot be written to {target}: {error.strerror or error}. What was there before is unchanged."
        ) from error
    sweep_beside(target)


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """The model or aggregation that `save` wrote to a file.

    Predictions and consensus are the same to the last bit. A file that is damaged, that was changed or that is none
    of ours is refused, and nothing in it is run: it holds arrays and JSON. An estimator of another package inside a
    `CrowdClassifier` is read by skops, which makes no object of a type that is not trusted.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str, default=()
        Types in another package's estimator to trust besides those that skops does, such as "sklearn.tree._tree.Tree"
        for a forest.

    Returns
    -------
    model : estimator or FitResults

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crowdwise
    >>> path = Path(tempfile.mkdtemp()) / "answers.crowdwise"
    >>> crowdwise.aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0]]).save(path)
    >>> crowdwise.load(path).label.tolist()
    [1, 0, 1]
    """
    source = Path(path)
    if source.exists() and not source.is_file():
        raise ModelFileError(f"{source} is a folder or a device; a model is one file.")
    if not source.exists():
        raise MissingDataError(f"there is no file {source}; a model that save() wrote was expected.")
    with open(source, "rb") as file:
        try:
            model = _read(file, [trusted] if isinstance(trusted, str) else trusted)
            _check_usable(model)
            return model
        except MissingExtraError as error:
            raise MissingExtraError(f"{source} cannot be read: {error}") from None
        except ModelFileError as error:
            raise ModelFileError(f"{source} cannot be read: {error}.") from None
        except MemoryError:  # of a file whose sizes are right
            raise
        except Exception as error:  # whatever a damaged or made-up file leads to
            raise ModelFileError(
                f"{source} cannot be read: it is damaged or not a model file ({type(error).__name__}: {error})."
            ) from error


def _write(model: Any, file: IO[bytes]) -> None:
    with ArchiveWriter.on(file) as writer:
        content = Encoder(writer).encode(model, type(model).__name__)
        made_by = f"crowdwise {import_module('crowdwise').__version__}"
        writer.add_json(MANIFEST, {"format": FORMAT, "version": FORMAT_VERSION, "made_by": made_by, "model": content})


def _read(file: Any, trusted: Sequence[str]) -> Any:
    reader = ArchiveReader.on(file)
    manifest = reader.json(MANIFEST)
    if manifest["format"] != FORMAT:
        raise ModelFileError(f"its format is {manifest['format']!r}, not {FORMAT!r}")
    if type(manifest["version"]) is not int or manifest["version"] < 1:
        raise ModelFileError(f"its version is {manifest['version']!r}, which no model file has")
    if manifest["version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"it was made by a newer version, {manifest['made_by']}, in format {manifest['version']}; this one reads "
            f"up to format {FORMAT_VERSION}: upgrade crowdwise"
        )
    if manifest["model"]["kind"] not in ("estimator", "record") or manifest["model"]["name"] not in MODELS:
        raise ModelFileError(f"it holds a {manifest['model'].get('name', manifest['model']['kind'])!r} and no model")
    try:
        return Decoder(reader, trusted).decode(manifest["model"])
    except ModelFileError as error:
        raise ModelFileError(f"{error} (it was made by {manifest['made_by']})") from error


def _check_usable(model: Any) -> None:
    """Raise unless what a model holds fits together: it is tried here, so that no prediction fails later."""
    results = vars(model).get("results_", model)
    if hasattr(results, "annotator_columns"):
        sizes = {name: np.shape(column) for name, column in results.annotator_columns().items()}
        if {*sizes.values()} != {(len(results.annotators),)}:
            raise ModelFileError(f"its arrays are of different numbers of annotators: {sizes}")
    if not hasattr(model, "fit"):
        return
    state = vars(model)
    has_results = "results_" in state or not hasattr(model, "consensus")
    if state.keys().isdisjoint(("coef_", "estimator_", "sums_")) or not (has_results or "sums_" in state):
        raise ModelFileError("it lacks what a model predicts with")
    check_lengths(state)
    if "coef_" not in state:
        return
    coef, intercept = np.shape(state["coef_"]), np.shape(state.get("intercept_", 0.0))
    n_features = state.get("n_features_in_")
    if coef[-1:] != (n_features,):
        raise ModelFileError(f"its coefficients are of other features than its {n_features}")
    if intercept and intercept != coef[:-1]:
        raise ModelFileError(f"its arrays are of different numbers of scores: {coef[:-1]} and {intercept}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        predicted = model.predict(np.zeros((1, n_features)))
    if np.shape(predicted) != (1,):
        raise ModelFileError(f"its prediction for one example has the shape {np.shape(predicted)}")
