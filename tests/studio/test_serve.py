"""The command as a process: loopback only, a private token, kills at any moment, and what a wheel holds."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from studios import crowd

from crowdwise.exceptions import BusyError, DataError, MissingDataError
from crowdwise.runs import Settings, fit, open_run, read_inputs
from crowdwise.session import Session
from crowdwise.studio._fits import Pending
from crowdwise.studio._listen import bound, read_token, write_token
from crowdwise.studio._open import of_inputs, of_run
from crowdwise.studio._views import VIEWS

ROOT = Path(__file__).parents[2]


def write_labels(folder: Path) -> Path:
    path = folder / "labels.csv"
    _, _, labels = crowd()
    labels_rows = zip(*(column.tolist() for column in labels.to_table().values()), strict=True)
    path.write_text("example,annotator,label\n" + "".join(f"{','.join(row)}\n" for row in labels_rows))
    return path


class Server:
    """A studio in a process of its own."""

    def __init__(self, folder: Path, labels: Path, *options: str) -> None:
        command = [sys.executable, "-m", "crowdwise", "studio", str(labels), "--no-browser", "--json", "-q", *options]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        printed = b""
        while b"}" not in printed:
            part = self.process.stdout.readline()
            assert part, self.process.communicate()[1].decode()
            printed += part
        address = json.loads(printed)["address"]
        place, self.token = address.split("/#token=")
        self.port = int(place.rsplit(":", 1)[1])

    def ask(self, path: str, sent: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request(*(("GET", path, None) if sent is None else ("POST", path, json.dumps(sent))), headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        assert answer.status == 200, (path, sent, answer.status, content)
        return json.loads(content)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_that_was_acknowledged() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "kills", "10"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "10 kills, " in done.stdout
    assert int(re.search(r"(\d+) answers", done.stdout)[1]) > 10


@pytest.mark.usefixtures("heard_interrupts")
def test_the_process_listens_on_loopback_alone_and_keeps_its_token_private(tmp_path: Path) -> None:
    server = Server(tmp_path, write_labels(tmp_path))
    try:
        assert server.ask("/summary.json")["headline"]
        token = tmp_path / "studio" / "studio.token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ours = [row[1] for row in listening if row[3] == "0A" and int(row[1].split(":")[1], 16) == server.port]
        assert ours == [f"0100007F:{server.port:04X}"]
        everywhere = Path("/proc/net/tcp6").read_text()
        assert f":{server.port:04X} " not in everywhere.replace("\n", " \n")
    finally:
        code = server.kill(signal.SIGINT)
    assert code == 130


def test_long_addresses_and_wrong_methods_are_answered_as_described(tmp_path: Path) -> None:
    server = Server(tmp_path, write_labels(tmp_path))
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        name = "%F2%A8%84%AF" * 10_000
        for method, path, status, allowed in (
            ("GET", f"/examples.json?one={name}&other={name}&without={name}", 404, None),
            ("GET", "/annotators.json?l2=1", 409, None),
            ("GET", "/label.json?person=ann&rule=classifier", 409, None),
            ("TRACE", "/start.json", 405, "GET, HEAD"),
        ):
            connection.request(method, path, headers={"Authorization": f"Bearer {server.token}"})
            answer = connection.getresponse()
            content = json.loads(answer.read())
            assert (answer.status, answer.getheader("content-type")) == (status, "application/json")
            assert content["problem"]
            assert sorted((answer.getheader("allow") or "").split(", ")) == sorted((allowed or "").split(", "))
        connection.close()
    finally:
        server.kill()


def test_a_port_that_is_taken_is_an_error_if_it_was_wanted_and_replaced_if_not() -> None:
    taken = bound(None, 0)
    port = taken.getsockname()[1]
    with pytest.raises(BusyError, match=f"port {port} is in use"):
        bound(port, 0)
    other = bound(None, port)
    assert other.getsockname()[0] == "127.0.0.1"
    assert other.getsockname()[1] != port
    for one in (taken, other):
        one.close()


def test_a_token_goes_on_and_a_damaged_one_is_replaced(tmp_path: Path) -> None:
    first, port = read_token(tmp_path)
    assert (len(first) > 40, port) == (True, 0)
    (tmp_path / "studio.token").write_text("old and open")
    (tmp_path / "studio.token").chmod(0o644)
    assert read_token(tmp_path)[0] != first
    write_token(tmp_path, first, 8000)
    assert read_token(tmp_path) == (first, 8000)
    assert stat.S_IMODE((tmp_path / "studio.token").stat().st_mode) == 0o600


def test_a_token_file_that_is_a_link_does_not_write_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "studio.token").symlink_to(tmp_path / "other")
    write_token(tmp_path, "secret", 1)
    assert (tmp_path / "other").read_text() == "mine"


def test_sockets_are_not_shared() -> None:
    one = bound(None, 0)
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0
    one.close()


def test_a_wheel_has_the_page_and_its_description() -> None:
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    builder = hatchling.WheelBuilder(str(ROOT))
    held = {file.distribution_path for file in builder.recurse_included_files()}
    static = ROOT / "crowdwise" / "studio" / "static"
    wanted = {str(path.relative_to(ROOT)) for path in static.rglob("*") if path.is_file()}
    assert wanted | {"crowdwise/studio/openapi.json"} <= held
    assert "crowdwise/studio/static/index.html" in held


def test_a_run_is_opened_with_its_features_names_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels = write_labels(tmp_path)
    X, _, _ = crowd()
    rows = "".join(f"e{i},{','.join(map(str, row))}\n" for i, row in enumerate(X.tolist()))
    Path("features.csv").write_text(f"id,size,age,height,width\n{rows}")
    fit(labels, "features.csv", out="run", settings=Settings(model="ridge", steepness=2.0, l2=1.0))
    studio, folder = of_run("run")
    with studio.session:
        found = VIEWS["model"](studio, None, None, None, "")
        assert found["position"] == {"steepness": 2.0, "l2": 1.0, "without": None}
        assert {row["name"] for row in found["coefficients"][0]["rows"]} == {"size", "age", "height", "width"}
        assert_array_equal(studio.session.result.proba, open_run("run").model().results_.proba)
        VIEWS["answer"](studio, "ann", 3, 1)
    studio, folder = of_run("run")
    with studio.session:
        assert studio.session.people == ["ann"]
        assert folder == Path("run")
    Path("features.csv").write_text(f"id,size,age,height,width\n{rows}\n")
    with pytest.raises(DataError, match="has changed since"):
        of_run("run")
    Path("features.csv").unlink()
    with pytest.raises(MissingDataError, match="no longer exists"):
        of_run("run")


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(model="ridge"), Settings(model="logistic"), Settings("labels-only", steepness=2.0)],
)
def test_a_run_is_opened_without_a_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.chdir(tmp_path)
    X, _, _ = crowd()
    rows = "".join(f"e{i},{','.join(map(str, row))}\n" for i, row in enumerate(X.tolist()))
    Path("features.csv").write_text(f"id,size,age,height,width\n{rows}")
    features = None if settings.model == "labels-only" else "features.csv"
    run = fit(write_labels(tmp_path), features, out="run", settings=settings)
    with monkeypatch.context() as patched:
        for name in ("_fit", "_labels_only"):
            patched.setattr(Session, name, lambda *given, **settings: pytest.fail("a fit"))
        studio, _ = of_run("run")
        screen = VIEWS["start"](studio)
        assert VIEWS["summary"](studio) == {name: run.summary[name] for name in ("headline", "numbers")}
        assert screen["position"]["steepness"] == run.chosen()["steepness"]
        assert ("labels alone" if features is None else f"the {run.settings.model} model") in screen["model"]
    with studio.session as session:
        before = session.result
        if studio.solves_sums:
            assert_allclose(session.fit_at().results_.proba, before.proba, rtol=1e-10)
        VIEWS["answer"](studio, "ann", 3, 1)
        VIEWS["undo"](studio, "ann")
        assert session.result is not None  # begins the fit of a model that takes long
        session.wait()
        assert_allclose(session.result.proba, before.proba, rtol=1e-10)
        assert VIEWS["summary"](studio)["headline"] != []


def test_a_run_can_be_opened_with_a_model_whose_sliders_are_live(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, _, _ = crowd()
    rows = "".join(f"e{i},{','.join(map(str, row))}\n" for i, row in enumerate(X.tolist()))
    Path("features.csv").write_text(f"id,size,age,height,width\n{rows}")
    fit(write_labels(tmp_path), "features.csv", out="run")
    studio, _ = of_run("run")
    with studio.session:
        assert VIEWS["start"](studio)["follows"] == "fit"
        assert "--model ridge" in VIEWS["start"](studio)["model"]
    studio, _ = of_run("run", "ridge")
    with studio.session:
        screen = VIEWS["start"](studio)
    assert screen["follows"] == "sums"
    assert screen["model"].endswith("The run itself has another model, so its report has other numbers.")


def test_the_first_screen_of_a_run_does_not_wait_for_what_sliders_need(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, _, _ = crowd()
    rows = "".join(f"e{i},{','.join(map(str, row))}\n" for i, row in enumerate(X.tolist()))
    Path("features.csv").write_text(f"id,size,age,height,width\n{rows}")
    fit(write_labels(tmp_path), "features.csv", out="run", settings=Settings(model="ridge"))
    studio, _ = of_run("run")
    began, may_end, fit_of_session = Event(), Event(), Session._fit

    def slow_fit(*given: Any, **settings: Any) -> Any:
        began.set()
        assert may_end.wait(20)
        return fit_of_session(*given, **settings)

    monkeypatch.setattr(Session, "_fit", slow_fit)
    with studio.session:
        studio.prepare()
        assert began.is_set()
        screen, position = VIEWS["summary"](studio), VIEWS["now"](studio)["position"]
        with pytest.raises(Pending):
            VIEWS["refit"](studio, 3.0, None, None, "")
        may_end.set()
    assert screen["headline"]
    assert position["steepness"] is not None


def test_another_crowd_does_not_go_on_in_the_same_folder(tmp_path: Path) -> None:
    labels = write_labels(tmp_path)
    of_inputs(read_inputs(labels), tmp_path).session.close()
    labels.write_text(labels.read_text() + "e0,w9,good\n")
    with pytest.raises(DataError, match="other labels"):
        of_inputs(read_inputs(labels), tmp_path)


def test_ratings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("example,annotator,label\na,b,1.5\na,c,2.5\n")
    with pytest.raises(DataError, match="the studio is for classes"):
        of_inputs(read_inputs(path, labels_as={"scale": "interval"}), tmp_path)
