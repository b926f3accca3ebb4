"""byhand as a process of its own: entry points, pipes, interruption, colour."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from byhand import forward
from byhand.cli import progress
from byhand.models import open_model
from calling import interruptible
from patience import PATIENCE, until

PLAIN = {**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": ""}


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**PLAIN, **settings},
        check=False,
    )


def test_python_m_byhand_is_the_demo() -> None:
    demo = run("byhand")
    assert (demo.returncode, demo.stderr) == (0, "")
    assert demo.stdout == run("byhand", "trace", "tiny", "a b").stdout
    assert "1 b  →  a   ahead by 1, proven" in demo.stdout


def test_data_goes_to_stdout_and_talk_to_stderr(tmp_path: Path) -> None:
    done = run("byhand", "trace", "tiny", "--json", "--out", str(tmp_path / "golden"))
    assert json.loads(done.stdout)["model"] == "tiny"
    assert done.stderr == f"saved 31 steps in {tmp_path / 'golden'}\n"


def test_without_json_a_saved_trace_prints_nothing(tmp_path: Path) -> None:
    done = run("byhand.cli", "trace", "tiny", "--out", str(tmp_path / "golden"))
    assert (done.returncode, done.stdout) == (0, "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m byhand trace journey | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=PLAIN, check=False
    )
    assert done.stdout.splitlines()[0] == "journey"
    assert done.stderr == ""


def shell(command: str) -> subprocess.CompletedProcess[str]:
    full = command.replace("byhand ", f"{sys.executable} -m byhand ")
    return subprocess.run(
        ["bash", "-c", full], capture_output=True, text=True, env=PLAIN, check=False
    )


def test_a_full_disk_behind_stdout_is_told_and_exits_with_2() -> None:
    for command in ("trace tiny", "trace tiny --json", "models"):
        done = shell(f"byhand {command} > /dev/full")
        assert done.returncode == 2
        assert done.stderr == (
            "error: the output cannot be written\n  found: No space left on device\n"
        )


def test_closed_streams_are_no_error() -> None:
    assert shell("byhand trace tiny >&-").returncode == 0
    assert shell("byhand trace tinny 2>&-").returncode == 2


def test_an_interrupted_run_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = ["byhand", "trace", "minigpt-init", "--exact", "--out", str(tmp_path / "x")]
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=PLAIN,
        preexec_fn=interruptible,
    )
    until(lambda: any(tmp_path.iterdir()))  # it has begun to save
    process.send_signal(signal.SIGINT)
    _out, talk = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert talk == "\ninterrupted\n"
    assert list(tmp_path.iterdir()) == []


def on_a_terminal(columns: int, **settings: str) -> str:
    """What the demo prints on a terminal of so many columns."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "byhand"],
        stdout=child,
        stderr=subprocess.DEVNULL,  # where progress shows once a busy machine takes its time
        env={**PLAIN, "COLUMNS": str(columns), "TERM": "xterm", **settings},
    )
    os.close(child)
    chunks = []
    while True:
        try:
            chunk = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(parent)
    assert process.wait() == 0
    return b"".join(chunks).decode()


def test_a_terminal_gets_colour_unless_it_is_unwanted() -> None:
    assert "\x1b[33m√\x1b[0m" in on_a_terminal(80)
    assert "\x1b" not in on_a_terminal(80, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(80, TERM="dumb")


def test_a_wide_terminal_shows_every_form_on_one_line() -> None:
    wide = on_a_terminal(110, NO_COLOR="1")
    assert "e^1/(e^1 + e^2) = 1/(1 + e) ≈ 0.2689   e^2/(e^1 + e^2) = e/(1 + e) ≈ 0.7311" in wide


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    lines = on_a_terminal(columns, NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= columns


def test_an_encoding_without_the_signs_still_prints() -> None:
    done = run("byhand", "trace", "tiny", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "next = argmax(logits)" in done.stdout


def test_what_is_printed_while_progress_is_shown_stays_on_stdout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    before, shown = sys.stdout, progress._spinner()
    shown.start()
    try:
        assert sys.stdout is before
    finally:
        shown.stop()


class Told:
    """In place of the line on stderr: remembers what it was told."""

    def __init__(self) -> None:
        self.text, self.renderable = "", self

    def update(self, text: str) -> None:
        self.text = text


def test_progress_counts_the_steps_of_each_pass() -> None:
    plan = forward.plan(open_model("tiny").spec, 2)
    status = progress._Status()
    status.shown = told = Told()
    steps = list(plan)
    for step in (*steps, *steps[:3]):
        status.step(step)
    assert told.text == f"working out {steps[2].address} (step 3 of pass 2)"
