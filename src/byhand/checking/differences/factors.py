"""Differences that are a factor or a shift: all over, in a part, or by head, position or channel.

The factor is read off the claim by least squares, in units of the usual rounding error, and then
recognised where it is a known constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from byhand.checking.differences.axes import Part, compact
from byhand.checking.differences.closeness import (
    SOME,
    WORST,
    Entries,
    Fitted,
    quietly,
    stored_again,
)
from byhand.checking.differences.constants import Constant, recognised, shown, unlikely
from byhand.checking.differences.difference import Description, Difference, Floats, Reading, Truths
from byhand.checking.differences.fits import FEWEST, fitted_factor, fitted_line, fitted_shift
from byhand.checking.differences.places import Place, places
from byhand.checking.differences.slices import STORED, row_readings, slice_readings
from byhand.checking.suspects.logprobs import told_by_factor
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.pieces import When
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

SIDES = (When("above"), When("below"))
BORNE_OUT = 6  # entries that an unknown factor needs
BULK = 24  # entries that a factor of most of the line needs
MOST = 0.6  # of the entries
LARGEST_CROSSED = 1 << 18  # entries of a line in which rows and columns may both have factors
MOST_CROSSED = 6  # rows or columns that have one


@quietly
def factor_readings(difference: Difference) -> Iterator[Reading]:
    """The factor or the shift by which a line differs, all over or in a part."""
    part = Part.of(difference)
    if part is None or not difference.wrong.any() or not difference.finite.any():
        return
    readers = (_one_factor, _one_shift, _one_value, _two_sides, slice_readings, row_readings)
    for reader in (*readers, _factor_and_shift, _crossed, _all_but):
        found = list(reader(difference, part))
        yield from found
        if found:
            return


# ------------------------------------------------------------------------ one factor, one shift


def _anywhere(difference: Difference, part: Part) -> Iterator[Place]:
    """The whole line, and the parts that hold all that differs."""
    yield Place(np.ones(difference.wrong.shape, dtype=bool), "")
    yield from places(difference, part)


def _one_factor(difference: Difference, part: Part) -> Iterator[Reading]:
    """One factor: of the whole line, or of a part that holds all that differs."""
    endless = bool((difference.wrong & ~difference.finite).any())
    for place in _anywhere(difference, part):
        found = _told_by_all(difference, place.mask, fitted_factor, _times)
        if found is None or not found.differs:
            continue
        if int(place.mask.sum()) < BORNE_OUT and recognised(found, difference.scene) is None:
            continue  # a few numbers have some factor, whatever they are
        if endless:
            constant = recognised(found, difference.scene)
            said = _("all finite numbers are {factor} × what follows")
            written = shown(found) if constant is None else constant.written
            yield Description(said.format(factor=written), 5)
        else:
            yield _factor_edit(difference, part, place, found)
        return


def _told_by_all(
    difference: Difference,
    at: Truths,
    fit: Callable[[Entries], Fitted | None],
    predict: Callable[[Entries, float], tuple[Floats, float]],
) -> Fitted | None:
    """The number that fits some entries, and then all of them; None where none does."""
    found = None
    for most in (SOME, None):
        entries = Entries.of(difference, at, most)
        found = fit(entries)
        if found is None or not entries.near(*predict(entries, found.value)):
            return None
    return found


def _times(entries: Entries, factor: float) -> tuple[Floats, float]:
    return factor * entries.own, factor


def _plus(entries: Entries, shift: float) -> tuple[Floats, float]:
    return entries.own + shift, 1.0


def _factor_edit(difference: Difference, part: Part, place: Place, found: Fitted) -> Reading:
    constant = recognised(found, difference.scene)
    value = found.value if constant is None else constant.value
    factors = _laid(part, place, value, 1.0)
    if value == 0:
        return _zero_edit(difference, place, factors)
    make = then("weighed", factors=factors, relative=_relative(constant), when=place.when)
    told = told_by_factor(difference.scene.target, value) if constant and not place.said else None
    if told is not None:
        return difference.edit(*told, make, unlikely=unlikely(constant))
    return difference.edit(
        "factor",
        _worded(
            place,
            _("it follows if everything is {factor} × what follows; the model has no such factor"),
            _("it follows if {place} is {factor} × what follows; the model has no such factor"),
            _("it follows if {place} are {factor} × what follows; the model has no such factor"),
        ),
        _("look for a factor of {factor} that is applied here, or left out before"),
        make,
        fitted=int(constant is None),
        unlikely=unlikely(constant),
        factor=shown(found) if constant is None else constant.written,
        place=place.said,
    )


def _zero_edit(difference: Difference, place: Place, factors: Floats) -> Reading:
    return difference.edit(
        "zeros",
        _worded(
            place,
            _("it follows if everything is 0; the model gives other numbers"),
            _("it follows if {place} is 0; the model gives other numbers"),
            _("it follows if {place} are 0; the model gives other numbers"),
        ),
        _("look for numbers that are never written here, or masked out"),
        then("weighed", factors=factors, when=place.when),
        unlikely=2,
        place=place.said,
    )


def _one_shift(difference: Difference, part: Part) -> Iterator[Reading]:
    """One summand: of the whole line, or of a part that holds all that differs."""
    for place in _anywhere(difference, part):
        found = _told_by_all(difference, place.mask, fitted_shift, _plus)
        if found is None:
            continue
        constant = recognised(found, difference.scene)
        value = found.value if constant is None else constant.value
        yield difference.edit(
            "shift",
            _worded(
                place,
                _("it follows if {shift} is added everywhere; the model adds nothing"),
                _("it follows if {shift} is added to {place}; the model adds nothing"),
            ),
            _("look for a constant of {shift} that is added here, or left out"),
            then(
                "plus_each",
                summands=_laid(part, place, value, 0.0),
                off=0.0 if constant else found.off,
                when=place.when,
            ),
            fitted=int(constant is None),
            unlikely=unlikely(constant),
            shift=shown(found) if constant is None else constant.written,
            place=place.said,
        )
        return


def _one_value(difference: Difference, part: Part) -> Iterator[Reading]:
    """One number in a part that holds all that differs, whatever follows there."""
    for place in places(difference, part):
        claimed = difference.claimed[place.mask & difference.there]
        if len(claimed) < FEWEST or place.when is not None or not np.isfinite(claimed[0]):
            continue
        if not (claimed == claimed[0]).all() or not claimed[0]:
            continue
        found = Fitted(float(claimed[0]), 2.0**-26 * abs(float(claimed[0])))
        constant = recognised(found, difference.scene)
        yield difference.edit(
            "one-number",
            _worded(
                place,
                "",
                _("it follows if {place} is {value} everywhere; the model gives other numbers"),
                _("it follows if {place} are {value} everywhere; the model gives other numbers"),
            ),
            _("look for {value} that is written here after the numbers are worked out"),
            then("set_to", value=found.value, where=compact(part.laid(place.mask, False))),
            fitted=int(constant is None),
            unlikely=unlikely(constant),
            value=shown(found) if constant is None else constant.written,
            place=place.said,
        )
        return


def _two_sides(difference: Difference, part: Part) -> Iterator[Reading]:
    """One factor for numbers above 0 and another one below, in a part or everywhere."""
    for place in _anywhere(difference, part):
        if place.when is not None:
            continue
        sides = [
            _told_by_all(difference, place.mask & when.chooses(difference.expected),
                         fitted_factor, _times)
            for when in SIDES
        ]  # fmt: skip
        if sides[0] is None or sides[1] is None:
            continue
        known = [recognised(found, difference.scene) for found in sides if found is not None]

        def scale(
            draft: Draft,
            step: Step,
            place: Place = place,
            sides: Sequence[Fitted | None] = sides,
            known: Sequence[Constant | None] = known,
        ) -> None:
            for when, found, constant in zip(SIDES, sides, known, strict=True):
                assert found is not None
                value = found.value if constant is None else constant.value
                factors = compact(part.laid(np.where(place.mask, value, 1.0), 1.0))
                draft.then(step.address, "weighed", factors=factors, relative=STORED, when=when)

        above, below = (
            shown(found) if constant is None else constant.written
            for found, constant in zip(filter(None, sides), known, strict=True)
        )
        yield difference.edit(
            "factor",
            _(
                "it follows if numbers above 0 in {place} are {above} × what follows, those "
                "below 0 {below} ×; the model has no such factors"
            ),
            _("look for a factor that depends on the sign, such as a penalty"),
            scale,
            fitted=sum(each is None for each in known),
            unlikely=max(map(unlikely, known)),
            above=above,
            below=below,
            place=place.said or _("the whole line"),
        )  # fmt: skip
        return


def _all_but(difference: Difference, part: Part) -> Iterator[Reading]:
    """One factor for most of the line; the rest has a place of its own."""
    found = factor_of_most(difference)
    if found is None:
        return
    factor, inside = found
    following = np.where(inside, difference.claimed, factor.value * difference.expected)
    rest = replace(difference, expected=following)
    others = next(places(rest, part), None)
    if others is None:
        return
    constant = recognised(factor, difference.scene)
    yield Description(
        _("everything but {place} is {factor} × what follows").format(
            place=others.said, factor=shown(factor) if constant is None else constant.written
        ),
        4,
    )


def factor_of_most(difference: Difference) -> tuple[Fitted, Truths] | None:
    """The factor of most entries, and which those are; None where there is none, or of all."""
    entries = Entries.of(difference, difference.there, SOME)
    with np.errstate(all="ignore"):
        clear = np.abs(entries.own) > 100 * entries.room
        ratio = entries.claimed[clear] / entries.own[clear]
    if len(ratio) < BULK:
        return None
    first = float(np.median(ratio))
    with np.errstate(all="ignore"):
        room = np.hypot(first * difference.room, stored_again(difference, difference.claimed))
        off = np.abs(difference.claimed - first * difference.expected)
        inside = difference.finite & (off <= WORST * room)
    if not MOST * difference.there.sum() < inside.sum() < difference.there.sum():
        return None
    found = _told_by_all(difference, inside, fitted_factor, _times)
    return None if found is None or not found.differs else (found, inside)


def _crossed(difference: Difference, part: Part) -> Iterator[Reading]:
    """A factor for some rows and another one for some columns of a matrix."""
    if difference.expected.ndim != 2 or difference.expected.size > LARGEST_CROSSED:
        return
    with np.errstate(all="ignore"):
        clear = difference.finite & (np.abs(difference.expected) > 100 * difference.room)
        ratio = np.where(clear, difference.claimed / difference.expected, np.nan)
        if clear.sum(axis=0).min() < FEWEST or clear.sum(axis=1).min() < FEWEST:
            return
        rows = np.nanmedian(ratio, axis=1)
        if not rows.all() or not np.isfinite(rows).all():
            return
        columns = np.nanmedian(ratio / rows[:, None], axis=0)
    parts = []
    for axis, values in enumerate((rows, columns)):
        changed = np.flatnonzero(np.abs(values - 1) > 1e-3)
        if not 1 <= len(changed) <= MOST_CROSSED or np.ptp(values[changed]) > 1e-3:
            return
        parts.append((axis, changed, float(np.median(values[changed]))))
    known, factors = [], np.ones(difference.expected.shape)
    for axis, changed, value in parts:
        constant = recognised(Fitted(value, 1e-6 * abs(value)), difference.scene)
        known.append(constant)
        np.moveaxis(factors, axis, 0)[changed] *= value if constant is None else constant.value
    entries = Entries.of(difference, difference.there)
    some = factors[difference.finite]
    if not entries.near(some * entries.own, some):
        return
    told = [
        _("{places}: {factor} ×").format(
            places=part.said(axis, changed),
            factor=f"{value:.6g}" if constant is None else constant.written,
        )
        for (axis, changed, value), constant in zip(parts, known, strict=True)
    ]
    yield difference.edit(
        "factor",
        _("it follows if parts are multiples of what follows ({parts}); the model has no such "
          "factors"),
        _("look for two factors here: two mistakes in one line"),
        then("weighed", factors=part.laid(factors, 1.0), relative=STORED),
        fitted=sum(each is None for each in known),
        unlikely=2,
        parts="; ".join(told),
    )  # fmt: skip


def _factor_and_shift(difference: Difference, part: Part) -> Iterator[Reading]:
    """A factor and a summand for the whole line."""
    found = None
    for most in (SOME, None):
        entries = Entries.of(difference, difference.there, most)
        found = fitted_line(entries)
        if found is None or len(entries) < 2 * FEWEST:
            return
        if not entries.near(found[0].value * entries.own + found[1].value, found[0].value):
            return
    assert found is not None
    factor, shift = found
    known = recognised(factor, difference.scene), recognised(shift, difference.scene)
    said = _("everything is {factor} × what follows, plus {shift}").format(
        factor=known[0].written if known[0] else shown(factor),
        shift=known[1].written if known[1] else shown(shift),
    )
    yield Description(said, 4)


# ------------------------------------------------------------------------ small things


def _laid(part: Part, place: Place, value: float, elsewhere: float) -> Floats:
    """The value in a place and another one elsewhere, as small as can be."""
    if place.whole or place.when is not None:
        return np.array(value)
    return compact(part.laid(np.where(place.mask, value, elsewhere), elsewhere))


def _worded(place: Place, everywhere: str, one: str, several: str = "") -> str:
    """The sentence for the whole line, for one thing, or for several."""
    if place.whole:
        return everywhere
    return one if place.alone or not several else several


def _relative(constant: Constant | None) -> float:
    return 0.0 if constant is not None and constant.exact else STORED
