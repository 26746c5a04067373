"""Models, records and settings <-> JSON and arrays. Only what is in a fixed table is made again; nothing is imported
by a name that a file gives.

Plain values are themselves in JSON. Everything else is an object with its "kind". An array is a member of its own;
arrays that share their memory are one member.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import math
import types
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from textwrap import shorten
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from crowdwise._arrays import Array, read_only
from crowdwise.exceptions import ModelFileError
from crowdwise.model_file._archive import ArchiveReader, ArchiveWriter
from crowdwise.model_file._foreign import dump_foreign, is_foreign, load_foreign

# Where each class is that a file may name.
_ESTIMATORS = {
    "CrowdClassifier": "em.any_classifier",
    "CrowdLogisticClassifier": "logistic.classifier",
    "CrowdRidgeClassifier": "ridge.classifier",
    "CrowdRidgeClassifierCV": "ridge.classifier",
    "CrowdRidgeRegressor": "ridge.regressor",
    "EasyFirstPerceptron": "paper.theory.perceptron",
}
_RECORDS = {
    "Annotators": "em.posterior",
    "Calibration": "truths.calibration",
    "Choice": "results.fit_results",
    "Confusion": "em.confusion",
    "Consensus": "results.consensus",
    "CrowdLabels": "labels.crowd_labels",
    "DataSummary": "rows.summary",
    "Discount": "em.common_errors",
    "Fading": "weights.curricula",
    "FitResults": "results.fit_results",
    "FittedAnnotators": "em.fitted",
    "FittedEstimator": "em.any_classifier",
    "FittedLogistic": "logistic.fit",
    "FittedRidge": "ridge.fitted",
    "Fixed": "weights.curricula",
    "LabelScale": "labels.scale",
    "OneCoin": "em.confusion",
    "Ordinal": "em.ordinal",
    "PairMoments": "crowd._disagreement",
    "Progress": "paper.theory.online",
    "RatingCheck": "truths.check",
    "Raters": "em.ratings",
    "RatingConsensus": "results.consensus",
    "RatingMoments": "crowd._disagreement",
    "RidgeSums": "ridge.sums",
    "Sample": "rows.summary",
    "Scaling": "probabilities",
    "SelfPaced": "weights.curricula",
    "Shared": "em.confusion",
    "Smooth": "weights.curricula",
    "Statistics": "ridge.statistics",
    "SumsPlan": "ridge.sums",
    "Targets": "ridge.targets",
    "TruthCheck": "truths.check",
    "VoteSharing": "crowd.vote_sharing",
}
# What a file is of.
MODELS = {*_ESTIMATORS, "CrowdLabels", "FitResults"}
# The axes of fields of a record or an estimator: examples, annotators, classes, or anything.
_AXES = {
    "examples": "disagreement easiness consensus label_consensus label std examples",
    "examples classes": "consensus_proba label_proba proba model_proba",
    "annotators": "n_labels expertise accuracy expertise_share offset spread vote_weight n_truths truth_accuracy "
    "rank_correlation annotators",
    "annotators any classes": "confusion",
    "annotators classes": "abstention",
    "any classes": "crowd",
    "classes": "class_prior class_weight classes",
}
_AXES_OF = {name: axes.split() for axes, names in _AXES.items() for name in names.split()}
_PLAIN = (type(None), bool, int, str)
# Kinds of NumPy's scalars that are written as a number or a string; times as the whole number that they are.
_TIMES = "Mm"
_SCALARS = f"biufU{_TIMES}"


def _class(table: dict[str, str], name: str) -> Any:
    if name not in table:
        raise ModelFileError(f"it holds a {name!r}, which this version does not know")
    return getattr(import_module(f"crowdwise.{table[name]}"), name)


class Encoder:
    """Values -> JSON; arrays and foreign estimators go to members of an archive."""

    def __init__(self, writer: ArchiveWriter) -> None:
        self._writer = writer
        self._members: dict[Any, tuple[str, Any]] = {}  # with what is in them, so that its place in memory stays taken

    def encode(self, value: Any, where: str) -> Any:
        """One value; `where` is what it is, for messages."""
        if type(value) in _PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"kind": "float", "value": str(value)}
        if type(value) is list:
            return [self.encode(item, where) for item in value]
        if type(value) is tuple:
            return {"kind": "tuple", "items": [self.encode(item, where) for item in value]}
        if type(value) is dict:
            pairs = [[self.encode(key, where), self.encode(item, where)] for key, item in value.items()]
            return {"kind": "dict", "items": pairs}
        if isinstance(value, np.ndarray):
            return {"kind": "array", "member": self._array(value, where), "read_only": not value.flags.writeable}
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> Any:
        name = type(value).__name__
        if isinstance(value, np.generic) and value.dtype.kind in _SCALARS and value.dtype != np.longdouble:
            plain = int(value.astype(np.int64)) if value.dtype.kind in _TIMES else value.item()
            return {"kind": "scalar", "type": value.dtype.str, "value": self.encode(plain, where)}
        if type(value) is bytes:
            return {"kind": "bytes", "value": value.hex()}
        if type(value) in (datetime.date, datetime.datetime) and getattr(value, "tzinfo", None) is None:
            return {"kind": name, "value": value.isoformat()}
        if isinstance(value, np.random.Generator) and type(value.bit_generator) is np.random.PCG64:
            return {"kind": "generator", "state": self.encode(value.bit_generator.state, where)}
        if name in _RECORDS and type(value) is _class(_RECORDS, name):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
            return {"kind": "record", "name": name, "fields": self._named(fields, name)}
        if name in _ESTIMATORS and type(value) is _class(_ESTIMATORS, name):
            settings, state = value.get_params(deep=False), value._learned()
            return {
                "kind": "estimator",
                "name": name,
                "settings": self._named(settings, name),
                "state": self._named(state, name),
            }
        if is_foreign(value):
            return {"kind": "foreign", "member": self._foreign(value, where)}
        raise ModelFileError(
            f"{where} cannot be saved: {shorten(repr(value), 80)} is of type {type(value).__module__}."
            f"{type(value).__qualname__}. A model file holds numbers, strings, times, arrays and crowdwise's own "
            "objects, and no code."
        )

    def _named(self, values: dict[str, Any], owner: str) -> dict[str, Any]:
        return {name: self.encode(value, f"{name} of {owner}") for name, value in values.items()}

    def _array(self, array: Array, where: str) -> str:
        place = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str
        if place not in self._members:
            name = f"{len(self._members)}.{'json' if array.dtype == object else 'npy'}"
            self._members[place] = name, array
            if array.dtype == object:
                items = self.encode(array.ravel().tolist(), f"a value in {where}")
                self._writer.add_json(name, {"shape": array.shape, "items": items})
            else:
                self._writer.add_array(name, np.asarray(array))
        return self._members[place][0]

    def _foreign(self, value: Any, where: str) -> str:
        if id(value) not in self._members:
            name = f"{len(self._members)}.skops"
            self._members[id(value)] = name, value
            self._writer.add_bytes(name, dump_foreign(value, where))
        return self._members[id(value)][0]


class Decoder:
    """JSON -> values; foreign estimators only of types that skops trusts, or that are listed as `trusted`."""

    def __init__(self, reader: ArchiveReader, trusted: Sequence[str]) -> None:
        self._reader = reader
        self._trusted = trusted
        self._members: dict[str, Any] = {}
        self._kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda node: float(node["value"]),
            "tuple": lambda node: tuple(map(self.decode, node["items"])),
            "dict": lambda node: {self.decode(key): self.decode(value) for key, value in node["items"]},
            "array": self._array,
            "scalar": self._scalar,
            "bytes": lambda node: bytes.fromhex(node["value"]),
            "date": lambda node: datetime.date.fromisoformat(node["value"]),
            "datetime": lambda node: datetime.datetime.fromisoformat(node["value"]),
            "generator": self._generator,
            "record": self._record,
            "estimator": self._estimator,
            "foreign": self._foreign,
        }

    def decode(self, node: Any) -> Any:
        """One value."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        return self._kinds[node["kind"]](node) if isinstance(node, dict) else node

    def _scalar(self, node: dict[str, Any]) -> np.generic:
        dtype, plain = np.dtype(node["type"]), self.decode(node["value"])
        if dtype.kind not in _SCALARS:
            raise ModelFileError(f"it holds a scalar of type {dtype}")
        return np.int64(plain).astype(dtype) if dtype.kind in _TIMES else dtype.type(plain)

    def _array(self, node: dict[str, Any]) -> Array:
        name = node["member"]
        if name not in self._members:
            self._members[name] = self._objects(name) if name.endswith(".json") else self._reader.array(name)
        array: Array = self._members[name]
        return read_only(array) if node["read_only"] else array

    def _objects(self, name: str) -> Array:
        stored = self._reader.json(name)
        items = self.decode(stored["items"])
        return np.fromiter(items, dtype=object, count=len(items)).reshape(stored["shape"])

    def _generator(self, node: dict[str, Any]) -> np.random.Generator:
        bits = np.random.PCG64()
        bits.state = self.decode(node["state"])
        return np.random.Generator(bits)

    def _record(self, node: dict[str, Any]) -> Any:
        kind, fields = _class(_RECORDS, node["name"]), self._named(node["fields"])
        _check_names(kind, fields)
        declared = _types(kind)
        for name, value in fields.items():
            if not _fits(value, declared[name]):
                raise ModelFileError(f"{name} of {node['name']} is of another type than this version expects")
        check_lengths(fields)
        return kind(**fields)

    def _estimator(self, node: dict[str, Any]) -> Any:
        kind, settings = _class(_ESTIMATORS, node["name"]), self._named(node["settings"])
        _check_names(kind, settings)
        model, state = kind(**settings), self._named(node["state"])
        if any(hasattr(kind, name) for name in state):
            raise ModelFileError(f"it would replace a part of {node['name']} that is not a result")
        model._put_back(state)
        return model

    def _named(self, nodes: dict[str, Any]) -> dict[str, Any]:
        return {name: self.decode(node) for name, node in nodes.items()}

    def _foreign(self, node: dict[str, Any]) -> Any:
        name = node["member"]
        if name not in self._members:
            self._members[name] = load_foreign(self._reader.bytes(name), self._trusted)
        return self._members[name]


def check_lengths(values: dict[str, Any]) -> None:
    """Raise unless fields of the same examples, annotators or classes have one length."""
    lengths: dict[str, dict[str, int]] = {}
    for name, value in values.items():
        axes = _AXES_OF.get(name.removesuffix("_"), ())
        array = getattr(value, "examples", value) if axes and axes[0] == "examples" else value  # of a consensus
        if axes and isinstance(array, np.ndarray):
            if array.ndim != (1 if array is not value else len(axes)):
                raise ModelFileError(
                    f"{name} is of different numbers of {' and '.join(axes)}: its shape is {array.shape}"
                )
            for axis, length in zip(axes, array.shape, strict=False):
                lengths.setdefault(axis, {})[name] = length
    for axis, by_name in lengths.items():
        if axis != "any" and len(set(by_name.values())) > 1:
            raise ModelFileError(f"its arrays are of different numbers of {axis}: {by_name}")


def _check_names(kind: type, arguments: dict[str, Any]) -> None:
    """Raise unless these are the arguments that a class is made with."""
    parameters = inspect.signature(kind).parameters
    if unknown := arguments.keys() - parameters.keys():
        raise ModelFileError(f"this version's {kind.__name__} has no {', '.join(sorted(unknown))}")
    needed = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    if missing := needed - arguments.keys():
        raise ModelFileError(f"this version's {kind.__name__} also needs {', '.join(sorted(missing))}")


@cache
def _types(kind: type) -> dict[str, Any]:
    """The fields of a record, with the types that they are declared with."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _fits(value: Any, hint: Any) -> bool:
    """Whether arrays, records, numbers and texts are where they are declared; all else is taken as it is."""
    if hasattr(get_origin(hint), "__value__"):  # an alias, as NumPy's own of arrays is from 2.5 on
        hint = get_origin(hint).__value__[get_args(hint)]
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, alternative) for alternative in get_args(hint))
    if get_origin(hint) is np.ndarray:
        (number,) = get_args(get_args(hint)[1])
        return isinstance(value, np.ndarray) and (number is Any or np.issubdtype(value.dtype, _family(number)))
    if hint is type(None) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return isinstance(value, hint)
    if hint in (float, int, bool, str):
        return isinstance(value, (float, int, np.number) if hint is float else (hint, np.generic))
    return hint is Any or not isinstance(value, np.ndarray)


def _family(number: type) -> type:
    """All kinds of floats for one of them: features in single precision may lead to results of that."""
    return np.floating if issubclass(number, np.floating) else number
