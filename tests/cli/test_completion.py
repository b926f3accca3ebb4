"""A shell completes commands, options, models and files: in a real bash, as a person types."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from byhand.exit_status import WRONG
from calling import Outcome

Call = Callable[..., Outcome]

BASH = shutil.which("bash")


def completed(line: str, tmp_path: Path) -> list[str]:
    """What bash offers at the end of a line, once it has read byhand's script."""
    program = tmp_path / "byhand"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m byhand "$@"\n')
    program.chmod(0o755)
    ask = (
        'eval "$(byhand completion bash)"; '
        f"COMP_LINE={line!r}; COMP_WORDS=({line}"
        + ("''" if line.endswith(" ") else "")
        + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; "
        '_byhand_completion byhand; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(BASH), "--norc", "-c", ask],
        env=environment, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    return [word for word in done.stdout.split("\n") if word]


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("byhand tr", ["trace", "train"]),
        ("byhand trace abc", ["abc", "abc-walkthrough"]),
        ("byhand trace tiny --lang ", ["en", "es"]),
        ("byhand trace tiny --float bf", ["bfloat16"]),
        ("byhand trace tiny --shap", ["--shapes"]),
        ("byhand book tiny --level b", ["block", "backward"]),
        ("byhand book tiny --ask values,sh", ["values,shapes"]),
        ("byhand completion ", ["bash", "zsh", "fish"]),
        ("byhand trace tiny --at block.0.attn.s", ["block.0.attn.scores"]),
    ],
)
def test_bash_offers_what_begins_like_the_word(
    line: str, offered: list[str], tmp_path: Path
) -> None:
    assert completed(line, tmp_path) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_shell_has_a_script(shell: str, byhand: Call) -> None:
    told = byhand("completion", shell)
    assert told.status == 0
    assert "_BYHAND_COMPLETE" in told.out


def test_an_unknown_shell_is_refused_with_those_that_are_known(byhand: Call) -> None:
    told = byhand("completion", "zs")
    assert told.status == WRONG
    assert "expected: bash, zsh, fish" in told.err
    assert "did you mean zsh?" in told.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("trace", "tiny", "-a b", "--exact"), "byhand trace tiny --exact -- '-a b'"),
        (("step", "tiny", "-a"), "byhand step tiny -- -a"),
        (("count", "-a"), "see byhand count --help"),
        (("trace", "tiny", "--exacd"), "did you mean --exact"),
    ],
)
def test_a_text_that_begins_with_a_dash_is_hinted_at(
    words: tuple[str, ...], hint: str, byhand: Call
) -> None:
    told = byhand(*words)
    assert told.status == WRONG
    assert hint in told.err


def test_a_text_after_two_dashes_is_a_text(byhand: Call) -> None:
    told = byhand("trace", "tiny", "--", "-a")
    assert "'-a' is not in the vocabulary" in told.err
