"""Claims about the standing of next tokens: `ranks`, `margins` and `entropies`, from the logits.

They are no steps of the plan: they are judged from the claimed logits where these are whole, and
from all logits that the precision allows.  With every logit within R of x:

    margin    within 2·R: each of two sorted numbers moves by at most R
    entropy   ln Σ eˣ moves by at most R, and Σ p·x by R + (e^(2R) - 1)·Σ p·|x - μ|, μ = Σ p·x
    rank      between 1 and the tokens certainly ahead, and those that may be ahead as well
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from byhand.checking.claims import Claim, Floats
from byhand.checking.entries import left_blank, radius_of, unjudged, why_missing
from byhand.checking.replay import Line, Replay
from byhand.checking.verdicts import Marked, Verdict, Worst
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.allowed.ranges import gamma
from byhand.numbers.standing import Ids, ahead, in_floats
from byhand.plan import STANDINGS

FLOAT = 2.0**-48  # covers the roundings of these few operations in float64


def apart(claims: Sequence[Claim]) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """The claims about standings, and the others."""
    mine = tuple(claim for claim in claims if claim.address in STANDINGS)
    return mine, tuple(claim for claim in claims if claim.address not in STANDINGS)


def mark_standings(claims: Iterable[Claim], replay: Replay) -> Iterator[Marked]:
    """The verdict on each claim about ranks, margins or entropies."""
    for claim in claims:
        found = replay.true(["logits"])["logits"]
        if found.missing is not None:
            yield unjudged(claim, why_missing(found.missing))
            continue
        logits = found.value
        true = _shares(claim, replay, np.asarray(logits.mid, np.float64), radius_of(logits))
        if true is None:
            yield left_blank(claim)
            continue
        given = _claimed_logits(replay)
        from_lines = None if given is None else _shares(claim, replay, *given)
        yield _marked(claim, true, from_lines)


def _claimed_logits(replay: Replay) -> tuple[Floats, Floats] | None:
    lines = replay.lines.get("logits", ())
    if len(lines) != 1 or "logits" not in replay.complete or lines[0].claim.index:
        return None
    values = np.asarray(lines[0].values, dtype=np.float64)
    return values, np.broadcast_to(np.asarray(lines[0].slack, np.float64), values.shape)


_Shares = tuple[Floats, Floats, Floats, Floats]  # places, what is claimed, least, most


def _shares(claim: Claim, replay: Replay, logits: Floats, off: Floats) -> _Shares | None:
    """The claimed places and numbers, and the least and the most that is allowed there."""
    line = Line.of(claim, replay.rounding)
    targets = replay.text.targets or ()
    places = np.arange(len(logits))[claim.index or slice(None)].reshape(np.shape(line.values))
    claimed = np.ones(places.shape, bool) if claim.claimed is None else np.array(claim.claimed)
    known = np.array([place < len(targets) and targets[place] != UNCOUNTED for place in
                      places.ravel()], dtype=bool).reshape(places.shape)  # fmt: skip
    chosen = claimed & known
    if not chosen.any():
        return None
    rows, said = places[chosen], np.asarray(line.values, np.float64)[chosen]
    slack = np.broadcast_to(line.slack, places.shape)[chosen]
    ids = np.array([targets[row] for row in rows], dtype=np.int64)
    with np.errstate(all="ignore"):
        least, most = _allowed(claim.address, replay, logits[rows], off[rows], ids)
    if claim.address == "ranks":
        slack = np.zeros(len(rows))  # a rank is a whole number
    return rows.astype(np.float64), said, least - slack, most + slack


def _allowed(
    address: str, replay: Replay, x: Floats, off: Floats, ids: Ids
) -> tuple[Floats, Floats]:
    if address == "ranks":
        certain, perhaps = ahead(x, off, ids)
        tied = (x == x[np.arange(len(ids)), ids][:, None]) & (off == 0) & perhaps
        tied &= (off[np.arange(len(ids)), ids] == 0)[:, None]
        first = tied & (np.arange(x.shape[1]) < ids[:, None])
        least = 1.0 + certain.sum(axis=-1) + first.sum(axis=-1)
        return least, least + (perhaps & ~tied).sum(axis=-1)
    _logs, _ranks, _best, margins, entropies = in_floats(x, ids)
    precision, radius = replay.numbers.precision, off.max(axis=-1)
    unit, size = precision.island.work.half, np.abs(x).max(axis=-1)
    if address == "margins":
        room = 2 * radius + (unit + FLOAT) * (margins + 2 * radius + 2 * size)
        return _around(margins, room, precision.store.half)
    shares = np.exp(x - x.max(axis=-1, keepdims=True))
    shares = shares / shares.sum(axis=-1, keepdims=True)
    mean = (shares * x).sum(axis=-1, keepdims=True)
    spread = (shares * np.abs(x - mean)).sum(axis=-1)
    width = x.shape[1]
    room = 2 * radius + np.expm1(2 * radius) * spread
    room += (gamma(2 * width + 8, unit) + width * FLOAT) * (2 * size + 2 * np.log(width) + 1)
    return _around(entropies, room, 4 * precision.store.half)  # -Σ p·ln p, each of them stored


def _around(middle: Floats, room: Floats, half: float) -> tuple[Floats, Floats]:
    room = (room + half * (np.abs(middle) + room)) * (1 + FLOAT)
    room = np.where(np.isnan(room), np.inf, room)
    return middle - room, middle + room


def _marked(claim: Claim, true: _Shares, from_lines: _Shares | None) -> Marked:
    """The verdict: from the text, and from the claimed logits where there are any."""
    right = _right(claim, true)
    follows = right if from_lines is None else _right(claim, from_lines)
    if right is None or follows is None:
        return unjudged(claim, _("rounding of the logits leaves it open"))
    if follows:
        verdict = Verdict.RIGHT if right else Verdict.CARRIED
    else:
        verdict = Verdict.UNSUPPORTED if right else Verdict.ERROR
    places, said, least, most = true if from_lines is None else from_lines
    half, middle = (most - least) / 2, (most + least) / 2
    off = np.abs(said - middle)
    with np.errstate(all="ignore"):
        shares = np.where(off == 0, 0.0, off / half)
    worst = int(shares.argmax())
    return Marked(
        claim,
        verdict,
        share=float(shares[worst]),
        worst=Worst(
            (int(places[worst]),), float(said[worst]), float(middle[worst]),
            float(half[worst]), float(off[worst]),
        ),
        outside=int((shares > 1).sum()),
        entries=len(said),
    )  # fmt: skip


def _right(claim: Claim, shares: _Shares) -> bool | None:
    """Whether all claims are allowed; None where a rank or a number may be any of several."""
    _places, said, least, most = shares
    if ((said < least) | (said > most) | np.isnan(said)).any():
        return False
    if claim.address == "ranks":
        return True if (least == most).all() else None
    return True if np.isfinite(most - least).all() else None
