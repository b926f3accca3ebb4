"""A norm's gain and bias as its claims show them, channel by channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.checking.differences.closeness import rms
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.product import READ_OFF
from byhand.checking.differences.told import numbered, told
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.mistakes import first, reading
from byhand.checking.suspects.norms import Group
from byhand.checking.suspects.rewritings import Blended, LinesSet, LinesTaken, Mapped
from byhand.language import _
from byhand.plan import WEIGHT

GOOD, WORST = 2.0, 9.0
LEAST = 4  # rows
MAPPED = (
    "squared", "root", "absolute", "exponential", "inverse", "negated",
    "twice", "half",
)  # fmt: skip


def gain_and_bias(difference: Difference, norm: Group) -> tuple[Floats, Floats] | None:
    """The gain and the bias that lead to the target; None where they are not known."""
    around, out = difference.scene.context.around, norm.lines.get("out")
    gain, bias = np.ones(()), np.zeros(())
    if out is None or difference.target is not out or around is None:
        return gain, bias
    for role in ("gain", "bias"):
        if role in out.inputs:
            weight = around.read(out.inputs[role])
            if weight is None:
                return None
            gain, bias = (weight, bias) if role == "gain" else (gain, weight)
    return gain, bias


def gain_readings(difference: Difference, norm: Group) -> Iterator[Reading]:
    """The gain and the bias that the claim shows, where one of them is another than the model's."""
    around, out = difference.scene.context.around, difference.target
    if around is None:
        return
    rows, width = around.read(out.inputs["x"]), out.shape[-1]
    if rows is None or rows.size < LEAST * width:
        return
    x = rows.reshape(-1, width)
    claimed, expected = (
        each.reshape(-1, width) for each in (difference.claimed, difference.expected)
    )
    unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
    room = np.hypot(difference.room, unit * np.abs(difference.claimed)).reshape(-1, width)
    own = {role: around.read(out.inputs[role]) for role in ("gain", "bias") if role in out.inputs}
    if "gain" not in own or any(each is None for each in own.values()):
        return
    gain, bias = own["gain"], own.get("bias")
    assert gain is not None
    shift = np.zeros(width) if bias is None else bias
    for role, acts, sure in _acting(x, claimed, expected, room, gain, shift):
        sure = np.hypot(sure, unit * np.abs(acts))
        if role == "gain":
            yield from _recognised(difference, "gain", gain, acts, sure)
        elif bias is not None:
            yield from _recognised(difference, "bias", bias, acts, sure)
        return


def _acting(
    x: Floats, claimed: Floats, expected: Floats, room: Floats, gain: Floats, bias: Floats
) -> Iterator[tuple[str, Floats, Floats]]:
    """The gain that explains the claim with the model's bias, or the bias with its gain."""
    off = claimed - expected
    weights = 1 / np.square(room)
    shift = (off * weights).sum(axis=0) / weights.sum(axis=0)
    if _fine((off - shift) / room, off / room):
        yield "bias", bias + shift, 1 / np.sqrt(weights.sum(axis=0))
    sizes = (np.square(x) * weights).sum(axis=0)
    with np.errstate(all="ignore"):
        moved = (x * off * weights).sum(axis=0) / sizes
    if np.isfinite(moved).all() and _fine((off - x * moved) / room, off / room):
        yield "gain", gain + moved, 1 / np.sqrt(sizes)


def _fine(left: Floats, before: Floats) -> bool:
    now = rms(left)
    return bool(now <= GOOD and np.abs(left).max(initial=0.0) <= WORST and now * 1.5 < rms(before))


def _alike(acts: Floats, values: Floats, sure: Floats, own: Floats) -> bool:
    floor = 2.0**-22 * np.abs(values)
    left = (acts - values) / np.maximum(sure, floor)
    return bool(np.isfinite(left).all() and rms(left) <= GOOD and np.abs(left).max() <= WORST)


def _recognised(
    difference: Difference, role: str, own: Floats, acts: Floats, sure: Floats
) -> Iterator[Reading]:
    """What the gain or the bias acts as: a function of it, another's, moved, in some channels."""
    scene, out = difference.scene, difference.target
    name = out.inputs[role].removeprefix(WEIGHT)
    change = _("use {name} as the file has it")
    for how in MAPPED:
        made = Mapped(how)
        if _alike(acts, made(own), sure, own):
            said = _("it follows if {name} acts as {how}; the model takes it as it is")
            make = first(role, "rewritten", rewriting=made)
            yield difference.edit("norm-" + role, said, change, make, unlikely=READ_OFF, name=name,
                                  how=_mapped(how, role))  # fmt: skip
            return
    for by in (1, -1, 2, -2):
        if _alike(acts, np.roll(own, by), sure, own):
            said = _("it follows if {name} is moved by {by} channels; the model takes it as it is")
            order = LinesTaken(0, np.roll(np.arange(own.size), by))
            make = first(role, "rewritten", rewriting=order)
            yield difference.edit(
                "norm-" + role, said, change, make, unlikely=READ_OFF, name=name, by=by
            )
            return
    others = [each for each, tensor in scene.model.weights.items()
              if tensor.shape == own.shape and each != name]  # fmt: skip
    around = scene.context.around
    for other in others if around is not None else ():
        theirs = around.read(WEIGHT + other) if around is not None else None
        if theirs is not None and _alike(acts, theirs, sure, own):
            said = _("it follows if {other} stands in place of {own}")
            make = reading(**{role: WEIGHT + other})
            yield difference.edit("weight-swapped", said, _("use {own} here, not {other}"), make,
                                  own=name, other=other)  # fmt: skip
            return
        if theirs is not None and _alike(acts, (own + theirs) / 2, sure, own):
            said = _("it follows if {name} is averaged with {other}; the model takes it alone")
            make = first(role, "rewritten", rewriting=Blended(theirs, 0.5))
            yield difference.edit("norm-" + role, said, change, make, name=name, other=other)
            return
    yield from _some(difference, role, own, acts, sure, name)


def _mapped(how: str, role: str) -> str:
    words: dict[str, str] = {
        "squared": _("its square"), "root": _("its root"), "absolute": _("its size"),
        "exponential": _("e to its power"), "plus one": _("1 + {role}").format(role=role),
        "minus one": _("{role} - 1").format(role=role), "inverse": _("1/{role}").format(role=role),
        "negated": _("its negative"), "twice": _("twice itself"), "half": _("half of itself"),
    }  # fmt: skip
    return words[how]


def _some(
    difference: Difference, role: str, own: Floats, acts: Floats, sure: Floats, name: str
) -> Iterator[Reading]:
    """Some channels whose gain or bias is another: 1 or 0, or what was read off the claim."""
    apart = np.abs(acts - own) > 6 * np.maximum(sure, 2.0**-22 * np.abs(own))
    channels = np.flatnonzero(apart)
    if not len(channels) or (
        len(channels) == own.size and _alike(acts, np.ones(own.size), sure, own)
    ):
        return  # a gain that is left out is on the list of suspects
    plain = 1.0 if role == "gain" else 0.0
    values, fitted = acts[channels], len(channels)
    words: dict[str, Any] = {"name": name, "places": numbered(channels.tolist()),
             "acts": told(float(values[0]), float(sure[channels[0]])),
             "own": f"{own[channels[0]]:.6g}"}  # fmt: skip
    said = _("it follows if {name} acts as {acts}, … at channels {places}; the file has {own}, …")
    if len(channels) == 1:
        said = _("it follows if {name}[{places}] acts as {acts}; the file has {own}")
    for constant in (plain, 0.0, -1.0, 1.0):
        fixed = np.full(len(channels), constant)
        if _alike(values, fixed, sure[channels], own):
            values, fitted = fixed, 0
            words["acts"] = f"{constant:g}"
            said = _(
                "it follows if {name} is {acts} at channels {places}; the file has other numbers"
            )
            break
    if fitted > own.size // 2:
        yield Description(_("{name} acts as other numbers: {acts}, … in place of {own}, …").format(
            **words), 4)  # fmt: skip
    yield difference.edit(
        "norm-" + role, said, _("look for what changes {name} when the weights are loaded"),
        first(role, "rewritten", rewriting=LinesSet(0, channels, values)), fitted=fitted,
        unlikely=READ_OFF + bool(fitted), **words)  # fmt: skip
