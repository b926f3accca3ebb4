"""`byhand explain`: why this token comes next, in sentences and in sums that close."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from byhand.cli.choosing import DASHES, beside_options, numbers_options
from byhand.cli.completing import listed
from byhand.cli.printing import talk, width_of_output
from byhand.cli.speaking import (
    as_text_command,
    flag,
    json_option,
    later,
    one_of,
    option,
    whole_number,
)
from byhand.document.compose.explanation import SECTIONS
from byhand.errors import UsageError
from byhand.language import _
from byhand.options import Chosen, refuse_against_alone

if TYPE_CHECKING:
    from byhand.explaining import Explanation


def sections_of(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """The names of sections, separated by commas, in the order in which they are shown."""
    named = [name.strip() for value in values for name in value.split(",")]
    known = one_of(*SECTIONS)
    for name in named:
        known(ctx, param, name)
    return tuple(name for name in SECTIONS if name in named)


@as_text_command(
    later("why this token comes next: which part added how much to its logit"),
    later(
        "Says in sentences what the numbers of a forward pass mean. Then it shows the "
        "logit of the next token as a sum that closes. It shows what the residual stream "
        "would have said after every step, and what each head reads and writes. The stream "
        "is drawn as a path in the plane, and the state of each layer is reported."
    ),
)
@option(
    "--only",
    "SECTION",
    later(
        "only these sections, in full: facts, attribution, lens, attention, geometry, health, "
        "gradients, stream, norms, inputs; may be repeated"
    ),
    multiple=True,
    callback=sections_of,
    shell_complete=listed(*SECTIONS),
)
@beside_options
@option(
    "--position",
    "P",
    later("the position explained, counted from 0; without it, the last one"),
    callback=whole_number,
)
@option(
    "--token", "WORD", later("the token whose logit is explained; without it, the one predicted")
)
@option(
    "--against", "WORD", later("the token it is compared with; without it, the strongest other one")
)
@flag("--alone", later("the logit by itself, compared with no other"))
@flag("--neurons", later("every MLP neuron by neuron in the sum"))
@flag("--keys", later("every head by the positions it reads from"))
@option(
    "--length",
    "N",
    later(
        "for inputs: every text of up to N tokens; without it, up to the model's context, "
        "if there are not too many"
    ),
    callback=whole_number,
)
@flag("--all every", later("every term, row, head and position, however many there are"))
@numbers_options
@option("--report", "FILE", later("write a page (HTML) with pictures as well"))
@json_option
def command(
    model: str,
    text: str | None,
    source: str | None,
    segments: tuple[int, ...] | None,
    only: tuple[str, ...],
    position: int | None,
    token: str | None,
    against: str | None,
    alone: bool,
    neurons: bool,
    keys: bool,
    length: int | None,
    every: bool,
    chosen: Chosen,
    report: str | None,
    as_json: bool,
) -> int:
    """Explains a prediction and shows it or writes the report; returns the exit status."""
    from byhand.cli.progress import telling
    from byhand.cli.saving import can_be_written
    from byhand.document.explanation import page as report_of
    from byhand.drafts import write_whole
    from byhand.explaining import explain
    from byhand.models import open_model
    from byhand.number_choice import numbers_for

    chosen.refuse_comparison()
    refuse_against_alone(against, alone, DASHES)
    page = None if report is None else can_be_written(report)
    if length is not None and only and not {"inputs", "facts"} & set(only):
        raise UsageError(_("--length is for the section inputs"), hint="--only inputs")
    with telling() as progress:
        opened = open_model(model)
        found = explain(
            opened,
            text,
            numbers_for(opened, chosen),
            digits=chosen.digits,
            source=source,
            segments=segments,
            position=position,
            token=token,
            against=against,
            alone=alone,
            neurons=neurons,
            keys=keys,
            length=length,
            only=("tokens",) if only == ("inputs",) and not as_json else (),
            progress=progress,
        )
        report_page = None if page is None else report_of(found, only, every=every)
        tell = telling_of(found, only, every, as_json)
    if page is not None and report_page is not None:
        # first, since the reader of stdout may stop reading
        write_whole(page, report_page.encode())
        talk(_("the report is in {file}").format(file=page))
    tell()
    return status_of(found)


def telling_of(
    found: Explanation, only: Sequence[str], every: bool, as_json: bool
) -> Callable[[], None]:
    """A function that prints the explanation; all of it is worked out here, or an error raised."""
    if as_json:
        from byhand.document.media.json.explanation import document_of
        from byhand.document.media.json.records import write_document

        return partial(write_document, document_of(found, only), sys.stdout)
    from byhand.document.explanation import lines
    from byhand.document.media.terminal.ink import ink_for

    shown = lines(found, only, width_of_output(), ink_for(sys.stdout), every=every)
    return partial(print, *shown, sep="\n")


def status_of(found: Explanation) -> int:
    """The exit status: 1 if a proof was asked for and not found, as in `byhand trace`."""
    proof = found.trace.proof
    if proof is not None and not proof.complete:
        from byhand.cli.trace import tell_unproven

        tell_unproven(found.trace)
        return 1
    return 0
