"""RoPE as the settings and tensors of a GGUF file describe it.

The file may give a divisor for the angle of each pair (rope_freqs, rope_factors_short and _long):
the angle is then base^(-2i/width) / divisor, exactly.  llama.cpp chooses between short and long
divisors by the context it is opened with, byhand by the length of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from byhand.errors import ShapeError
from byhand.expression import Call, Expression, Number, Product, Sum
from byhand.files.gguf import Packed
from byhand.files.mapped import sides
from byhand.language import _
from byhand.models.gguf.settings import Settings
from byhand.models.huggingface.config import LONGEST_CONTEXT
from byhand.rope_scaling import Scaling, yarn_magnitude
from byhand.spec import RotarySpec

FREQUENCIES, SHORT, LONG = (
    "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight",
)  # fmt: skip
SCALINGS = {name: name for name in ("none", "linear", "yarn", "longrope")}
UNSCALED = ("gemma3.", "olmo2.")  # whose layers with a window leave the scaling out


def rotation_of(
    settings: Settings, tensors: Mapping[str, Packed], d_head: int, pairing: str, windowed: bool
) -> RotarySpec | None:
    """The rotation of heads of this width, in a layer with or without a window."""
    width = settings.whole("rope.dimension_count", d_head, least=0)
    usual = settings.number("rope.freq_base", Fraction(10_000))
    # without a setting of its own: 10,000 in Gemma 3
    local = Fraction(10_000) if settings.prefix == "gemma3." else usual
    local = settings.number("rope.freq_base_swa", local)
    base = local if windowed else usual
    if base <= 0:
        raise settings.refuse("rope.freq_base", _("a number above 0"), base)
    scaling, magnitude = _scaled(settings, tensors, width)
    if windowed and settings.prefix in UNSCALED:
        scaling = magnitude = None
    return RotarySpec(width, base, pairing, scaling=scaling, magnitude=magnitude) if width else None


def _scaled(
    settings: Settings, tensors: Mapping[str, Packed], width: int
) -> tuple[Scaling | None, Expression | None]:
    """The rule of the angles, and what turned entries are multiplied by."""
    kind = settings.word("rope.scaling.type", "linear", SCALINGS)
    factor = settings.number("rope.scaling.factor", Fraction(0))
    factor = factor or settings.number("rope.scale_linear", Fraction(0)) or Fraction(1)
    if factor <= 0:
        raise settings.refuse("rope.scaling.factor", _("a number above 0"), factor)
    attention = settings.number("rope.scaling.attn_factor", Fraction(1))
    length = settings.whole(
        "rope.scaling.original_context_length",
        settings.whole("context_length", most=LONGEST_CONTEXT),
        most=LONGEST_CONTEXT,
    )
    own = None if attention == 1 else Number(attention)
    if kind == "yarn":
        scaling = Scaling(
            "yarn",
            factor,
            length,
            slow=settings.number("rope.scaling.yarn_beta_slow", Fraction(1)),
            fast=settings.number("rope.scaling.yarn_beta_fast", Fraction(32)),
        )
        return scaling, _both(own, _magnitude(settings, factor))
    divisors = [_divisors(tensors[name], width) for name in (FREQUENCIES, SHORT, LONG)
                if name in tensors]  # fmt: skip
    if divisors:
        short, long = divisors[0], divisors[-1]
        scaling = Scaling("longrope", length=length, short_factors=short, long_factors=long)
        return scaling, own
    return Scaling("linear", factor) if kind == "linear" and factor != 1 else None, own


def _magnitude(settings: Settings, factor: Fraction) -> Expression | None:
    """What YaRN multiplies turned entries by; in DeepSeek's files it is in the scores' scale."""
    more = log_multiplier(settings)
    if more and settings.prefix == "deepseek2.":
        return None
    return yarn_magnitude(factor, Fraction(1), more) if more else yarn_magnitude(factor)


def log_multiplier(settings: Settings) -> Fraction:
    """YaRN's second factor of the logarithm; DeepSeek's files hold a tenth of it."""
    found = settings.number("rope.scaling.yarn_log_multiplier", Fraction(0))
    if settings.prefix != "deepseek2.":
        return found
    return Fraction(float(np.float32(float(found)) / np.float32(0.1)))


def score_factor(settings: Settings, magnitude: Expression | None) -> Expression | None:
    """What DeepSeek's scores are multiplied by twice: the magnitude, times 1 + L/10·ln factor."""
    factor = settings.number("rope.scaling.factor", Fraction(1))
    more = log_multiplier(settings)
    if settings.table.get("rope.scaling.type") != "yarn" or factor <= 1 or not more:
        return magnitude
    logarithm = Product((Number(more / 10), Call("ln", Number(factor))))
    return _both(magnitude, Sum((logarithm, Number(Fraction(1)))))


def _both(first: Expression | None, second: Expression | None) -> Expression | None:
    if first is None or second is None:
        return first or second
    return Product((first, second))


def _divisors(tensor: Packed, width: int) -> tuple[Fraction, ...]:
    if tensor.shape != (width // 2,):
        raise ShapeError(
            _("the tensor {name} has another shape than the settings say").format(name=tensor.name),
            where=tensor.where,
            expected=str(width // 2),
            found=sides(tensor.shape),
        )
    return tuple(Fraction(float(x)) for x in tensor.array())
