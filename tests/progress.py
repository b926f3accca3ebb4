"""How far the tests are, for whoever waits: a line for every twentieth, one for each that fails.

`pytest --tell-progress` says this in place of dots; `make test` does.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

LINES = 20


class Progress:
    """Counts the tests as they end, wherever they run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.began = time.monotonic()
        self.ended = self.failed = self.told = 0

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, tuple[str, str, str]]:
        """What is counted is counted as ever, but only what failed has a word, for the summary."""
        category, _letter, word = yield
        return category, "", word if category in ("failed", "error") else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed += 1
            self._say(f"      failed: {report.nodeid}")
        if report.when == "teardown":
            self.ended += 1
            self._tell()

    def _tell(self) -> None:
        total = max(self.session.testscollected, self.ended)
        reached = LINES * self.ended // total
        if reached == self.told:
            return
        self.told = reached
        minutes, seconds = divmod(round(time.monotonic() - self.began), 60)
        self._say(
            f"{100 * reached // LINES:4}%  {self.ended:6,} of {total:,} tests   "
            f"{self.failed} failed   {minutes}:{seconds:02}"
        )

    def _say(self, line: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        reporter.write_line(line)
        reporter.flush()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tell-progress", action="store_true", help="lines instead of dots")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("tell_progress") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))
