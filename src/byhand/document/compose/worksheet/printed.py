"""What a sheet prints, number by number: a blank whose answer stands there is no question.

An answer is printed where its numbers stand side by side in a row of a table, in this order; the
answer that is a single number, wherever that number stands.  A word is printed where it is said to
come next.  Numbers are compared by their values: 0.2 of a weight is 0.200 of a line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from byhand.document.book import Page
from byhand.document.compose.worksheet.sheet import COUNTS, SHAPES, Blank, Questions, numbers_in
from byhand.document.parts import Cell, NumberTable
from byhand.expression import write

Said = Fraction | str | None  # a number, one in a named form or a word; None: nothing is said
_NUMBER = re.compile(r"(?<![\w.,])[-−]?\d+(?:[.,]\d+)?(?![\w,.]*\d)")


def told_elsewhere(
    blanks: Sequence[Blank],
    pages: Iterable[Page],
    questions: Iterable[Questions],
    tokens: Mapping[str, str],
    target: str | None,
) -> set[str]:
    """The addresses of the blanks whose answers are printed on the sheet."""
    asked = {place for blank in blanks for place in blank.places}
    kept = tuple(pages)
    rows = list(_rows(kept, asked))
    rows += [(number,) for page in kept for number in _sentences(page)]
    apart = {number for row in rows for number in row if number is not None}
    details = {number for each in questions for line in each.lines for number in _in(line.detail)}
    words = {target} | {tokens[place] for place in _predictions(kept, tokens) - asked}
    found = set()
    for blank in blanks:
        said = tuple(map(value_of, blank.answers))
        if blank.kind == SHAPES:
            continue  # `hidden` keeps sizes from being told
        if blank.address in tokens:
            told = blank.answers[0] in words
        elif len(said) == 1:
            told = said[0] in apart or (blank.kind == COUNTS and said[0] in details)
        else:
            told = any(_inside(said, row) for row in rows)
        if told:
            found.add(blank.address)
    return found


def value_of(text: str) -> Said:
    """The value of a written number, or the text of any other form.

    >>> value_of("0.200") == value_of("1/5"), value_of("e/2")
    (True, 'e/2')
    """
    try:
        return Fraction(text.replace("−", "-"))
    except (ValueError, ZeroDivisionError):
        return text


def _rows(pages: Iterable[Page], asked: Collection[str]) -> Iterator[tuple[Said, ...]]:
    """The numbers of every row of every table, with None where nothing is printed."""
    for page in pages:
        for passage in page.passages:
            for table in passage.show:
                if isinstance(table, NumberTable):
                    for row in table.rows:
                        yield tuple(
                            None if n.address in asked else _said(n.cell) for n in row.numbers
                        )


def _said(cell: Cell) -> Said:
    if cell.masked:
        return None
    if cell.form is not None and (cell.decimal is None or cell.plain):
        return value_of(write(cell.form))
    return None if cell.decimal is None else value_of(cell.decimal)


def _sentences(page: Page) -> Iterator[Said]:
    for passage in page.passages:
        for sentence in passage.sentences:
            yield from _in(re.sub(r"`[^`]*`", "", sentence))


def _in(text: str) -> Iterator[Said]:
    for number in _NUMBER.findall(text):
        yield value_of(number.replace(",", "."))


def _predictions(pages: Iterable[Page], tokens: Collection[str]) -> set[str]:
    """The addresses of the predictions that tables show."""
    passages = (passage for page in pages for passage in page.passages)
    return {number.address for number in numbers_in(passages)} & set(tokens)


def _inside(said: tuple[Said, ...], row: tuple[Said, ...]) -> bool:
    """Whether the numbers stand side by side in the row."""
    width = len(said)
    return any(row[at : at + width] == said for at in range(len(row) - width + 1))
