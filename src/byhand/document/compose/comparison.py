"""A comparison of floats with the true values, as parts: a line for each step, or every number.

`comparing` finds the errors.  Here they become parts: the steps with their largest errors and the
next tokens that differ.  In the steps asked for, each number has its true value, its float and its
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, log2
from typing import TYPE_CHECKING

from byhand.address import read_address, write_index
from byhand.comparing import ulps_between
from byhand.document import words
from byhand.document.compose.forms import DIGITS, enclosed_cell, margin_cell
from byhand.document.compose.trace import document
from byhand.document.compose.working import workings
from byhand.document.numerals import forms_of, one_line
from byhand.document.parts import (
    MASKED,
    Cell,
    Column,
    Facts,
    Finding,
    Grid,
    Loss,
    Number,
    NumberRow,
    NumberTable,
    Part,
    Predictions,
    Remark,
    StepPart,
    Title,
    WorkingLine,
)
from byhand.document.sizes import (
    HUNDREDTH,
    as_text,
    at_least,
    bounded,
    right_digits,
    same,
    ulps,
    ulps_below,
)
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.comparing import Comparison, Differing, StepComparison

INDENT = "  "  # before the rows below a row of true values
BAR = 10  # doublings of an error that a usual bar can show
Index = tuple[int, ...]


@dataclass(frozen=True)
class Compared:
    """A run in floats and the true values, ready to be shown."""

    comparison: Comparison
    floats: Trace
    proven: Trace
    only: tuple[str, ...] = ()
    names: str = "byhand"  # the style of the steps' names

    @property
    def format(self) -> str:
        """The name of the float format."""
        return self.comparison.format

    @property
    def digits(self) -> int:
        """The number of digits shown of the true values."""
        return self.proven.digits or DIGITS

    @property
    def steps(self) -> list[StepComparison]:
        """The steps that are shown."""
        plan = self.proven.plan
        shown = set(plan.matching(self.only)) if self.only else set(self.proven.steps)
        return [step for step in self.comparison.steps if step.address in shown]

    def ulps_at(self, address: str, index: Index) -> tuple[float, float]:
        """The lower and upper bound of the error of one number, in ulps."""
        true, found = (trace.steps[address].at(index) for trace in (self.proven, self.floats))
        form = self.floats.numbers.format  # type: ignore[attr-defined]
        return ulps_between(true, found, form)

    # ------------------------------------------------------------------ the head

    def title(self) -> Title:
        """The title: the two runs compared."""
        trace = self.proven
        facts = [
            *words.texts(trace),
            (_("numbers"), self.numbers()),
        ]
        if self.comparison.predicted:
            facts.append((_("next"), same_tokens(self.comparison)))
        name, about = words.printable(trace.model.name), words.told(trace.model.about)
        return Title(name, about, tuple(facts))

    def numbers(self) -> str:
        """A sentence on the two number systems that are compared."""
        proof = self.proven.proof
        assert proof is not None
        text = _("{format}, beside the true values to {digits} digits, proven with {bits} bits")
        if not proof.complete:
            text = _(
                "{format}, beside the true values to {digits} digits, not all proven; worked out "
                "with {bits} bits"
            )
        return text.format(
            format=self.floats.numbers.name, digits=self.digits, bits=words.whole(proof.bits)
        )

    # ------------------------------------------------------------------ a line a step

    def document(self) -> Iterator[Part]:
        """The title, the steps with their largest errors, then numbers asked for or a closing."""
        yield self.title()
        if self.steps:
            yield Finding(self.about())
            yield steps_grid(self.steps, self.proven.plan.in_style(self.names), self.open)
        yield from self.parts() if self.only else self.closing()

    def about(self) -> str:
        """A paragraph on what the table of errors shows."""
        text = _(
            "An ulp is the distance from one {format} to the next, at the size of the true "
            "value. A number that was rounded once is at most half an ulp away. Each step "
            "shows its largest error and where it is. It also shows how many decimal "
            "digits are right, of its worst number and of a usual one. Bars grow with the "
            "logarithm of the error."
        ).format(format=self.format)
        if not any(step.unclear or self.open(step) for step in self.steps):
            return text
        return f"{text} " + _(
            "Some true values are not known narrowly enough: of those, ≥ is what is proven of the "
            "error, and ? says that nothing is."
        )

    def open(self, step: StepComparison) -> bool:
        """Whether the largest error of a step may exceed its proven bound."""
        return is_open(step) or (
            step.fewest_digits < inf and not same(*self.ulps_at(step.address, step.at))
        )

    # ------------------------------------------------------------------ the end

    def closing(self) -> Iterator[Part]:
        """The number that is furthest from its true value, and the tokens that differ."""
        worst = max(self.steps, key=lambda step: step.ulps, default=None)
        if worst is not None and worst.ulps > 0:
            name = worst.address + write_index(worst.at)
            cell = enclosed_cell(self.proven.steps[worst.address].at(worst.at), self.digits)
            error = self.error(worst.address, worst.at)
            facts = (
                (_("true"), "".join(text for _sign, text in forms_of(cell))),
                (self.format, as_text(self.floats.steps[worst.address].at(worst.at))),
                (_("error"), _("{ulps} ulps").format(ulps=error)),
            )
            yield Facts(facts, _("The largest error is that of {name}:").format(name=name))
        zeros = [step.address + write_index(at) for step in self.steps for at in step.missed_zeros]
        if zeros:
            text = _("Numbers that are truly 0 and are not in {format}: {count}, such as {name}.")
            yield Finding(text.format(format=self.format, count=len(zeros), name=zeros[0]))
        for one in self.comparison.differing:
            yield Finding(self.differs(one).text)

    def beside(self, address: str, index: Index) -> str:
        """The float of a number beside its true value, in words."""
        found = self.floats.steps[address].at(index)
        if found is ABSENT:
            return _("masked: absent, not a number")
        least, most = self.ulps_at(address, index)
        error = ulps(most)
        if most == 0:
            text = _("{format}: {number}, exactly")
        elif self.is_zero(address, index):
            text = _("{format}: {number}; the true value is 0")
        elif same(least, most):
            text = _("{format}: {number}, {ulps} ulps away")
        elif least >= HUNDREDTH:
            error, text = ulps_below(least), _("{format}: {number}, at least {ulps} ulps away")
        elif isfinite(most):
            text = _("{format}: {number}, at most {ulps} ulps away")
        else:
            text = _("{format}: {number}; its error is not known")
        return text.format(format=self.format, number=as_text(found), ulps=error)

    def error(self, address: str, index: Index) -> str:
        """The error of one number in ulps, or its proven bounds."""
        if self.is_zero(address, index):
            return "0" if self.ulps_at(address, index) == (0, 0) else "—"
        return bounded(*self.ulps_at(address, index))

    def is_zero(self, address: str, index: Index) -> bool:
        """Whether the true value is 0, which has no ulp."""
        true = self.proven.steps[address].at(index)
        return bool(true.exact and true.mid == 0)

    def differs(self, one: Differing) -> Remark:
        """A remark that floats predict another token than the true values."""
        trace = self.proven
        assert trace.next is not None
        margin = trace.next[one.position].margin
        token = words.token_label(trace.token(trace.tokens[one.position]))
        float_token = "?" if one.float_id is None else trace.answer(one.float_id)
        text = _(
            "after position {position} ({token}): {format} says {float}, the true next token is "
            "{true}, ahead by {margin}, proven"
        )
        return Remark(
            "open",
            text.format(
                position=one.position,
                token=token,
                format=self.format,
                float=words.token_label(float_token),
                true=words.token_label(trace.answer(one.id)),
                margin=one_line(margin_cell(margin, DIGITS)),
            ),
        )

    # ------------------------------------------------------------------ every number

    def parts(self) -> Iterator[Part]:
        """The steps asked for; each number with its true value, float and error in ulps."""
        there = {step.address for step in self.comparison.steps}
        for part in document(self.proven, only=self.only, names=self.names):
            match part:
                case Title():
                    continue
                case StepPart() if part.address in there:
                    yield replace(part, tables=tuple(self.tables(part)))
                case Loss():
                    yield part
                    yield Remark("value", self.beside("loss", (0,)))
                case Predictions():
                    yield part
                    yield from map(self.differs, self.comparison.differing)
                case _:
                    yield part

    def tables(self, part: StepPart) -> Iterator[NumberTable]:
        """The tables of a step, with the floats and errors below each row of true values."""
        for table in part.tables:
            below = ((row, *self.rows(part.address, row)) for row in table.rows)
            yield replace(table, rows=tuple(row for rows in below for row in rows))

    def rows(self, address: str, row: NumberRow) -> Iterator[NumberRow]:
        """The rows below a row of true values."""
        floats, errors = [], []
        for number in row.numbers:
            index = tuple(i for i in read_address(number.address).index if isinstance(i, int))
            found = self.floats.steps[address].at(index)
            texts = ("", "") if found is ABSENT else (as_text(found), self.error(address, index))
            cells = [Cell("rounded", decimal=text) if text else MASKED for text in texts]
            floats.append(Number(number.address, cells[0]))
            errors.append(Number(number.address, cells[1]))
        yield NumberRow(row.place, INDENT + self.format, "rounded", tuple(floats))
        yield NumberRow(row.place, f"{INDENT}ulps", "rounded", tuple(errors))

    def at(self, address: str) -> Iterator[Part]:
        """The working of a number, or of each number of a slice, and its float."""
        for part in workings(self.proven, address):
            if not isinstance(part, WorkingLine):
                yield part
                continue
            read = read_address(part.address)
            index = tuple(i for i in read.index if isinstance(i, int))
            there = read.name in {step.address for step in self.comparison.steps}
            told = there and not part.missing and not part.cell.masked
            remarks = (Remark("value", self.beside(read.name, index)),) if told else ()
            yield replace(part, remarks=(*part.remarks, *remarks))


def cell_parts(comparison: Comparison) -> Iterator[Part]:
    """The parts of a notebook cell: the next tokens, and every step with its largest error."""
    facts = [(_("numbers"), comparison.format)]
    if comparison.predicted:
        facts.append((_("next"), same_tokens(comparison)))
    yield Facts(tuple(facts))
    yield steps_grid(comparison.steps, comparison.plan.in_style("byhand"), is_open)


def same_tokens(comparison: Comparison) -> str:
    """How many of the next tokens are the true ones, in words."""
    text = _("{count} of {all} tokens are the true ones")
    same = comparison.predicted - len(comparison.differing)
    return text.format(count=same, all=comparison.predicted)


def steps_grid(
    steps: Sequence[StepComparison],
    names: Mapping[str, str],
    is_open: Callable[[StepComparison], bool],
) -> Grid:
    """The steps by stage: the largest error, its place, the right digits, and a bar."""
    heads = (_("step"), "ulps", _("at"), _("digits"), _("usual"), "")
    kinds = ("address", "number", "address", "number", "number", "share")
    errors = [log2(1 + step.ulps) for step in steps if isfinite(step.ulps)]
    longest = max(BAR, *errors) if errors else BAR
    rows: list[tuple[str, ...]] = []
    stage = ""
    for step, place in zip(steps, words.places(s.address for s in steps), strict=True):
        if (here := words.stage_title(place)) != stage:
            stage = here
            rows.append((stage,))
        share = log2(1 + step.ulps) / longest if isfinite(step.ulps) else 1.0
        cells = _cells(step, step.unclear > 0 or is_open(step))
        rows.append((names[step.address], *cells, f"{share:.5f}" if share else ""))
    return Grid("", tuple(map(Column, heads, kinds)), tuple(rows))


def _cells(step: StepComparison, is_open: bool) -> tuple[str, ...]:
    if step.fewest_digits == inf:  # the floats may equal the true values
        known = step.unclear == 0
        return ulps(0) if known else "?", "", *[_("all") if known else "?"] * 2
    return (
        at_least(step.ulps) if is_open else ulps(step.ulps),
        write_index(step.at),
        right_digits(step.fewest_digits),
        right_digits(step.usual_digits),
    )


def is_open(step: StepComparison) -> bool:
    """Whether the proven bounds of a step's errors allow a larger one."""
    return step.fewest_digits < inf and not same(step.ulps, step.most_ulps)
