"""Two mistakes in one line: one that most of it shows, and something else in the rest.

The first, a factor, a summand or a shift of every row, is written into the plan.  What is left is
then read as a difference of its own, and an edit of it has both mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from byhand.checking.differences.closeness import WORST, Fitted, quietly, stored_again
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Difference, Floats, Reading, Truths
from byhand.checking.differences.factors import MOST, factor_of_most, factor_readings
from byhand.checking.differences.moves import move_readings
from byhand.checking.differences.slices import ROW_PARTS, STORED, row_words
from byhand.checking.suspects.mistakes import Wrong, then
from byhand.checking.suspects.pieces import row_part
from byhand.checking.suspects.scenes import Edit
from byhand.language import _

LARGEST = 1 << 18  # entries of a line in which two mistakes are looked for
UNLIKELY = 2


@dataclass(frozen=True)
class First:
    """The mistake that most of a line shows."""

    said: str
    make: Wrong
    following: Floats  # what follows with it
    inside: Truths  # where it explains the claim
    factor: float = 1.0
    fitted: int = 0


@quietly
def pair_readings(difference: Difference) -> Iterator[Reading]:
    """Edits with one mistake that most of the line shows, and another one in the rest."""
    if difference.expected.size > LARGEST or not difference.wrong.any():
        return
    for first in _firsts(difference):
        rest = _after(difference, first)
        for reader in (factor_readings, move_readings):
            for reading in reader(rest):
                if isinstance(reading, Edit):
                    yield _both(reading, first)
                    return


def _firsts(difference: Difference) -> Iterator[First]:
    found = factor_of_most(difference)
    if found is not None:
        factor, inside = found
        constant = recognised(factor, difference.scene)
        value = factor.value if constant is None else constant.value
        said = _("everything is {factor} × what follows").format(
            factor=shown(factor) if constant is None else constant.written
        )
        make = then("weighed", factors=np.array(value), relative=STORED)
        following = value * difference.expected
        yield First(said, make, following, inside, value, int(constant is None))
        return
    yield from _summand(difference)
    yield from _row_shifts(difference)


def _summand(difference: Difference) -> Iterator[First]:
    """One summand of most entries."""
    away = (difference.claimed - difference.expected)[difference.finite]
    shift = float(np.median(away)) if away.size else 0.0
    following = difference.expected + shift
    inside = _inside(difference, following)
    if not shift or inside is None:
        return
    off = float(np.median(difference.room)) / float(np.sqrt(inside.sum()))
    constant = recognised(Fitted(shift, off), difference.scene)
    if constant is not None:
        said = _("{shift} is added everywhere").format(shift=constant.written)
        make = then("plus_each", summands=np.array(constant.value))
        yield First(said, make, difference.expected + constant.value, inside)


def _row_shifts(difference: Difference) -> Iterator[First]:
    """Each row less its largest number, its mean, or the logarithm of its sum."""
    if difference.expected.ndim < 2 or not difference.whole:
        return
    own = np.where(difference.finite, difference.expected, np.nan)
    for kind in ROW_PARTS:
        parts = row_part(own, kind)
        following = difference.expected - np.where(np.isfinite(parts), parts, 0.0)[..., None]
        inside = _inside(difference, following)
        if inside is not None:
            said = _("each row is taken less {what}").format(what=row_words(kind))
            yield First(said, then("less_of_row", kind=kind), following, inside)
            return


def _inside(difference: Difference, following: Floats) -> Truths | None:
    """The entries that a prediction explains, if they are most, and differ from the model's."""
    room = np.hypot(difference.room, stored_again(difference, difference.claimed))
    inside = difference.finite & (np.abs(difference.claimed - following) <= WORST * room)
    count = int(difference.there.sum())
    if not MOST * count < int(inside.sum()) < count:
        return None
    return inside if int((inside & difference.wrong).sum()) > MOST * count else None


def _after(difference: Difference, first: First) -> Difference:
    """The difference that is left after the first mistake."""
    scene, own = difference.scene, difference.target.address
    edit = difference.edit("", "", "", first.make)
    usual = np.hypot(first.factor * difference.usual, stored_again(difference, difference.claimed))
    context = replace(scene.context, expected=first.following, usual=usual)
    scene = replace(scene, plan=edit.plan, target=edit.plan[own], context=context)
    return Difference(
        scene,
        np.where(first.inside, first.following, difference.claimed),
        first.following,
        abs(first.factor) * difference.allowed + usual,
        usual,
        difference.there,
    )


def _both(second: Edit, first: First) -> Edit:
    """The edit with both mistakes, in words."""
    said = _("it follows if {first} and, besides, {second}").format(
        first=first.said, second=second.sentence.removeprefix(_("it follows if ")).strip()
    )
    change = _("{second}; and undo that {first}: there are two mistakes in this line").format(
        second=second.change, first=first.said
    )
    return replace(
        second,
        kind="two-mistakes",
        sentence=said,
        change=change,
        fitted=second.fitted + first.fitted,
        unlikely=second.unlikely + UNLIKELY,
    )
