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
from byhand.document.book import Book, Passage
from byhand.document.compose.worksheet.given import inputs_beside
from byhand.document.compose.worksheet.sheet import (
    COUNTS,
    SHAPES,
    Blank,
    Questioning,
    kind_of,
    numbers_in,
)
from byhand.document.parts import Number, NumberRow, NumberTable
from byhand.plan import Plan

PAGES = ("tokens", "attention", "block", "next", "losses", "backward", "step")
GIVEN = ("tokens", "target", "targets", "next")  # steps that hold ids
LONGEST_ROW = 8  # entries
SHARES = {COUNTS: 5, SHAPES: 8}  # one line in so many asks for a count, or a side of a shape
BY_HAND = ("add", "activate", "softmax")  # operations asked for in a larger model

Lines = Mapping[str, Sequence[Blank]]
T = TypeVar("T")


def lines_to_ask(book: Book, plan: Plan, *, everything: bool) -> Lines:
    """The lines that may be asked for in each passage, by its id; each number once."""
    found: dict[str, tuple[Blank, ...]] = {}
    seen: set[str] = set()
    pages = [page for page in book.pages if page.slug in PAGES]
    shown = {number.address for page in pages for number in numbers_in(page.passages)}

    def fits(blank: Blank) -> bool:
        inputs = {a for place in blank.places for a in inputs_beside(place, plan)}
        return not seen & set(blank.places) and (everything or inputs <= shown)

    for passage in (passage for page in pages for passage in page.passages):
        lines = [blank for blank in _of(passage, plan, everything) if fits(blank)]
        seen.update(place for blank in lines for place in blank.places)
        if lines:
            found[passage.id] = tuple(lines)
    return found


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


def _of(passage: Passage, plan: Plan, everything: bool) -> Iterator[Blank]:
    for part in passage.show:
        if not isinstance(part, NumberTable) or part.kind != "step":
            continue
        step = plan[read_address(part.address).name]
        if step.address in GIVEN or (not everything and not _by_hand(step.op, step.shape)):
            continue
        for row in part.rows:
            yield from _lines(row, part)


def _by_hand(op: str, shape: tuple[int, ...]) -> bool:
    return op in BY_HAND and (op != "softmax" or shape[-1] <= LONGEST_ROW)


def _lines(row: NumberRow, table: NumberTable) -> Iterator[Blank]:
    """The row as one line; entry by entry if it is long, or not fully shown."""
    shown = [number for number in row.numbers if number.address and not number.cell.masked]
    if any(number.cell.decimal is None for number in shown) or not shown:
        return
    full = len(row.numbers) == (table.shape[-1] if table.axes[-1] != "pos" else 1)
    if len(shown) > 1 and full and len(shown) <= LONGEST_ROW and _side_by_side(shown):
        yield _blank(_row_address(shown, len(row.numbers)), shown)
    elif len(shown) > 1 or table.axes[-1] != "key":  # a single key has weight 1
        for number in shown:
            yield _blank(number.address, [number], row=False)


def _blank(address: str, numbers: Sequence[Number], row: bool = True) -> Blank:
    answers = tuple(number.cell.decimal or "" for number in numbers)
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
