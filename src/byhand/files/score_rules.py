"""Score tables by rule: `previous`, `self`, `first`, by offset or by key; masked elsewhere.

An offset is the key's position minus the query's, so -1 is the token before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from byhand.errors import nearest
from byhand.files.literals import Literals
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _, amount, later
from byhand.numbers.base import ABSENT
from byhand.parameters import Parameter
from byhand.weights import Data

RULES = ("previous", "self", "first")
_KEYS = ("offsets", "keys", "else", "fallback")
_RANGE = re.compile(r"(?P<first>[-+]?[0-9]{1,9})?(?P<dots>\.\.)?(?P<last>[-+]?[0-9]{1,9})?")

Scores = dict[int, object]  # by offset, or by key


def ruled(node: Node) -> bool:
    """Whether a score table is written as a rule, or as a list of one rule a head."""
    match node:
        case Scalar(text=text):
            return text in RULES
        case Table(entries=entries):
            return "offsets" in entries or "keys" in entries
        case List(items=items):
            return not all(isinstance(item, List) for item in items)
    return False


def read_rules(node: Node, parameter: Parameter, literals: Literals, causal: bool) -> Data:
    """The table (head, query, key): one rule for all heads, or a list of one for each."""
    heads, context, _context = parameter.shape
    reader = _Reader(context, literals, causal)
    if not isinstance(node, List):
        return np.broadcast_to(reader.head(node), parameter.shape)
    if len(node.items) != heads:
        raise node.wrong(
            _("there is one rule for each head"),
            expected=amount(heads, later("1 rule"), later("{count} rules")),
            found=str(len(node.items)),
        )
    return np.stack([reader.head(item) for item in node.items])


class _Reader:
    def __init__(self, context: int, literals: Literals, causal: bool) -> None:
        self.context = context
        self.literals = literals
        self.causal = causal

    def head(self, node: Node) -> Data:
        """The table (query, key) of one head."""
        match node:
            case List():
                return self.literals.read_square(node, self.context)
            case Scalar(text=text):
                return self.worded(node, text)
            case Table():
                return self.table(node)
        raise self.impossible(node)

    def worded(self, node: Scalar, word: str) -> Data:
        zero = Fraction(0)
        if word == "zeros":
            return np.full((self.context, self.context), zero, dtype=object)
        match word:
            case "previous":
                return self.filled(lambda query, key: zero if key - query == -1 else ABSENT)
            case "self":
                return self.filled(lambda query, key: zero if key == query else ABSENT)
            case "first":
                return self.filled(lambda query, key: zero if key == 0 else ABSENT)
        raise self.impossible(node)

    def table(self, node: Table) -> Data:
        """A rule by offset, by key or by both; a query that it leaves no key has the fallback's."""
        node.only(*_KEYS)
        offsets, keys, other = node.get("offsets"), node.get("keys"), node.get("else")
        if keys is not None and isinstance(offsets, Table):
            raise offsets.wrong(
                _("a rule takes its scores from offsets or from keys"),
                expected="{offsets: -3..-1, keys: {0: 5}}",
            )
        rest = ABSENT if other is None else self.literals.read_entry(other, masked=True)
        last = self.context - 1
        if keys is None:
            by_offset = self.scores(node.needed("offsets", ", ".join(_KEYS)), -last, last)
            data = self.filled(lambda query, key: by_offset.get(key - query, rest))
        else:
            by_key = self.scores(keys, 0, last)
            near = range(-last, last + 1) if offsets is None else self.scores(offsets, -last, last)
            data = self.filled(
                lambda query, key: by_key.get(key, rest) if key - query in near else rest
            )
        fallback = node.get("fallback")
        return data if fallback is None else self.with_fallback(data, self.head(fallback))

    def with_fallback(self, data: Data, other: Data) -> Data:
        """`data`, but a query that it leaves no key to look at has the row of the other."""
        rows = []
        for query in range(self.context):
            seen = data[query, : query + 1] if self.causal else data[query]
            rows.append(other[query] if all(x is ABSENT for x in seen) else data[query])
        return np.stack(rows)

    def filled(self, score: Callable[[int, int], object]) -> Data:
        """A table by a rule; what comes later is masked where attention looks back only."""
        data = np.full((self.context, self.context), ABSENT, dtype=object)
        for query, key in np.ndindex(*data.shape):
            if key <= query or not self.causal:
                data[query, key] = score(query, key)
        return data

    def scores(self, node: Node, least: int, most: int) -> Scores:
        """The scores that a rule names, by offset or key: a table of values, or where it is 0."""
        found: Scores = {}
        for text, at, value in self.named(node):
            for place in self.places(text, at, least, most):
                if place in found:
                    raise at.wrong(
                        _("this score is given twice"),
                        expected=_("each once"),
                        found=str(place),
                    )
                found[place] = value
        return found

    def named(self, node: Node) -> Iterator[tuple[str, Node, object]]:
        if isinstance(node, Table):
            for key, value in node.entries.items():
                yield key, value, self.literals.read_entry(value, masked=True)
            return
        for item in node.items if isinstance(node, List) else (node,):
            if not isinstance(item, Scalar):
                raise item.wrong(_("a number is missing"), expected="-1, 0, -3..-1")
            yield item.text, item, Fraction(0)

    def places(self, text: str, node: Node, least: int, most: int) -> range:
        """One number, or all from one to another: -3..-1, 2.., ..-1"""
        match = _RANGE.fullmatch(text.strip())
        if match and any(match.groups()) and (match["dots"] or not match["last"]):
            first = int(match["first"]) if match["first"] else least
            last = int(match["last"]) if match["last"] else most
            last = last if match["dots"] else first
            if least <= first <= last <= most:
                return range(first, last + 1)
        raise node.wrong(
            _("no query of this context has such a key"),
            expected=_("numbers from {first} to {last}, such as {example}").format(
                first=least, last=most, example="-1, -3..-1, 2.."
            ),
            found=text,
        )

    def impossible(self, node: Node) -> Exception:
        said = node.text if isinstance(node, Scalar) else ""
        return node.wrong(
            _("a score table cannot be written like this"),
            expected=", ".join((*RULES, "zeros", "{offsets: …}", "{keys: …}")),
            hint=nearest(said, RULES) if said else None,
        )
