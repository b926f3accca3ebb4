"""The coefficients of `byhand.numbers.floats.erf`, made with Arb at 400 bits.

    python tools/erf_coefficients.py > src/byhand/numbers/floats/erf_coefficients.py

Smooth functions of two kinds are interpolated at Chebyshev nodes.  The series is cut off and
written as a polynomial, with coefficients rounded to the format:

    erf(x)/x - 1                      in x², for 0 ≤ x ≤ 1
    (1 + y)·e^(y²)·erfc(y)            in s = (y - K)/(y + K), for 0 ≤ y < ∞
    (1 + y)·e^(y²/2)·Φ(-y)            likewise: the share of the normal distribution beyond y
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb, arb_poly, ctx, fmpq

NODES = 80
K = {"erfc": Fraction(3), "normal": Fraction(4)}  # where s = 0; found by trying
DEGREES = {  # the least with a truncation error below the rounding
    "float64": {"erf": 12, "erfc": 24, "normal": 25},
    "float32": {"erf": 6, "erfc": 11, "normal": 11},
}
BITS = {"float64": 53, "float32": 24}
Function = Callable[[arb], arb]


def chebyshev(f: Function) -> list[arb]:
    """The coefficients of the interpolating Chebyshev series of f on [-1, 1]."""
    angles = [arb.pi() * (2 * j + 1) / (2 * NODES) for j in range(NODES)]
    values = [f(angle.cos()) for angle in angles]
    series = []
    for k in range(NODES):
        terms = (v * (angle * k).cos() for v, angle in zip(values, angles, strict=True))
        series.append(sum(terms, arb(0)) * (1 if k == 0 else 2) / NODES)
    return series


def polynomial(series: list[arb], degree: int) -> list[arb]:
    """The series up to this degree, as coefficients of the powers, from the lowest."""
    before, now = arb_poly([1]), arb_poly([0, 1])
    total = before * series[0] + now * series[1]
    for coefficient in series[2 : degree + 1]:
        before, now = now, arb_poly([0, 2]) * now - before
        total += now * coefficient
    return [total[i] for i in range(degree + 1)]


def near_zero(u: arb) -> arb:
    """erf(√u)/√u - 1 by its power series in u."""
    total, term = arb(0), 2 / arb.pi().sqrt()
    for n in range(200):
        total += term / (2 * n + 1)
        term *= -u / (n + 1)
    return total - 1


def tail(halves: int, k: Fraction) -> Function:
    """(1 + y)·e^(y²/halves)·(erfc or Φ(-y)) as a function of s."""

    def f(s: arb) -> arb:
        y = arb(fmpq(k.numerator, k.denominator)) * (1 + s) / (1 - s)
        beyond = y.erfc() if halves == 1 else (y / arb(2).sqrt()).erfc() / 2
        return (1 + y) * (y * y / halves).exp() * beyond

    return f


def on_unit_interval(f: Function, degree: int) -> list[arb]:
    """The polynomial in u of an f(u) on [0, 1]."""
    inner = arb_poly(polynomial(chebyshev(lambda t: f((t + 1) / 2)), degree))
    shifted = inner(arb_poly([-1, 2]))
    return [shifted[i] for i in range(degree + 1)]


def rounded(coefficient: arb, bits: int) -> float:
    """The coefficient rounded to the nearest number of so many bits."""
    with ctx.workprec(bits):
        near = (coefficient + 0).mid()
    mantissa, exponent = near.man_exp()
    return float(int(mantissa) * Fraction(2) ** int(exponent))


def tables(form: str) -> dict[str, list[float]]:
    """The coefficients of each function in this format, from the highest power."""
    degrees = DEGREES[form]
    exact = {
        "erf": on_unit_interval(near_zero, degrees["erf"]),
        "erfc": polynomial(chebyshev(tail(1, K["erfc"])), degrees["erfc"]),
        "normal": polynomial(chebyshev(tail(2, K["normal"])), degrees["normal"]),
    }
    return {name: [rounded(c, BITS[form]) for c in row[::-1]] for name, row in exact.items()}


def module() -> str:
    """The text of the module."""
    lines = [
        '"""Coefficients made by tools/erf_coefficients.py, from the highest power down."""',
        "",
        f'K = {{"erfc": {float(K["erfc"])}, "normal": {float(K["normal"])}}}',
        "COEFFICIENTS = {",
    ]
    for form in DEGREES:
        lines.append(f'    "{form}": {{')
        for name, row in tables(form).items():
            lines.append(f'        "{name}": (')
            lines.extend(f"            {c!r}," for c in row)
            lines.append("        ),")
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    ctx.prec = 400
    print(module(), end="")
