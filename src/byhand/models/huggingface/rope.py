"""RoPE as config.json describes it, with the scalings that real models use.

The old keys (rope_theta, rope_scaling) are read as well as the new ones (rope_parameters).

    default    pair i turns by base^(-2i/width) a position: a plain RotarySpec
    linear     the same angles divided by a factor
    llama3     long waves divided by the factor, short ones not, and a blend between

Scaled frequencies are exact expressions, which the model gets as a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import InputError, nearest
from byhand.expression import Expression, Name, Negative, Number, Power, Product, Quotient, Sum
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface.config import LONGEST_CONTEXT, Config
from byhand.spec import RotarySpec
from byhand.weights import Data

TYPES = ("default", "linear", "llama3")
USUAL_BASE = Fraction(10_000)
WIDEST = 65_536  # entries of a head that turn
_SETTINGS = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}


@dataclass(frozen=True)
class Rope:
    """The rotation of one model: its spec, and its frequencies if they are scaled."""

    spec: RotarySpec
    frequencies: Data | None


@dataclass(frozen=True)
class Bands:
    """The bands of llama3: which frequencies are scaled, by wavelength, and by how much."""

    factor: Fraction
    low: Fraction
    high: Fraction
    length: int


def read_rope(
    config: Config,
    d_head: int,
    *,
    base_keys: tuple[str, ...],
    share_keys: tuple[str, ...] = ("partial_rotary_factor",),
    share: Fraction | None = None,
) -> Rope | None:
    """The rotation of heads of this width; None where no entry is turned.

    `share` is the default share of a head that turns.  None means that the family turns whole
    heads; a config that says otherwise is refused.
    """
    table = _table(config)
    kind = _kind(table)
    base = _common(config, table, base_keys, "rope_theta", USUAL_BASE)
    if base.value <= 0:
        raise base.refuse(_("a number above 0"))
    part = _common(config, table, share_keys, "partial_rotary_factor", share or Fraction(1))
    if not 0 <= part.value <= 1:
        raise part.refuse(_("a number from 0 to 1"))
    if share is None and part.value != 1:
        raise part.refuse(_("1, or no such key"))
    # As in the library: the product is rounded as a float, then cut.
    width = int(d_head * float(part.value))
    if width == 0:
        return None
    if width > WIDEST:
        expected = _("heads of at most {count} entries").format(count=f"{WIDEST:,}")
        raise config.refuse("head_dim", expected, width)
    if width % 2:
        expected = _("an even number of entries of each head, which RoPE turns in pairs")
        raise config.refuse("head_dim", expected, width) if share is None else part.refuse(expected)
    _only(table, {"type", "rope_type", "rope_theta", "partial_rotary_factor", *_SETTINGS[kind]})
    if kind == "default":
        return Rope(RotarySpec(width, base.value), None)
    factor = table.positive("factor")
    if kind == "linear":
        every: Iterator[Expression] = (
            _over(frequency, factor) for frequency in _usual(base.value, width)
        )
    else:
        bands = _bands(config, table, factor)
        every = (_banded(base.value, place, width, bands) for place in range(width // 2))
    data = np.empty(width // 2, dtype=object)
    for place, frequency in enumerate(every):
        data[place] = frequency
    return Rope(RotarySpec(width, base.value, given=True), data)


# ------------------------------------------------------------------ the keys


def _table(config: Config) -> Config:
    """The table rope_parameters, or its older name rope_scaling; empty if neither is there."""
    new, old = config.within("rope_parameters"), config.within("rope_scaling")
    if new and old and new.table != old.table:
        raise config.refuse("rope_scaling", _("the same as rope_parameters, or no such key"))
    return new or old or Config(config.path, {})


def _kind(table: Config) -> str:
    key, found = table.value("rope_type", "default", "type")
    if found not in TYPES:
        words = found if isinstance(found, str) else ""
        raise table.refuse(
            key,
            ", ".join(TYPES),
            found,
            message=_("byhand does not do RoPE of type {kind}").format(kind=shown(found)),
            hint=nearest(words[:80], TYPES),
        )
    return str(found)


@dataclass(frozen=True)
class _Said:
    """A number, and the key that gives it."""

    value: Fraction
    at: Config
    key: str

    def refuse(self, expected: str) -> InputError:
        return self.at.refuse(self.key, expected, self.value)


def _common(
    config: Config, table: Config, beside: tuple[str, ...], inner: str, usual: Fraction
) -> _Said:
    """A setting in the table, or beside it under older names; all must agree."""
    said = [(config, key) for key in beside] + [(table, inner)]
    there = [
        _Said(at.number(key), at, key) for at, key in said if at.value(key, None)[1] is not None
    ]
    if not there:
        return _Said(usual, config, beside[0])
    for other in there[:-1]:
        if other.value != there[-1].value:
            name = there[-1].at.prefix + there[-1].key
            expected = _("the same as {key}, {value}").format(
                key=name, value=shown(there[-1].value)
            )
            raise other.refuse(expected)
    return there[-1]


def _only(table: Config, known: set[str]) -> None:
    """Refuses other settings, whose effect is unknown."""
    for key, value in table.table.items():
        if key not in known and value is not None:
            raise table.refuse(
                key,
                ", ".join(sorted(known)),
                key,
                message=_("byhand does not know this setting of RoPE"),
                hint=nearest(key[:80], known),
            )


def _bands(config: Config, table: Config, factor: Fraction) -> Bands:
    key = "original_max_position_embeddings"
    inner, outer = (at.whole_or_none(key, most=LONGEST_CONTEXT) for at in (table, config))
    if inner and outer and inner != outer:
        expected = _("the same as {key}, {value}").format(key=table.prefix + key, value=inner)
        raise config.refuse(key, expected)
    length = inner or outer
    if length is None:
        raise table.refuse(key, _("the length the model was first trained for"))
    low, high = table.positive("low_freq_factor"), table.positive("high_freq_factor")
    if low >= high:
        expected = _("more than low_freq_factor, {value}").format(value=shown(low))
        raise table.refuse("high_freq_factor", expected)
    return Bands(factor, low, high, length)


# ------------------------------------------------------------------ the frequencies


def _usual(base: Fraction, width: int) -> Iterator[Expression]:
    """base^(-2i/width) for each pair i."""
    return (_frequency(base, place, width) for place in range(width // 2))


def _frequency(base: Fraction, place: int, width: int) -> Expression:
    if place == 0 or base == 1:
        return Number(Fraction(1))
    return Power(Number(base), Number(Fraction(-2 * place, width)))


def _over(frequency: Expression, factor: Fraction) -> Expression:
    match frequency:
        case Number(value=value):
            return Number(value / factor)
    return frequency if factor == 1 else Quotient(frequency, Number(factor))


def _banded(base: Fraction, place: int, width: int, bands: Bands) -> Expression:
    """One frequency, scaled by comparing its wavelength with length/low and length/high.

    The blend between is f·((1 - s)/factor + s) with s = (length·f/2π - low)/(high - low).
    """
    frequency = _frequency(base, place, width)
    if _longer(base, place, width, bands.length / bands.low):
        return _over(frequency, bands.factor)
    if not _longer(base, place, width, bands.length / bands.high):
        return frequency
    turns = Quotient(
        Product((Number(Fraction(bands.length)), frequency)),
        Product((Number(Fraction(2)), Name("pi"))),
    )
    span = Number(bands.high - bands.low)
    short = Quotient(Sum((turns, Negative(Number(bands.low)))), span)
    long = Quotient(Sum((Number(bands.high), Negative(turns))), span)
    blend = Sum((_over(long, bands.factor), short))
    return blend if frequency == Number(Fraction(1)) else Product((frequency, blend))


def _longer(base: Fraction, place: int, width: int, wavelength: Fraction) -> bool:
    """Whether 2π·base^(2i/width) is above a rational; proven, and never equal (π)."""
    from flint import arb, ctx, fmpq

    def ball(x: Fraction) -> Any:
        return arb(fmpq(x.numerator, x.denominator))

    for bits in (64, 256, 1024, 4096):
        with ctx.workprec(bits):
            wave = 2 * arb.pi() * ball(base) ** ball(Fraction(2 * place, width))
            if wave > ball(wavelength):
                return True
            if wave < ball(wavelength):
                return False
    raise InputError(
        _("the wavelength of RoPE pair {place} cannot be told from {value}").format(
            place=place, value=shown(wavelength)
        ),
        where="config.json: rope_parameters",
    )
