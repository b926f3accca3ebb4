"""The sections on the lens and on attention: who leads after each step, what heads do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.document.compose.explanation.attribution import missing_told
from byhand.document.compose.explanation.parts import Block, Grid, Section, Told, together
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.wording import head_sentences
from byhand.document.words import joined, whole, why_missing
from byhand.language import _
from byhand.numbers.base import ABSENT

if TYPE_CHECKING:
    from byhand.explaining.circuits import Circuits, Table
    from byhand.explaining.lens import Lens, LensRow

MOST_POSITIONS = 10  # of a text, side by side in a table
FEW_KEYS, MOST_KEYS = 3, 6  # keys of a head that are told: at first sight, and in full
MOST_HEADS, MOST_LISTED = 6, 24  # heads that are listed: at first sight, and in full
MOST_TABLES = 4  # heads whose tables are shown
MOST_WRITTEN = 2  # tokens that a head writes towards
WIDEST_TABLE = 8  # tokens of a table of QK or OV


# ------------------------------------------------------------------ the lens


def lens_section(scope: Scope) -> Section:
    """What the model would say if it ended after each step."""
    return Section(
        "lens",
        _("What it would say after every step"),
        _(
            "The stream is read by the model's own end (final norm and unembedding) as if the "
            "model stopped there."
        ),
        tuple(_lens(scope)),
    )


def _lens(scope: Scope) -> Iterator[Block]:
    found = scope.found
    lens = found.lens
    rows = lens.of_position(found.position)
    if all(row.missing is not None for row in rows):
        yield missing_told(scope)
        return
    yield _column(scope, rows)
    if scope.full:
        yield _everywhere(scope, found.whole_lens)


def _column(scope: Scope, rows: tuple[LensRow, ...]) -> Grid:
    """One position: the leader after each step, and the two tokens that are compared."""
    found = scope.found
    chosen = [id for id in (found.token, found.against) if id is not None]
    ranked = len(found.model.vocabulary) > 3
    heads = [_("after"), _("leads"), _("probability")]
    heads += [scope.token(id) for id in chosen]
    heads += [_("place")] * bool(ranked and chosen)
    told = []
    for row in rows:
        if row.missing is not None or row.leader is None:
            told.append((row.step, "?", *[""] * (len(heads) - 2)))
            continue
        share = "" if row.leader.id is None else scope.number(row.probs[row.leader.id])
        cells = [row.step, scope.leader(row.leader), share]
        cells += [scope.number(row.logits[id]) for id in chosen]
        if ranked and chosen:
            places = [rank for rank in row.ranks if rank.token == chosen[0]]
            cells.append(_place(places[0].least, places[0].most) if places else "")
        told.append(tuple(cells))
    settled = _settled(rows)
    title = _("after position {place}: who leads")
    if chosen:
        title = _("after position {place}: who leads, and the logits of {tokens}")
    if chosen and ranked:
        title = _(
            "after position {place}: who leads, the logits of {tokens}, and the place of {token}"
        )
    named = [scope.token(id) for id in chosen]
    title = title.format(
        place=scope.where(found.position), tokens=joined(named), token="".join(named[:1])
    )
    return Grid(
        title,
        tuple(heads),
        tuple(told),
        (False, False, *[True] * (len(heads) - 2)),
        addresses=tuple(row.address for row in rows),
        strong=frozenset() if settled is None else frozenset({(settled, 1)}),
        note=""
        if settled is None
        else _("* from here on {token} leads for good").format(token=scope.leader(rows[-1].leader)),
    )


def _place(least: int | None, most: int | None) -> str:
    if least is None or most is None:
        return "?"
    return whole(least) if least == most else f"{whole(least)}–{whole(most)}"


def _settled(rows: tuple[LensRow, ...]) -> int | None:
    """The row from which on the last leader leads; None where the end is undecided."""
    last = rows[-1].leader
    if last is None or last.id is None:
        return None
    place = len(rows) - 1
    while place and (before := rows[place - 1].leader) is not None and before.id == last.id:
        place -= 1
    return place


def _everywhere(scope: Scope, lens: Lens) -> Grid:
    """Every position: who leads after each step."""
    shown = lens.positions
    if len(shown) > MOST_POSITIONS and not scope.every:
        shown = shown[-MOST_POSITIONS:]
    hidden = len(scope.found.trace.tokens) - len(shown)
    rows = [
        (stop.address, *(scope.leader(lens[stop.address, place].leader) for place in shown))
        for stop in lens.stops
    ]
    return Grid(
        _("who leads after each position"),
        (_("after"), *map(scope.place, shown)),
        tuple(rows),
        (False, *[False] * len(shown)),
        left_out=_("{count} earlier positions").format(count=whole(hidden)) if hidden else "",
    )


# ------------------------------------------------------------------ attention


def attention_section(scope: Scope) -> Section:
    """Where heads look from this position, and what they read and write in general."""
    return Section(
        "attention",
        _("What the heads read and write"),
        _(
            "QK says which token a head looks for from which; OV what it writes towards each "
            "logit when it looks at one token alone."
        ),
        tuple(_attention(scope)),
    )


def _attention(scope: Scope) -> Iterator[Block]:
    found = scope.found
    if not found.heads:
        yield Told(_("this model has no attention"))
        return
    heads, tabled = _chosen(scope)
    hidden = len(found.heads) - len(heads)
    title = _("where each head looks from position {place}, and what it writes having read there")
    yield Grid(
        title.format(place=scope.where(found.position)),
        (_("heads"), _("looks at"), _("writes")),
        tuple(_looks(scope, layer, head) for layer, head in heads),
        (False, False, False),
        left_out=_("{count} heads that add less").format(count=whole(hidden)) if hidden else "",
    )
    for layer in dict.fromkeys(layer for layer, _head in tabled):
        circuits = found.circuits(layer)
        yield from _layer(scope, circuits, [head for at, head in tabled if at == layer])
    if scope.full and len(tabled) < len(heads):
        text = _("QK and OV are shown of the {count} heads that add most; --all shows every head")
        yield Told(text.format(count=len(tabled)))


Heads = tuple[tuple[int, int], ...]


def _chosen(scope: Scope) -> tuple[Heads, Heads]:
    """The heads that are listed, and those whose tables are shown."""
    found = scope.found
    if scope.every:
        return found.heads, found.heads
    if scope.full:
        return found.foremost_heads(MOST_LISTED), found.foremost_heads(MOST_TABLES)
    first = found.foremost_heads(MOST_HEADS)
    return first, first


def _looks(scope: Scope, layer: int, head: int) -> tuple[str, str, str]:
    """The keys with the largest shares, and what the head writes when it reads the first."""
    found = scope.found
    name = f"block.{layer}.attn[{head}]"
    weights = found.trace.steps[f"block.{layer}.attn.weights"]
    if weights.missing is not None:
        return name, why_missing(weights.missing), ""
    row = found.shares(layer, head)
    order = [int(at) for at in np.argsort(-np.nan_to_num(row, nan=-1.0), kind="stable")]
    keys = [at for at in order if not np.isnan(row[at])]
    most = len(keys) if scope.every else MOST_KEYS if scope.full else FEW_KEYS
    said = [
        together(f"{scope.place(at)} {scope.number(weights.at((head, found.position, at)))}")
        for at in keys[:most]
    ]
    if not keys:  # floats that left their range: no share is a number
        return name, "–", ""
    looks = ", ".join(said) + (" …" if len(keys) > most else "")
    return name, looks, _written(scope, layer, head, found.trace.tokens[keys[0]])


def _written(scope: Scope, layer: int, head: int, token: int) -> str:
    """The tokens that a head writes towards when it reads one; a dash where it prefers none."""
    for each in scope.found.circuits(layer):
        if each.head == head and token in each.ov.rows and each.ov.strongest:
            first = each.ov.strongest[each.ov.rows.index(token)][:MOST_WRITTEN]
            return ", ".join(map(scope.token, first)) or "–"
    return ""


def _layer(scope: Scope, circuits: Circuits, heads: list[int]) -> Iterator[Block]:
    if circuits.missing is not None:
        yield Told(why_missing(circuits.missing))
        return
    for each in circuits:
        small = len(scope.found.model.vocabulary) <= WIDEST_TABLE
        if each.head not in heads or not (small or scope.full):
            continue
        if sentences := head_sentences(each, scope.found.model):
            text = _("block {layer}, head {head}: {sentences}")
            said = "; ".join(sentences)
            text = text.format(layer=circuits.layer, head=each.head, sentences=said)
            yield Told(text, "fact")
        if scope.full:
            yield _table(scope, each.qk, "QK", _("looks at"))
            yield _table(scope, each.ov, "OV", _("writes"))
    if scope.full:
        yield from map(Told, circuits.said)


def _table(scope: Scope, table: Table, name: str, word: str) -> Grid:
    rows, columns = list(table.rows), list(table.columns)
    title = f"{name} {table.address}[{table.head}]"
    most = WIDEST_TABLE
    if not scope.every and (len(rows) > most or len(columns) > most):
        return _listed(scope, table, title, word)
    cells = tuple(
        (scope.token(row), *(_entry(scope, table.at(row, column)) for column in columns))
        for row in rows
    )
    return Grid(title, ("", *map(scope.token, columns)), cells, (False, *[True] * len(columns)))


def _listed(scope: Scope, table: Table, title: str, word: str) -> Grid:
    """Of a large table, each row's strongest columns."""
    own = list(dict.fromkeys(scope.found.trace.tokens))
    rows = [row for row in table.rows if row in own][:MOST_POSITIONS]
    cells = []
    for row in rows:
        strongest = table.strongest[table.rows.index(row)][:3] if table.strongest else ()
        said = [
            together(f"{scope.token(at)} {_entry(scope, table.at(row, at))}") for at in strongest
        ]
        cells.append((scope.token(row), ", ".join(said) or _("all alike")))
    hidden = len(table.rows) - len(rows)
    return Grid(
        title,
        (_("token"), word),
        tuple(cells),
        (False, False),
        left_out=_("{count} more rows").format(count=whole(hidden)) if hidden > 0 else "",
    )


def _entry(scope: Scope, entry: Any) -> str:
    return "·" if entry is ABSENT else scope.numerals.signed(entry)
