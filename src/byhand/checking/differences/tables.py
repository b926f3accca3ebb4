"""Rows of a table: which row of which table each claimed row of an embedding is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from byhand.checking.differences.axes import MOST_LISTED, Places
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import WEIGHT, Step

COLUMNS = 32  # channels that are compared at first
CLOSE = 14.0  # × the usual rounding error
NOWHERE = -1
MOST_DIVISOR = 64  # of positions that begin again, or are counted more than once
BORNE_OUT = 6  # wrong entries for each number of a rule


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
    words, fitted = _rule(ids, taken, name, token=difference.target.address == "embed.token")
    if (taken == NOWHERE).any() or int(difference.wrong.sum()) < BORNE_OUT * fitted:
        yield Description(words, 5)
        return

    def take(draft: Draft, step: Step) -> None:
        inputs = {"table": name, "ids": None}
        draft.change(step.address, inputs=inputs, ids=tuple(map(int, taken)))

    yield difference.edit(
        "rows",
        _("it follows if {rows}; the model reads row {own} of {table}"),
        _("look at the ids that the table is read with, and at which table it is"),
        take,
        fitted=fitted,
        unlikely=1,
        rows=words,
        own=_("id") if difference.target.address == "embed.token" else _("position"),
        table=difference.target.inputs["table"].removeprefix(WEIGHT),
    )


def _rule(own: Places, taken: Places, name: str, *, token: bool) -> tuple[str, int]:
    """The rows that were taken, in words, and how many numbers the words have."""
    known = taken != NOWHERE
    table = name.removeprefix(WEIGHT)
    if known.all():
        for rows, said, count in _rules(own, taken, _("id") if token else _("position")):
            if np.array_equal(taken, rows):
                text = _("each row is row {which} of {table}")
                return text.format(which=said, table=table), count
    moved = np.flatnonzero(known & (taken != own))
    pairs = [
        _("position {at} has row {row} of {table}, not row {own}").format(
            at=int(at), row=int(taken[at]), own=int(own[at]), table=table
        )
        for at in moved[:MOST_LISTED]
    ]
    more = "; …" if len(moved) > MOST_LISTED else ""
    return "; ".join(pairs) + more, len(moved)


def _rules(own: Places, taken: Places, name: str) -> Iterator[tuple[Places, str, int]]:
    """Rows as a rule of the ids makes them; the rule in words; the numbers that it has."""
    by = int(np.median(taken - own))
    plus = f"{name} + {by}" if by > 0 else f"{name} − {-by}"
    last, first = int(taken.max()), int(taken.min())
    yield own, name, 0
    yield own + by, plus, 1
    yield np.maximum(own + by, 0), f"max({plus}, 0)", 1
    yield np.full(own.shape, first), str(first), 1
    yield np.minimum(own, last), f"min({name}, {last})", 1
    yield own[::-1], _("{name}, counted from the end").format(name=name), 0
    for size in range(2, MOST_DIVISOR + 1):
        yield own % size, f"{name} mod {size}", 1
        yield own // size, f"⌊{name}/{size}⌋", 1
        yield own * size, f"{size}·{name}", 1
    for power in (2**each for each in range(7, 18)):
        yield own % power, f"{name} mod {power}", 1
