"""What a client sends -> checked values, by the description of the routes in openapi.json; the same for our answers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache, reduce
from importlib.resources import files
from operator import getitem
from typing import Any

Schema = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip


class Problem(Exception):
    """A request that cannot be answered: its status, what is wrong, and in which field."""

    def __init__(self, status: int, text: str, field: str | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.field = status, text, field


@cache
def description() -> Schema:
    """What is in openapi.json."""
    return json.loads(files("crowdwise.studio").joinpath("openapi.json").read_bytes())


def resolved(node: Schema) -> Schema:
    """What a reference stands for; anything else as it is."""
    if "$ref" not in node:
        return node
    keys = node["$ref"].removeprefix("#/").split("/")
    return resolved(reduce(getitem, keys, description()))


def query_values(operation: Schema, query: Mapping[str, list[str]]) -> dict[str, Any]:
    """The parameters of an operation from a query; what is not given has its default, or is None."""
    parameters = {parameter["name"]: parameter for parameter in map(resolved, operation.get("parameters", []))}
    values: dict[str, Any] = {}
    for name in query:
        if name not in parameters:
            known = ", ".join(parameters) or "no parameters"
            raise Problem(422, f"there is no parameter {name!r} here; there is: {known}.", name)
        if len(query[name]) > 1:
            raise Problem(422, "given more than once.", name)
    for name, parameter in parameters.items():
        schema = resolved(parameter["schema"])
        if name in query:
            values[name] = _from_text(query[name][0], schema, name)
            check_value(values[name], schema, name)
        elif parameter.get("required"):
            raise Problem(422, "is needed.", name)
        else:
            values[name] = schema.get("default")
    return values


def _from_text(text: str, schema: Schema, field: str) -> Any:
    kind = schema.get("type", "string")
    if kind not in ("number", "integer"):
        return text
    try:
        return (int if kind == "integer" else float)(text)
    except ValueError:
        raise Problem(422, f"must be a {kind}; got {text[:80]!r}.", field) from None


def check_value(value: Any, schema: Schema, field: str) -> None:
    """Raise a `Problem` unless a value is as its schema describes it."""
    schema = resolved(schema)
    kinds = schema.get("type", [])
    allowed = [kinds] if isinstance(kinds, str) else kinds
    if allowed and not any(_is(value, kind) for kind in allowed):
        raise Problem(422, f"must be {' or '.join(allowed)}; got {str(value)[:80]!r}.", field)
    if "enum" in schema and value not in schema["enum"]:
        raise Problem(422, f"must be one of {', '.join(map(str, schema['enum']))}; got {str(value)[:80]!r}.", field)
    if isinstance(value, str):
        low, high = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if not low <= len(value) <= high or not re.search(schema.get("pattern", ""), value):
            raise Problem(422, f"must be a text of {low} to {high} characters that is not blank.", field)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if value in (math.inf, -math.inf) or not low <= value <= high:
            raise Problem(422, f"must be a number from {low} to {high}; got {value!r:.80}.", field)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            check_value(item, schema.get("items", {}), f"{field}[{position}]")
    elif isinstance(value, dict):
        _check_object(value, schema, field)


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _check_object(value: dict[str, Any], schema: Schema, field: str) -> None:
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            raise Problem(422, "is needed.", _inside(field, name))
    for name, item in value.items():
        if name in properties:
            check_value(item, properties[name], _inside(field, name))
        elif schema.get("additionalProperties") is False:
            raise Problem(422, f"is not known here; there is: {', '.join(properties)}.", _inside(field, name))


def _inside(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name
