"""Rules that sublayers are made of: norms, slopes of activations, metrics of matrices, products."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq

from benchmarks.soundness.counts import Count
from benchmarks.soundness.drawn import KINDS, RIM, Drawn, apart_by, direction, enclosed
from benchmarks.soundness.truth import activation, balls, length, matrix, near, normalized, slope
from byhand.numbers.enclosed.limbs import moves
from byhand.numbers.enclosed.limbs.attention_sizes import _grams
from byhand.numbers.enclosed.limbs.metrics import (
    coherence,
    factor,
    overlaps,
    pair_norms,
    product_norm,
)
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.spectral import frobenius, spectral_norm, spectral_norms
from byhand.numbers.enclosed.limbs.values import Enclosed

LARGEST = {"relu": 1.0, "identity": 1.0}  # kinds whose slopes jump or stay


# ------------------------------------------------------------------ norms


def norm_case(drawn: Drawn, count: Count, samples: int) -> None:
    """A row within a ball, and how far its norm is from that of the middle: ζ."""
    width, centred = drawn.whole(1, 6), drawn.yes()
    eps = drawn.one_of((Fraction(0), Fraction(1, 10**5), Fraction(1, 10**12), Fraction(1)))
    row = drawn.floats(width).astype(float) * 10.0 ** drawn.random.uniform(-40, 6)
    if drawn.yes(0.2):  # a variance far below the size of the row
        row = row * 2.0**-40 + 1.0
    size = float(np.linalg.norm(row - row.mean() * centred)) / math.sqrt(width)
    rim = max(math.sqrt(size**2 + float(eps)), 2.0**-300)
    ball = rim * math.sqrt(width) * 10.0 ** drawn.random.uniform(-25, 0.1)
    numbers = Limbs(drawn.one_of((40, 120, 300)))
    digits = enclosed(row[None], 0.0).digits
    exact = Enclosed(digits)
    x = numbers.center(exact, numbers.mean(exact)) if centred else exact
    divisor = numbers.root(numbers.mean_square(x), eps=eps)
    known = Enclosed(digits, np.array([ball]))
    bound = float(moves.normalized_moves(known, divisor)[0])
    outward = row - row.mean() * centred
    worst = direction(_across(drawn, outward)[None])
    way = drawn.moves(samples, np.array([ball]), worst)[:, 0]
    way[0] = -outward / max(float(np.linalg.norm(outward)), 1e-300) * ball * RIM
    exact_eps = fmpq(eps.numerator, eps.denominator)
    here = balls(row)
    if not any(row - row[0] * centred) and not eps:
        return  # nothing over nothing
    middle = normalized(here, exact_eps, centred=centred)
    found = []
    for each in way:
        there = [x + dx for x, dx in zip(here, balls(each), strict=True)]
        found.append(apart_by(normalized(there, exact_eps, centred=centred), middle))
    count.add(bound, found)


def _across(drawn: Drawn, row: Any) -> Any:
    """A direction in which the row does not grow, where there is one."""
    made = drawn.random.standard_normal(row.size)
    made -= made.mean()
    along = float(row @ row)
    return made - row * (made @ row) / along if along > 0 else made


# ------------------------------------------------------------------ slopes of activations


def slope_case(drawn: Drawn, count: Count, samples: int) -> None:
    """f' within δ of c on all that lies within reach of a point."""
    kind = drawn.one_of(KINDS)
    x = drawn.random.standard_normal(samples) * 10.0 ** drawn.random.uniform(-8, 2.5, samples)
    edges = np.array([0.0, 2.0**-10, -(2.0**-10), 64.0, -64.0, 2.0**-11, 1.0, -1.3])
    edges = drawn.random.permutation(edges)[:samples]
    x[: edges.size] = edges * (1 + drawn.random.standard_normal(edges.size) * 1e-12)
    reach = 10.0 ** drawn.random.uniform(-20, 1.5, samples)
    values, off = near([activation(kind, one) for one in balls(x)], x.shape)
    more = np.abs(values) * 10.0 ** drawn.random.uniform(-16, -3, samples)
    values, off = values + more * drawn.random.uniform(-1, 1, samples), (off + more) * (1 + 1e-9)
    c, apart = moves.slopes_near(kind, x, values, off, reach)
    there = x + reach * drawn.one_of((-1, 1, -1, 1, 0.3)) * RIM
    exact = [one + arb(float(two - one.mid())) for one, two in zip(balls(x), there, strict=True)]
    for place, one in enumerate(exact):
        count.add(float(apart[place]), [abs(slope(kind, one) - arb(float(c[place])))])


# ------------------------------------------------------------------ metrics of matrices


def _matrix(drawn: Drawn, rows: int, columns: int) -> Any:
    """Matrices of every rank, with columns that follow each other."""
    rank = drawn.whole(1, max(1, min(rows, columns)))
    if drawn.yes(0.5):
        made = drawn.random.standard_normal((rows, columns))
    else:
        left, right = (drawn.random.standard_normal(s) for s in ((rows, rank), (rank, columns)))
        made = left @ right
    made *= 10.0 ** drawn.random.uniform(-3, 0, columns) if drawn.yes(0.3) else 1.0
    return made * drawn.size()


def _times(rows: arb_mat, column: Any) -> list[arb]:
    return [row[0] for row in (rows * arb_mat(len(column), 1, balls(column))).tolist()]


def factor_case(drawn: Drawn, count: Count, samples: int) -> None:
    """‖W·y‖ beside ‖S·y‖."""
    w = _matrix(drawn, drawn.whole(1, 8), drawn.whole(1, 5))
    found = factor(w)
    if found is None:
        return
    ways = drawn.random.standard_normal((samples, w.shape[1]))
    extreme = np.linalg.svd(np.vstack([w, found]))[2]
    ways = drawn.random.permutation(np.vstack([extreme, ways]))[:samples]
    left, right = matrix(w), matrix(found)
    for way in ways:
        one, other = length(_times(left, way)), length(_times(right, way))
        count.add(1.0, [one / other])


def overlap_case(drawn: Drawn, count: Count, samples: int) -> None:
    """|yᵀWᵀW'z| beside ω·‖S·y‖·‖S'·z‖."""
    deep, width = drawn.whole(1, 8), drawn.whole(1, 4)
    one = _matrix(drawn, deep, width)
    other = _matrix(drawn, deep, width) if drawn.yes(0.6) else one * drawn.one_of((1.0, -2.0))
    if drawn.yes(0.3):
        other = one @ drawn.random.standard_normal((width, width))
    parts = [one, other]
    factors = [factor(part) for part in parts]
    if any(made is None for made in factors):
        return
    gram = _grams(np.concatenate(parts, 1).T.copy(), 2, width)
    sizes = np.array([frobenius(part) for part in parts])
    found = overlaps(np.array(factors), gram, sizes, deep)
    a, b = (np.linalg.inv(made) for made in factors)
    y, z = drawn.random.standard_normal((2, samples, width))
    with np.errstate(all="ignore"):
        left, _values, right = np.linalg.svd(np.nan_to_num(a.T @ gram[0, 1] @ b))
    y[: samples // 2], z[: samples // 2] = a @ left[:, 0], b @ right[0]
    exact = [matrix(part) for part in (*parts, *factors)]
    for k in range(samples):
        ways = direction(np.array([y[k], z[k]]))
        wy, wz = _times(exact[0], ways[0]), _times(exact[1], ways[1])
        form = abs(sum((p * q for p, q in zip(wy, wz, strict=True)), arb(0)))
        whole = length(_times(exact[2], ways[0])) * length(_times(exact[3], ways[1]))
        if whole > 0:
            count.add(float(found[0, 1]), [form / whole])


def pair_case(drawn: Drawn, count: Count, samples: int) -> None:
    """‖A_hᵀ·W_hᵀW_i·A_i·z‖ for vectors of length 1; the diagonal by the norm of a product."""
    deep, width, stream = drawn.whole(1, 7), drawn.whole(1, 4), drawn.whole(1, 6)
    outs = [_matrix(drawn, deep, width) for _head in range(2)]
    values = [_matrix(drawn, width, stream) for _head in range(2)]
    if drawn.yes(0.3):
        outs[1], values[1] = outs[0], values[0]
    lefts = [factor(np.ascontiguousarray(part.T)) for part in values]
    metric = factor(outs[0])
    if metric is None or any(made is None for made in lefts):
        return
    gram = _grams(np.concatenate(outs, 1).T.copy(), 2, width)
    sizes = np.array([frobenius(part) for part in outs])
    bounds = pair_norms(np.array(lefts), gram, sizes)
    whole = product_norm(metric, values[0])
    exact = [matrix(part) for part in (*outs, *values)]
    one, other = exact[0] * exact[2], exact[1] * exact[3]
    cross = one.transpose() * other
    ways = direction(drawn.random.standard_normal((samples, stream)))
    with np.errstate(all="ignore"):
        a, b = outs[0] @ values[0], outs[1] @ values[1]
        for k, m in enumerate((a.T @ b, a)):
            ways[k::4] = direction(np.linalg.svd(np.nan_to_num(m / np.abs(m).max()))[2][:1])
    for way in ways:
        size = length(balls(way))
        count.add(float(bounds[0, 1]), [length(_times(cross, way)) / size])
        count.add(float(whole), [length(_times(one, way)) / size])


def spectral_case(drawn: Drawn, count: Count, samples: int) -> None:
    """‖A·y‖ for vectors of length 1, by both ways to a norm."""
    a = _matrix(drawn, drawn.whole(1, 9), drawn.whole(1, 9))
    bounds = spectral_norm(a), float(spectral_norms(a[None])[0])
    ways = direction(drawn.random.standard_normal((samples, a.shape[1])))
    ways[:2] = np.linalg.svd(a / np.abs(a).max())[2][0]
    exact = matrix(a)
    for way in ways:
        found = length(_times(exact, way)) / length(balls(way))
        for bound in bounds:
            count.add(bound, [found])


def coherence_case(drawn: Drawn, count: Count, samples: int) -> None:
    """‖V·diag(c)·A‖_F beside both bounds of the form."""
    width, units, wide = drawn.whole(1, 5), drawn.whole(1, 12), drawn.whole(1, 5)
    gated = drawn.yes()
    columns = _matrix(drawn, wide, units)
    rows = [_matrix(drawn, units, width) for _part in range(1 + gated)]
    form = coherence(columns, *rows)
    exact_columns = matrix(columns)
    exact = [matrix(part) for part in rows]
    heights = [length([row[i] for row in exact_columns.tolist()]) for i in range(units)]
    lengths = [length(row) for part in exact for row in part.tolist()]
    sizes = [heights[i % units] * one for i, one in enumerate(lengths)]
    directions = matrix(form.directions) if len(form.directions) else None
    with np.errstate(all="ignore"):
        steep = np.linalg.svd(np.nan_to_num(form.directions))[2] if directions is not None else None
    for k in range(samples):
        w = drawn.random.standard_normal(len(sizes))
        if steep is not None and k % 2:
            w = steep[k % len(steep)] + w * 10.0 ** drawn.random.uniform(-9, 0)
        c = [arb(x) / size if size > 0 else arb(0) for x, size in zip(w, sizes, strict=True)]
        real = [x * size for x, size in zip(c, sizes, strict=True)]
        made = []
        for i in range(units):
            own = [c[i] * x for x in exact[0].tolist()[i]]
            if gated:
                other = exact[1].tolist()[i]
                own = [x + c[units + i] * y for x, y in zip(own, other, strict=True)]
            made += own
        whole = exact_columns * arb_mat(units, width, made)
        found = length([x for row in whole.tolist() for x in row])
        flat = sum((x * x for x in real), arb(0))
        limit = arb(form.rest) * flat
        if directions is not None:
            along = (directions * arb_mat(len(real), 1, real)).tolist()
            limit += sum((arb(float(s)) * row[0] ** 2
                          for s, row in zip(form.weights, along, strict=True)), arb(0))  # fmt: skip
        for bound in (limit, arb(form.top) * flat):
            if bound > 0:
                count.add(1.0, [found / bound.sqrt()])
