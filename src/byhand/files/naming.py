"""The names of dimensions in a model file: `model.stream` and `mlp.units`."""

from __future__ import annotations

import re

from byhand.dimensions import Dimensions
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _, amount, later
from byhand.spec import ModelSpec

_NAME = re.compile(r"(?![-+]?[0-9]+$)[^\s,]{1,60}")  # no number: those are indices


def read_dimensions(node: Table, spec: ModelSpec) -> Dimensions:
    """The names that the `model:` table gives; their numbers must fit the spec."""
    stream = node.get("stream")
    units = []
    for layer, block in enumerate(spec.blocks):
        own = f"blocks.{layer}.mlp.units"
        key = own if node.has(own) else "mlp.units"
        given = block.mlp is not None and node.has(key)
        units.append(_fitting(node.at(key), block.mlp.d_ff) if given and block.mlp else ())
    names = () if stream is None else _fitting(stream, spec.d_model)
    return Dimensions(names, tuple(units) if any(units) else ())


def names_at(node: Node) -> tuple[str, ...]:
    """The list of names, each given once."""
    if not isinstance(node, List) or not node.items:
        raise node.wrong(_("names are a list of words"), expected="[digit, sum]")
    names: list[str] = []
    for item in node.items:
        if not isinstance(item, Scalar) or not _NAME.fullmatch(item.text):
            raise item.impossible(_("a word without blanks and commas, and no number"))
        if item.text in names:
            raise item.wrong(
                _("two dimensions have the same name"),
                expected=_("each name once"),
                found=item.text,
            )
        names.append(item.text)
    return tuple(names)


def _fitting(node: Node, count: int) -> tuple[str, ...]:
    names = names_at(node)
    if len(names) != count:
        raise node.wrong(
            _("there are more or fewer names than dimensions"),
            expected=amount(count, later("1 name"), later("{count} names")),
            found=str(len(names)),
        )
    return names
