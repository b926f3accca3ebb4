"""The words of a worksheet: title, instructions, axes; and the workings of its key."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from byhand.document.book import Passage
from byhand.document.compose.worksheet.questions import axes_hidden
from byhand.document.compose.worksheet.sheet import Size, Worksheet, numbers_in
from byhand.document.parts import Number, NumberTable
from byhand.document.words import axes_text
from byhand.language import _

MOST_WORKINGS = 4  # workings of one line; the others are similar


def heading(sheet: Worksheet, key: bool) -> str:
    """The title of a sheet, or of its key."""
    if key:
        return _("{model}: key to the worksheet").format(model=sheet.book.model)
    return _("{model}: worksheet").format(model=sheet.book.model)


def instructions(sheet: Worksheet, key: bool) -> Iterator[str]:
    """How to fill in the sheet; for the key, how it was made."""
    yield _("The text is `{text}`.").format(text=sheet.text)
    if sheet.decimals is not None:
        if key:
            yield _("Every line is rounded to {count} decimals, half away from zero.").format(
                count=sheet.decimals
            )
        else:
            yield _(
                "Fill in the blanks. Round every line to {count} decimals, half away from zero, "
                "and go on with the rounded numbers."
            ).format(count=sheet.decimals)
    elif not key:
        yield _("Fill in the blanks.")
    if not key:
        yield _(
            "Each line is worth one mark; a line that follows from your own lines above is right."
        )
        yield _("Then `{command}` marks what you wrote.").format(command=sheet.command)


def axes_asked(table: NumberTable, sizes: Collection[Size]) -> str:
    """The axes of a table: pos 4 × d_ff ?, where the sheet asks for the length of d_ff."""
    asked = axes_hidden(sizes)
    if not asked & set(table.axes):
        return axes_text(table.axes, table.shape)
    sides = zip(table.axes, table.shape, strict=True)
    return " × ".join(f"{axis} {'?' if axis in asked else length}" for axis, length in sides)


def workings_in(sheet: Worksheet, passage: Passage) -> Iterator[Number]:
    """The answers of a passage with a known working; of long rows the first few.

    Only the first number of a line has its working in short names: the others are similar.
    """
    here = {number.address for number in numbers_in([passage])}
    known = {number.address: number for number in numbers_in(sheet.workings.passages)}
    for blank in sheet.blanks:
        if blank.places[0] not in here:
            continue
        found = [known[place] for place in blank.places if place in known]
        found = [number for number in found if number.working is not None][:MOST_WORKINGS]
        yield from found[:1]
        for number in found[1:]:
            assert number.working is not None
            yield replace(number, working=replace(number.working, symbols=None, sources=()))
