"""How a float is shown to people: short, and never a zero for what is not one."""

from __future__ import annotations

from math import isinf, isnan


def short(number: float) -> str:
    """Four decimals for ordinary sizes, four digits with an exponent for others.

    >>> short(-0.5), short(1e-7), short(123456.0), short(float("-inf")), short(-0.0)
    ('-0.5000', '1.000e-07', '1.235e+05', '-inf', '0.0000')
    """
    if isnan(number):
        return "nan"
    if isinf(number):
        return "inf" if number > 0 else "-inf"
    if number == 0:
        return "0.0000"
    if 1e-3 <= abs(number) < 1e5:
        return f"{number:.4f}"
    return f"{number:.3e}"
