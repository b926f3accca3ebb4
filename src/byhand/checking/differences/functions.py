"""Differences of a function: the claim is a function of its input alone, but another one.

A family of curves is fitted to the claimed numbers over their inputs, entry by entry, and its
constants are recognised.  Where no known curve fits, the function is described.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.checking.differences.closeness import Fitted, rms
from byhand.checking.differences.constants import Constant, recognised, shown
from byhand.checking.differences.difference import (
    Description,
    Difference,
    Floats,
    Reading,
    Truths,
)
from byhand.checking.differences.product import READ_OFF, good
from byhand.checking.differences.told import numbered
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.curves import FAMILIES, Curve
from byhand.checking.suspects.mlps import named
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

SAMPLE = 1500  # entries that a curve is fitted to
MANY = 20_000  # entries that are put in order
LEAST = 24  # entries that tell a function
TURNS = 12  # of a fit
USUAL = 1.5  # usual errors that a curve with an unknown constant leaves at most
ALIKE = 1.2  # curves that leave up to so many times the least fit alike
KNOWN = ("gelu", "gelu_tanh", "silu", "relu", "identity", "relu_squared", "quick_gelu")
ANYWHERE = [
    "soft_cap",
    "tanh",
    "sigmoid",
    "relu",
    "absolute",
    "at_most",
    "at_least",
    "limited",
    "squared",
    "exponential",
    "power",
    "softplus",
    "silu",
    "gelu",
    "negated",
]
PLAIN = [
    "tanh",
    "sigmoid",
    "softplus",
    "mish",
    "relu6",
    "hard_swish",
    "hard_sigmoid",
    "selu",
    "softsign",
    "absolute",
    "squared",
    "exponential",
    "sine",
]
FITTED = [
    "swish",
    "gelu_erf",
    "leaky",
    "elu",
    "soft_cap",
    "at_most",
    "limited",
    "gelu_tanh",
    "scaled_swish",
]
WITH_OWN = ["scaled", "shifted", "at_most", "at_least", "limited", "soft_cap", "power"]

Sample = tuple[Floats, Floats, Floats, Floats]  # inputs, claimed, room, expected


@dataclass(frozen=True, eq=False)
class Bent:
    """Inputs and claimed outputs of a function, entry by entry."""

    difference: Difference
    step: Step
    x: Floats
    claimed: Floats
    expected: Floats
    room: Floats
    where: Truths  # the entries that tell
    after: bool  # whether x is what follows, so that the function comes after the step

    @classmethod
    def of(cls, difference: Difference) -> Bent | None:
        """The function that a line is of its input; of what follows, where it is no activation."""
        target, around = difference.target, difference.scene.context.around
        if not difference.whole or around is None or target.op in ("embed", "argmax", "softmax"):
            return None
        after = target.op != "activate"
        x = difference.expected if after else around.read(target.inputs["x"])
        if x is None or x.shape != difference.expected.shape:
            return None
        unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
        with np.errstate(all="ignore"):
            sizes = np.square(difference.claimed) + 0.25 * np.square(0.0 if after else x)
            room = np.hypot(difference.room, unit * np.sqrt(sizes))
        where = difference.finite & np.isfinite(x) & np.isfinite(room)
        if where.sum() < LEAST:
            return None
        return cls(
            difference, target, x, difference.claimed, difference.expected, room, where, after
        )

    def sample(self, part: Truths) -> Sample:
        """Some entries of a part, over the whole range of x."""
        told = np.broadcast_to(part, self.where.shape).reshape(-1) & self.where.reshape(-1)
        flat = np.where(told, self.claimed.reshape(-1), 0.0)
        ends = (int(flat.argmin()), int(flat.argmax()))
        step = max(1, int(np.count_nonzero(told)) // MANY)
        at = np.unique(np.concatenate((np.flatnonzero(told)[::step], ends)))
        at = at[told[at]]
        order = at[np.argsort(self.x.reshape(-1)[at], kind="stable")]
        if len(order) > SAMPLE:
            order = order[np.linspace(0, len(order) - 1, SAMPLE).astype(np.intp)]
        parts = (
            each.reshape(-1)[order] for each in (self.x, self.claimed, self.room, self.expected)
        )
        x, claimed, room, expected = parts
        return x, claimed, room, expected

    def left(self, curve: Curve, part: Truths) -> float | None:
        """What a curve leaves, in usual errors, if it is as near to the claim as rounding is."""
        at = part & self.where
        x, claimed, room = self.x[at], self.claimed[at], self.room[at]
        with np.errstate(all="ignore"):
            left = (curve(x) - claimed) / room
            before = (self.expected[at] - claimed) / room
        fine = bool(np.isfinite(left).all()) and good(left, before)
        return rms(left) if fine else None


def function_readings(difference: Difference) -> Iterator[Reading]:
    """The function of its input alone that the claim is, all over or in a part."""
    bent = Bent.of(difference)
    if bent is None or not difference.wrong.any():
        return
    for part, words in _parts(difference):
        x, claimed, room, expected = bent.sample(part)
        if len(x) < LEAST or not _is_function(x, claimed, expected):
            continue
        found = list(_curves(bent, part, words, (x, claimed, room, expected)))
        yield from found
        if found:
            return
        if not bent.after and not words:
            yield _described(x, claimed, expected)


def _parts(difference: Difference) -> Iterator[tuple[Truths, str]]:
    """The whole line; the slices that hold all that differs, where they are fewer."""
    wrong = difference.wrong
    yield np.ones(wrong.shape, dtype=bool), ""
    for axis, name in enumerate(difference.target.axes):
        rest = tuple(other for other in range(wrong.ndim) if other != axis)
        some = np.asarray(wrong.any(axis=rest))
        if some.mean() <= 0.75:
            shape = [1] * wrong.ndim
            shape[axis] = some.size
            places = numbered(np.flatnonzero(some).tolist())
            yield np.broadcast_to(some.reshape(shape), wrong.shape), f"{name} {places}"


def _is_function(x: Floats, y: Floats, expected: Floats) -> bool:
    """Whether neighbours in x are neighbours in y, about as much as what follows is."""
    if len(x) < LEAST or float(np.ptp(x)) == 0:
        return False

    def bumps(values: Floats) -> float:
        width = x[2:] - x[:-2]
        with np.errstate(all="ignore"):
            share = np.where(width > 0, (x[1:-1] - x[:-2]) / width, 0.5)
            between = values[:-2] + share * (values[2:] - values[:-2])
            size = rms(values - values.mean())
            return rms(values[1:-1] - between) / size if size else np.inf

    return bumps(y) <= max(0.1, 4 * bumps(expected))


# ------------------------------------------------------------------------ curves


def _curves(bent: Bent, part: Truths, words: str, sample: Sample) -> Iterator[Reading]:
    """The curve with the fewest unknown constants among those that fit about as well."""
    if not bent.after and not words and _listed(bent, part):
        return
    found = []
    for curve, written, unknown in _candidates(bent, words, sample):
        left = bent.left(curve, part)
        if left is not None and (not unknown or left < USUAL):
            found.append((left, unknown, len(curve.constants), curve, written))
    if not found:
        return
    near = min(each[0] for each in found) * ALIKE + 0.05
    alike = sorted((each for each in found if each[0] <= near), key=lambda each: each[1:3])
    _left, unknown, _count, curve, written = alike[0]
    if unknown > 1:  # many curves would fit with as many constants
        said = _("it is a function of its input alone, as near to {curve} as rounding is")
        yield Description(said.format(curve=written), 4)
        return
    yield _edit(bent, curve, written, unknown, part, words)


def _listed(bent: Bent, part: Truths) -> bool:
    """Whether it is an activation that the list of suspects has."""
    known = (Curve(kind, FAMILIES[kind].usual) for kind in KNOWN)
    return any(bent.left(curve, part) is not None for curve in known)


def _candidates(bent: Bent, words: str, sample: Sample) -> Iterator[tuple[Curve, str, int]]:
    """Curves that may fit, without constants first; with how many constants are not known."""
    own = bent.step.attributes.get("kind")
    if bent.after:
        for family in ANYWHERE:
            yield from _fitted(bent, Curve(family, FAMILIES[family].usual), sample)
        return
    for family in PLAIN if not words else (*PLAIN, *KNOWN):
        if family != own and family in FAMILIES and not FAMILIES[family].usual:
            yield Curve(family), FAMILIES[family].written, 0
    for family in FITTED:
        yield from _fitted(bent, Curve(family, FAMILIES[family].usual), sample)
    if own is None:
        return
    yield Curve("identity", within=own, of=own), _("{own} of {own}").format(own=own), 0
    for family in ("squared", "absolute", "negated"):
        yield Curve(family, of=own), f"{own}({FAMILIES[family].written})", 0
        yield Curve(family, within=own), _of(FAMILIES[family].written, own), 0
    for family in WITH_OWN:
        for curve in (Curve(family, FAMILIES[family].usual, of=own),
                      Curve(family, FAMILIES[family].usual, within=own)):  # fmt: skip
            yield from _fitted(bent, curve, sample)


def _fitted(bent: Bent, curve: Curve, sample: Sample) -> Iterator[tuple[Curve, str, int]]:
    """The curve with its constants fitted to the sample and recognised."""
    family = FAMILIES[curve.family]
    if not family.usual:
        yield curve, _written(curve, []), 0
        return
    x, claimed, room, expected = sample
    best: tuple[float, Floats, Floats] | None = None
    before = rms((expected - claimed) / room)
    data = {"at_most": claimed.max(), "at_least": claimed.min(), "limited": np.abs(claimed).max()}
    starts = (
        [(float(data[curve.family]),)] if curve.family in data else (family.usual, *family.starts)
    )
    for start in starts:
        found = _least_squares(curve, np.array(start), x, claimed, room)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is None or not best[0] * 2 < before:
        return
    numbers, names, unknown = [], [], 0
    for value, sure in zip(best[1].tolist(), best[2].tolist(), strict=True):
        fitted = Fitted(value, sure * max(1.0, best[0]))
        constant = recognised(fitted, bent.difference.scene)
        if fitted.off > 0.1 * max(abs(value), 0.1):
            return
        numbers.append(value if constant is None else constant.value)
        names.append(_told(fitted, constant))
        unknown += constant is None
    known = Curve(curve.family, tuple(numbers), curve.within, curve.of)
    yield known, _written(known, names), unknown


def _told(fitted: Fitted, constant: Constant | None) -> str:
    """A constant in a formula: as it is known, unless that is long."""
    if constant is None:
        return shown(fitted)
    return f"{constant.value:g}" if " " in constant.written else constant.written


def _written(curve: Curve, names: list[str]) -> str:
    said = FAMILIES[curve.family].written.format(*names)
    if curve.of is not None:
        return f"{curve.of}({said})"
    return said if curve.within is None else _of(said, curve.within)


def _of(said: str, own: str) -> str:
    """A formula with the activation in place of x."""
    return re.sub(r"\bx\b", f"{own}(x)", said)


def _least_squares(
    curve: Curve, start: Floats, x: Floats, claimed: Floats, room: Floats
) -> tuple[float, Floats, Floats] | None:
    """Gauss and Newton's fit of the constants: what is left, the constants, how sure they are."""

    def made(numbers: Floats) -> Floats:
        return Curve(curve.family, tuple(numbers.tolist()), curve.within, curve.of)(x)

    numbers, best = start, None
    with np.errstate(all="ignore"):
        for _turn in range(TURNS):
            own = made(numbers)
            left = (claimed - own) / room
            now = rms(left)
            if not np.isfinite(now):
                return best
            steps = 1e-5 * np.maximum(np.abs(numbers), 1e-2)
            slopes = np.stack([
                (made(numbers + step * unit) - own) / (step * room)
                for step, unit in zip(steps, np.eye(len(numbers)), strict=True)
            ], axis=1)  # fmt: skip
            if not np.isfinite(slopes).all():
                return best
            squares = slopes.T @ slopes
            try:
                inverse = np.linalg.inv(squares)
            except np.linalg.LinAlgError:
                return best
            if best is None or now < best[0]:
                best = (now, numbers, np.sqrt(np.abs(np.diag(inverse))))
            move = inverse @ (slopes.T @ left)
            numbers = numbers + np.clip(move, -1 - np.abs(numbers), 1 + np.abs(numbers))
            if not np.isfinite(numbers).all():
                return best
    return best


# ------------------------------------------------------------------------ words


def _edit(
    bent: Bent, curve: Curve, written: str, unknown: int, part: Truths, words: str
) -> Reading:
    difference, own = bent.difference, bent.step.attributes.get("kind")
    if bent.after:
        said = _("it follows if the result x becomes {other}; the model leaves it as it is")
        change = _("look for what makes {other} of x, here or before")
    else:
        said = _("it follows if the activation is {other}; the model says {own}")
        change = _("use {own}, with its own constants")
    if words:
        said = _("it follows if, at {words}, the function is {other}; the model says {own}")
    own = named(own) if own else _("none")
    make = partial(_bend, curve=curve, after=bent.after, part=None if not words else np.array(part))
    return difference.edit("curve", said, change, make, fitted=unknown, other=written, own=own,
                           unlikely=READ_OFF + bool(words), words=words)  # fmt: skip


def _bend(draft: Draft, step: Step, *, curve: Curve, after: bool, part: Truths | None) -> None:
    """Puts the curve in place of the step, or after it; in a part of it alone."""
    at = step.address
    own = draft.aside(at) if after or part is not None else ""
    x = own if after else step.inputs["x"]
    if part is None:
        draft.change(at, op="bent", inputs={"x": x}, only=True, curve=curve)
        return
    new = draft.write(at, "bent", {"x": x}, step.axes, step.shape, curve=curve)
    draft.change(at, op="patched", inputs={"x": own, "y": new}, only=True, where=part)


def _described(x: Floats, claimed: Floats, expected: Floats) -> Description:
    """The function at a few inputs, beside the model's."""
    places = [place for place in (-2.0, -1.0, 1.0, 2.0) if x[0] <= place <= x[-1]][:2]
    places = places or [float(x[0]), float(x[-1])]
    told = "; ".join(
        _("at {x} it gives {claimed}, the model {expected}").format(
            x=f"{place:.3g}",
            claimed=f"{np.interp(place, x, claimed):.3g}",
            expected=f"{np.interp(place, x, expected):.3g}",
        )
        for place in places
    )
    return Description(_("it is a function of its input alone: {told}").format(told=told), 3)
