"""Claims in YAML and JSON files: handwriting, a manifest of binaries, or Polygraphy's outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from byhand.checking.claims import Sheet
from byhand.checking.readers.answers import readable
from byhand.checking.readers.binaries import ARRAYS, sheet_of_manifest
from byhand.checking.readers.handwriting import (
    CLAIMS,
    GIVEN,
    HEADING,
    as_claims_error,
    sheet_of,
)
from byhand.checking.readers.polygraphy import is_polygraphy, read_polygraphy
from byhand.errors import ModelFileError
from byhand.files import tree
from byhand.files.tree import Node, Table
from byhand.language import _

_QUESTION = re.compile(rb"[\[,:]\s*\?\s*(?:[,\]]|$)", re.MULTILINE)


def read_text(path: Path) -> Sheet:
    """The claims of a YAML or JSON file."""
    try:
        if path.suffix.lower() == ".json" and is_polygraphy(path):
            return read_polygraphy(path)
        text = tree.text_of(path)
        table = tree.read(readable(text), str(path))
        if ARRAYS in table.entries:
            return sheet_of_manifest(path, table)
        if path.suffix.lower() == ".json":
            table = _flat(table)
        return sheet_of(str(path), table)
    except ModelFileError as error:
        ours = as_claims_error(error)
        if ours.hint is None and _lone_question_mark(path):
            ours.hint = _("a blank is written _; a lone ? has another meaning in YAML")
        raise ours from None


def _flat(table: Table) -> Table:
    """The table of a program, without nested tables: their lines go by paths, layers/0/mlp."""
    lines: dict[str, Node] = {}
    for name, node in table.entries.items():
        if name in (CLAIMS, GIVEN) and isinstance(node, Table):
            lines[name] = Table(node.file, node.line, node.key, dict(_paths(node.entries)))
        elif name in HEADING or not isinstance(node, Table):
            lines[name] = node
        else:
            lines |= dict(_paths({name: node}))
    return Table(table.file, table.line, table.key, lines)


def _paths(lines: Mapping[str, Node], before: str = "") -> Iterator[tuple[str, Node]]:
    for name, node in lines.items():
        if isinstance(node, Table) and node.entries:
            yield from _paths(node.entries, f"{before}{name}/")
        else:
            yield before + name, node


def _lone_question_mark(path: Path) -> bool:
    """Whether a lone ? may be the reason why YAML cannot read the file."""
    try:
        with path.open("rb") as file:
            return _QUESTION.search(file.read(tree.LARGEST_FILE)) is not None
    except OSError:
        return False
