"""Keys of the `model:` table: flags, numbers, widths and norms, each read as what it must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeVar

from byhand.errors import SpecError
from byhand.expression import Expression
from byhand.files import scalars
from byhand.files.naming import names_at
from byhand.files.tree import Node, Scalar, Table
from byhand.language import _
from byhand.spec import NO_NORM, NORMS, NormSpec

WIDEST = 1_000_000
NORM_KEYS = ("kind", "eps", "gain", "bias", "plus_one")
T = TypeVar("T")


@contextmanager
def located(*tables: Table, **sections: Table | None) -> Iterator[None]:
    """Adds the place of its key to a SpecError raised inside.

    attention.out is looked up as `out` in the attention section, if that is given.  Any other key
    is looked up in the tables; the first with it counts.
    """
    try:
        yield
    except SpecError as error:
        first, _dot, rest = error.key.partition(".")
        if section := sections.get(first):
            places = [(section, rest)]
        elif layer := re.fullmatch(r"block\.(\d+)\.(.*)", error.key):
            places = [(tables[0], f"blocks.{layer[1]}.{layer[2]}"), (tables[0], layer[2])]
        else:
            places = [(table, error.key) for table in tables]
        node = next((t.at(key) for t, key in places if t.has(key)), places[-1][0].at(places[-1][1]))
        raise node.refused(error) from None


class Settings:
    """The `model:` table, and how its keys are read."""

    def __init__(self, node: Table) -> None:
        self.node = node

    def width(self, table: Table, key: str, named: str) -> int:
        """A width; where its dimensions have names, it may be left out."""
        names = table.get(named)
        if names is None or table.get(key) is not None:
            return scalars.whole(table.needed(key, found=table.keys()), 1, WIDEST)
        return len(names_at(names))

    def table(self, node: Node | None, *known: str) -> Table:
        """The table, which may only have these keys; empty if it is not given."""
        if node is None:
            return Table(self.node.file, self.node.line, self.node.key, {})
        if not isinstance(node, Table):
            raise node.impossible(_("a table with keys of {keys}").format(keys=", ".join(known)))
        node.only(*known)
        return node

    def flag(self, table: Table, key: str, default: bool) -> bool:
        """A truth value."""
        node = table.get(key)
        return default if node is None else scalars.truth(node)

    def flags(self, node: Node | None, default: tuple[str, ...], *known: str) -> dict[str, bool]:
        """The flags: `bias: true` sets the default ones; a table sets each one."""
        if isinstance(node, Table):
            table = self.table(node, *known)
            return {key: self.flag(table, key, False) for key in known}
        said = node is not None and scalars.truth(node)
        return {key: said and key in default for key in known}

    def maybe(self, table: Table, key: str, read: Callable[[Node], T]) -> T | None:
        """The value of a key; None where it is left out."""
        node = table.get(key)
        return None if node is None else read(node)

    def count(self, table: Table, key: str) -> int | None:
        """A whole number of at least 1; None where it is left out."""
        return self.maybe(table, key, lambda node: scalars.whole(node, 1, WIDEST))

    def number(self, table: Table, key: str) -> Fraction | None:
        """A rational number; None where it is left out."""
        return self.maybe(table, key, scalars.number)

    def word(self, table: Table, key: str, usual: str, *known: str) -> str:
        """One of the known words; the usual one where it is left out."""
        node = table.get(key)
        return usual if node is None else scalars.word(node, *known)

    def scale(self, node: Node) -> Expression | None:
        """The scale of the scores; None for no scaling, written as 1 or none."""
        if isinstance(node, Scalar) and node.text == "none":
            return None
        value = scalars.value_of(node)
        return None if value == 1 else scalars.constant(value)

    def norm(self, node: Node | None, *more: str) -> NormSpec:
        """A norm: a word, or a table with these and perhaps more keys."""
        if node is None:
            return NO_NORM
        if isinstance(node, Scalar):
            kind, table = scalars.word(node, *NORMS), Table(node.file, node.line, node.key, {})
        else:
            table = self.table(node, *NORM_KEYS, *more)
            named = table.get("kind")
            kind = "layernorm" if named is None else scalars.word(named, *NORMS)
        if kind == "none":
            return NO_NORM
        eps = table.get("eps")
        with located(norm=table):
            return NormSpec(
                kind=kind,
                eps=Fraction(0) if eps is None else scalars.number(eps),
                gain=self.flag(table, "gain", True),
                bias=self.flag(table, "bias", kind == "layernorm"),
                plus_one=self.flag(table, "plus_one", False),
            )
