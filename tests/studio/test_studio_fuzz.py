"""Random requests to every operation of openapi.json: an answer as described, or a problem with its status."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from marks import in_slow_run
from studios import Client

from crowdwise.studio._schema import check_value, description, resolved

PROBLEMS = {404, 409, 413, 422}
ODD: list[Any] = [
    "", " ", "0", "-1", "1e308", "1e-320", "nan", "inf", "-inf", "1" * 30, "w1", "ann", "<script>alert(1)</script>",
    "../../etc/passwd", "%00", "\x00", "\U0001f600", "\ud800", "' OR 1=1 --", "{}", "null", "true", "é" * 300,
    "x" * 11_000,
]  # fmt: skip
ODD_VALUES: list[Any] = [None, True, [], {}, 1e308, -1, 0, 3, 10**30, 0.5, [[1]], {"a": {"b": None}}, *ODD]


def value_for(schema: dict[str, Any], draw: random.Random) -> Any:
    """A value that is as described, most of the time."""
    schema = resolved(schema)
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if schema.get("type") == "integer":
        return draw.choice([0, 1, 1, 17, 80])
    if schema.get("type") == "number":
        return draw.choice([0, 0.5, 2.0, 7, 1e6])
    return draw.choice(["w0", "w3", "w3", "ann", "text"])


def request_for(operation: dict[str, Any], draw: random.Random) -> tuple[dict[str, Any], Any]:
    """A query and a body, some of it odd, missing or unknown."""
    query: dict[str, Any] = {}
    for parameter in map(resolved, operation.get("parameters", [])):
        if parameter.get("required") or draw.random() < 0.4:
            query[parameter["name"]] = value_for(parameter["schema"], draw)
    body: Any = None
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = {name: value_for(part, draw) for name, part in schema["properties"].items()}
    for given, values in ((query, ODD), (body, ODD_VALUES)):
        if given and draw.random() < 0.5:
            given[draw.choice([*given])] = draw.choice(values)
        if given and draw.random() < 0.1:
            del given[draw.choice([*given])]
        if given is not None and draw.random() < 0.05:
            given["unknown"] = draw.choice(values)
    return query, draw.choice(ODD_VALUES) if body is not None and draw.random() < 0.05 else body


@pytest.mark.parametrize("seed", [0, in_slow_run(1), in_slow_run(2)])
def test_every_operation_answers_as_described_or_says_what_is_wrong(client: Client, seed: int) -> None:
    draw, seen = random.Random(seed), Counter[tuple[str, int]]()
    for path, operations in description()["paths"].items():
        for method, operation in operations.items():
            for _ in range(40):
                query, body = request_for(operation, draw)
                content = b"" if body is None else json.dumps(body).encode()
                answer = client.ask(method.upper(), path, query, content)
                seen[path, answer.status] += 1
                where = f"{method} {path} {query} {body}: {answer.status} {answer.text[:200]}"
                assert answer.status in {200, 202} | PROBLEMS, where
                described = resolved(operation["responses"].get(str(answer.status), operation["responses"]["default"]))
                schema = described["content"].get("application/json", {}).get("schema")
                if schema is not None and answer.headers["content-type"] == "application/json":
                    assert "NaN" not in answer.text, where
                    check_value(answer.json(), schema, where)
    for path in description()["paths"]:
        assert any(place == path and status == 200 for place, status in seen) or path in ("/picture", "/curve.json")
