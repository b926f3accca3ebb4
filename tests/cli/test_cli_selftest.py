"""`byhand selftest`: a line a check, and an exit status that can be relied on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from byhand.document.media.terminal.ink import width_of

Call = Callable[..., Any]


@dataclass(frozen=True)
class Check:
    """As `numbers.enclosed.selftest` has it."""

    name: str
    passed: bool
    detail: str


GOOD = Check("products of slices are exact", True, "4,096 products, none off by a bit")
BAD = Check("float64 rounds to nearest", False, "1 + 2^-53 gave 1.0000000000000002")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """The checks that a machine would give, in place of the real ones."""
    found: list[Check] = [GOOD]

    def checks(device: str | None = None) -> Iterator[Check]:
        yield from found
        if device is not None:
            yield Check(f"the same on {device}", True, "")

    pretended = ModuleType("byhand.numbers.enclosed.selftest")
    pretended.checks = checks  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, pretended.__name__, pretended)
    return found


def test_each_check_has_a_line_and_what_was_seen_below_it(
    byhand: Call, machine: list[Check]
) -> None:
    shown = byhand("selftest")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out == (
        "  holds   products of slices are exact\n"
        "          4,096 products, none off by a bit\n"
        "\n"
        "all 1 checks hold\n"
    )


def test_a_check_that_fails_ends_with_1_and_says_what_that_means(
    byhand: Call, machine: list[Check]
) -> None:
    machine.append(BAD)
    shown = byhand("selftest")
    assert shown.status == 1
    assert "  FAILED  float64 rounds to nearest\n" in shown.out
    assert shown.out.endswith("1 of 2 checks failed: do not rely on --digits on this machine\n")


def test_a_device_is_handed_on(byhand: Call, machine: list[Check]) -> None:
    pytest.importorskip("torch")
    assert "  holds   the same on cpu\n" in byhand("selftest", "--device", "cpu").out


def test_a_device_that_is_not_there_is_an_error(byhand: Call, machine: list[Check]) -> None:
    pytest.importorskip("torch")
    shown = byhand("selftest", "--device", "abacus")
    assert (shown.status, shown.out) == (2, "")
    assert shown.err.startswith("error: there is no device 'abacus'\n")


def test_the_checks_come_as_data(byhand: Call, machine: list[Check]) -> None:
    machine.append(BAD)
    shown = byhand("selftest", "--json")
    assert shown.status == 1
    document = json.loads(shown.out)
    assert (document["device"], document["passed"]) == ("cpu", False)
    assert document["checks"][1] == {
        "name": "float64 rounds to nearest",
        "passed": False,
        "detail": "1 + 2^-53 gave 1.0000000000000002",
    }


def test_long_lines_are_broken(byhand: Call, machine: list[Check]) -> None:
    machine.append(Check("a check with a long name " * 5, True, "and a long detail " * 9))
    assert [line for line in byhand("selftest").out.splitlines() if width_of(line) > 80] == []


def test_the_real_checks_hold_here(byhand: Call) -> None:
    shown = byhand("selftest")
    assert (shown.status, shown.err) == (0, "")
    assert "FAILED" not in shown.out


def test_a_gpu_whose_kernels_fail_is_told_on_stderr(
    byhand: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from byhand.numbers.enclosed.gpu import kernels

    monkeypatch.setattr(kernels, "_on_gpu", lambda array: True)  # which has no Triton
    monkeypatch.setattr(kernels, "_given_up", [])
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setattr("warnings.filters", [("default", None, UserWarning, None, 0)])
    shown = byhand("selftest", "--device", "cpu")
    assert shown.status == 0
    assert shown.err.startswith("no kernels for this GPU, so proofs take longer (Mod")
    assert shown.err.count("\n") <= 2
