"""An explanation as data: the JSON document of `byhand explain --json` (docs/explain.md).

    {"model", "numbers", "text", "tokens", "position", "token", "against", "next", "letters",
     "attribution", "lens", "attention", "geometry", "facts", "health", "gradients", "stream",
     "norms", "inputs"}

Every number of the model has its address, its value and its decimals as in the trace's document
(see `records`): {"address", "value", "decimal"}.  Rounded measures (health, angles) are plain
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from byhand.document.compose.explanation import USUAL
from byhand.document.compose.explanation.facts import tell
from byhand.document.compose.explanation.inputs import tell_inputs
from byhand.document.compose.explanation.wording import head_sentences
from byhand.document.media.json.records import Records, missing, number, picked, plain
from byhand.document.media.json.trace import proof_data

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.explaining.attribution import Attribution
    from byhand.explaining.circuits import Circuits, Table
    from byhand.explaining.facts import Check, Fact
    from byhand.explaining.geometry import Path
    from byhand.explaining.lens import LensRow
    from byhand.explaining.planes import Plane

SMALL = 64  # vocabularies up to this size: all logits are written after every step


def document_of(found: Explanation, only: Sequence[str] = ()) -> dict[str, Any]:
    """The document as Python data; with `only`, these sections alone."""
    data = _Data(found)
    trace = found.trace
    makers: dict[str, Callable[[], Any]] = {
        "attribution": data.attribution,
        "lens": lambda: data.lens(whole="lens" in only),
        "attention": data.attention,
        "geometry": data.geometry,
        "facts": data.facts,
        "health": lambda: plain(found.health),
        "gradients": data.gradients,
        "stream": data.stream,
        "norms": data.norms,
        "inputs": data.inputs,
    }
    usual = USUAL if found.length is None else (*USUAL, "inputs")  # a length was asked for
    wanted = [name for name in makers if name in (only or usual)]
    sections = {name: makers[name]() for name in wanted}
    return {
        "model": trace.model.name,
        "numbers": trace.numbers.name,
        **proof_data(trace),
        "text": trace.text,
        "tokens": data.tokens(),
        **data.beside(),
        "position": found.position,
        "token": data.token(found.token),
        "against": data.token(found.against),
        "next": data.next(),
        "letters": data.letters(),
        **sections,
    }


class _Data(Records):
    """Writes the sections of one explanation."""

    def __init__(self, found: Explanation) -> None:
        super().__init__(found.trace)
        self.found = found

    # ------------------------------------------------------------------ attribution

    def attribution(self) -> dict[str, Any] | None:
        """The terms of each explained logit, and of the lead of one over the other."""
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

    def gradients(self) -> dict[str, Any] | None:
        """What the loss depends on, said and found, and what it pulls at."""
        found = self.found.saliency
        if found is None or found.missing is not None:
            return None if found is None else {"missing": missing(found.missing)}
        data = {"missing": None, **picked(found, "loss", "order"), "weights": plain(found.pulls)}
        for name, some in (("words", found.words), ("parts", found.parts)):
            data[name] = [
                {"part": one.part.address, **picked(one, "said", "found")} for one in some
            ]
        return data

    def terms(self, found: Attribution) -> dict[str, Any]:
        records = []
        for term in found.terms:
            source = term.source
            record = {"source": source.name, **picked(source, "kind", "layer", "index")}
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
        """A term's number for each column; for a difference also the subtracted address."""
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
        """The lens at the explained position; of the whole text if the lens was asked for."""
        own = self.found.lens.rows
        if not whole:
            return [self.lens_row(row) for row in own]
        others = [row for row in self.found.whole_lens if row.position != self.found.position]
        rows = sorted((*own, *others), key=lambda row: row.position)
        return [self.lens_row(row) for row in rows]

    def lens_row(self, row: LensRow) -> dict[str, Any]:
        base = picked(row, "address", "step", "position")
        if row.missing is not None:
            return {**base, "missing": missing(row.missing)}
        at = row.address.removesuffix("]")
        shown = self.shown(row)
        return {
            **base,
            "leader": self.prediction(row.position, row.leader),
            "logits": [
                self.number(row.logits[id], f"{at},{id}]")
                | {"token": self.found.trace.answer(id), "id": id}
                for id in shown
            ],
            "probs": None
            if row.probs is None
            else [(self.bare(row.probs[id]) or {}) | {"id": id} for id in shown],
            "ranks": [plain(rank) for rank in row.ranks],
        }

    def shown(self, row: LensRow) -> list[int]:
        """The tokens of a row: all of a small vocabulary, else the relevant ones."""
        vocab = self.found.model.spec.answers
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
            "missing": missing(found.missing),
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
        """The attention weights of every head at the explained position; null where masked."""
        address = f"block.{layer}.attn.weights"
        worked = self.found.trace.steps[address]
        if worked.missing is not None:
            return {"address": address, "missing": missing(worked.missing)}
        place, keys = self.found.position, range(worked.step.shape[-1])
        entries = [
            [
                self.value(worked.at((head, place, key)), f"{address}[{head},{place},{key}]")
                for key in keys
            ]
            for head in range(worked.step.shape[0])
        ]
        return {"address": address, "position": place, **_nested(entries)}

    def table(self, table: Table) -> dict[str, Any]:
        """A table as nested lists, null where masked, as the trace's document has a step.

        The address of an entry is the table's with [head, row token, column token].
        """
        entries = [
            [
                self.value(table.at(row, column), table.address_of(row, column))
                for column in table.columns
            ]
            for row in table.rows
        ]
        return {
            **picked(table, "address", "head", "rows", "columns"),
            **_nested(entries),
        }

    # ------------------------------------------------------------------ geometry

    def geometry(self) -> dict[str, Any]:
        """The directions, the paths among them, and their pictures."""
        found = self.found.geometry
        return {
            "directions": [
                picked(each, "token", "id", "row", "bias", "length", "turn")
                for each in found.directions
            ],
            "left_out": found.left_out,
            "paths": [self.path(path) for path in found.paths],
            "planes": [self.plane(plane) for plane in found.planes],
        }

    def path(self, path: Path) -> dict[str, Any]:
        moves = (None, *path.moves)
        return {
            "position": path.position,
            "stops": [
                {
                    **picked(stop, "address", "kind", "layer", "near", "length"),
                    **picked(stop, "angles", "cosines"),
                    "turned": None if move is None else number(move.turned),
                    "added": None if move is None else picked(move, "length", "cosine"),
                    "leads": self.prediction(path.position, stop.leads),
                }
                for stop, move in zip(path.stops, moves, strict=False)
            ],
            "missing": missing(path.ended),
        }

    def plane(self, plane: Plane) -> dict[str, Any]:
        """A picture's points and regions; corners of exact regions are rational numbers."""
        seen = plane.projection
        return {
            **picked(seen, "axes", "centre", "kept"),
            "projected_away": number(seen.away),
            **picked(plane, "points", "arrows"),
            "regions": [
                {
                    "token": self.token(region.token),
                    "tied": list(region.tied),
                    "outlines": [
                        [[_corner(x), _corner(y)] for x, y in line] for line in region.outlines
                    ],
                }
                for region in plane.regions
            ],
            "drawn_from": plane.drawn_from or None,
            "cut": None if plane.cut is None else picked(plane.cut, "axis", "level"),
            "never": [self.token(id) for id in plane.never],
        }

    # ------------------------------------------------------------------ facts

    def facts(self) -> dict[str, Any]:
        """How predictions come about, in data and in sentences."""
        found = self.found.whole_facts if self.found.few_positions else self.found.facts
        if found.missing is not None:
            return {"missing": missing(found.missing), "facts": []}
        told = {each.position: list(each.sentences) for each in tell(found)}
        facts = [self.fact(fact, told.get(fact.position, [])) for fact in found.facts]
        return {"missing": None, "facts": facts}

    def fact(self, fact: Fact, sentences: list[str]) -> dict[str, Any]:
        turning = fact.turning
        return {
            "position": fact.position,
            "prediction": self.prediction(fact.position, fact.prediction),
            "rival": self.token(turning.rival),
            "lead": self.bare(turning.lead),
            "sentences": sentences,
            "readings": [
                {
                    "address": reading.address,
                    "part": None if reading.part is None else reading.part.address,
                    "leader": self.prediction(fact.position, reading.leader),
                    "lead": self.bare(reading.lead),
                }
                for reading in turning.readings
            ],
            "contributions": [
                {"part": each.part.address, "adds": self.bare(each.value)}
                for each in turning.contributions
            ],
            "checks": [self.check(fact, check) for check in fact.checks],
            "needed": [check.part.address for check in fact.needed],
        }

    def check(self, fact: Fact, check: Check) -> dict[str, Any]:
        return {
            "part": check.part.address,
            "adds": self.bare(check.contribution),
            "said": self.prediction(fact.position, check.said),
            "found": self.prediction(fact.position, check.found),
            "as_said": check.as_said,
        }

    # ------------------------------------------------------------------ norms, and every text

    def norms(self) -> dict[str, Any]:
        """The same weights with norms before and after."""
        found = self.found.norm_places
        return {
            "own": found.own,
            "reason": found.reason,
            "runs": [
                {
                    **picked(run, "place", "own", "health"),
                    "next": None
                    if run.next is None
                    else [self.prediction(at, each) for at, each in enumerate(run.next)],
                }
                for run in found.runs
            ],
        }

    def inputs(self) -> dict[str, Any]:
        """Every text with its prediction."""
        found = self.found.inputs
        if found.missing is not None:
            return {"missing": missing(found.missing), "texts": []}
        decode = found.model.vocabulary.decode
        return {
            "missing": None,
            "length": found.length,
            "context": found.model.spec.context,
            "unread": list(found.unread),
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
                    "without": [other.id for other in row.without],
                    "needs": [part.address for part in found.needed(row)],
                }
                for row in found.rows
            ],
        }


def _nested(entries: list[list[tuple[Any, Any]]]) -> dict[str, Any]:
    """Values, and decimals if there are any, as nested lists."""
    values = [[value for value, _decimal in row] for row in entries]
    decimals = [[decimal for _value, decimal in row] for row in entries]
    told = any(decimal is not None for row in decimals for decimal in row)
    return {"value": values, **({"decimal": decimals} if told else {})}


def _address(of: str, name: str, position: int, column: int) -> str:
    return f"explain.{of}.{name}[{position},{column}]"


def _corner(x: Fraction | float) -> str | float | None:
    return str(x) if isinstance(x, Fraction) else plain(x)
