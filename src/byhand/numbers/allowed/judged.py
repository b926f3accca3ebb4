"""The judging of claims by ranges: the share of the allowed error; and the overlay of claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any

import numpy as np

from byhand.numbers.allowed.ranges import CHUNK, UP, Data, Origin, Range, Truths, wide

UNIFORM = 1 / sqrt(3.0)  # the standard deviation of a uniform error within a slack of 1
FEW = 4  # entries that a row's mean square is divided by, at least


@dataclass(frozen=True, eq=False, slots=True)
class Judged:
    """The judgement of the claims about a part of a step."""

    shares: Data  # of what is allowed, |claim - mid|/(rad + slack); 0 where nothing was judged
    times: float | None  # the worst row's error in units of the usual one; None: not known
    expected: Data  # the part's middles
    allowed: Data  # the part's radii with the slack
    claimed: Truths | None = None  # where there is a claim to judge; None: everywhere
    open: Truths | None = None  # where a claim can be neither right nor wrong; None: nowhere
    usual: Data | None = None  # one standard deviation of what rounding does; None: not known
    share: float = field(init=False)  # the largest share: above 1, the claims do not follow

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", float(self.shares.max(initial=0.0)))

    @property
    def possible(self) -> bool:
        """Whether no claim lies outside of its range."""
        return self.share <= 1.0

    @property
    def follows(self) -> bool | None:
        """Whether every claim lies within its range; None where some range is unbounded."""
        return None if self.possible and self.open is not None else self.possible

    @property
    def worst(self) -> tuple[int, ...]:
        """The index, in the part, of the entry that uses the largest share."""
        place = int(self.shares.argmax()) if self.shares.size else 0
        return tuple(map(int, np.unravel_index(place, self.shares.shape)))


def judge(
    value: Range, index: Any, values: Data, slack: Data | float, claimed: Truths | None
) -> Judged:
    """The judgement of the claims `values` about value[index], each known up to its slack.

    Masked scores are not judged; a masked weight has to be 0, or is left blank as NaN.  Where the
    range has no end, a claim is neither right nor wrong: the judgement is open there.
    """
    part = value[index] if index else value
    mid, rad = wide(np.asarray(part.mid)), part.radius()
    claims = np.broadcast_to(np.asarray(values), mid.shape)
    room = np.zeros(mid.shape) if rad is None else np.asarray(rad)
    spread = None if part.usual is None else np.asarray(part.usual)
    choice = value.origin is not None and value.origin.choice
    if np.any(slack) and not choice:
        room = (room + slack) * UP
        width = np.broadcast_to(np.asarray(slack) * UNIFORM, mid.shape)
        spread = width if spread is None else spread + width
    known = None if claimed is None else np.broadcast_to(claimed, mid.shape)
    if part.absent is not None:
        shares = value.origin is not None and value.origin.shares
        apart = part.absent & np.isnan(claims) if shares else part.absent
        known = ~apart if known is None else known & ~apart
    result, worst = np.empty(mid.shape, dtype=np.float32), -inf
    n = mid.shape[-1] if mid.ndim else 1
    everything = (mid, claims, room, spread, known)
    flat = [None if each is None else each.reshape(-1, n) for each in everything]
    into = result.reshape(-1, n)
    step = max(1, CHUNK // max(1, n))
    for start in range(0, len(into), step):
        rows = slice(start, start + step)
        chunk = (None if each is None else each[rows] for each in flat)
        worst = max(worst, _judge_rows(into[rows], *chunk))  # type: ignore[arg-type]
    endless = np.isinf(room) if np.isinf(room.max(initial=0.0)) else None
    if choice:
        endless = room > 0
    if endless is not None:
        endless &= result <= 1 if known is None else known & (result <= 1)
        endless = endless if endless.any() else None
    return Judged(result, worst if worst >= 0 else None, mid, room, known, endless, spread)


def _judge_rows(
    shares: Data, mid: Data, claims: Data, room: Data, spread: Data | None, known: Truths | None
) -> float:
    """Writes the shares of some rows; returns the worst row's error in usual errors, or -1."""
    claims = wide(claims)
    distance = np.abs(claims - mid)
    ratio = distance / room
    if not np.isfinite(ratio.sum()):  # 0/0, x/0, ∞/∞, or a claim that is not a number
        fine = np.isinf(room) | (distance == 0)
        ratio = np.where(fine, 0.0, np.where(np.isfinite(claims), ratio, inf))
    if known is not None:
        ratio = np.where(known, ratio, 0.0)
    shares[...] = ratio
    if ratio.max(initial=0.0) > 1:  # 1 + 1e-12 must not become 1
        shares[(shares == 1) & (ratio > 1)] = np.nextafter(np.float32(1), np.float32(2))
    if spread is None:
        return -1.0
    times = distance / spread
    n = times.shape[-1]
    if known is None and spread.min(initial=1.0) > 0 and spread.max(initial=1.0) < inf:
        worst = np.einsum("ij,ij->i", times, times).max(initial=0.0)
        return float(np.sqrt(worst / max(n, FEW)))
    usable = (spread > 0) & (spread < inf)  # NaN or ∞: no usual error is known
    if known is not None:
        usable &= known
    counts = np.count_nonzero(usable, axis=-1)
    if not counts.any():
        return -1.0
    np.square(times, out=times)
    times = np.where(usable, times, 0.0)
    return float(np.sqrt(np.max(times.sum(axis=-1) / np.maximum(counts, FEW))))


def overlay(
    value: Range, index: Any, values: Data, slack: Data | float, claimed: Truths | None
) -> Range:
    """The range with the claimed entries as they are claimed, within their slack."""
    claims = wide(np.asarray(values))
    origin = None if value.origin is None else value.origin.kept()
    slack = 0.0 if origin is not None and origin.choice else slack
    whole = claimed is None and not index
    if whole and value.absent is not None:
        claims = np.where(value.absent, 0.0, claims)
    if whole and np.isfinite(claims.sum()):
        if not np.any(slack):
            return Range(claims, absent=value.absent, origin=origin)
        rad = np.array(np.broadcast_to(slack, claims.shape), dtype=np.float64)
        return Range(claims, rad, rad * UNIFORM, value.absent, origin=origin)
    return _laid_over(value, index if index else ..., claims, slack, claimed, origin)


def _laid_over(
    value: Range,
    place: Any,
    claims: Data,
    slack: Data | float,
    claimed: Truths | None,
    origin: Origin | None,
) -> Range:
    """The same where only a part is claimed, or where a claim is no finite number."""
    radius = value.radius()
    mid = np.array(wide(value.mid))
    rad = np.zeros(mid.shape) if radius is None else np.array(radius)
    usual = np.zeros(mid.shape) if value.usual is None else np.array(value.usual)
    shape = mid[place].shape
    claims = np.broadcast_to(claims, shape)
    width = np.broadcast_to(np.asarray(slack, dtype=np.float64), shape)
    known = np.broadcast_to(True if claimed is None else claimed, shape)
    number = np.isfinite(claims)
    mid[place] = np.where(known, np.where(number, claims, 0.0), mid[place])
    rad[place] = np.where(known, np.where(number, width, inf), rad[place])
    usual[place] = np.where(known, np.where(number, width * UNIFORM, inf), usual[place])
    if value.absent is not None:
        for part in (mid, rad, usual):
            part[value.absent] = 0.0
    return Range(mid, rad, usual, value.absent, origin=origin)
