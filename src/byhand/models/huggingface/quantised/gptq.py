"""GPTQ and AWQ: whole numbers of a few bits, less a zero point, times the scale of their group.

Both pack along words of 32 bits.  GPTQ packs the inputs of each output and may assign inputs to
groups in any order (g_idx); its first version stores zero points less 1.  AWQ packs the outputs of
each input, eight to a word, in an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.errors import InputError, ShapeError
from byhand.files.mapped import Stored, shown, sides
from byhand.language import _
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.quantised.codes import (
    SCALES,
    bit_stream,
    exchanged,
    holding,
    words_for,
)
from byhand.models.huggingface.quantised.matrix import Parts, Quantised, fitting, flat, scales
from byhand.weights import Data

CODES, ZEROS, SCALE, GROUPS = "qweight", "qzeros", "scales", "g_idx"
VERSIONS = {"gptq": 1, "gptq_v2": 0}  # what a stored zero point lacks
GPTQ_BITS = (2, 3, 4, 8)
WORDS = ("I32", "U32")
LARGEST_GROUP = 1 << 30
ORDER = np.array([0, 4, 1, 5, 2, 6, 3, 7])  # where AWQ packs output i of eight
IN_ORDER = np.arange(8)
AWQ_VERSIONS = {"gemm": None}


@dataclass(frozen=True, slots=True)
class Packing:
    """How a folder's matrices are packed."""

    bits: int
    group: int | None  # inputs of a group; None: all of them
    lacking: int  # what a stored zero point lacks
    ordered: bool  # whether g_idx may assign inputs to groups in any order


def read_gptq(config: Config, parts: Parts) -> Iterator[Quantised]:
    """Every matrix packed as GPTQ does."""
    bits, size = _bits(config, GPTQ_BITS), _group(config)
    _key, version = config.value("checkpoint_format", "gptq")
    if version is None:
        version = "gptq"
    if not isinstance(version, str) or version not in VERSIONS:
        raise config.refuse("checkpoint_format", ", ".join(VERSIONS), version)
    _key, dynamic = config.value("dynamic", None)
    if dynamic:
        raise config.refuse("dynamic", _("the same bits for every module, or null"), dynamic)
    packing = Packing(bits, size, VERSIONS[version], config.flag("desc_act", False))
    for stem, codes in parts.named(f".{CODES}"):
        zeros, scale = (parts.need(f"{stem}.{name}", codes) for name in (ZEROS, SCALE))
        groups = parts.take(f"{stem}.{GROUPS}")
        yield _gptq(stem, codes, zeros, scale, groups, packing)


def _bits(config: Config, known: tuple[int, ...]) -> int:
    _key, found = config.value("bits", 4, "w_bit")
    if type(found) is not int or found not in known:
        raise config.refuse("bits", ", ".join(map(str, known)), found)
    return found


def _group(config: Config) -> int | None:
    """The inputs of a group; None: all of them are one."""
    _key, found = config.value("group_size", 128, "q_group_size")
    if found == -1:
        return None
    return config.whole("group_size", 128, also="q_group_size", most=LARGEST_GROUP)


def _gptq(
    stem: str,
    codes: Stored,
    zeros: Stored,
    scale: Stored,
    groups: Stored | None,
    packing: Packing,
) -> Quantised:
    bits = packing.bits
    words, out = flat(codes, 2).shape
    inputs = words * 32 // bits
    if words * 32 % bits:
        expected = _("a multiple of {bits} rows").format(bits=bits)
        raise _misshapen(codes, expected)
    size = packing.group or inputs
    count = -(-inputs // size)
    fitting(codes, (words, out), WORDS)
    fitting(scale, (count, out), SCALES, "(group × out)")
    fitting(zeros, (count, words_for(out, bits)), WORDS, "(group × word)")
    if groups is not None:
        fitting(groups, (inputs,), ("I32", "I64"), "(in)")
    holds = holding(scale.dtype)

    def opening(off: int = 0, in_order: bool = False, swapped: bool = False) -> Data:
        usual = np.arange(inputs) // size
        group = usual if in_order else _groups(groups, usual, count, packing.ordered)
        zero = bit_stream(zeros.ids(), bits, 1, out).astype(holds) + (packing.lacking + off)
        found = bit_stream(codes.ids(), bits, 0, inputs)
        numbers = (exchanged(found, 0) if swapped else found).astype(holds)
        numbers -= zero[group]
        numbers *= scales(scale, holds)[group]
        return np.asarray(numbers.T)  # (out, in)

    mistakes = {
        "zeros too small": partial(opening, off=-1),
        "zeros too large": partial(opening, off=1),
        "nibbles": partial(opening, swapped=True),
    }
    made_of: tuple[Stored, ...] = (codes, zeros, scale)
    if groups is not None:
        made_of = (*made_of, groups)
        mistakes["in order"] = partial(opening, in_order=True)
    return Quantised(
        f"{stem}.weight", f"GPTQ {bits}", (out, inputs), holds, made_of, opening, mistakes
    )


def _groups(stored: Stored | None, usual: Data, count: int, ordered: bool) -> Data:
    """The group of every input."""
    if stored is None:
        return usual
    found = stored.ids().astype(np.int64)
    if found.min() < 0 or found.max() >= count:
        at = int(np.argwhere((found < 0) | (found >= count))[0, 0])
        raise InputError(
            _("{name}[{at}] is not a group").format(name=shown(stored.name), at=at),
            where=stored.where,
            expected=_("a whole number from {least} to {most}").format(least=0, most=count - 1),
            found=str(int(found[at])),
        )
    if not ordered and (found != usual).any():
        at = int(np.argmax(found != usual))
        raise InputError(
            _("{name} orders the inputs, and desc_act says that nothing does").format(
                name=shown(stored.name)
            ),
            where=stored.where,
            expected=_("group {group} for input {at}").format(group=usual[at], at=at),
            found=str(int(found[at])),
            hint=_("kernels read the groups only where desc_act is true"),
        )
    return found


def _misshapen(part: Stored, expected: str) -> ShapeError:
    return ShapeError(
        _("the tensor {name} has another shape than its quantisation").format(
            name=shown(part.name)
        ),
        where=part.where,
        expected=expected,
        found=sides(part.shape),
    )


def read_awq(config: Config, parts: Parts) -> Iterator[Quantised]:
    """Every matrix packed as AWQ does for its `gemm` kernels."""
    bits, size = _bits(config, (4,)), _group(config)
    _key, version = config.value("version", "gemm", "format")
    if not isinstance(version, str) or version.lower() not in AWQ_VERSIONS:
        raise config.refuse("version", ", ".join(AWQ_VERSIONS), version)
    for stem, codes in parts.named(f".{CODES}"):
        zeros, scale = (parts.need(f"{stem}.{name}", codes) for name in (ZEROS, SCALE))
        yield _awq(stem, codes, zeros, scale, bits, size)


def _awq(
    stem: str, codes: Stored, zeros: Stored, scale: Stored, bits: int, size: int | None
) -> Quantised:
    inputs, words = flat(codes, 2).shape
    out, each = words * 32 // bits, size or inputs
    if inputs % each:
        raise _misshapen(codes, _("a multiple of {size} rows").format(size=each))
    fitting(codes, (inputs, words), WORDS)
    fitting(scale, (inputs // each, out), SCALES, "(group × out)")
    fitting(zeros, (inputs // each, words), WORDS, "(group × word)")
    holds = holding(scale.dtype)

    def opening(off: int = 0, order: Data = ORDER, of_zeros: Data = ORDER) -> Data:
        zero = np.repeat(_in_order(zeros.ids(), bits, of_zeros).astype(holds), each, axis=0)
        numbers = _in_order(codes.ids(), bits, order).astype(holds) - (zero + off)
        numbers *= np.repeat(scales(scale, holds), each, axis=0)
        return np.asarray(numbers.T)  # (out, in)

    mistakes = {
        "order of eight": partial(opening, order=IN_ORDER, of_zeros=IN_ORDER),
        "order of zeros": partial(opening, of_zeros=IN_ORDER),
        "order of codes": partial(opening, order=IN_ORDER),
        "zeros too large": partial(opening, off=1),
        "zeros too small": partial(opening, off=-1),
    }
    shape, made_of = (out, inputs), (codes, zeros, scale)
    return Quantised(f"{stem}.weight", f"AWQ {bits}", shape, holds, made_of, opening, mistakes)


def _in_order(words: Data, bits: int, order: Data) -> Data:
    codes = bit_stream(words, bits, 1, words.shape[1] * 32 // bits)
    return codes.reshape(len(codes), -1, len(order))[:, :, order].reshape(len(codes), -1)
