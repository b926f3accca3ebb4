"""The tree of a property: read from a file or made of Python values, with its files inside.

A property may name files: texts, a table, a function, another model.  Their contents take the place
of their names, so that the tree alone is the whole property, and a certificate can hold it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from byhand.errors import InputError, ModelFileError
from byhand.files import parse_model, scalars
from byhand.files.tree import List, Node, Scalar, Table, read, text_of
from byhand.files.writing import write_model
from byhand.language import _
from byhand.model import Model
from byhand.models import builtin_names
from byhand.options import does_not_fit

KEYS = ("property", "model", "texts", "weights", "embeddings", "claim")


def tree_of(source: Path | str | Mapping[str, Any]) -> tuple[Table, Path | None]:
    """The tree of a property, and the folder of its file."""
    if isinstance(source, Mapping):
        root = node_of(source, "")
        assert isinstance(root, Table)
        folder = None
    elif isinstance(source, str | Path):
        path = Path(source)
        text = text_of(path)
        try:
            root = read(text, str(path))
        except ModelFileError as error:
            if error.expected and error.expected.startswith("name, vocabulary"):
                error.message = _("a property is a table")
                error.expected = ", ".join(KEYS)
            raise
        folder = path.parent
    else:
        raise does_not_fit("property", _("a file, or a table"), source)
    root.only(*KEYS)
    return _whole(root, folder), folder


def plain(node: Node) -> Any:
    """The tree as plain values: tables, lists and texts, as JSON has them."""
    if isinstance(node, Table):
        return {key: plain(inner) for key, inner in node.entries.items()}
    if isinstance(node, List):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.text


def node_of(value: Any, key: str) -> Node:
    """A Python value as a piece of a property; errors name its key."""
    if isinstance(value, Model):
        content = write_model(value)
        return node_of({"file": f"{value.name}.yaml", "content": content}, key)
    if isinstance(value, Mapping):
        before = f"{key}." if key else ""
        entries = {str(k): node_of(v, f"{before}{k}") for k, v in value.items()}
        return Table("", 0, key, entries)
    if isinstance(value, list | tuple | range):
        before = f"{key[:-1]}," if key.endswith("]") else f"{key}["
        items = (node_of(item, f"{before}{place}]") for place, item in enumerate(value))
        return List("", 0, key, tuple(items))
    if isinstance(value, bool):
        return Scalar("", 0, key, "true" if value else "false")
    if isinstance(value, str | int | float | Fraction | PathLike):
        return Scalar("", 0, key, str(value))
    raise Node("", 0, key).wrong(
        _("this has no place in a property"),
        expected=_("texts, numbers, lists and tables"),
        found=repr(value)[:60],
    )


# --------------------------------------------------------------------------- files inside


def _whole(root: Table, folder: Path | None) -> Table:
    """The tree with the contents of all files that it names."""
    entries = dict(root.entries)
    texts = entries.get("texts")
    if isinstance(texts, Table) and isinstance(texts.get("list"), Table):
        entries["texts"] = _put(texts, "list", _lines(texts.entries["list"], folder))
    claim = entries.get("claim")
    if isinstance(claim, List):
        entries["claim"] = replace(claim, items=tuple(_claim(one, folder) for one in claim.items))
    elif claim is not None:
        entries["claim"] = _claim(claim, folder)
    return replace(root, entries=entries)


def _put(table: Table, key: str, node: Node) -> Table:
    return replace(table, entries={**table.entries, key: node})


def _beside(node: Node, folder: Path | None) -> Path:
    """The path of a file that is named here: beside the property's own file."""
    name = scalars.text(node)
    return Path(name) if folder is None else folder / name


def _content(node: Node, folder: Path | None) -> tuple[Path, str]:
    path = _beside(node, folder)
    try:
        return path, text_of(path)
    except InputError as error:
        raise node.wrong(error.message, found=str(path)) from None


def _lines(node: Node, folder: Path | None) -> List:
    """The lines of a file as a list of texts."""
    assert isinstance(node, Table)
    node.only("file")
    file = node.needed("file")
    path, text = _content(file, folder)
    items = [
        Scalar(str(path), number, node.key, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    return List(node.file, node.line, node.key, tuple(items))


def _claim(node: Node, folder: Path | None) -> Node:
    if not isinstance(node, Table):
        return node
    for key in ("next", "continuation"):
        inner = node.get(key)
        if isinstance(inner, Table):
            node = _put(node, key, _answer(inner, folder))
    other = node.get("same as")
    if isinstance(other, Scalar):
        node = _put(node, "same as", _model(other, folder))
    return node


def _answer(node: Table, folder: Path | None) -> Table:
    file, table = node.get("file"), node.get("table")
    if isinstance(file, Scalar) and "content" not in node.entries:
        _path, text = _content(file, folder)
        return _put(node, "content", Scalar(file.file, file.line, file.key, text))
    if isinstance(table, Scalar):
        path, text = _content(table, folder)
        if path.suffix in (".csv", ".tsv"):
            return _put(node, "table", _rows(path, text, table))
        return _put(node, "table", read(text, str(path)))
    return node


def _rows(path: Path, text: str, node: Node) -> Table:
    """A table of two columns: a text, and what follows it."""
    entries: dict[str, Node] = {}
    sign = "\t" if path.suffix == ".tsv" else ","
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=sign), 1):
        if len(row) != 2:
            raise Node(str(path), number, "").wrong(
                _("a line of a table has a text and a token"), found=str(len(row))
            )
        entries[row[0]] = Scalar(str(path), number, "", row[1])
    return Table(node.file, node.line, node.key, entries)


def _model(node: Scalar, folder: Path | None) -> Node:
    """Another model: a built-in name, or a model file with its text; large ones stay a path."""
    name = scalars.text(node)
    if name in builtin_names():
        return node
    path = _beside(node, folder)
    if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
        return replace(node, text=str(path))
    text = text_of(path)
    try:
        parse_model(text, str(path))
    except InputError as error:
        if "safetensors" in text:  # whose weights lie in a file beside it
            return replace(node, text=str(path))
        raise error
    content = Scalar(node.file, node.line, node.key, text)
    return Table(node.file, node.line, node.key, {"file": node, "content": content})
