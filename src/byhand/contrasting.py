"""The contrast of two models of one architecture on one text: what a change of weights did.

Quantising is such a change.  For each step it tells how far its numbers moved: the largest
difference, and the root mean square of all of them beside that of the original numbers.  Then how
far the next-token distributions are apart, and which predictions are others.

Every size comes as two bounds, which are proven if both traces are exact or proven.  Entries are
taken as float64 with a radius that contains the rounding; sums of n squares in float64 are right to
n·2^-52, which the bounds include.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from byhand.display import Shown
from byhand.errors import AddressError, InputError
from byhand.expression import Expression, write
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact.value import Value
from byhand.plan import WEIGHT, Plan
from byhand.spec import ModelSpec
from byhand.tracing import Trace
from byhand.worked import Worked

Floats = npt.NDArray[np.float64]
HALF_ULP, TINY = 2.0**-52, 5e-324  # of float64, generously
BITS = 128  # of the divergence of two distributions
MOST_TOLD = 5  # settings that differ, in a message
# How weights are kept, and what else the arithmetic of a text does not read:
BESIDE = ("name", "family", "layout", "context", "tied", "packed")


@dataclass(frozen=True, slots=True)
class Bounds:
    """A size that lies between two bounds; `exact`, where it is a known rational."""

    least: float
    most: float
    exact: Fraction | None = None

    def over(self, other: Bounds) -> Bounds | None:
        """The quotient of two sizes; None where the divisor may be 0."""
        if not other.least:
            return None
        with np.errstate(over="ignore"):
            least = self.least / other.most * (1 - HALF_ULP)
            most = self.most / other.least * (1 + HALF_ULP)
        return Bounds(least, most)


ZERO = Bounds(0.0, 0.0, Fraction(0))


@dataclass(frozen=True, slots=True)
class StepContrast(Shown):
    """How far the numbers of one step moved.

    >>> import byhand
    >>> same = byhand.contrast(byhand.trace("tiny", "a b"), byhand.trace("tiny", "a b"))
    >>> same["logits"].entries, same["logits"].largest.exact, same["logits"].proven
    (6, Fraction(0, 1), True)
    """

    address: str
    entries: int  # masked ones are not counted
    largest: Bounds
    at: tuple[int, ...]  # the entry that moved furthest
    rms: Bounds  # the root mean square of the differences
    size: Bounds  # that of the original numbers
    proven: bool
    unlike: int = 0  # entries that only one of the models has: another expert was chosen

    @property
    def share(self) -> Bounds | None:
        """The root mean square of the differences, relative to the original numbers."""
        return ZERO if self.rms.most == 0 else self.rms.over(self.size)


@dataclass(frozen=True, slots=True)
class Predicted:
    """What comes next after a position, before and after the change."""

    position: int
    original: int | None  # None: undecided
    now: int | None
    divergence: Bounds | None  # of the distributions, in nats: from the original to the new one
    proven: bool

    @property
    def changed(self) -> bool | None:
        """Whether another token comes; None where one of them is undecided."""
        if self.original is None or self.now is None:
            return None
        return self.original != self.now


@dataclass(frozen=True, slots=True)
class Contrast(Shown):
    """Two models of one architecture on one text, step by step.

    >>> import byhand
    >>> byhand.contrast(byhand.trace("minigpt"), byhand.trace("minigpt"))
    <Contrast of minigpt with minigpt: 0 of 62 steps moved, 0 of 8 next tokens changed>
    """

    name: str
    original: str
    steps: tuple[StepContrast, ...]
    predicted: tuple[Predicted, ...]
    settings: tuple[str, ...]  # constants in which the models differ as well
    plan: Plan = field(repr=False)

    def __getitem__(self, name: str) -> StepContrast:
        """A step by its address or alias; an AddressError where it was not compared."""
        address = self.plan[name].address
        for step in self.steps:
            if step.address == address:
                return step
        raise AddressError(_("{name} was not compared").format(name=name))

    def __iter__(self) -> Iterator[StepContrast]:
        return iter(self.steps)

    @property
    def proven(self) -> bool:
        """Whether every bound is proven."""
        return all(step.proven for step in self.steps)

    @property
    def first(self) -> StepContrast | None:
        """The first step with a number that moved."""
        return next((step for step in self.steps if step.largest.least > 0), None)

    @property
    def changed(self) -> tuple[Predicted, ...]:
        """The positions after which another token comes."""
        return tuple(each for each in self.predicted if each.changed)

    def __repr__(self) -> str:
        moved = sum(step.largest.least > 0 for step in self.steps)
        return (
            f"<Contrast of {self.name} with {self.original}: {moved} of {len(self.steps)} steps "
            f"moved, {len(self.changed)} of {len(self.predicted)} next tokens changed>"
        )


def contrast(trace: Trace, original: Trace) -> Contrast:
    """How far each step of `trace` is from the same step of the `original` model's trace.

    Both are of one text and in one kind of numbers; an InputError says what else differs.

    >>> import byhand
    >>> trained, before = (byhand.trace(each, "she climb") for each in ("minigpt", "minigpt-init"))
    >>> found = byhand.contrast(trained, before)
    >>> found.first.address, found["logits"].proven, len(found.changed)
    ('embed.token', False, 2)
    """
    settings = same_plan(trace.model.spec, original.model.spec)
    if (trace.tokens, trace.source) != (original.tokens, original.source):
        raise InputError(
            _("these two traces are not of the same text"),
            expected=_shown(original.tokens),
            found=_shown(trace.tokens),
            hint=_("the tokenizers of the two models differ, or the texts do"),
        )
    if _kind(trace) != _kind(original):
        raise InputError(
            _("these two traces are not worked out in the same numbers"),
            expected=original.numbers.name,
            found=trace.numbers.name,
        )
    steps = tuple(_steps(trace, original, settings))
    same = any(step.address == "logits" and step.largest.most == 0 for step in steps)
    return Contrast(
        trace.model.name,
        original.model.name,
        steps,
        tuple(_predicted(trace, original, same)),
        settings,
        trace.plan,
    )


def _kind(trace: Trace) -> str:
    return trace.numbers.name if trace.numbers.uniform == "rounded" else str(trace.numbers.uniform)


def _shown(tokens: tuple[int, ...]) -> str:
    return " ".join(map(str, tokens[:20])) + (" …" if len(tokens) > 20 else "")


# ------------------------------------------------------------------ the same plan


def same_plan(spec: ModelSpec, original: ModelSpec) -> tuple[str, ...]:
    """The constants that differ; an InputError for models that do not compute the same steps."""
    found = list(_differing(spec, original, ""))
    other = [each for each in found if not each.constant]
    if other:
        told = other[:MOST_TOLD]
        raise InputError(
            _("these two models have different plans: {keys}").format(
                keys=", ".join(each.key for each in told) + ", …" * (len(other) > len(told))
            ),
            where=spec.name,
            expected=", ".join(f"{each.key} {_text(each.original)}" for each in told),
            found=", ".join(f"{each.key} {_text(each.now)}" for each in told),
            hint=_("only models of one architecture can be compared step by step"),
        )
    return tuple(f"{each.key}: {_text(each.original)} → {_text(each.now)}" for each in found)


def _text(setting: Any) -> str:
    return write(setting) if isinstance(setting, Expression) else str(setting)


@dataclass(frozen=True, slots=True)
class _Difference:
    key: str
    original: Any
    now: Any

    @property
    def constant(self) -> bool:
        """Whether it is only another number in the same places, such as an eps."""
        return all(isinstance(x, Fraction | Expression) for x in (self.original, self.now))


def _differing(now: Any, original: Any, key: str) -> Iterator[_Difference]:
    if now == original:
        return
    if is_dataclass(now) and type(now) is type(original) and not isinstance(now, Expression):
        for each in fields(now):
            if each.name not in BESIDE:
                inner = f"{key}.{each.name}".lstrip(".")
                yield from _differing(getattr(now, each.name), getattr(original, each.name), inner)
    elif isinstance(now, tuple) and isinstance(original, tuple) and len(now) == len(original):
        for place, both in enumerate(zip(now, original, strict=True)):
            yield from _differing(*both, f"{key}.{place}")
    elif isinstance(now, tuple) and isinstance(original, tuple):
        yield _Difference(key, len(original), len(now))
    else:
        yield _Difference(key, original, now)


# ------------------------------------------------------------------ steps


def _steps(trace: Trace, original: Trace, settings: tuple[str, ...]) -> Iterator[StepContrast]:
    same: set[str] = set()  # what is the same by what it reads, whatever is known of its numbers
    for address, before in original.steps.items():
        now = trace.steps.get(address)
        if now is None or before.missing or now.missing:
            continue
        alike = not settings and _law(now) == _law(before)
        if alike and all(_same(read, trace, original, same) for read in before.step.reads):
            same.add(address)
        if not before.whole:
            found = _step(now, before)
            proven = found.proven and address in same and not found.unlike
            yield replace(found, largest=ZERO, rms=ZERO) if proven else found


def _law(worked: Worked) -> tuple[Any, ...]:
    step = worked.step
    return step.op, dict(step.inputs), dict(step.attributes)


def _same(read: str, trace: Trace, original: Trace, same: set[str]) -> bool:
    """Whether what a step reads is the same in both models: a step, or a weight."""
    if not read.startswith(WEIGHT):
        return read in same
    ours, theirs = (each.model.weights[read.removeprefix(WEIGHT)] for each in (trace, original))
    if ours is theirs:
        return True
    if ours.shape != theirs.shape:
        return False
    if ours.floats and theirs.floats:
        return bool(np.array_equal(ours.data, theirs.data))
    return all(map(_equal, ours.data.flat, theirs.data.flat))


def _equal(x: Any, y: Any) -> bool:
    """Whether two weights are one number; of what is known within a range, nobody knows."""
    known = isinstance(x, Fraction | Expression) or x is ABSENT
    return known and type(x) is type(y) and bool(x == y)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a step as float64 within radii, each axis as in the step."""

    middles: Floats
    radii: Floats
    present: npt.NDArray[np.bool_]  # masked ones are not
    exact: npt.NDArray[Any] | None  # as fractions, where all of them are rational


def _entries(worked: Worked) -> _Entries:
    data = worked.array
    if isinstance(data, np.ndarray) and data.dtype != np.dtype(object):
        present = ~np.broadcast_to(np.ma.getmaskarray(data), data.shape)
        floats = np.ma.getdata(data).astype(np.float64)
        fine = np.isfinite(floats)
        return _Entries(np.where(fine, floats, 0.0), np.where(fine, 0.0, inf), present, None)
    every = [entry for _index, entry in worked.entries()]
    there = [entry is not ABSENT for entry in every]
    found = [(0.0, 0.0, Fraction(0)) if x is ABSENT else _within(x) for x in every]
    shape = worked.step.shape
    exact = np.empty(len(found), dtype=object)
    exact[:] = [rational for _middle, _radius, rational in found]
    return _Entries(
        np.array([middle for middle, _radius, _rational in found], np.float64).reshape(shape),
        np.array([radius for _middle, radius, _rational in found], np.float64).reshape(shape),
        np.array(there).reshape(shape),
        None if any(each is None for each in exact) else exact.reshape(shape),
    )


def _within(entry: Any) -> tuple[float, float, Fraction | None]:
    """A float64 and a radius that contain an entry, and the entry itself where it is rational."""
    if isinstance(entry, Value):
        if (rational := entry.fraction) is not None:
            return (*_rounded(rational, 0.0), rational)
        ball = entry.ball(BITS)
        if not ball.is_finite():
            return 0.0, inf, None
        return (*_rounded(_rational(ball.mid()), float(ball.rad()) * (1 + HALF_ULP) + TINY), None)
    if isinstance(entry, Enclosure):
        known = Fraction(entry.mid) if entry.exact else None
        radius = float(entry.rad) * (1 + HALF_ULP) + TINY * (not entry.exact)
        return (*_rounded(Fraction(entry.mid), radius), known)
    if isinstance(entry, Fraction):
        return (*_rounded(entry, 0.0), entry)
    number = float(entry)
    return (number, 0.0, None) if isfinite(number) else (0.0, inf, None)


def _rounded(number: Fraction, radius: float) -> tuple[float, float]:
    """The nearest float64, and the radius with its rounding."""
    try:
        middle = float(number)
    except OverflowError:
        return 0.0, inf
    off = 0.0 if Fraction(middle) == number else abs(middle) * HALF_ULP + TINY
    return middle, (radius + off) * (1 + HALF_ULP)


def _rational(number: arb) -> Fraction:
    found = number.fmpq()
    return Fraction(int(found.p), int(found.q))


def _step(now: Worked, before: Worked) -> StepContrast:
    ours, theirs = _entries(now), _entries(before)
    both = ours.present & theirs.present
    unlike = int((ours.present != theirs.present).sum())
    proven = all(worked.register != "rounded" for worked in (now, before))
    if not both.any():
        return StepContrast(now.address, 0, ZERO, (), ZERO, ZERO, proven, unlike)
    distances, radii, moved = _moved(now, before, ours, theirs, both)
    at, exact = int(np.argmax(distances)), None
    if proven and moved is not None:
        at = max(range(len(moved)), key=moved.__getitem__)
        exact = moved[at]
    least = float(np.maximum(distances - radii, 0.0).max())
    largest = Bounds(least, float((distances + radii).max()), exact)
    return StepContrast(
        address=now.address,
        entries=len(distances),
        largest=largest,
        at=tuple(map(int, np.argwhere(both)[at])),
        rms=_mean_square(distances, radii),
        size=_mean_square(np.abs(theirs.middles)[both], theirs.radii[both]),
        proven=proven,
        unlike=unlike,
    )


def _moved(
    now: Worked, before: Worked, ours: _Entries, theirs: _Entries, both: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, list[Fraction] | None]:
    """How far entries moved, within radii; and exactly, where all differences are rational."""
    if _one_space(now.array, before.array):  # exact numbers that can be subtracted as such
        pairs = zip(now.array[both], before.array[both], strict=True)
        found = [_within(x - y) for x, y in pairs]
        distances = np.abs(np.array([middle for middle, _radius, _exact in found]))
        radii = np.array([radius for _middle, radius, _exact in found])
        rational = [abs(exact) for _middle, _radius, exact in found if exact is not None]
        return distances, radii, rational if len(rational) == len(found) else None
    distances = np.abs(ours.middles - theirs.middles)[both]
    radii = (ours.radii + theirs.radii)[both] * (1 + HALF_ULP)
    radii = (radii + HALF_ULP * distances) * (1 + HALF_ULP)
    if ours.exact is None or theirs.exact is None:
        return distances, radii, None
    return distances, radii, abs(ours.exact - theirs.exact)[both].tolist()


def _one_space(*arrays: Any) -> bool:
    """Whether all entries are exact numbers of one space."""
    spaces = set()
    for data in arrays:
        if not isinstance(data, np.ndarray) or data.dtype != np.dtype(object):
            return False
        for entry in data.flat:
            if entry is ABSENT:
                continue
            if not isinstance(entry, Value):
                return False
            spaces.add(id(entry.space))
    return len(spaces) == 1


def _mean_square(sizes: Floats, radii: Floats) -> Bounds:
    """The root mean square of numbers of which each lies within a radius of its size."""
    slack = (len(sizes) + 4) * HALF_ULP
    scale = float(sizes.max()) + float(radii.max())
    if not isfinite(scale):
        return Bounds(0.0, inf)
    if not scale:
        return ZERO
    with np.errstate(over="ignore", under="ignore"):
        low = np.sqrt(np.mean((np.maximum(sizes - radii, 0.0) / scale) ** 2)) * (1 - slack)
        high = np.sqrt(np.mean(((sizes + radii) / scale) ** 2)) * (1 + slack)
        return Bounds(float(low * scale), float(high * scale))


# ------------------------------------------------------------------ predictions


def _predicted(trace: Trace, original: Trace, same: bool) -> Iterator[Predicted]:
    """The next tokens of both, and how far their distributions are apart, if not the `same`."""
    nows, befores = trace.next or (), original.next or ()
    logits = trace.steps.get("logits"), original.steps.get("logits")
    for position, (now, before) in enumerate(zip(nows, befores, strict=True)):
        apart = ZERO if same else None
        if not same and all(worked is not None and not worked.missing for worked in logits):
            apart = _divergence(*(_row(worked, position) for worked in (logits[1], logits[0])))
        proven = now.proven and before.proven
        yield Predicted(position, before.id, now.id, apart, proven)


def _row(worked: Worked | None, position: int) -> list[arb]:
    """The logits of a position as balls."""
    assert worked is not None
    return [_ball(worked.at((position, place))) for place in range(worked.step.shape[-1])]


def _ball(entry: Any) -> arb:
    if isinstance(entry, Value):
        return entry.ball(BITS)
    if isinstance(entry, Enclosure):
        if entry.rad == inf:
            return arb("nan")
        radius = Fraction(entry.rad)
        return _arb(Fraction(entry.mid)) + arb(0, _arb(radius) * (1 + arb(2) ** -60))
    return _arb(entry) if isinstance(entry, Fraction) else arb(float(entry))


def _arb(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


def _divergence(before: list[arb], now: list[arb]) -> Bounds | None:
    """Σ p·ln(p/q): p are the original probabilities, q the new ones."""
    with ctx.workprec(BITS):
        top, peak = (max(row, key=lambda x: float(x.mid())).mid() for row in (before, now))
        weights = [(x - top).exp() for x in before]
        total = sum(weights, arb(0))
        other = sum(((x - peak).exp() for x in now), arb(0))
        mean = sum((w * (x - y) for w, x, y in zip(weights, before, now, strict=True)), arb(0))
        found = mean / total - (total.log() + top) + (other.log() + peak)
        if not found.is_finite():
            return None
        low, high = found.abs_lower(), found.abs_upper()
    least = 0.0 if found.contains(0) else max(float(low) * (1 - HALF_ULP), 0.0)
    return Bounds(least, float(high) * (1 + HALF_ULP) + TINY * bool(high > 0))
