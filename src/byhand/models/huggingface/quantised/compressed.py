"""Folders of compressed-tensors: each module's scheme says how its weight is packed.

    pack-quantized         whole numbers of 1 to 8 bits in words of 32
    int-, float-, naive-quantized   int8 or 8-bit floats as they are
    nvfp4-, mxfp4-pack-quantized    4-bit floats by 16 (a float and one of the tensor) or 32 (2^e)
    mxfp8-quantized        8-bit floats by 32, times 2^e

(code - zero point) · scale; of nvfp4, code · scale / global scale, which only a fraction can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from byhand.errors import InputError, ShapeError
from byhand.files.mapped import Stored, shown, sides
from byhand.language import _
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.quantised.choice import PATTERN, matched, names_in
from byhand.models.huggingface.quantised.codes import (
    EXPONENTS,
    F32,
    F64,
    FP4,
    FP8,
    SCALES,
    bit_stream,
    exchanged,
    halves,
    holding,
    spread,
    words_for,
)
from byhand.models.huggingface.quantised.fp8 import block_size, eight_bits
from byhand.models.huggingface.quantised.matrix import Parts, Quantised, fitting, flat, scales
from byhand.weights import Data

PLAIN = ("int-quantized", "float-quantized", "naive-quantized", "mxfp8-quantized")
PACKED, NVFP4, MXFP4 = "pack-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized"
FORMATS = (PACKED, *PLAIN, NVFP4, MXFP4)
MIXED = "mixed-precision"
CLASS = "Linear"
STRATEGIES = ("tensor", "channel", "group", "tensor_group", "block")
LARGEST_GROUP = 1 << 30
OLD_ORDER = (3, 5, 6, 7)  # bits that earlier releases packed with gaps


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the weights of some modules are quantised."""

    config: Config  # of the group
    targets: tuple[str, ...]
    format: str
    bits: int
    floats: bool
    symmetric: bool
    strategy: str
    group: int  # inputs of a group, where the strategy has some
    blocks: tuple[int, int] | None


def read_compressed(config: Config, parts: Parts) -> Iterator[Quantised]:
    """Every weight that is packed, by the scheme of its module."""
    schemes = _schemes(config)
    for stem, codes in list(parts.named(".weight_packed")):
        yield _packed(stem, codes, _scheme(stem, schemes, codes, config), parts)
    plain = [n for n, p in parts.left.items() if n.endswith(".weight") and p.dtype in ("I8", *FP8)]
    for name in plain:
        codes, stem = parts.left.pop(name), name.removesuffix(".weight")
        yield _bytes(stem, codes, _scheme(stem, schemes, codes, config), parts)


# ------------------------------------------------------------------ schemes


def _schemes(config: Config) -> list[Scheme]:
    sparse = config.within("sparsity_config")
    if sparse is not None and sparse.value("format", "dense")[1] != "dense":
        raise sparse.refuse("format", "dense")
    _key, usual = config.value("format", MIXED)
    table = config.within("config_groups")
    if table is None:
        raise config.refuse("config_groups", _("how weights are quantised"))
    found = []
    for key in table.table:
        group = table.within(key)
        if group is not None and (weights := group.within("weights")) is not None:
            found.append(_read_scheme(group, weights, usual))
    return found


def _read_scheme(group: Config, weights: Config, usual: Any) -> Scheme:
    _key, format = group.value("format", None)
    format = usual if format is None else format
    if format not in FORMATS:
        raise group.refuse("format", ", ".join(FORMATS), format)
    size = weights.value("group_size", None)[1]
    strategy = weights.value("strategy", None)[1] or (
        "tensor" if size is None else "channel" if size == -1 else "group"
    )
    if strategy not in STRATEGIES:
        raise weights.refuse("strategy", ", ".join(STRATEGIES), strategy)
    grouped = strategy in ("group", "tensor_group")
    _key, kind = weights.value("type", "int")
    if kind not in ("int", "float"):
        raise weights.refuse("type", "int, float", kind)
    blocks = block_size(weights, "block_structure")
    if strategy == "block" and blocks is None:
        raise weights.refuse("block_structure", _("two whole numbers above 0"))
    return Scheme(
        config=group,
        targets=names_in(group, "targets"),
        format=format,
        bits=weights.whole("num_bits", 8, most=8),
        floats=kind == "float",
        symmetric=weights.flag("symmetric", True),
        strategy=strategy,
        group=weights.whole("group_size", most=LARGEST_GROUP) if grouped else 0,
        blocks=blocks if strategy == "block" else None,
    )


def _scheme(stem: str, schemes: list[Scheme], codes: Stored, config: Config) -> Scheme:
    """The scheme of a module: by its name, else by a pattern, else by its class."""
    for scheme in schemes:
        if stem in scheme.targets:
            return scheme
    for scheme in schemes:
        patterns = [name for name in scheme.targets if name.startswith(PATTERN)]
        if matched(stem, patterns, scheme.config, "targets"):
            return scheme
    for scheme in schemes:
        if CLASS in scheme.targets:
            return scheme
    raise InputError(
        _("no group of config.json says how {name} is quantised").format(name=shown(codes.name)),
        where=codes.where,
        expected=_("a target that means {name}").format(name=shown(stem)),
        found=", ".join(shown(t) for s in schemes for t in s.targets[:3])[:200] or _("nothing"),
        hint=f"{config.path}: {config.prefix}config_groups",
    )


# ------------------------------------------------------------------ packed weights


def _packed(stem: str, codes: Stored, scheme: Scheme, parts: Parts) -> Quantised:
    scale = parts.need(f"{stem}.weight_scale", codes)
    if scheme.format == PACKED:
        return _words(stem, codes, scale, scheme, parts)
    if scheme.format in (NVFP4, MXFP4):
        return _four_bit_floats(stem, codes, scale, scheme, parts)
    raise scheme.config.refuse("format", ", ".join((PACKED, NVFP4, MXFP4)), scheme.format)


def _words(stem: str, codes: Stored, scale: Stored, scheme: Scheme, parts: Parts) -> Quantised:
    sizes = fitting(parts.need(f"{stem}.weight_shape", codes), (2,), ("I64", "I32"))
    out, inputs = (int(side) for side in sizes.ids())
    bits, words = scheme.bits, words_for(max(inputs, 0), scheme.bits)
    flat(codes, 2)
    if inputs < 1 or scheme.floats:
        raise ShapeError(
            _("the tensor {name} has another shape than its quantisation").format(
                name=shown(codes.name)
            ),
            where=codes.where,
            expected=_("whole numbers of {bits} bits").format(bits=bits),
            found=sides((out, inputs)),
        )
    if bits in OLD_ORDER and words == -(-inputs // (32 // bits)):
        raise scheme.config.refuse(
            "weights.num_bits", "1, 2, 4, 8", bits,
            message=_("releases pack {bits} bits in two ways, and this shape fits both").format(
                bits=bits
            ),
        )  # fmt: skip
    fitting(codes, (out, words), ("I32",), "(out × word)")
    ordered = parts.take(f"{stem}.weight_g_idx")
    grid = _grid(scheme, (out, inputs))
    fitting(scale, _shaped(scale, grid), SCALES)
    zero = None if scheme.symmetric else parts.need(f"{stem}.weight_zero_point", codes)
    made_of = [part for part in (codes, scale, sizes, zero, ordered) if part is not None]
    if zero is not None:
        whole = scheme.strategy == "tensor"
        shape = _shaped(zero, grid) if whole else (words_for(out, bits), grid[1])
        fitting(zero, shape, ("I8",) if whole else ("I32",))
    if ordered is not None:
        fitting(ordered, (inputs,), ("I32", "I64"), "(in)")
    holds = holding(scale.dtype)

    def opening(off: int = 0, swapped: bool = False, in_order: bool = False) -> Data:
        found = bit_stream(codes.ids(), bits, 1, inputs)
        numbers = (exchanged(found) if swapped else found).astype(holds)
        places = _places(scheme, grid, (out, inputs), None if in_order else ordered)
        numbers -= (_zeros(zero, bits, grid, holds) + off)[places]
        return numbers * scales(scale, holds).reshape(grid)[places]

    mistakes = {
        "zeros too small": partial(opening, off=-1),
        "zeros too large": partial(opening, off=1),
        "nibbles": partial(opening, swapped=True),
    }
    if ordered is not None:
        mistakes["in order"] = partial(opening, in_order=True)
    return Quantised(
        f"{stem}.weight", f"INT{bits}", (out, inputs), holds, tuple(made_of), opening, mistakes
    )


def _zeros(zero: Stored | None, bits: int, grid: tuple[int, int], holds: np.dtype[Any]) -> Data:
    """The zero points as the codes count them: from 0, not from -2^(bits - 1)."""
    middle = 1 << (bits - 1)
    if zero is None:
        return np.full(grid, middle, holds)
    if zero.dtype == "I8":
        return zero.ids().reshape(grid).astype(holds) + middle
    return bit_stream(zero.ids(), bits, 0, grid[0]).astype(holds)


def _grid(scheme: Scheme, shape: tuple[int, int]) -> tuple[int, int]:
    """How many scales there are, down and across."""
    out, inputs = shape
    match scheme.strategy:
        case "channel":
            return out, 1
        case "group" | "tensor_group":
            return out, -(-inputs // scheme.group)
        case "block":
            assert scheme.blocks is not None
            return -(-out // scheme.blocks[0]), -(-inputs // scheme.blocks[1])
    return 1, 1


def _shaped(scale: Stored, grid: tuple[int, int]) -> tuple[int, ...]:
    """The shape to expect of scales: without sides of 1 too."""
    plain: list[tuple[int, ...]] = [grid]
    plain += [grid[:1]] * (grid[1] == 1) + [()] * (grid == (1, 1))
    return scale.shape if scale.shape in plain else grid


def _places(
    scheme: Scheme, grid: tuple[int, int], shape: tuple[int, int], ordered: Stored | None = None
) -> tuple[Data, Data]:
    """For every row and column of a matrix, the row and column of its scale."""
    out, inputs = shape
    down, across = scheme.blocks or (1, scheme.group)
    rows = np.arange(out) // down if grid[0] > 1 else np.zeros(out, np.int64)
    columns = np.arange(inputs) // across if grid[1] > 1 else np.zeros(inputs, np.int64)
    if ordered is not None:
        columns = ordered.ids().astype(np.int64)
        if columns.min() < 0 or columns.max() >= grid[1]:
            at = int(np.argwhere((columns < 0) | (columns >= grid[1]))[0, 0])
            raise InputError(
                _("{name}[{at}] is not a group").format(name=shown(ordered.name), at=at),
                where=ordered.where,
                expected=_("a whole number from {least} to {most}").format(
                    least=0, most=grid[1] - 1
                ),
                found=str(int(columns[at])),
            )
    return rows[:, None], columns[None, :]


def _four_bit_floats(
    stem: str, codes: Stored, scale: Stored, scheme: Scheme, parts: Parts
) -> Quantised:
    out, octets = flat(codes, 2).shape
    shape = out, 2 * octets
    fitting(codes, codes.shape, ("U8",))
    size = 16 if scheme.format == NVFP4 else 32
    if scheme.group != size or shape[1] % size:
        raise scheme.config.refuse("weights.group_size", str(size), scheme.group)
    grid = out, shape[1] // size
    if scheme.format == MXFP4:
        fitting(scale, grid, EXPONENTS, "(out × group)")

        def opening(swapped: bool = False) -> Data:
            found = halves(codes.octets())
            found = exchanged(found) if swapped else found
            return FP4[found] * spread(scales(scale, F32), shape, (1, size))

        made_of, mistakes = (codes, scale), {"nibbles": partial(opening, swapped=True)}
        return Quantised(f"{stem}.weight", "MXFP4", shape, F32, made_of, opening, mistakes)
    whole = parts.need(f"{stem}.weight_global_scale", codes)
    fitting(scale, grid, ("F8_E4M3",), "(out × group)")
    fitting(whole, whole.shape if whole.shape in ((), (1,)) else (1,), ("F32",))
    reading = partial(_over_all, codes, scale, whole, size)
    mistakes = {
        "nibbles": partial(reading, swapped=True),
        "global product": partial(reading, power=1),
        "no global": partial(reading, power=0),
    }
    return Quantised(
        f"{stem}.weight", "NVFP4", shape, np.dtype(object), (codes, scale, whole), reading, mistakes
    )


def _over_all(
    codes: Stored, scale: Stored, whole: Stored, size: int, power: int = -1, swapped: bool = False
) -> Data:
    """code · scale / global scale, as fractions; each different one is made once."""
    over = Fraction(float(whole.finite().reshape(-1)[0]))
    if not over:
        raise InputError(
            _("{name} is 0, and the scales are divided by it").format(name=shown(whole.name)),
            where=whole.where,
        )
    eight_bits(scale)  # each finite
    every = np.arange(256, dtype=np.uint8).view(FP8["F8_E4M3"]).astype(F64)
    table = np.full((256, 16), Fraction(0), dtype=object)
    for code in np.unique(scale.octets()):
        times = Fraction(float(every[code])) * over**power
        table[code] = [times * Fraction(float(each)) for each in FP4]
    found = halves(codes.octets())
    found = exchanged(found) if swapped else found
    return np.asarray(table[np.repeat(scale.octets(), size, axis=1), found])


# ------------------------------------------------------------------ weights as they are


def _bytes(stem: str, codes: Stored, scheme: Scheme, parts: Parts) -> Quantised:
    scale = parts.need(f"{stem}.weight_scale", codes)
    out, inputs = flat(codes, 2).shape
    if scheme.format not in PLAIN or scheme.floats != (codes.dtype in FP8):
        raise scheme.config.refuse("format", ", ".join(PLAIN), scheme.format)
    grid = _grid(scheme, (out, inputs))
    exponents = scheme.format == "mxfp8-quantized"
    fitting(scale, _shaped(scale, grid), EXPONENTS if exponents else SCALES)
    zero = None if scheme.symmetric else parts.need(f"{stem}.weight_zero_point", codes)
    if zero is not None:
        fitting(zero, _shaped(zero, grid), ("I8",))
    holds = holding(scale.dtype)

    def opening(zeros: bool = True, scaled: bool = True) -> Data:
        numbers = (eight_bits(codes) if codes.dtype in FP8 else codes.ids()).astype(holds)
        places = _places(scheme, grid, (out, inputs))
        if zero is not None and zeros:
            numbers -= zero.ids().reshape(grid).astype(holds)[places]
        return numbers * scales(scale, holds).reshape(grid)[places] if scaled else numbers

    mistakes = {"no scales": partial(opening, scaled=False)}
    if zero is not None:
        mistakes["no zeros"] = partial(opening, zeros=False)

    made_of = (codes, scale) if zero is None else (codes, scale, zero)
    kind = codes.dtype if codes.dtype in FP8 else f"INT{scheme.bits}"
    return Quantised(f"{stem}.weight", kind, (out, inputs), holds, made_of, opening, mistakes)
