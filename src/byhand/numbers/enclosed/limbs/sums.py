"""Sums of gradients: over terms, rows, positions and heads, with their radius rules.

total          Σ rho of the terms.
column_sums    Σ over the rows: of their radii, of boxes entry by entry.  Of products x·y:
               xy - x'y' = x'(y - y') + y'(x - x') + (x - x')(y - y').
row_dots       |x·y - x'·y'| <= ‖x'‖·rho_y + ‖y'‖·rho_x + rho_x·rho_y, by Cauchy and Schwarz; where
               both have boxes, the sum of what each entry gives, which is less for shares.
sum_groups     Σ rho of the heads that are added.
scatter        Σ rho of the rows that are added; a row that nobody took is 0.
bucket_back    the same entry by entry: Σ r over the queries and keys of a bucket.
pack_heads     the squares of the radii add up.

Sums of limbs are exact.  Products are worked out so finely that the sum errs by less than the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from byhand.numbers.enclosed.limbs import arithmetic, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import HALF, PRODUCT, Digits, without_empty_limbs
from byhand.numbers.enclosed.limbs.indexing import merge_heads, part, together
from byhand.numbers.enclosed.limbs.radii import Bound, length, plus, times
from byhand.numbers.enclosed.limbs.radii import total as total_of
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin, by_entry, constant


def total(system: System, terms: Sequence[Enclosed]) -> Enclosed:
    """The sum of arrays of one shape."""
    ball = plus(*(term.ball for term in terms))
    exact = min(term.digits.low for term in terms)
    low = max(exact, system.grid(ball, terms[0].width, min(-system.bits, exact)))
    digits = reduce(arithmetic.add, (term.digits for term in terms))
    local = None
    if low > digits.low:
        digits, local = arithmetic.regrid(digits, low=low), HALF * math.ldexp(1.0, low)
    digits = without_empty_limbs(digits)

    def box() -> Bound:
        return plus(*(term.box for term in terms), local)

    return Enclosed(
        digits,
        system.rounded(ball, local, digits),
        box=box if any(term.has_box for term in terms) else None,
        zeros=known_zeros.all_of(terms),
    )


def shown(x: Enclosed, hidden: Any = None) -> Enclosed:
    """The array with exact zeros in place of entries that are absent, in it or in `hidden`."""
    away = x.hidden
    if hidden is not None:
        away = hidden if away is None else away | hidden
    if away is None:
        return x
    engine = x.digits.engine
    digits = Digits(engine.where(away, 0.0, x.digits.limbs), x.digits.top)
    if x.exact:
        return Enclosed(digits)
    zeros = away | x.zeros if x.has_zeros else away
    return Enclosed(digits, lambda: x.ball, box=lambda: x.box, zeros=zeros)


def rounded_products(
    system: System, x: Enclosed, y: Enclosed, radius: Bound, terms: int = 1
) -> tuple[Digits, float]:
    """x·y so fine that a sum of so many of them stays far below the radius; and the error."""
    exact = x.digits.low + y.digits.low
    low = max(exact, system.grid(radius) - terms.bit_length())
    error = PRODUCT * math.ldexp(1.0, low) if low > exact else 0.0
    return arithmetic.multiply(x.digits, y.digits, low), error


def column_sums(system: System, x: Enclosed, by: Enclosed | None, merged: bool) -> Enclosed:
    """The sums over all axes but the last, of x or of x·by."""
    gone = known_zeros.cancelling(x) if by is None else ()
    if merged and x.ndim == 3:
        x = merge_heads(x)
    elif x.ndim == 3 and gone:  # every column of every head cancels, and so do their sums
        gone = range(x.width)
    flat = reshaped(x, (math.prod(x.shape[:-1]), x.width))
    if by is None:
        return _sums_of_columns(flat, gone)
    other = reshaped(by, flat.shape)
    count = flat.shape[0]
    sizes, others = abs(flat.approx) * NEAR, abs(other.approx) * NEAR
    each = plus(times(sizes, other.box), times(others, flat.box), times(flat.box, other.box))
    carried = None if each is None else total_of(each, 0)
    products, error = rounded_products(system, flat, other, carried, count)
    digits = arithmetic.total(products, 0)
    both = known_zeros.one_of(flat, other)
    zeros = None if both is None else lambda: both().all(0)
    return _summed(digits, carried, times(error, float(count)), zeros)


def column_sums_of_heads(system: System, x: Enclosed, by: Enclosed | None) -> Enclosed:
    """The sums over the positions of each head: (head, 1, width)."""
    heads = range(x.shape[0])
    others = [None if by is None else part(by, head) for head in heads]
    made = [column_sums(system, part(x, head), others[head], False) for head in heads]
    rows = [
        Enclosed(one.digits.reshape(1, x.width))
        if one.exact
        else by_entry(
            one.digits.reshape(1, x.width), one.box[None], zeros=known_zeros.zeros_of(one)[None]
        )
        for one in made
    ]
    return together(rows)


def each_alone(x: Enclosed) -> Enclosed:
    """Each number as a row of its own: one axis more, of one entry."""
    digits = x.digits.reshape(*x.shape, 1)
    if x.exact:
        return Enclosed(digits)
    zeros = (lambda: x.zeros[..., None]) if x.has_zeros else None
    return by_entry(digits, x.box[..., None], zeros=zeros)


def _sums_of_columns(x: Enclosed, gone: Sequence[int]) -> Enclosed:
    """The sums of the columns of a matrix; some of them are known to be 0."""
    digits = arithmetic.total(x.digits, 0)
    digits.limbs[:, list(gone)] = 0.0
    if x.exact:
        return Enclosed(digits)

    def zeros() -> Any:
        found = known_zeros.zeros_of(x).all(0)
        found[list(gone)] = True
        return found

    return Enclosed(
        digits, lambda: total_of(x.ball, 0), box=lambda: total_of(x.box, 0), zeros=zeros
    )


def reshaped(x: Enclosed, shape: tuple[int, ...]) -> Enclosed:
    """The same rows in another shape."""
    digits = x.digits.reshape(*shape)
    if x.exact:
        return Enclosed(digits)
    box = (lambda: x.box.reshape(*shape)) if x.has_box else None
    zeros = (lambda: x.zeros.reshape(*shape)) if x.has_zeros else None
    return Enclosed(digits, lambda: x.ball.reshape(*shape[:-1]), box=box, zeros=zeros)


def _summed(digits: Digits, carried: Bound, error: Bound, zeros: known_zeros.Zeros) -> Enclosed:
    """Sums with bounds for each of them."""
    box = plus(carried, error or None)
    if isinstance(box, float):
        box = constant(digits, digits.shape, box)
    return by_entry(without_empty_limbs(digits), box, zeros=zeros)


def row_dots(system: System, x: Enclosed, y: Enclosed) -> Enclosed:
    """Σ x·y of each row; entries that are absent in x are left out."""
    origin = Origin("row_dots", x, more=y)
    x, y = shown(x), shown(y, x.hidden)
    if x.has_box and y.has_box and not (x.exact or y.exact):
        one, other = abs(x.approx) * NEAR, abs(y.approx) * NEAR
        carried = total_of(plus(times(one, y.box), times(other, x.box), times(x.box, y.box)))
    else:
        carried = plus(times(x.norms, y.ball), times(y.norms, x.ball), times(x.ball, y.ball))
    products, error = rounded_products(system, x, y, carried, x.width)
    digits = arithmetic.total(products, -1)
    both = known_zeros.one_of(x, y)
    zeros = None if both is None else lambda: both().all(-1)
    made = _summed(digits, carried, times(error, float(x.width)), zeros)
    made.origin = origin
    return made


def sum_groups(x: Enclosed, heads: int) -> Enclosed:
    """The sum over the heads that share a key-value head."""
    whole, positions, width = x.shape
    group = whole // heads
    digits = arithmetic.total(x.digits.reshape(heads, group, positions, width), 1)
    if x.exact:
        return Enclosed(digits)
    origin = None
    if known_zeros.cancelling(x):
        origin = Origin("cancelling", x, more=range(heads * width))
    apart = (heads, group, positions)
    box = (lambda: total_of(x.box.reshape(*apart, width), 1)) if x.has_box else None
    zeros = (lambda: x.zeros.reshape(*apart, width).all(1)) if x.has_zeros else None

    def ball() -> Bound:
        return total_of(x.ball.reshape(*apart), 1)

    return Enclosed(digits, ball, box=box, zeros=zeros, origin=origin)


# ------------------------------------------------------------------ places


def scatter(grad: Enclosed, ids: Sequence[int], rows: int) -> Enclosed:
    """A table whose row is the sum of the gradients of the positions that took it."""
    places: dict[int, list[int]] = {}
    for position, row in enumerate(ids):
        places.setdefault(int(row), []).append(position)
    taken, groups = list(places), list(places.values())
    engine, limbs = grad.digits.engine, grad.digits.limbs

    def gathered(array: Any, axis: int) -> list[Any]:
        index = (slice(None),) * axis
        return [array[(*index, group)].sum(axis) for group in groups]

    sums = engine.concatenate([part[:, None] for part in gathered(limbs, 1)], 1)
    known = arithmetic.settle(sums, grad.digits.top)
    made = engine.zeros((known.n, rows, grad.width), limbs)
    made[:, taken] = known.limbs
    digits = Digits(made, known.top)
    if grad.exact:
        return Enclosed(digits)

    def placed(bound: Any) -> Any:
        """Sums of bounds of rows, 0 for rows that nobody took."""
        room = engine.zeros((rows, *bound.shape[1:]), limbs)
        most = max(map(len, groups))
        room[taken] = engine.concatenate(
            [total_of(bound[group], 0)[None] for group in groups]
        ) if most > 1 else bound[[group[0] for group in groups]]  # fmt: skip
        return room

    def zeros() -> Any:
        found = engine.zeros((rows, grad.width), limbs) == 0.0
        gone = known_zeros.zeros_of(grad)
        found[taken] = engine.concatenate([gone[group].all(0)[None] for group in groups])
        return found

    box = (lambda: placed(grad.box)) if grad.has_box else None
    return Enclosed(digits, lambda: placed(grad.ball), box=box, zeros=zeros)


def bucket_back(grad: Enclosed, buckets: Sequence[Sequence[int]], rows: int) -> Enclosed:
    """A table (rows, head): the sum of each head's gradients over a bucket's queries and keys."""
    heads, places = grad.shape[0], grad.shape[1] * grad.shape[2]
    known = shown(grad)

    def laid(entries: Any) -> Any:
        return entries.reshape(heads, places).swapaxes(0, 1)

    digits = known.digits.reshape(heads, places).swapaxes(0, 1)
    if known.exact:
        flat = Enclosed(digits)
    else:
        flat = by_entry(digits, laid(known.box), zeros=laid(known_zeros.zeros_of(known)))
    return scatter(flat, [bucket for row in buckets for bucket in row], rows)


def pack_heads(parts: Sequence[Enclosed], starts: Sequence[int], stride: int) -> Enclosed:
    """The columns of queries, keys and values, head by head, where each head begins."""
    columns = [
        (start + head * stride, part, head)
        for start, part in zip(starts, parts, strict=True)
        for head in range(part.shape[0])
    ]
    columns.sort(key=lambda column: column[0])
    digits = arithmetic.stack([part.digits[head] for _start, part, head in columns], axis=-1)
    if all(part.exact for part in parts):
        return Enclosed(digits)
    engine = digits.engine

    def side_by_side(of: Any) -> Any:
        return engine.concatenate([of(part)[head] for _start, part, head in columns], 1)

    def balls(part: Enclosed) -> Any:
        return constant(part.digits, part.shape[:-1], 0.0) if part.exact else part.ball

    def boxes(part: Enclosed) -> Any:
        return constant(part.digits, part.shape, 0.0) if part.exact else part.box

    def ball() -> Bound:
        return length(engine.concatenate([balls(part) for part in parts]), 0)

    return Enclosed(
        digits,
        ball,
        box=lambda: side_by_side(boxes),
        zeros=lambda: side_by_side(known_zeros.zeros_of),
        origin=Origin("cancelling", parts[0], more=_cancelling(columns)),
    )


def _cancelling(columns: Sequence[tuple[int, Enclosed, int]]) -> list[int]:
    """The packed columns of heads whose columns cancel."""
    return [
        start + inner
        for start, part, _head in columns
        if known_zeros.cancelling(part)
        for inner in range(part.width)
    ]
