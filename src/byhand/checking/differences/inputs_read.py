"""Whose rows and heads a product reads: q and k in scores, weights and v in mixed values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import nearest, spread
from byhand.checking.differences.difference import Reading
from byhand.checking.differences.head_products import Products
from byhand.checking.differences.positions_read import listed
from byhand.checking.suspects.mistakes import first, reading
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int_]
MOST_ROWS = 96  # rows of a line that explanations are first compared on
MOST_WORK = 4e7  # numbers that are compared to find one row among others
MOST_NAMED = 4
ZERO = -1  # stands for a row of zeros


# ------------------------------------------------------------------------ heads


def other_heads(products: Products) -> Iterator[Reading]:
    """Heads that read another head's keys, values, queries or weights."""
    heads, shared = len(products.left_input), len(products.right_input)
    own = [head * shared // heads for head in range(heads)]
    for role, place in ((1, products.right_input), (0, products.left_input)):
        order = list(own) if role else list(range(heads))
        usual = tuple(order)
        for head in products.wrong:
            found = [
                other for other in range(len(place)) if _fits_head(products, head, other, role, own)
            ]
            if len(found) != 1:
                break
            order[head] = found[0]
        else:
            if tuple(order) == usual:
                continue
            yield _mapped(products, role, usual, order)
            return


def _fits_head(products: Products, head: int, other: int, role: int, own: Sequence[int]) -> bool:
    """Whether one head is explained by an input of another head."""
    left, right = products.left_input, products.right_input
    heads = len(left)
    if role:
        return products.explains(
            left, np.broadcast_to(right[other], (heads, *right.shape[1:])), [head]
        )
    return products.explains(np.broadcast_to(left[other], left.shape), right[list(own)], [head])


def _mapped(products: Products, role: int, own: Sequence[int], order: Sequence[int]) -> Reading:
    name = products.roles[role]
    other = [head for head in range(len(order)) if order[head] != own[head]]
    told = ", ".join(f"{head} ← {order[head]}" for head in other[: 2 * MOST_NAMED])
    told += ", …" * (len(other) > 2 * MOST_NAMED)
    rule, fitted = _rule(order, len(products.right_input) if role else len(order), len(order))
    said = _("the heads read {name} of other heads ({told})").format(name=name, told=told)
    if rule:
        said = _("head h reads head {rule} of {name}").format(rule=rule, name=name)
    step = products.attention.step(products.name)
    usual = _("in the model, they read {own}").format(
        own=", ".join(f"{head} ← {own[head]}" for head in other[:MOST_NAMED])
        + ", …" * (len(other) > MOST_NAMED)
    )
    make = first(name, "taken", axis=0, order=tuple(order))
    kind = "kv-heads" if role else "heads-exchanged"
    change = _("look for how heads are repeated or ordered before {step}").format(step=step.address)
    return products.edit(kind, said, usual, change, make, fitted if rule else len(other))


def _rule(order: Sequence[int], shared: int, heads: int) -> tuple[str, int]:
    """The rule of a map from heads to heads, if it has one."""
    places = range(heads)
    if len(set(order)) == 1:
        return str(order[0]), 1
    if all(order[head] == head % shared for head in places):
        return f"h mod {shared}", 0
    each = heads // shared
    own = "h" if each == 1 else f"h // {each}"
    for by in range(1, shared):
        if all(order[head] == (head // each + by) % shared for head in places):
            sign = f"+ {by}" if 2 * by <= shared else f"- {shared - by}"
            return f"({own} {sign}) mod {shared}", 1
    if all(order[head] == shared - 1 - head // each for head in places):
        return f"{shared - 1} - {own}", 0
    return "", heads


# ------------------------------------------------------------------------ rows


def other_rows(products: Products) -> Iterator[Reading]:
    """Keys or queries of other positions, the same in all wrong heads."""
    heads = products.wrong
    every = products.made(products.left_input, products.spread_right)  # all queries and keys
    if not heads:
        return
    shifted = _shifted(products)
    if shifted is not None:
        yield shifted
        return
    for role, axis in ((1, 2), (0, 1)):

        def laid(data: Any, axis: int = axis) -> Any:
            return np.moveaxis(data[heads], axis, 0).reshape(data.shape[axis], -1)

        rows, others = laid(products.claimed), laid(every)
        others = np.concatenate((others, np.zeros((1, others.shape[1]))))
        count = len(rows)
        other = np.flatnonzero(laid(products.wrong_entries).any(axis=1))
        if len(other) * others.size > MOST_WORK or not len(other):
            continue
        room, there = laid(products.room), laid(products.there)
        found = nearest(rows[other], others, room[other], there[other], other)
        if (found < 0).any():
            continue
        order = np.arange(count)
        order[other] = np.where(found == count, ZERO, found)
        yield moved_rows(products, role, order, other)
        return


def _shifted(products: Products) -> Reading | None:
    """All keys, or all queries, moved by a few positions."""
    for role in (1, 0):
        own = products.right_input if role else products.left_input
        for order in shifts(own.shape[1]):
            rows = taken(own, order)
            left, right = (products.left_input, rows) if role else (rows, products.right_input)
            if products.explains(left, spread(right, len(left)), products.wrong):
                return moved_rows(
                    products, role, order, np.flatnonzero(order != np.arange(len(order)))
                )
    return None


def taken(values: Floats, order: Ints) -> Floats:
    """(head, pos, width) with the rows of other positions."""
    return np.where((order >= 0)[None, :, None], values[:, np.maximum(order, 0)], 0.0)


def shifts(count: int) -> Iterator[Ints]:
    """The orders in which all rows are moved by a few positions, or in reverse."""
    own = np.arange(count)
    for by in (-1, 1, -2, 2) if count > 2 else ():
        moved = own + by
        inside = (moved >= 0) & (moved < count)
        yield np.clip(moved, 0, count - 1)
        yield np.where(inside, moved, ZERO)
        yield moved % count
    if count > 2:
        yield own[::-1]


def moved_rows(products: Products, role: int, order: Ints, other: Ints) -> Reading:
    """The edit in which some rows of an input are those of other positions."""
    name = products.roles[role]
    own = products.right_input if role else products.left_input
    places = np.arange(len(own))[:, None] * len(order)
    rows = np.where(order >= 0, places + order, ZERO)
    said, fitted = told_rows(name, order, other)
    wrong = products.wrong
    if len(wrong) < len(products.left_input) and len(own) == len(products.left_input):
        heads = np.isin(np.arange(len(own)), wrong)[:, None]
        rows = np.where(heads, rows, places + np.arange(len(order)))
        said += _(" (only in head {heads})").format(heads=listed(wrong))
    step = products.attention.step(products.name)
    return products.edit(
        f"{name}-rows",
        said,
        _("the model reads each position's own"),
        _("look for the order of {name}, or for an old slot of the cache, before {step}").format(
            name=name, step=step.address
        ),
        first(name, "rows_taken", order=rows),
        fitted,
    )


def told_rows(name: str, order: Ints, other: Ints) -> tuple[str, int]:
    """The map of positions of q, k, v or weights in words, and how many numbers it takes."""
    word, words = {
        "q": (_("query"), _("queries")), "k": (_("key"), _("keys")), "v": (_("value"), _("values")),
        "weights": (_("weight"), _("weights")),
    }[name]  # fmt: skip
    count = len(order)
    by = int(order[other[0]] - other[0])
    round_by = by - count if 2 * by > count else by + count if 2 * by < -count else by
    if (order[other] == ZERO).all():
        said = _("{word} {places} is zeros") if len(other) == 1 else _("{words} {places} are zeros")
        return said.format(
            word=word, words=words, places=listed([int(each) for each in other])
        ), len(other)
    moved = np.clip(np.arange(count) + by, 0, count - 1)
    if len(other) > 2 and (order[other] == moved[other]).all():
        said = _("each {word} is that of the position {by} before") if by < 0 else _(
            "each {word} is that of the position {by} after")  # fmt: skip
        text = said.format(word=word, by=abs(by))
        if len(other) < count - abs(by):
            text += _(" (from {first} to {last})").format(first=int(other[0]), last=int(other[-1]))
        return text, 1
    if len(other) > 2 and (order[other] == (np.arange(count) + by)[other] % count).all():
        return _("the {words} are moved round by {by}").format(words=words, by=-round_by), 1
    if len(other) > 2 and (order[other] == order[other][0]).all():
        said = _("{words} {places} are all that of position {at}")
        places = listed([int(each) for each in other])
        return said.format(words=words, places=places, at=int(order[other][0])), 1
    if len(other) > 2 and (order == np.arange(count)[::-1]).all():
        return _("the {words} are in reverse").format(words=words), 0
    pairs = []
    for at in other[:MOST_NAMED]:
        text = _("{word} {at} is zeros") if order[at] == ZERO else _("{word} {at} is that of {to}")
        pairs.append(text.format(word=word, at=int(at), to=int(order[at])))
    return ", ".join(pairs) + ", …" * (len(other) > MOST_NAMED), len(other)


# ------------------------------------------------------------------------ lines


def other_lines(products: Products) -> Iterator[Reading]:
    """An input that is another line: before its rotation, another layer's, another kind."""
    attention, scene = products.attention, products.attention.difference.scene
    around = scene.context.around
    if around is None:
        return
    order = {step.address: place for place, step in enumerate(scene.plan)}
    last = order[attention.difference.target.address]
    step = attention.step(products.name)
    for role, name in enumerate(products.roles):
        own = products.right_input if role else products.left_input
        if own.ndim != 3 or (name == "weights" and role == 0):
            continue
        for address in around.claimed_steps:
            if address == step.inputs[name] or order.get(address, last) >= last:
                continue
            value = around.claimed(address)
            if value is None or value.shape != own.shape or not np.isfinite(value).all():
                continue
            scaled = value * (attention.scale * products.times) if name == "q" else value
            left = products.left_input if role else scaled
            right = scaled if role else products.right_input
            if products.explains(left, spread(right, len(left)), products.wrong):
                yield _from_line(products, role, address)
                return


def _from_line(products: Products, role: int, address: str) -> Reading:
    """The edit that reads another line, in all heads or in the wrong ones."""
    name, heads = products.roles[role], products.wrong
    own = products.attention.step(products.name).inputs[name]
    said, make = _("{other} is read").format(other=address), reading(**{name: address})
    value = products.right_input if role else products.left_input
    if len(heads) < len(products.left_input):
        said += _(" (only in head {heads})").format(heads=listed(heads))
        group = len(products.left_input) // len(value)
        where = np.isin(np.arange(len(value)), [head // group for head in heads])

        def make(draft: Draft, step: Step) -> None:
            line = draft[own]
            inputs, sides = {"x": own, "y": address}, (line.axes, line.shape)
            new = draft.write(step.address, "patched", inputs, *sides, where=where[:, None, None])
            draft.change(step.address, inputs={name: new})

    return products.edit(
        "input-wrong",
        said,
        _("the model reads {own}").format(own=own),
        _("read {own}").format(own=own),
        make,
        0,
    )
