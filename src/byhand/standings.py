"""The standing of each next token of a text: its rank, the lead of the likeliest, the entropy.

They are questions of a trace with `logprobs`.  A rank is 1 and the number of tokens that come
before: larger logits, and of equal ones the lower ids, as argmax takes them.  Where enclosures do
not decide the order, the rank is open, and the tokens that may come before are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from byhand import decimals
from byhand.errors import Undecided
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT, Numbers, Prediction
from byhand.numbers.enclosed.enclosure import Enclosing, Enclosure
from byhand.numbers.standing import ahead, entropy_parts, in_floats
from byhand.worked import Worked

MOST_COMPARED = 64  # rivals of a token that are compared by their enclosures, beyond floats
BITS = 256  # of the exponential that is a perplexity


@dataclass(frozen=True, slots=True)
class Standing:
    """How the token after one position stands among all that might have come."""

    id: int
    logprob: Any  # ln p, in the number system of the trace
    rank: int | None  # None: open
    lowest: int  # no rank is better
    rivals: tuple[int, ...]  # where the rank is open: the tokens that may come before
    margin: Any  # the largest logit less the next smaller one; None where there is none, or open
    entropy: Any  # of the whole row, in nats


def standings(
    logits: Worked, following: Sequence[Prediction], targets: Sequence[int]
) -> tuple[Standing | None, ...]:
    """The standing of each target; None where none is known."""
    counted = [place for place, id in enumerate(targets) if id != UNCOUNTED]
    noted = list(logits.numbers.notes)
    try:
        return _standings(logits, following, targets, counted)
    finally:
        logits.numbers.notes[:] = noted  # notes are those of steps


def _standings(
    logits: Worked, following: Sequence[Prediction], targets: Sequence[int], counted: Sequence[int]
) -> tuple[Standing | None, ...]:
    entropies = dict(zip(counted, _entropies(logits, counted), strict=True))
    orders = dict(zip(counted, _orders(logits, following, targets, counted), strict=True))
    logs = dict(zip(counted, _logprobs(logits, targets, counted), strict=True))
    found: list[Standing | None] = []
    for place, id in enumerate(targets):
        if place not in orders:
            found.append(None)
            continue
        before, rivals = orders[place]
        rank = None if rivals else 1 + before
        margin = decimals.handed_out(following[place].margin)
        found.append(Standing(id, logs[place], rank, 1 + before, rivals, margin, entropies[place]))
    return tuple(found)


def _in_floats(logits: Worked) -> bool:
    array = logits.array
    return isinstance(array, np.ndarray) and array.dtype != np.dtype(object)


# ------------------------------------------------------------------ order


def _orders(
    logits: Worked, following: Sequence[Prediction], targets: Sequence[int], counted: Sequence[int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """How many tokens certainly come before each target, and which others may."""
    ids = np.array([targets[place] for place in counted], dtype=np.int64)
    if isinstance(logits.numbers, Enclosing):
        middles, radii = logits.numbers.in_floats(logits.value)
        certain, perhaps = ahead(middles[list(counted)], radii[list(counted)], ids)
        for row, place in enumerate(counted):
            open_ = np.flatnonzero(perhaps[row]).tolist()
            tied = following[place].tied
            settled = _compared(logits, place, targets[place], open_, tied)
            yield int(certain[row].sum()) + settled[0], settled[1]
    elif _in_floats(logits):
        rows = np.asarray(logits, dtype=np.float64)[list(counted)]
        for rank in in_floats(rows, ids)[1].tolist():
            yield rank - 1, ()
    else:
        every = range(logits.step.shape[-1])
        for place in counted:
            id = targets[place]
            others = [other for other in every if other != id]
            yield _ordered(logits, place, id, others)


def _compared(
    logits: Worked, place: int, id: int, rivals: Sequence[int], tied: Sequence[int]
) -> tuple[int, tuple[int, ...]]:
    """How many of the rivals certainly come before, and which may, by the enclosures themselves.

    Tokens that are proven tied are ordered by their ids.
    """
    if id in tied:
        before = sum(1 for other in rivals if other in tied and other < id)
        rivals = [other for other in rivals if other not in tied]
    else:
        before = 0
    if len(rivals) > MOST_COMPARED:
        return before, tuple(rivals)
    own: Enclosure = logits.at((place, id))
    open_ = []
    for other in rivals:
        its: Enclosure = logits.at((place, other))
        if its.lower > own.upper or (own.exact and its.exact and own.mid == its.mid and other < id):
            before += 1
        elif not (its.upper < own.lower or (own.exact and its.exact)):
            open_.append(other)
    return before, tuple(open_)


def _ordered(
    logits: Worked, place: int, id: int, others: Sequence[int]
) -> tuple[int, tuple[int, ...]]:
    """The same by comparing the numbers, of a system whose numbers have an order."""
    own, before, open_ = logits.at((place, id)), 0, []
    for other in others:
        its = logits.at((place, other))
        try:
            before += bool(its > own or (other < id and its == own))
        except Undecided:
            open_.append(other)
    return before, tuple(open_)


# ------------------------------------------------------------------ ln p, entropy


def _logprobs(logits: Worked, targets: Sequence[int], counted: Sequence[int]) -> list[Any]:
    if not counted:
        return []
    numbers = logits.numbers
    x = numbers.take_rows(logits.value, list(counted))
    logs = numbers.entries(numbers.logprobs(x, tuple(targets[place] for place in counted)))
    return [decimals.handed_out(logs[row]) for row in range(len(counted))]


def _entropies(logits: Worked, counted: Sequence[int]) -> list[Any]:
    numbers, width = logits.numbers, logits.step.shape[-1]
    if not counted:
        return []
    if _in_floats(logits):
        rows = np.asarray(logits, dtype=np.float64)[list(counted)]
        return [decimals.Float(x) for x in in_floats(rows, np.zeros(len(rows), np.int64))[4]]
    x = numbers.take_rows(logits.value, list(counted))
    shape = (len(counted), width)
    if isinstance(numbers, Enclosing):
        if width == 1:
            return [Enclosure(Fraction(0), Fraction(0))] * len(counted)
        whole, mean = (numbers.entries(part) for part in entropy_parts(numbers, x, shape))
        return [_less(whole[row], mean[row]) for row in range(len(counted))]
    first = tuple([0] * len(counted))
    own, logs = numbers.entries(x), numbers.entries(numbers.logprobs(x, first))
    mean = numbers.entries(numbers.row_dots(numbers.softmax(x), x))
    return [decimals.handed_out(own[row, 0] - logs[row] - mean[row]) for row in range(len(counted))]


def _less(whole: Enclosure, mean: Enclosure) -> Enclosure:
    return Enclosure(whole.mid - mean.mid, whole.rad + mean.rad)


# ------------------------------------------------------------------ the mean


def mean_of(logprobs: Worked) -> Any:
    """The mean of the log-probabilities that are known; None where none is."""
    if all(entry is ABSENT for _index, entry in logprobs.entries()):
        return None
    numbers = logprobs.numbers
    return decimals.handed_out(numbers.entries(numbers.average(logprobs.value))[0])


def perplexity_of(mean: Any, numbers: Numbers) -> Any:
    """e to the power of minus the mean: proven where the mean is, a float of floats, and rounded
    like every line where numbers are rounded by hand."""
    if isinstance(mean, float | np.floating):
        return decimals.Float(inf if -float(mean) > 709 else exp(-float(mean)))
    with ctx.workprec(BITS):
        if isinstance(mean, Enclosure):
            if mean.rad == inf:
                return mean
            middle, radius = (_ball(Fraction(part)) for part in (mean.mid, mean.rad))
            power = arb(middle.mid(), radius.upper() + middle.rad().upper())
        else:
            power = _ball(Fraction(mean)) if isinstance(mean, Fraction) else mean.ball(BITS)
        found = Enclosure.of((-power).exp())
    places = getattr(numbers, "decimals", None)
    return found if places is None else decimals.Rational(Fraction(found.places(places)))


def _ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))
