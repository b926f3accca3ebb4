"""The matrix as a table: one row for each kind of bug, one column for each family.

3e4 ✓✓     the effect in units of the bound; step named, cause named 3e4 ✓–     the step was named,
the cause was not 0.4 N 31   rounding may explain it; but it is 31 times what rounding usually does
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.planted.bugs import BUGS
from benchmarks.planted.bugs.catalogue import FAMILIES
from benchmarks.planted.matrix import LARGEST, Found


def tables(results: Iterable[Found]) -> str:
    """A Markdown table for each format."""
    own = list(results)
    formats = dict.fromkeys(each.format for each in own)
    return "\n\n".join(_table(format, own) for format in formats)


def _table(format: str, results: list[Found]) -> str:
    cells = {(each.bug, each.family): each for each in results if each.format == format}
    names = dict.fromkeys(bug for bug, _family in cells)
    lines = [
        f"| {format} | first shows at | {' | '.join(FAMILIES)} |",
        f"|---|---|{'---|' * len(FAMILIES)}",
    ]
    for name in names:
        found = [cells.get((name, family)) for family in FAMILIES]
        where = " or ".join(dict.fromkeys(f"`{each.shows}`" for each in found if each))
        row = " | ".join(_cell(each) if each else "" for each in found)
        lines.append(f"| {BUGS[name].what} | {where} | {row} |")
    return "\n".join(lines)


def _cell(found: Found) -> str:
    share = number(found.share)
    if found.step_named:
        return f"{share} ✓{'✓' if found.cause_named else '–'}"
    if found.clear:
        return f"{share} ✗ {found.first or ''}".rstrip()
    return f"{share} N {number(found.times)}" if found.unusual and found.times else share


def number(value: float) -> str:
    """Two digits, as short as possible."""
    if value >= LARGEST:
        return "∞"
    if value >= 100 or 0 < value < 0.01:
        digits, power = f"{value:.0e}".split("e")
        return f"{digits}e{int(power)}"
    return f"{value:.2g}"
