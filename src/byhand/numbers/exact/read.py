"""The reader of expressions as values.  Values that would be too large are refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any

from flint import fmpq

from byhand.errors import ExpressionError, InputError, Undecided
from byhand.expression import (
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    write,
)
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Within
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import Value

LARGEST_EXPONENT = 1_000_000  # of e, in what a person writes
MOST_BITS = 100_000  # of a rational power
Binding = Callable[[Name | Entry], Value | None]


def evaluate(
    tree: Expression, space: Space, binding: Binding | None = None, *, bounded: bool = True
) -> Value:
    """The value of an expression, exactly.

    Raises ExpressionError for a division by zero, a root or logarithm that does not exist, or an
    unknown name.  With `bounded`, numbers too large to write down raise it too.
    """
    return _Evaluation(space, binding, bounded).value(tree)


def admitted(entry: Any, space: Space) -> Value | None:
    """The value of a weight, exactly: a rational, an expression, a range or a float."""
    if isinstance(entry, Value) or entry is ABSENT:
        return entry
    if isinstance(entry, Fraction | int):
        return space.value(entry)
    if isinstance(entry, Rational):  # NumPy's integers are
        return space.value(Fraction(entry))
    if isinstance(entry, Printed | Within):
        return space.printed(entry)
    if isinstance(entry, Expression):
        return evaluate(entry, space)
    if isinstance(entry, str) or not hasattr(entry, "__float__"):
        raise InputError(_("not a number"), found=repr(entry)[:60])
    return space.value(entry if hasattr(entry, "as_integer_ratio") else float(entry))


class _Evaluation:
    def __init__(self, space: Space, binding: Binding | None, bounded: bool) -> None:
        self.space = space
        self.binding = binding
        self.bounded = bounded

    def value(self, tree: Expression) -> Value:
        try:
            return self.worked(tree)
        except ZeroDivisionError:
            raise ExpressionError(_("division by zero"), found=_short(tree)) from None
        except Undecided as reason:
            if not self.bounded:
                raise
            raise ExpressionError(
                _("it cannot be decided whether this has a value"),
                found=_short(tree),
                hint=reason.message,
            ) from None
        except ExpressionError:
            raise
        except InputError as reason:
            raise ExpressionError(reason.message, found=_short(tree)) from None

    def worked(self, tree: Expression) -> Value:
        space = self.space
        match tree:
            case Number(value=q):
                return space.value(q)
            case Name() | Entry():
                return self.named(tree)
            case Negative(of=x):
                return -self.value(x)
            case Sum(terms=terms):
                xs = [self.value(term) for term in terms]
                return space.combine([ONE] * len(xs), xs)
            case Product(factors=factors):
                result = space.plain(ONE)
                for factor in factors:
                    result = result * self.value(factor)
                return result
            case Quotient(top=a, bottom=b):
                return self.value(a) / self.value(b)
            case Power(base=Name(text="e"), exponent=x):
                return self.exp(self.value(x), tree)
            case Power(base=a, exponent=b):
                return self.power(self.value(a), self.value(b), tree)
            case Call(function=function, argument=x):
                return self.call(function, self.value(x), tree)

    def named(self, leaf: Name | Entry) -> Value:
        found = self.binding(leaf) if self.binding else None
        if found is not None:
            return found
        if leaf == Name("e"):
            return self.space.exp(self.space.plain(ONE))
        if leaf == Name("pi"):
            return self.space.pi()
        raise ExpressionError(
            _("{name} has no value here").format(name=write(leaf)),
            hint=_("names with a value: e, pi"),
        )

    def call(self, function: str, x: Value, tree: Expression) -> Value:
        space = self.space
        match function:
            case "exp":
                return self.exp(x, tree)
            case "sqrt":
                return space.sqrt(x)
            case "ln":
                return space.ln(x)
            case "sin":
                return space.sin(x)
            case "cos":
                return space.cos(x)
            case "tanh" | "erf":
                return space.odd_function(function, x)
            case "relu":
                return space.relu(x)[0]
            case "step":
                return space.step(x)
        raise ExpressionError(_("there is no function {name}").format(name=repr(function)))

    def exp(self, x: Value, tree: Expression) -> Value:
        if self.bounded and not any(
            x.ball(bits).abs_upper() <= LARGEST_EXPONENT for bits in (64, 512)
        ):
            raise ExpressionError(
                _("too large: the exponent of e goes beyond {most}").format(most=LARGEST_EXPONENT),
                found=_short(tree),
            )
        return self.space.exp(x)

    def power(self, base: Value, exponent: Value, tree: Expression) -> Value:
        space = self.space
        if exponent.num is None and exponent.q.q == 1:
            e = int(exponent.q.p)
            if base.num is None:
                return space.plain(self.rational_power(base.q, e, tree))
            if abs(e) <= space.limits.degree:
                return space.integer_power(base, e)
            if e % 2 == 0:
                base = abs(base)
            elif space.sign(base) < 0:
                return -self.exp(space.ln(-base) * exponent, tree)
        elif base.num is None and base.q == 0 and space.sign(exponent) > 0:
            return space.plain(fmpq(0))
        return self.exp(space.ln(base) * exponent, tree)

    def rational_power(self, q: fmpq, e: int, tree: Expression) -> fmpq:
        if q in (0, 1, -1):
            if q == 0 and e < 0:
                raise ZeroDivisionError
            return ONE if e == 0 or q == 1 else q if q == 0 or e % 2 else ONE
        if max(q.p.bit_length(), q.q.bit_length()) * abs(e) > MOST_BITS:
            raise ExpressionError(
                _("too large: a power of more than {count} bits").format(count=MOST_BITS),
                found=_short(tree),
            )
        return q**e


def _short(tree: Expression) -> str:
    text = write(tree)
    return text if len(text) <= 60 else text[:57] + "…"
