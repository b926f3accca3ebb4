"""`byhand models`: the built-in models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from byhand.cli.printing import print_data
from byhand.cli.speaking import Command, json_option, language_option, later
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.media.terminal.ink import Ink
    from byhand.model import Model


@click.command(
    cls=Command,
    short_help=later("the built-in models"),
    help=later("Lists the built-in models, each with its size and its own text."),
)
@json_option
@language_option
def command(as_json: bool) -> int:
    """Prints the built-in models; returns the exit status."""
    from byhand.cli.printing import print_lines
    from byhand.counting import count
    from byhand.models import builtin_names, open_model

    found = [(model, count(model.spec).total) for model in map(open_model, builtin_names())]
    if as_json:
        data = [
            {"name": m.name, "about": m.about, "text": m.text, "target": m.target, "parameters": n}
            for m, n in found
        ]
        print_data(data)
    else:
        print_lines(lambda width, ink: model_lines(found, width, ink))
    return 0


def model_lines(found: list[tuple[Model, int]], width: int, ink: Ink) -> Iterator[str]:
    """A paragraph about each built-in model."""
    from byhand.document.compose.listing import paragraph
    from byhand.document.words import told, whole

    for model, parameters in found:
        size = _("{count} parameters").format(count=whole(parameters))
        room = " " * (width - len(model.name) - len(size))
        yield ink(model.name, "strong") + room + ink(size, "quiet")
        yield from paragraph(told(model.about), width)
        text = model.text or ""
        quoted = f'"{text}"' if " " in text else text
        yield ink(f"    byhand trace {model.name} {quoted}".rstrip(), "quiet")
        yield ""
    yield from paragraph(_("A model file of your own works wherever these names do."), width, "")
