"""A change of weights as parts: how far every step moved, and what is predicted now.

`contrasting` finds the sizes; here they become parts.  In the steps asked for, each number stands
above that of the original model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite, log10
from typing import TYPE_CHECKING

from byhand.address import write_index
from byhand.document import words
from byhand.document.compose.trace import document
from byhand.document.parts import (
    Column,
    Finding,
    Grid,
    NumberRow,
    NumberTable,
    Part,
    StepPart,
    Title,
)
from byhand.document.sizes import between, between_shares
from byhand.language import _
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.contrasting import Contrast, Predicted, StepContrast

INDENT = "  "  # before the rows of the original model
DECADES = 8  # powers of ten that a bar can show
MOST_POSITIONS = 40  # that are listed one by one


@dataclass(frozen=True)
class Contrasted:
    """Two runs of one text, ready to be shown."""

    contrast: Contrast
    trace: Trace
    original: Trace
    only: tuple[str, ...] = ()
    names: str = "byhand"  # the style of the steps' names

    @property
    def traces(self) -> tuple[Trace, Trace]:
        """Both runs, the changed model's first."""
        return self.trace, self.original

    @property
    def steps(self) -> list[StepContrast]:
        """The steps that are shown."""
        plan = self.trace.plan
        shown = set(plan.matching(self.only)) if self.only else set(self.trace.steps)
        return [step for step in self.contrast.steps if step.address in shown]

    def document(self) -> Iterator[Part]:
        """The title, how far each step moved, the predictions, then numbers asked for."""
        yield self.title()
        if self.steps:
            yield Finding(_about(self.contrast))
            yield steps_grid(self.steps, self.trace, self.names)
        if self.contrast.predicted and not self.only:
            yield predictions_grid(self.contrast.predicted, self.trace)
        yield from self.parts() if self.only else map(Finding, closing(self.contrast, self.trace))

    def title(self) -> Title:
        """The title: the two models, and the text."""
        trace, proof = self.trace, self.trace.proof
        numbers = trace.numbers.name
        if proof is not None:
            numbers = _("{digits} digits, proven").format(digits=proof.digits)
            if not (proof.complete and self.original.proof and self.original.proof.complete):
                numbers = _("{digits} digits, not all proven").format(digits=proof.digits)
        facts = [
            (_("against"), words.printable(self.original.model.name)),
            (_("text"), words.printable(trace.text)),
            (_("numbers"), numbers),
        ]
        if self.contrast.predicted:
            facts.append((_("next"), same_tokens(self.contrast)))
        about = words.told(trace.model.about)
        return Title(words.printable(trace.model.name), about, tuple(facts))

    def parts(self) -> Iterator[Part]:
        """The steps asked for; each row of numbers above that of the original model."""
        both = (document(each, only=self.only, names=self.names) for each in self.traces)
        for part, before in zip(*both, strict=False):
            if isinstance(part, StepPart) and isinstance(before, StepPart):
                tables = zip(part.tables, before.tables, strict=False)
                yield replace(part, tables=tuple(_both(*each) for each in tables))
            elif not isinstance(part, Title):
                yield part


def _both(table: NumberTable, before: NumberTable) -> NumberTable:
    """A table with the original's rows below its own."""
    rows: list[NumberRow] = []
    for row, other in zip(table.rows, before.rows, strict=False):
        rows += [row, replace(other, label=INDENT + _("original"))]
    return replace(table, rows=tuple(rows))


def _about(contrast: Contrast) -> str:
    text = _(
        "Each step shows the largest difference between its numbers and the original ones, "
        "and where it is. It also shows the root mean square of all differences, and its "
        "share of that of the original numbers. Bars grow with the logarithm of the share."
    )
    if contrast.proven:
        return f"{text} " + _("Every size is proven.")
    return f"{text} " + _("They are differences of rounded numbers: --digits N proves them.")


def cell_parts(contrast: Contrast) -> Iterator[Part]:
    """The parts of a notebook cell: every step with its differences."""
    yield Finding(_about(contrast))
    yield steps_grid(contrast.steps, None)
    yield from map(Finding, closing(contrast, None))


def same_tokens(contrast: Contrast) -> str:
    """How many of the next tokens are those of the original model, in words."""
    every = len(contrast.predicted)
    same = sum(each.changed is False for each in contrast.predicted)
    text = _("{count} of {all} tokens are those of the original")
    return text.format(count=words.whole(same), all=words.whole(every))


def steps_grid(steps: Iterable[StepContrast], trace: Trace | None, names: str = "byhand") -> Grid:
    """The steps by stage: the largest difference, its place, the root mean square, its share."""
    heads = (_("step"), _("largest"), _("at"), _("rms"), _("share"), "")
    kinds = ("address", "number", "address", "number", "number", "share")
    called = None if trace is None else trace.plan.in_style(names)
    rows: list[tuple[str, ...]] = []
    stage, every = "", list(steps)
    for step, place in zip(every, words.places(s.address for s in every), strict=True):
        if (here := words.stage_title(place)) != stage:
            stage = here
            rows.append((stage,))
        name = step.address if called is None else called[step.address]
        rows.append((name, *_cells(step)))
    return Grid("", tuple(map(Column, heads, kinds)), tuple(rows))


def _cells(step: StepContrast) -> tuple[str, ...]:
    share = step.share
    moved = step.largest.most > 0
    return (
        between(step.largest.least, step.largest.most),
        write_index(step.at) if moved else "",
        between(step.rms.least, step.rms.most),
        "" if share is None else between_shares(share.least, share.most),
        "" if share is None else _bar(share.most),
    )


def _bar(share: float) -> str:
    if not share or not isfinite(share):
        return ""
    length = min(max((log10(share) + DECADES) / DECADES, 0.0), 1.0)
    return f"{length:.5f}" if length else ""


def predictions_grid(predicted: Iterable[Predicted], trace: Trace) -> Grid:
    """What comes next after each position, before and now; the divergence in nats."""
    heads = (_("after"), _("original"), _("now"), _("divergence"))
    kinds = ("text", "text", "text", "number")
    every = list(predicted)
    rows, strong = [], set()
    for place, each in enumerate(every[:MOST_POSITIONS]):
        token = words.token_label(trace.token(trace.tokens[each.position]))
        apart = each.divergence
        rows.append((
            f"{each.position} · {token}",
            *(_token(id, trace) for id in (each.original, each.now)),
            "" if apart is None else between(apart.least, apart.most),
        ))  # fmt: skip
        if each.changed:
            strong.add((place, 2))
    left = len(every) - len(rows)
    return Grid(
        _("Next token, and the divergence of its distribution from the original one, in nats:"),
        tuple(map(Column, heads, kinds)),
        tuple(rows),
        strong=frozenset(strong),
        note=_("a different token than before") if strong else "",
        left_out=_("and {count} more").format(count=words.whole(left)) if left else "",
    )


def _token(id: int | None, trace: Trace) -> str:
    return "?" if id is None else words.token_label(trace.answer(id))


def closing(contrast: Contrast, trace: Trace | None) -> Iterator[str]:
    """The first step that moved, the first prediction that changed, and settings that differ."""
    if all(step.largest.most == 0 for step in contrast):
        yield _("No number changed.")
    elif contrast.first is None:
        yield _("No number is known to have changed.")
    else:
        yield _("The first numbers that changed are those of {name}.").format(
            name=contrast.first.address
        )
    if contrast.changed:
        first = contrast.changed[0]
        text = _("The first prediction that changed is that after position {position}.")
        if first.proven:
            text = _("The first prediction that changed is that after position {position}: proven.")
        yield text.format(position=first.position)
    elif contrast.predicted and all(each.changed is False for each in contrast.predicted):
        yield _("No prediction changed.")
    unlike = [step for step in contrast if step.unlike]
    if unlike:
        yield _("{name} has {count} entries that only one of the models has.").format(
            name=unlike[0].address, count=words.whole(unlike[0].unlike)
        )
    if contrast.settings:
        yield _("The models differ in settings too: {settings}.").format(
            settings="; ".join(contrast.settings[:5])
        )
