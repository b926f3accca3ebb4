"""Differences that are a sum: something known is added, left out, added again, or with a factor.

The difference is fitted by one or two terms out of everything of its shape that was worked out
before: the line's own inputs, older streams, outputs of sublayers and norms, biases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from byhand.checking.differences.axes import Part
from byhand.checking.differences.closeness import Fitted, rms
from byhand.checking.differences.constants import Constant, recognised, shown
from byhand.checking.differences.difference import Description, Difference, Floats, Reading, Truths
from byhand.checking.differences.places import Place, places
from byhand.checking.differences.product import READ_OFF, Places, good
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import WEIGHT, Step

SAMPLE = 4096  # entries that a sum is fitted to
LEAST = 12  # entries
FEWEST = 4  # positions that share a row
MOST_TERMS = 80
ENOUGH = 1.5  # usual errors that a sum with an unknown factor leaves at most
UNREAD = ("given", "argmax", "embed_ids")


@dataclass(frozen=True, eq=False)
class Term:
    """A line of the same shape that may be added."""

    address: str
    values: Floats


def sum_readings(difference: Difference) -> Iterator[Reading]:
    """The terms that are added or left out, all over or in a part."""
    part = Part.of(difference)
    if part is None or not difference.whole or difference.target.stage != "forward":
        return
    if difference.target.op in UNREAD or not difference.wrong.any():
        return
    if difference.target.op != "linear":
        found = list(_same_row(difference))
        yield from found
        if found:
            return
    terms = _terms(difference)
    everywhere = Place(np.ones(difference.wrong.shape, dtype=bool), "")
    for place in (everywhere, *places(difference, part)):
        found = list(_fitted(difference, terms, place))
        yield from found
        if found:
            return


def _same_row(difference: Difference) -> Iterator[Reading]:
    """The same row of numbers, added at every position."""
    if len(difference.target.shape) != 2 or not difference.finite.all():
        return
    count = len(difference.claimed)
    if count < FEWEST:
        return
    room = _room(difference, (), difference.finite)
    with np.errstate(all="ignore"):
        off = difference.claimed - difference.expected
        weights = 1 / np.square(room)
        row = (off * weights).sum(axis=0) / weights.sum(axis=0)
        left, before = (off - row) / room, off / room
    if not np.isfinite(left).all() or not good(left, before):
        return
    sure = 1 / np.sqrt(weights.sum(axis=0))
    if np.ptp(row) <= 8 * float(sure.max()):
        return  # one number: a shift
    name = _known_row(difference, row, sure)
    numbers = ", ".join(f"{each:.4g}" for each in row[:3])
    said = _("it follows if {name} is added at every position; the model adds nothing here")
    if name is None:
        said = _("it follows if the same row ({numbers}, …) is added at every position; the model "
                 "adds nothing here")  # fmt: skip
        told = _("every position differs by the same row of numbers: {numbers}, …")
        yield Description(told.format(numbers=numbers), 4)
    yield difference.edit(
        "row-added", said, _("look for a row that is added to every position here"),
        then("plus_each", summands=row[None], off=float(sure.max())),
        fitted=0 if name else row.size, unlikely=READ_OFF + 1, name=name,
        numbers=numbers)  # fmt: skip


def _known_row(difference: Difference, row: Floats, sure: Floats) -> str | None:
    """The weight, or the row of a table, that a row is."""
    scene, around = difference.scene, difference.scene.context.around
    for name, tensor in scene.model.weights.items():
        small = tensor.shape == row.shape or (len(tensor.shape) == 2 and tensor.shape[0] <= SAMPLE
                                              and tensor.shape[1:] == row.shape)  # fmt: skip
        values = around.read(WEIGHT + name) if around is not None and small else None
        if values is None:
            continue
        far = np.abs(values - row) > 6 * sure + 2.0**-8 * np.abs(row) * (
            bits_of(scene.context.precision) < 12
        )
        if values.ndim == 1 and not far.any():
            return name
        if values.ndim == 2 and (fine := np.flatnonzero(~far.any(axis=1))).size == 1:
            return f"{name}[{int(fine[0])}]"
    return None


def _terms(difference: Difference) -> list[Term]:
    """Everything of the line's shape that was worked out before it; its own inputs first."""
    scene, around, target = difference.scene, difference.scene.context.around, difference.target
    if around is None:
        return []
    claimed = frozenset(around.claimed_steps)
    before: list[str] = []
    for step in scene.plan:
        if step.address == target.address:
            break
        if step.shape == target.shape and step.address in claimed:
            before.append(step.address)
    own = _inputs(difference)
    found: list[Term] = []
    for address in dict.fromkeys((*own, *reversed(before))):
        if scene.plan[address].shape != target.shape or len(found) == MOST_TERMS:
            continue
        values = around.read(address)
        if values is not None and np.isfinite(values).all() and values.any():
            found.append(Term(address, values))
    return found


def _inputs(difference: Difference) -> tuple[str, ...]:
    """The steps that the line reads, by their own addresses."""
    known = difference.scene.plan.known
    return tuple(known[read] for read in difference.target.reads if read in known)


@dataclass(frozen=True, eq=False)
class _Sum:
    """Some terms and their factors in the difference."""

    terms: tuple[Term, ...]
    factors: tuple[Fitted, ...]
    left: float

    def swaps(self, own: Sequence[str]) -> bool:
        """Whether another line stands in place of an input."""
        if len(self.terms) != 2:
            return False
        aims = [-1.0 if term.address in own else 1.0 for term in self.terms]
        near = [abs(fit.value - aim) <= 6 * fit.off + 1e-6 for fit, aim in
                zip(self.factors, aims, strict=True)]  # fmt: skip
        return sum(aims) == 0 and all(near)


def _fitted(difference: Difference, terms: Sequence[Term], place: Place) -> Iterator[Reading]:
    at = difference.finite & place.mask
    where = np.flatnonzero(at)
    if len(where) < LEAST or not terms:
        return
    if len(where) > SAMPLE:
        where = where[np.linspace(0, len(where) - 1, SAMPLE).astype(np.intp)]
    own = [term for term in terms if term.address in _inputs(difference)]
    room = _room(difference, own if difference.target.op == "add" else (), at)
    for each in _best(difference, terms, room, where):
        reading = _reading(difference, each, place, at, room)
        if reading is not None:
            yield reading
            return


def _room(difference: Difference, own: Sequence[Term], at: Truths) -> Floats:
    """The usual error of a sum whose terms, also those of the line itself, have other factors."""
    unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
    with np.errstate(all="ignore"):
        sizes = np.square(np.where(at, difference.claimed, 0.0))
        for term in own:
            sizes = sizes + np.square(term.values)
        room = np.hypot(difference.room, unit * np.sqrt(sizes))
    return np.asarray(room)


def _best(difference: Difference, terms: Sequence[Term], room: Floats, where: Places) -> list[_Sum]:
    """The best single terms and pairs, those that leave least first."""
    flat = room.reshape(-1)[where]
    with np.errstate(all="ignore"):
        off = (
            difference.claimed.reshape(-1)[where] - difference.expected.reshape(-1)[where]
        ) / flat
        rows = np.stack([term.values.reshape(-1)[where] / flat for term in terms])
    if not np.isfinite(off).all() or not np.isfinite(rows).all():
        return []
    squares, sides, whole = rows @ rows.T, rows @ off, float(off @ off)
    found: list[tuple[float, int, tuple[int, ...]]] = []
    for count in (1, 2):
        for chosen in combinations(range(len(terms)), count):
            rest = _rest(squares, sides, whole, chosen)
            if rest is not None and rest < 0.1 * whole:
                found.append((rest, count, chosen))
    found.sort(key=lambda each: (each[1], each[0]))
    best = []
    pairs = [each for each in found if each[1] == 2]
    for _left, _count, chosen in (*found[:3], *pairs[:3]):
        part = squares[np.ix_(chosen, chosen)]
        try:
            inverse = np.linalg.inv(part)
        except np.linalg.LinAlgError:
            continue
        factors = inverse @ sides[list(chosen)]
        left = rms(off - factors @ rows[list(chosen)])
        sure = np.sqrt(np.abs(np.diag(inverse))) * max(1.0, left)
        fits = tuple(Fitted(float(a), float(b)) for a, b in zip(factors, sure, strict=True))
        best.append(_Sum(tuple(terms[each] for each in chosen), fits, left))
    own = _inputs(difference) if difference.target.op == "add" else ()
    least = min((each.left for each in best), default=0.0)
    return sorted(best, key=lambda each: not (each.swaps(own) and each.left <= least * 1.05))


def _rest(squares: Floats, sides: Floats, whole: float, chosen: tuple[int, ...]) -> float | None:
    """What is left of the squares when one or two terms are taken away; None: they are alike."""
    if len(chosen) == 1:
        (a,) = chosen
        return whole - float(sides[a] ** 2 / squares[a, a])
    a, b = chosen
    apart = squares[a, a] * squares[b, b] - squares[a, b] ** 2
    if apart <= 1e-6 * squares[a, a] * squares[b, b]:
        return None
    gain = (squares[b, b] * sides[a] ** 2 - 2 * squares[a, b] * sides[a] * sides[b]
            + squares[a, a] * sides[b] ** 2) / apart  # fmt: skip
    return whole - float(gain)


# ------------------------------------------------------------------------ words and edits


def _reading(
    difference: Difference, found: _Sum, place: Place, at: Truths, room: Floats
) -> Reading | None:
    before_it = _together(difference, ())
    double = bits_of(difference.scene.context.precision) > 24
    constants, values = [], []
    for fit, term in zip(found.factors, found.terms, strict=True):
        own = before_it.get(term.address, 0.0)  # what the model adds already
        constant = recognised(Fitted(own + fit.value, fit.off), difference.scene)
        constants.append(constant)
        values.append(fit.value if constant is None else _held(constant.value, double) - own)
    unknown = sum(constant is None for constant in constants)
    if any(abs(fit.value) <= 6 * fit.off for fit in found.factors):
        return None  # a term that adds nothing
    predicted = difference.expected + sum(
        value * term.values for value, term in zip(values, found.terms, strict=True)
    )
    with np.errstate(all="ignore"):
        left = ((predicted - difference.claimed) / room)[at]
        before = ((difference.expected - difference.claimed) / room)[at]
    if not np.isfinite(left).all() or not good(left, before):
        return None
    alone = all(term.address in _inputs(difference) for term in found.terms)
    if unknown and (rms(left) > ENOUGH or (len(values) > 1 and not alone)):
        return None
    parts = [(value, term.address) for value, term in zip(values, found.terms, strict=True)]
    total = _together(difference, parts)
    if list(total.values()) == [1.0] and "" not in total:
        return None  # a copy of another line
    said = _("it follows if it is {sum}{place}; the model says {own}")
    change = _("look for {terms}, added with another factor than the model's")
    known = (
        fit if each is None else each for fit, each in zip(found.factors, constants, strict=True)
    )
    written = dict(zip((address for _value, address in parts), known, strict=True))
    words: dict[str, Any] = {
        "sum": _written(difference, total, written), "place": f" ({place.said})" * bool(place.said),
        "own": _own(difference.target), "terms": ", ".join(address for _value, address in parts),
    }  # fmt: skip
    mask = None if not place.said else np.array(place.mask)
    make = partial(_sum, total=tuple(total.items()), part=mask)
    return difference.edit("sum", said, change, make, fitted=unknown,
                           unlikely=READ_OFF + len(values), **words)  # fmt: skip


def _held(constant: float, double: bool) -> float:
    """A constant as programs hold it: in float32, whatever they compute in."""
    return constant if double else float(np.float32(constant))


def _together(difference: Difference, parts: Sequence[tuple[float, str]]) -> dict[str, float]:
    """The factor of each line in the whole sum; "" stands for what follows itself."""
    target, known = difference.target, difference.scene.plan.known
    total: dict[str, float] = {}
    if target.op == "add":
        for read in target.reads:
            address = known[read]
            total[address] = total.get(address, 0.0) + 1.0
    else:
        total[""] = 1.0
    for value, address in parts:
        total[address] = total.get(address, 0.0) + value
    return {address: value for address, value in total.items() if abs(value) > 1e-12}


def _own(target: Step) -> str:
    return target.formula if target.op == "add" else _("what follows alone")


def _written(
    difference: Difference, total: dict[str, float], written: dict[str, Fitted | Constant]
) -> str:
    """The sum as a formula."""
    if not total:
        return "0"
    text = ""
    for address, value in total.items():
        name = address or _("what follows")
        size = f"{abs(value):.4g} × {name}" if abs(abs(value) - 1) > 1e-9 else name
        fit = written.get(address)
        if isinstance(fit, Constant) and abs(value) != 1.0:
            known = fit.written.lstrip("−")
            size = f"{abs(fit.value):g} × {name}" if " " in known else f"{known} × {name}"
        elif isinstance(fit, Fitted):
            size = f"{shown(Fitted(abs(value), fit.off))} × {name}"
        sign = " - " if value < 0 else " + " if text else ""
        text += sign.lstrip() + size if not text else sign + size
    return text


def _sum(
    draft: Draft, step: Step, *, total: tuple[tuple[str, float], ...], part: Truths | None
) -> None:
    """Writes the sum in place of the line, or of a part of it."""
    at = step.address
    own = draft.aside(at)
    reads = {f"term{place}": address or own for place, (address, _value) in enumerate(total)}
    factors = tuple(value for _address, value in total)
    if not reads:
        reads, factors = {"term0": own}, (0.0,)
    if part is None:
        draft.change(at, op="weighted_sum", inputs=reads, only=True, factors=factors)
        return
    new = draft.write(at, "weighted_sum", reads, step.axes, step.shape, factors=factors)
    draft.change(at, op="patched", inputs={"x": own, "y": new}, only=True, where=part)
