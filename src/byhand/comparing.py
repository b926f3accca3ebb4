"""The comparison of a trace in floats with a proven trace of the same text.

For each step it tells the error of its numbers, in units of the last place of the format, and how
many decimal digits are right.  Steps that only one trace holds are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np

from byhand.display import Shown
from byhand.errors import AddressError, InputError
from byhand.language import _
from byhand.numbers.enclosed.enclosure import Enclosing, Enclosure
from byhand.plan import Plan
from byhand.tracing import Trace
from byhand.worked import Worked

SMALLEST, LARGEST = 5e-324, sys.float_info.max


@dataclass(frozen=True, slots=True)
class StepComparison(Shown):
    """How near the floats of one step are to the true values.

    `ulps` is a proven lower bound of the error; the digits are proven upper bounds.  Narrow
    enclosures, with more digits than the format has, make these bounds the errors themselves.

    >>> import byhand
    >>> floats, proven = (byhand.trace("tiny", numbers=each) for each in ("float32", "digits 12"))
    >>> step = byhand.compare(floats, proven)["logits"]
    >>> step.entries, step.ulps < 2
    (6, True)
    """

    address: str
    entries: int  # the number of entries compared; masked ones are not
    ulps: float  # the largest error, in units of the last place that the true value has
    at: tuple[int, ...]  # the index of the largest error
    fewest_digits: float  # right decimal digits of the worst entry; ∞: all entries are right
    usual_digits: float  # right decimal digits of the median entry
    unclear: int  # entries whose enclosure is too wide to tell a unit of the last place
    most_ulps: float = inf  # an upper bound of every error, in units of the last place
    missed_zeros: tuple[tuple[int, ...], ...] = ()  # entries that are truly 0 and not 0 in floats


@dataclass(frozen=True, slots=True)
class Differing:
    """A position after which the floats take another token than the true numbers do."""

    position: int
    float_id: int | None
    id: int


@dataclass(frozen=True, slots=True)
class Comparison(Shown):
    """A run in floats, step by step, against the truth.

    >>> import byhand
    >>> floats, proven = (byhand.trace("tiny", numbers=each) for each in ("float32", "digits 12"))
    >>> byhand.compare(floats, proven)
    <Comparison of float32 with the truth: 29 steps, 0 of 2 next tokens differ>
    """

    format: str
    steps: tuple[StepComparison, ...]
    differing: tuple[Differing, ...]  # where the next tokens are not the same
    predicted: int  # positions whose next token was compared
    plan: Plan = field(repr=False)

    def __getitem__(self, name: str) -> StepComparison:
        """A step by its address or alias; an AddressError where it was not compared."""
        address = self.plan[name].address
        for step in self:
            if step.address == address:
                return step
        raise AddressError(_("{name} was not compared").format(name=name))

    def __iter__(self) -> Iterator[StepComparison]:
        return iter(self.steps)

    def __repr__(self) -> str:
        tokens = f"{len(self.differing)} of {self.predicted} next tokens differ"
        return f"<Comparison of {self.format} with the truth: {len(self.steps)} steps, {tokens}>"


def compare(floats: Trace, proven: Trace) -> Comparison:
    """Each step of a run in `floats` against `proven` enclosures of the true values.

    >>> import byhand
    >>> floats, proven = (byhand.trace("tiny", numbers=each) for each in ("float32", "digits 12"))
    >>> [(step.address, step.fewest_digits) for step in compare(floats, proven)][:2]
    [('embed.token', inf), ('embed.position', inf)]
    """
    form = getattr(floats.numbers, "format", None)
    if form is None or not isinstance(proven.numbers, Enclosing):
        raise InputError(_("only a trace in floats can be compared with a proven one"))
    if (floats.tokens, floats.plan.spec) != (proven.tokens, proven.plan.spec):
        raise InputError(_("these two traces are not of the same model and text"))
    differing, predicted = _tokens(floats, proven)
    steps = tuple(_steps(floats, proven, form))
    return Comparison(form.name, steps, differing, predicted, proven.plan)


def _steps(floats: Trace, proven: Trace, form: Any) -> Iterator[StepComparison]:
    for address, true in proven.steps.items():
        rounded = floats.steps.get(address)
        if rounded is not None and not true.whole and not (true.missing or rounded.missing):
            yield _step(rounded, true, form)


def _step(rounded: Worked, true: Worked, form: Any) -> StepComparison:
    found = np.ma.filled(np.ma.asarray(rounded.array).astype(np.float64), 0.0)
    present = ~np.broadcast_to(np.ma.getmaskarray(rounded.array), found.shape)
    numbers: Enclosing = true.numbers  # type: ignore[assignment]
    _sizes, radii = numbers.magnitudes(true.value)
    apart = numbers.apart(true.value, found)
    # a zero has no last place: nonzero floats at true zeros are listed apart
    missed = present & (apart.sizes == 0) & (apart.least > 0) & np.isfinite(apart.least)
    ranked = present & ~missed if (present & ~missed).any() else present
    ulps = np.where(ranked, apart.ulps(form.bits, form.least), 0.0)
    worst = np.unravel_index(int(np.argmax(ulps)), ulps.shape)
    digits = np.sort(apart.digits()[ranked])
    units = np.maximum(apart.tops - 1, form.least) - (form.bits - 1)
    with np.errstate(over="ignore"):  # upper bound: the lower bound plus the diameter
        most = np.where(ranked, ulps + np.exp2(radii - units + 1), 0.0)
    return StepComparison(
        true.address,
        int(present.sum()),
        float(ulps[worst]),
        tuple(map(int, worst)),
        float(digits[0]),
        float(digits[len(digits) // 2]),
        int(((radii > units - 3) & (apart.least == 0) & present).sum()),
        float(most.max()),
        tuple(tuple(map(int, place)) for place in np.argwhere(missed)),
    )


def ulps_between(true: Enclosure, found: Any, form: Any) -> tuple[float, float]:
    """Lower and upper bound of a float's error, in units of the last place of the format at the
    size of the true value.  Both are 0 only where the float is the true value.
    """
    number = float(found)
    if not isfinite(number):
        return inf, inf
    if true.rad == inf:
        return 0.0, inf
    middle, radius = abs(true.mid - Fraction(number)), Fraction(true.rad)
    size = abs(true.mid)
    return (
        min(_ratio(max(middle - radius, Fraction(0)), _unit(size + radius, form)), LARGEST),
        _ratio(middle + radius, _unit(max(size - radius, Fraction(0)), form)),
    )


def _unit(size: Fraction, form: Any) -> Fraction:
    """The unit of the last place of a number of this size."""
    exponent: int = max(_floor_log2(size), form.least) if size else form.least
    return Fraction(2) ** (exponent - int(form.bits) + 1)


def _floor_log2(x: Fraction) -> int:
    """k with 2^k ≤ x < 2^(k+1), of x > 0."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if Fraction(2) ** k <= x else k - 1


def _ratio(error: Fraction, unit: Fraction) -> float:
    """error / unit; 0 only where the error is 0."""
    try:
        found = float(error / unit)
    except OverflowError:
        return inf
    return found or (SMALLEST if error else 0.0)


def _tokens(floats: Trace, proven: Trace) -> tuple[tuple[Differing, ...], int]:
    """The positions whose next tokens differ, and how many proven ones were compared."""
    differing = []
    count = 0
    pairs = zip(floats.next or (), proven.next or (), strict=False)
    for position, (float_next, true_next) in enumerate(pairs):
        if true_next.proven and true_next.id is not None:
            count += 1
            if float_next.id != true_next.id:
                differing.append(Differing(position, float_next.id, true_next.id))
    return tuple(differing), count
