"""`byhand trace`: the whole working of a text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from byhand.cli.choosing import beside_options, names_option, numbers_options, style_of
from byhand.cli.printing import talk
from byhand.cli.speaking import as_text_command, flag, json_option, later, option
from byhand.errors import AddressError, UsageError
from byhand.language import _
from byhand.options import refuse_together

if TYPE_CHECKING:
    from byhand.evaluate import Job, Progress
    from byhand.model import Model
    from byhand.numbers.base import Numbers
    from byhand.options import Chosen
    from byhand.tracing import Trace


@as_text_command(
    later("the whole working of a text, from its words to the next one"),
    later(
        "Prints every step of a model's forward pass in order, with its formula and its numbers: "
        "exact where they can be, named where they can't."
    ),
)
@option(
    "--only",
    "PATTERN",
    later("only these steps: block.0.attn, 'block.*.attn.scores'; may be repeated"),
    multiple=True,
)
@option(
    "--at",
    "ADDRESS",
    later("how one number comes about: 'block.0.attn.scores[0,1,1]'; may be repeated"),
    multiple=True,
)
@beside_options
@option("--target", "WORD", later("the word that should come next: adds the loss"))
@flag("--losses", later("the loss at every position, against the text shifted by one"))
@flag("--logprobs", later("the log-probability of every next token of the text"))
@flag("--backward", later("the gradients too: from the loss back to every weight"))
@flag("--stop-at-boundary", later("work each position only as far as its numbers stay exact"))
@numbers_options
@option(
    "--against",
    "ORIGINAL",
    later("how far every number is from that of this model, which has other weights"),
)
@flag("--heads", later("each head's own part of the output"))
@flag("--shapes", later("the plan with its shapes, without numbers"))
@option("--out", "DIR", later("save every number as a folder of golden files"))
@names_option
@json_option
def command(
    model: str,
    text: str | None,
    source: str | None,
    segments: tuple[int, ...] | None,
    only: tuple[str, ...],
    at: tuple[str, ...],
    target: str | None,
    losses: bool,
    logprobs: bool,
    backward: bool,
    stop_at_boundary: bool,
    chosen: Chosen,
    against: str | None,
    heads: bool,
    shapes: bool,
    out: str | None,
    names: str,
    as_json: bool,
) -> int:
    """Works a text out, then shows or saves the trace; returns the exit status."""
    if shapes:
        from byhand.cli.shapes import Ends, show_shapes

        ends = Ends(target is not None, losses, backward, logprobs)
        return show_shapes(model, (text, source), only, heads, ends, names, as_json)
    from byhand.cli.progress import telling
    from byhand.evaluate import prepare
    from byhand.models import open_model
    from byhand.number_choice import numbers_for

    both = {"backward": backward, "stop-at-boundary": stop_at_boundary}
    refuse_together(both, "--")
    if chosen.compares:
        from byhand.cli.comparison import compared, refuse, show_comparison

        refuse(out=out is not None, stop_at_boundary=stop_at_boundary)
    if against is not None:
        from byhand.cli.against import refuse_beside, show_against

        refuse_beside(at, out, stop_at_boundary, chosen)
    inside = steps_of(at)
    wanted = (*only, *inside)

    def job_of(model: Model, numbers: Numbers, text: str | None = text) -> Job:
        return prepare(
            model,
            text,
            numbers,
            source=source,
            segments=segments,
            target=target,
            losses=losses,
            logprobs=logprobs,
            backward=backward,
            only=only or (("tokens",) if at else ()),
            at=inside,
            head_outputs=heads,
        )

    with hinting(model, wanted), telling() as progress:
        opened = open_model(model)
        if against is not None:
            style = style_of(names, opened.family)
            return show_against(opened, against, job_of, chosen, only, style, as_json, progress)
        numbers = numbers_for(opened, chosen)
        if stop_at_boundary:
            refuse_boundary(numbers, chosen.digits)
        job = job_of(opened, numbers)
        refuse_outside(job, at)
        style = style_of(names, opened.family)
        shown = out is None or as_json or bool(wanted or at)
        if chosen.compares:
            comparison = compared(job, chosen, only or tuple(inside), style, progress)
            trace = comparison.proven
        elif out is not None:
            trace = save_to(job, out, style, shown, progress, chosen.digits)
        elif chosen.digits is not None:
            from byhand.proving.digits import prove

            trace = prove(job, chosen.digits, progress=progress)
        else:
            trace = job.work(progress=progress)
    if out is not None:
        count = len(job.asked or job.plan)
        talk(_("saved {count} steps in {folder}").format(count=count, folder=out))
    with hinting(model, wanted):
        if chosen.compares:
            show_comparison(comparison, only, at, as_json)
        elif as_json:
            from byhand.document.media.json.trace import write_json

            write_json(trace, sys.stdout, wanted, style)
        elif shown:
            show(trace, only, at, stop_at_boundary, style)
    unproven = trace.proof is not None and not trace.proof.complete
    if unproven:
        tell_unproven(trace)
    return 1 if unproven or undecided(trace, wanted) else 0


def refuse_boundary(numbers: Numbers, digits: int | None) -> None:
    """Raises a UsageError if the numbers have no boundary to stop at."""
    if not numbers.uniform:
        return
    rounded = numbers.uniform == "rounded"
    raise UsageError(
        _("--stop-at-boundary needs exact numbers"),
        found=numbers.name if rounded else f"--digits {digits}",
        hint=_("rounded numbers have no boundary: add --exact")
        if rounded
        else _("enclosures have no boundary: leave --digits out"),
    )


def steps_of(addresses: Iterable[str]) -> list[str]:
    """The steps of some addresses; weights need no step."""
    from byhand.address import read_address
    from byhand.plan import WEIGHT

    names = [read_address(address).name for address in addresses]
    return [name for name in names if not name.startswith(WEIGHT)]


def refuse_outside(job: Job, addresses: Iterable[str]) -> None:
    """Raises an AddressError for numbers that do not exist, before any work."""
    from byhand.address import read_address
    from byhand.document.compose.working import shape_at

    for address in addresses:
        shape_at(read_address(address), job.plan, job.model.weights)


@contextmanager
def hinting(model: str, wanted: Sequence[str]) -> Iterator[None]:
    """Adds a hint where to find addresses to an error for an address without near names."""
    try:
        yield
    except AddressError as error:
        if "loss" in wanted and "loss" in error.message:
            error.hint = _("the loss needs a target: --target WORD")
        elif error.hint is None and error.expected is None:
            error.hint = _("{command} lists every step").format(
                command=f"byhand trace {quote(model)} --shapes"
            )
        raise


def show(trace: Trace, only: tuple[str, ...], at: tuple[str, ...], stop: bool, style: str) -> None:
    """Prints the trace, or the workings of single numbers."""
    from byhand.cli.printing import print_parts
    from byhand.document.compose.working import workings

    lines = [tuple(workings(trace, address)) for address in at]  # all of them, or an error
    if only or not at:
        from byhand.document.compose.trace import document

        print_parts(document(trace, only=only, stop_at_boundary=stop, names=style))
    for parts in lines:
        print_parts(parts)


def save_to(
    job: Job,
    folder: str,
    style: str,
    shown: bool,
    progress: Progress | None,
    digits: int | None,
) -> Trace:
    """Saves the trace during the work; returns the steps that are also shown."""
    from byhand.golden import save_working

    steps = job.asked or tuple(step.address for step in job.plan)
    kept = steps if shown else ()
    return save_working(job, folder, progress=progress, names=style, keep=kept, digits=digits)


def tell_unproven(trace: Trace) -> None:
    """Says on stderr what could not be proven, and how close it is: the first such number."""
    from byhand.document.compose.listing import unproven

    found = unproven(trace)
    for line in (found.lead, *(f"  {text}" for text in found.told)):
        talk(line)


def undecided(trace: Trace, wanted: tuple[str, ...]) -> bool:
    """Whether a proof was asked for and not found."""
    asked = trace.plan.matching(wanted) if wanted else tuple(trace.steps)
    for address in asked:
        missing = trace.steps[address].missing
        if missing is not None and missing.kind == "undecided":
            return True
    return "next" in asked and any(found.id is None for found in trace.next or ())
