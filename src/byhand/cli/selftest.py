"""`byhand selftest`: the assumptions behind proven digits, checked on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from byhand.cli.printing import print_data
from byhand.cli.speaking import as_command, json_option, later, option
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.media.terminal.ink import Ink
    from byhand.numbers.enclosed.selftest import Check


@as_command(
    later("what proven digits rely on, tried on this machine"),
    later(
        "Tries on this machine what the proofs of --digits rely on: float64 as in IEEE "
        "754, products that come out exact, error bounds that hold. Ends with 0 where all "
        "of it holds, else with 1."
    ),
)
@option("--device", "DEVICE", later("try torch on this device too: cpu, cuda, cuda:1"))
@json_option
def command(device: str | None, as_json: bool) -> int:
    """Runs the checks of proven digits on this machine; returns the exit status."""
    from byhand.numbers.enclosed.limbs.operations import Limbs
    from byhand.numbers.enclosed.selftest import checks

    if device is not None:
        Limbs(64, device)  # raises an error if there is no such device
    running = checks(device) if device else checks()
    done = list(running) if as_json else list(telling(running))
    failed = [check for check in done if not check.passed]
    if as_json:
        print_data(data(done, device))
    else:
        print()
        if failed:
            text = _("{count} of {all} checks failed: do not rely on --digits on this machine")
        else:
            text = _("all {all} checks hold")
        print(text.format(count=len(failed), all=len(done)))
    return 1 if failed else 0


def telling(running: Iterator[Check]) -> Iterator[Check]:
    """Prints a line for each check as soon as it is done, and passes it on."""
    from byhand.cli.printing import width_of_output
    from byhand.document.media.terminal.ink import ink_for

    for check in running:
        for line in lines(check, width_of_output(), ink_for(sys.stdout)):
            print(line, flush=True)
        yield check


def lines(check: Check, width: int, ink: Ink) -> Iterator[str]:
    """The lines of one check: whether it held, its name, and below it the details."""
    from byhand.document.media.terminal.ink import padded, width_of, wrap

    holds, failed = _("holds"), _("FAILED")
    room = max(width_of(holds), width_of(failed))
    verdict = padded(holds if check.passed else failed, room)
    indent = " " * (room + 4)
    first, *rest = wrap(check.name, width, initial_indent=indent, subsequent_indent=indent)
    yield f"  {ink(verdict, 'exact' if check.passed else 'strong')}  {first.strip()}"
    yield from rest
    for line in wrap(check.detail, width, initial_indent=indent, subsequent_indent=indent):
        yield ink(line, "quiet")


def data(done: list[Check], device: str | None) -> dict[str, object]:
    """The checks as data for JSON."""
    return {
        "device": device or "cpu",
        "passed": all(check.passed for check in done),
        "checks": [
            {"name": check.name, "passed": check.passed, "detail": check.detail} for check in done
        ],
    }
