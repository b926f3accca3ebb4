"""Which numbers a command works in: --exact, --digits, --decimals, --float, --device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from byhand.cli.speaking import Option, later, one_of, whole_number
from byhand.errors import UsageError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.model import Model
    from byhand.numbers.base import Numbers

FORMATS = ("float64", "float32", "bfloat16", "float16")
TOGETHER = {"--digits", "--float", "--device"}  # options that may be given together


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user said about the numbers; nothing said leaves it to the model."""

    exact: bool = False
    digits: int | None = None
    decimals: int | None = None
    float: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        said = {
            "--exact": self.exact,
            "--digits": self.digits is not None,
            "--decimals": self.decimals is not None,
            "--float": self.float is not None,
            "--device": self.device is not None,
        }
        names = [name for name, given in said.items() if given]
        if len(names) > 1 and not set(names) <= TOGETHER:
            raise UsageError(
                _("{one} and {other} exclude each other").format(one=names[0], other=names[1]),
                hint=_("leave one of them out"),
            )

    @property
    def compares(self) -> bool:
        """Whether floats are to be compared with proven digits."""
        return self.digits is not None and self.float is not None

    def numbers(self, model: Model, *, many: bool = False) -> Numbers:
        """The number system for a model; `many`: for many passes over the same weights."""
        from byhand.api import numbers_for

        return numbers_for(
            model,
            exact=self.exact,
            digits=self.digits,
            decimals=self.decimals,
            float=None if self.compares else self.float,  # those come on their own
            device=self.device,
            many=many,
        )


def proven_digits(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of significant digits."""
    if value is None:
        return None
    from byhand.proving import MOST_DIGITS

    if value.isascii() and value.isdigit() and len(value) <= 9 and 1 <= int(value) <= MOST_DIGITS:
        return int(value)
    expected = _("a whole number from {least} to {most}")
    raise UsageError(
        _("{name} has a value that does not fit").format(name=param.opts[0]),
        expected=expected.format(least=1, most=f"{MOST_DIGITS:,}"),
        found=repr(value[:40]),
    )


def numbers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; the command gets a `chosen`."""

    @wraps(command)
    def choosing(
        exact: bool,
        digits: int | None,
        decimals: int | None,
        float: str | None,
        device: str | None,
        **rest: Any,
    ) -> Any:
        return command(chosen=Chosen(exact, digits, decimals, float, device), **rest)

    options = (
        click.option(
            "--exact",
            cls=Option,
            is_flag=True,
            help=later("exact or named numbers (the default up to 2,000 parameters)"),
        ),
        click.option(
            "--digits",
            cls=Option,
            callback=proven_digits,
            metavar="N",
            help=later(
                "N significant digits of every number, proven (trace: with --float, both compared)"
            ),
        ),
        click.option(
            "--decimals",
            cls=Option,
            callback=whole_number,
            metavar="D",
            help=later("as with a pencil: every line rounded to D decimals"),
        ),
        click.option(
            "--float",
            cls=Option,
            callback=one_of(*FORMATS),
            metavar="FORMAT",
            help=later("floats: float64, float32, bfloat16 or float16 (the default above that)"),
        ),
        click.option(
            "--device",
            cls=Option,
            metavar="DEVICE",
            help=later("work with torch on this device: cpu, cuda, cuda:1"),
        ),
    )
    for option in reversed(options):
        choosing = option(choosing)
    return choosing
