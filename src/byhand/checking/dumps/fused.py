"""Modules of a family that give several steps at once: cut by the rules of its table of names.

The rules that find a weight in a file's tensor find a step in what the module gives: its columns
are the weight's rows.
"""

from __future__ import annotations

from typing import Any

from byhand.checking.claims import Entry
from byhand.checking.dumps.view import Read, View, called, moved
from byhand.language import _
from byhand.names import without_wrappers
from byhand.names.derived import fused_in
from byhand.names.pieces import Form, Source
from byhand.plan import Step

FLAT = "huggingface"  # heads side by side


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
