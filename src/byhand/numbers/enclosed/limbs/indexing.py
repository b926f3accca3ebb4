"""Parts of enclosed arrays, and arrays put together: digits and radii are moved, none is changed.

The radius of a row stays that of the row; of some of its columns it is a bound all the same, and
the length of their own radii another one.  Who made a value is forgotten: what is known of a whole
row of shares, or of a norm's own row, need not hold for a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.norms import by_entry, constant
from byhand.numbers.enclosed.limbs.radii import Bound, length
from byhand.numbers.enclosed.limbs.values import Enclosed


def rows(x: Enclosed, places: Sequence[int]) -> Enclosed:
    """The rows at these places along the last axis but one; of one axis, the entries."""
    chosen = list(places)
    if x.ndim == 1:
        return by_entry(x.digits[chosen], None if x.exact else x.box[chosen])
    index = (..., chosen, slice(None))
    hidden = None if x.hidden is None else x.hidden[index]
    if x.exact:
        return Enclosed(x.digits[index], hidden=hidden)
    box = (lambda: x.box[index]) if x.has_box else None
    return Enclosed(x.digits[index], lambda: x.ball[..., chosen], box=box, hidden=hidden)


def columns(x: Enclosed, places: Sequence[int]) -> Enclosed:
    """The entries of each row at these places."""
    index = (..., list(places))
    if x.ndim == 1:
        return rows(x, places)
    hidden = None if x.hidden is None else x.hidden[index]
    if x.exact:
        return Enclosed(x.digits[index], hidden=hidden)
    if not x.has_box:
        return Enclosed(x.digits[index], x.ball, hidden=hidden)
    box = x.box[index]
    return Enclosed(x.digits[index], lambda: length(box), box=box, hidden=hidden)


def stack(parts: Sequence[Enclosed]) -> Enclosed:
    """The rows of all parts, one below the other; those of (head, pos, width) head by head."""
    flat = [part.digits.reshape(-1, part.width) for part in parts]
    digits = arithmetic.stack(flat)
    if all(part.exact for part in parts):
        return Enclosed(digits)
    engine = digits.engine

    def balls() -> Array:
        return engine.concatenate([_radii(part) for part in parts])

    def boxes() -> Bound:
        found = [
            constant(part.digits, part.shape, 0.0) if part.exact else part.box for part in parts
        ]
        return engine.concatenate([box.reshape(-1, digits.shape[-1]) for box in found])

    return Enclosed(digits, balls, box=boxes if any(part.has_box for part in parts) else None)


def _boxes(part: Enclosed) -> Array:
    """The radius of each entry, row by row."""
    known = constant(part.digits, part.shape, 0.0) if part.exact else part.box
    return known.reshape(-1, part.width)


def _radii(part: Enclosed) -> Array:
    """The radius of each row, zeros where all is known."""
    known = constant(part.digits, part.shape[:-1], 0.0) if part.exact else part.ball
    return known.reshape(-1)
