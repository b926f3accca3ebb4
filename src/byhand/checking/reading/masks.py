"""Masks that come with claims: of padding, or of who may look at whom.

A mask of positions, (pos) or (batch, pos), is 0 at padding.  One of queries and keys, (batch, 1,
query, key), says it all, in place of every block's own: truths, ones and zeros, or floats that are
added to the scores, which are 0 where a query may look at a key, and -∞ or so where it may not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.errors import InputError
from byhand.files.mapped import sides
from byhand.language import _

LEAST = -1e4  # added to a score, it leaves nothing of its exponential in any format


def mask_of(
    source: str,
    tokens: npt.NDArray[np.int64] | None,
    mask: npt.NDArray[np.int64] | None,
    pad: npt.NDArray[np.int64] | None,
) -> npt.NDArray[np.bool_] | None:
    """False at padding: as the mask says, or where ids are the one of padding."""
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
    """True but in the runs of the padding's id at both ends of a row."""
    text = np.atleast_2d(tokens) != pad
    begun = np.logical_or.accumulate(text, axis=1)
    going_on = np.logical_or.accumulate(text[:, ::-1], axis=1)[:, ::-1]
    return (begun & going_on).reshape(tokens.shape)


def pairs_of(mask: npt.NDArray[Any], where: str) -> npt.NDArray[np.bool_]:
    """Who may look at whom, (batch, query, key), of a mask of queries and keys."""
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
    if not np.all((numbers == 0) | (numbers <= LEAST)):  # neither: a bias of the scores
        odd = numbers[(numbers != 0) & ~(numbers <= LEAST)]
        raise InputError(
            _("the attention mask adds numbers to the scores"),
            where=where,
            expected=_("0 where a query may look at a key, and where it may not the lowest number"),
            found=str(odd[0]),
        )
    return np.asarray(numbers == 0)
