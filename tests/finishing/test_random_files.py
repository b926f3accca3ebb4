"""Whatever opens, every command finishes: random model files through random calls.

150 files, and with BYHAND_LONG=1 3,000 of them, each with a few calls.  Between them the files have
every part of the grammar, and the calls every command, option and number system.  What fails is
told with its seed; `minimised` makes it small, and it becomes a test in test_found_files.py.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from random import Random

import pytest
from finished import finish
from random_calls import CLAIMS, COMMANDS, SAID, SYSTEMS, Call, random_call
from random_files import RandomFile, random_files

from byhand.cli import main
from byhand.document.compose.explanation import SECTIONS
from byhand.serving.questions import ASKED

FILES = 3_000 if os.environ.get("BYHAND_LONG") else 150
FIRST = int(os.environ.get("BYHAND_SEED", "0"))
BATCH = 15
CHEAP = ("trace", "check", "explain", "serve", "generate", "step")
EVERY_BOOK = 8  # a book takes as long as ten traces
EVERY_COUNT = 10
EVERY_PROOF = 3
LEAST_ANSWERED = 8  # of some 38 calls of a batch: refusals alone would prove little
CALLS_DRAWN = 8  # of which the one is made that has most new options
WITHOUT_MODEL = {"--help", "--version", "--cluster"}

Drawn = tuple[int, RandomFile, tuple[Call, ...]]


@cache
def drawn() -> tuple[Drawn, ...]:
    """Every file with its calls."""
    seen: set[str] = set()
    found = []
    for place, (seed, file) in enumerate(random_files(FIRST, FILES, among=4)):
        calls = []
        for command in _commands(place):
            random = Random(f"{command} {seed}")
            some = [random_call(command, file.text, random) for _again in range(CALLS_DRAWN)]
            calls.append(max(some, key=lambda call: len(call.labels - seen)))
            seen |= calls[-1].labels
        found.append((seed, file, tuple(calls)))
    return tuple(found)


def _commands(place: int) -> list[str]:
    chosen = [CHEAP[place % len(CHEAP)], CHEAP[(place * 5 + 1) % len(CHEAP)]]
    if place % EVERY_BOOK == 0:
        chosen.append("book")
    if place % EVERY_COUNT == 0:
        chosen.append("count")
    if place % EVERY_PROOF == 0:
        chosen.append("prove" if place % (4 * EVERY_PROOF) else "verify")
    return chosen


@pytest.mark.parametrize("batch", range(FILES // BATCH))
def test_every_call_is_answered_or_refused_and_leaves_something_whole(batch: int) -> None:
    done: Counter[str] = Counter()
    for seed, file, calls in drawn()[batch * BATCH : (batch + 1) * BATCH]:
        for call in calls:
            try:
                done[finish(file, call)] += 1
            except Exception as error:
                raise AssertionError(f"file {seed}: byhand {call}\n{file.text}") from error
    assert done["answered"] >= LEAST_ANSWERED


def test_the_files_have_every_part_of_the_grammar() -> None:
    answered = {answer for _seed, file, _calls in drawn() for answer in file.answers}
    possible = {answer for _seed, file, _calls in drawn() for answer in file.possible}
    assert sorted(possible - answered) == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "serve"])
def test_the_calls_have_every_option_of_a_command(name: str) -> None:
    command = main.commands[name]
    options = {param.opts[-1] for param in command.params if param.opts[-1].startswith("--")}
    called = {label for _seed, _file, calls in drawn() for call in calls for label in call.labels}
    missing = {option for option in options - WITHOUT_MODEL if f"{name} {option}" not in called}
    assert missing == set()


def test_the_calls_have_every_number_system_section_question_and_kind_of_claims() -> None:
    called = {label for _seed, _file, calls in drawn() for call in calls for label in call.labels}
    wanted = {
        f"{command} {' '.join(system) or 'as usual'}"
        for command in ("trace", "explain", "book", "generate", "step")
        for system in SYSTEMS
    }
    wanted |= {f"explain --only {section}" for section in SECTIONS}
    wanted |= {f"serve {question}" for question in ASKED}
    wanted |= {f"serve in {numbers or 'as usual'}" for numbers in SAID}
    wanted |= {f"check {kind}" for kind in CLAIMS}
    assert sorted(wanted - called) == []
