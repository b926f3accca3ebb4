"""Low-rank weights: `product: [U, V]`, multiplied out exactly.

Entries may be expressions: a rational entry of the result is a Fraction, any other an expression
tree over the factors' entries.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from byhand.errors import ShapeError
from byhand.expression import Expression, Number, Product, Sum, leaves
from byhand.files import scalars
from byhand.files.literals import Literals
from byhand.files.tree import List, Node, Scalar
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.weights import Data

MOST_TERMS = 2_000_000  # multiplications in one product
LONGEST_ENTRY = 400  # leaves of an entry that is not rational
MOST_BITS = 13_000  # of a rational entry: about 3,900 digits

Value = Fraction | Expression


def product(node: Node, literals: Literals, refer: Callable[[Scalar], Data]) -> Data:
    """The exact product of the factors from left to right; a single number is a scale."""
    if not isinstance(node, List) or not node.items:
        raise node.wrong(_("a product is a list of its factors"), expected="[[[1], [2]], [[3, 4]]]")
    scale: Value = Fraction(1)
    total: Data | None = None
    for each in node.items:
        if isinstance(each, Scalar) and not each.text.startswith("@"):
            scale = _times(scale, scalars.value_of(each))
            continue
        factor = refer(each) if isinstance(each, Scalar) else literals.read_matrix(each)
        factor = _exact(factor, each)
        total = factor if total is None else _matmul(total, factor, each)
    if total is None:
        raise node.wrong(
            _("a product needs at least one matrix"), expected="[[[1], [2]], [[3, 4]]]"
        )
    return _mapped(total, lambda entry: _within_bounds(_times(scale, entry), node))


def _mapped(data: Data, change: Callable[[Value], Value]) -> Data:
    out = np.empty(data.shape, dtype=object)
    for index, entry in np.ndenumerate(data):
        out[index] = change(entry)
    return out


def _exact(factor: Data, node: Node) -> Data:
    """The factor as an object matrix of Fractions and expressions."""
    if factor.ndim != 2:
        raise node.wrong(
            _("only matrices can be multiplied"),
            expected=_("a matrix"),
            found="×".join(map(str, factor.shape)),
        )
    if factor.dtype != np.dtype(object):
        return _mapped(factor, lambda entry: Fraction(float(entry)))  # type: ignore[arg-type]
    for entry in factor.ravel():
        if entry is ABSENT or isinstance(entry, Unknown | Printed):
            raise node.wrong(
                _("a product needs factors that are known exactly"),
                expected=_("numbers"),
                found=_("unknown") if isinstance(entry, Unknown) else _("printed decimals"),
            )
    return factor


def _matmul(left: Data, right: Data, node: Node) -> Data:
    if left.shape[1] != right.shape[0]:
        raise ShapeError(
            _("these matrices cannot be multiplied"),
            where=node.where,
            expected=_("{count} rows, one for each column before").format(count=left.shape[1]),
            found="×".join(map(str, right.shape)),
        )
    terms = left.shape[0] * left.shape[1] * right.shape[1]
    if terms > MOST_TERMS:
        raise node.wrong(
            _("too large a product"),
            expected=_("at most {count} multiplications").format(count=f"{MOST_TERMS:,}"),
            found=f"{terms:,}",
        )
    out = np.empty((left.shape[0], right.shape[1]), dtype=object)
    for row, column in np.ndindex(*out.shape):
        out[row, column] = _within_bounds(_dot(left[row], right[:, column]), node)
    return out


def _dot(left: Data, right: Data) -> Value:
    known = Fraction(0)
    terms: list[Expression] = []
    for a, b in zip(left, right, strict=True):
        term = _times(a, b)
        if isinstance(term, Fraction):
            known += term
        else:
            terms.append(term)
    if not terms:
        return known
    if known:
        terms.append(Number(known))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _times(a: Value, b: Value) -> Value:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    if a == 0 or b == 0:
        return Fraction(0)
    if a == 1:
        return b
    if b == 1:
        return a
    return Product((scalars.constant(a), scalars.constant(b)))


def _within_bounds(value: Value, node: Node) -> Value:
    if isinstance(value, Fraction):
        large = max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS
    else:
        large = sum(1 for _leaf in leaves(value)) > LONGEST_ENTRY
    if large:
        raise node.wrong(
            _("too large a product"),
            expected=_("entries of at most {digits} digits or {leaves} parts").format(
                digits=f"{MOST_BITS * 3 // 10:,}", leaves=LONGEST_ENTRY
            ),
            found=_("more"),
        )
    return value
