"""How suspects say numbers and names in their sentences."""

from __future__ import annotations

from fractions import Fraction

from byhand.expression import Expression, write
from byhand.language import _


def number(value: Fraction | int) -> str:
    """A setting as people write it: 0, 1e-05, 10000, 0.5."""
    if isinstance(value, int) or value.denominator == 1:
        return str(value)
    return f"{float(value):g}"


def factor(value: Expression | None) -> str:
    """A scale: "no scale", or the expression."""
    return _("no scale") if value is None else write(value)


def activation(kind: str) -> str:
    """An activation by its usual name."""
    usual = {
        "relu": "ReLU",
        "silu": "SiLU",
        "gelu": _("GELU with erf"),
        "gelu_tanh": _("GELU with tanh"),
        "gelu_quick": _("quick GELU, x·σ(1.702·x)"),
        "relu_squared": _("ReLU squared"),
        "identity": _("no activation"),
    }
    return usual.get(kind, kind)
