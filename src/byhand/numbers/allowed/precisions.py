"""The classes of implementations that ranges are proven for: which results are rounded, and how.

    [transformers:][autocast:]FORMAT[+WAY]…        bfloat16, transformers:bfloat16+flash+parallel:8

The format says how results are stored; each way allows what such implementations do besides.
Nothing here computes with numbers of a model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import expm1, inf, ldexp, sqrt
from typing import Any

from byhand.errors import InputError, nearest
from byhand.language import _
from byhand.numbers.floats.formats import BFLOAT16, FLOAT16, Kind

ULPS = 8.0  # an elementary function is within 4 units of the last place: 8 unit roundoffs
OWN = ldexp(1.0, -53)  # the unit roundoff of the float64 that the middles are computed in
CHAIN = 512  # terms that BLAS usually adds one after the other, at most
ROW = 64  # the same in sums of a row, which are usually vectorised or done by halves
TRANSFORMERS = "transformers:"
AUTOCAST = "autocast:"
MOST_PARTS = 1024  # partial sums of one product


@dataclass(frozen=True, slots=True)
class Unit:
    """One rounding: x becomes x·(1 + d) + e with |d| <= half and |e| <= least, or overflows."""

    half: float  # half a unit of the last place, relative to the number
    least: float  # largest loss below the normal numbers: all of it where they are flushed to 0
    largest: float  # beyond it a number is infinite


NO_ROUNDING = Unit(0.0, 0.0, inf)
FLOAT64 = Unit(OWN, ldexp(1.0, -1022), ldexp(2 - 2 * OWN, 1023))
FLOAT32 = Unit(ldexp(1.0, -24), ldexp(1.0, -126), ldexp(2 - ldexp(1.0, -23), 127))
BFLOAT = Unit(ldexp(1.0, -8), ldexp(1.0, -126), ldexp(2 - ldexp(1.0, -7), 127))
# processors and GPUs keep the subnormal numbers of float16: half of their spacing may be lost
HALF = Unit(ldexp(1.0, -11), ldexp(1.0, -25), 65504.0)
CUT_OFF = replace(FLOAT32, half=ldexp(1.0, -23))  # float32 sums of tensor cores need not round
TF32 = replace(FLOAT32, half=ldexp(1.0, -10))  # 10 bits behind the point, the rest cut off


@dataclass(frozen=True, slots=True)
class Bytes:
    """Activations rounded to 8 bits before they meet a matrix, in units of a largest entry."""

    relative: float  # largest error relative to the number itself
    step: float  # largest error relative to the largest entry of its row, or of all rows
    by_tensor: bool = False  # one scale for all rows; otherwise one for each row, or finer


@dataclass(frozen=True, slots=True)
class Precision:
    """The roundings of an implementation: of stored results, intermediate results and additions.

    `inputs` is the rounding of what enters a product (tf32, autocast).  With `islands`, norms,
    softmax and the tables of RoPE are computed in float32 whatever the format.  `one_pass` allows
    the variance as mean(x²) - mean².  Floats are cast to `cast_weights` when they are admitted.

    `flash`: scores stay in float32, and shares are rounded to the format before they mix values.
    `fused`: an operation may read a result before it was rounded.  `bytes`: activations enter
    products with matrices in 8 bits.  `parts`: so many partial sums of a product may be stored.
    `ggml`: what meets a matrix is rounded by the matrix's format, as llama.cpp does.
    """

    name: str
    store: Unit
    work: Unit
    accumulate: Unit
    inputs: Unit | None = None
    islands: bool = False
    one_pass: bool = False
    cast_weights: Kind | None = None
    flash: bool = False
    fused: bool = False
    bytes: Bytes | None = None
    parts: int = 1
    ggml: bool = False

    @property
    def format(self) -> str:
        """The name of the format that results are stored in."""
        return self.name.partition("+")[0].rpartition(":")[2]

    @property
    def narrow(self) -> bool:
        """Whether it is a format of 16 bits, which is accumulated in float32."""
        return self.store.half > FLOAT32.half

    @property
    def single(self) -> float:
        """The unit roundoff of functions and sums: that of float32 for 16-bit formats."""
        return min(self.work.half, FLOAT32.half) if self.narrow else self.work.half

    @property
    def function(self) -> float:
        """The relative error of an elementary function, rounded to the working format."""
        if self.work.half > self.single:
            return ULPS * self.single + self.work.half * (1 + ULPS * self.single)
        return ULPS * self.single

    @property
    def rows(self) -> Unit:
        """The rounding of partial sums of a row: only those of products may be coarser."""
        return FLOAT32 if self.accumulate.half > FLOAT32.half else self.accumulate

    @property
    def coarse(self) -> bool:
        """Whether products are accumulated in 16 bits."""
        return self.accumulate.half > CUT_OFF.half

    def summed(self, count: int) -> float:
        """The largest relative error of a sum of `count` products, each rounded and added."""
        if not self.coarse:
            product = count * self.accumulate.half
            return product / (1 - product) if product < 1 else inf
        return expm1(count * self.accumulate.half * (1 + ldexp(1.0, -32)))

    @property
    def reach(self) -> float:
        """The largest intermediate result: for float16, intermediates are kept in float32."""
        return FLOAT32.largest if self.narrow else self.work.largest

    @property
    def flushed(self) -> float:
        """Below it a stored number may be read as 0: the smallest normal one, but for float16."""
        return 0.0 if self.store is HALF else self.store.least

    @property
    def parameters(self) -> Unit:
        """The rounding of parameters and of what is added up for them: autocast leaves float32."""
        return FLOAT32 if self.inputs is not None else self.store

    @property
    def entering(self) -> float:
        """The relative error of the factors of a product."""
        return 0.0 if self.inputs is None else self.inputs.half

    @property
    def entering_least(self) -> float:
        """The loss of a factor that is too small for the format of products; 0 where it may be
        flushed anyway."""
        if self.inputs is None or self.inputs.least <= self.flushed:
            return 0.0
        return self.inputs.least

    def usual_sum(self, count: int, chain: int = CHAIN) -> tuple[float, float]:
        """The usual error of a sum of `count` terms, as factors of |sum| and of √(Σ term²).

        A rounding is off by about 0.35 units, and at most `chain` terms follow one another.
        Partial sums are about (k/n)·sum + √k·term: their squares add up to n·(sum²/3 + n·term²/2).
        """
        half = self.accumulate.half if self.coarse and chain == CHAIN else self.rows.half
        length = min(count, chain)
        return 0.35 * half * sqrt(length / 3), 0.35 * half * sqrt(length / 2)

    @property
    def tables(self) -> Unit:
        """The rounding of angles, sines and cosines before they are stored."""
        if self.store is NO_ROUNDING:
            return NO_ROUNDING
        return FLOAT64 if self.store is FLOAT64 and not self.islands else FLOAT32

    @property
    def island(self) -> Precision:
        """The precision inside an island, which works in float32; without islands, itself."""
        if not self.islands:
            return self
        accumulate = FLOAT32 if self.accumulate is FLOAT64 else self.accumulate
        return replace(self, work=FLOAT32, accumulate=accumulate)

    @property
    def attending(self) -> Precision:
        """The precision of softmax: an island, also in kernels that keep the scores in float32."""
        return replace(self, islands=True).island if self.flash and self.narrow else self.island

    @property
    def cast(self) -> float:
        """The relative error of taking a stored number into the working format."""
        return self.work.half if self.work.half > self.store.half else 0.0

    @property
    def unstored(self) -> bool:
        """Whether the parts of a norm stay in the working format, finer than what is stored."""
        return self.islands and self.narrow


PLAIN = {
    "float64": Precision("float64", FLOAT64, FLOAT64, FLOAT64),
    "float32": Precision("float32", FLOAT32, FLOAT32, FLOAT32),
    "tf32": Precision("tf32", FLOAT32, FLOAT32, CUT_OFF, inputs=TF32),
    "float16": Precision("float16", HALF, HALF, CUT_OFF, cast_weights=FLOAT16),
    "bfloat16": Precision("bfloat16", BFLOAT, BFLOAT, CUT_OFF, cast_weights=BFLOAT16),
    # weights, and whatever else stays in float32, are rounded only where they enter a product
    "autocast:float16": Precision("autocast:float16", HALF, HALF, CUT_OFF, inputs=HALF),
    "autocast:bfloat16": Precision("autocast:bfloat16", BFLOAT, BFLOAT, CUT_OFF, inputs=BFLOAT),
}
EXACT = Precision("exact", NO_ROUNDING, NO_ROUNDING, NO_ROUNDING)
PRECISIONS = (*PLAIN, *(TRANSFORMERS + name for name in PLAIN), "exact")
# a float of 3 bits behind the point, whose scale may be the next power of 2; 127 whole steps, or
# 255 between the least and the largest number, with a scale of 11 bits
FP8 = Bytes(ldexp(1.0, -4), ldexp(1.0, -9) / 448)
INT8 = Bytes(ldexp(1.0, -10), 1 / 127)
WAYS: dict[str, dict[str, Any]] = {
    "flash": {"flash": True},
    "fused": {"fused": True},
    "fp8": {"bytes": FP8},
    "fp8:tensor": {"bytes": replace(FP8, by_tensor=True)},
    "int8": {"bytes": INT8},
    "int8:tensor": {"bytes": replace(INT8, by_tensor=True)},
    "accumulate:float16": {"accumulate": HALF},
    "accumulate:bfloat16": {"accumulate": BFLOAT},
    "ggml": {"ggml": True},
}
PARALLEL = "parallel:"
WAY_NAMES = (*WAYS, f"{PARALLEL}N")


@lru_cache
def precision(name: str) -> Precision:
    """The precision of this name; an InputError with the known ones.

    >>> precision("transformers:bfloat16").islands
    True
    >>> precision("bfloat16+flash+parallel:8").parts
    8
    """
    base, *ways = name.split("+")
    if base == "exact" and not ways:
        return EXACT
    plain = PLAIN.get(base.removeprefix(TRANSFORMERS))
    if plain is None:
        raise _unknown(name, base, PRECISIONS)
    settings: dict[str, Any] = {}
    for way in ways:
        setting = _parts(way) if way.startswith(PARALLEL) else WAYS.get(way)
        if setting is None or settings.keys() & setting.keys():
            raise _unknown(name, way, WAY_NAMES)
        settings |= setting
    if "accumulate" in settings and not plain.narrow:
        raise InputError(
            _("sums of {format} are not kept in 16 bits").format(format=plain.name),
            expected="float16+accumulate:float16, bfloat16+accumulate:bfloat16",
            found=name,
        )
    if "ggml" in settings and (base != "float32" or "bytes" in settings):
        raise InputError(
            _("llama.cpp stores float32, and 8 bits by a matrix's format alone"),
            expected="float32+ggml, float32+ggml+flash",
            found=name,
        )
    islands = base.startswith(TRANSFORMERS)
    return replace(plain, name=name, islands=islands, **settings)


def _parts(way: str) -> dict[str, Any] | None:
    """How many partial sums are stored, as `parallel:8` says it."""
    count = way.removeprefix(PARALLEL)
    if not (count.isascii() and count.isdecimal() and 2 <= int(count[:9]) <= MOST_PARTS):
        return None
    return {"parts": int(count)}


def _unknown(name: str, part: str, known: tuple[str, ...]) -> InputError:
    hint = nearest(part, known)
    return InputError(
        _("there is no precision {name}").format(name=repr(name)),
        expected=", ".join(known),
        found=part,
        hint=hint,
    )
