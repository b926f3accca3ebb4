"""Parts → text for a terminal of a given width; readable without colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from sys import maxsize
from typing import Any, ClassVar

from byhand.document import parts, words
from byhand.document.media.terminal.ink import Ink, padded, width_of, wrap
from byhand.document.media.terminal.layout import (
    as_printed,
    before_point,
    fit,
    legend,
    register_sign,
)
from byhand.document.media.terminal.tables import grid_lines
from byhand.document.media.terminal.wrapping import broken
from byhand.document.numerals import decimal_alone, forms_of, one_line
from byhand.expression import write
from byhand.language import _

INDENT = "  "
TOKEN = 12  # columns of a chosen token; a longer one takes more
APART = ("Title", "Grid", "Finding", "Facts")  # parts with a blank line before them
MARKS = {"leaves": "↗", "returns": "↙", "stops": "■", "limit": "!", "open": "?", "closing": "="}
INKS = {"open": "named", "closing": "strong", "more": "quiet"}  # of remarks; else their kind
LONGEST_DEFINITION = 400  # characters; longer definitions are left out


@dataclass
class Terminal:
    """Writes parts as lines of at most `width`, as far as words and numbers can be broken."""

    width: int = 80
    ink: Ink = field(default_factory=Ink)
    told: set[str] = field(default_factory=set)  # letters already defined
    brief: str | None = None  # the first entry whose form did not fit
    piped: bool = False  # tables of formulas are not broken to fit
    drawn: ClassVar[dict[str, Callable[[Terminal, Any], Iterator[str]]]]  # by the class of a part

    def lines(self, document: Iterable[parts.Part | parts.Section]) -> Iterator[str]:
        """The document, line by line."""
        for place, part in enumerate(document):
            if place and type(part).__name__ in APART:
                yield ""
            yield from self.part(part)

    def part(self, part: parts.Part | parts.Section) -> Iterator[str]:
        """One part as lines; a part that a terminal cannot show is described in words."""
        draw = self.drawn.get(type(part).__name__)
        if draw is not None:
            return draw(self, part)
        what = getattr(part, "address", "") or getattr(part, "title", "") or type(part).__name__
        return self.paragraph(_("shown on a page: {what}").format(what=what), INDENT)

    def paragraph(self, text: str, indent: str = "", first: str | None = None) -> Iterator[str]:
        """Words broken at the width; `first` stands before the first line."""
        return broken(text, self.width, indent if first is None else first, indent)

    # ------------------------------------------------------------------ words

    def grid(self, part: parts.Grid) -> Iterator[str]:
        """A table to be read."""
        whole = self.piped and any(column.kind == "formula" for column in part.columns)
        yield from grid_lines(part, maxsize if whole else self.width, self.ink)

    def finding(self, part: parts.Finding, leads: bool = False) -> Iterator[str]:
        """A sentence, and below it what is known about it; `leads`: strong even by itself."""
        for text in part.lead.split("\n") if part.lead else ():
            for line in list(self.paragraph(text, INDENT)) or [""]:
                yield self.ink(line, "strong" if part.told or leads else None)
        for text in part.told:
            yield from self.paragraph(text, INDENT * 2, f"{INDENT}• ")

    def facts(self, part: parts.Facts) -> Iterator[str]:
        """Facts with their names below a title; points of numbers are aligned."""
        yield from self.paragraph(part.title, INDENT)
        room = max(width_of(name) for name, _fact in part.facts)
        numbers = all(set(fact[:1]) <= set("-0123456789≥") for _name, fact in part.facts)
        before = max(before_point(fact) for _name, fact in part.facts) if numbers else 0
        for name, fact in part.facts:
            lead = INDENT * 2 + self.ink(padded(name, room), "quiet") + INDENT
            first, *rest = [fact] if numbers else wrap(fact, max(self.width - room - 6, 12)) or [""]
            yield lead + " " * (before - before_point(fact)) + first
            yield from (INDENT * 3 + " " * room + line for line in rest)

    # ------------------------------------------------------------------ title and stages

    def title(self, title: parts.Title) -> Iterator[str]:
        """What is worked out, and how its signs are read; with an aside, one of a list."""
        inner = INDENT * bool(title.aside)
        gap = self.width - width_of(title.name) - width_of(title.aside)
        aside = " " * gap + self.ink(title.aside, "quiet") if title.aside else ""
        yield self.ink(title.name, "strong") + aside
        if title.about:
            yield from self.paragraph(title.about, inner)
        if title.facts and not title.aside:
            yield ""
        room = max((width_of(name) for name, _fact in title.facts), default=0)
        for name, fact in title.facts:
            lead = f"{inner}{INDENT}{padded(name, room)}  "
            yield from self.paragraph(fact, " " * width_of(lead), lead)
        signs = list(legend(title))
        if signs:
            yield ""
        for sign, register, text in signs:
            lead = f"{INDENT}{padded(sign, 1)}  "
            first, *rest = self.paragraph(text, " " * len(lead), lead)
            yield first.replace(sign, self.ink(sign, register), 1) if sign else first
            yield from rest
        for note in title.notes:
            yield ""
            yield from self.paragraph(words.told(note))

    def stage(self, stage: parts.Stage) -> Iterator[str]:
        """A heading along the spine."""
        yield ""
        yield ""
        rule = "─" * (self.width - width_of(stage.title) - 4)
        title = self.ink(stage.title, "stage")
        yield f"{self.ink('──', 'quiet')} {title} {self.ink(rule, 'quiet')}"
        for line in self.paragraph(stage.about, INDENT):
            yield self.ink(line, "quiet")
        if not stage.about:
            yield ""

    # ------------------------------------------------------------------ steps

    def step(self, step: parts.StepPart) -> Iterator[str]:
        """A step with the weights it reads, its numbers and its remarks."""
        yield ""
        yield from self.header(step)
        yield from self.given(step.given)
        for table in step.tables:
            yield from self.table(table, step)
        for remark in step.remarks:
            yield from self.remark(remark)

    def header(self, step: parts.StepPart) -> Iterator[str]:
        """Address and formula at the left, axes and register at the right, on a line if it fits."""
        right = words.axes_text(step.axes, step.shape)
        sign = register_sign(step.register)
        tail = f"{right}   {sign}".rstrip()
        left = f"{step.address} = {words.formula_text(step.formula, step.address)}"
        said = self.ink(step.address, "strong") + left[len(step.address) :]
        end = self.ink(right, "quiet") + ("   " + self.ink(sign, step.register) if sign else "")
        room = self.width - width_of(left) - width_of(tail)
        if room >= 2:
            yield said + " " * room + end
        else:
            yield from self.broken(left, step.address)
            yield from self.at_the_right(right, sign, step.register)
        if step.also:
            also = _("also called {names}").format(names=", ".join(step.also))
            for line in self.paragraph(also, INDENT * 2, INDENT):
                yield self.ink(line, "quiet")

    def at_the_right(self, axes: str, sign: str, register: str | None) -> Iterator[str]:
        """Axes and register on their own line, or on two if they do not fit."""
        room = self.width - width_of(f"{axes}   {sign}".rstrip())
        if sign and room >= 0:
            yield " " * room + self.ink(axes, "quiet") + "   " + self.ink(sign, register)
            return
        for text, kind in ((axes, "quiet"), (sign, register)):
            if text:
                yield " " * (self.width - width_of(text)) + self.ink(text, kind)

    def broken(self, left: str, address: str) -> Iterator[str]:
        """A header that is too wide for one line."""
        lines = list(self.paragraph(left, INDENT, ""))
        yield lines[0].replace(address, self.ink(address, "strong"), 1)
        yield from lines[1:]

    def given(self, weights: Iterable[parts.NumberTable]) -> Iterator[str]:
        """The weights of a step: those that a word describes on one line, then the tables."""
        if said := [f"{weight.title} = {weight.word}" for weight in weights if weight.word]:
            text = _("with {what}").format(what=", ".join(said))
            for line in self.paragraph(text, INDENT * 2, INDENT):
                yield self.ink(line, "quiet")
        for weight in weights:
            if not weight.word:
                yield from self.weight(weight)

    def weight(self, table: parts.NumberTable) -> Iterator[str]:
        """The numbers of a weight; for a printed weight, its printed decimals."""
        lead = INDENT + _("with {what}").format(what=f"{table.title} =") + " "
        fitted = fit(as_printed(table), self.width - width_of(lead), Ink(), signs=False)
        for place, line in enumerate(fitted.lines):
            text = (lead if place == 0 else " " * width_of(lead)) + line
            yield self.ink(text.rstrip(), "quiet")

    def table(self, table: parts.NumberTable, step: parts.StepPart) -> Iterator[str]:
        """A table of a step, in the richest manner that fits."""
        if table.title:
            yield self.ink(INDENT + table.title, "quiet")
        fitted = fit(table, self.width - len(INDENT), self.ink)
        for line in fitted.lines:
            yield (INDENT + line).rstrip()
        if fitted.brief and self.brief is None:
            self.brief = step.address
            yield from self.hint(step, table)
        if table.left_out:
            text = _("left out: {what}").format(what=table.left_out)
            yield self.ink(f"{INDENT}… {text}", "quiet")

    def hint(self, step: parts.StepPart, table: parts.NumberTable) -> Iterator[str]:
        """A hint where to see the forms that did not fit, once."""
        before = 1 if step.axes[0] in ("head", "kv_head", "expert") else 0
        index = [0] * len(step.axes)
        index[before] = table.rows[-1].place
        address = f"{step.address}[{','.join(map(str, index))}]"
        text = _("≈ decimals, proven; the form of each is shown by --at '{address}'")
        for line in self.paragraph(text.format(address=address), INDENT):
            yield self.ink(line, "quiet")

    def letters(self, part: parts.Loss | parts.WorkingLine) -> Iterator[str]:
        """The definitions of the shown letters that have not been defined yet."""
        for letter in part.letters:
            if letter.name not in self.told:
                self.told.add(letter.name)
                yield from self.letter(letter)

    def letter(self, letter: parts.Letter) -> Iterator[str]:
        """What a letter stands for."""
        definition = write(letter.definition)
        if len(definition) > LONGEST_DEFINITION:
            definition = _("a sum of {count} signs").format(count=len(definition))
        text = f"{definition} ≈ {letter.decimal}"
        lead = INDENT + _("where {name} =").format(name=letter.name) + " "
        yield from self.paragraph(text, " " * len(lead), lead)

    def remark(self, remark: parts.Remark) -> Iterator[str]:
        """A sentence at a step, after the sign of its kind."""
        sign = MARKS.get(remark.kind, "")
        indent = INDENT + "  " * bool(sign)
        for line in self.paragraph(remark.text, indent, f"{INDENT}{sign} " if sign else INDENT):
            yield self.ink(line, INKS.get(remark.kind, remark.kind))

    def left_out(self, part: parts.LeftOut) -> Iterator[str]:
        """What is left out, and how to see it."""
        return self.remark(parts.Remark("more", f"{part.text} {part.command}".rstrip()))

    def not_worked(self, part: parts.NotWorked) -> Iterator[str]:
        """Steps without values, and why."""
        if part.reason:
            yield ""
            yield from self.paragraph(part.reason)
        for step in part.steps:
            left = f"{INDENT}{step.address} = {words.formula_text(step.formula, step.address)}"
            right = words.axes_text(step.axes, step.shape)
            room = self.width - width_of(left) - width_of(right)
            if room >= 2:
                yield f"{left}{' ' * room}{self.ink(right, 'quiet')}"
            else:
                yield from self.paragraph(left.strip(), INDENT * 2, INDENT)
                yield " " * (self.width - width_of(right)) + self.ink(right, "quiet")

    # ------------------------------------------------------------------ the end of the spine

    def predictions(self, part: parts.Predictions) -> Iterator[str]:
        """What comes next after each position."""
        yield ""
        yield from self.header(part.step)
        room = max((width_of(p.label) for p in part.predictions), default=0)
        also = max((width_of(p.token or "?") for p in part.predictions), default=0)
        for found in part.predictions:
            token = padded(found.token or "?", also)
            lead = f"{INDENT}{padded(found.label, room)}  →  {token}   "
            yield from self.paragraph(verdict(found), " " * width_of(lead), lead)

    def choice(self, part: parts.Choice) -> Iterator[str]:
        """Position, token, probability and verdict, on one line if they fit; then the form.

        Proven digits that do not fit beside the verdict stand below it.
        """
        lead = INDENT + part.position.rjust(part.room) + INDENT
        below = " " * len(lead)
        shown, said = _beside(part.cell), self.ink(part.known, "exact" if part.proven else None)
        line = lead + padded(part.token, TOKEN) + INDENT + shown
        used = width_of(line) + (len(INDENT) + width_of(part.known) if part.known else 0)
        form = "" if part.cell.form is None else f"{INDENT}= {write(part.cell.form)}"
        if used <= self.width:
            fits = form and used + width_of(form) <= self.width
            yield f"{line}{INDENT}{said}{self.ink(form, 'quiet') if fits else ''}".rstrip()
        elif part.cell.form is None and part.proven:
            yield f"{lead}{padded(part.token, TOKEN)}{INDENT}{said}".rstrip()
            yield from self.paragraph(shown, below + INDENT, below)
        else:
            yield line.rstrip()
            for piece in self.paragraph(part.known, below + INDENT, below):
                yield self.ink(piece, "exact" if part.proven else None)

    def loss(self, part: parts.Loss) -> Iterator[str]:
        """The loss in every form."""
        yield ""
        yield from self.header(part.step)
        text = _("after position {after} the text goes on with {target}")
        yield from self.paragraph(text.format(after=part.after, target=part.target), INDENT)
        yield from self.equation(part.cell)
        yield from self.letters(part)

    def equation(self, cell: parts.Cell, lead: str = "") -> Iterator[str]:
        """A number, one form on each line."""
        for sign, text in forms_of(cell):
            yield from self.paragraph(text, INDENT * 3, f"{INDENT}{lead}{sign} ")

    def working(self, part: parts.WorkingLine) -> Iterator[str]:
        """The working of one number, one form on each line."""
        yield ""
        head = self.ink(part.address, "strong")
        sign = register_sign(part.cell.register)
        end = self.ink(sign, part.cell.register)
        room = self.width - width_of(part.address) - width_of(sign)
        if sign and room >= 2:
            yield head + " " * room + end
        else:
            yield head
            yield from [" " * (self.width - width_of(sign)) + end] * bool(sign)
        before = ""
        for sign, tree in (("=", part.symbols), ("≈" if part.decimals else "=", part.values)):
            text = "" if tree is None else write(tree)
            if text and text != before:
                yield from self.paragraph(text, INDENT * 2, f"{INDENT}{sign} ")
            before = text
        for sign, text in () if part.missing else forms_of(part.cell, worked=False):
            if text != before:
                yield from self.paragraph(text, INDENT * 2, f"{INDENT}{sign} " if sign else INDENT)
        said = [f"{name} = {address}" for name, address in part.sources if name != address]
        if said:
            text = _("where {names}").format(names=", ".join(said))
            for line in self.paragraph(text, INDENT * 2, INDENT):
                yield self.ink(line, "quiet")
        yield from self.letters(part)
        for remark in part.remarks:
            yield from self.remark(remark)


def _verdicts(terminal: Terminal, part: Any) -> Iterator[str]:
    """A report or a class, drawn by a module that is imported only for markings."""
    from byhand.document.media.terminal import verdicts

    return verdicts.lines(part, terminal.width, terminal.ink)


def _explained(terminal: Terminal, part: Any) -> Iterator[str]:
    """A part of an explanation, drawn by a module that is imported only for explanations."""
    from byhand.document.media.terminal import explanation

    return explanation.lines(terminal, part)


def _proven(terminal: Terminal, part: Any) -> Iterator[str]:
    """A part of a proof, drawn by a module that is imported only for proofs."""
    from byhand.document.media.terminal import proofs

    return proofs.lines(terminal, part)


Terminal.drawn = {
    "Title": Terminal.title,
    "Stage": Terminal.stage,
    "StepPart": Terminal.step,
    "NotWorked": Terminal.not_worked,
    "Predictions": Terminal.predictions,
    "Choice": Terminal.choice,
    "Loss": Terminal.loss,
    "WorkingLine": Terminal.working,
    "Remark": Terminal.remark,
    "Grid": Terminal.grid,
    "Finding": Terminal.finding,
    "Facts": Terminal.facts,
    "LeftOut": Terminal.left_out,
    **dict.fromkeys(("VerdictReport", "ClassTable"), _verdicts),
    **dict.fromkeys(("Section", "Terms", "LensTable", "NumberTable", "Drawing"), _explained),
    **dict.fromkeys(("Answer", "DomainPicture", "CaseTable", "CaseTree"), _proven),
}


def verdict(found: parts.Prediction) -> str:
    """Whether the next token is proven, tied or undecided, in words."""
    if found.token is None:
        return words.undecided(found.candidates)
    proof = _("proven") if found.proven else _("not proven")
    if found.tied:
        text = _("{tokens} tie; the lowest id is taken, {proof}")
        return text.format(tokens=words.some_of(found.tied), proof=proof)
    if found.margin is None:
        return proof
    return _("ahead by {margin}, {proof}").format(margin=one_line(found.margin), proof=proof)


def _beside(cell: parts.Cell) -> str:
    """The decimals, padded to one column."""
    if cell.radius is not None:
        return f"  {cell.decimal} ± {cell.radius}"
    sign = "  " if cell.register == "rounded" else "= " if decimal_alone(cell) else "≈ "
    return sign + (cell.decimal or "")
