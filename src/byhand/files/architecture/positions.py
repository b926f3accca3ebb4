"""`position:` of the `model:` table: at most one added table, rotation, ALiBi."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from byhand.files import scalars
from byhand.files.architecture.settings import WIDEST, Settings, located
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.rope_scaling import KINDS, Scaling
from byhand.spec import PAIRINGS, POSITIONS, RelativeSpec, RotarySpec

RELATIVE = ("rope", "alibi")


@dataclass
class Places:
    """What `position:` says."""

    stream: str = "none"
    base: Fraction = Fraction(10_000)
    pairing: str = "interleaved"
    first_row: int = 0
    rope: Table | None = None
    alibi: bool = False


class Positions(Settings):
    """Reads positions, rotations and buckets of distances."""

    def positions(self, node: Node | None, known: tuple[str, ...]) -> Places:
        """What a `position:` key says, in words that are known there."""
        found = Places()
        if node is None:
            return found
        seen: list[str] = []
        for each in node.items if isinstance(node, List) else (node,):
            kind = self.position(each, known, found)
            family = kind if kind in RELATIVE else "stream"
            if family in seen:
                raise each.wrong(
                    _("two kinds of positions that exclude each other"),
                    expected=_("one of {kinds}, and rope or alibi beside it").format(
                        kinds=", ".join(POSITIONS)
                    ),
                    found=kind,
                )
            seen.append(family)
        return found

    def position(self, node: Node, known: tuple[str, ...], found: Places) -> str:
        """One kind of positions, put into what was found so far."""
        if isinstance(node, Scalar):
            kind, table = scalars.word(node, *known), Table(node.file, node.line, node.key, {})
        else:
            rope = ("base", "width", "pairing", "angles", "magnitude", "scaling")
            table = self.table(node, "kind", *rope, "first_row")
            kind = scalars.word(table.needed("kind", ", ".join(known)), *known)
            keys = {"rope": rope, "sinusoidal": ("base", "pairing"), "learned": ("first_row",)}
            table.only("kind", *keys.get(kind, ()))
        if kind == "rope":
            found.rope = table
        elif kind == "alibi":
            found.alibi = True
        else:
            found.stream = kind
            if base := table.get("base"):
                found.base = scalars.number(base)
            found.pairing = self.word(table, "pairing", "interleaved", *PAIRINGS)
            if first := table.get("first_row"):
                found.first_row = scalars.whole(first, 0, WIDEST)
        return kind

    def rotary(self, table: Table, d_head: int) -> RotarySpec:
        """RoPE."""
        width, base, pairing, angles = map(table.get, ("width", "base", "pairing", "angles"))
        magnitude = table.get("magnitude")
        if base is not None and angles is not None:
            raise angles.wrong(
                _("given angles leave nothing for a base to do"),
                expected=_("base or angles, not both"),
                found="base, angles",
            )
        with located(rope=table):
            return RotarySpec(
                width=d_head if width is None else scalars.whole(width, 1, WIDEST),
                base=Fraction(10_000) if base is None else scalars.number(base),
                pairing="half" if pairing is None else scalars.word(pairing, *PAIRINGS),
                given=angles is not None and scalars.word(angles, "given") == "given",
                magnitude=None if magnitude is None else self.scale(magnitude),
                scaling=self.maybe(table, "scaling", self.scaling),
            )

    def scaling(self, node: Node) -> Scaling:
        """The rule of angles that are no powers of the base."""
        numbers, factors = ("factor", "slow", "fast"), ("short_factors", "long_factors")
        table = self.table(node, "kind", *numbers, "length", "whole", *factors)
        said: dict[str, Any] = {name: self.number(table, name) for name in numbers}
        said |= {name: self.maybe(table, name, self.numbers) for name in factors}
        said["length"] = self.count(table, "length")
        said["whole"] = self.maybe(table, "whole", scalars.truth)
        kind = scalars.word(table.needed("kind", ", ".join(KINDS)), *KINDS)
        with located(scaling=table):
            return Scaling(kind, **{key: value for key, value in said.items() if value is not None})

    def numbers(self, node: Node) -> tuple[Fraction, ...]:
        """A list of numbers."""
        if not isinstance(node, List):
            raise node.impossible(_("a list of numbers"))
        return tuple(map(scalars.number, node.items))

    def relative(self, node: Node | None) -> RelativeSpec | None:
        """The buckets of distances."""
        if node is None or (isinstance(node, Scalar) and node.text == "none"):
            return None
        table = self.table(node, "buckets", "distance", "both")
        with located(relative=table):
            return RelativeSpec(
                buckets=self.count(table, "buckets") or 32,
                distance=self.count(table, "distance") or 128,
                both=self.flag(table, "both", False),
            )
