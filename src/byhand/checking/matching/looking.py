"""Who may look at whom in a text whose claims say it: packed texts, and masks of queries and keys.

A plan's own masks go by position.  Programs go by index: a query looks back at what stands before
it, whatever the positions are.  The two differ where positions do not count up one by one, as in
several texts packed into one.  Then it must be said which of them see each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Sheet
from byhand.errors import InputError
from byhand.files.mapped import sides
from byhand.language import _
from byhand.passes import Mask, no_key
from byhand.spec import AttentionSpec, ModelSpec

Truths = npt.NDArray[np.bool_]


def segments_of(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """The number of the text that each position belongs to, where a row packs several.

    One begins wherever the positions do not count up by one.  None where they all do.
    """
    begins = np.diff(np.atleast_2d(positions), axis=1) != 1
    if not begins.any():
        return None
    first = np.zeros((len(begins), 1), np.int64)
    return np.concatenate([first, np.cumsum(begins, axis=1)], axis=1)


def unseen(sheet: Sheet, place: int) -> int:
    """How many positions in front of a text look at nothing: padding, by a mask of all pairs."""
    if sheet.pairs is None:
        return 0
    pairs = _row(sheet.pairs, place)
    blind = ~np.asarray(pairs.any(axis=1))
    before = int(np.argmin(blind)) if not blind.all() else len(blind)
    if pairs[before:, :before].any():
        raise InputError(
            _("a position looks at padding"),
            where=sheet.source,
            expected=_("keys that have looked at something themselves"),
            found=_("the first {count} positions look at nothing").format(count=before),
        )
    return before


def masks_of(
    sheet: Sheet, spec: ModelSpec, place: int, cut: slice, positions: tuple[int, ...] | None
) -> tuple[Mask, ...] | None:
    """The mask of each block for one row of the batch; None where the plan's own will do."""
    length = cut.stop - cut.start
    if sheet.pairs is not None:
        seen = _row(sheet.pairs, place)[cut, cut]
        if seen.shape != (length, length):
            raise InputError(
                _("the mask does not fit the text"),
                where=sheet.source,
                expected=sides((cut.stop, cut.stop)),
                found=sides(sheet.pairs.shape[1:]),
            )
        return (_mask(seen),) * len(spec.blocks)
    if sheet.segments is None:
        if positions is not None and segments_of(np.asarray(positions)) is not None:
            raise _unsaid(sheet, positions)
        return None
    segments = _row(np.atleast_2d(sheet.segments), place)[cut]
    if len(segments) != length:
        raise InputError(
            _("segment_ids do not fit the text"),
            where=sheet.source,
            expected=str(length),
            found=str(len(segments)),
        )
    together = segments[:, None] == segments[None, :]
    own = {block.attention: _own(block.attention, length) for block in spec.blocks}
    return tuple(_mask(own[block.attention] & together) for block in spec.blocks)


def _own(attention: AttentionSpec | None, length: int) -> Truths:
    """What a block lets look at what, by index."""
    seen = np.ones((length, length), np.bool_)
    if attention is None:
        return seen
    if attention.causal:
        seen = np.tril(seen)
    if attention.window is not None:
        seen &= np.triu(np.ones_like(seen), 1 - attention.window)
    return seen


def _mask(seen: Truths) -> Mask:
    blind = np.flatnonzero(~seen.any(axis=1))
    if blind.size:
        raise no_key(int(blind[0]))
    return tuple(map(tuple, seen.tolist()))


def _row(batch: npt.NDArray[Any], place: int) -> npt.NDArray[Any]:
    """A row of the batch; one row may stand for all."""
    return np.asarray(batch[min(place, len(batch) - 1)])


def _unsaid(sheet: Sheet, positions: tuple[int, ...]) -> InputError:
    shown = " ".join(map(str, positions[:12])) + " …" * (len(positions) > 12)
    return InputError(
        _("the positions start again, and nothing says whether a query looks back beyond that"),
        where=sheet.source,
        expected=_("segment_ids, or an attention_mask with the axes batch, 1, query and key"),
        found=shown,
        hint=_("segment_ids are one number for each position: only equal ones see each other"),
    )
