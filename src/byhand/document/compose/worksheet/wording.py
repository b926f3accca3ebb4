"""The words of a worksheet: title, instructions, axes; and the workings of its key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from byhand.document.book import Passage
from byhand.document.compose.worksheet.questions import axes_hidden
from byhand.document.compose.worksheet.sheet import (
    BLOCK,
    MISTAKE,
    PASS,
    ROW,
    Worksheet,
    numbers_in,
)
from byhand.document.numerals import localised
from byhand.document.parts import NumberTable, WorkingLine
from byhand.document.words import axes_text
from byhand.expression import Number, write
from byhand.language import _

MOST_ROOM = 12  # lines of paper below a passage
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
        if sheet.level in (ROW, BLOCK, PASS, MISTAKE):
            yield _("Only the last position is followed; its row is worked out line by line.")
        yield from self._how_to_round()
        if sheet.rule is not None:
            yield _(
                "The loss is the mean over the positions that have a target. One step of gradient "
                "descent: the new weight is the old one less {rate} times its gradient."
            ).format(rate=write(Number(sheet.rule.rate)))
        if self.key:
            return
        if sheet.planted is not None:
            yield _("The line is worth one mark, and its right numbers one more.")
        else:
            yield _(
                "Each line is worth one mark. A mistake costs its own line alone: lines that go on "
                "correctly from your own numbers are right."
            )
        yield _("Then `{command}` marks what you wrote.").format(command=sheet.command)

    def _how_to_round(self) -> Iterator[str]:
        """What is to be written, and with how many decimals."""
        sheet = self.sheet
        if sheet.planted is not None:
            yield _(
                "One line of this working is wrong. The lines below go on from it and are right."
            )
            if not self.key:
                yield _("Find the line, and write what it should say.")
        elif sheet.exact:
            if not self.key:
                yield _("Write exact numbers, such as 1/2, √2 or e²/(1 + e²): nothing is rounded.")
            return
        elif not self.key and sheet.decimals is None:
            yield _("Fill in the blanks.")
        if sheet.decimals is None:
            return
        if self.key or sheet.planted is not None:
            text = _("Every line is rounded to {count} decimals, half away from zero.")
        else:
            text = _(
                "Fill in the blanks. Round every line to {count} decimals, half away from zero, "
                "and go on with the rounded numbers."
            )
        yield text.format(count=sheet.decimals)

    def asks(self, address: str) -> bool:
        """Whether a number is blank, or in the key its answer."""
        return address in self.sheet.answers

    def answer(self, address: str) -> str | None:
        """What belongs into a blank, as the language writes it; None where it is to be found."""
        return localised(self.sheet.answers[address]) if self.key else None

    def room(self, passage: Passage) -> int:
        """How many lines of paper a student needs to work out the blanks of a passage."""
        if self.key or self.sheet.planted is not None:
            return 0
        here = {number.address for number in numbers_in([passage])}
        numbers = sum(len(b.places) for b in self.sheet.blanks if b.places[0] in here)
        return min(numbers, MOST_ROOM)

    @property
    def correction(self) -> tuple[str, str] | None:
        """What is asked about a printed working: the words before its two fields."""
        if self.sheet.planted is None:
            return None
        return _("The number of the wrong line:"), _("The line should say:")

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
        planted = self.sheet.planted
        asked = [blank.places for blank in self.sheet.blanks] + (
            [planted.places] if planted else []
        )
        for places in asked:
            if places[0] not in here:
                continue
            found = (known[place].working for place in places if place in known)
            lines = [line for line in found if line is not None][:MOST_WORKINGS]
            yield from lines[:1]
            yield from (replace(line, symbols=None, sources=()) for line in lines[1:])
