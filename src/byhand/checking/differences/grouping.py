"""Heads cut out of a packed row, and laid side by side again: which column is which."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import fit, nearest, roomy
from byhand.checking.differences.difference import Difference, Reading
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int_]
MOST_COLUMNS = 4096  # columns that are matched
SINGULAR = 1e8  # condition numbers above it: nothing can be solved
MOST_NAMED = 4


def group_readings(difference: Difference) -> Iterator[Reading]:
    """Which columns the claimed heads are, where the model takes others."""
    if not difference.whole or not difference.wrong.any() or not difference.finite.all():
        return
    step = difference.target
    if step.op == "split_heads":
        yield from _cut(difference)
    if step.axes[:1] in (("head",), ("kv_head",)) and step.op in ("split_heads", "linear"):
        yield from _averaged(difference)
    if step.op == "linear" and step.address.endswith(".attn.out") and difference.direct:
        yield from _laid_together(difference)


def _cut(difference: Difference) -> Iterator[Reading]:
    """Entries that are exact copies of other columns of the packed row."""
    packed, claimed = difference.input("x"), difference.claimed
    if packed is None or packed.ndim != 2 or packed.shape[1] > MOST_COLUMNS:
        return
    settings = difference.target.attributes
    heads, _count, width = claimed.shape
    own = settings["start"] + settings["stride"] * np.arange(heads)[:, None] + np.arange(width)
    places: dict[bytes, list[int]] = {}
    for column in range(packed.shape[1]):
        places.setdefault(packed[:, column].tobytes(), []).append(column)
    order = own.copy()
    for head, entry in np.ndindex(heads, width):
        found = places.get(np.ascontiguousarray(claimed[head, :, entry]).tobytes())
        if not found:
            return
        usual = int(own[head, entry])
        order[head, entry] = usual if usual in found else found[0]
    if (order == own).all():
        return
    said, fitted = _told(order)

    def make(draft: Draft, step: Step) -> None:
        inputs = {"x": step.inputs["x"]}
        draft.change(step.address, op="columns_taken", inputs=inputs, only=True, order=order)

    yield difference.edit(
        "columns",
        _("it follows if {said} of the packed row; in the model it is column {own}"),
        _("cut the packed row at the columns of the model"),
        make, fitted=fitted, said=said, own=_rule(*_affine(own)),
    )  # fmt: skip


def _affine(order: Ints) -> tuple[int, int, int]:
    """start, step by head and step by entry, from the first of each."""
    by_head = int(order[1, 0] - order[0, 0]) if len(order) > 1 else 0
    by_entry = int(order[0, 1] - order[0, 0]) if order.shape[1] > 1 else 0
    return int(order[0, 0]), by_head, by_entry


def _rule(start: int, by_head: int, by_entry: int) -> str:
    parts = [str(start)] * bool(start)
    for name, by in (("h", by_head), ("i", by_entry)):
        parts += [name if by == 1 else f"{by}·{name}"] * bool(by)
    return " + ".join(parts) or "0"


def _told(order: Ints) -> tuple[str, int]:
    """Which columns the entries are, in words, and how many numbers that takes."""
    start, by_head, by_entry = _affine(order)
    heads, width = order.shape
    regular = start + by_head * np.arange(heads)[:, None] + by_entry * np.arange(width)
    if (regular == order).all():
        said = _("entry i of head h is column {rule}")
        return said.format(rule=_rule(start, by_head, by_entry)), 1
    told = ", ".join(f"[{head},{entry}] ← {order[head, entry]}" for head, entry in
                     list(np.ndindex(heads, width))[:MOST_NAMED])  # fmt: skip
    return _("the entries of the heads are other columns ({told}, …)").format(told=told), order.size


def _averaged(difference: Difference) -> Iterator[Reading]:
    """The mean over heads in place of each head."""
    heads = len(difference.expected)
    mean = np.broadcast_to(difference.expected.mean(axis=0), difference.expected.shape)
    if heads < 2 or not fit((np.abs(difference.claimed - mean) / roomy(difference)).ravel()):
        return
    yield difference.edit(
        "averaged",
        _("it follows if every head is the mean over the {heads} heads; the model gives each its "
          "own"),
        _("look for a mean over heads, also in the matrix"),
        lambda draft, step: draft.then(step.address, "head_mean"),
        heads=heads,
    )  # fmt: skip


# ------------------------------------------------------------------------ laid together


def _laid_together(difference: Difference) -> Iterator[Reading]:
    """The order of the columns that the output matrix reads, solved from what it gives."""
    mixed, weight, bias = (difference.input(role) for role in ("x", "weight", "bias"))
    step = difference.target
    if mixed is None or weight is None or mixed.ndim != 3 or not np.isfinite(mixed).all():
        return
    heads, count, width = mixed.shape
    rows = mixed.transpose(1, 0, 2).reshape(count, heads * width)
    matrix = weight if step.attributes["layout"] == "in_out" else weight.T  # (in, out)
    if matrix.shape[0] > matrix.shape[1] or matrix.shape[0] != rows.shape[1]:
        return
    if len(matrix) > MOST_COLUMNS // 4 or np.linalg.cond(matrix) > SINGULAR:
        return
    inverse = np.linalg.pinv(matrix)
    room = roomy(difference)
    found = (difference.claimed - (0.0 if bias is None else bias)) @ inverse
    off = np.sqrt(np.square(room) @ np.square(inverse))
    columns = np.arange(rows.shape[1])
    there = np.ones(found.T.shape, dtype=bool)
    order = nearest(found.T, rows.T, off.T, there, columns)
    if (order < 0).any() or (order == columns).all():
        return
    predicted = rows[:, order] @ matrix + (0.0 if bias is None else bias)
    if not fit((np.abs(predicted - difference.claimed) / room).ravel()):
        return
    said, fitted = _told_order(order, heads, width)

    def make(draft: Draft, target: Step) -> None:
        at = target.address
        sides = (("pos", "d"), (count, heads * width))
        merged = draft.write(at, "merge_heads", {"x": target.inputs["x"]}, *sides)
        moved = draft.made_of(merged, "taken", at, axis=1, order=tuple(map(int, order)))
        draft.change(at, inputs={"x": moved})

    yield difference.edit(
        "head-merge",
        _("it follows if {said} before the output matrix; the model lays the heads of a position "
          "side by side"),
        _("exchange heads and positions, then lay the {heads} heads side by side"),
        make, fitted=fitted, said=said, heads=heads,
    )  # fmt: skip


def _told_order(order: Ints, heads: int, width: int) -> tuple[str, int]:
    """The order of merged columns in words, and how many numbers that takes."""
    whole = order.reshape(heads, width)
    if (whole == whole[:, :1] + np.arange(width)).all() and not (whole[:, 0] % width).any():
        to = whole[:, 0] // width
        heads_moved = np.flatnonzero(to != np.arange(heads))
        told = ", ".join(f"{head} ← {to[head]}" for head in heads_moved[: 2 * MOST_NAMED])
        return _("the heads stand in another order ({told})").format(told=told), len(heads_moved)
    start, by_head, by_entry = _affine(whole)
    regular = start + by_head * np.arange(heads)[:, None] + by_entry * np.arange(width)
    for size in (None, heads * width):
        if (whole == (regular if size is None else regular % size)).all():
            said = _("column {width}·h + i is column {rule} of the merged heads")
            return said.format(width=width, rule=_rule(start, by_head, by_entry)), 1
    other = np.flatnonzero(order != np.arange(len(order)))
    told = ", ".join(f"{at} ← {order[at]}" for at in other[: 2 * MOST_NAMED])
    said = _("the merged heads stand in another order ({told}{more})")
    return said.format(told=told, more=", …" * (len(other) > 2 * MOST_NAMED)), len(other)
