"""Modules of a family that give several steps at once: cut by the rules of its table of names.

The rules that find a weight in a file's tensor find a step in what the module gives: its columns
are the weight's rows.  Some caches hold a key head several times: it is read once.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.checking.claims import Entry
from byhand.checking.dumps.view import Read, View, called, moved
from byhand.language import _
from byhand.names import without_wrappers
from byhand.names.derived import fused_in
from byhand.names.pieces import Form, Source
from byhand.plan import Step

FLAT = "huggingface"  # heads side by side
_PAST = re.compile(r"past_key_values\.(\d{1,6})\.(?:key|value)")


def read_fused(entry: Entry, view: View) -> Read | None:
    """The steps in what a fused module gives; None where the entry is no such module's."""
    found = fused_in(view.plan.spec.family, without_wrappers(entry.name))
    parts = [(view.plan[address], source) for address, source in found if view.has(address)]
    if not parts or not entry.values.ndim:
        return None
    cut = [_part(entry, step, source, view) for step, source in parts]
    names = ", ".join(step.address.rpartition(".")[2] for step, _source in parts)
    how = _("packed: cut into the columns of {names}").format(names=names)
    return None if None in cut else [
        called(piece, step.address, how, style=FLAT)
        for piece, (step, _source) in zip(cut, parts, strict=True) if piece is not None
    ]  # fmt: skip


def read_repeated(entry: Entry, view: View) -> Read | None:
    """Keys or values of a cache that has each key head once for every query head that reads it."""
    match, shape = _PAST.fullmatch(entry.name), entry.values.shape
    if match is None or len(shape) != 4 or int(match[1]) >= len(view.plan.spec.blocks):
        return None
    attn = view.plan.spec.blocks[int(match[1])].attention
    if attn is None or attn.heads == attn.kv_heads or shape[1] != attn.heads:
        return None
    groups = entry.values.reshape(shape[0], attn.kv_heads, -1, *shape[2:])
    if not np.array_equal(groups, np.broadcast_to(groups[:, :, :1], groups.shape)):
        return None
    each = attn.heads // attn.kv_heads
    how = _("the same for {count} query heads: read once").format(count=each)
    return [replace(moved(entry, lambda array: array[:, ::each]), read=how)]


def _part(entry: Entry, step: Step, source: Source, view: View) -> Entry | None:
    """The columns of one step; None where the array has not as many as all of them need."""
    attn = view.plan.spec.blocks[int(step.address.split(".")[1])].attention
    width = step.shape[-1] * (step.shape[0] if len(step.shape) == 3 else 1)
    whole = source.stored(Form((width,), ("out",), -1, False), attn).shape[0]
    if entry.values.shape[-1] != whole:
        return None

    def taken(array: Any) -> Any:
        shape = (*array.shape[:-1], width)
        return source.taken(array, Form(shape, ("",) * len(shape), -1, False), attn)

    return moved(entry, taken)
