"""Two mistakes in one line: a factor of most of it, and something else in the rest.

The factor is written into the plan first.  What is left is then read as a difference of its own,
and an edit of it has both mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from byhand.checking.differences.closeness import quietly, stored_again
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Difference, Reading, Truths
from byhand.checking.differences.factors import factor_of_most, factor_readings
from byhand.checking.differences.moves import move_readings
from byhand.checking.differences.slices import STORED
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.scenes import Edit
from byhand.language import _

LARGEST = 1 << 18  # entries of a line in which two mistakes are looked for
UNLIKELY = 2


@quietly
def pair_readings(difference: Difference) -> Iterator[Reading]:
    """Edits with a factor of most of the line and another mistake in the rest."""
    if difference.expected.size > LARGEST or not difference.wrong.any():
        return
    found = factor_of_most(difference)
    if found is None:
        return
    factor, inside = found
    constant = recognised(factor, difference.scene)
    value = factor.value if constant is None else constant.value
    scaled = then("weighed", factors=np.array(value), relative=STORED)
    first = difference.edit("factor", "", "", scaled)
    rest = _after(difference, first, value, inside)
    written = shown(factor) if constant is None else constant.written
    for reader in (factor_readings, move_readings):
        for reading in reader(rest):
            if isinstance(reading, Edit):
                yield _both(reading, written, int(constant is None))
                return


def _after(difference: Difference, first: Edit, value: float, inside: Truths) -> Difference:
    """The difference that is left after a factor."""
    scene, own = difference.scene, difference.target.address
    following = value * difference.expected
    usual = np.hypot(value * difference.usual, stored_again(difference, difference.claimed))
    context = replace(scene.context, expected=following, usual=usual)
    scene = replace(scene, plan=first.plan, target=first.plan[own], context=context)
    return Difference(
        scene,
        np.where(inside, following, difference.claimed),
        following,
        np.abs(value) * difference.allowed + usual,
        usual,
        difference.there,
    )


def _both(second: Edit, factor: str, fitted: int) -> Edit:
    """The edit with both mistakes, in words."""
    said = _("it follows if everything is {factor} × what follows and, besides, {second}").format(
        factor=factor, second=second.sentence.removeprefix(_("it follows if ")).strip()
    )
    change = _("{second}; and look for a factor of {factor}: two mistakes in one line").format(
        second=second.change, factor=factor
    )
    return replace(
        second,
        kind="two-mistakes",
        sentence=said,
        change=change,
        fitted=second.fitted + fitted,
        unlikely=second.unlikely + UNLIKELY,
    )
