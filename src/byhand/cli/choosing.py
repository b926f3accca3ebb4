"""Which numbers a command works in: --exact, --digits, --decimals, --float, --device."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from byhand.cli.speaking import Option, later, one_of
from byhand.errors import UsageError
from byhand.language import _, whole
from byhand.options import FORMATS, MOST_DECIMALS, MOST_DIGITS, Chosen

DASHES = "--"


def whole_from(least: int, most: int) -> Callable[..., int | None]:
    """A whole number within its range."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        if value.isascii() and value.isdigit() and len(value) <= 9 and least <= int(value) <= most:
            return int(value)
        expected = _("a whole number from {least} to {most}")
        raise UsageError(
            _("{name} has a value that does not fit").format(name=param.opts[0]),
            expected=expected.format(least=least, most=whole(most)),
            found=repr(value[:40]),
        )

    return read


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
        return command(chosen=Chosen(exact, digits, decimals, float, device, DASHES), **rest)

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
            callback=whole_from(1, MOST_DIGITS),
            metavar="N",
            help=later(
                "N significant digits of every number, proven (trace: with --float, both compared)"
            ),
        ),
        click.option(
            "--decimals",
            cls=Option,
            callback=whole_from(0, MOST_DECIMALS),
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
