"""The command line, called within the test's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from byhand.cli import main
from byhand.language import speak


@dataclass(frozen=True)
class Outcome:
    """What a call left behind."""

    status: int
    out: str
    err: str


Call = Callable[..., Outcome]


@pytest.fixture
def byhand(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Calls `byhand …`: English unless --lang says otherwise, 80 columns, no colour."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.setenv(variable, "C.UTF-8")

    def call(*arguments: str) -> Outcome:
        status = main.run(arguments)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    yield call
    speak("en")
