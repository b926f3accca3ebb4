"""What the chosen experts of llama.cpp give, put where each expert stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byhand.checking.claims import Entry
from byhand.checking.dumps.view import Read, View, aside, called, moved
from byhand.files.mapped import sides as shown_sides
from byhand.language import _
from byhand.names.engines import TensorName


def of_the_chosen(entry: Entry, row: TensorName, layer: str, view: View) -> Read:
    """What the chosen experts give, put where each expert stands."""
    step = view.plan[row.address]
    if row.name.startswith("ffn_moe_topk"):
        return [called(_rows_first(entry, step.shape[0]), row.address, _("ids of experts"))]
    ids = view.entries.get(f"ffn_moe_topk-{layer}")
    if ids is None:
        return [aside(entry, _("the ids of the chosen experts are missing: ffn_moe_topk"))]
    chosen = _rows_first(ids, view.plan.length)
    known = np.ones(chosen.values.shape, np.bool_) if chosen.claimed is None else chosen.claimed
    experts = dict(zip(step.axes, step.shape, strict=True))["expert"]
    width = step.shape[-1] if step.axes[-1] != "expert" else 1
    count = chosen.values.shape[-1] if chosen.values.ndim else 0
    if chosen.values.ndim != 2 or entry.values.size != view.plan.length * count * width:
        return [replace(aside(entry, _("another shape: {expected} expected, {found} found").format(
            expected=row.axes.replace(" ", " × "), found=shown_sides(entry.values.shape),
        )), misfit=True)]  # fmt: skip
    shape = (view.plan.length, count, width)
    theirs = entry.values.reshape(shape)
    claims = known[..., None] & (True if entry.claimed is None else entry.claimed.reshape(shape))
    values = np.zeros((view.plan.length, experts, width))
    claimed = np.zeros(values.shape, np.bool_)
    slack = np.broadcast_to(np.asarray(entry.slack, np.float64).reshape(
        shape if isinstance(entry.slack, np.ndarray) else ()), shape)  # fmt: skip
    wide = np.zeros(values.shape)
    for pos, place in np.ndindex(chosen.values.shape):
        expert = int(chosen.values[pos, place])
        if known[pos, place] and 0 <= expert < experts:
            values[pos, expert] = theirs[pos, place]
            claimed[pos, expert] = claims[pos, place]
            wide[pos, expert] = slack[pos, place]
    if step.axes[-1] == "expert":  # (pos, expert)
        values, claimed, wide = values[..., 0], claimed[..., 0], wide[..., 0]
    else:  # (expert, pos, …)
        values, claimed, wide = values.swapaxes(0, 1), claimed.swapaxes(0, 1), wide.swapaxes(0, 1)
    how = _("of the chosen experts, in the order of ffn_moe_topk")
    changed = replace(entry, values=values, claimed=claimed, slack=wide)
    return [called(changed, row.address, how)]


def _rows_first(entry: Entry, length: int) -> Entry:
    """Ids of experts, one row for each position."""
    shape = (length, -1)
    if entry.values.size % length:
        return entry
    return moved(entry, lambda array: array.reshape(shape))
