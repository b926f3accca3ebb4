"""The end of a pass: the next token with its proof, and the loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any, overload

import numpy as np

from byhand.numbers.base import Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.gpu.decisions import Now, answers
from byhand.numbers.enclosed.gpu.recording import Row, Rows
from byhand.numbers.enclosed.gpu.row_kernels import RowInputs, RowResults, plain_walk, run
from byhand.numbers.enclosed.limbs import arithmetic, integers
from byhand.numbers.enclosed.limbs.arithmetic import WIDTH, Digits
from byhand.numbers.enclosed.limbs.array_code import horner
from byhand.numbers.enclosed.limbs.engine import NUMPY
from byhand.numbers.enclosed.limbs.integers import Near, TooNear
from byhand.numbers.enclosed.limbs.radii import over, plus
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import (
    Enclosed,
    by_entry,
    entries_of,
    evaluated,
    lasting,
    rational_radius,
)

FEW = 1000  # candidates up to which logits are compared one by one

# ------------------------------------------------------------------ the largest logit


def predictions(x: Enclosed) -> Sequence[Prediction]:
    """The next token after each row: floats find the candidates, integers decide."""
    if x.digits.engine is not NUMPY:
        return _brought_over(x) if isinstance(answers(), Now) else LeadingTokens(x)
    near, box = x.approx, x.box
    entries = entries_of(x)
    return [
        _predict(entries[row], *range_of(near[row], None if box is None else box[row]))
        for row in range(len(near))
    ]


def range_of(near: Any, radii: Any) -> tuple[Any, Any]:
    """Bounds from below and from above of numbers near these."""
    # both are off by their rounding alone, which 2^-48 of their size is far above
    margin = abs(near) * 2.0**-48
    if radii is not None:
        margin = radii + margin
    upper = near + margin
    upper += abs(upper) * 2.0**-50 + 2.0**-1000
    lower = near - margin
    lower -= abs(lower) * 2.0**-50 + 2.0**-1000
    return lower, upper


class LeadingTokens(Sequence[Prediction]):
    """Next tokens found on the device, in a pass without the host.

    `ids` come from floats alone: no other number's upper bound reaches the lower bound of this one.
    Whole predictions are made when one is asked for.
    """

    def __init__(self, x: Enclosed) -> None:
        self._x = evaluated(x)
        self._made: list[Prediction] | None = None
        limbs_here = x.digits.limbs
        if kernels.usable(limbs_here) and x.box is not None:
            place, others = _leaders_by_kernel(x)
        else:
            lower, upper = range_of(x.approx, x.box)
            best, place = lower.max(-1)
            others = (upper >= best[..., None]).sum(-1) - 1
        self._found = place.where(others == 0, -1)

    def __copy__(self) -> LeadingTokens:
        """A copy for a repeated pass, without the predictions made so far."""
        return self._of(copy(self._x), self._found)

    def lasting(self) -> LeadingTokens:
        """The same in memory of their own."""
        return self._of(lasting(self._x), self._found.clone())

    @staticmethod
    def _of(x: Enclosed, found: Any) -> LeadingTokens:
        made = object.__new__(LeadingTokens)
        made._x, made._found, made._made = x, found, None
        return made

    def ids(self) -> list[int]:
        """The proven next token of each row; -1 where floats alone do not prove it."""
        found: list[int] = self._found.tolist()
        return found

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Prediction]: ...
    def __getitem__(self, index: Any) -> Any:
        if self._made is None:
            self._made = _brought_over(self._x)
        return self._made[index]

    def __len__(self) -> int:
        return self._x.shape[0]


def _leaders_by_kernel(x: Enclosed) -> tuple[Any, Any]:
    """Where each row's lower bound is largest, and how many others' upper bounds reach it."""
    walk, layout = plain_walk(x.digits.limbs)
    both = [layout(x.digits.limbs), layout(x.box[None])]
    nothing = layout(x.digits.limbs)
    unit = [x.digits.top - WIDTH]
    best, place = run(leader_program, (), walk, both, nothing, powers=unit, results=2)
    rows = [best[None].contiguous()]
    (reaching,) = run(reach_program, (), walk, both, nothing, rows=rows, powers=unit, results=1)
    return place.long(), reaching - 1.0


def leader_program(given: RowInputs) -> RowResults:
    """The largest lower bound of a row, and where it is."""
    lower, _upper = _bounds_noted(given)
    return RowResults(Rows(lower.engine, []), largest=[lower], place_of_largest=lower)


def reach_program(given: RowInputs) -> RowResults:
    """How many upper bounds of a row reach its largest lower bound."""
    _lower, upper = _bounds_noted(given)
    best = given.rows[0].rows[0]
    reaches = upper.engine.note(f"tl.where({upper.name} >= {best.name}, 1.0, 0.0)")
    return RowResults(Rows(upper.engine, []), sums=[Row(upper.engine, reaches)])


def _bounds_noted(given: RowInputs) -> tuple[Any, Any]:
    digits, radii = given.entries
    near = horner(digits)
    near *= given.powers[0]
    return range_of(near, radii.rows[0])


def _brought_over(x: Enclosed) -> list[Prediction]:
    """The same from a device, of which only candidates for the two largest are copied.

    These are the logits not below the second largest lower bound of their row.  No other logit can
    be the largest, with or without the leader.
    """
    engine = x.digits.engine
    near, box = x.approx, x.box
    if not x.digits.size:
        return []
    lower, upper = range_of(near, box)
    second = lower.topk(min(2, x.width), -1).values[:, -1:]
    leads = upper >= second
    counts = engine.to_numpy(leads.sum(-1))
    few = counts <= FEW
    if not few.all():
        leads = leads & engine.constant(few, near)[:, None]
    rows, columns = leads.nonzero(as_tuple=True)
    picked = Digits(x.digits.limbs[:, rows, columns], x.digits.top)
    wanted = [rows, columns, lower[rows, columns], upper[rows, columns], picked.limbs]
    wanted += [] if box is None else [box[rows, columns]]
    number, token, low, high, limb, *radii = map(engine.to_numpy, wanted)
    mids = arithmetic.to_fractions(Digits(limb, x.digits.top))
    starts = np.searchsorted(number, np.arange(x.shape[0] + 1)).tolist()
    found = []
    for row in range(x.shape[0]):
        if not few[row]:  # hardly anything is known
            bounds = None if box is None else box[row : row + 1]
            part = by_entry(x.digits[row : row + 1], bounds)
            one, other = (engine.to_numpy(bound[row]) for bound in (lower, upper))
            found.append(_predict(entries_of(part)[0], one, other))
            continue
        here = slice(starts[row], starts[row + 1])
        known: list[Any] = [Fraction(0)] * (here.stop - here.start)
        if radii:
            known = [rational_radius(float(radius)) for radius in radii[0][here]]
        numbers = [Enclosure(mid, rad) for mid, rad in zip(mids[here], known, strict=True)]
        found.append(_renamed(_predict(numbers, low[here], high[here]), token[here]))
    return found


def _renamed(found: Prediction, tokens: Any) -> Prediction:
    """A prediction among some tokens, with the ids of the whole vocabulary."""

    def all_of(places: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(tokens[place]) for place in places)

    best = None if found.id is None else int(tokens[found.id])
    return replace(found, id=best, tied=all_of(found.tied), candidates=all_of(found.candidates))


def _predict(row: Any, lower: Any, upper: Any) -> Prediction:
    leaders = _may_lead(lower, upper)
    numbers = {int(k): row[int(k)] for k in leaders} if len(leaders) < FEW else None
    if numbers is None:
        return Prediction(None, None, proven=False, candidates=tuple(map(int, leaders)))
    first = list(numbers)
    if len(first) > 1:
        highest = max(number.lower for number in numbers.values())
        first = [k for k, number in numbers.items() if number.upper >= highest]
    best = first[0]
    if len(first) > 1:
        tied = all(numbers[k].rad == 0 for k in first)
        if not tied:
            return Prediction(None, None, proven=False, candidates=tuple(first))
        zero = Enclosure(Fraction(0), Fraction(0))
        return Prediction(best, zero, proven=True, tied=tuple(first))
    if len(lower) == 1:
        return Prediction(best, None, proven=True)
    if len(lower) == 2:
        rest = np.array([1 - best])
    else:
        others = np.arange(len(lower)) != best
        rest = np.flatnonzero(others)[_may_lead(lower[others], upper[others])]
    second = [row[int(k)] for k in rest[:FEW]]
    if len(rest) > FEW or any(number.rad == math.inf for number in second):
        return Prediction(best, None, proven=True)
    if len(second) == 1:
        one, other = numbers[best], second[0]
        return Prediction(best, Enclosure(one.mid - other.mid, one.rad + other.rad), proven=True)
    low = numbers[best].lower - max(number.upper for number in second)
    high = numbers[best].upper - max(number.lower for number in second)
    return Prediction(best, Enclosure((low + high) / 2, (high - low) / 2), proven=True)


def _may_lead(lower: Any, upper: Any) -> Any:
    """The indices that no other number is proven to exceed."""
    return np.flatnonzero(upper >= lower.max())


# ------------------------------------------------------------------ the loss


def loss(system: System, probs: Enclosed, target: int, row: int = -1) -> Enclosed:
    """-ln p = ln Σ e^(x_j - shift) - (x_t - shift), from the logits of a row; the last by default.

    If no logit is off by more than R, ln of the sum is not either: R + the radius of x_t.
    """
    bits, row = system.bits + 32, row % probs.shape[0]
    here = slice(row, row + 1)
    origin = probs.origin
    if origin is None or origin.kind != "softmax":
        return _from_share(probs, target, here, bits)
    trail, logits = origin.more, origin.source
    sums = _near(trail.sums[here], trail.off, bits)
    gone = arithmetic.subtract(logits.digits[here, target : target + 1], trail.shift[here])
    value = integers.ln(sums) - _near(gone.reshape(1), 0.0, bits)
    box = None
    if not logits.exact:
        own = logits.box[here, target]
        box = plus(trail.widest[here], own)
    return _single(value, box, probs)


def _from_share(probs: Enclosed, target: int, here: slice, bits: int) -> Enclosed:
    share = probs.digits[here, target]
    near = _near(share, 0.0, bits)
    radius = None if probs.box is None else probs.box[here, target]
    try:
        value = -integers.ln(near)
    except TooNear:
        return _single(Near(0, 0, bits), probs.norms[here] * 0.0 + math.inf, probs)
    if radius is None:
        return _single(value, None, probs)
    below = arithmetic.approx(share) * (1 - 2.0**-50) - radius * (1 + 2.0**-50)
    return _single(value, over(radius, below), probs)


def _near(one: Digits, error: float, bits: int) -> Near:
    """A single number as an integer with its error."""
    value = int(np.asarray(arithmetic.to_integers(one), object).ravel()[0])
    shift = bits + one.low
    mid = value << shift if shift >= 0 else value >> -shift
    off = math.ceil(Fraction(error) * 2**bits) + (0 if shift >= 0 else 1)
    return Near(mid, off, bits)


def _single(value: Near, box: Any, probs: Enclosed) -> Enclosed:
    digits = arithmetic.from_integers([value.mid], -value.bits, probs.digits.limbs)
    own = math.ldexp(float(value.error + 1), -value.bits)
    engine = digits.engine
    bound = engine.zeros((1,), digits.limbs) + own
    return by_entry(digits, plus(bound, box))
