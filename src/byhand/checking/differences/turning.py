"""Differences in RoPE: the effective angle of each pair at each position, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import Difference, Reading
from byhand.checking.differences.positions_read import (
    SURE,
    Rates,
    Told,
    listed,
    ratio,
    roundest,
    shown,
    told_positions,
    told_rates,
)
from byhand.checking.differences.rotations import Case, Pairing, tables, turned_by
from byhand.checking.differences.turns import Turns, fit, positions_of, rates_of
from byhand.checking.suspects.casts import bits_of, rounded_to
from byhand.checking.suspects.mistakes import setting
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.numbers.floats.angles import frequencies_of
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
COARSE = ("bfloat16", "float16")
CLEARLY = 4.0  # × what the best leaves: what fits worse is no rival
YARN = 0.1  # YaRN's factor is YARN·ln(scale) + 1


def turning_readings(difference: Difference) -> Iterator[Reading]:
    """How the pairs of q or k were turned, where the model turns them otherwise."""
    step = difference.target
    if step.op != "rotate" or not difference.whole or not difference.wrong.any():
        return
    before = difference.input("x")
    if before is None or before.shape != difference.claimed.shape or not difference.finite.all():
        return
    if not np.isfinite(before).all():
        return
    own = step.attributes["pairing"]
    other = "interleaved" if own == "half" else "half"
    case = Case.of(difference, before)
    if len(case.copied) and (left := _unturned(case)) is not None:
        yield left
        return
    ways = (Pairing(own, own), Pairing(other, other), Pairing(other, own), Pairing(own, other),
            Pairing("mirrored", "mirrored"))  # fmt: skip
    for pairing, width in product(ways, case.widths):
        turns = case.turns(pairing, width)
        found = [] if turns is None else list(_read(case, pairing, width, turns))
        if found:
            yield from found
            return
    yield from _formulas(case)


# ------------------------------------------------------------------------ readings


def _unturned(case: Case) -> Reading | None:
    """Some pairs that are copied, while the others turn as the model says."""
    case = replace(case, heads=tuple(range(len(case.before))))
    rates = case.rates.copy()
    rates[case.copied] = 0.0
    width: int = case.step.attributes["width"]
    angles = np.multiply.outer(case.positions, rates)
    turns = case.turns(case.own_pairing, width)
    if turns is None or not rates.any():
        return None
    off = np.abs(np.exp(1j * angles) - turns.factor) / turns.off
    if not fit(off[np.isfinite(turns.off)]):
        return None
    names = listed([int(pair) for pair in case.copied])
    said = (_("pair {which} is") if len(case.copied) == 1 else _("pairs {which} are")).format(
        which=names
    )
    told = Told("rope-rates", _("{names} not turned").format(names=said),
                _("turns each at its own rate"), _("look for the number of pairs that are turned"),
                fitted=0, rates=rates)  # fmt: skip
    return _edit(case, case.own_pairing, width, case.rates, [told], Size())


def _read(case: Case, pairing: Pairing, width: int, turns: Turns) -> Iterator[Reading]:
    """What the factors of the pairs tell: other positions, other rates, another size."""
    own = case.step.attributes["base"]
    usual = width == case.step.attributes["width"] and pairing == case.own_pairing
    if usual and (coarse := _coarse(case, turns)):
        yield coarse
        return
    rates = case.rates if usual else frequencies_of(own, width)
    given = "frequencies" in case.step.inputs
    size = _size(turns, case.fineness)
    places = positions_of(turns, rates) or positions_of(turns, rates, case.positions)
    told: list[Told | None] = []
    if places is not None:
        told = [told_positions(case.positions, *places)]
    elif turned := rates_of(turns, case.positions):
        told = [told_rates(Rates(rates, *turned, None if given else float(own), case.d_head))]
    elif turned := rates_of(turns.after_the_first(), case.positions - case.positions[0]):
        told = [told_rates(Rates(rates, *turned, None if given else float(own), case.d_head))]
        rates = told[0].turned(width) if told[0] else rates
        places = positions_of(turns, rates)
        if places is None:
            return
        told.append(told_positions(case.positions, *places))
    found = [each for each in told if each is not None]
    if places is None and not found:
        return
    if found or size.said or not usual:
        yield _edit(case, pairing, width, rates, found, size)
    doubled = found[0].positions if usual and found else None
    if doubled is not None and np.array_equal(doubled, 2 * case.positions):
        yield _twice(case)


def _twice(case: Case) -> Reading:
    """The rotation applied to its own result, which is rounded in between."""

    def make(draft: Draft, step: Step) -> None:
        again = draft.copy(step.address, step)
        draft.change(step.address, inputs={"x": again})

    return case.difference.edit(
        "rope-twice",
        _("it follows if RoPE is applied twice; the model applies it once"),
        _("apply RoPE once"),
        make,
    )


@dataclass(frozen=True)
class Size:
    """The factor by which all pairs grow, in words; none where they do not."""

    factor: float = 1.0
    said: str = ""


def _size(turns: Turns, fineness: float) -> Size:
    known = np.isfinite(turns.off)
    weight = np.where(known, 1 / np.square(np.where(known, turns.off, 1.0)), 0.0)
    mean, error = float((turns.size * weight).sum() / weight.sum()), float(weight.sum() ** -0.5)
    error += fineness / SURE  # slow pairs are all rounded alike
    left = np.abs(turns.size - mean)[known] / turns.off[known]
    if not fit(left) or abs(mean - 1) <= SURE * error:
        return Size()
    simple = ratio(mean, error)
    if simple is not None and simple.denominator <= 4:
        return Size(float(simple), shown(simple))
    whole = round(exp((mean - 1) / YARN))
    if whole >= 2 and abs(YARN * log(whole) + 1 - mean) <= SURE * error:
        value = YARN * log(whole) + 1
        said = _("{value} (0.1·ln {scale} + 1, as YaRN's)")
        return Size(value, said.format(value=f"{value:.6g}", scale=whole))
    value = roundest(mean, error)
    return Size(value, shown(value))


def _edit(
    case: Case, pairing: Pairing, width: int, rates: Floats, told: list[Told], size: Size
) -> Reading:
    """The edit that turns the pairs so."""
    said, does, change = _clauses(case, pairing, width, told, size)
    every = len(case.heads) == case.before.shape[0]
    where = "" if every else _(" (only in head {heads})").format(heads=listed(case.heads))
    places = next((each.positions for each in told if each.positions is not None), case.positions)
    base = next((each.base for each in told if each.base is not None), None)
    for each in told:
        rates = each.turned(width) if each.positions is None else rates
    plain = all(each.rates is None for each in told) and pairing == case.own_pairing
    if (
        plain
        and every
        and not size.said
        and (base is None or "frequencies" not in case.step.inputs)
    ):
        base = case.step.attributes["base"] if base is None else base
        make = setting(width=width, base=base, positions=tuple(map(_whole, places)))
    else:
        make = turned_by(case, pairing, width, np.multiply.outer(places, rates), size.factor)
    return case.difference.edit(
        told[0].kind if told else "rope-size" if size.said else "rope-pairs",
        _("it follows if {said}{where}; the model {does}"),
        "{advice}",
        make,
        fitted=sum(each.fitted for each in told) + bool(size.said),
        unlikely=sum(each.unlikely for each in told) + (not every),
        said=_(" and ").join(said),
        where=where,
        does=", ".join(dict.fromkeys(does)),
        advice="; ".join(dict.fromkeys(change)),
    )


def _clauses(
    case: Case, pairing: Pairing, width: int, told: list[Told], size: Size
) -> tuple[list[str], list[str], list[str]]:
    """What follows "it follows if" and "the model", and the changes to make."""
    clauses = [(each.said, each.own, each.change) for each in told]
    names = {"half": _("halves (i, i + width/2)"), "interleaved": _("neighbours (2i, 2i + 1)"),
             "mirrored": _("mirrored entries (i, width - 1 - i)")}  # fmt: skip
    settings = case.step.attributes
    own = names[settings["pairing"]]
    if pairing.write != pairing.read:
        said = _("RoPE reads pairs as {read} and writes them as {write}").format(
            read=names[pairing.read], write=names[pairing.write]
        )
        change = _("write the pairs back to where they were read")
        clauses.append((said, _("does both as {own}").format(own=own), change))
    elif names[pairing.read] != own:
        said = _("RoPE pairs {other}").format(other=names[pairing.read])
        change = _("pair {own}, or load the weights in the order that goes with your pairing")
        clauses.append((said, _("pairs {own}").format(own=own), change.format(own=own)))
    if width != settings["width"]:
        said = _("RoPE turns the first {other} entries of a head").format(other=width)
        does = _("turns {own} of {d_head}").format(own=settings["width"], d_head=case.d_head)
        change = _("rotate the first {width} entries of each head").format(width=settings["width"])
        clauses.append((said, does, change))
    if size.said:
        own = shown(case.magnitude)
        whole = size.said if case.magnitude == 1 else shown(size.factor * case.magnitude)
        said = _("what is turned is multiplied by {factor}").format(factor=whole)
        does, change = _("does not multiply it"), _("look for a factor {factor} on cos and sin")
        if case.magnitude != 1:
            does = _("multiplies it by {own}").format(own=own)
            change = _("multiply cos and sin by {own}, once").format(own=own)
        clauses.append((said, does, change.format(factor=whole)))
    return tuple(map(list, zip(*clauses, strict=True)))  # type: ignore[return-value]


def _whole(place: float) -> int | Fraction:
    return int(place) if place == int(place) else Fraction(place)


def _coarse(case: Case, turns: Turns) -> Reading | None:
    """Tables, angles or rates that were rounded to a coarser format: the one that fits, if any."""
    own = case.difference.scene.context.precision.partition("+")[0].rpartition(":")[2]
    exact = np.multiply.outer(case.positions, case.rates)
    known = np.isfinite(turns.off)

    def left(made: Floats) -> Floats:
        off: Floats = np.abs(made[0] + 1j * made[2] - turns.factor)[known] / turns.off[known]
        return off

    model = float(np.mean(np.square(left(tables(exact)))))
    found = []
    for format in COARSE:
        low = rounded_to(format, case.rates)
        angles = np.multiply.outer(rounded_to(format, case.positions), low)
        ways = (
            (_("cos and sin are rounded to {format}"), rounded_to(format, tables(exact))),
            (_("rates, angles, cos and sin are rounded to {format}"),
             rounded_to(format, tables(rounded_to(format, angles)))),
            (_("the rates are rounded to {format}"),
             tables(np.multiply.outer(case.positions, low))),
            (_("the angles are rounded to {format}"), tables(rounded_to(format, exact))),
            (_("rates and angles are rounded to {format}"), tables(rounded_to(format, angles))),
        )  # fmt: skip
        # cos and sin may be stored in the format of the pass: that is no mistake
        for said, made in ways[2 if bits_of(format) == bits_of(own) else 0 :]:
            off = left(made)
            if fit(off) and bits_of(format) <= bits_of(own):
                found.append((float(np.mean(np.square(off))), said.format(format=format), made))
    found.sort(key=lambda each: each[0])
    if not found or CLEARLY * max(1.0, found[0][0]) > model:
        return None
    if len(found) > 1 and found[1][0] < CLEARLY * max(1.0, found[0][0]):
        return None  # two explain it alike
    _left, said, made = found[0]
    return case.difference.edit(
        "precision",
        _("it follows if {said} in RoPE; the model has them finer"),
        _("make the tables of RoPE in float32"),
        turned_by(case, case.own_pairing, case.step.attributes["width"], exact, given=made),
        said=said,
    )


# ------------------------------------------------------------------------ wrong formulas


def _formulas(case: Case) -> Iterator[Reading]:
    """(a·cos - b·sin, a·sin + b·cos) with other signs, or cos and sin exchanged."""
    width: int = case.step.attributes["width"]
    read, write = case.own_pairing.entries(width)
    angles = np.multiply.outer(case.positions, case.rates)
    cos, sin = np.cos(angles), np.sin(angles)
    x, y, room = (data[list(case.heads)] for data in (case.before, case.after, case.room))
    if width < case.d_head and not fit(np.abs(y - x)[..., width:] / room[..., width:]):
        return
    a, b = x[..., list(read[0])], x[..., list(read[1])]
    terms = {"a·cos": a * cos, "a·sin": a * sin, "b·cos": b * cos, "b·sin": b * sin}
    said, made = [], np.zeros((4, *angles.shape))
    for half, entries in enumerate(write):
        target, near = y[..., list(entries)], room[..., list(entries)]
        columns = np.stack([(each / near).ravel() for each in terms.values()], axis=1)
        found = np.linalg.lstsq(columns, (target / near).ravel(), rcond=None)[0]
        whole = np.round(found)
        if not fit(np.abs(columns @ whole - (target / near).ravel())) or np.abs(whole).max() > 2:
            return
        made[2 * half] = whole[0] * cos + whole[1] * sin
        made[2 * half + 1] = whole[2] * cos + whole[3] * sin
        said.append(_sum(tuple(terms), whole))
    if np.array_equal(made, case.model_tables()):
        return
    yield case.difference.edit(
        "rope-formula",
        _("it follows if a pair (a, b) becomes ({first}, {second}); the model says "
          "(a·cos - b·sin, a·sin + b·cos)"),
        _("turn (a, b) into (a·cos - b·sin, a·sin + b·cos)"),
        turned_by(case, case.own_pairing, width, angles, given=made),
        unlikely=1, first=said[0], second=said[1],
    )  # fmt: skip


def _sum(names: tuple[str, ...], factors: Floats) -> str:
    """A sum of terms, written out."""
    text = ""
    for name, factor in zip(names, factors, strict=True):
        if factor:
            sign = "-" if factor < 0 else "+"
            times = "" if abs(factor) == 1 else f"{abs(factor):g}·"
            text += f" {sign} {times}{name}" if text else f"{sign.strip('+')}{times}{name}"
    return text or "0"
