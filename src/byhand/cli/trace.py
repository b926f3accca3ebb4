"""`byhand trace`: the whole working of a text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from byhand.cli.speaking import Command, Option, json_option, language_option, later
from byhand.errors import UsageError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.trace import Trace


@click.command(
    cls=Command,
    short_help=later("the whole working of a text, from its words to the next one"),
    help=later(
        "Prints every step of a model's forward pass in order, with its formula and its numbers: "
        "exact where they can be, named where they can't."
    ),
    arguments={
        "MODEL": later("a built-in model (see byhand models) or a model file"),
        "[TEXT]": later("the text; without it, the model's own"),
    },
)
@click.argument("model", metavar="MODEL")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option(
    "--only",
    cls=Option,
    multiple=True,
    metavar="PATTERN",
    help=later("only these steps: block.0.attn, 'block.*.attn.scores'; may be repeated"),
)
@click.option(
    "--at",
    cls=Option,
    multiple=True,
    metavar="ADDRESS",
    help=later("how one number comes about: 'block.0.attn.scores[0,1,1]'; may be repeated"),
)
@click.option(
    "--target",
    cls=Option,
    metavar="WORD",
    help=later("the word that should come next: adds the loss"),
)
@click.option(
    "--stop-at-boundary",
    cls=Option,
    is_flag=True,
    help=later("work each position only as far as its numbers stay exact"),
)
@click.option(
    "--exact", cls=Option, is_flag=True, help=later("exact or named numbers (the default)")
)
@click.option(
    "--decimals",
    cls=Option,
    type=click.IntRange(min=0),
    metavar="D",
    help=later("as with a pencil: every line rounded to D decimals"),
)
@click.option("--heads", cls=Option, is_flag=True, help=later("each head's own part of the output"))
@click.option(
    "--shapes", cls=Option, is_flag=True, help=later("the plan with its shapes, without numbers")
)
@click.option(
    "--out", cls=Option, metavar="DIR", help=later("save every number as a folder of golden files")
)
@json_option
@language_option
def command(
    model: str,
    text: str | None,
    only: tuple[str, ...],
    at: tuple[str, ...],
    target: str | None,
    stop_at_boundary: bool,
    exact: bool,
    decimals: int | None,
    heads: bool,
    shapes: bool,
    out: str | None,
    as_json: bool,
) -> int:
    if exact and decimals is not None:
        raise UsageError(
            _("--exact and --decimals exclude each other"), hint=_("leave one of them out")
        )
    if stop_at_boundary and decimals is not None:
        raise UsageError(
            _("--stop-at-boundary and --decimals exclude each other"),
            hint=_("rounded numbers have no boundary: leave one of them out"),
        )
    if shapes:
        from byhand.cli.shapes import show_shapes

        return show_shapes(model, text, only, heads, target is not None, as_json)
    from byhand.address import read_address
    from byhand.api import trace as work_out
    from byhand.cli.progress import telling
    from byhand.models import open_model
    from byhand.plan import WEIGHT

    names = [read_address(address).name for address in at]
    steps = [name for name in names if not name.startswith(WEIGHT)]
    with telling() as progress:
        trace = work_out(
            open_model(model),
            text,
            decimals=decimals,
            target=target,
            only=(*only, *steps),
            heads=heads,
            progress=progress,
        )
    if out is not None:
        save_to(trace, out)
    if as_json:
        from byhand.render.data import write_json

        write_json(trace, sys.stdout, only)
    elif out is None or at or only:
        from byhand.cli.printing import print_parts
        from byhand.render.at import workings
        from byhand.render.document import document

        if only or not at:
            print_parts(document(trace, only=only, stop_at_boundary=stop_at_boundary))
        for address in at:
            print_parts(workings(trace, address))
    return 1 if undecided(trace, only) else 0


def save_to(trace: Trace, folder: str) -> None:
    from byhand.golden import save

    save(trace, folder)
    print(_("saved {count} steps in {folder}").format(count=len(trace.steps), folder=folder),
          file=sys.stderr)  # fmt: skip


def undecided(trace: Trace, only: tuple[str, ...]) -> bool:
    """Whether a proof was asked for and not found."""
    asked = set(trace.plan.matching(only)) if only else set(trace.steps)
    for address in asked:
        worked = trace.steps[address]
        if worked.missing is not None and worked.missing.kind == "undecided":
            return True
    return "next" in asked and any(found.id is None for found in trace.next or ())
