"""Differences that are a factor or a shift: all over, in a part, or by head, position or channel.

The factor is read off the claim by least squares, in units of the usual rounding error, and then
recognised where it is a known constant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part
from byhand.checking.differences.closeness import Fitted, near, room_of
from byhand.checking.differences.constants import Constant, recognised, shown, unlikely
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.fits import FEWEST, fitted_factor, fitted_line, fitted_shift
from byhand.checking.differences.places import Place, places
from byhand.checking.differences.slices import STORED, row_readings, slice_readings
from byhand.checking.suspects.mistakes import then
from byhand.language import _


def factor_readings(difference: Difference) -> Iterator[Reading]:
    """The factor or the shift by which a line differs, all over or in a part."""
    part = Part.of(difference)
    if part is None or not difference.wrong.any() or not difference.finite.any():
        return
    for reader in (_one_factor, _one_shift, slice_readings, row_readings, _factor_and_shift):
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
    for place in _anywhere(difference, part):
        at = difference.finite & place.mask
        found = fitted_factor(difference, at)
        if found is None or not found.differs:
            continue
        predicted = np.where(place.mask, found.value * difference.expected, difference.expected)
        if near(difference, predicted, room_of(difference, found.value), at):
            yield _factor_edit(difference, part, place, found)
            return


def _factor_edit(difference: Difference, part: Part, place: Place, found: Fitted) -> Reading:
    constant = recognised(found, difference.scene)
    value = found.value if constant is None else constant.value
    factors = part.laid(np.where(place.mask, value, 1.0), 1.0)
    if value == 0:
        return _zero_edit(difference, place, factors)
    return difference.edit(
        "factor",
        _worded(
            place,
            _("it follows if everything is {factor} × what follows; the model has no such factor"),
            _("it follows if {place} is {factor} × what follows; the model has no such factor"),
            _("it follows if {place} are {factor} × what follows; the model has no such factor"),
        ),
        _("look for a factor of {factor} that is applied here, or left out before"),
        then("weighed", factors=factors, relative=_relative(constant)),
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
        then("weighed", factors=factors),
        unlikely=2,
        place=place.said,
    )


def _one_shift(difference: Difference, part: Part) -> Iterator[Reading]:
    """One summand: of the whole line, or of a part that holds all that differs."""
    room = room_of(difference)
    for place in _anywhere(difference, part):
        at = difference.finite & place.mask
        found = fitted_shift(difference, at, room)
        if found is None:
            continue
        predicted = np.where(place.mask, difference.expected + found.value, difference.expected)
        if not near(difference, predicted, room, at):
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
                summands=part.laid(np.where(place.mask, value, 0.0), 0.0),
                off=0.0 if constant else found.off,
            ),
            fitted=int(constant is None),
            unlikely=unlikely(constant),
            shift=shown(found) if constant is None else constant.written,
            place=place.said,
        )
        return


def _factor_and_shift(difference: Difference, part: Part) -> Iterator[Reading]:
    """A factor and a summand for the whole line."""
    if int(difference.finite.sum()) < 2 * FEWEST:
        return
    found = fitted_line(difference)
    if found is None:
        return
    factor, shift = found
    predicted = factor.value * difference.expected + shift.value
    if not near(difference, predicted, room_of(difference, factor.value)):
        return
    known = recognised(factor, difference.scene), recognised(shift, difference.scene)
    said = _("everything is {factor} × what follows, plus {shift}").format(
        factor=known[0].written if known[0] else shown(factor),
        shift=known[1].written if known[1] else shown(shift),
    )
    yield Description(said, 4)


# ------------------------------------------------------------------------ small things


def _worded(place: Place, everywhere: str, one: str, several: str = "") -> str:
    """The sentence for the whole line, for one thing, or for several."""
    if place.whole:
        return everywhere
    return one if place.alone or not several else several


def _relative(constant: Constant | None) -> float:
    return 0.0 if constant is not None and constant.exact else STORED
