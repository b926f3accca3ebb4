"""Masks that come with claims: for padding, for packed texts, or for pairs of query and key.

A mask of positions, (pos) or (batch, pos), is 0 at padding.  A mask of pairs, (batch, 1, query,
key), replaces the mask of every block.  It holds truths, ones and zeros, or floats to add to the
scores: 0 where a query may attend to a key, about -∞ where it may not.

A plan's own masks go by position.  Programs go by index: a query attends to earlier indices,
whatever their positions.  The two differ where positions do not increase by one, as in packed
texts.  Then the claims must say which texts attend to each other.
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

LEAST = -1e4  # added to a score, it makes the exponential 0 in every format


def mask_of(
    source: str,
    tokens: npt.NDArray[np.int64] | None,
    mask: npt.NDArray[np.int64] | None,
    pad: npt.NDArray[np.int64] | None,
) -> npt.NDArray[np.bool_] | None:
    """A mask, False at padding: the given one, or from the padding id; None without either."""
    if mask is None:
        return None if pad is None or tokens is None else _outside_runs(tokens, int(pad.flat[0]))
    if tokens is not None and mask.shape != tokens.shape:
        raise InputError(
            _("the mask and the tokens have different shapes"),
            where=source,
            expected=sides(tokens.shape),
            found=sides(mask.shape),
        )
    if not np.isin(mask, (0, 1)).all():
        raise InputError(
            _("the attention mask holds something else than 0 and 1"),
            where=source,
            expected=_("1 for a token, 0 for padding"),
            found=str(mask[~np.isin(mask, (0, 1))][0]),
        )
    return np.asarray(mask, dtype=np.bool_)


def _outside_runs(tokens: npt.NDArray[np.int64], pad: int) -> npt.NDArray[np.bool_]:
    """True except in the runs of the padding id at both ends of a row."""
    text = np.atleast_2d(tokens) != pad
    begun = np.logical_or.accumulate(text, axis=1)
    going_on = np.logical_or.accumulate(text[:, ::-1], axis=1)[:, ::-1]
    return (begun & going_on).reshape(tokens.shape)


def pairs_of(mask: npt.NDArray[Any], where: str) -> npt.NDArray[np.bool_]:
    """The pairs that may attend, (batch, query, key), from a mask of queries and keys."""
    if mask.ndim == 4:
        if mask.shape[1] > 1 and (mask != mask[:, :1]).any():
            raise InputError(
                _("the attention mask is not the same for all heads"),
                where=where,
                expected=_("a mask with the axes batch, 1, query and key"),
                found=sides(mask.shape),
            )
        mask = mask[:, 0]
    if mask.ndim != 3:
        raise InputError(
            _("the attention mask has other axes"),
            where=where,
            expected=_("a mask of positions, or one with the axes batch, 1, query and key"),
            found=sides(mask.shape),
        )
    if mask.dtype == np.bool_:
        return np.asarray(mask)
    numbers = mask.astype(np.float64)
    if mask.dtype.kind in "iu" and np.all((numbers == 0) | (numbers == 1)):
        return np.asarray(numbers == 1)
    if not np.all((numbers == 0) | (numbers <= LEAST)):  # neither value: it is a bias of the scores
        odd = numbers[(numbers != 0) & ~(numbers <= LEAST)]
        raise InputError(
            _("the attention mask adds numbers to the scores"),
            where=where,
            expected=_("0 where a query may look at a key, and the lowest float where it may not"),
            found=str(odd[0]),
        )
    return np.asarray(numbers == 0)


# ------------------------------------------------------------------ of each block


Truths = npt.NDArray[np.bool_]


def segments_of(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """The number of the packed text that each position belongs to; None where there is one text.

    A text begins wherever the positions do not increase by one.
    """
    begins = np.diff(np.atleast_2d(positions), axis=1) != 1
    if not begins.any():
        return None
    first = np.zeros((len(begins), 1), np.int64)
    return np.concatenate([first, np.cumsum(begins, axis=1)], axis=1)


def unseen(sheet: Sheet, place: int) -> int:
    """How many positions before a text attend to nothing, by a mask of pairs: they are padding."""
    if sheet.pairs is None:
        return 0
    pairs = _row(sheet.pairs, place)
    blind = ~np.asarray(pairs.any(axis=1))
    before = int(np.argmin(blind)) if not blind.all() else len(blind)
    if pairs[before:, :before].any():
        raise sheet.wrong(
            _("a position looks at padding"),
            expected=_("a mask that hides padding from every position"),
            found=_("the first {count} positions look at nothing").format(count=before),
        )
    return before


def masks_of(
    sheet: Sheet, spec: ModelSpec, place: int, cut: slice, positions: tuple[int, ...] | None
) -> tuple[Mask, ...] | None:
    """The mask of each block for one row of the batch; None where the plan's own masks suffice."""
    length = cut.stop - cut.start
    if sheet.pairs is not None:
        seen = _row(sheet.pairs, place)[cut, cut]
        if seen.shape != (length, length):
            raise sheet.wrong(
                _("the mask does not fit the text"),
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
        raise sheet.wrong(
            _("segment_ids do not fit the text"), expected=str(length), found=str(len(segments))
        )
    together = segments[:, None] == segments[None, :]
    own = {block.attention: _own(block.attention, length) for block in spec.blocks}
    return tuple(_mask(own[block.attention] & together) for block in spec.blocks)


def _own(attention: AttentionSpec | None, length: int) -> Truths:
    """The pairs that a block's attention allows, by index."""
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
    """A row of the batch; an array with a single row holds for all."""
    return np.asarray(batch[min(place, len(batch) - 1)])


def _unsaid(sheet: Sheet, positions: tuple[int, ...]) -> InputError:
    shown = " ".join(map(str, positions[:12])) + " …" * (len(positions) > 12)
    return sheet.wrong(
        _("the positions start again, and nothing says whether the texts see each other"),
        expected=_("segment_ids, or an attention_mask with the axes batch, 1, query and key"),
        found=shown,
        hint=_("segment_ids: one number for each position; only equal ones see each other"),
    )
