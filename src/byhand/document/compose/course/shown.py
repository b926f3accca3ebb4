"""The pictures and tables of the course: each line of `show` is one of them, `kind pass …`.

They are the parts of the book, of `byhand count` and of a recorded run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byhand.address import read_address
from byhand.document import words
from byhand.document.book import LEARNED
from byhand.document.compose.book import exact, training_run
from byhand.document.compose.book.formulas import formula
from byhand.document.compose.book.prediction import candidates
from byhand.document.compose.book.strips import pattern_of
from byhand.document.compose.book.whole import stops
from byhand.document.compose.course.materials import Materials, Reading
from byhand.document.compose.course.sentences import said_at, token_at
from byhand.document.compose.forms import symbol_of
from byhand.document.compose.listing import inventory_grid
from byhand.document.numerals import localised
from byhand.document.parts import (
    Column,
    Curve,
    CurveLine,
    Formula,
    Grid,
    Number,
    NumberTable,
    Part,
    StreamLine,
)
from byhand.language import _, spoken, whole
from byhand.plan import WEIGHT
from byhand.spec import ModelSpec
from byhand.sublayer_specs import AttentionSpec, MlpSpec

if TYPE_CHECKING:
    from byhand.models.records import NormsRecord

DEEPEST = 12  # blocks of the deepest stack whose norms were compared
FORMULA = "formula"
_WORDED = re.compile(r"(grad\.)?(logits|probs)\[[0-9]+\]")  # rows with a number for each word
_NORMS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "none": "–"}
_WITHOUT_ADDRESSES = ("numbers", "counts", "run", "config")


def parts_of(show: Sequence[str], materials: Materials) -> tuple[Part, ...]:
    """The parts that a section shows, in order."""
    return tuple(part for line in show for part in _parts(line.split(), materials))


def laws_of(show: Sequence[str], materials: Materials) -> tuple[Formula, ...]:
    """The laws that a section shows, with the numbers of the pass."""
    return tuple(_laws(show, materials))


def _laws(show: Sequence[str], materials: Materials) -> Iterator[Formula]:
    for line in show:
        kind, *rest = line.split()
        if kind == FORMULA:
            edition = materials.readings[rest[0]].worked
            law = formula(edition.showing, edition.trace.worked(read_address(rest[1])))
            assert law is not None
            yield _short(law) if edition.showing.by_decimals else law


def _short(law: Formula) -> Formula:
    """A law without the working of an entry whose forms would be long."""
    worked = law.worked
    long = worked is not None and worked.cell.register == "named" and not worked.decimals
    return replace(law, worked=None) if long else law


def steps_of(show: Sequence[str], main: str) -> tuple[str, ...]:
    """The steps of the main pass that a section shows."""
    found = (line.split() for line in show)
    named = (rest for kind, *rest in found if kind in ("table", "pattern", FORMULA))
    return tuple(
        rest[1] for rest in named if rest[0] == main and not rest[1].startswith((WEIGHT, *LEARNED))
    )


def _parts(line: Sequence[str], materials: Materials) -> Iterator[Part]:
    kind, *rest = line
    if kind == FORMULA:
        return
    if kind in _OF_NORMS:
        yield _OF_NORMS[kind](materials.norms)
    elif kind in _OF_SEVERAL:
        yield _OF_SEVERAL[kind]([materials.readings[name] for name in rest])
    else:
        # a page checks numbers with addresses by those of its main pass
        assert rest[0] == materials.lesson.main or kind in _WITHOUT_ADDRESSES, line
        yield from _OF_A_PASS[kind](materials.readings[rest[0]], rest[1:])


# ------------------------------------------------------------------ of one pass


def _table(reading: Reading, addresses: Sequence[str]) -> Iterator[Part]:
    edition = reading.worked
    for address in addresses:
        if address.startswith(WEIGHT):
            readers = [step for step in edition.trace.plan if address in step.reads]
            role = next(role for role, read in readers[0].inputs.items() if read == address)
            title = symbol_of(readers[0], role, address)
            yield from edition.showing.weight(address.removeprefix(WEIGHT), title)
        else:
            found = edition.showing.tables(edition.trace.worked(read_address(address)))
            yield from map(_in_decimals, found) if edition.showing.by_decimals else found


def _in_decimals(table: NumberTable) -> NumberTable:
    """A table whose named numbers are decimals; their forms would be long."""
    rows = (replace(row, numbers=tuple(map(_decimal, row.numbers))) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _decimal(number: Number) -> Number:
    if number.cell.register != "named" or number.cell.decimal is None:
        return number
    return replace(number, cell=replace(number.cell, form=None))


def _pattern(reading: Reading, addresses: Sequence[str]) -> Iterator[Part]:
    edition = reading.worked
    for address in addresses:
        worked = edition.trace.worked(read_address(address))
        yield pattern_of(edition.showing, worked, forms=edition.everything)


def _stream(reading: Reading, _rest: Sequence[str]) -> Iterator[Part]:
    edition = reading.worked
    place = edition.last
    yield StreamLine(place, edition.showing.labels[place], tuple(stops(edition, place)))


def _registers(reading: Reading, _rest: Sequence[str]) -> Iterator[Part]:
    page = exact.page(reading.worked)
    yield from next(p for p in page.passages if p.id == f"{exact.SLUG}-map").show


def _candidates(reading: Reading, _rest: Sequence[str]) -> Iterator[Part]:
    yield candidates(reading.worked, reading.worked.last)


def _run(reading: Reading, which: Sequence[str]) -> Iterator[Part]:
    assert reading.record is not None
    page = training_run.page(reading.worked, reading.record)
    for name in which:
        yield from next(p for p in page.passages if p.id == f"{training_run.SLUG}-{name}").show


def _counts(reading: Reading, _rest: Sequence[str]) -> Iterator[Part]:
    yield inventory_grid(reading.inventory, weights_known=False)


def _numbers(reading: Reading, addresses: Sequence[str]) -> Iterator[Part]:
    yield numbers_of(reading, addresses)


def numbers_of(reading: Reading, addresses: Sequence[str], places: int | None = None) -> Grid:
    """What stands at some addresses; with `places`, that many decimals."""
    columns = (Column(_("address"), "address"), Column(_("value")))
    rows = tuple((address, _said(reading, address, places)) for address in addresses)
    return Grid("", columns, rows)


def _said(reading: Reading, address: str, places: int | None) -> str:
    """What stands at an address; in a row over the vocabulary each number follows its word."""
    if not _WORDED.fullmatch(address):
        return said_at(reading, address, places)
    answer, stem = reading.worked.trace.answer, address[:-1]
    pairs = (
        f"`{words.token_label(answer(id))}` {said_at(reading, f'{stem},{id}]', places)}"
        for id in range(reading.spec.answers)
    )
    return ", ".join(pairs) if spoken() == "en" else "; ".join(pairs)


def _config(reading: Reading, _rest: Sequence[str]) -> Iterator[Part]:
    yield config_of(reading)


def config_of(reading: Reading) -> Grid:
    """The config.json of a model, line by line."""
    assert reading.config is not None
    columns = (Column("config.json", "address"), Column(_("value"), "address"))
    return Grid("", columns, tuple((key, json.dumps(told)) for key, told in _flat(reading.config)))


def _flat(config: Mapping[str, Any], of: str = "") -> Iterator[tuple[str, Any]]:
    for key, told in config.items():
        if isinstance(told, Mapping):
            yield from _flat(told, f"{of}{key}.")
        else:
            yield of + key, told


_OF_A_PASS: Mapping[str, Callable[[Reading, Sequence[str]], Iterator[Part]]] = {
    "table": _table,
    "pattern": _pattern,
    "stream": _stream,
    "registers": _registers,
    "candidates": _candidates,
    "run": _run,
    "counts": _counts,
    "config": _config,
    "numbers": _numbers,
}


# ------------------------------------------------------------------ of several passes


def _architectures(readings: Sequence[Reading]) -> Grid:
    """Models side by side: what their configs say, in the same words."""
    columns = (Column(_("line of the config")), *(Column(each.spec.name) for each in readings))
    rows = zip(*(_architecture(each) for each in readings), strict=True)
    return Grid("", columns, tuple((row[0][0], *(value for _name, value in row)) for row in rows))


def _architecture(reading: Reading) -> list[tuple[str, str]]:
    return [*_plan(reading), (_("parameters"), whole(reading.counts["count.total"]))]


def _plans(readings: Sequence[Reading]) -> Grid:
    """Models side by side, without the number of their parameters."""
    columns = (Column(_("architecture")), *(Column(each.spec.name) for each in readings))
    rows = zip(*(_plan(each) for each in readings), strict=True)
    return Grid("", columns, tuple((row[0][0], *(value for _name, value in row)) for row in rows))


def _plan(reading: Reading) -> list[tuple[str, str]]:
    spec, block = reading.spec, reading.spec.blocks[0]
    mlp, attention = block.mlp, block.attention
    assert mlp is not None
    assert attention is not None
    gate = _("with a gate") if mlp.gated else _("without a gate")
    return [
        (_("tokens of the vocabulary"), whole(spec.vocab)),
        (_("width of the residual stream"), whole(spec.d_model)),
        (_("blocks"), whole(len(spec.blocks))),
        (_("heads"), whole(attention.heads)),
        (_("key-value heads"), whole(attention.kv_heads)),
        (_("positions"), _positions(spec, attention)),
        (_("norm"), _NORMS[block.attn_norm.kind]),
        (_("hidden numbers of the MLP"), whole(mlp.d_ff)),
        (_("MLP"), f"{mlp.activation}, {gate}"),
        (_("attention and MLP"), _("in parallel") if block.parallel else _("one after the other")),
        (_("biases"), _biases(spec, attention, mlp)),
        (_("head"), _("tied") if spec.tied else _("its own matrix")),
    ]


def _positions(spec: ModelSpec, attention: AttentionSpec) -> str:
    if attention.rotary is None:
        return _("table of {count} rows").format(count=whole(spec.context or 0))
    if attention.rotary.width == attention.d_head:
        return _("RoPE")
    part = _("RoPE, {width} of {whole} numbers")
    return part.format(width=attention.rotary.width, whole=attention.d_head)


def _biases(spec: ModelSpec, attention: AttentionSpec, mlp: MlpSpec) -> str:
    """Which matrices have a bias."""
    of = (
        (_("attention"), attention.q_bias),
        (_("MLP"), mlp.hidden_bias),
        (_("head"), spec.head_bias),
    )
    return ", ".join(name for name, has in of if has) or _("no")


def _rivals(readings: Sequence[Reading]) -> Grid:
    """The logits at the last position in several number systems, and the word that wins."""
    first = readings[0].worked.trace
    columns = (Column(_("word")), *(Column(_numbers_of(each), "number") for each in readings))
    place = len(first.tokens) - 1
    rows = []
    for id in range(readings[0].spec.answers):
        logits = (_logit(each, place, id) for each in readings)
        rows.append((f"`{words.token_label(first.answer(id))}`", *logits))
    wins = (_("next word"), *(token_at(each.worked, f"next[{place}]") for each in readings))
    return Grid("", columns, (*rows, wins))


def _numbers_of(reading: Reading) -> str:
    """The number system in a few words."""
    return words.numbers_name(reading.worked.trace.numbers).partition(",")[0]


def _logit(reading: Reading, place: int, id: int) -> str:
    return localised(reading.worked.trace.places(f"logits[{place},{id}]", 6))


def _losses(readings: Sequence[Reading]) -> Grid:
    """The same loss in several number systems."""
    columns = (Column(_("numbers")), Column(_("loss"), "number"))
    rows = tuple(
        (
            _numbers_of(each),
            localised(each.worked.trace.places("loss", 8)),
        )
        for each in readings
    )
    return Grid("", columns, rows)


_OF_SEVERAL: Mapping[str, Callable[[Sequence[Reading]], Part]] = {
    "architectures": _architectures,
    "plans": _plans,
    "rivals": _rivals,
    "losses": _losses,
}


# ------------------------------------------------------------------ norms before and after


def _norm_losses(record: NormsRecord) -> Curve:
    lines = tuple(
        CurveLine(
            _("norm before, {depth} blocks").format(depth=DEEPEST)
            if place == "pre"
            else _("norm after, {depth} blocks").format(depth=DEEPEST),
            tuple(
                (float(step), loss)
                for step, loss in enumerate(record.curve(place, DEEPEST).losses, 1)
            ),
        )
        for place in ("pre", "post")
    )
    about = _("The loss of two stacks of {depth} blocks: it falls far with the norm before.")
    return Curve(_("Loss at each step"), about.format(depth=DEEPEST), lines, _("step"))


def _norm_table(record: NormsRecord) -> Grid:
    columns = (
        Column(_("norm")),
        Column(_("blocks"), "number"),
        Column(_("gradient of the first block"), "number"),
        Column(_("of the last"), "number"),
        Column(_("last loss"), "number"),
    )
    names = {"pre": _("before"), "post": _("after")}
    rows = tuple(
        (
            names[curve.place],
            whole(curve.depth),
            localised(f"{curve.gradients[0]:.5f}"),
            localised(f"{curve.gradients[-1]:.5f}"),
            localised(f"{curve.losses[-1]:.3f}"),
        )
        for curve in record.curves
    )
    return Grid("", columns, rows)


_OF_NORMS: Mapping[str, Callable[[NormsRecord], Part]] = {
    "norm-losses": _norm_losses,
    "norm-table": _norm_table,
}
