"""The studio on runs of 50 annotators who labelled everything: start, a slider that moves, what is drawn, memory.

A run is made by `crowdwise fit`, opened by `crowdwise studio` in a process of its own, and asked over HTTP. "drawn" is
measured in Chromium, from the input of the slider to the picture after the weights have changed; all other times are
those of the server. --keep FOLDER keeps the runs, and uses them again.
"""

from __future__ import annotations

import http.client
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tables import Place, Run, parser

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (2_000,)
N_ANNOTATORS, N_FEATURES, N_MOVES = 50, 20, 60
PLACE = Place("docs/guide/studio.md", "studio server")
# Moves the slider and waits until the weights have been drawn.
MOVE = """(value) => new Promise((done) => {
  const slider = document.querySelector("#steepness");
  const began = performance.now();
  const watch = new MutationObserver(() => {
    watch.disconnect();
    requestAnimationFrame(() => {
      const {port1, port2} = new MessageChannel();
      port1.onmessage = () => done(performance.now() - began);
      port2.postMessage(null);  // comes after the picture
    });
  });
  watch.observe(document.querySelector("#weights-panel .curve"), {attributes: true});
  slider.value = value;
  slider.dispatchEvent(new Event("input", {bubbles: true}));
})"""


def write_run(folder: Path, n: int) -> Path:
    """The run of a crowd of which some see much better than others."""
    rng, run = np.random.default_rng(0), folder / "run"
    if run.is_dir():
        return run
    folder.mkdir(parents=True, exist_ok=True)
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    np.save(folder / "features.npy", X)
    spread = np.linspace(1, 8, N_ANNOTATORS)
    with open(folder / "labels.csv", "w") as file:
        file.write(f"example,{','.join(f'w{j}' for j in range(N_ANNOTATORS))}\n")
        for start in range(0, n, 10_000):
            seen = X[start : start + 10_000, :5].sum(axis=1)
            given = seen[:, np.newaxis] + spread * rng.normal(size=(len(seen), N_ANNOTATORS)) > 0
            rows = given.astype(int).tolist()
            file.writelines(f"{start + i},{','.join(map(str, row))}\n" for i, row in enumerate(rows))
    reading = ["labels.csv", "features.npy", "--wide", "--example", "example"]
    settings = ["--model", "ridge", "--steepness", "2", "--l2", "1", "--report", "json", "-q", "--json"]
    command = [sys.executable, "-m", "crowdwise", "fit", *reading, *settings, "--out", "run"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return run


class Server:
    """A studio that is asked over HTTP."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        printed = ""
        while "}" not in printed:
            printed += process.stdout.readline() or sys.exit("the studio did not start")
        place, token = json.loads(printed)["address"].split("/#token=")
        self.process, self.token, self.place = process, token, place
        self.connection = http.client.HTTPConnection(place.removeprefix("http://"))

    def ask(self, path: str) -> Any:
        """An answer, once it is there."""
        while True:
            self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = self.connection.getresponse()
            content = json.loads(answer.read())
            if answer.status != 202:
                return content

    def seconds(self, path: str) -> float:
        began = time.perf_counter()
        self.ask(path)
        return time.perf_counter() - began

    def gigabytes(self) -> float:
        """The most memory that it had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**20


@contextmanager
def serving(run: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "crowdwise", "studio", "run", "--no-browser", "--json", "-q"]
    process = subprocess.Popen(command, cwd=run.parent, stdout=subprocess.PIPE, text=True)
    try:
        yield Server(process)
    finally:
        process.terminate()
        process.wait()


def drawn(server: Server) -> list[float]:
    """Milliseconds from the input of the slider to the picture, in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(300_000)
        page.goto(f"{server.place}/explore#token={server.token}")
        for part in ("#weights-panel .curve", ".curve-box canvas", ".density canvas"):
            page.locator(part).wait_for()
        end = int(page.locator("#steepness").get_attribute("max") or 0)
        times = [page.evaluate(MOVE, end * (k + 1) // (N_MOVES + 1)) for k in range(N_MOVES)]
        browser.close()
    return times


def measured(folder: Path, n: int) -> list[str]:
    """A row: start, a movement, the curve, all views at another steepness, memory."""
    run, began = write_run(folder / str(n), n), time.perf_counter()
    with serving(run) as server:
        server.ask("/refit.json")
        start = time.perf_counter() - began
        positions = np.random.default_rng(0).uniform(0, 12, size=N_MOVES)
        moves = [1e3 * server.seconds(f"/refit.json?steepness={steepness}") for steepness in positions]
        rest = server.seconds("/explore.json?steepness=3")
        curve, pictures = 1e3 * server.seconds("/curve.json"), statistics.median(drawn(server))
        times = [start, statistics.median(moves), max(moves), pictures, curve, rest]
        return [f"{n:,}", *(f"{value:,.1f}" for value in times), f"{server.gigabytes():.1f}"]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--keep", type=Path)
    options = arguments.parse_args()
    run = Run(options, [PLACE])
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        rows = [measured(folder, n) for n in (QUICK_SIZES if options.quick else SIZES)]
    columns = (
        "examples",
        "start (s)",
        "a movement (ms)",
        "slowest",
        "drawn (ms)",
        "all steepnesses (ms)",
        "at rest (s)",
        "memory (GB)",
    )
    run.table(PLACE, columns, rows, f"{N_ANNOTATORS} labels each, {N_FEATURES} features, {N_MOVES} movements.")


if __name__ == "__main__":
    main()
