"""What the steps are called: --names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from byhand.cli.speaking import Option, later
from byhand.errors import UsageError, nearest
from byhand.language import _


def names_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--names: the style of the names in what is printed and saved."""
    return click.option(
        "--names",
        cls=Option,
        default="byhand",
        metavar="STYLE",
        help=later(
            "call the steps as others do: transformer_lens, transformer_bridge, gpt2, llama, "
            "gpt_neox, or hf for the checkpoint's own"
        ),
    )(command)


def style_of(name: str, family: str | None) -> str:
    """The style of names that was asked for; `hf` is that of the checkpoint itself."""
    from byhand.names import STYLES

    short = {"tl": "transformer_lens", "hf": family}
    style = short.get(name, name)
    if style is None:
        raise UsageError(
            _("this model comes from no checkpoint, so it has no names of its own"),
            expected=", ".join(STYLES),
            found=name,
        )
    if style not in STYLES:
        raise UsageError(
            _("{name} has a value that does not fit").format(name="--names"),
            expected=", ".join((*STYLES, "hf")),
            found=repr(name[:40]),
            hint=nearest(name[:40], STYLES),
        )
    return style
