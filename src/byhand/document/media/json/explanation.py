"""An explanation as data: the JSON document of `byhand explain --json` (docs/explain.md).

    {"model", "numbers", "text", "tokens", "position", "token", "against", "next", "letters",
     "attribution", "lens", "attention", "geometry", "facts", "health", "stream", "norms", "inputs"}

Every number of the model's has its address, its value and its decimals as in the trace's document
(see `render.data`): {"address", "value", "decimal"}.  What is rounded by nature (health, angles)
is a plain number.  Here are the sections that hold tables of numbers; `further_data` has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from byhand.document.compose.explanation import USUAL
from byhand.document.compose.explanation.wording import head_sentences
from byhand.document.media.json.explanation_more import FurtherData
from byhand.document.media.json.records import Records, missing, number, plain
from byhand.document.media.json.trace import proof_data, write_document

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.explaining.attribution import Attribution
    from byhand.explaining.circuits import Circuits, Table
    from byhand.explaining.lens import LensRow

SMALL = 64  # tokens of a vocabulary whose logits are all written after every step


def write_json(found: Explanation, to: TextIO, only: Sequence[str] = ()) -> None:
    """Writes the document, a section a line."""
    write_document(document_of(found, only), to)


def document_of(found: Explanation, only: Sequence[str] = ()) -> dict[str, Any]:
    """The document as Python data; with `only`, of these sections."""
    data = _Data(found)
    further = FurtherData(found, data.writer)
    trace = found.trace
    makers: dict[str, Callable[[], Any]] = {
        "attribution": data.attribution,
        "lens": lambda: data.lens(whole="lens" in only),
        "attention": data.attention,
        "geometry": further.geometry,
        "facts": further.facts,
        "health": lambda: plain(found.health),
        "stream": data.stream,
        "norms": further.norms,
        "inputs": further.inputs,
    }
    usual = USUAL if found.length is None else (*USUAL, "inputs")  # whose length was asked for
    wanted = [name for name in makers if name in (only or usual)]
    sections = {name: makers[name]() for name in wanted}
    return {
        "model": trace.model.name,
        "numbers": trace.numbers.name,
        **proof_data(trace),
        "text": trace.text,
        "tokens": [{"id": id, "text": trace.token(id)} for id in trace.tokens],
        "position": found.position,
        "token": data.token(found.token),
        "against": data.token(found.against),
        "next": data.writer.next(),
        "letters": data.writer.letters(),
        **sections,
    }


class _Data(Records):
    # ------------------------------------------------------------------ attribution

    def attribution(self) -> dict[str, Any] | None:
        """The terms of every logit looked at, and of the lead of one over the other."""
        table, chosen = self.found.attribution_table, self.found.attribution
        if table is None or chosen is None:
            return None
        data = {"logits": self.terms(table)}
        if self.found.against is not None:
            data["difference"] = self.terms(chosen)
        return data

    def stream(self) -> dict[str, Any] | None:
        """The terms of every entry of the final stream."""
        return None if self.found.stream is None else self.terms(self.found.stream)

    def terms(self, found: Attribution) -> dict[str, Any]:
        records = []
        for term in found.terms:
            source = term.source
            record: dict[str, Any] = {
                "source": source.name,
                "kind": source.kind,
                "layer": source.layer,
                "index": list(source.index),
            }
            if term.missing is not None:
                record |= {"numbers": None, "missing": missing(term.missing)}
            else:
                record["numbers"] = self.row(found, term.array, partial(source.at, found.of))
            records.append(record)
        columns = map(self.token, found.columns) if found.of == "logits" else found.columns
        return {
            "position": self.found.position,
            "columns": list(columns),
            "against": self.token(found.against[0]) if found.against else None,
            "terms": records,
            "total": self.row(found, found.totals, partial(_address, found.of, "total")),
            "remainder": self.row(
                found, found.remainders, partial(_address, found.of, "remainder")
            ),
            "closes": found.closes,
            "radius": number(found.radius) if found.closes in ("exact", "proven") else None,
            "relative": number(found.relative) if found.closes == "rounded" else None,
            "limits": [norm for norm, _position in found.limits],
        }

    def row(
        self, found: Attribution, array: Any, address: Callable[[int, int], str]
    ) -> list[dict[str, Any]] | None:
        """A term's number for each column; of a difference also the address that is taken away."""
        if array is None:
            return None
        place = self.found.position
        less = {"less": address(place, found.against[0])} if found.against else {}
        return [
            self.number(array[0, at], address(place, column)) | less
            for at, column in enumerate(found.columns)
        ]

    # ------------------------------------------------------------------ lens and attention

    def lens(self, *, whole: bool) -> list[dict[str, Any]]:
        """The position explained; the whole text where the lens was asked for by its name."""
        own = self.found.lens.rows
        if not whole:
            return [self.lens_row(row) for row in own]
        others = [row for row in self.found.whole_lens if row.position != self.found.position]
        rows = sorted((*own, *others), key=lambda row: row.position)
        return [self.lens_row(row) for row in rows]

    def lens_row(self, row: LensRow) -> dict[str, Any]:
        base: dict[str, Any] = {"address": row.address, "step": row.step, "position": row.position}
        if row.missing is not None:
            return {**base, "missing": missing(row.missing)}
        at = row.address.removesuffix("]")
        shown = self.shown(row)
        return {
            **base,
            "leader": self.prediction(row.position, row.leader),
            "logits": [
                self.number(row.logits[id], f"{at},{id}]")
                | {"token": self.found.trace.token(id), "id": id}
                for id in shown
            ],
            "probs": None
            if row.probs is None
            else [(self.bare(row.probs[id]) or {}) | {"id": id} for id in shown],
            "ranks": [plain(rank) for rank in row.ranks],
        }

    def shown(self, row: LensRow) -> list[int]:
        """The tokens of a row: all of a small vocabulary, else those that matter."""
        vocab = len(self.found.model.vocabulary)
        if vocab <= SMALL:
            return list(range(vocab))
        leader = () if row.leader is None or row.leader.id is None else (row.leader.id,)
        return list(dict.fromkeys((*self.found.compared, *leader)))

    def attention(self) -> list[dict[str, Any]]:
        layers = dict.fromkeys(layer for layer, _head in self.found.heads)
        return [self.layer(self.found.circuits(layer)) for layer in layers]

    def layer(self, found: Circuits) -> dict[str, Any]:
        return {
            "layer": found.layer,
            "pattern": self.pattern(found.layer),
            "query": found.positions[0],
            "key": found.positions[1],
            "stands_in": found.stands_in,
            "norms": list(found.norms),
            "left_out": found.left_out,
            "missing": None if found.missing is None else missing(found.missing),
            "heads": [
                {
                    "head": each.head,
                    "query": each.positions[0],
                    "key": each.positions[1],
                    "sentences": list(head_sentences(each, self.found.model)),
                    "qk": self.table(each.qk),
                    "ov": self.table(each.ov),
                }
                for each in found.heads
            ],
        }

    def pattern(self, layer: int) -> dict[str, Any]:
        """Where every head looks from the position explained: a list of shares for each head, null
        where masked; the trace's document has the other positions."""
        address = f"block.{layer}.attn.weights"
        worked = self.found.trace.steps[address]
        if worked.missing is not None:
            return {"address": address, "missing": missing(worked.missing)}
        place, keys = self.found.position, range(worked.step.shape[-1])
        entries = [
            [
                self.writer.value(worked.at((head, place, key)), f"{address}[{head},{place},{key}]")
                for key in keys
            ]
            for head in range(worked.step.shape[0])
        ]
        return {"address": address, "position": place, **_nested(entries)}

    def table(self, table: Table) -> dict[str, Any]:
        """A table as the trace's document has a step: nested lists, null where masked; the address
        of an entry is that of the table with [head, row token, column token]."""
        entries = [
            [
                self.writer.value(table.at(row, column), table.address_of(row, column))
                for column in table.columns
            ]
            for row in table.rows
        ]
        return {
            "address": table.address,
            "head": table.head,
            "rows": list(table.rows),
            "columns": list(table.columns),
            **_nested(entries),
        }


def _nested(entries: list[list[tuple[Any, Any]]]) -> dict[str, Any]:
    """Values, and decimals where there are any, as nested lists."""
    values = [[value for value, _decimal in row] for row in entries]
    decimals = [[decimal for _value, decimal in row] for row in entries]
    told = any(decimal is not None for row in decimals for decimal in row)
    return {"value": values, **({"decimal": decimals} if told else {})}


def _address(of: str, name: str, position: int, column: int) -> str:
    return f"explain.{of}.{name}[{position},{column}]"
