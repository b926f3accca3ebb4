"""RoPE as the settings and tensors of a GGUF file describe it.

The file may give a divisor for the angle of each pair (rope_freqs, rope_factors_short): the angle
is then base^(-2i/width) / divisor, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from byhand.errors import ShapeError
from byhand.expression import Expression, Number, Power, Quotient
from byhand.files.gguf import Packed
from byhand.files.mapped import sides
from byhand.language import _
from byhand.models.gguf.settings import Settings
from byhand.models.huggingface.config import LONGEST_CONTEXT
from byhand.rope_scaling import Scaling
from byhand.spec import RotarySpec
from byhand.weights import Data

FREQUENCIES, SHORT, LONG = (
    "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight",
)  # fmt: skip
SCALINGS = {"none": "none", "linear": "linear", "longrope": "longrope"}


@dataclass(frozen=True)
class Turns:
    """Angles per position that a file gives, and the longest text they are meant for."""

    frequencies: Data
    context: int | None = None
    note: str | None = None


def turns_of(
    settings: Settings, tensors: Mapping[str, Packed], d_head: int, pairing: str, windowed: bool
) -> tuple[RotarySpec | None, Turns | None]:
    """The rotation of heads of this width, in layers with or without a window."""
    width = settings.whole("rope.dimension_count", d_head, least=0)
    if width == 0:
        return None, None
    base = settings.number("rope.freq_base", Fraction(10_000))
    own_base = settings.number("rope.freq_base_swa", _local(settings, base))
    kind = settings.word("rope.scaling.type", "linear", SCALINGS)
    factor = settings.number("rope.scaling.factor", Fraction(0))
    factor = factor or settings.number("rope.scale_linear", Fraction(0)) or Fraction(1)
    attention = settings.number("rope.scaling.attn_factor", Fraction(1))
    magnitude: Expression | None = None if attention == 1 else Number(attention)
    length = settings.whole(
        "rope.scaling.original_context_length",
        settings.whole("context_length", most=LONGEST_CONTEXT),
        most=LONGEST_CONTEXT,
    )
    base = own_base if windowed else base
    if base <= 0:
        raise settings.refuse("rope.freq_base", _("a number above 0"), base)
    given = SHORT if kind == "longrope" and SHORT in tensors else FREQUENCIES
    if given in tensors:
        divisors = _divisors(tensors[given], width)
        spec = RotarySpec(width, base, pairing, given=True, magnitude=magnitude)
        return spec, Turns(_divided(base, width, divisors), length if given == SHORT else None)
    scaling = None
    if kind == "linear" and factor != 1 and not (windowed and _unscaled(settings)):
        scaling = Scaling("linear", factor)
    return RotarySpec(width, base, pairing, scaling=scaling, magnitude=magnitude), None


def _local(settings: Settings, base: Fraction) -> Fraction:
    """The base in layers with a window where the file does not say: 10,000 for Gemma 3."""
    return Fraction(10_000) if settings.prefix == "gemma3." else base


def _unscaled(settings: Settings) -> bool:
    """Whether layers with a window leave the scaling out."""
    return settings.prefix in ("gemma3.", "olmo2.")


def _divisors(tensor: Packed, width: int) -> list[Fraction]:
    if tensor.shape != (width // 2,):
        raise ShapeError(
            _("the tensor {name} has another shape than the settings say").format(name=tensor.name),
            where=tensor.where,
            expected=str(width // 2),
            found=sides(tensor.shape),
        )
    return [Fraction(float(x)) for x in tensor.array()]


def _divided(base: Fraction, width: int, divisors: list[Fraction]) -> Data:
    data = np.empty(len(divisors), dtype=object)
    for place, divisor in enumerate(divisors):
        if place == 0 or base == 1:
            data[place] = Number(1 / divisor)
            continue
        angle = Power(Number(base), Number(Fraction(-2 * place, width)))
        data[place] = angle if divisor == 1 else Quotient(angle, Number(divisor))
    return data
