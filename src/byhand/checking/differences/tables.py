"""Rows of a table: which row of which table each claimed row of an embedding is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from byhand.checking.differences.axes import MOST_LISTED, Places, several
from byhand.checking.differences.closeness import quietly
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.orders import rules, told
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import WEIGHT, Step

COLUMNS = 32  # channels that are compared at first
CLOSE = 14.0  # × the usual rounding error
NOWHERE = -1
FEWEST = 4  # positions that a rule of positions needs
Rule = Callable[[Places], Places]
MOST_DIVISOR = 64  # of positions that begin again, or are counted more than once
BORNE_OUT = 6  # wrong entries for each number of a rule


@quietly
def table_readings(difference: Difference) -> Iterator[Reading]:
    """The rows that an embedding took instead of its own."""
    target = difference.target
    if target.op != "embed" or not difference.whole or difference.expected.ndim != 2:
        return
    wrong = np.flatnonzero(difference.wrong.any(axis=1))
    own = _ids(difference)
    if not len(wrong) or own is None or not difference.finite[wrong].all():
        return
    for name in _tables(difference):
        around = difference.scene.context.around
        table = None if around is None else around.read(name)
        if table is None or table.ndim != 2 or table.shape[1] != difference.expected.shape[1]:
            continue
        rows = _rows(difference, wrong, table)
        if rows is not None and (rows != NOWHERE).sum() * 2 > len(rows):
            yield from _told(difference, name, own, wrong, rows)
            return


def _tables(difference: Difference) -> tuple[str, ...]:
    """The step's own table, then the others that are as wide."""
    weights, width = difference.scene.model.weights, difference.expected.shape[1]
    own = difference.target.inputs.get("table", "")
    others = [
        WEIGHT + name
        for name in ("embed.token", "embed.position", "head")
        if name in weights and weights[name].shape[-1] == width
    ]
    return tuple(dict.fromkeys((own, *others)))


def _ids(difference: Difference) -> Sequence[int] | None:
    """The row of the table that each position should have."""
    ids = difference.target.attributes.get("ids")
    if ids is None and difference.target.inputs.get("ids") == "tokens":
        ids = difference.scene.context.tokens
    return None if ids is None or len(ids) != len(difference.expected) else ids


def _rows(difference: Difference, wrong: Places, table: Floats) -> Places | None:
    """The row of a table that each wrong position holds, NOWHERE if none; None: nothing to find."""
    scale = _scale(difference)
    claimed = difference.claimed[wrong] / scale
    spread = np.std(table[:: max(1, len(table) // 256)], axis=0)
    columns = np.argsort(spread)[-COLUMNS:]
    with np.errstate(all="ignore"):
        left, right = claimed[:, columns], table[:, columns]
        distances = np.einsum("ij,ij->i", right, right) - 2 * (left @ right.T)
    if not np.isfinite(distances).all():
        return None
    nearest = distances.argmin(axis=1)
    room = np.maximum(difference.room[wrong], 2.0**-26 * np.abs(table[nearest])) / scale
    room = np.maximum(room, _stored(difference) * np.abs(table[nearest]))
    same = (np.abs(claimed - table[nearest]) <= CLOSE * room).all(axis=1)
    return np.where(same, nearest, NOWHERE)


def _stored(difference: Difference) -> float:
    """The usual relative error of a stored number."""
    precision = difference.scene.context.precision
    return 2.0**-10 if precision.endswith("16") else 2.0**-26


def _scale(difference: Difference) -> float:
    """The factor that the model has on the rows of its table."""
    around = difference.scene.context.around
    table = None if around is None else around.read(difference.target.inputs["table"])
    ids = _ids(difference)
    if difference.target.attributes.get("scale") is None or table is None or ids is None:
        return 1.0
    rows = table[np.asarray(ids)]
    size = float((rows * rows).sum())
    return float((rows * difference.expected).sum()) / size if size else 1.0


def _told(
    difference: Difference, name: str, own: Sequence[int], wrong: Places, rows: Places
) -> Iterator[Reading]:
    ids = np.asarray(own)
    taken = ids.copy()
    taken[wrong] = rows
    token = difference.target.address == "embed.token"
    if token and name == difference.target.inputs["table"] and (taken != NOWHERE).all():
        moved = _moved(ids, taken)
        if moved is not None:
            yield _moved_edit(difference, moved)
            return
    words, fitted, rule = _rule(ids, taken, name, token=token)
    if (taken == NOWHERE).any() or int(difference.wrong.sum()) < BORNE_OUT * fitted:
        yield Description(words, 5)
        return
    size = difference.scene.model.weights[name.removeprefix(WEIGHT)].shape[0]

    def take(draft: Draft, step: Step) -> None:
        inputs: dict[str, str | None] = {"table": name, "ids": None}
        if rule is None or not token:
            draft.change(step.address, inputs=inputs, ids=tuple(map(int, taken)))
            return
        order = np.clip(rule(np.arange(size)), 0, size - 1)
        table = draft.made_of(name, "taken", step.address, axis=0, order=tuple(map(int, order)))
        draft.change(step.address, inputs={"table": table})

    yield difference.edit(
        "rows",
        _("it follows if {rows}; the model reads row {own} of {table}"),
        _("look at the ids that the table is read with, and at which table it is"),
        take,
        fitted=fitted,
        unlikely=1,
        rows=words,
        own=_("id") if token else _("position"),
        table=difference.target.inputs["table"].removeprefix(WEIGHT),
    )


def _moved(ids: Places, taken: Places) -> Places | None:
    """The rule by which positions hold the rows of other positions, if there is one."""
    count = len(ids)
    sources = [np.flatnonzero(ids == row) for row in taken]
    if count < FEWEST or not all(map(len, sources)) or int((ids != taken).sum()) * 2 < count:
        return None
    differences = np.array([int(at - each[0]) for at, each in enumerate(sources)])
    for order in rules(count, differences):
        known = order >= 0
        if np.array_equal(ids[order[known]], taken[known]) and known.all():
            return order
    return None


def _moved_edit(difference: Difference, order: Places) -> Reading:
    words = told(order, "pos")
    return difference.edit(
        "moved",
        _("it follows if {order}; the model has them in their own places"),
        _("look for an index or a reshape along the {names} that is off"),
        then("taken", axis=0, order=tuple(map(int, order))),
        fitted=words.fitted,
        unlikely=words.unlikely,
        order=words.said,
        names=several("pos"),
    )


def _rule(own: Places, taken: Places, name: str, *, token: bool) -> tuple[str, int, Rule | None]:
    """The rows that were taken, in words; how many numbers the words have; the rule."""
    known = taken != NOWHERE
    table = name.removeprefix(WEIGHT)
    if known.all():
        for rule, said, count in _rules(own, taken, _("id") if token else _("position")):
            if np.array_equal(taken, rule(own)):
                text = _("each row is row {which} of {table}")
                return text.format(which=said, table=table), count, rule
    moved = np.flatnonzero(known & (taken != own))
    pairs = [
        _("position {at} has row {row} of {table}, not row {own}").format(
            at=int(at), row=int(taken[at]), own=int(own[at]), table=table
        )
        for at in moved[:MOST_LISTED]
    ]
    more = "; …" if len(moved) > MOST_LISTED else ""
    return "; ".join(pairs) + more, len(moved), None


def _rules(own: Places, taken: Places, name: str) -> Iterator[tuple[Rule, str, int]]:
    """Rules that make rows of ids; each in words; the numbers that it has."""
    by = int(np.median(taken - own))
    plus = f"{name} + {by}" if by > 0 else f"{name} − {-by}"
    last, first = int(taken.max()), int(taken.min())
    yield lambda ids: ids, name, 0
    yield lambda ids: ids + by, plus, 1
    yield lambda ids: np.maximum(ids + by, 0), f"max({plus}, 0)", 1
    yield lambda ids: np.full(ids.shape, first), str(first), 1
    yield lambda ids: np.minimum(ids, last), f"min({name}, {last})", 1
    yield lambda ids: ids[::-1], _("{name}, counted from the end").format(name=name), 0
    for size in (*range(2, MOST_DIVISOR + 1), *(2**each for each in range(7, 18))):
        yield partial(_begun_again, size), f"{name} mod {size}", 1
        yield partial(_divided, size), f"⌊{name}/{size}⌋", 1
        yield partial(_multiplied, size), f"{size}·{name}", 1


def _begun_again(size: int, ids: Places) -> Places:
    return ids % size


def _divided(size: int, ids: Places) -> Places:
    return ids // size


def _multiplied(size: int, ids: Places) -> Places:
    return ids * size


@quietly
def id_readings(difference: Difference) -> Iterator[Reading]:
    """Of next tokens: the place that each claimed token has among the logits."""
    target, around = difference.target, difference.scene.context.around
    logits = None if around is None else around.read(target.inputs.get("x", ""))
    if target.op != "argmax" or logits is None or difference.claimed.ndim != 1:
        return
    ids = difference.claimed
    if not difference.whole or len(logits) != len(ids) or not np.isfinite(ids).all():
        return
    if (ids < 0).any() or (ids >= logits.shape[-1]).any() or len(ids) < FEWEST:
        return
    own = np.take_along_axis(logits, ids.astype(np.intp)[:, None], axis=-1)
    above = (logits > own).sum(axis=-1)
    if len(np.unique(above)) == 1 and above[0]:
        place = {1: _("second"), 2: _("third")}.get(int(above[0]), f"{int(above[0]) + 1}th")
        said = _("every claimed token has the {place} largest logit of its position")
        yield Description(said.format(place=place), 6)
    elif (logits.argmin(axis=-1) == ids).all():
        yield Description(_("every claimed token has the smallest logit of its position"), 6)
    else:
        order = logits.argmax(axis=-1)
        for by in (-2, -1, 1, 2):
            if np.array_equal(np.roll(order, by)[2:-2], ids[2:-2]):
                said = _("every claimed token is that of the position {by} further on")
                yield Description(said.format(by=-by), 5)
                return
