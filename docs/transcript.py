"""Writes what a command prints into a page: called by cog from README and docs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLAIN = {"NO_COLOR": "1", "COLUMNS": "80", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}


def run(command: str, status: int = 0) -> str:
    """What `byhand …` prints, both streams, run in the project's folder."""
    program, *arguments = shlex.split(command)
    assert program == "byhand", command
    done = subprocess.run(
        [sys.executable, "-m", "byhand.cli", *arguments],
        cwd=ROOT,
        env=os.environ | PLAIN,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == status, f"{command}: exit {done.returncode}\n{done.stdout}"
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


def show(command: str, *, status: int = 0, first: int | None = None) -> None:
    """A fenced transcript of the command; with `first`, only that many lines of its output."""
    output = run(command, status)
    if first is not None:
        output = "\n".join([*output.splitlines()[:first], "…"])
    print(f"```console\n$ {command}\n{output}\n```")
