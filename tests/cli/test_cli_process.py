"""byhand as a process of its own: entry points, pipes, streams that are closed or full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_talk_that_cannot_be_said_changes_nothing(tmp_path: Path) -> None:
    done = shell(f"byhand trace tiny --json --out {tmp_path}/golden 2> /dev/full")
    assert done.returncode == 0
    assert json.loads(done.stdout)["model"] == "tiny"


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from byhand.entry import main
main(["models"])
"""


def test_ctrl_c_while_the_commands_are_imported_shows_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_an_encoding_without_the_signs_still_prints() -> None:
    done = run("byhand", "trace", "tiny", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "next = argmax(logits)" in done.stdout
