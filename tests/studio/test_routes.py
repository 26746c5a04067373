"""Every operation answers as openapi.json describes it, and bad requests name their field."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from starlette.routing import Route
from studios import Client, client_of

from crowdwise.studio import Studio
from crowdwise.studio._routes import PAGES, make_router
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


def test_every_route_is_described_and_the_other_way_round(client: Client) -> None:
    routes = make_router(client.studio).routes
    ours = {(method, route.path) for route in routes if isinstance(route, Route) for method in route.methods}
    pages = {(method, path) for path in (*PAGES, "/openapi.json") for method in ("GET", "HEAD")}
    described = {(method.upper(), path) for method, path in operations()}
    assert ours - pages - {("HEAD", path) for _, path in described} == described


@pytest.mark.parametrize(
    ("path", "query", "status", "field"),
    [
        ("/refit.json", {"steepness": "-1"}, 422, "steepness"),
        ("/refit.json", {"steepness": "nan"}, 422, "steepness"),
        ("/refit.json", {"steepness": "inf"}, 422, "steepness"),
        ("/refit.json", {"steepness": "two"}, 422, "steepness"),
        ("/refit.json", {"l2": "-0.5"}, 422, "l2"),
        ("/refit.json", {"colour": "red"}, 422, "colour"),
        ("/refit.json", {"without": "nobody"}, 404, "name"),
        ("/examples.json", {"page": "-1"}, 422, "page"),
        ("/examples.json", {"page": "1.5"}, 422, "page"),
        ("/examples.json", {"size": "100000"}, 422, "size"),
        ("/examples.json", {"order": "sideways"}, 422, "order"),
        ("/examples.json", {"one": "nobody"}, 404, "name"),
        ("/examples.json", {"margin_low": "1e400"}, 422, "margin_low"),
        ("/example.json", {}, 422, "row"),
        ("/example.json", {"row": "60"}, 404, "row"),
        ("/example.json", {"row": "1" * 400}, 404, "row"),
        ("/example.json", {"row": "1" * 5000}, 422, "row"),
        ("/annotator.json", {"name": ""}, 422, "name"),
        ("/annotator.json", {"name": "nobody"}, 404, "name"),
        ("/label.json", {"person": " "}, 422, "person"),
        ("/label.json", {"person": "x" * 201}, 422, "person"),
        ("/label.json", {"person": "ann", "check": "2"}, 422, "check"),
        ("/label.json", {"person": "ann", "rule": "best"}, 422, "rule"),
        ("/picture", {"row": "1"}, 404, "row"),
        ("/export", {"format": "exe"}, 422, "format"),
    ],
)
def test_bad_queries_name_their_field(client: Client, path: str, query: Any, status: int, field: str) -> None:
    answer = client.get(path, query)
    assert (answer.status, answer.json().get("field")) == (status, field), answer.text


@pytest.mark.parametrize(
    ("path", "sent", "status", "field"),
    [
        ("/answer.json", [], 422, ""),
        ("/answer.json", {"person": "ann", "row": 1}, 422, "code"),
        ("/answer.json", {"person": "ann", "row": 1, "code": 2}, 422, "code"),
        ("/answer.json", {"person": "ann", "row": 1, "code": True}, 422, "code"),
        ("/answer.json", {"person": "ann", "row": 1, "code": 1.0}, 422, "code"),
        ("/answer.json", {"person": "ann", "row": -1, "code": 1}, 422, "row"),
        ("/answer.json", {"person": "ann", "row": 60, "code": 1}, 404, "row"),
        ("/answer.json", {"person": 7, "row": 1, "code": 1}, 422, "person"),
        ("/answer.json", {"person": "ann", "row": 1, "code": 1, "time": 0}, 422, "time"),
        ("/skip.json", {"person": "", "row": 1}, 422, "person"),
        ("/undo.json", {"person": "ann"}, 409, "person"),
    ],
)
def test_bad_bodies_name_their_field(client: Client, path: str, sent: Any, status: int, field: str) -> None:
    answer = client.post(path, sent)
    assert (answer.status, answer.json().get("field")) == (status, field), answer.text
    assert client.studio.session.version == 0


def test_what_is_not_json_or_too_long_or_no_route(client: Client) -> None:
    assert client.ask("POST", "/undo.json", content=b"{").status == 422
    assert client.ask("POST", "/undo.json", content=b"[" * 10_000).status == 422
    assert client.ask("POST", "/undo.json", content=b"\xff\xfe").status == 422
    assert client.ask("POST", "/undo.json", content=b" " * 100_000).status == 413
    assert client.get("/nothing").status == 404
    assert client.ask("DELETE", "/undo.json").status == 405
    assert client.get("/examples.json?page=1&page=2").json()["field"] == "page"


@pytest.mark.parametrize("steepness", ["0", "1e-300", "1e6", "1e308"])
def test_extreme_positions_are_answered_with_finite_numbers(client: Client, steepness: str) -> None:
    answer = ask(client, "/refit.json", steepness=steepness)
    assert answer["effective"] >= 1
    assert max(level["weight"] for level in answer["levels"]) > 0


def test_an_answer_is_counted_undone_and_shown(client: Client) -> None:
    first = ask(client, "/label.json", person="ann")
    row = first["next"]["row"]
    done = ask(client, "/answer.json", person="ann", row=row, code=1)
    after = ask(client, "/label.json", person="ann")
    assert done["version"] == after["version"] == first["version"] + 1
    assert after["next"]["row"] != row
    assert after["last"][0] == first["next"] | {"code": 1}
    assert after["progress"]["answers"] == 1
    ask(client, "/skip.json", person="ann", row=after["next"]["row"])
    assert ask(client, "/label.json", person="ann")["last"][0]["code"] is None
    ask(client, "/undo.json", person="ann")
    ask(client, "/undo.json", person="ann")
    again = ask(client, "/label.json", person="ann")
    assert (again["last"], again["next"]) == ([], first["next"])


def test_flipped_and_left_out_answers(client: Client) -> None:
    changed = ask(client, "/explore.json", without="w0")
    listed = ask(client, "/examples.json", order="flipped", without="w0", size=200)
    assert changed["flipped"]["total"] == listed["total"] == len(listed["rows"])
    assert changed["after"]["without"] == "w0"
    names = [row["annotator"] for row in ask(client, "/annotators.json", without="w0")["rows"]]
    assert sorted(names) == ["w1", "w2", "w3", "w4"]
    same = ask(client, "/explore.json")
    assert (same["flipped"]["total"], same["reranked"]) == (0, [])


def test_a_brush_filters_what_the_map_counts(client: Client) -> None:
    found = ask(client, "/map.json")
    counts, margin, apart = found["counts"], found["margin_edges"], found["disagreement_edges"]
    assert sum(map(sum, counts)) == 60
    low = ask(client, "/examples.json", margin_low=margin[0], margin_high=margin[20], size=200)
    high = ask(client, "/examples.json", margin_low=margin[20], margin_high=margin[-1], size=200)
    assert low["total"] == sum(map(sum, counts[:20]))
    assert low["total"] + high["total"] == 60
    assert all(row["margin"] <= margin[20] for row in low["rows"])
    none = ask(client, "/examples.json", disagreement_low=apart[-1] + 1)
    assert (none["total"], none["rows"]) == (0, [])


def test_pages_orders_search_and_pairs(client: Client) -> None:
    pages = [ask(client, "/examples.json", order="easiest", page=page, size=25)["rows"] for page in range(4)]
    assert [len(page) for page in pages] == [25, 25, 10, 0]
    assert sorted(row["row"] for page in pages for row in page) == list(range(60))
    assert pages[0][0] == ask(client, "/examples.json", order="hardest", page=59, size=1)["rows"][0]
    assert [row["row"] for row in ask(client, "/examples.json", search="TEXT <B>17<")["rows"]] == [17]
    apart = ask(client, "/examples.json", one="w0", other="w4", size=200)
    for row in apart["rows"]:
        given = {name: one["label"] for one in row["said"] for name in one["annotators"]}
        assert given["w0"] != given["w4"]
    assert apart["total"] > 5


def test_two_people_at_once(client: Client) -> None:
    def work(person: str) -> None:
        for _ in range(10):
            row = ask(client, "/label.json", person=person, rule="random")["next"]["row"]
            ask(client, "/answer.json", person=person, row=row, code=row % 2)

    before = client.studio.session.labels.n_labels
    people = [Thread(target=work, args=(name,)) for name in ("ann", "bob", "cat")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    session = client.studio.session
    assert session.labels.n_labels == before + 30
    assert sorted(session.people) == ["ann", "bob", "cat"]
    assert all(len({one.example for one in session.done_by(name)}) == 10 for name in session.people)


def test_exports(client: Client) -> None:
    ask(client, "/answer.json", person="=cmd()", row=3, code=1)
    lines = client.get("/export").text.splitlines()
    assert lines[0] == "example,annotator,label"
    assert len(lines) == 1 + client.studio.session.labels.n_labels
    assert "e3,'=cmd(),good" in lines  # stays text in a spreadsheet
    assert client.get("/export", {"format": "consensus"}).text.count("\n") == 61
    assert len(client.get("/export", {"format": "label-studio"}).json()) == 60


def test_mistakes_stay_below_their_bound_while_answers_come_in(client: Client) -> None:
    if not ask(client, "/start.json")["has"]["features"]:
        assert ask(client, "/model.json")["theory"] is None
        return
    for row in range(0, 60, 20):
        ask(client, "/answer.json", person="ann", row=row, code=row % 2)
        found = ask(client, "/model.json")["theory"]
        assert sum(region["mistakes"] for region in found["regions"]) == found["mistakes"] <= found["bound"]
        assert found["examples"] == 60


def test_a_checked_answer_is_counted(open_studio: Callable[..., Studio]) -> None:
    client = client_of(open_studio(experts=["eve"]))
    assert client.post("/answer.json", {"person": "eve", "row": 3, "code": 1}).json()["checked"] is None
    for person, code in (("ann", 1), ("bob", 0)):
        found = client.post("/answer.json", {"person": person, "row": 3, "code": code}).json()["checked"]
        assert found == {"code": 1, "is_right": code == 1}
        progress = client.get("/label.json", {"person": person}).json()["progress"]
        assert (progress["checked"], progress["right"]) == (1, code)


def test_an_answer_makes_no_summary(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.studio._start.summary_of", lambda fit: pytest.fail("a summary"))
    answer = {"person": "ann", "row": 3, "code": 1}
    assert client.post("/answer.json", answer).status == 200
    for path in ("/start.json", "/now.json", "/label.json?person=ann"):
        assert client.get(path).status == 200
    monkeypatch.setattr("crowdwise.studio._start.summary_of", lambda fit: {"headline": ["new"], "numbers": []})
    assert ask(client, "/summary.json") == {"headline": ["new"], "numbers": []}
