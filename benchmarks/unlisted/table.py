"""The results as tables: totals by mode and format, and one row for each change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.planted.table import number
from benchmarks.unlisted.changes import CHANGES
from benchmarks.unlisted.measure import CAUSE, DESCRIBED, NOTHING, PLACED, Found

SIGNS = {CAUSE: "cause", DESCRIBED: "described", PLACED: "placed", NOTHING: "–"}


def totals(results: Iterable[Found]) -> str:
    """A Markdown table with one row for each mode and format."""
    lines = [
        "| mode | format | ports | clear | first wrong line | explained | pairs | half of a pair "
        "| visible | explained | cause · described · placed | causes named | false |",
        "|---" * 13 + "|",
    ]
    own = list(results)
    for mode, format in dict.fromkeys((each.mode, each.format) for each in own):
        lines.append(_total(mode, format, [e for e in own if (e.mode, e.format) == (mode, format)]))
    return "\n".join(lines)


def _total(mode: str, format: str, own: Sequence[Found]) -> str:
    clear, visible = [e for e in own if e.clear], [e for e in own if e.visible]
    pairs = [each for each in clear if each.paired]
    singles = [each.told[0] for each in visible if each.explained and not each.paired]
    false, offered = sum(len(each.false) for each in own), sum(each.offered for each in own)
    cells = (
        mode, format, len(own), len(clear), _share(sum(e.step_named for e in clear), len(clear)),
        _share(sum(each.explained for each in clear), len(clear)),
        f"{sum(each.explained for each in pairs)} of {len(pairs)}",
        sum(each.half for each in pairs),
        len(visible), _share(sum(each.explained for each in visible), len(visible)),
        " · ".join(str(singles.count(each)) for each in (CAUSE, DESCRIBED, PLACED)),
        offered, _share(false, offered),
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f}%)" if whole else "0"


def tables(results: Iterable[Found]) -> str:
    """A table for each mode and format: where each change shows, how much, and what is said."""
    own = list(results)
    parts = []
    for mode, format in dict.fromkeys((each.mode, each.format) for each in own):
        parts.append(_table(mode, format, [e for e in own if (e.mode, e.format) == (mode, format)]))
    return "\n\n".join(parts)


def _table(mode: str, format: str, own: Sequence[Found]) -> str:
    lines = [f"| {mode}, {format} | where | what is said |", "|---|---|---|"]
    for name in dict.fromkeys(each.change for each in own):
        found = [each for each in own if each.change == name]
        where = " or ".join(dict.fromkeys(f"`{'`, `'.join(each.lines)}`" for each in found))
        said = ", ".join(f"{each.family} {_cell(each)}" for each in found)
        lines.append(f"| {CHANGES[name].what} | {where} | {said} |")
    return "\n".join(lines)


def _cell(found: Found) -> str:
    shares = " ".join(map(number, found.shares))
    false = " FALSE" if found.false else ""
    if found.clear and not found.step_named:
        return f"{shares} ✗ {found.first or ''}".rstrip() + false
    return f"{shares} " + " + ".join(SIGNS[each] for each in found.told) + false
