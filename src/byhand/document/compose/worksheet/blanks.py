"""The blank lines of a worksheet: spread over its passages, and reproducible by seed.

A short row that is fully shown is asked for as a whole, otherwise single entries are.  For a model
too large to work by hand, only results of few shown numbers are asked for: a sum, an activation, a
short softmax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TypeVar

from byhand.address import read_address
from byhand.document.book import Book, Page, Passage
from byhand.document.compose.worksheet.given import exact_text, inputs_beside
from byhand.document.compose.worksheet.sheet import (
    COUNTS,
    SHAPES,
    Blank,
    Questioning,
    kind_of,
    numbers_in,
)
from byhand.document.parts import Cell, Number, NumberRow, NumberTable
from byhand.plan import WEIGHT, Plan

PAGES = ("tokens", "attention", "block", "next", "losses", "backward", "step")
GIVEN = ("tokens", "target", "targets", "next")  # steps that hold ids
LONGEST_ROW = 8  # entries
LONGEST_FORM = 20  # characters of an exact number that is asked for
SHARES = {COUNTS: 5, SHAPES: 8}  # one line in so many asks for a count, or a side of a shape
BY_HAND = ("add", "activate", "softmax")  # operations asked for in a larger model

Lines = Mapping[str, Sequence[Blank]]
T = TypeVar("T")


def lines_to_ask(book: Book, plan: Plan, *, everything: bool, exact: bool = False) -> Lines:
    """The lines that may be asked for in each passage, by its id; each number once.

    An exact line is asked for where all that it reads is exact on the sheet.
    """
    found: dict[str, tuple[Blank, ...]] = {}
    seen: set[str] = set()
    pages = [page for page in book.pages if page.slug in PAGES]
    shown = {number.address for page in pages for number in numbers_in(page.passages)}

    formless = _formless(pages, plan) if exact else set()

    def fits(blank: Blank) -> bool:
        if formless & {*plan[read_address(blank.places[0]).name].reads}:
            return False
        inputs = {a for place in blank.places for a in inputs_beside(place, plan)}
        return not seen & set(blank.places) and (everything or inputs <= shown)

    for passage in (passage for page in pages for passage in page.passages):
        lines = [blank for blank in _of(passage, plan, everything, exact) if fits(blank)]
        seen.update(place for blank in lines for place in blank.places)
        if lines:
            found[passage.id] = tuple(lines)
    return found


def _formless(pages: Sequence[Page], plan: Plan) -> set[str]:
    """The steps with a number that has no exact form on the sheet: nothing exact comes of them."""
    return {
        plan[read_address(number.address).name].address
        for page in pages
        for number in numbers_in(page.passages)
        if number.address and not number.address.startswith(WEIGHT)
        if not number.cell.masked and exact_text(number.cell) is None
    }


def choose(
    lines: Lines,
    supply: Mapping[str, Sequence[Blank]],
    asking: Questioning,
    random: Random,
    given_away_by: Callable[[Blank], Iterable[frozenset[str]]],
) -> list[Blank]:
    """The chosen lines, of the kinds asked for; other kinds replace a kind that runs out.

    `supply` are the counts and shapes that may be asked for, beside the lines of values.
    """
    count = asking.blanks
    supply = {kind: blanks if kind in asking.which else () for kind, blanks in supply.items()}
    values = {name: [b for b in own if b.kind in asking.which] for name, own in lines.items()}
    there = sum(map(len, values.values()))
    wanted = {kind: min(len(supply[kind]), count // SHARES[kind]) for kind in supply}
    if there == 0:
        sides = min(len(supply[SHAPES]), max(count // 3, count - len(supply[COUNTS])))
        wanted = {COUNTS: min(len(supply[COUNTS]), count - sides), SHAPES: sides}
    missing = count - sum(wanted.values()) - there
    for kind in supply:
        extra = min(max(missing, 0), len(supply[kind]) - wanted[kind])
        wanted[kind] += extra
        missing -= extra
    further = [blank for kind in supply for blank in random.sample(supply[kind], wanted[kind])]
    further = further[:count]
    return [*_spread(values, count - len(further), random, given_away_by), *further]


def _spread(
    lines: Lines,
    count: int,
    random: Random,
    given_away_by: Callable[[Blank], Iterable[frozenset[str]]],
) -> list[Blank]:
    """`count` lines, drawn at random from one passage after the other.

    A line that other lines give away is drawn only after those are blank.
    """
    left = {passage: _shuffled(blanks, random) for passage, blanks in lines.items()}
    chosen: list[Blank] = []
    asked: set[str] = set()
    before = -1
    while before < len(chosen) < count:
        before = len(chosen)
        for passage in _shuffled([name for name, blanks in left.items() if blanks], random):
            secret = (
                b for b in reversed(left[passage]) if all(x <= asked for x in given_away_by(b))
            )
            blank = next(secret, None) if len(chosen) < count else None
            if blank is not None:
                left[passage].remove(blank)
                chosen.append(blank)
                asked.update(blank.places)
    return chosen


def _shuffled(items: Sequence[T], random: Random) -> list[T]:
    found = list(items)
    random.shuffle(found)
    return found


def _of(passage: Passage, plan: Plan, everything: bool, exact: bool) -> Iterator[Blank]:
    for part in passage.show:
        if not isinstance(part, NumberTable) or part.kind != "step":
            continue
        step = plan[read_address(part.address).name]
        if step.address in GIVEN or (not everything and not _by_hand(step.op, step.shape)):
            continue
        for row in part.rows:
            yield from _lines(row, part, exact)


def _by_hand(op: str, shape: tuple[int, ...]) -> bool:
    return op in BY_HAND and (op != "softmax" or shape[-1] <= LONGEST_ROW)


def _lines(row: NumberRow, table: NumberTable, exact: bool) -> Iterator[Blank]:
    """The row as one line, as far as it is shown; its single numbers, if a masked one lies between.

    A row of many numbers is left as it is: nobody works it out for one mark.
    """
    shown = [number for number in row.numbers if number.address and not number.cell.masked]
    if not shown or any(_answer(number.cell, exact) is None for number in shown):
        return
    width = table.shape[-1] if table.axes[-1] != "pos" else 1
    if len(shown) > 1 and _side_by_side(shown):
        if len(shown) <= LONGEST_ROW:
            yield _blank(_row_address(shown, width), shown, exact)
    elif len(shown) > 1 or table.axes[-1] != "key":  # a single key has weight 1
        for number in shown:
            yield _blank(number.address, [number], exact, row=False)


def _answer(cell: Cell, exact: bool) -> str | None:
    """What is to be written: decimals, or the exact form where it is short."""
    if not exact:
        return cell.decimal
    text = exact_text(cell)
    return text if text is not None and len(text) <= LONGEST_FORM else None


def _blank(address: str, numbers: Sequence[Number], exact: bool, row: bool = True) -> Blank:
    answers = tuple(_answer(number.cell, exact) or "" for number in numbers)
    return Blank(address, kind_of(address), tuple(n.address for n in numbers), answers, row)


def _side_by_side(shown: Sequence[Number]) -> bool:
    """Whether no masked entry lies between them, so that one address names all."""
    return _place(shown[-1]) - _place(shown[0]) == len(shown) - 1


def _place(number: Number) -> int:
    """The index of a number in its row."""
    place = read_address(number.address).index[-1]
    assert isinstance(place, int)
    return place


def _row_address(shown: Sequence[Number], length: int) -> str:
    """x[3]; for a partly masked row, x[0,1,:2] or x[0,1,1:3]; for the only row, x."""
    name, _bracket, index = shown[0].address.rstrip("]").partition("[")
    row = index.rpartition(",")[0]
    start = _place(shown[0])
    cut = f"{start or ''}:{start + len(shown)}" if len(shown) < length else ""
    inside = ",".join(filter(None, (row, cut)))
    return f"{name}[{inside}]" if inside else name
