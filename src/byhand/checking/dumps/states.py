"""The debug state of C ports: llm.c's state files, and the caches of llama2.c.

A state file of llm.c has a header of 256 whole numbers (magic, version, batch, length), the ids,
the targets, the logits, the loss, and the gradients of all parameters.  These come in the order in
which llm.c keeps them: each kind for all layers.  `opened` cuts the file up, by the model's sides.

`key_cache` and `value_cache` of llama2.c's RunState are (layer, position, kv_head·d_head): keys
after RoPE, whose pairs stand side by side, and values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.dumps.ggml import nearer_apart
from byhand.checking.dumps.view import Read, View, fitted
from byhand.checking.readers.llm_c import STATE
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.parameters import Parameter, parameters
from byhand.plan import GRAD, WEIGHT

PADDED = 128  # rows of the token table come in multiples of it
_OUTSIDE = ("embed.token", "embed.position")
_INSIDE = ("attn.norm.gain", "attn.norm.bias", "attn.qkv", "attn.qkv_bias", "attn.out",
           "attn.out_bias", "mlp.norm.gain", "mlp.norm.bias", "mlp.hidden", "mlp.hidden_bias",
           "mlp.out", "mlp.out_bias")  # fmt: skip
_BEHIND = ("final.norm.gain", "final.norm.bias")


def opened(sheet: Sheet, model: Model) -> Sheet:
    """The sheet with the state of llm.c cut into logits, loss and gradients."""
    if not any(entry.name == STATE for entry in sheet.entries):
        return sheet
    entries: list[Entry] = []
    for entry in sheet.entries:
        entries += _cut(entry, sheet, model) if entry.name == STATE else [entry]
    return replace(sheet, entries=tuple(entries))


def _cut(entry: Entry, sheet: Sheet, model: Model) -> Iterator[Entry]:
    assert sheet.tokens is not None
    rows, length = sheet.tokens.shape
    count = rows * length * model.spec.answers
    values = entry.values
    order = list(_order(model))
    sizes = [prod(shape) for _name, shape, _part in order]
    expected = (count + 1, count + 1 + sum(sizes))
    if values.size not in expected:
        raise InputError(
            _("the state does not fit the model"),
            where=entry.source,
            expected=_("{count} numbers behind the ids, or {more} with gradients").format(
                count=f"{expected[0]:,}", more=f"{expected[1]:,}"
            ),
            found=f"{values.size:,}",
        )
    how = _("cut out of llm.c's state")
    yield _part(entry, "logits", values[:count].reshape(rows, length, -1), how)
    yield _part(entry, "mean_loss", values[count], how)
    if values.size == expected[0]:
        return
    start = count + 1
    for (name, shape, parameter), size in zip(order, sizes, strict=True):
        array = values[start : start + size].reshape(shape)[: _rows(parameter, model)]
        start += size
        if array.ndim == 2 and model.spec.layout == "in_out" and not name.startswith("embed."):
            array = array.T
        yield _part(entry, GRAD + WEIGHT + name, array, how)


def _part(entry: Entry, name: str, values: npt.NDArray[Any], how: str) -> Entry:
    return replace(entry, name=name, values=np.asarray(values), said=f"{STATE}: {name}", read=how)


def _rows(parameter: Parameter, model: Model) -> int:
    """How many rows count: those of the token table are padded."""
    return model.spec.vocab if parameter.name == "embed.token" else 2**62


def _order(model: Model) -> Iterator[tuple[str, tuple[int, ...], Parameter]]:
    """Every parameter in llm.c's order: its name, and its sides there."""
    known = {each.name: each for each in parameters(model.spec)}
    layers = range(len(model.spec.blocks))
    names = [*_OUTSIDE, *(f"block.{n}.{part}" for part in _INSIDE for n in layers), *_BEHIND]
    if not model.spec.tied or set(names) != set(known):
        return
    for name in names:
        shape = known[name].shape
        if name == "embed.token":
            shape = (-(-shape[0] // PADDED) * PADDED, shape[1])
        elif len(shape) == 2 and model.spec.layout == "in_out" and name not in _OUTSIDE:
            shape = shape[::-1]
        yield name, shape, known[name]


# ------------------------------------------------------------------ caches of llama2.c


def read_cache(entry: Entry, view: View) -> Read | None:
    """The keys or values of every layer; None for another name or another shape."""
    steps = {"key_cache": "k_rotated", "value_cache": "v"}
    if entry.name not in steps or entry.values.ndim != 3:
        return None
    if len(entry.values) != len(view.plan.spec.blocks) or entry.values.shape[1] < view.plan.length:
        return None
    read: Read = []
    for layer, rows in enumerate(entry.values[:, : view.plan.length]):
        address = view.first(f"block.{layer}.attn.{steps[entry.name]}", f"block.{layer}.attn.k")
        if address is None:
            return None
        piece = replace(entry, values=rows, said=f"{entry.name}[{layer}]")
        found = fitted(piece, address, (("pos",), ("kv_head", "d_head")), view)
        if found is None:
            return None
        how = _("a layer of the cache")
        read.append(nearer_apart(replace(found, read=how), address, view))
    return read
