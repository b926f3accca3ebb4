"""Runs of marked lines that need no reading one by one, each told in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from byhand.checking.verdicts import Marked, Verdict
from byhand.document.compose.marked import share_text
from byhand.document.words import whole
from byhand.language import _

FOLDED_FROM = 40  # lines of a text; fewer are all shown
SHORTEST_RUN = 4  # lines that are folded into one


@dataclass(frozen=True, slots=True)
class Run:
    """Lines that need no reading one by one."""

    lines: tuple[Marked, ...]

    def text(self) -> str:
        """What is said of them together."""
        first, last = self.lines[0], self.lines[-1]
        count, share = whole(len(self.lines)), share_text(max(line.share for line in self.lines))
        match first.verdict:
            case Verdict.UNJUDGED:
                text = _("{count} lines cannot be judged, {first} to {last}: {reason}")
            case Verdict.CARRIED:
                text = _(
                    "{count} lines are carried forward, {first} to {last}: at most {share} of the "
                    "allowed error"
                )
            case _:
                text = _(
                    "{count} lines follow, {first} to {last}: at most {share} of the allowed error"
                )
        return text.format(
            count=count, first=first.address, last=last.address, share=share, reason=first.reason
        )


def folded(lines: Sequence[Marked], every: bool = False) -> Iterator[Marked | Run]:
    """The lines, with runs of one verdict that need no reading made one; the right line before one
    that does not follow stays, since that is the last good one."""
    if every or len(lines) < FOLDED_FROM:
        yield from lines
        return
    for key, group in groupby(_before_faults(lines), key=_sameness):
        run = [line for line, _last_good in group]
        if key is None or len(run) < SHORTEST_RUN:
            yield from run
        else:
            yield Run(tuple(run))


def _before_faults(lines: Sequence[Marked]) -> Iterator[tuple[Marked, bool]]:
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        last_good = line.verdict is Verdict.RIGHT and following is not None and _fails(following)
        yield line, last_good


def _sameness(pair: tuple[Marked, bool]) -> tuple[Verdict, str] | None:
    line, last_good = pair
    return None if last_good or _fails(line) or line.unusual else (line.verdict, line.reason)


def _fails(line: Marked) -> bool:
    return line.verdict.follows is False
