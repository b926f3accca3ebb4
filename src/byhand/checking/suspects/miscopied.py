"""Slips of the pen: a sign, a decimal point, two digits, rows or entries in another order.

Other suspects ask what a mistake would give; these look at what was written, since there are too
many places where a pen can slip.  They need the claimed values beside the expected ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor, log10

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.checking.suspects.scenes import Edit, Scene, Values
from byhand.language import _

MOST_SLIPS = 4  # entries that slipped in one line; more are no slips
LONGEST_AXIS = 1024  # along which another order is looked for
PLACES = 12  # of decimals that are looked at, behind and before the point
IDS = ("given", "argmax")
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Written:
    """The claimed part beside what was expected, and where its entries stand in the step."""

    values: Values
    expected: Values
    allowed: Values
    places: Places

    @classmethod
    def of(cls, scene: Scene) -> _Written | None:
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
        """The entries that are further from what was expected than is allowed."""
        with np.errstate(invalid="ignore"):
            away = np.abs(self.values - self.expected) > self.allowed
        return [tuple(map(int, place)) for place in np.argwhere(away & np.isfinite(self.values))]


def slip_suspects(scene: Scene) -> Iterator[Edit]:
    """Slips in the line that does not follow."""
    written = _Written.of(scene)
    if written is not None:
        yield from _single_entries(scene, written)
        yield from _orders(scene, written)
        yield from _padding(scene, written)
    yield from _decimals(scene)
    if scene.target.op not in IDS:
        draft = scene.draft()
        draft.then(scene.target.address, "scaled", factor=Fraction(-1))
        yield Edit(
            "sign",
            _("it follows if every sign is reversed"),
            _("reverse the sign of this line"),
            draft.made(),
            2,
        )


# ------------------------------------------------------------------------ one entry


def _single_entries(scene: Scene, written: _Written) -> Iterator[Edit]:
    outside = written.outside
    if not 0 < len(outside) <= MOST_SLIPS:
        return
    found = [_slip(scene, written, place) for place in outside]
    slips = [slip for slip in found if slip is not None]
    if len(slips) < len(found):
        return
    kinds = {kind for kind, _factor, _shift, _sentence in slips}
    flat = [int(written.places[place]) for place in outside]
    draft = scene.draft()
    draft.then(
        scene.target.address,
        "adjusted",
        places=tuple(flat),
        factors=tuple(factor for _kind, factor, _shift, _sentence in slips),
        shifts=tuple(shift for _kind, _factor, shift, _sentence in slips),
    )
    first = slips[0]
    shown = np.unravel_index(flat[0], scene.target.shape)
    address = scene.target.address + write_index(tuple(map(int, shown)))
    yield Edit(
        kinds.pop() if len(kinds) == 1 else "slips",
        first[3],
        _("write {value} at {address}").format(
            value=f"{float(written.expected[outside[0]]):.6g}", address=address
        ),
        draft.made(),
        0 if scene.context.by_hand else 2,
    )


def _slip(
    scene: Scene, written: _Written, place: tuple[int, ...]
) -> tuple[str, Fraction, Fraction, str] | None:
    """What makes this entry of what was expected: kind, factor, summand, sentence."""
    claimed, expected = float(written.values[place]), float(written.expected[place])
    allowed = float(written.allowed[place])
    index = np.unravel_index(int(written.places[place]), scene.target.shape)
    at = scene.target.address + write_index(tuple(map(int, index)))
    if abs(claimed + expected) <= allowed:
        sentence = _("it follows if {at} has the wrong sign").format(at=at)
        return "sign-slip", Fraction(-1), Fraction(0), sentence
    for power in (1, -1, 2, -2, 3, -3):
        ten = Fraction(10) ** power
        if abs(claimed - expected * float(ten)) <= allowed * max(1.0, float(ten)):
            sentence = _("it follows if the decimal point of {at} slipped by {count}").format(
                at=at, count=abs(power)
            )
            return "decimal-point", ten, Fraction(0), sentence
    for meant in _digits_exchanged(claimed, scene.context.slack, place):
        if abs(float(meant) - expected) <= allowed:
            sentence = _(
                "it follows if two digits of {at} are exchanged: {claimed} for {meant}"
            ).format(at=at, claimed=f"{claimed:g}", meant=f"{float(meant):g}")
            return "digits-exchanged", Fraction(1), Fraction(repr(claimed)) - meant, sentence
    return None


def _digits_exchanged(
    claimed: float, slack: Values | float, place: tuple[int, ...]
) -> Iterator[Fraction]:
    """The numbers that differ from a decimal by two neighbouring digits in each other's place."""
    width = float(np.broadcast_to(slack, np.shape(slack))[place] if np.ndim(slack) else slack)
    count = _decimal_places(width)
    if count is None:
        return
    text = f"{abs(claimed):.{count}f}"
    digits = [place for place, sign in enumerate(text) if sign != "."]
    for left, right in pairwise(digits):
        if text[left] != text[right]:
            other = list(text)
            other[left], other[right] = other[right], other[left]
            yield Fraction("".join(other)) * (-1 if claimed < 0 else 1)


def _decimal_places(slack: float) -> int | None:
    """How many decimals are written, from half a unit of the last; None where it is no such."""
    if not slack > 0:
        return None
    places = round(-log10(2 * slack))
    near = abs(2 * slack * 10.0**places - 1) < 0.01
    return places if near and 0 <= places <= PLACES else None


# ------------------------------------------------------------------------ another order


def _orders(scene: Scene, written: _Written) -> Iterator[Edit]:
    """The rows of the claim along one axis are those expected, in another order."""
    names = _open_axes(scene, written)
    for axis, size in enumerate(written.values.shape):
        if not 1 < size <= LONGEST_AXIS:
            continue
        order = _matching_order(written, axis)
        if order is None:
            continue
        every = np.arange(np.prod(scene.target.shape, dtype=np.int64), dtype=np.int64)
        every[written.places.ravel()] = np.take(written.places, order, axis=axis).ravel()
        draft = scene.draft()
        draft.then(scene.target.address, "shuffled", order=every)
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
        yield Edit(
            "order",
            sentence,
            _("put the {axis} axis in the model's order").format(axis=name),
            draft.made(),
            1 if scene.context.by_hand else 3,
        )


def _open_axes(scene: Scene, written: _Written) -> tuple[str, ...]:
    """The names of the axes that the claimed part still has."""
    axes, index = scene.target.axes, scene.context.index
    fixed = {place for place, at in enumerate(index) if isinstance(at, int)}
    return tuple(name for place, name in enumerate(axes) if place not in fixed)


def _matching_order(written: _Written, axis: int) -> list[int] | None:
    """For each row of the claim the row that was expected; None where some row has none."""
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


def _padding(scene: Scene, written: _Written) -> Iterator[Edit]:
    """Shares that sum to less than 1 in each row: the padding, which is not here, took the rest."""
    whole = written.values.shape == scene.target.shape
    if not (
        whole and scene.target.address.endswith(".attn.weights") and any(scene.context.padding)
    ):
        return
    with np.errstate(invalid="ignore"):
        left = np.where(np.isfinite(written.values), written.values, 0.0).sum(-1, keepdims=True)
    if not ((left > 0) & (left < 1 + 1e-6)).all() or (left > 0.999).all():
        return
    draft = scene.draft()
    factors = np.broadcast_to(left, scene.target.shape).copy()
    draft.then(scene.target.address, "times_each", factors=factors)
    yield Edit(
        "padding-mask",
        _("it follows if the padding is not masked: it takes up to {share} of a position's weights"
          ).format(share=f"{1 - float(left.min()):.0%}"),
        _("mask the keys of the padding (pass the attention mask)"),
        draft.made(),
        2,
    )  # fmt: skip


# ------------------------------------------------------------------------ decimals


def _decimals(scene: Scene) -> Iterator[Edit]:
    """Digits cut off instead of rounded; lines in between rounded although nobody sees them."""
    slack = np.asarray(scene.context.slack, dtype=np.float64)
    slack = slack[slack > 0]
    if not slack.size or scene.target.op in IDS:
        return
    places = _decimal_places(float(slack.min()))
    if places is None:
        return
    draft = scene.draft()
    draft.then(scene.target.address, "cut_off", places=places)
    yield Edit(
        "digits-cut-off",
        _("it follows if the digits after {places} decimals are cut off instead of rounded").format(
            places=places
        ),
        _("round to the nearest: look at the next digit"),
        draft.made(),
    )
    between = [step for step in scene.region[:-1] if step.op not in IDS]
    for kept in dict.fromkeys((places, max(places - 1, 0), floor(places / 2))):
        if not between:
            break
        draft = scene.draft()
        for step in between:
            draft.then(step.address, "to_places", places=kept)
        yield Edit(
            "rounded-early",
            _("it follows if the lines in between are rounded to {places} decimals").format(
                places=kept
            ),
            _("keep more decimals in the lines in between"),
            draft.made(),
            1,
        )
