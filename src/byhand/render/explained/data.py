"""An explanation as data: the JSON document of `byhand explain --json` (docs/explain.md).

    {"model", "numbers", "text", "tokens", "position", "token", "against", "next", "letters",
     "attribution", "lens", "attention", "geometry", "facts", "health", "norms", "inputs"}

Every number of the model's has its address, its value and its decimals as in the trace's document
(see `render.data`): {"address", "value", "decimal"}.  What is rounded by nature (health, angles)
is a plain number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO

from byhand.numbers.base import Prediction
from byhand.render.data import TraceData, proof_data, write_document

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.explaining.attribution import Attribution
    from byhand.explaining.circuits import Circuits, Table
    from byhand.explaining.lens import LensRow
    from byhand.tracing import Missing

USUAL = ("attribution", "lens", "attention", "geometry", "facts", "health")


def write_json(found: Explanation, to: TextIO, only: Sequence[str] = ()) -> None:
    """Writes the document, a section a line."""
    write_document(document_of(found, only), to)


def document_of(found: Explanation, only: Sequence[str] = ()) -> dict[str, Any]:
    """The document as Python data; with `only`, of these sections."""
    data = _Data(found)
    trace = found.trace
    makers: dict[str, Callable[[], Any]] = {
        "attribution": data.attribution,
        "lens": data.lens,
        "attention": data.attention,
        "geometry": data.geometry,
        "facts": data.facts,
        "health": lambda: plain(found.health),
        "norms": data.norms,
        "inputs": data.inputs,
    }
    wanted = [name for name in makers if name in (only or USUAL)]
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


class _Data:
    def __init__(self, found: Explanation) -> None:
        self.found = found
        self.writer = TraceData(found.trace)

    def token(self, id: int | None) -> dict[str, Any] | None:
        return None if id is None else {"id": id, "text": self.found.trace.token(id)}

    def number(self, entry: Any, address: str) -> dict[str, Any]:
        """One number with its address."""
        value, decimal = self.writer.value(entry, address)
        return {"address": address, "value": value, "decimal": decimal}

    def prediction(self, position: int, found: Prediction | None) -> dict[str, Any] | None:
        return None if found is None else self.writer.prediction(position, found)

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
                record["numbers"] = self.row(found, term.array, partial(source.at, "logits"))
            records.append(record)
        return {
            "position": self.found.position,
            "columns": [self.token(id) for id in found.columns],
            "against": self.token(found.against[0]) if found.against else None,
            "terms": records,
            "total": self.row(found, found.totals, partial(_address, "total")),
            "remainder": self.row(found, found.remainders, partial(_address, "remainder")),
            "closes": found.closes,
            "radius": number(found.radius) if found.closes in ("exact", "proven") else None,
            "relative": number(found.relative) if found.closes == "rounded" else None,
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

    def lens(self) -> list[dict[str, Any]]:
        return [self.lens_row(row) for row in self.found.lens.rows]

    def lens_row(self, row: LensRow) -> dict[str, Any]:
        base: dict[str, Any] = {"address": row.address, "step": row.step, "position": row.position}
        if row.missing is not None:
            return {**base, "missing": missing(row.missing)}
        at = row.address.removesuffix("]")
        return {
            **base,
            "leader": self.prediction(row.position, row.leader),
            "logits": [
                self.number(row.logits[id], f"{at},{id}]")
                | {"token": self.found.trace.token(id), "id": id}
                for id in self.shown(row)
            ],
            "probs": None
            if row.probs is None
            else [self.share(row.probs[id]) | {"id": id} for id in self.shown(row)],
            "ranks": [plain(rank) for rank in row.ranks],
        }

    def share(self, entry: Any) -> dict[str, Any]:
        value, decimal = self.writer.value(entry, None)
        return {"value": value, "decimal": decimal}

    def shown(self, row: LensRow) -> list[int]:
        """The tokens of a row: all of a small vocabulary, else those that matter."""
        vocab = len(self.found.model.vocabulary)
        if vocab <= 64:
            return list(range(vocab))
        leader = () if row.leader is None or row.leader.id is None else (row.leader.id,)
        return list(dict.fromkeys((*self.found.compared, *leader)))

    def attention(self) -> list[dict[str, Any]]:
        layers = dict.fromkeys(layer for layer, _head in self.found.heads)
        return [self.layer(self.found.circuits(layer)) for layer in layers]

    def layer(self, found: Circuits) -> dict[str, Any]:
        return {
            "layer": found.layer,
            "query": found.positions[0],
            "key": found.positions[1],
            "stands_in": found.stands_in,
            "norms": list(found.norms),
            "left_out": found.left_out,
            "missing": None if found.missing is None else missing(found.missing),
            "heads": [
                {
                    "head": each.head,
                    "sentences": list(each.sentences),
                    "qk": self.table(each.qk),
                    "ov": self.table(each.ov),
                }
                for each in found.heads
            ],
        }

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
        values = [[value for value, _decimal in row] for row in entries]
        decimals = [[decimal for _value, decimal in row] for row in entries]
        told = any(decimal is not None for row in decimals for decimal in row)
        return {
            "address": table.address,
            "head": table.head,
            "rows": list(table.rows),
            "columns": list(table.columns),
            "value": values,
            **({"decimal": decimals} if told else {}),
        }

    # ------------------------------------------------------------------ geometry, facts, inputs

    def geometry(self) -> dict[str, Any]:
        found = self.found.geometry
        return {
            "directions": [
                {
                    "token": each.token,
                    "id": each.id,
                    "row": plain(each.row),
                    "bias": number(each.bias),
                    "length": number(each.length),
                    "turn": number(each.turn),
                }
                for each in found.directions
            ],
            "left_out": found.left_out,
            "paths": [
                {
                    "position": path.position,
                    "stops": [
                        {
                            "address": stop.address,
                            "kind": stop.kind,
                            "layer": stop.layer,
                            "near": plain(stop.near),
                            "length": number(stop.length),
                            "angles": plain(stop.angles),
                            "cosines": plain(stop.cosines),
                            "leads": self.prediction(path.position, stop.leads),
                        }
                        for stop in path.stops
                    ],
                    "missing": None if path.ended is None else missing(path.ended),
                }
                for path in found.paths
            ],
        }

    def facts(self) -> dict[str, Any]:
        from byhand.render.explained.telling import tell

        found = self.found.facts
        if found.missing is not None:
            return {"missing": missing(found.missing), "facts": []}
        told = {each.position: list(each.sentences) for each in tell(found)}
        return {
            "missing": None,
            "facts": [
                {
                    "position": fact.position,
                    "prediction": self.prediction(fact.position, fact.prediction),
                    "sentences": told.get(fact.position, []),
                    "checks": [
                        {
                            "part": check.part.address,
                            "said": self.prediction(fact.position, check.said),
                            "found": self.prediction(fact.position, check.found),
                            "as_said": check.as_said,
                        }
                        for check in fact.checks
                    ],
                    "needed": [check.part.address for check in fact.needed],
                }
                for fact in found.facts
            ],
        }

    def norms(self) -> dict[str, Any]:
        found = self.found.norm_places
        return {
            "own": found.own,
            "reason": found.reason,
            "runs": [
                {
                    "place": run.place,
                    "own": run.own,
                    "health": plain(run.health),
                    "next": None
                    if run.next is None
                    else [self.prediction(at, each) for at, each in enumerate(run.next)],
                }
                for run in found.runs
            ],
        }

    def inputs(self) -> dict[str, Any]:
        from byhand.render.explained.telling import tell_inputs

        found = self.found.inputs
        if found.missing is not None:
            return {"missing": missing(found.missing), "texts": []}
        decode = found.model.vocabulary.decode
        return {
            "missing": None,
            "length": found.length,
            "suffix": found.suffix,
            "sentences": list(tell_inputs(found)),
            "parts": [part.address for part in found.parts],
            "texts": [
                {
                    "text": decode(row.tokens),
                    "tokens": list(row.tokens),
                    "next": row.prediction.id,
                    "proven": row.prediction.proven,
                    "suffix": row.suffix,
                    "needs": [part.address for part in found.needed(row)],
                }
                for row in found.rows
            ],
        }


def _address(name: str, position: int, column: int) -> str:
    return f"explain.logits.{name}[{position},{column}]"


def missing(found: Missing) -> dict[str, str]:
    """Why there is no number, as the trace's document says it."""
    return {"kind": found.kind, "cause": found.cause}


def number(value: float | None) -> float | str | None:
    """A rounded number; its name where JSON has no such number."""
    if value is None:
        return None
    return float(value) if isfinite(value) else str(float(value))


def plain(found: Any) -> Any:
    """Records of rounded numbers as JSON has them."""
    if is_dataclass(found) and not isinstance(found, type):
        return {field.name: plain(getattr(found, field.name)) for field in fields(found)}
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, bool) or found is None or isinstance(found, str | int):
        return found
    return number(found)
