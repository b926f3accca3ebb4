"""Triton kernels of residue numbers: residues from limbs, int8 products, and limbs from residues.

Each does what the array code of `residues` does, with the same bits.  Residues are reduced in the
kernel that makes the products, so one byte is written for each modulus and entry.  Where kernels
cannot run, functions give None or False.

    residues     v = Σ limb·(2^22k mod m) < 2^34 in float64, r = v - m·rint(v/m): v/m is nearer than
                 2^-18 to its float, and no closer than 1/(2m) to a half unless it is one
    multiplied   s, an int32, is a·2^16 + b.  t = a·(2^16 mod m) + b < 2^23 is exact in float32, and
                 so is r = t - m·rint(t/m); r may be m/2 + 2, since t/m is rounded.  Then r·inverse
                 < 2^15 is reduced likewise, to the nearest: |c| <= 127
    limbs_of     as in `limbs.moduli`
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.gpu.decisions import CannotRepeat, Repeating, answers
from byhand.numbers.enclosed.limbs.digits import BASE
from byhand.numbers.enclosed.limbs.moduli import BELOW

Array = Any

ENTRIES = 512  # of a program
MORE = 1024  # of a program that reads many numbers of its own
UNIT = 16  # products are padded to a multiple of so many outputs, so that they are stored at once
ROUND = 1.5 * 2.0**52  # adding it rounds float64 to integers; ROUND_32 those of float32
ROUND_32 = 1.5 * 2.0**23


def usable(array: Array) -> bool:
    """Whether kernels can work here."""
    return bool(array.is_cuda) and kernels.triton() is not None


def constant(numbers: Any, like: Array, kind: Any = torch.float64) -> Array:
    """Numbers of the host as a tensor beside `like`, kept for later passes."""
    key = (numbers.tobytes(), numbers.shape) if hasattr(numbers, "tobytes") else tuple(numbers)
    place = key, like.device, kind
    if place not in _constants:
        if isinstance(answers(), Repeating):
            raise CannotRepeat("numbers of the host that were not brought over before")
        _constants[place] = torch.tensor(numbers, dtype=kind, device=like.device)
    return _constants[place]


_constants: dict[Any, Array] = {}


# ------------------------------------------------------------------ residues from limbs


@lru_cache(64)
def _residues_kernel(limbs: int) -> Any:
    lines = [
        "def kernel(limbs, table, moduli, out, rows, inputs, wide, limb_step, row_step, step,"
        " out_step, count):",
        f"at = tl.program_id(0).to(tl.int64) * {ENTRIES} + tl.arange(0, {ENTRIES})",
        "inside = at < rows * wide",
        "row = at // wide",
        "place = at % wide",
        "real = inside & (place < inputs)",
        "where = row * row_step + place * step",
        *(f"x{i} = tl.load(limbs + limb_step * {i} + where, real, 0.0)" for i in range(limbs)),
        "for i in range(0, count):",
        f"    v = x0 * tl.load(table + i * {limbs})",
        *(f"    v = v + x{k} * tl.load(table + i * {limbs} + {k})" for k in range(1, limbs)),
        "    m = tl.load(moduli + i)",
        f"    q = (v * (1.0 / m) + {ROUND!r}) - {ROUND!r}",
        "    r = v - q * m",
        "    tl.store(out + (at * 0 + out_step) * i + at, r.to(tl.int8), inside)",
    ]
    return kernels.compiled("\n    ".join(lines) + "\n")


def residues(limbs: Array, table: Array, moduli: Sequence[int], out: Array) -> bool:
    """As `gpu.residues.residues`; whether it was done."""
    if not usable(limbs):
        return False
    n, rows, inputs = limbs.shape
    wide = out.shape[-1]
    numbers = [rows, inputs, wide, *limbs.stride(), out.stride(0), len(moduli)]
    try:
        arrays, kernel = [limbs, table, constant(moduli, limbs), out], _residues_kernel(n)
        if not kernels.ready(kernel, [*arrays, *numbers]):
            return False
        kernels.launch(kernel, -(-rows * wide // ENTRIES), arrays, numbers)
    except Exception as error:  # as in `kernels.run`
        kernels.give_up(error)
        return False
    return True


# ------------------------------------------------------------------ products

# rows, columns and depth of a tile, warps, stages: for many rows, and for few
MANY = (128, 128, 128, 4, 3)
FEW = (64, 128, 128, 4, 4)

PRODUCT = f"""def kernel(x, w, out, constants, rows, columns, wide, deep: tl.constexpr,
           high: tl.constexpr, long: tl.constexpr, part: tl.constexpr, together: tl.constexpr):
    at = tl.program_id(0)
    which = tl.program_id(1)
    down = tl.cdiv(rows, high)
    along = tl.cdiv(columns, long)
    group = at // (together * along)
    first = group * together
    height = tl.minimum(down - first, together)
    tile_row = first + (at % (together * along)) % height
    tile_column = (at % (together * along)) // height
    x += which.to(tl.int64) * rows * deep
    w += which.to(tl.int64) * columns * deep
    out += which.to(tl.int64) * rows * wide
    row = tile_row * high + tl.arange(0, high)
    column = tile_column * long + tl.arange(0, long)
    depth = tl.arange(0, part)
    x_at = x + (row % rows)[:, None] * deep + depth[None, :]
    w_at = w + (column % columns)[None, :] * deep + depth[:, None]
    total = tl.zeros((high, long), tl.int32)
    for _step in range(0, deep, part):
        total = tl.dot(tl.load(x_at), tl.load(w_at), total, out_dtype=tl.int32)
        x_at += part
        w_at += part
    m = tl.load(constants + which * 4)
    over = tl.load(constants + which * 4 + 1)
    shift = tl.load(constants + which * 4 + 2)
    inverse = tl.load(constants + which * 4 + 3)
    t = (total >> 16).to(tl.float32) * shift + (total & 65535).to(tl.float32)
    r = t - ((t * over + {ROUND_32!r}) - {ROUND_32!r}) * m
    r = r * inverse
    r = r - ((r * over + {ROUND_32!r}) - {ROUND_32!r}) * m
    inside = (row[:, None] < rows) & (column[None, :] < wide)
    tl.store(out + row[:, None].to(tl.int64) * wide + column[None, :], r.to(tl.int8), inside)
"""


@lru_cache(1)
def _product_kernel() -> Any:
    return kernels.specialised(PRODUCT)


def multiplied(x: Array, w: Array, moduli: Sequence[int], inverses: Sequence[int]) -> Array | None:
    """As `gpu.residues.multiplied`; None where it was not done."""
    if not usable(x):
        return None
    count, rows, deep = x.shape
    columns = w.shape[1]
    high, long, part, warps, stages = MANY if rows > 64 else FEW
    numbers: list[float] = []
    for modulus, inverse in zip(moduli, inverses, strict=True):
        shift = (1 << 16) % modulus
        shift -= modulus if 2 * shift > modulus else 0
        numbers += [modulus, 1.0 / modulus, shift, inverse]
    wide = -(-columns // UNIT) * UNIT
    out = x.new_empty((count, rows, wide))
    grid = -(-rows // high) * -(-columns // long), count
    try:
        _product_kernel()[grid](
            x, w, out, constant(numbers, x, torch.float32), rows, columns, wide, deep, high, long,
            part, 8, num_warps=warps, num_stages=stages, enable_fp_fusion=False,
        )  # fmt: skip
    except Exception as error:  # as in `kernels.run`
        kernels.give_up(error)
        return None
    return out[..., :columns]


# ------------------------------------------------------------------ limbs from residues


@lru_cache(128)
def _limbs_kernel(count: int, biased: bool) -> Any:
    limbs = count + BELOW
    lines = [
        f"def kernel(found, constants, shares, whole, {'bias, ' if biased else ''}out, away,"
        " size, columns, moduli, step, row_step):",
        f"at = tl.program_id(0).to(tl.int64) * {MORE} + tl.arange(0, {MORE})",
        "inside = at < size",
        "long = at * 0 + size",
        "column = at % columns",
        "where = (at // columns) * row_step + column",
        f"part = tl.zeros(({MORE},), tl.float64)",
        *(f"v{i} = tl.zeros(({MORE},), tl.float64)" for i in range(limbs)),
        "for i in range(0, moduli):",
        "    c = tl.load(found + (long * 0 + step) * i + where, inside, 0).to(tl.float64)",
        "    part = part + c * tl.load(constants + i)",
        *(f"    v{k} = v{k} + c * tl.load(shares + i * {limbs} + {k})" for k in range(limbs)),
        f"k = (part + {ROUND!r}) - {ROUND!r}",
        "tl.store(away + tl.program_id(0), tl.max(tl.abs(part - k), 0))",
        *(f"v{i} = v{i} - k * tl.load(whole + {i})" for i in range(limbs)),
    ]
    if biased:
        lines += [
            f"v{i} = v{i} + tl.load(bias + columns.to(tl.int64) * {i} + column, inside, 0.0)"
            for i in range(limbs)
        ]
    for i in range(limbs - 1, 0, -1):
        lines.append(f"q = (v{i} * {1 / BASE!r} + {ROUND!r}) - {ROUND!r}")
        lines.append(f"v{i} = v{i} - q * {BASE!r}")
        lines.append(f"v{i - 1} = v{i - 1} + q")
    lines.append(f"q = (v0 * {1 / BASE!r} + {ROUND!r}) - {ROUND!r}")
    lines.append(f"v0 = v0 - q * {BASE!r}")
    lines += [f"tl.store(out + long * {i} + at, v{i}, inside)" for i in range(count)]
    return kernels.compiled("\n    ".join(lines) + "\n")


def limbs_of(
    found: Array, moduli: Sequence[int], shares: Array, whole: Array, count: int, bias: Array | None
) -> tuple[Array, Array] | None:
    """As `gpu.residues.limbs_of`; None where it was not done."""
    if not usable(found):
        return None
    _count, rows, columns = found.shape
    size = rows * columns
    programs = -(-size // MORE)
    made = shares.new_empty((count, rows, columns))
    away = shares.new_empty((programs,))
    arrays = [found, constant([1.0 / modulus for modulus in moduli], shares), shares, whole]
    if bias is not None:
        arrays.append(bias.contiguous())
    arrays += [made, away]
    numbers = [size, columns, len(moduli), found.stride(0), found.stride(1)]
    try:
        kernel = _limbs_kernel(count, bias is not None)
        if not kernels.ready(kernel, [*arrays, *numbers]):
            return None
        kernels.launch(kernel, programs, arrays, numbers)
    except Exception as error:  # as in `kernels.run`
        kernels.give_up(error)
        return None
    return made, away.amax()
