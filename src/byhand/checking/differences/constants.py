"""Constants: a number that was read off a claim, recognised as one that people write.

A number is recognised where a constant lies within its uncertainty and where few constants could:
`chance` is how many of the known constants at least as plain would fit a number drawn at random as
closely.  Above LIKELY nothing is recognised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, e, gcd, isclose, isfinite, log, log2, log10, pi, sqrt

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.closeness import SURE, Fitted
from byhand.checking.suspects.casts import FLOATS, rounded_to
from byhand.checking.suspects.scenes import Scene
from byhand.spec import ModelSpec

LIKELY = 0.02  # constants that would fit by chance
OWN = 2.0**-23  # relative: the constant itself is a float32 number, and so is a product with it
SCALES = ("√d_head", "√d_model")  # worth a mention, also where a plainer form is known
FEW = 8  # n/(n − 1) of a smaller n is a plain fraction
AROUND = 2.0  # constants within this factor of a number are its neighbours


@dataclass(frozen=True)
class Constant:
    """A known number."""

    value: float
    written: str  # "1/√2"; with its meaning in the model, "1/4 (1/√d_head)"
    rank: int = 0  # how plain it is: 0 the plainest
    chance: float = 0.0
    meaning: str = ""  # what it is in the model: "1/√d_head"

    @property
    def exact(self) -> bool:
        """Whether it is a power of two, by which a product is exact."""
        return self.value != 0 and log2(abs(self.value)).is_integer()


def recognised(found: Fitted, scene: Scene) -> Constant | None:
    """The constant that a number is, if it can be told."""
    value, size = found.value, abs(found.value)
    if not isfinite(value) or not isfinite(found.off):
        return None
    if size <= SURE * found.off:
        return Constant(0.0, "0")
    near = SURE * found.off + OWN * size
    if abs(size - 1) <= near:
        return Constant(1.0, "1") if value > 0 else Constant(-1.0, "−1")
    known, values, ranks = _known(scene.spec, scene.plan.length)
    fits = np.abs(size - values) <= near
    own = scene.context.precision.partition("+")[0].rpartition(":")[2]
    if own in FLOATS and FLOATS[own][0] < FLOATS["float32"][0]:  # it may be held in the format
        fits |= np.abs(size - rounded_to(own, values)) <= near
    places = np.flatnonzero(fits)
    if not len(places):
        return None
    best = known[places[0]]  # the plainest
    rivals = values[(ranks <= best.rank) & (size / AROUND <= values) & (values <= size * AROUND)]
    count = len(np.unique(rivals)) * (1 if value > 0 else 2)
    chance = count * 2 * near / size / log(AROUND * AROUND)
    if chance > LIKELY:
        return None
    same = [known[at] for at in places if isclose(values[at], best.value, rel_tol=1e-12)]
    sign = "" if value > 0 else "−"
    written = sign + best.written
    meant = [best.meaning, *(each.meaning for each in same if each.meaning.endswith(SCALES))]
    for meaning in list(filter(None, meant))[:1]:
        written = f"{written} ({sign}{meaning})"
    return Constant(best.value if value > 0 else -best.value, written, best.rank, chance)


def unlikely(constant: Constant | None) -> int:
    """How unlikely a constant is as a mistake: unknown ones most of all."""
    return 3 if constant is None else min(2, constant.rank)


def shown(found: Fitted) -> str:
    """A number with the digits that are known of it."""
    size, off = abs(found.value), max(found.off, OWN * abs(found.value))
    if not size or not isfinite(size) or not isfinite(off) or off >= size:
        return f"{found.value:.3g}"
    digits = max(3, ceil(log10(size / off)))
    return f"{found.value:.{digits}g}".replace("-", "−")


# ------------------------------------------------------------------------ what is known


@lru_cache(maxsize=16)
def _known(
    spec: ModelSpec, length: int
) -> tuple[tuple[Constant, ...], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The constants above 0 without 1, the plainest first; their values, and their ranks.

    A value that can be written in several ways is as plain as its plainest form.
    """
    found = [*_plain(), *_famous(), *_of_model(spec, length), *_fractions(), *_decimals()]
    found = [each for each in found if each.value > 0 and each.value != 1]
    ranks: dict[str, int] = {}
    for each in found:
        key = f"{each.value:.12g}"
        ranks[key] = min(each.rank, ranks.get(key, each.rank))
    known = tuple(
        sorted(
            (replace(each, rank=ranks[f"{each.value:.12g}"]) for each in found),
            key=lambda each: each.rank,
        )
    )  # stable
    return (
        known,
        np.array([each.value for each in known]),
        np.array([each.rank for each in known]),
    )


def _plain() -> Iterator[Constant]:
    for number, rank in ((1, 0), (2, 0), (3, 1), (4, 1), (8, 1), (10, 1), (16, 1), (100, 1)):
        yield Constant(float(number), str(number), rank)
        yield Constant(1 / number, f"1/{number}", rank)
    for fraction in ("3/2", "2/3", "3/4", "4/3"):
        yield Constant(float(Fraction(fraction)), fraction, 1)
    for power in range(5, 25):
        yield Constant(2.0**power, f"2^{power}", 3)
        yield Constant(2.0**-power, f"2^−{power}", 3)
    for power in range(3, 13):
        yield Constant(10.0**power, f"1e{power}", 2)
        yield Constant(float(f"1e-{power}"), f"1e−{power}", 2)
    for rate in ("0.1", "0.2", "0.05", "0.3", "0.4", "0.15"):
        rest = 1 - Fraction(rate)
        plain = 1 / rest
        yield Constant(float(plain), str(plain), 1, meaning=f"1/(1 − {rate})")
        yield Constant(float(rest), f"{float(rest):g}", 1)


def _famous() -> Iterator[Constant]:
    for value, written, rank in (
        (sqrt(2), "√2", 1), (1 / sqrt(2), "1/√2", 1), (sqrt(3), "√3", 3), (1 / sqrt(3), "1/√3", 3),
        (sqrt(2 / pi), "√(2/π)", 2), (1.702, "1.702", 2), (0.044715, "0.044715", 2),
        (log(2), "ln 2", 2), (1 / log(2), "1/ln 2 = log2 e", 2), (pi, "π", 2), (2 * pi, "2π", 2),
        (1 / pi, "1/π", 2), (pi / 2, "π/2", 3), (sqrt(pi), "√π", 3), (sqrt(2 * pi), "√(2π)", 3),
        (e, "e", 3), (1 / e, "1/e", 3), (log(10), "ln 10", 3), (1 / log(10), "1/ln 10", 3),
        (65504.0, "65504", 2), (57344.0, "57344", 2), (448.0, "448", 2), (240.0, "240", 2),
    ):  # fmt: skip
        yield Constant(value, written, rank)


def _of_model(spec: ModelSpec, length: int) -> Iterator[Constant]:
    """The model's own sizes and settings, and what people make of them."""
    sizes = _sizes(spec, length)
    for name, n in sizes.items():
        for value, form, rank in (
            (n, "{n}", 1),
            (1 / n, "1/{n}", 1),
            (sqrt(n), "√{n}", 1),
            (1 / sqrt(n), "1/√{n}", 1),
            (n**-0.25, "1/{n}^(1/4)", 3),
            (n / (n - 1), "{n}/({n} − 1)", 2),
            ((n - 1) / n, "({n} − 1)/{n}", 2),
            (sqrt(n / (n - 1)), "√({n}/({n} − 1))", 3),
            (sqrt((n - 1) / n), "√(({n} − 1)/{n})", 3),
        )[: 9 if n >= FEW else 5]:
            yield Constant(float(value), form.format(n=n), rank, meaning=form.format(n=name))
    widths = {name: n for name, n in sizes.items() if name not in ("length", "layers")}
    for top, above in widths.items():
        for bottom, below in widths.items():
            ratio, meant = f"{above}/{below}", f"{top}/{bottom}"
            yield Constant(above / below, ratio, 2, meaning=meant)
            yield Constant(sqrt(above / below), f"√({ratio})", 2, meaning=f"√({meant})")
    twice = 2 * len(spec.blocks) or 1
    yield Constant(sqrt(twice), f"√{twice}", 2, meaning="√(2·layers)")
    yield Constant(1 / sqrt(twice), f"1/√{twice}", 2, meaning="1/√(2·layers)")
    for eps in {norm.eps for block in spec.blocks for norm in (block.attn_norm, block.mlp_norm)}:
        yield Constant(float(eps), "eps", 1)


def _sizes(spec: ModelSpec, length: int) -> dict[str, int]:
    """The sizes by name; a size that is 1 or has been named is left out."""
    found = {"d_model": spec.d_model}
    for block in spec.blocks[:1]:
        if block.attention:
            found |= {"d_head": block.attention.d_head, "heads": block.attention.heads}
            found |= {"kv_heads": block.attention.kv_heads}
        if block.mlp:
            found |= {"d_ff": block.mlp.d_ff}
    found |= {"layers": len(spec.blocks), "length": length}
    distinct: dict[str, int] = {}
    for name, size in found.items():
        if size > 1 and size not in distinct.values():
            distinct[name] = size
    return distinct


def _fractions() -> Iterator[Constant]:
    for bottom in range(2, 33):
        for top in range(1, 3 * bottom):
            if gcd(top, bottom) == 1:
                rank = 2 if max(top, bottom) <= 4 else 3 if max(top, bottom) <= 12 else 5
                yield Constant(top / bottom, f"{top}/{bottom}", rank)
    for whole in range(5, 200):
        yield Constant(float(whole), str(whole), 3 if whole <= 12 else 5)
        yield Constant(1 / whole, f"1/{whole}", 3 if whole <= 12 else 5)


def _decimals() -> Iterator[Constant]:
    """Numbers of up to three digits: settings of a configuration."""
    for digits, rank in ((1, 3), (2, 4), (3, 6)):
        for number in range(10 ** (digits - 1), 10**digits):
            for power in range(-3 - digits, 1):
                if number % 10:
                    value = float(f"{number}e{power}")
                    yield Constant(value, f"{value:g}", rank)
