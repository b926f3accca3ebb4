"""`byhand serve`: what it says, how it ends, and what it refuses."""

from __future__ import annotations

import builtins
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asking import asked, state
from serving_server import Address, read_all

from byhand.cli import main
from byhand.cli.serve import named
from calling import interruptible
from patience import PATIENCE


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command while it runs, and the address it says."""
    command = [sys.executable, "-m", "byhand", "serve", *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        preexec_fn=interruptible,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().rstrip()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def port_of(where: str) -> int:
    return int(where.split(":")[2].split("/")[0])


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(asked("file", state=state())["text"], "utf-8")
    return file


def test_it_says_its_address_answers_and_ends_with_ctrl_c(mine: Path) -> None:
    with serving(str(mine), "--lang", "es") as (process, where):
        assert where.endswith("/?model=mine&language=es")
        server = Address(port_of(where))
        server.until(lambda health: health["free"] == 2)  # both workers are there
        assert server.get("/api/models").data["models"][0]["name"] == "mine"
        long = server.begin("look", {"state": state("minigpt", numbers="exact")})
        server.until(lambda health: health["free"] < health["workers"])
        process.send_signal(signal.SIGINT)
        _out, told = process.communicate(timeout=PATIENCE)
        with long:
            said = read_all(long)
    assert process.returncode == 0
    assert told.splitlines() == [
        "la página está en esa dirección; Ctrl-C la detiene",
        "",
        "detenido",
    ]
    assert b"503" in said.splitlines()[0]
    assert b"el servidor se ha detenido" in said


def test_it_listens_on_this_machine_alone() -> None:
    with serving() as (_process, where):
        assert where.startswith("http://127.0.0.1:")
        assert where.endswith("/")
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        wanted = f"{port_of(where):04X}"
        found = {line[1] for line in listening if line[3] == "0A"}
        assert {place for place in found if place.endswith(":" + wanted)} == {f"0100007F:{wanted}"}


def run(*arguments: str) -> int:
    status = main.main(["serve", *arguments], standalone_mode=False)
    assert isinstance(status, int)
    return status


def test_a_port_that_is_taken_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run("--port", str(port)) == 2
    assert capsys.readouterr().err == (
        f"error: port {port} is in use\n  hint: another --port, or none: then a free one is taken\n"
    )


@pytest.mark.parametrize("port", ["70000", "-1", "x", "80.5", "٣"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--port={port}") == 2
    assert "a whole number from 0 to 65,535" in capsys.readouterr().err


def test_a_model_that_is_wrong_is_told_before_anything_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tyni") == 2
    assert "did you mean tiny?" in capsys.readouterr().err
    broken = tmp_path / "broken.yaml"
    broken.write_text("model: {d_model: -1}\n")
    assert run(str(broken)) == 2
    assert "broken.yaml:1" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there: Callable[..., Any] = builtins.__import__

    def lacking(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("starlette", "uvicorn"):
            raise ModuleNotFoundError(name=name)
        return there(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    assert run() == 2
    assert "hint: pip install 'byhand[serve]'" in capsys.readouterr().err


def test_files_have_the_names_of_their_files_and_never_that_of_another(tmp_path: Path) -> None:
    first, second = tmp_path / "mine.yaml", tmp_path / "other" / "mine.yaml"
    shadow = tmp_path / "tiny.yaml"
    second.parent.mkdir()
    for path in (first, second, shadow):
        path.write_text("")
    files, shown = named(("journey", str(first), str(second), str(shadow), str(first)))
    assert files == {"mine": first, "mine-2": second, "tiny-2": shadow}
    assert shown == "journey"


def test_the_command_line_starts_without_what_only_the_server_needs() -> None:
    script = "import sys, byhand.cli; print({'starlette', 'uvicorn', 'asyncio'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
