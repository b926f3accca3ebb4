"""The whole check: claims of any kind in, a Marking out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.checking.causes import form_of, together
from byhand.checking.claims import ClaimedText, Reading, Sheet
from byhand.checking.corrections import corrected
from byhand.checking.dumps import NameMap, loosened, opened, processed, processing_told
from byhand.checking.judging import judge_text
from byhand.checking.matches import match, text_of
from byhand.checking.matches.texts import rows_of
from byhand.checking.readers import read_sheets
from byhand.checking.readers.numerals import HALF, rounded_up
from byhand.checking.replay import DECIMALS, Replay
from byhand.checking.verdicts import Marked, MarkedText, Marking
from byhand.errors import UsageError
from byhand.evaluate import Progress
from byhand.language import _
from byhand.model import Model

# what one of several dumps may say for all of them
SAID = ("tokens", "positions", "mask", "segments", "pairs", "targets", "labels", "text",
        "optimizer", "precision", "kinds", "read_text", "read_tokens", "read_mask")  # fmt: skip


def mark(
    model: Model,
    claims: Sequence[Any],
    text: str | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    names: NameMap | None = None,
    suspects: bool = True,
    progress: Progress | None = None,
) -> Marking:
    """Every claim with its verdict: one text for each sheet, or for each row of a batch.

    Several dumps of floats are joined into one sheet; handwritten sheets stay separate, one for
    each person.  `names` explains names of the dump's own.
    """
    if not claims:
        raise UsageError(
            _("there is nothing to check"), hint=_("give a file of claims, or several")
        )
    texts: list[MarkedText] = []
    replay: Replay | None = None
    for sheet in _joined([sheet for given in claims for sheet in read_sheets(given)]):
        sheet = sheet if optimizer is None else replace(sheet, optimizer=optimizer)
        sheet = opened(sheet, model)
        read = text_of(rows_of(sheet, model, text, source, segments))
        used, done = processed(sheet, model, read)
        sheet = _to_the_decimals(loosened(sheet, done))
        if replay is not None and replay.model is not used:
            replay = None
        if sheet.working:
            texts.append(_correction(sheet, used, precision, text, target, progress))
            continue
        rows = match(sheet, used, text, target, source=source, segments=segments, names=names)
        batch: list[MarkedText] = []
        for claimed in rows:
            marked, replay = judge_text(
                used,
                claimed,
                precision,
                suspects=suspects,
                like=replay,
                progress=progress,
                others=[other for other in rows if other is not claimed],
                known=[form_of(cause) for before in batch for cause in before.causes],
            )
            altered = _altered(used, claimed, precision, replay, progress)
            readings = (*_processing(done), *marked.readings)
            batch.append(replace(marked, lines=(*altered, *marked.lines), readings=readings))
        for marked, lines in zip(batch, together([each.lines for each in batch]), strict=True):
            texts.append(replace(marked, lines=tuple(lines)))
    return Marking(model.name, tuple(texts))


def _to_the_decimals(sheet: Sheet) -> Sheet:
    """A worksheet with its numbers to the decimals that it asks for: 0.3 means 0.300 there."""
    places = (sheet.precision or "").removeprefix(DECIMALS)
    if not sheet.marks or places == sheet.precision or not places.isdecimal():
        return sheet
    most = rounded_up(HALF / 10 ** int(places))
    entries = tuple(
        entry if entry.format else replace(entry, slack=np.minimum(entry.slack, most))
        for entry in sheet.entries
    )
    return replace(sheet, entries=entries)


def _correction(
    sheet: Sheet,
    model: Model,
    precision: str | None,
    text: str | None,
    target: str | None,
    progress: Progress | None,
) -> MarkedText:
    """The marks of a sheet on which one line of a printed working is to be corrected."""

    def judge(claimed: ClaimedText, suspects: bool) -> MarkedText:
        found, _replay = judge_text(model, claimed, precision, suspects=suspects, progress=progress)
        return found

    return corrected(sheet, lambda printed: match(printed, model, text, target), judge)


def _processing(done: tuple[str, ...]) -> tuple[Reading, ...]:
    """What was done to the weights before the dump was made, where that is known."""
    return (Reading("hook_*", processing_told(done)),) if done else ()


def _altered(
    model: Model,
    claimed: ClaimedText,
    precision: str | None,
    like: Replay,
    progress: Progress | None,
) -> tuple[Marked, ...]:
    """The given lines that do not follow from the other given lines.

    A sheet prints right values, so a student has changed these.  The student's own lines are
    ignored: a printed value below an error need not follow from it.
    """
    given = tuple(replace(claim, given=False) for claim in claimed.claims if claim.given)
    if not given:
        return ()
    told = replace(claimed, claims=given, unmatched=())
    marked, _replay = judge_text(
        model, told, precision, suspects=False, like=like, progress=progress, gaps_rounded=True
    )
    return tuple(
        replace(line, claim=replace(line.claim, given=True))
        for line in marked.lines
        if line.verdict.follows is False
    )


def _joined(sheets: list[Sheet]) -> list[Sheet]:
    """Dumps of floats as one sheet: the tensors may be spread over several files."""
    dumps = [
        sheet
        for sheet in sheets
        if sheet.entries and sheet.label is None and all(each.format for each in sheet.entries)
    ]
    if len(dumps) < 2 or len(dumps) < len(sheets):
        return sheets
    said: dict[str, Any] = {
        name: next((found for sheet in dumps if (found := getattr(sheet, name)) is not None), None)
        for name in SAID
    }
    source = ", ".join(sheet.source for sheet in dumps)
    entries = tuple(entry for sheet in dumps for entry in sheet.entries)
    return [replace(dumps[0], source=source, entries=entries, **said)]
