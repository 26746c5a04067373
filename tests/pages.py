"""A page -> the same page with what its code and its commands print.

A block ```python runs as a reader would paste it; a block ```text right below it shows what it prints. In a block
```console the lines with $ are commands, the lines below each show what it prints.

    python tests/pages.py README.md docs/first-steps.md        writes the outputs into the pages
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?P<kind>\w+)(?P<info>[^\n]*)\n(?P<body>.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def run_code(text: str, name: str = "page") -> tuple[str, dict]:
    """The page with what its Python prints, and the names that it defines."""
    namespace = {"__name__": "__main__"}
    made, end, printed = [], 0, None
    for i, block in enumerate(BLOCK.finditer(text), start=1):
        between = text[end : block.start()]
        body = block["body"]
        if block["kind"] == "text" and printed is not None and not between.strip():
            body = printed
        printed = None
        if block["kind"] == "python" and not block["info"].strip():
            with redirect_stdout(StringIO()) as out:
                exec(compile(block["body"], f"{name}, block {i}", "exec"), namespace)
            printed = out.getvalue()
        made.append(f"{between}```{block['kind']}{block['info']}\n{body}```")
        end = block.end()
    return "".join(made) + text[end:], namespace


def run_commands(text: str) -> str:
    """The page with what its commands print, one after the other in one shell and in the present folder."""
    commands = [line[2:] for block in consoles(text) for line in block["body"].splitlines() if line.startswith("$ ")]
    outputs = iter(shell(commands))

    def filled(block: re.Match[str]) -> str:
        lines = [line for line in block["body"].splitlines() if line.startswith("$ ")]
        body = "".join(f"{line}\n{next(outputs)}" for line in lines)
        return f"```console{block['info']}\n{body}```"

    return BLOCK.sub(lambda block: filled(block) if block["kind"] == "console" else block[0], text)


def consoles(text: str) -> list[re.Match[str]]:
    return [block for block in BLOCK.finditer(text) if block["kind"] == "console"]


def shell(commands: list[str]) -> list[str]:
    """What each command prints; `crowdwise` is the one that this Python imports."""
    mark = "=== next command ==="
    crowdwise = f'crowdwise() {{ "{sys.executable}" -m crowdwise "$@"; }}\n'
    script = crowdwise + "".join(f"{command} || exit 1\necho '{mark}'\n" for command in commands)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    if done.returncode:
        raise AssertionError(f"a command of the page failed:\n{done.stdout}")
    return done.stdout.split(f"{mark}\n")[:-1]


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            text = run_commands(text)
            if Path("crowdwise-demo").exists():  # the commands went there
                os.chdir("crowdwise-demo")
            text, _ = run_code(text, path.name)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
