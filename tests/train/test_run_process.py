"""`byhand train` as a process of its own: the line that moves, Ctrl-C, and going on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from calling import interruptible
from patience import PATIENCE

pty = pytest.importorskip("pty")

RUN = """\
data: abc
model: abc-walkthrough
init: {std: 0.5}
steps: 1000000
batch: 8
evaluate: {every: 1000000}
checkpoint: {every: 1000000}
"""
PLAIN = {**os.environ, "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "TERM": "xterm"}


def seen_until(terminal: int, words: bytes) -> bytes:
    """What a terminal shows up to some words."""
    shown = b""
    while words not in shown:
        shown += os.read(terminal, 4096)
    return shown


def test_a_terminal_sees_how_it_goes_and_ctrl_c_saves(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(RUN)
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "byhand", "train", str(tmp_path / "long.yaml")],
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
        env={**PLAIN, "COLUMNS": "120"},
        preexec_fn=interruptible,
    )
    os.close(end)
    line = seen_until(terminal, b"tokens/s").decode()
    assert "/1,000,000" in line
    for word in ("loss ", "rate ", "gradient "):
        assert word in line
    process.send_signal(signal.SIGINT)
    said = seen_until(terminal, b"--resume").decode()
    assert process.wait(timeout=PATIENCE) == 130
    assert "of 1,000,000, and saved; go on with" in said
    assert f"byhand train {tmp_path}/long.yaml --resume" in said
    assert process.stdout is not None
    assert process.stdout.read() == ""
    process.stdout.close()
    os.close(terminal)
    (saved,) = (tmp_path / "runs" / "long" / "checkpoints").glob("step-*")
    assert int(saved.name[5:]) > 0
