"""What floats made of it: a trace in floats beside a proven one of the same text.

For each step: how far its numbers are from the true ones, in units of the last place of the format,
and how many decimal digits are right.  What is compared is what both traces hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.errors import AddressError, InputError
from byhand.language import _
from byhand.numbers.enclosed.enclosure import LOG10_OF_2, SLACK, Enclosing
from byhand.plan import Plan
from byhand.tracing import Trace, Worked

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepComparison:
    """How near the floats of one step are to the true values.

    Errors are what is proven: at least so many units, at most so many digits.  Where the enclosures
    are narrow, as they are where digits beyond the format's were asked for, they are the errors.
    """

    address: str
    entries: int  # that were compared; masked ones are not
    ulps: float  # the largest error, in units of the last place that the true value has
    at: tuple[int, ...]  # where it is
    fewest_digits: float  # decimal digits that are right, of the worst entry; ∞: it is the number
    usual_digits: float  # of the median entry
    unclear: int  # entries whose enclosure is too wide to tell a unit of the last place
    missed_zeros: tuple[tuple[int, ...], ...] = ()  # entries that are truly 0 but not in floats


@dataclass(frozen=True, slots=True)
class Differing:
    """A position after which the floats take another token than the true numbers do."""

    position: int
    float_id: int | None
    id: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run in floats, step by step, against the truth."""

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


def compare(floats: Trace, proven: Trace) -> Comparison:
    """Each step of a run in floats against enclosures of the true values."""
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
    sizes, radii = numbers.magnitudes(true.value)
    errors = _least_errors(numbers.differences(true.value, found), radii)
    units = _unit(sizes, form)
    # a zero has no last place to count in: what came out instead is told apart
    missed = present & np.isneginf(sizes) & (errors > 0) & np.isfinite(errors)
    ranked = present & ~missed if (present & ~missed).any() else present
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        ulps = np.where(ranked, np.ldexp(errors, -units), 0.0)
        digits = np.where(errors > 0, sizes * LOG10_OF_2 - np.log10(errors), inf)[ranked]
    worst = np.unravel_index(int(np.argmax(ulps)), ulps.shape)
    digits = np.sort(np.maximum(digits, 0.0))
    return StepComparison(
        true.address,
        int(present.sum()),
        float(ulps[worst]),
        tuple(map(int, worst)),
        float(digits[0]),
        float(digits[len(digits) // 2]),
        int(((radii > units - 3) & (errors == 0) & present).sum()),
        tuple(tuple(map(int, place)) for place in np.argwhere(missed)),
    )


def _least_errors(most: Numbers, radii: Numbers) -> Numbers:
    """The distance to the nearest number of each set, from that to the furthest; rounded down."""
    with np.errstate(over="ignore", invalid="ignore"):
        least = most * (1 - 2.0**-39) - np.exp2(radii + 1 + 2 * SLACK)
    least = np.where(np.isinf(most) & ~np.isinf(radii), inf, least)  # the float itself is infinite
    errors: Numbers = np.where(np.isposinf(radii), 0.0, np.maximum(least, 0.0))
    return errors


def _unit(sizes: Numbers, form: Any) -> npt.NDArray[np.int64]:
    """The exponent of two of the last place of numbers of these sizes (log2), in the format."""
    exponents: Numbers = np.floor(np.maximum(sizes, form.least))
    places: npt.NDArray[np.int64] = (exponents - (form.bits - 1)).astype(np.int64)
    return places


def _tokens(floats: Trace, proven: Trace) -> tuple[tuple[Differing, ...], int]:
    """Where the next tokens differ; what is not proven is not compared."""
    differing = []
    count = 0
    pairs = zip(floats.next or (), proven.next or (), strict=False)
    for position, (float_next, true_next) in enumerate(pairs):
        if true_next.proven and true_next.id is not None:
            count += 1
            if float_next.id != true_next.id:
                differing.append(Differing(position, float_next.id, true_next.id))
    return tuple(differing), count
