"""The matrix as a table: one row for each kind of bug, one column for each family and format.

3e4 ✓✓     the effect in units of the bound; line named, cause named
3e4 ✓–     the line was named, the cause was not
0.4 N 31   rounding may explain it; but it is 31 times what rounding usually does
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.gradients.bugs import FORMATS
from benchmarks.gradients.lessons import FAMILIES
from benchmarks.gradients.matrix import LARGEST, Found


def tables(results: Iterable[Found]) -> str:
    """A Markdown table."""
    cells = {(each.bug, each.family, each.format): each for each in results}
    columns = [(family, format) for format in FORMATS for family in FAMILIES]
    heads = " | ".join(f"{family}, {format}" for family, format in columns)
    lines = [f"| | first shows at | {heads} |", f"|---|---|{'---|' * len(columns)}"]
    for bug in dict.fromkeys(name for name, _family, _format in cells):
        found = [cells.get((bug, *column)) for column in columns]
        where = " or ".join(dict.fromkeys(f"`{each.shows}`" for each in found if each))
        row = " | ".join(_cell(each) if each else "" for each in found)
        lines.append(f"| {bug} | {where} | {row} |")
    return "\n".join(lines)


def _cell(found: Found) -> str:
    share = _number(found.share)
    if found.step_named:
        return f"{share} ✓{'✓' if found.cause_named else '–'}"
    if found.clear:
        return f"{share} ✗ {found.first or ''}".rstrip()
    return f"{share} N {_number(found.times)}" if found.unusual and found.times else share


def _number(value: float) -> str:
    """Two digits, as short as possible."""
    if value >= LARGEST:
        return "∞"
    if value >= 100 or 0 < value < 0.01:
        digits, power = f"{value:.0e}".split("e")
        return f"{digits}e{int(power)}"
    return f"{value:.2g}"
