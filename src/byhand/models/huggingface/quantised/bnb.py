"""Weights as bitsandbytes saves them: nf4 and fp4 by blocks, and rows of whole numbers of 8 bits.

4 bits: one of 16 float32 times the largest absolute value of its block, a float32.  Where that
float32 is quantised too, it is what bitsandbytes restores of it, in float32: a table's entry times
the block's own largest value, rounded, plus the offset, rounded.  The product is exact.

8 bits: a whole number times its row's scale over 127, which only a fraction can be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.files.mapped import Stored, bytes_of, shown
from byhand.language import _
from byhand.models.huggingface.config import LARGEST_SIZE, Config
from byhand.models.huggingface.quantised.codes import BNB_FP4, F32, F64, NF4, exchanged
from byhand.models.huggingface.quantised.matrix import Parts, Quantised, fitting, flat
from byhand.weights import Data

STATE = ".quant_state.bitsandbytes__"
TABLES = {"nf4": NF4, "fp4": BNB_FP4}
BLOCKS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
LONGEST_STATE = 100_000  # bytes
ROWS, FORMAT = "SCB", "weight_format"
OF_A_ROW = 127


def read_bitsandbytes(_config: Config, parts: Parts) -> Iterator[Quantised]:
    """Every matrix of 4 bits, and every matrix of 8 bits with a scale for each row."""
    for kind in TABLES:
        for name, state in parts.named(STATE + kind):
            yield _four_bits(name, kind, state, parts)
    for stem, rows in parts.named(f".{ROWS}"):
        yield _eight_bits(stem, rows, parts)


# ------------------------------------------------------------------ 4 bits


def _four_bits(name: str, kind: str, state: Stored, parts: Parts) -> Quantised:
    codes = parts.need(name, state)
    largest = parts.need(f"{name}.absmax", codes)
    table = parts.need(f"{name}.quant_map", codes)
    said = _state(state)
    shape, block = said.shape, said.whole("blocksize", BLOCKS)
    said.same("quant_type", kind)
    count, size = -(-prod(shape) // block), codes.octets().size
    if size != -(-prod(shape) // 2):
        raise InputError(
            _("the tensor {name} has another size than its quantisation").format(name=shown(name)),
            where=codes.where,
            expected=bytes_of(-(-prod(shape) // 2)),
            found=bytes_of(size),
        )
    fitting(table, (16,), ("F32",))
    made_of = [codes, largest, table, state]
    if (offset := said.offset) is None:
        fitting(largest, (count,), ("F32",), "(block)")
        nested = None
    else:
        inner = parts.need(f"{name}.nested_absmax", codes)
        numbers = parts.need(f"{name}.nested_quant_map", codes)
        width = said.whole("nested_blocksize", BLOCKS)
        fitting(largest, (count,), ("U8",), "(block)")
        fitting(inner, (-(-count // width),), ("F32",), "(block of blocks)")
        fitting(numbers, (256,), ("F32",))
        made_of += [inner, numbers]
        nested = inner, numbers, width, offset

    def opening(swapped: bool = False, other: str = kind, offset: bool = True) -> Data:
        values = table.finite()
        if not np.array_equal(values, TABLES[kind]):
            raise _other_table(table, kind, values)
        octets = codes.octets().reshape(-1)
        order = np.stack((octets >> 4, octets & 15), axis=-1).reshape(-1)[: prod(shape)]
        order = exchanged(order) if swapped else order
        tops = largest.finite() if nested is None else _restored(largest, *nested)
        if nested is not None and not offset:
            tops = tops - nested[3]
        values = values if other == kind else TABLES[other]
        each = np.repeat(tops.astype(F64), block)[: prod(shape)]
        numbers: Data = values.astype(F64)[order] * each
        return np.asarray(numbers.reshape(shape))

    rival = "fp4" if kind == "nf4" else "nf4"
    mistakes = {"nibbles": partial(opening, swapped=True), rival: partial(opening, other=rival)}
    if nested is not None:
        mistakes["block offset"] = partial(opening, offset=False)
    return Quantised(name, kind.upper(), shape, F64, tuple(made_of), opening, mistakes)


def _restored(codes: Stored, largest: Stored, table: Stored, width: int, offset: Data) -> Data:
    """The blocks' largest values, restored in float32 as bitsandbytes does."""
    tops = np.repeat(largest.finite(), width)[: codes.shape[0]]
    with np.errstate(over="ignore"):
        found: Data = (table.finite()[codes.octets()] * tops).astype(F32) + offset
    if not np.isfinite(found).all():
        raise InputError(
            _("the tensor {name} stands for no finite numbers").format(name=shown(codes.name)),
            where=codes.where,
        )
    return found


def _other_table(table: Stored, kind: str, values: Data) -> InputError:
    at = int(np.argmax(values != TABLES[kind]))
    return InputError(
        _("{name}[{at}] is no number of {kind}").format(name=shown(table.name), at=at, kind=kind),
        where=str(table.file),
        expected=str(float(TABLES[kind][at])),
        found=str(float(values[at])),
        hint=_("bitsandbytes has these 16 numbers in its kernels and reads no others"),
    )


class _State:
    """The settings of one matrix, a JSON text in the bytes of a tensor."""

    def __init__(self, stored: Stored, table: dict[str, Any]) -> None:
        self.stored = stored
        self.table = table

    def refuse(self, key: str, expected: str) -> InputError:
        return InputError(
            _("{key} cannot be {found}").format(key=key, found=shown(self.table.get(key))),
            where=self.stored.where,
            expected=expected,
            found=shown(self.table.get(key)),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        found = self.table.get("shape")
        sides = found if isinstance(found, list) else []
        if not 1 <= len(sides) <= 4 or not all(
            type(side) is int and 0 < side <= LARGEST_SIZE for side in sides
        ):
            raise self.refuse("shape", _("whole numbers above 0"))
        return tuple(sides)

    @property
    def offset(self) -> Any:
        """What is added to restored values, as a float32; None where nothing was quantised."""
        found = self.table.get("nested_offset")
        if found is None:
            return None
        if type(found) not in (int, float) or not np.isfinite(F32.type(found)):
            raise self.refuse("nested_offset", _("a finite number"))
        return F32.type(found)

    def whole(self, key: str, known: tuple[int, ...]) -> int:
        found = self.table.get(key)
        if type(found) is not int or found not in known:
            raise self.refuse(key, ", ".join(map(str, known)))
        return found

    def same(self, key: str, value: str) -> None:
        if self.table.get(key, value) != value:
            raise self.refuse(key, value)


def _state(stored: Stored) -> _State:
    raw = stored.octets()[: LONGEST_STATE + 1].tobytes()
    try:
        if len(raw) > LONGEST_STATE or stored.dtype != "U8":
            raise ValueError
        table = json.loads(raw.decode("utf-8"), parse_constant=_no_number)
        if not isinstance(table, dict):
            raise ValueError
    except (ValueError, RecursionError):
        raise InputError(
            _("the tensor {name} is not a JSON object").format(name=shown(stored.name)),
            where=stored.where,
            expected='{"quant_type": "nf4", "blocksize": 64, "shape": […], …}',
            found=shown(raw[:40].decode("utf-8", "replace")),
        ) from None
    return _State(stored, table)


def _no_number(name: str) -> None:
    raise ValueError(name)


# ------------------------------------------------------------------ 8 bits


def _eight_bits(stem: str, rows: Stored, parts: Parts) -> Quantised:
    name = f"{stem}.weight"
    codes = flat(parts.need(name, rows), 2)
    fitting(codes, codes.shape, ("I8",))
    fitting(rows, (codes.shape[0],), ("F32",), "(out)")
    layout = parts.take(f"{stem}.{FORMAT}")
    if layout is not None and layout.octets().any():
        raise InputError(
            _("the tensor {name} orders the numbers for one processor").format(
                name=shown(layout.name)
            ),
            where=layout.where,
            expected="0",
            found=str(int(layout.octets().max())),
        )

    def opening(over: int = OF_A_ROW) -> Data:
        numbers = np.empty(codes.shape, dtype=object)
        every = range(-128, 128)
        for row, (found, top) in enumerate(zip(codes.ids(), rows.finite(), strict=True)):
            step = Fraction(float(top)) / over
            table = np.array([step * code for code in every], dtype=object)
            numbers[row] = table[found.astype(np.int64) + 128]
        return numbers

    mistakes = {"undivided": partial(opening, 1), "over 128": partial(opening, 128)}
    return Quantised(name, "INT8", codes.shape, np.dtype(object), (codes, rows), opening, mistakes)
