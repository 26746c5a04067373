"""Every operation answers as openapi.json describes it, and bad requests name their field."""

from __future__ import annotations

from typing import Any

from requests_to_app import Client

from crowdwise.studio._schema import check_value, description, resolved

GOOD: dict[str, dict[str, Any]] = {
    "/annotator.json": {"name": "w1"},
    "/example.json": {"row": 3},
    "/label.json": {"person": "ann"},
}
SENT: dict[str, dict[str, Any]] = {
    "/answer.json": {"person": "ann", "row": 3, "code": 1},
    "/skip.json": {"person": "ann", "row": 4},
    "/undo.json": {"person": "ann"},
    "/retune.json": {},
}


def ask(client: Client, path: str, **given: Any) -> Any:
    """The answer to a request, when it is there; it is as its schema describes it."""
    (method, operation), *_ = description()["paths"][path].items()
    for _ in range(100):
        sent = client.get(path, given) if method == "get" else client.post(path, given)
        if sent.status != 202:
            break
    assert sent.status == 200, sent.text
    check_value(sent.json(), schema_of(operation, "200"), path)
    return sent.json()


def schema_of(operation: dict[str, Any], status: str) -> dict[str, Any]:
    return resolved(operation["responses"][status])["content"]["application/json"]["schema"]


def operations() -> list[tuple[str, str]]:
    return [(method, path) for path, found in description()["paths"].items() for method in found]


def test_every_operation_answers_as_described(client: Client) -> None:
    has_features = ask(client, "/start.json")["has"]["features"]
    for method, path in operations():
        if path in ("/picture", "/export") or (path == "/curve.json" and not has_features):
            continue
        ask(client, path, **(GOOD if method == "get" else SENT).get(path, {}))
