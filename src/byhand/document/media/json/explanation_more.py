"""Geometry, facts, norms and the table of every text, as data."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from byhand.document.media.json.records import Records, missing, number, plain

if TYPE_CHECKING:
    from byhand.explaining.facts import Check, Fact
    from byhand.explaining.geometry import Path
    from byhand.explaining.planes import Plane


class FurtherData(Records):
    """The sections that are not tables of logits."""

    # ------------------------------------------------------------------ geometry

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
            "paths": [self.path(path) for path in found.paths],
            "planes": [self.plane(plane) for plane in found.planes],
        }

    def path(self, path: Path) -> dict[str, Any]:
        moves = (None, *path.moves)
        return {
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
                    "turned": None if move is None else number(move.turned),
                    "added": None
                    if move is None
                    else {"length": number(move.length), "cosine": number(move.cosine)},
                    "leads": self.prediction(path.position, stop.leads),
                }
                for stop, move in zip(path.stops, moves, strict=False)
            ],
            "missing": None if path.ended is None else missing(path.ended),
        }

    def plane(self, plane: Plane) -> dict[str, Any]:
        """A picture's points and regions; the corners of exact regions are rational numbers."""
        seen = plane.projection
        return {
            "axes": plain(seen.axes),
            "centre": plain(seen.centre),
            "kept": plain(seen.kept),
            "projected_away": number(seen.away),
            "points": plain(plane.points),
            "arrows": plain(plane.arrows),
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
            "cut": None
            if plane.cut is None
            else {"axis": plane.cut.axis, "level": plane.cut.level},
            "never": [self.token(id) for id in plane.never],
        }

    # ------------------------------------------------------------------ facts

    def facts(self) -> dict[str, Any]:
        from byhand.document.compose.explanation.facts import tell

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
        from byhand.document.compose.explanation.inputs import tell_inputs

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


def _corner(x: Fraction | float) -> str | float | None:
    return str(x) if isinstance(x, Fraction) else plain(x)
