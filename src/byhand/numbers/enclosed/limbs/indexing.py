"""Parts and concatenations of enclosed arrays: digits and radii are moved, none is changed.

The radius of a row is also a bound for some of its columns; the length of their own radii is
another one.  The origin of a value is dropped: facts about a whole row of shares, or of a norm,
need not hold for a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.digits import Digits
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.known_zeros import zeros_of
from byhand.numbers.enclosed.limbs.radii import Bound, length
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry, constant


def rows(x: Enclosed, places: Sequence[int]) -> Enclosed:
    """The rows at these places along the last axis but one; with one axis, the entries."""
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
    box, zeros = x.box[index], (lambda: x.zeros[index]) if x.has_zeros else None
    return Enclosed(x.digits[index], lambda: length(box), box=box, hidden=hidden, zeros=zeros)


def stack(parts: Sequence[Enclosed]) -> Enclosed:
    """The rows of all parts, one below the other; those of (head, pos, width) head by head."""
    flat = [part.digits.reshape(-1, part.width) for part in parts]
    digits = arithmetic.stack(flat)
    if all(part.exact for part in parts):
        return Enclosed(digits)
    engine = digits.engine

    def balls() -> Array:
        return engine.concatenate([_balls(part) for part in parts])

    def boxes() -> Bound:
        found = [
            constant(part.digits, part.shape, 0.0) if part.exact else part.box for part in parts
        ]
        return engine.concatenate([box.reshape(-1, digits.shape[-1]) for box in found])

    def zeros() -> Array:
        return engine.concatenate([zeros_of(part).reshape(-1, digits.shape[-1]) for part in parts])

    boxed = any(part.has_box for part in parts)
    zeroed = any(part.has_zeros and not part.exact for part in parts)
    return Enclosed(digits, balls, box=boxes if boxed else None, zeros=zeros if zeroed else None)


def split_heads(x: Enclosed, places: Sequence[int], width: int) -> Enclosed:
    """`width` columns from each place on, head by head, with their own radius if it is known."""
    engine, limbs = x.digits.engine, x.digits.limbs
    start, last = places[0], places[-1] + width
    if last - start == len(places) * width:
        whole = limbs[..., start:last].reshape(x.digits.n, -1, len(places), width)
        digits = Digits(engine.moveaxis(whole, 2, 1), x.digits.top)
    else:
        parts = [limbs[:, None, ..., place : place + width] for place in places]
        digits = Digits(engine.concatenate(parts, 1), x.digits.top)
    if x.exact:
        return Enclosed(digits)

    def zeros() -> Array:
        return engine.concatenate([x.zeros[None, :, place : place + width] for place in places])

    def boxes() -> Array:
        return engine.concatenate([x.box[None, :, place : place + width] for place in places])

    ball = x.parts(places, width)
    if not x.has_parts and x.has_box:  # of the columns' own radii
        own = length(boxes())
        ball = engine.where(own < ball, own, ball)
    return Enclosed(digits, ball, zeros=zeros if x.has_zeros else None)


def merge_heads(x: Enclosed) -> Enclosed:
    """The heads side by side; the squares of their radii add up."""
    heads, positions, width = x.shape
    digits = x.digits.swapaxes(0, 1).reshape(positions, heads * width)
    if x.exact:
        return Enclosed(digits)

    def laid(entries: Array) -> Array:
        return entries.swapaxes(0, 1).reshape(positions, heads * width)

    box = (lambda: laid(x.box)) if x.has_box else None
    zeros = (lambda: laid(x.zeros)) if x.has_zeros else None
    return Enclosed(digits, length(x.ball, 0), box=box, zeros=zeros)


def part(x: Enclosed, place: int) -> Enclosed:
    """What is at this place of the first axis."""
    if x.exact:
        return Enclosed(x.digits[place])
    return Enclosed(
        x.digits[place],
        lambda: x.ball[place],
        box=(lambda: x.box[place]) if x.has_box else None,
        zeros=(lambda: x.zeros[place]) if x.has_zeros else None,
    )


def together(parts: Sequence[Enclosed]) -> Enclosed:
    """The parts along a new first axis."""
    whole = (len(parts), *parts[0].shape)
    made = stack(parts)
    digits = made.digits.reshape(*whole)
    if made.exact:
        return Enclosed(digits)
    box = (lambda: made.box.reshape(whole)) if made.has_box else None
    zeros = (lambda: made.zeros.reshape(whole)) if made.has_zeros else None
    return Enclosed(digits, lambda: made.ball.reshape(whole[:-1]), box=box, zeros=zeros)


def first_two_exchanged(x: Enclosed) -> Enclosed:
    """The array with its first two axes exchanged; rows stay rows."""
    digits = x.digits.swapaxes(0, 1)
    if x.exact:
        return Enclosed(digits)
    return Enclosed(
        digits,
        lambda: x.ball.swapaxes(0, 1),
        box=(lambda: x.box.swapaxes(0, 1)) if x.has_box else None,
        zeros=(lambda: x.zeros.swapaxes(0, 1)) if x.has_zeros else None,
    )


def join(x: Enclosed, y: Enclosed) -> Enclosed:
    """The positions of y after those of x, head by head."""
    digits = arithmetic.stack([x.digits, y.digits], axis=1)
    if x.exact and y.exact:
        return Enclosed(digits)
    balls = [_balls(part).reshape(part.shape[:-1]) for part in (x, y)]
    return Enclosed(digits, digits.engine.concatenate(balls, 1))


def _balls(part: Enclosed) -> Array:
    """The radius of each row, zeros where the row is exact."""
    known = constant(part.digits, part.shape[:-1], 0.0) if part.exact else part.ball
    return known.reshape(-1)
