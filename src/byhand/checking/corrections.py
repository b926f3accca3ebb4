"""Corrections of a printed working with one wrong line: whether it was found and put right.

The working is judged like anybody's, so nothing in the file says which line is wrong.  The number
of the line and its right values are two claims.  The values are judged from the printed lines above
the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from byhand.checking.claims import Claim, ClaimedText, Entry, Sheet
from byhand.checking.entries import left_blank, not_read
from byhand.checking.verdicts import Marked, MarkedText, Verdict
from byhand.errors import InputError
from byhand.language import _

LINE, VALUES = "mistake", "correction"  # the names of the two claims
Judge = Callable[[ClaimedText, bool], MarkedText]  # with or without causes
Match = Callable[[Sheet], Sequence[ClaimedText]]


def corrected(sheet: Sheet, match: Match, judge: Judge) -> MarkedText:
    """The marks of a correction.

    `match` finds the steps of a sheet's names, and `judge` says of its lines whether they follow.
    """
    own = {entry.name: entry for entry in sheet.entries if not entry.given}
    given = tuple(entry for entry in sheet.entries if entry.given)
    for name in own.keys() - {LINE, VALUES}:
        raise sheet.wrong(
            _("this sheet asks for the wrong line of a working alone"),
            expected=f"{LINE}, {VALUES}",
            found=name,
        )
    [printed] = match(replace(sheet, entries=(*sheet.working, *given), working=()))
    working = judge(printed, True)
    wrong = _wrong_line(sheet, working)
    names = [entry.name for entry in sheet.working]
    number = names.index(wrong.claim.name) + 1
    above = replace(sheet.working[number - 1], given=True)
    before = tuple(
        replace(entry, given=True) for entry in sheet.working if entry.name != above.name
    )
    lines = (
        _line(sheet, own.get(LINE), number, names, wrong),
        _values(sheet, own.get(VALUES), wrong, (*before, *given), match, judge),
    )
    return replace(working, lines=lines, label=sheet.label, marks=sheet.marks)


def _wrong_line(sheet: Sheet, working: MarkedText) -> Marked:
    """The one line of the printed working that does not follow."""
    found = [line for line in working.lines if line.verdict.follows is False]
    if len(found) != 1:
        raise InputError(
            _("the printed working was changed"),
            where=sheet.source,
            expected=_("one line that does not follow"),
            found=", ".join(line.address for line in found) or _("none"),
            hint=_("take a new copy of the sheet"),
        )
    return found[0]


def _line(
    sheet: Sheet, entry: Entry | None, number: int, names: Sequence[str], wrong: Marked
) -> Marked:
    """Whether the wrong line was named."""
    claim = _claim(LINE, sheet, entry)
    if entry is None or (entry.claimed is not None and not entry.claimed.any()):
        return _nothing_read(claim)
    said = float(np.asarray(entry.values, dtype=np.float64).ravel()[0])
    if said == number:
        return Marked(claim, Verdict.RIGHT, entries=1)
    if said in range(1, len(names) + 1):
        told = _("line {said} follows from the lines above it; line {number} does not").format(
            said=int(said), number=number
        )
    else:
        told = _("there is no such line; line {number} does not follow").format(number=number)
    why = [suspect.sentence for suspect in wrong.suspects[:1]]
    return Marked(claim, Verdict.ERROR, described=("; ".join([told, *why]),), entries=1, outside=1)


def _values(
    sheet: Sheet,
    entry: Entry | None,
    wrong: Marked,
    around: Sequence[Entry],
    match: Match,
    judge: Judge,
) -> Marked:
    """Whether the right values of the wrong line are given, judged from the lines above it."""
    if entry is None or (entry.claimed is not None and not entry.claimed.any()):
        return _nothing_read(_claim(VALUES, sheet, entry))
    size = wrong.claim.values.shape
    if entry.values.size != int(np.prod(size)):
        told = _("the line has {expected} numbers, not {found}").format(
            expected=int(np.prod(size)), found=entry.values.size
        )
        return Marked(
            _claim(VALUES, sheet, entry), Verdict.ERROR, described=(told,), entries=1, outside=1
        )
    slack = np.broadcast_to(np.asarray(entry.slack), entry.values.shape).reshape(size)
    values = entry.values.reshape(size)
    asked = replace(
        entry, name=wrong.claim.name, values=values, slack=slack,
        claimed=None if entry.claimed is None else entry.claimed.reshape(size),
    )  # fmt: skip
    [claimed] = match(replace(sheet, entries=(asked, *around), working=()))
    [line] = [
        line
        for line in judge(claimed, False).lines
        if line.claim.address == wrong.claim.address and not line.claim.given
    ]
    return replace(line, claim=replace(line.claim, name=VALUES))


def _nothing_read(claim: Claim) -> Marked:
    """The verdict on a line without an answer, or with one that cannot be read."""
    blank = left_blank(claim)
    return not_read(blank) if claim.unread else blank


def _claim(name: str, sheet: Sheet, entry: Entry | None) -> Claim:
    values = np.zeros(()) if entry is None else np.asarray(entry.values, dtype=np.float64)
    claimed = np.zeros(values.shape, dtype=np.bool_) if entry is None else entry.claimed
    return Claim(name, (), values, name, sheet.source if entry is None else entry.source,
                 claimed=claimed, unread="" if entry is None else entry.unread)  # fmt: skip
