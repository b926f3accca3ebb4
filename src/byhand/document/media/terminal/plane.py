"""The plane in characters: a small drawing for the terminal that needs no colour.

Scattered letters show which token wins there.  A line of dots is the path of a position from its
embedding (o) past its stops (+) to its end (@), which is labelled with its prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from byhand.document.media.outlines import tick, within
from byhand.document.numerals import decimal
from byhand.document.parts.drawn import Drawing, Spot, Way, WonRegion
from byhand.document.words import together
from byhand.language import _

WIDEST_DRAWN = 2  # largest dimension that characters can show
WIDE, SMALL, NARROW = 64, 44, 20  # signs across: in full, in short, at least
BESIDE = 14  # signs beside a plane
SQUARE = 0.5  # width of a character, in heights
BETWEEN = (6, 3)  # columns and lines between the letters of a region
MOST_PATHS = 6
MARGIN = 5  # columns for the numbers at the left; longer ones have an exponent


def drawn(part: Drawing, width: int) -> list[str]:
    """The lines of a drawing for a terminal of a width; none of a stream of more dimensions."""
    if part.dimensions > WIDEST_DRAWN:
        return []
    return list(_plane(part, max(min(SMALL if part.small else WIDE, width - BESIDE), NARROW)))


def signs() -> str:
    """The meaning of the signs; lines break only between them."""
    told = _("o embedding   + after a step   @ the end   letters: who wins there")
    return "   ".join(map(together, told.split("   ")))


class _Sheet:
    """Lines of characters; each is written once, and the first one stays."""

    def __init__(self, part: Drawing, wide: int) -> None:
        across, up = part.size
        self.wide = wide
        self.high = max(6, round(wide * SQUARE * (up / across)))
        self.left, self.top = part.lower[0], part.upper[1]
        self.step = (across / wide, up / self.high)
        self.signs: dict[tuple[int, int], str] = {}

    def cell(self, at: Spot) -> tuple[int, int]:
        across, up = self.step
        return int((at[0] - self.left) / across // 1), int((self.top - at[1]) / up // 1)

    def centre(self, column: int, row: int) -> Spot:
        across, up = self.step
        return self.left + (column + 0.5) * across, self.top - (row + 0.5) * up

    def put(self, cell: tuple[int, int], sign: str) -> None:
        if 0 <= cell[0] < self.wide and 0 <= cell[1] < self.high:
            self.signs.setdefault(cell, sign)

    def write(self, cell: tuple[int, int], text: str) -> bool:
        """Writes a word right or left of a cell, or a line up or down, where there is room."""
        column, row = cell
        for down in (0, -1, 1, -2, 2):
            for start in (column + 2, column - 1 - len(text), column - len(text) // 2):
                cells = [(start + i, row + down) for i in range(-1, len(text) + 1)]
                inside = (
                    start >= 0 and start + len(text) <= self.wide and 0 <= row + down < self.high
                )
                if inside and not any(each in self.signs for each in cells):
                    for i, sign in enumerate(text):
                        self.put((start + i, row + down), sign)
                    return True
        return False

    def lines(self) -> Iterator[str]:
        for row in range(self.high):
            yield "".join(self.signs.get((column, row), " ") for column in range(self.wide))


def _plane(part: Drawing, wide: int) -> Iterator[str]:
    unit = tick(max(part.size))
    bottom, top = part.lower[1], part.upper[1]
    heights = [k * unit for k in range(-20, 21) if bottom <= k * unit <= top]
    margin = max(MARGIN, *(len(_label(height, unit)) for height in heights))
    sheet = _Sheet(part, wide - (margin - MARGIN))
    _ways(part, sheet)
    _regions(part, sheet)
    _axes(sheet)
    rows = {sheet.cell((sheet.left, height))[1]: height for height in heights}
    across, up = part.axes
    before = " " * (margin + 1)
    yield f"{before} {up}"
    yield f"{before}┌" + "─" * sheet.wide + "┐"
    for row, line in enumerate(sheet.lines()):
        number = _label(rows[row], unit) if row in rows else ""
        yield f"{number:>{margin}} {'┤' if number else '│'}{line}│"
    yield f"{before}└" + "".join(_border(sheet, unit)) + "┘"
    yield f"{before} " + "".join(_numbers(sheet, unit)).rstrip()
    yield " " * (margin + 2 + max(0, sheet.wide - len(across))) + across


def _label(number: float, unit: float) -> str:
    """A number at an axis; with an exponent if it would not fit."""
    text = decimal(number, unit)
    if len(text) <= MARGIN:
        return text
    mantissa, _e, exponent = f"{number:.1e}".partition("e")
    text = f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    return text.replace("-", "−").replace(".", _("."))


def _ways(part: Drawing, sheet: _Sheet) -> None:
    ways = [(way, [place for _kind, place in way.stops]) for way in part.ways[-MOST_PATHS:]]
    for way, points in ways:
        cells = [sheet.cell(point) for point in points]
        if cells and way.whole:
            sheet.put(cells[-1], "@")
        if cells:
            sheet.put(cells[0], "o")
        for cell in cells[1:-1]:
            sheet.put(cell, "+")
    for _way, points in ways:
        for one, two in pairwise(points):
            for cell in _between(sheet.cell(one), sheet.cell(two)):
                sheet.put(cell, "·")
    for way, points in ways:
        if points and way.whole:
            sheet.write(sheet.cell(points[-1]), _name(way) + way.end)
    for way, points in ways:
        if points:
            sheet.write(sheet.cell(points[0]), _name(way))


def _name(way: Way) -> str:
    return way.token + str(way.position).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _between(one: tuple[int, int], two: tuple[int, int]) -> Iterator[tuple[int, int]]:
    count = max(abs(two[0] - one[0]), abs(two[1] - one[1]))
    for i in range(1, count):
        yield (
            round(one[0] + (two[0] - one[0]) * i / count),
            round(one[1] + (two[1] - one[1]) * i / count),
        )


def _regions(part: Drawing, sheet: _Sheet) -> None:
    """A letter of the winning token every few signs, in staggered rows; over nothing else."""
    if not part.regions:
        return
    across, down = BETWEEN
    for row in range(1, sheet.high, down):
        for column in range(2 + (row // down % 2) * (across // 2), sheet.wide, across):
            around = [(column + k, row) for k in (-1, 0, 1)]
            if any(cell in sheet.signs for cell in around):
                continue
            at = sheet.centre(column, row)
            for region in part.regions:
                if _inside(at, region):
                    sheet.put((column, row), region.name[:1])
    _edges(sheet, part.regions)


def _inside(at: Spot, region: WonRegion) -> int:
    return sum(within(at, line) for line in region.outlines) % 2


def _edges(sheet: _Sheet, regions: Sequence[WonRegion]) -> None:
    """A colon wherever the next sign to the right or the line below belongs to another region."""

    def winner(column: int, row: int) -> int:
        at = sheet.centre(column, row)
        return next((i for i, region in enumerate(regions) if _inside(at, region)), -1)

    won = [[winner(column, row) for column in range(sheet.wide)] for row in range(sheet.high)]
    for row in range(sheet.high):
        for column in range(sheet.wide):
            right = column + 1 < sheet.wide and won[row][column + 1] != won[row][column]
            below = row + 1 < sheet.high and won[row + 1][column] != won[row][column]
            if right or below:
                sheet.put((column, row), ":")


def _axes(sheet: _Sheet) -> None:
    """A cross at the zero vector."""
    sheet.put(sheet.cell((0.0, 0.0)), "┼")


def _places(sheet: _Sheet, unit: float) -> dict[int, float]:
    found = {sheet.cell((k * unit, sheet.top))[0]: k * unit for k in range(-20, 21)}
    return {column: number for column, number in found.items() if 0 <= column < sheet.wide}


def _border(sheet: _Sheet, unit: float) -> Iterator[str]:
    places = _places(sheet, unit)
    for column in range(sheet.wide):
        yield "┬" if column in places else "─"


def _numbers(sheet: _Sheet, unit: float) -> list[str]:
    line = [" "] * (sheet.wide + 6)
    for column, number in _places(sheet, unit).items():
        text = _label(number, unit)
        start = max(0, column - len(text) // 2)
        if not "".join(line[max(0, start - 1) : start + len(text)]).strip():
            line[start : start + len(text)] = text
    return line
