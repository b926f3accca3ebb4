"""Slips of the pen in a line: a sign, a decimal point, two digits, entries in another order.

Other suspects work out what a mistake would give.  These start from the written numbers, since a
pen can slip in too many places to try.  They need the claimed and the expected values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from math import floor, log10

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.checking.suspects.mistakes import Mistake, made, then
from byhand.checking.suspects.scenes import Edit, Scene, Values
from byhand.language import _
from byhand.plan import Step

MOST_SLIPS = 4  # entries of one line that may have slipped
LONGEST_AXIS = 1024  # longest axis that is searched for another order
PLACES = 12  # decimals considered, after and before the point
IDS = ("given", "argmax")
Places = npt.NDArray[np.int64]
Slip = tuple[str, Fraction, Fraction, str]  # kind, factor, summand, sentence


_TWICE: dict[Fraction, Callable[[], str]] = {
    Fraction(2): lambda: _("it follows if {at} is twice as large as it should be"),
    Fraction(1, 2): lambda: _("it follows if {at} is half as large as it should be"),
}


@dataclass(frozen=True)
class Written:
    """The claimed part, the expected values, and the index of the part in the step."""

    values: Values
    expected: Values
    allowed: Values
    places: Places

    @classmethod
    def of(cls, scene: Scene) -> Written | None:
        """The claimed part of a scene; None where it is no line of numbers."""
        context, shape = scene.context, scene.target.shape
        values, expected = context.values, context.expected
        if values is None or expected is None or scene.target.op in IDS:
            return None
        every = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int64).reshape(shape)
        places = np.asarray(every[context.index] if context.index else every)
        if values.shape != expected.shape or values.shape != places.shape or not values.size:
            return None
        allowed = np.broadcast_to(0.0 if context.allowed is None else context.allowed, values.shape)
        return cls(values, expected, allowed, places)

    @property
    def outside(self) -> list[tuple[int, ...]]:
        """The first entries that are further from the expected values than is allowed."""
        return self.all_outside[: MOST_SLIPS + 1]

    @property
    def all_outside(self) -> list[tuple[int, ...]]:
        """All such entries."""
        with np.errstate(invalid="ignore"):
            away = np.abs(self.values - self.expected) > self.allowed
        places = np.flatnonzero(away & np.isfinite(self.values))
        if not away.ndim:
            return [()] * len(places)
        return list(zip(*map(np.ndarray.tolist, np.unravel_index(places, away.shape)), strict=True))

    def text(self, scene: Scene, place: tuple[int, ...]) -> str:
        """The expected value of an entry, with as many decimals as are asked for."""
        slack = np.asarray(scene.context.slack, dtype=np.float64)
        unit = float(np.broadcast_to(slack, self.values.shape)[place])
        count = decimal_places(unit) if scene.context.by_hand else None
        value = float(self.expected[place])
        return f"{value:.6g}" if count is None else f"{value:.{count}f}"

    def address(self, scene: Scene, place: tuple[int, ...]) -> str:
        """The address of an entry of the claimed part."""
        index = np.unravel_index(int(self.places[place]), scene.target.shape)
        return scene.target.address + write_index(tuple(map(int, index)))


def slip_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with slips of the pen in the line that does not follow."""
    written = Written.of(scene)
    if written is not None:
        orders = _orders(scene, written) if scene.context.by_hand else ()  # else: `differences`
        mistakes = (_single_entries(scene, written), orders, _padding(scene, written))
        yield from made(scene, [scene.target], *chain(*mistakes))
    yield from _decimals(scene)
    if scene.target.op not in IDS:
        yield from made(scene, [scene.target], Mistake(
            "sign", _("it follows if every sign is reversed"), _("reverse the sign of this line"),
            then("scaled", factor=Fraction(-1)), 2))  # fmt: skip


# ------------------------------------------------------------------------ one entry


def _single_entries(scene: Scene, written: Written) -> Iterator[Mistake[Step]]:
    outside = written.outside
    if not 0 < len(outside) <= MOST_SLIPS:
        return
    slips = [slip for place in outside if (slip := _slip(scene, written, place))]
    if len(slips) < len(outside):
        return
    if len(slips) == written.values.size > 1 and {kind for kind, *_rest in slips} == {"sign-slip"}:
        return  # every sign is reversed: that is told as one mistake
    kinds, factors, shifts, sentences = zip(*slips, strict=True)
    places = tuple(int(written.places[place]) for place in outside)
    value = written.text(scene, outside[0])
    yield Mistake(
        kinds[0] if len(set(kinds)) == 1 else "slips",
        sentences[0],
        _("write {value} at {address}").format(
            value=value, address=written.address(scene, outside[0])),
        then("adjusted", places=places, factors=factors, shifts=shifts),
        _unlikely(scene, {*kinds}),
    )  # fmt: skip


def _unlikely(scene: Scene, kinds: set[str]) -> int:
    """How unlikely slips are: a wrong digit explains many numbers, so it comes last."""
    return 3 if "wrong-digit" in kinds else 0 if scene.context.by_hand else 2


def _slip(scene: Scene, written: Written, place: tuple[int, ...]) -> Slip | None:
    """The slip that makes the claimed entry of the expected one: kind, factor, summand, words."""
    claimed, expected = float(written.values[place]), float(written.expected[place])
    allowed = float(written.allowed[place])
    at = written.address(scene, place)
    if abs(claimed + expected) <= allowed:
        sentence = _("it follows if {at} has the wrong sign").format(at=at)
        return "sign-slip", Fraction(-1), Fraction(0), sentence
    told = min(abs(claimed), abs(expected)) > 2 * allowed  # else it would be any small number
    for power in (1, -1, 2, -2, 3, -3) if told else ():
        ten = Fraction(10) ** power
        if abs(claimed - expected * float(ten)) <= allowed * max(1.0, float(ten)):
            sentence = _("it follows if the decimal point of {at} slipped by {count}").format(
                at=at, count=abs(power)
            )
            return "decimal-point", ten, Fraction(0), sentence
    in_a_row = scene.context.by_hand and written.values.size > 1  # whose other numbers are right
    for factor, said in _TWICE.items() if told and in_a_row else ():
        if abs(claimed - expected * float(factor)) <= allowed * max(1.0, float(factor)):
            return "doubled", factor, Fraction(0), said().format(at=at)
    for meant in _digits_exchanged(claimed, scene.context.slack, place):
        if abs(float(meant) - expected) <= allowed:
            sentence = _(
                "it follows if two digits of {at} are exchanged: {claimed} for {meant}"
            ).format(at=at, claimed=f"{claimed:g}", meant=f"{float(meant):g}")
            return "digits-exchanged", Fraction(1), Fraction(repr(claimed)) - meant, sentence
    return _repeated(scene, written, place) or _one_digit(scene, written, place)


def _repeated(scene: Scene, written: Written, place: tuple[int, ...]) -> Slip | None:
    """The number of another entry of the row, written a second time."""
    claimed, expected = float(written.values[place]), float(written.expected[place])
    if not scene.context.by_hand or not place or len(written.all_outside) > 1:
        return None
    row = written.expected[place[:-1]]
    same = np.flatnonzero(np.abs(row - claimed) <= written.allowed[place])
    if len(same) != 1 or same[0] == place[-1]:
        return None
    sentence = _("it follows if {at} repeats {other}").format(
        at=written.address(scene, place),
        other=written.address(scene, (*place[:-1], int(same[0]))),
    )
    return "repeated", Fraction(1), Fraction(claimed) - Fraction(expected), sentence


def _one_digit(scene: Scene, written: Written, place: tuple[int, ...]) -> Slip | None:
    """One digit that is wrong, not the last: a last one may be off for many reasons."""
    if not scene.context.by_hand or written.values.size == 1:
        return None
    claimed, expected = float(written.values[place]), float(written.expected[place])
    other = written.text(scene, place).lstrip("-")
    count = len(other.partition(".")[2])
    one = f"{abs(claimed):.{count}f}"
    if not count or claimed * expected <= 0:
        return None
    wrong = [at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    if len(one) != len(other) or len(wrong) != 1 or wrong[0] == len(one) - 1:
        return None
    sentence = _("it follows if one digit of {at} is wrong: {claimed} for {meant}").format(
        at=written.address(scene, place),
        claimed=f"{claimed:.{count}f}",
        meant=f"{expected:.{count}f}",
    )
    return "wrong-digit", Fraction(1), Fraction(claimed) - Fraction(expected), sentence


def _digits_exchanged(
    claimed: float, slack: Values | float, place: tuple[int, ...]
) -> Iterator[Fraction]:
    """The numbers that result from a decimal by exchanging two neighbouring digits."""
    width = float(np.broadcast_to(slack, np.shape(slack))[place] if np.ndim(slack) else slack)
    count = decimal_places(width)
    if count is None:
        return
    text = f"{abs(claimed):.{count}f}"
    digits = [place for place, sign in enumerate(text) if sign != "."]
    for left, right in pairwise(digits):
        if text[left] != text[right]:
            other = list(text)
            other[left], other[right] = other[right], other[left]
            yield Fraction("".join(other)) * (-1 if claimed < 0 else 1)


def decimal_places(slack: float) -> int | None:
    """The number of decimals, from half a unit of the last place; None if it is no such unit."""
    if not slack > 0:
        return None
    places = round(-log10(2 * slack))
    near = abs(2 * slack * 10.0**places - 1) < 0.01
    return places if near and 0 <= places <= PLACES else None


# ------------------------------------------------------------------------ another order


def _orders(scene: Scene, written: Written) -> Iterator[Mistake[Step]]:
    """Mistakes in which the claim's rows along an axis are the expected ones in another order."""
    fixed = {place for place, at in enumerate(scene.context.index) if isinstance(at, int)}
    names = [name for place, name in enumerate(scene.target.axes) if place not in fixed]
    for axis, size in enumerate(written.values.shape):
        if not 1 < size <= LONGEST_AXIS:
            continue
        order = _matching_order(written, axis)
        if order is None:
            continue
        every = np.arange(np.prod(scene.target.shape, dtype=np.int64), dtype=np.int64)
        every[written.places.ravel()] = np.take(written.places, order, axis=axis).ravel()
        moved = [place for place, other in enumerate(order) if place != other]
        name = names[axis] if axis < len(names) else str(axis)
        if len(moved) == 2:
            sentence = _("it follows if {axis} {a} and {b} are exchanged").format(
                axis=name, a=moved[0], b=moved[1]
            )
        else:
            sentence = _("it follows if the {axis} axis stands in another order ({order})").format(
                axis=name, order=_shown(order)
            )
        change = _("put the {axis} axis in the model's order").format(axis=name)
        yield Mistake("order", sentence, change, then("shuffled", order=every), 1)


def _matching_order(written: Written, axis: int) -> list[int] | None:
    """The expected row of each row of the claim; None if some row has none."""
    values, expected, allowed = (
        np.moveaxis(part, axis, 0).reshape(part.shape[axis], -1)
        for part in (written.values, written.expected, written.allowed)
    )
    order: list[int] = []
    for row in values:
        with np.errstate(invalid="ignore"):
            fits = ~(np.abs(row - expected) > 2 * allowed).any(axis=1)
        candidates = np.flatnonzero(fits)
        if not candidates.size:
            return None
        free = [int(place) for place in candidates if place not in order]
        here = len(order)
        order.append(here if here in free else (free or [int(candidates[0])])[0])
    return None if order == list(range(len(order))) or len(set(order)) < len(order) else order


def _shown(order: list[int], most: int = 8) -> str:
    return ", ".join(map(str, order[:most])) + (", …" if len(order) > most else "")


def _padding(scene: Scene, written: Written) -> Iterator[Mistake[Step]]:
    """The mistake of attention to padding: each row sums to less than 1, padding has the rest."""
    whole = written.values.shape == scene.target.shape
    if not (
        whole and scene.target.address.endswith(".attn.weights") and any(scene.context.padding)
    ):
        return
    with np.errstate(invalid="ignore"):
        left = np.where(np.isfinite(written.values), written.values, 0.0).sum(-1, keepdims=True)
    if not ((left > 0) & (left < 1 + 1e-6)).all() or (left > 0.999).all():
        return
    yield Mistake(
        "padding-mask",
        _("it follows if the padding is not masked: it takes up to {share} of a position's weights"
          ).format(share=f"{1 - float(left.min()):.0%}"),
        _("mask the keys of the padding (pass the attention mask)"),
        then("times_each", factors=np.broadcast_to(left, scene.target.shape).copy()),
        2,
    )  # fmt: skip


# ------------------------------------------------------------------------ decimals


def _decimals(scene: Scene) -> Iterator[Edit]:
    """Edits with digits cut off instead of rounded, or with unclaimed lines rounded."""
    slack = np.asarray(scene.context.slack, dtype=np.float64)
    slack = slack[slack > 0]
    if not slack.size or scene.target.op in IDS:
        return
    places = decimal_places(float(slack.min()))
    if places is None:
        return
    yield from made(scene, [scene.target], Mistake(
        "digits-cut-off",
        _("it follows if the digits after {places} decimals are cut off instead of rounded"),
        _("round to the nearest: look at the next digit"),
        then("cut_off", places=places)), places=places)  # fmt: skip
    between = [step for step in scene.region[:-1] if step.op not in IDS]
    for kept in dict.fromkeys((places, max(places - 1, 0), floor(places / 2))):
        yield from made(scene, between, Mistake(
            "rounded-early",
            _("it follows if the lines in between are rounded to {places} decimals"),
            _("keep more decimals in the lines in between"),
            then("to_places", places=kept), 1), places=kept)  # fmt: skip
