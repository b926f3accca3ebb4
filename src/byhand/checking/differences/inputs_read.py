"""Whose rows and heads a product reads: q and k in scores, weights and v in mixed values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import Attention, fit, nearest, roomy, spread
from byhand.checking.differences.difference import UNUSUAL, Reading, Wrong
from byhand.checking.differences.positions_read import listed, shown
from byhand.checking.suspects.mistakes import first, reading, setting
from byhand.checking.suspects.scenes import Draft
from byhand.expression import Number
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int_]
MOST_WORK = 4e7  # numbers that are compared to find one row among others
MOST_NAMED = 4
ZERO = -1  # stands for a row of zeros


@dataclass(frozen=True)
class Products:
    """A line that is a product of heads of two inputs, and what it would be with others.

    Scores are q·k, mixes are weights·v: `left` is (head, row, inner), `right` (kv head, row, …).
    """

    attention: Attention
    name: str  # scores or mixed
    roles: tuple[str, str]
    left_input: Floats
    right_input: Floats
    beside: Floats  # what else stands in the line: ALiBi, a table
    claimed: Floats
    room: Floats
    there: npt.NDArray[np.bool_]
    free: bool = False  # whether each row is known up to a number only
    times: float = 1.0  # by which the scores are multiplied besides

    @classmethod
    def of(cls, attention: Attention, q: Floats, k: Floats, times: float = 1.0) -> Products:
        """Scores as products; what is added to them is kept."""
        difference = attention.difference
        own = attention.scale * q @ spread(k, len(q)).transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):
            beside = np.where(difference.finite, difference.expected - own, 0.0)
        return cls(
            attention, "scores", ("q", "k"), attention.scale * times * q, k, beside,
            np.where(difference.finite, difference.claimed, 0.0), roomy(difference),
            difference.finite, times=times,
        )  # fmt: skip

    def made(self, left: Floats, right: Floats) -> Floats:
        """The line with other inputs, of as many heads each."""
        if self.name == "scores":
            right = right.transpose(0, 2, 1)
        return left @ right + self.beside

    def left(self, predicted: Floats) -> Floats:
        """What a prediction leaves, in usual errors; 0 where nothing is known."""
        off = np.where(self.there, predicted - self.claimed, 0.0)
        if self.free:
            weight = np.where(self.there, 1 / np.square(np.where(self.there, self.room, 1.0)), 0.0)
            total = weight.sum(axis=-1, keepdims=True)
            off = off - (weight * off).sum(axis=-1, keepdims=True) / np.where(total > 0, total, 1.0)
        return np.where(self.there, np.abs(off) / np.where(self.there, self.room, 1.0), 0.0)

    def fits(self, predicted: Floats, heads: Sequence[int] | None = None) -> bool:
        """Whether a prediction explains the claim, in all heads or in some."""
        chosen = slice(None) if heads is None else list(heads)
        return fit(self.left(predicted)[chosen][self.there[chosen]])

    @cached_property
    def wrong_entries(self) -> npt.NDArray[np.bool_]:
        """The entries that the model's own inputs do not give."""
        return self.left(self.made(self.left_input, self.spread_right)) > UNUSUAL

    @property
    def spread_right(self) -> Floats:
        """The second input, as each head reads it."""
        return spread(self.right_input, len(self.left_input))

    @property
    def wrong(self) -> list[int]:
        """The heads with a wrong entry."""
        return [int(head) for head in np.flatnonzero(self.wrong_entries.any(axis=(1, 2)))]

    def edit(
        self, kind: str, said: str, own: str, change: str, make: Wrong, fitted: int
    ) -> Reading:
        """The edit of the line with other inputs."""
        if self.times != 1.0:
            said = _("{said} and the scores are multiplied by {factor}").format(
                said=said, factor=shown(self.times)
            )
            scale = Number(Fraction(self.attention.scale * self.times))
            make, fitted = both(make, setting(scale=scale)), fitted + 1
        return self.attention.difference.edit(
            kind,
            _("it follows if {said}; {own}"),
            "{advice}",
            make,
            at=self.attention.step(self.name),
            fitted=fitted,
            said=said,
            own=own,
            advice=change,
        )


def both(*changes: Wrong) -> Wrong:
    """Several changes of a line, one after the other."""

    def make(draft: Draft, step: Step) -> None:
        for change in changes:
            change(draft, step)

    return make


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
                other
                for other in range(len(place))
                if products.fits(_one_head(products, head, other, role, own), [head])
            ]
            if len(found) != 1:
                break
            order[head] = found[0]
        else:
            if tuple(order) == usual:
                continue
            yield _mapped(products, role, usual, order)
            return


def _one_head(products: Products, head: int, other: int, role: int, own: Sequence[int]) -> Floats:
    """The line, right only at one head, with one input from another head."""
    left = products.left_input[head if role else other]
    right = products.right_input[other if role else own[head]]
    one = products.made(left[None], right[None])[0 if products.beside.ndim < 3 else head]
    result = np.array(products.claimed)
    result[head] = one
    return result


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
            made = products.made(left, spread(right, len(left)))
            if products.fits(made, products.wrong):
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
            if products.fits(products.made(left, spread(right, len(left))), products.wrong):
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
