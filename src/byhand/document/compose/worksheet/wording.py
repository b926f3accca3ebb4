"""The words of a worksheet: title, instructions, axes; and the workings of its key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from byhand.document.book import Passage
from byhand.document.compose.worksheet.questions import axes_hidden
from byhand.document.compose.worksheet.sheet import Worksheet, numbers_in
from byhand.document.numerals import localised
from byhand.document.parts import NumberTable, WorkingLine
from byhand.document.words import axes_text
from byhand.expression import Number, write
from byhand.language import _

MOST_WORKINGS = 4  # workings of one line; the others are similar


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a worksheet: to be filled in, or the key with its answers and workings."""

    sheet: Worksheet
    key: bool = False

    @property
    def title(self) -> str:
        """The title of the sheet, or of its key."""
        text = _("{model}: key to the worksheet") if self.key else _("{model}: worksheet")
        return text.format(model=self.sheet.book.model)

    @property
    def instructions(self) -> Iterator[str]:
        """How to fill it in; of the key, how it was made."""
        sheet = self.sheet
        yield _("The text is `{text}`.").format(text=sheet.text)
        if sheet.decimals is not None:
            text = _(
                "Fill in the blanks. Round every line to {count} decimals, half away from zero, "
                "and go on with the rounded numbers."
            )
            if self.key:
                text = _("Every line is rounded to {count} decimals, half away from zero.")
            yield text.format(count=sheet.decimals)
        elif not self.key:
            yield _("Fill in the blanks.")
        if sheet.rule is not None:
            yield _(
                "The loss is the mean over the positions that have a target. One step of gradient "
                "descent: the new weight is the old one less {rate} times its gradient."
            ).format(rate=write(Number(sheet.rule.rate)))
        if not self.key:
            yield _(
                "Each line is worth one mark; a line that follows from your own lines above is"
                " right."
            )
            yield _("Then `{command}` marks what you wrote.").format(command=sheet.command)

    def asks(self, address: str) -> bool:
        """Whether a number is blank, or in the key its answer."""
        return address in self.sheet.answers

    def answer(self, address: str) -> str | None:
        """What belongs into a blank, as the language writes it; None where it is to be found."""
        return localised(self.sheet.answers[address]) if self.key else None

    def axes(self, table: NumberTable) -> str:
        """The axes of a table: pos 4 × d_ff ?, where the length of d_ff is to be found."""
        asked = frozenset() if self.key else axes_hidden(self.sheet.sizes)
        if not asked & set(table.axes):
            return axes_text(table.axes, table.shape)
        sides = zip(table.axes, table.shape, strict=True)
        return " × ".join(f"{axis} {'?' if axis in asked else length}" for axis, length in sides)

    def workings(self, passage: Passage) -> Iterator[WorkingLine]:
        """In the key, how the answers of a passage come about; of long rows the first few.

        What a line says in short names is said of its first number: the others go the same way.
        """
        if not self.key:
            return
        here = {number.address for number in numbers_in([passage])}
        known = {number.address: number for number in numbers_in(self.sheet.workings.passages)}
        for blank in self.sheet.blanks:
            if blank.places[0] not in here:
                continue
            found = (known[place].working for place in blank.places if place in known)
            lines = [line for line in found if line is not None][:MOST_WORKINGS]
            yield from lines[:1]
            yield from (replace(line, symbols=None, sources=()) for line in lines[1:])
