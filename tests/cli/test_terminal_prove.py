"""`byhand prove` on a terminal: how far it is, Ctrl-C, and the search that goes on from there."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from terminals import CTRL_C, on_a_terminal, running

from byhand.cli import progress

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
ADDS = (
    "prove", str(EXAMPLES / "adder.yaml"), "--texts", "{a9} … {a0} + {b9} … {b0} =",
    "--where", "a0..a9: 0..9", "--where", "s0..s9: 0..18", "--where", "b0..b9: s - a in 0..9",
    "--continuation", "digits(number(s[::-1]), 11)",
)  # fmt: skip
VOTE = (
    "prove", str(EXAMPLES / "majority.yaml"), str(EXAMPLES / "majority.property.yaml"),
)  # fmt: skip
SMALL = ("prove", "tiny", "--texts", "a .", "--next", "a")


def hold_the_search() -> None:
    """Units of work are short, and after the first one the search waits: for Ctrl-C, or for a new
    size of the terminal."""
    from byhand.proving import search

    tell, resized = progress.Searching.__call__, Event()
    signal.signal(signal.SIGWINCH, lambda _number, _frame: resized.set())

    def told(self: progress.Searching, standing: search.Standing) -> None:
        tell(self, standing)
        try:
            resized.wait()
        finally:
            resized.set()  # it waits once

    search.LATER = search.FIRST = 0.01
    progress.Searching.__call__ = told  # type: ignore[method-assign]


def test_how_much_is_decided_is_told_and_then_nothing_of_it_is_left() -> None:
    with running(*SMALL, columns=79, before=hold_the_search) as seen:
        seen.until("% of the texts decided")
        seen.resize(80)
        seen.close()
    assert seen.status == 0, seen.text
    assert "\x1b[?25l" not in seen.text, "the cursor is never hidden"
    plain = on_a_terminal(*SMALL, TERM="dumb")
    assert "\x1b" not in plain.text
    assert "decided" not in plain.text.partition("The cases")[0]
    assert without_times(seen.screen.lines) == without_times(plain.screen.lines)


def without_times(lines: list[str]) -> list[str]:
    return [re.sub(r"time \S+ \w+", "time", line) for line in lines]


@pytest.mark.parametrize("call", [(*ADDS, "--jobs", "1"), (*VOTE, "--jobs", "2")])
def test_ctrl_c_tells_what_is_decided_and_how_to_go_on(
    call: tuple[str, ...], tmp_path: Path
) -> None:
    with running(*call, before=hold_the_search, TMPDIR=str(tmp_path)) as seen:
        seen.until("% of the texts decided")
        seen.press(CTRL_C)
        seen.close()
    assert seen.status == 130, seen.text
    assert "Traceback" not in seen.text
    assert seen.modes_kept
    lines = seen.screen.lines
    assert any(line.startswith("  ? Open.") for line in lines)
    assert "what is decided is kept; go on with" in lines
    (kept,) = tmp_path.iterdir()
    (command,) = re.findall(r"  (byhand prove [^\r\n]*)", seen.text)  # one line, however long
    words = shlex.split(command)
    assert words[-2:] == ["--resume", str(kept)]
    assert words[1:-2] == [*call]
    assert len(kept.read_text("utf-8").splitlines()) > 1, "the first line names the property alone"


# ------------------------------------------------------------------ the line


@pytest.mark.parametrize(
    ("seconds", "left"),
    [(1, ""), (3, ", about 9 s left"), (600, ", about 30 min left"), (9000, ", about 7.5 h left")],
)
def test_the_line_tells_the_share_the_cases_and_about_how_long_it_takes(
    seconds: float, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((100.0, 100.0 + seconds))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    line = progress.Searching("")
    line(SimpleNamespace(done=0.1, cases=40))  # as after a search that was taken up
    line(SimpleNamespace(done=0.325, cases=1234))
    assert line.text == f"proving: 32.5% of the texts decided, 1,234 cases{left}"


def test_the_line_never_says_all_before_it_is_all() -> None:
    assert [progress.percent(share) for share in (0, 0.9999, 1)] == ["0.0", "99.9", "100"]
