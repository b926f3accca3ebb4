"""The largest norms of rows of limbs, block by block, for the certificates of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.engine import NUMPY
from byhand.numbers.enclosed.limbs.radii import largest, slack
from byhand.numbers.enclosed.limbs.slices import BLOCK


def norm_with_room(norm: float, room: float) -> float:
    """A norm of limbs with room: other tokens may fill a limb, but a full one hardly changes."""
    return max(1.25 * norm, min(room * norm + 16.0, 2.0**25))


def row_norms(x: Digits, blocks: Sequence[slice]) -> Any:
    """(limb, block): the largest norm of a row of that limb within that block of inputs."""
    if x.engine is not NUMPY:
        return _row_norms_elsewhere(x.engine, x)
    found = np.zeros((x.n, len(blocks)))
    for b, block in enumerate(blocks):
        part = x.limbs[:, :, block]
        squares = np.einsum("irk,irk->ir", part, part)
        found[:, b] = largest(squares.reshape(x.n, -1))
    return np.sqrt(found * slack(BLOCK)) * slack(1)


def _row_norms_elsewhere(engine: Any, x: Digits) -> Any:
    """The same on a device, copied to the host at once."""
    rows, inputs = x.shape
    whole = inputs // BLOCK
    parts = []
    if whole:
        laid = x.limbs[..., : whole * BLOCK].reshape(x.n, rows, whole, BLOCK)
        parts.append(engine.lengths(laid, -1))
    if whole * BLOCK < inputs:
        parts.append(engine.lengths(x.limbs[..., whole * BLOCK :], -1)[..., None])
    norms = parts[0] if len(parts) == 1 else engine.concatenate(parts, 2)
    most = largest(norms, 1)
    found = np.array(engine.bounds(most.reshape(-1), norm_with_room)).reshape(most.shape)
    return found * slack(BLOCK + 4)
