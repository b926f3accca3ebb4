"""A walk through the museum: every exhibit before and after its fix, and what byhand says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import byhand
from benchmarks.museum import rooms
from benchmarks.museum.catalogue import EXHIBITS, ROOMS, Exhibit
from byhand.checking.verdicts import Marking

RECORD = Path(__file__).parents[2] / "docs" / "museum.json"
assert rooms.__all__  # the rooms enter their exhibits when they are imported


@dataclass(frozen=True)
class Seen:
    """What byhand says of one exhibit."""

    name: str
    first: str | None  # the first line that it calls wrong, before the fix
    cause: str | None  # what it says of it
    change: str | None  # and what to do
    described: tuple[str, ...]  # what it says where it names no cause
    share: float  # of the allowed error, at the first wrong line
    fixed: str | None  # the first line that it calls wrong after the fix; None: all follow
    lines: int  # that it judges

    @property
    def exhibit(self) -> Exhibit:
        """The exhibit itself."""
        return EXHIBITS[self.name]

    @property
    def step_right(self) -> bool:
        """Whether the line where the bug shows is named, and none once it is fixed."""
        return self.first == self.exhibit.shows and self.fixed is None

    @property
    def cause_right(self) -> bool:
        """Whether the cause is that of the bug."""
        return self.step_right and bool(self.cause and re.search(self.exhibit.says, self.cause))

    @property
    def cause_false(self) -> bool:
        """Whether another cause is named."""
        return self.cause is not None and not self.cause_right


def checked(exhibit: Exhibit, *, fixed: bool) -> Marking:
    """The dump of an exhibit, marked."""
    case = exhibit.dumped(fixed)
    return byhand.check(case.model, case.claims, text=case.text, precision=case.precision)


def seen(exhibit: Exhibit) -> Seen:
    """What byhand says of an exhibit."""
    marking, after = checked(exhibit, fixed=False), checked(exhibit, fixed=True)
    first, wrong = marking.first_error, after.first_error
    cause = first.suspects[0] if first and first.suspects else None
    return Seen(
        exhibit.name,
        first=first.claim.name if first else None,
        cause=cause.sentence if cause else None,
        change=cause.change if cause else None,
        described=first.described if first else (),
        share=min(first.share, 1e300) if first else 0.0,
        fixed=wrong.claim.name if wrong else None if after.passed else "not judged",
        lines=len(tuple(after)),
    )


def everything(names: Iterable[str] = ()) -> Iterator[Seen]:
    """What byhand says of all exhibits, or of those that are named."""
    order = list(ROOMS)
    every = sorted(EXHIBITS, key=lambda name: order.index(EXHIBITS[name].room))
    for name in list(names) or every:
        yield seen(EXHIBITS[name])


def told(each: Seen) -> str:
    """One exhibit, as `make museum` prints it."""
    exhibit = each.exhibit
    lines = [
        f"{exhibit.name}  ({exhibit.project}, {exhibit.year})",
        f"  the bug     {exhibit.wrong}",
        f"  before      first wrong line: {each.first or 'none'}",
    ]
    if each.cause:
        lines.append(f"              {each.cause}")
        lines.append(f"              → {each.change}")
    lines += [f"              {sentence}" for sentence in each.described if not each.cause]
    after = f"all {each.lines} lines follow" if each.fixed is None else f"wrong: {each.fixed}"
    lines.append(f"  after       {after}")
    if not each.step_right:
        lines.append(f"  ✗ it first shows at {exhibit.shows}")
    elif not each.cause_right:
        lines.append("  ✗ the cause is not named" if not each.cause else "  ✗ not the cause")
    return "\n".join(lines)


def totals(results: Iterable[Seen]) -> str:
    """How many are right."""
    own = list(results)
    steps, causes = sum(each.step_right for each in own), sum(each.cause_right for each in own)
    false = sum(each.cause_false for each in own)
    return (
        f"Of {len(own)} bugs, the first wrong line is named in {steps}, the cause in {causes} "
        f"({100 * causes / max(1, len(own)):.0f} %), and a false cause in {false or 'none'}."
    )


def record(results: Iterable[Seen]) -> None:
    """Writes the file that docs/museum.md is made of."""
    rows = [json.dumps(asdict(each), ensure_ascii=False) for each in results]
    RECORD.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")


def recorded() -> list[Seen]:
    """The contents of the file."""
    names = [each.name for each in fields(Seen)]
    rows = json.loads(RECORD.read_text("utf-8"))
    return [
        Seen(**{name: row[name] for name in names} | {"described": tuple(row["described"])})
        for row in rows
    ]
