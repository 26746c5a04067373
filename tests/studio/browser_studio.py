"""Files of a crowd, and a studio that serves them in a process of its own."""

from __future__ import annotations

import csv
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)")
WORDS = ("good", "bad", "fine", "slow", "kind", "rude", "warm", "cold")


def write_table(path: Path, columns: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def write_crowd(folder: Path, n: int = 240, people: int = 6, classes: tuple[str, ...] = ("no", "yes")) -> Path:
    """Complete labels of two classes, features with names, texts, and known answers of every fourth example."""
    rng = np.random.default_rng(3)
    folder.mkdir(parents=True, exist_ok=True)
    X = rng.normal(size=(n, len(WORDS)))
    score = X @ np.linspace(1.5, -1.5, len(WORDS))
    truth = (score > 0).astype(int)
    hard = 1 / (1 + np.abs(score))
    right = 0.97 - 0.6 * hard[:, None] * np.linspace(0.2, 0.9, people)
    answers = np.where(rng.random((n, people)) < right, truth[:, None], 1 - truth[:, None])
    labels = [[f"e{i}", f"w{j}", classes[answers[i, j]]] for i in range(n) for j in range(people)]
    write_table(folder / "labels.csv", ["example", "annotator", "label"], labels)
    rows = [[f"e{i}", f"The text of example {i}.", *X[i].round(4)] for i in range(n)]
    write_table(folder / "features.csv", ["example", "text", *WORDS], rows)
    write_table(folder / "truth.csv", ["example", "label"], [[f"e{i}", classes[truth[i]]] for i in range(0, n, 4)])
    return folder


class Served:
    """``crowdwise studio`` in a process: can be killed at any moment and started again on the same port."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.arguments = folder, arguments
        self.port: int | None = None
        self.start()

    def start(self) -> None:
        port = [] if self.port is None else ["--port", str(self.port)]
        asked = [sys.executable, "-m", "crowdwise", "studio", *self.arguments, "--no-browser", *port]
        self.process = subprocess.Popen(
            asked, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.port, self.token = self._address()

    def _address(self) -> tuple[int, str]:
        assert self.process.stdout is not None
        printed, until = "", time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                printed += self.process.stdout.readline()
            if found := ADDRESS.search(printed):
                return int(found[1]), found[2]
        self.process.kill()
        raise AssertionError(f"no address: {printed} {self.process.communicate()[1][-2000:]}")

    def address(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}#token={self.token}"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def journal(self) -> list[dict[str, object]]:
        """What was done, as the journal has it."""
        (path,) = self.folder.glob("*/answers.jsonl")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [line.get("entry", line) for line in lines]
