"""Maps of names: what a dump's own names mean, told in a file or a mapping.

    layer: 1                                   # their first layer is number 1
    names:
      "dec.{L}.att_q": block.{L}.attn.q        # {L} is the number of a layer
      "dec.{L}.kv": {split: ["block.{L}.attn.k", "block.{L}.attn.v"]}
      "dec.{L}.prob": {step: "block.{L}.attn.weights", axes: [query, head, key]}
      "dec.{L}.qk": {step: "block.{L}.attn.scores", times: 1/8}
    skip: ["debug.*"]

An array is sliced, then transposed, then split along its last side, then brought into the axes of
its step.  A map that does not fit itself or the model is an InputError with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from byhand.address import read_address
from byhand.checking.claims import Entry
from byhand.checking.dumps.view import Read, Sides, View, aside, called, columns, fitted, moved
from byhand.errors import AddressError, InputError, ModelFileError, UsageError, nearest
from byhand.files import scalars, tree
from byhand.files.mapped import sides as shown_sides
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.numbers.floats import FORMATS
from byhand.plan import WEIGHT

KEYS = ("step", "split", "axes", "transpose", "slice", "times", "dtype", "layer")
_PLACE = re.compile(r"\{([A-Za-z]\w{0,15})\}")
_RANGE = re.compile(r"\s*(-?\d{1,9})?\s*:\s*(-?\d{1,9})?\s*")
LAYER = "L"
BATCH = "batch"


@dataclass(frozen=True)
class Rule:
    """One line of a map: a pattern of names, the steps, and how the array is turned."""

    node: Node  # where it stands, for messages
    pattern: re.Pattern[str]
    steps: tuple[str, ...]
    axes: Sides | None = None
    transpose: tuple[int, ...] | bool = False
    slices: tuple[slice, ...] = ()
    times: Fraction = Fraction(1)
    dtype: str | None = None
    first: int = 0  # the number that their first layer has

    def read(self, entry: Entry, match: re.Match[str], view: View) -> Read:
        """The claims of an entry whose name fits."""
        filled = [self._filled(step, match) for step in self.steps]
        addresses = [self._known(name, view) for name in filled]
        told: list[str] = []
        found = self._turned(entry, told)
        pieces = [found]
        if len(addresses) > 1:
            widths = [_width(view, address) for address in addresses]
            cut = columns(found, widths)
            if cut is None:
                return [self._misfit(entry, " + ".join(map(str, widths)))]
            pieces = cut
            told.append(_("cut into {count}").format(count=len(cut)))
        read: Read = []
        for piece, address, name in zip(pieces, addresses, filled, strict=True):
            placed = self._placed(piece, address, name, view)
            if placed is None:
                expected = " × ".join("·".join(group) for group in self.axes or ())
                return [self._misfit(entry, expected)]
            told_all = [*told, _("axes as the map has them")] if self.axes else told
            read.append(replace(placed, said=entry.name, read=", ".join(told_all)))
        return read

    def _filled(self, step: str, match: re.Match[str]) -> str:
        def number(place: re.Match[str]) -> str:
            count = int(match[place[1]])
            return str(count - self.first if place[1] == LAYER else count)

        return _PLACE.sub(number, step)

    def _known(self, name: str, view: View) -> str:
        address = name.partition("[")[0]
        if view.has(address) or address.startswith(WEIGHT):
            return address
        raise _as_input(self.node.wrong(
            _("the model has no step {name}").format(name=repr(address)),
            expected=_("an address of byhand's"),
            found=address,
            hint=nearest(address, view.plan.known),
        ))  # fmt: skip

    def _turned(self, entry: Entry, told: list[str]) -> Entry:
        if self.slices:
            entry = moved(entry, lambda array: array[self.slices[: array.ndim]])
            told.append(_("sliced"))
        if self.transpose is not False:
            order = None if self.transpose is True else self.transpose
            if order is not None and len(order) != entry.values.ndim:
                raise _as_input(self.node.wrong(
                    _("the order of the sides does not fit the array"),
                    expected=str(entry.values.ndim), found=str(len(order)),
                ))  # fmt: skip
            entry = moved(entry, lambda array: array.transpose(order))
            told.append(_("transposed"))
        if self.times != 1:
            by = float(self.times)
            slack = np.asarray(entry.slack) * abs(by)
            values = entry.values.astype(np.float64) * by
            entry = replace(entry, values=values, slack=slack if slack.shape else slack.item())
            told.append(_("times {number}").format(number=self.times))
        return entry if self.dtype is None else replace(entry, format=self.dtype)

    def _placed(self, entry: Entry, address: str, name: str, view: View) -> Entry | None:
        if self.axes is None or not view.has(address):
            return called(entry, name, style="huggingface" if len(self.steps) > 1 else "")
        groups = tuple(group for group in self.axes if group != (BATCH,))
        flat = sorted(axis for group in groups for axis in group)
        step = view.plan[address]
        if flat != sorted(step.axes):
            raise _as_input(self.node.wrong(
                _("the axes are not those of {name}").format(name=address),
                expected=", ".join(step.axes), found=", ".join(flat),
            ))  # fmt: skip
        return fitted(entry, address, groups, view)

    def _misfit(self, entry: Entry, expected: str) -> Any:
        reason = _("another shape: {expected} expected, {found} found").format(
            expected=expected, found=shown_sides(entry.values.shape)
        )
        return replace(aside(entry, reason), misfit=True)


def _width(view: View, address: str) -> int:
    step = view.plan[address]
    length = next((n for axis, n in zip(step.axes, step.shape, strict=True) if axis == "pos"), 1)
    return prod(step.shape) // length


@dataclass(frozen=True)
class NameMap:
    """The lines of a map, in order, and the names that are skipped."""

    rules: tuple[Rule, ...]
    skip: tuple[str, ...] = ()

    def read(self, entry: Entry, view: View) -> Read | None:
        """What the map makes of an entry; None where it says nothing about the name."""
        for rule in self.rules:
            if match := rule.pattern.fullmatch(entry.name):
                return rule.read(entry, match, view)
        if any(fnmatchcase(entry.name, pattern) for pattern in self.skip):
            return []
        return None


# ------------------------------------------------------------------ reading a map


def read_name_map(source: str | Path | Mapping[str, Any]) -> NameMap:
    """The map of a YAML or JSON file, or of a mapping; an InputError says what is wrong in it."""
    try:
        if isinstance(source, Mapping):
            table = _table("", "", source)
        elif isinstance(source, (str, Path)):
            table = tree.load(Path(source))
        else:
            raise UsageError(
                _("this is not a map of names"),
                expected=_("a file, or a mapping from names to addresses"),
                found=type(source).__name__,
            )
        return _map(table)
    except ModelFileError as error:
        raise _as_input(error) from None


def _as_input(error: ModelFileError) -> InputError:
    message = error.message
    if message == _("a model file is a table"):
        message = _("a map of names is a table")
    where = (error.where or "").replace(":0: ", ": ", 1)
    return InputError(
        message, where=where, expected=error.expected, found=error.found, hint=error.hint
    )


def _table(file: str, key: str, given: Any, depth: int = 0) -> Any:
    """A Python mapping as the tree of a file."""
    if depth > tree.DEEPEST_TREE:
        raise ModelFileError(_("nested more than {count} deep").format(count=tree.DEEPEST_TREE))
    if isinstance(given, Mapping):
        inner = {str(k): _table(file, str(k), v, depth + 1) for k, v in given.items()}
        return Table(file, 0, key, inner)
    if isinstance(given, (list, tuple)):
        items = tuple(_table(file, key, each, depth + 1) for each in given)
        return List(file, 0, key, items)
    text = str(given).lower() if isinstance(given, bool) else str(given)
    return Scalar(file, 0, key, text)


def _map(table: Table) -> NameMap:
    names = table.get("names")
    first = 0
    skip: tuple[str, ...] = ()
    if names is None:
        names = table
    else:
        table.only("names", "layer", "skip", "about")
        if (node := table.get("layer")) is not None:
            first = scalars.whole(node)
        skip = tuple(_texts(node) if (node := table.get("skip")) is not None else ())
    if not isinstance(names, Table) or not names.entries:
        raise names.wrong(
            _("a map of names says what each name means"),
            expected=_("names with addresses, such as {example}").format(
                example='"layer.{L}.q": block.{L}.attn.q'
            ),
        )
    return NameMap(
        tuple(_rule(theirs, node, first) for theirs, node in names.entries.items()), skip
    )


def _texts(node: Node) -> Iterator[str]:
    for item in node.items if isinstance(node, List) else (node,):
        yield scalars.text(item)


def _rule(theirs: str, node: Node, first: int) -> Rule:
    pattern, places = _pattern(theirs, node)
    if isinstance(node, Scalar):
        return Rule(node, pattern, (_step(node, places),), first=first)
    if not isinstance(node, Table):
        raise node.wrong(
            _("a name stands for an address"), expected=_("an address, or a table with step")
        )
    node.only(*KEYS)
    given = [key for key in ("step", "split") if node.get(key) is not None]
    if len(given) != 1:
        raise node.wrong(
            _("a name stands for one step, or is split into several"),
            expected="step, split", found=", ".join(given) or _("neither"),
        )  # fmt: skip
    steps = node.entries[given[0]]
    items = steps.items if isinstance(steps, List) else (steps,)
    if given[0] == "split" and len(items) < 2:
        raise steps.wrong(_("a split has at least two steps"), expected=_("two addresses or more"))
    if given[0] == "step" and len(items) != 1:
        raise steps.wrong(_("a name stands for one step"), expected=_("one address"),
                          hint=_("several stand under split"))  # fmt: skip
    layer, times = node.get("layer"), node.get("times")
    return Rule(
        node,
        pattern,
        tuple(_step(item, places) for item in items),
        axes=_axes(node.get("axes")),
        transpose=_order(node.get("transpose")),
        slices=tuple(_slices(node.get("slice"))),
        times=Fraction(1) if times is None else scalars.number(times),
        dtype=None if node.get("dtype") is None else scalars.word(node.entries["dtype"], *FORMATS),
        first=first if layer is None else scalars.whole(layer),
    )


def _pattern(theirs: str, node: Node) -> tuple[re.Pattern[str], set[str]]:
    places: set[str] = set()
    parts, end = [], 0
    for match in _PLACE.finditer(theirs):
        parts.append(re.escape(theirs[end : match.start()]))
        name, end = match[1], match.end()
        parts.append(f"(?P={name})" if name in places else rf"(?P<{name}>\d{{1,6}})")
        places.add(name)
    parts.append(re.escape(theirs[end:]))
    if "{" in _PLACE.sub("", theirs):
        raise node.wrong(_("a brace is open in this name"), expected="{L}", found=theirs)
    return re.compile("".join(parts)), places


def _step(node: Node, places: set[str]) -> str:
    text = scalars.text(node)
    for match in _PLACE.finditer(text):
        if match[1] not in places:
            raise node.wrong(
                _("{place} is not in their name").format(place=match[0]),
                expected=", ".join(f"{{{place}}}" for place in sorted(places))
                or _("no number in braces"),
                found=text,
            )
    try:
        read_address(_PLACE.sub("0", text))
    except AddressError as error:
        raise node.wrong(error.message, expected=error.expected, found=text) from None
    return text


def _axes(node: Node | None) -> Sides | None:
    if node is None:
        return None
    return tuple(tuple(re.split(r"[·*]", text)) for text in _texts(node))


def _order(node: Node | None) -> tuple[int, ...] | bool:
    if node is None:
        return False
    if isinstance(node, Scalar):
        return scalars.truth(node)
    order = tuple(scalars.whole(item, most=31) for item in getattr(node, "items", ()))
    if sorted(order) != list(range(len(order))) or not order:
        raise node.wrong(
            _("this is no order of the sides"), expected=_("each number from 0 once: [1, 0, 2]")
        )
    return order


def _slices(node: Node | None) -> Iterator[slice]:
    for text in _texts(node) if node is not None else ():
        match = _RANGE.fullmatch(text)
        if match is None:
            assert node is not None
            raise node.wrong(_("this is not a slice"), expected='[":", "0:4"]', found=text)
        yield slice(*(None if end is None else int(end) for end in match.groups()))
