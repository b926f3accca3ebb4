"""Every command on a terminal: progress, Ctrl-C, a new size, few columns, no colour, few signs."""

from __future__ import annotations

import json
import os
import sys
import weakref
from pathlib import Path

import pytest
from terminals import CTRL_C, Screen, lead, on_a_terminal, running

from byhand import forward
from byhand.cli import progress
from byhand.document.media.terminal.ink import width_of, wrap
from byhand.models import open_model
from byhand.plan import Step

LONG = {  # the commands that tell their progress, and a step at which they can be held
    "trace journey": "block.0.attn.weights",
    "trace tiny --digits 6": "block.0.attn.weights",
    "trace tiny --float float32 --digits 5": "block.0.attn.weights",
    "trace tiny --json": "block.0.attn.weights",
    "trace tiny --out golden": "block.0.attn.weights",
    "check journey --no-suspects": "block.0.attn.weights",
    "check journey --no-suspects --report report.html --gradebook marks.csv": "logits",
    "explain abc": "block.0.attn.weights",
    "explain tiny --only lens --report report.html": "block.0.attn.weights",
    "book tiny --out book": "block.0.attn.weights",
    "generate tiny -n 2": "block.0.attn.weights",
    "generate tiny -n 2 --digits 6": "block.0.attn.weights",
    "generate tiny -n 2 --json": "block.0.attn.weights",
}
SHORT = (
    "models", "count minigpt-init", "trace minigpt --shapes", "trace tiny --names tl",
    "trace abc-walkthrough", "trace tiny --at block.0.attn.weights[0,1,1] --lang es",
    "generate tiny -n 2 --temperature 0.8 --seed 1",
    "prove tiny --length 2 --next a", "prove abc --up-to 2 --unmoved --printed 4 --lang es",
    "--help", "trace --help", "check --help", "prove --help", "verify --help", "prove tiny",
    "trace tinny", "trace tiny x y", "check tiny",
)  # fmt: skip
TO_COPY = "byhand trace "  # such a line is not broken
STATUS = {
    "check journey": 1,
    "prove tiny --length": 1,
    "prove tiny": 2,
    "trace tinny": 2,
    "trace tiny x": 2,
    "check tiny": 2,
}


def status_of(call: str) -> int:
    return next((status for start, status in STATUS.items() if call.startswith(start)), 0)


# ------------------------------------------------------------------ progress


@pytest.mark.parametrize("call", LONG)
def test_progress_is_told_and_then_nothing_of_it_is_left(call: str, tmp_path: Path) -> None:
    with running(*call.split(), columns=79, folder=str(tmp_path), holds=LONG[call]) as seen:
        seen.until(f"working out {LONG[call]}")
        seen.resize(80)
        seen.close()
    assert seen.status == status_of(call), seen.text
    assert ("writing the book" in seen.text) == call.startswith("book")
    assert "\x1b[?25l" not in seen.text, "the cursor is never hidden"
    plain = on_a_terminal(*call.split(), folder=str(tmp_path), TERM="dumb")
    assert "\x1b" not in plain.text
    assert "working out " not in plain.text
    assert seen.screen.lines == plain.screen.lines


def test_a_line_of_progress_that_is_too_long_is_cut() -> None:
    with running("trace", "tiny", columns=40, holds="block.0.attn.norm.normalized") as seen:
        seen.until("norm.norm")
        shown = seen.screen.lines[-1]
        seen.resize(80)
        seen.close()
    assert len(shown) == 40
    assert shown.endswith("…")


def test_progress_counts_the_steps_of_each_pass() -> None:
    steps = list(forward.plan(open_model("tiny").spec, 2))
    status = progress.Status("")
    for step in (*steps, *steps[:3]):
        status.step(step)
    assert status.text == f"working out {steps[2].address} (step 3 of pass 2)"


def test_nothing_is_told_where_stderr_is_no_terminal() -> None:
    seen = on_a_terminal("trace", "tiny", before=talk_goes_nowhere)
    assert seen.status == 0
    assert "working out" not in seen.text


def talk_goes_nowhere() -> None:
    lead(2, os.open(os.devnull, os.O_WRONLY))


# ------------------------------------------------------------------ Ctrl-C and a new size


@pytest.mark.parametrize("call", LONG)
def test_ctrl_c_in_the_middle_is_told_and_leaves_nothing_behind(call: str, tmp_path: Path) -> None:
    with running(*call.split(), folder=str(tmp_path), holds=LONG[call]) as seen:
        seen.until(f"working out {LONG[call]}")
        seen.press(CTRL_C)
        seen.close()
    assert seen.status == 130
    assert [line for line in seen.screen.lines if line][-1] == "interrupted"
    assert "Traceback" not in seen.text
    assert seen.modes_kept
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_again_while_the_first_is_told_ends_it_as_well() -> None:
    with running("trace", "tiny", holds="logits", before=interrupted_in_its_last_words) as seen:
        seen.until("working out logits")
        seen.press(CTRL_C)
        seen.close()
    assert seen.status == 130
    assert "Traceback" not in seen.text


def interrupted_in_its_last_words() -> None:
    from byhand import cli

    def interrupted(text: str) -> None:
        raise KeyboardInterrupt

    cli.talk = interrupted  # type: ignore[assignment]


def test_ctrl_c_is_heard_where_python_drops_the_exception() -> None:
    with running("trace", "tiny", holds="logits", before=interrupted_in_a_callback) as seen:
        seen.close()
    assert seen.status == 130
    assert "ignored" not in seen.text


def interrupted_in_a_callback() -> None:
    step = progress.Status.step

    def told(self: progress.Status, at: Step) -> None:
        if at.address == "logits":
            weakref.finalize(Gone(), interrupt)  # called at once: nobody holds the object
        step(self, at)

    progress.Status.step = told  # type: ignore[method-assign]


class Gone:
    """Something that can be gone."""


def interrupt() -> None:
    raise KeyboardInterrupt


def test_what_was_generated_before_ctrl_c_is_not_lost() -> None:
    with running("generate", "tiny", "-n", "2", holds="logits") as seen:
        seen.until("working out logits")
        seen.press(CTRL_C)
        seen.close()
    assert seen.status == 130
    assert "  a b" in seen.screen.lines


def test_the_server_ends_with_ctrl_c() -> None:
    with running("serve") as seen:
        seen.until("Ctrl-C stops it")
        seen.press(CTRL_C)
        seen.close()
    assert seen.status == 0
    assert seen.screen.lines[-2] == "stopped"
    assert seen.modes_kept


@pytest.mark.parametrize("columns", [40, 200])
def test_a_new_size_counts_from_then_on(columns: int) -> None:
    with running("trace", "tiny", holds="block.0.attn.weights") as seen:
        seen.until("working out block.0.attn.weights")
        before = len(seen.text)
        seen.resize(columns)
        seen.close()
    assert seen.status == 0
    screen = Screen(columns).show(seen.text[before:])
    assert screen.wrapped == []
    there = on_a_terminal("trace", "tiny", columns=columns)
    assert [line for line in there.screen.lines if line] == [line for line in screen.lines if line]


# ------------------------------------------------------------------ columns and colours


WIDE = [call for call in LONG if "--json" not in call and "--out" not in call]


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("call", [*WIDE, *SHORT])
def test_no_line_is_wider_than_the_terminal(call: str, columns: int, tmp_path: Path) -> None:
    seen = on_a_terminal(*call.split(), columns=columns, folder=str(tmp_path))
    assert seen.status == status_of(call), seen.text
    assert [line for line in seen.screen.too_long if TO_COPY not in line] == []


def test_a_terminal_gets_colour_unless_it_is_unwanted() -> None:
    assert "\x1b[33m√\x1b[0m" in on_a_terminal("trace", "tiny").text
    plain = on_a_terminal("trace", "tiny", NO_COLOR="1")
    assert "m√" not in plain.text
    assert "\x1b[3" not in plain.text


def test_a_wide_terminal_shows_every_form_on_one_line() -> None:
    wide = on_a_terminal("trace", "tiny", columns=110, NO_COLOR="1").text
    assert "e^1/(e^1 + e^2) = 1/(1 + e) ≈ 0.2689   e^2/(e^1 + e^2) = e/(1 + e) ≈ 0.7311" in wide


def test_wide_signs_take_two_columns_where_lines_are_broken() -> None:
    lines = wrap("你好 世界 " * 8, 20, initial_indent="  ")
    assert [width_of(line) for line in lines] == [16, 19, 19, 19, 4]
    assert " ".join(lines).split() == ["你好", "世界"] * 8
    assert width_of(max(wrap("世" * 30, 15), key=width_of)) <= 15


# ------------------------------------------------------------------ streams and signs


PRINTING = (
    "trace tiny", "trace tiny --json", "check journey --no-suspects", "explain tiny --only lens",
    "generate tiny -n 2", "generate tiny -n 2 --json", "models", "count tiny", "selftest", "--help",
    "prove tiny --length 2 --next a", "prove tiny --length 2 --next a --json",
)  # fmt: skip


@pytest.mark.parametrize("call", PRINTING)
def test_a_reader_that_has_gone_is_no_error(call: str) -> None:
    seen = on_a_terminal(*call.split(), before=nobody_reads, TERM="dumb")
    assert (seen.status, seen.text) == (141, "")


def nobody_reads() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    lead(1, writing)


@pytest.mark.parametrize("call", PRINTING)
def test_a_disk_that_is_full_is_told(call: str) -> None:
    seen = on_a_terminal(*call.split(), before=disk_is_full, TERM="dumb")
    assert seen.status == 2
    assert seen.screen.lines[:2] == [
        "error: the output cannot be written", "  found: No space left on device",
    ]  # fmt: skip


def disk_is_full() -> None:
    lead(1, os.open("/dev/full", os.O_WRONLY))


def test_a_file_never_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    seen = on_a_terminal("trace", "tiny", "--out", "x", folder=str(tmp_path), before=streams_closed)
    assert seen.status == 0
    assert int((tmp_path / "number").read_text()) > 2


def streams_closed() -> None:
    """And the number of the first file that is opened then is written down."""
    from byhand.cli import main

    for number in (0, 1, 2):
        os.close(number)
    sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]
    run = main.run

    def noted(arguments: list[str]) -> int:
        with open("number", "w", encoding="ascii") as file:
            file.write(str(file.fileno()))
        return run(arguments)

    main.run = noted  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("call", [*PRINTING, "generate minigpt -n 1", "trace tinny"])
def test_an_encoding_of_few_signs_is_no_error(call: str) -> None:
    seen = on_a_terminal(*call.split(), "--lang", "es", PYTHONIOENCODING="ascii")
    assert seen.status == status_of(call), seen.text


def test_data_lose_no_sign_whatever_the_encoding_is() -> None:
    few = on_a_terminal("models", "--json", "--lang", "es", PYTHONIOENCODING="ascii", TERM="dumb")
    all_signs = on_a_terminal("models", "--json", "--lang", "es", TERM="dumb")
    assert few.text.isascii()
    assert not all_signs.text.isascii()
    assert json.loads(few.text) == json.loads(all_signs.text)
