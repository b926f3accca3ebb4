"""The sheet with a printed working in which one line is wrong, to be found and put right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from byhand.address import read_address
from byhand.document.book import Book, Page
from byhand.document.compose.worksheet.blanks import lines_to_ask
from byhand.document.compose.worksheet.draft import Draft
from byhand.document.compose.worksheet.given import given_lines, printed_texts
from byhand.document.compose.worksheet.levels import in_level
from byhand.document.compose.worksheet.printed import told_elsewhere
from byhand.document.compose.worksheet.sheet import (
    CORRECTION,
    NUMBER_OF_LINE,
    VALUES,
    Blank,
    Given,
    Planted,
    Questioning,
    Worksheet,
)
from byhand.document.parts import NumberTable
from byhand.language import _
from byhand.tracing import Trace


def lines_in(book: Book, trace: Trace, asking: Questioning) -> list[Blank]:
    """The lines of the working, in the order in which they are printed."""
    lines = lines_to_ask(book, trace.plan, everything=True)
    every = (blank for blanks in lines.values() for blank in blanks)
    return [blank for blank in every if in_level(blank, asking.level, trace.plan)]


def correction_sheet(
    trace: Trace,
    book: Book,
    asking: Questioning,
    right: Blank,
    *,
    decimals: int,
    called: str,
    workings: Book,
) -> Worksheet | None:
    """The sheet of a trace with a wrong line, or None if it prints what the line should say.

    `right` is that line with its right answers, and `workings` the book without the mistake.
    """
    lines = lines_in(book, trace, asking)
    draft = Draft(trace, book, asking, decimals, {}, (), ())
    pages = tuple(draft.pages(lines))
    if told_elsewhere([right], pages, (), {}, None):
        return None
    place = next(at for at, line in enumerate(lines, 1) if line.address == right.address)
    numbers = {line.places[0]: at for at, line in enumerate(lines, 1)}
    blanks = (
        Blank(NUMBER_OF_LINE, VALUES, (NUMBER_OF_LINE,), (str(place),), row=False),
        Blank(CORRECTION, VALUES, (CORRECTION,), (_listed(right.answers),), row=False),
    )
    texts = printed_texts(pages, lines, exact=False)
    op = trace.plan[read_address(right.places[0]).name].op
    return Worksheet(
        book=replace(
            book,
            pages=tuple(_numbered(page, numbers) for page in pages),
            spine=replace(
                book.spine, nodes=tuple(replace(node, rows=()) for node in book.spine.nodes)
            ),
        ),
        workings=workings,
        blanks=blanks,
        questions=(),
        text=trace.text,
        target=None if trace.target is None else trace.answer(trace.target),
        decimals=decimals,
        seed=asking.seed,
        given=given_lines(trace, lines, texts, everything=True),
        called=called,
        level=asking.level,
        planted=Planted(
            tuple(map(_as_given, lines)), place, right.answers, right.address, right.places, op
        ),
    )


def _as_given(line: Blank) -> Given:
    said = f"[{', '.join(line.answers)}]" if line.row else line.answers[0]
    return Given(line.address, said)


def _listed(answers: Sequence[str]) -> str:
    """Several numbers as they are typed into one field."""
    return "; ".join(answers)


def _numbered(page: Page, numbers: Mapping[str, int]) -> Page:
    """The page with the number of each line of the working before its row."""
    passages = tuple(
        replace(
            passage,
            show=tuple(
                _with_numbers(part, numbers) if isinstance(part, NumberTable) else part
                for part in passage.show
            ),
        )
        for passage in page.passages
    )
    return replace(page, passages=passages)


def _with_numbers(table: NumberTable, numbers: Mapping[str, int]) -> NumberTable:
    rows = []
    for row in table.rows:
        found = next((numbers[n.address] for n in row.numbers if n.address in numbers), None)
        said = row.label if found is None else _("line {number}").format(number=found)
        rows.append(replace(row, label=said))
    return replace(table, rows=tuple(rows))
