"""The text of a model file as a tree in which every scalar is still text.

YAML and JSON (which is YAML) become tables, lists and scalars that know their file, line and dotted
key.  Nothing is converted: `on` is the word on, `0.30` has two decimals.  Anything that model files
do not need is refused here: duplicate keys, anchors and aliases, tags, several documents, and trees
that are too large or too deep.  `architecture` and `tensors` interpret the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy.typing as npt
import yaml

from byhand.errors import InputError, ModelFileError, nearest
from byhand.language import _

LARGEST_FILE = 8 * 2**20  # bytes; larger weights belong in a safetensors file
DEEPEST_TREE = 20
THIS: Any = object()  # default of `found`: the node itself is described

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same grammar, ten times faster


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of a model file, with its place."""

    file: str
    line: int  # from 1
    key: str  # dotted, with list indices in brackets: weights.head[2,0]

    @property
    def where(self) -> str:
        """The place as errors show it: tiny.yaml:12: model.norm.eps; without a file, the key."""
        if not self.file:
            return self.key
        return f"{self.file}:{self.line}: {self.key}" if self.key else f"{self.file}:{self.line}"

    def wrong(
        self,
        message: str,
        *,
        expected: str | None = None,
        found: str | None = THIS,
        hint: str | None = None,
    ) -> ModelFileError:
        """The error for a mistake here; `found` is this node by default."""
        found = describe(self) if found is THIS else found
        return ModelFileError(message, where=self.where, expected=expected, found=found, hint=hint)

    def refused(self, error: InputError) -> ModelFileError:
        """An error raised by code that knows no files, with this place added."""
        return self.wrong(
            error.message, expected=error.expected, found=error.found, hint=error.hint
        )

    def impossible(self, expected: str, hint: str | None = None) -> ModelFileError:
        """The error for something that is not allowed here."""
        message = _("{found} is not possible here").format(found=describe(self))
        return self.wrong(message, expected=expected, hint=hint)


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """One piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class List(Node):
    """Nodes in order."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Array(Node):
    """Floats given as an array from Python; files cannot hold them."""

    data: npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Table(Node):
    """Nodes by key."""

    entries: dict[str, Node]

    def get(self, key: str) -> Node | None:
        """The node under this key, if it is given."""
        return self.entries.get(key)

    def needed(self, key: str, expected: str = "", found: str | None = THIS) -> Node:
        """The node under this key, which must be given."""
        if key not in self.entries:
            message = _("the key {key} is missing").format(key=repr(key))
            raise self.wrong(message, expected=expected or f"{self.key}.{key}", found=found)
        return self.entries[key]

    def keys(self) -> str:
        """The keys that are given, for messages."""
        return ", ".join(self.entries) or _("nothing")

    def only(self, *known: str) -> None:
        """Refuses any other key than these."""
        for key, node in self.entries.items():
            if key not in known:
                raise node.wrong(
                    _("there is no key {key} here").format(key=repr(key)),
                    expected=", ".join(known),
                    found=key,
                    hint=nearest(key, known),
                )

    def over(self, base: Table) -> Table:
        """The base's entries, replaced by this table's entries of the same key."""
        return Table(self.file, self.line, self.key, {**base.entries, **self.entries})

    def has(self, dotted: str) -> bool:
        """Whether there is a node at this dotted key."""
        first, _dot, rest = dotted.partition(".")
        inner = self.entries.get(first)
        if not rest or inner is None:
            return inner is not None
        return isinstance(inner, Table) and inner.has(rest)

    def at(self, dotted: str) -> Node:
        """The node at a dotted key, or the last node on the way to it."""
        node: Node = self
        for key in dotted.split("."):
            if not isinstance(node, Table) or key not in node.entries:
                break
            node = node.entries[key]
        return node


def describe(node: Node) -> str:
    """A description of the node, for messages."""
    match node:
        case Scalar(text=""):
            return _("nothing")
        case Scalar(text=text):
            return text if len(text) <= 60 else text[:57] + "…"
        case List(items=items):
            return _("a list of {count}").format(count=len(items))
        case Array(data=data):
            return "×".join(map(str, data.shape))
        case Table(entries=entries):
            return _("a table with the keys {keys}").format(keys=", ".join(list(entries)[:8]))
    return _("something else")


def load(path: Path) -> Table:
    """The tree of a file."""
    return read(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a file, which must not be too large."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except IsADirectoryError:
        raise ModelFileError(_("this is a folder, not a model file"), where=str(path)) from None
    except OSError as error:
        raise ModelFileError(
            _("the file cannot be read: {reason}").format(reason=error.strerror), where=str(path)
        ) from None
    _within_bounds(raw, str(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ModelFileError(
            _("the file is not UTF-8 text"),
            where=f"{path}:{line}",
            found=f"0x{raw[error.start]:02x}",
        ) from None


def _within_bounds(text: str | bytes, file: str) -> None:
    if len(text) > LARGEST_FILE:
        raise ModelFileError(
            _("the file is too large"),
            where=file,
            expected=_("at most {count} bytes").format(count=f"{LARGEST_FILE:,}"),
            hint=_("large weights belong in a safetensors file: weights: {file: …}"),
        )


def read(text: str, file: str) -> Table:
    """The tree of a model file's text."""
    _within_bounds(text, file)
    try:
        tree = _Builder(text, file).document()
    except yaml.MarkedYAMLError as error:
        _explain(error, text, file)
    except yaml.YAMLError as error:  # a character that YAML does not allow
        first = str(error).partition("\n")[0]
        raise ModelFileError(
            _("this is not YAML: {problem}").format(problem=first), where=file
        ) from None
    if not isinstance(tree, Table):
        raise tree.wrong(_("a model file is a table"), expected="name, vocabulary, model, weights")
    return tree


def _explain(error: yaml.MarkedYAMLError, text: str, file: str) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    found = lines[line - 1] if line <= len(lines) else ""
    at = mark.column if mark else 0
    hint = None
    if found[at : at + 1] == "@":
        hint = _('a reference is written in quotes: "@block.0.attn.q"')
    elif found[at : at + 1] == "\t":
        hint = _("indent with spaces, not with tabs")
    raise ModelFileError(
        _("this is not YAML: {problem}").format(problem=error.problem or error.context),
        where=f"{file}:{line}",
        found=found.strip()[:60] or _("the end"),
        hint=hint,
    ) from None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Builder:
    """Builds nodes from parse events; aliases are never followed."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)

    def document(self) -> Node:
        event = self.next()
        if isinstance(event, yaml.StreamEndEvent):
            raise ModelFileError(_("the file is empty"), where=self.file)
        tree = self.node(self.next(), "", 1)
        end = self.next(), self.next()
        if not isinstance(end[1], yaml.StreamEndEvent):
            raise self.refuse(end[1], "", _("a model file is one document"), "---")
        return tree

    def next(self) -> yaml.Event:
        event = next(self.events)
        return next(self.events) if isinstance(event, yaml.StreamStartEvent) else event

    def refuse(self, event: yaml.Event, key: str, message: str, found: str) -> ModelFileError:
        return Node(self.file, _line(event), key).wrong(message, found=found)

    def node(self, event: yaml.Event, key: str, depth: int, line: int | None = None) -> Node:
        """The node that begins with this event; `line` is its key's, where it has one."""
        if isinstance(event, yaml.AliasEvent):
            raise self.refuse(event, key, _("a model file has no aliases"), f"*{event.anchor}")
        assert isinstance(event, yaml.NodeEvent)
        if event.anchor is not None:
            raise self.refuse(event, key, _("a model file has no anchors"), f"&{event.anchor}")
        if (tag := getattr(event, "tag", None)) is not None:
            raise self.refuse(event, key, _("a model file has no tags"), str(tag))
        if depth > DEEPEST_TREE:
            message = _("nested more than {count} deep").format(count=DEEPEST_TREE)
            raise self.refuse(event, key, message, _("deeper"))
        own = _line(event)
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(self.file, own if event.value else line or own, key, event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            items = tuple(self.items(key, depth))
            return List(self.file, line or own, key, items)
        return Table(self.file, line or own, key, self.entries(key, depth))

    def items(self, key: str, depth: int) -> Iterator[Node]:
        before = f"{key[:-1]}," if key.endswith("]") else f"{key}["
        position = 0
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            yield self.node(event, f"{before}{position}]", depth + 1)
            position += 1

    def entries(self, key: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self.refuse(event, key, _("a key is one word"), _("a list or a table"))
            name = self.node(event, key, depth + 1)
            assert isinstance(name, Scalar)
            inner = f"{key}.{name.text}" if key else name.text
            if name.text == "<<":
                raise self.refuse(event, key, _("a model file has no merge keys"), "<<")
            if name.text in entries:
                first = entries[name.text].line
                raise Node(self.file, name.line, inner).wrong(
                    _("this key is given twice"),
                    expected=_("each key once"),
                    found=_("{key} on line {line} and again here").format(
                        key=name.text, line=first
                    ),
                )
            entries[name.text] = self.node(self.next(), inner, depth + 1, name.line)
        return entries
