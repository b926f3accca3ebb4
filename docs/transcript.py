"""Writes what a command prints into a page: called by cog from README and docs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from byhand.cli import main
from byhand.proving import search

ROOT = Path(__file__).parent.parent
TIME = r"\b(time|tiempo) \d[\d.,]* (?:ms|s|min|h)\b"
folder = [ROOT]  # the last one is where commands run
UNHURRIED = 3_600.0  # seconds of a search before others have a turn: its order is always the same
PLAIN = {"NO_COLOR": "1", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}


@contextmanager
def plainly() -> Iterator[None]:
    """English, 80 columns and no colour, whoever writes the pages."""
    before = dict(os.environ)
    os.environ.update(PLAIN)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def scratch() -> Iterator[None]:
    """A folder for commands that write files; docs/ is there as in the project's own."""
    with TemporaryDirectory() as name, chdir(name):
        Path("docs").symlink_to(ROOT / "docs")
        folder.append(Path(name))
        try:
            yield
        finally:
            folder.pop()


def run(command: str, status: int = 0) -> str:
    """What `byhand …` prints, both streams, run in the project's folder; no time that it took."""
    program, *arguments = shlex.split(command)
    assert program == "byhand", command
    if arguments[:1] == ["prove"]:
        search.LATER = UNHURRIED
    said = StringIO()
    with chdir(folder[-1]), plainly(), redirect_stdout(said), redirect_stderr(said):
        found = main.run(arguments)
    assert found == status, f"{command}: exit {found}\n{said.getvalue()}"
    lines = (line.rstrip() for line in said.getvalue().rstrip().splitlines())
    return re.sub(TIME, r"\1 …", "\n".join(lines))


def show(
    command: str, *, status: int = 0, first: int | None = None, last: int = 0, without: str = ""
) -> None:
    """A fenced transcript of the command; with `first`, only that many lines of its output, and the
    `last` ones.  Lines in which the pattern `without` is found are left out, with a mark: what
    floats do differs from machine to machine."""
    output = run(command, status)
    if without:
        marked = ("…" if re.search(without, line) else line for line in output.splitlines())
        output = re.sub(r"^…(\n+…)+", "…", "\n".join(marked), flags=re.MULTILINE)
    if first is not None:
        lines = output.splitlines()
        output = "\n".join([*lines[:first], "…", *lines[len(lines) - last :]])
    print(f"```console\n$ {command}\n{output}\n```")
