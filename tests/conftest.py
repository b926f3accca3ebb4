"""What all tests share: the same examples on every run, the models of the documents, a call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from byhand.checking import differences
from byhand.cli import main
from byhand.language import speak
from byhand.model import Model
from byhand.models import open_model
from calling import Outcome

pytest_plugins = ["progress"]
differences.STUMBLES = ()  # a reader that stumbles is a bug here

os.environ["BYHAND_CACHE"] = "off"  # tests that keep bounds say where

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def tiny() -> Model:
    return open_model("tiny")


@pytest.fixture(scope="session")
def journey() -> Model:
    return open_model("journey")


@pytest.fixture
def byhand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Outcome]]:
    """Calls `byhand …`: English unless --lang says otherwise, 80 columns, no colour."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.setenv(variable, "C.UTF-8")

    def call(*arguments: str) -> Outcome:
        status = main.run(arguments)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    yield call
    speak("en")
