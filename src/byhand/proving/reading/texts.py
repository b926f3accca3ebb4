"""The texts of a property, read into shapes: from patterns, lists, or all texts of some length.

Each shape comes with its `Scope`, the names that functions may use for its texts.
docs/property-files.md explains the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from byhand.errors import InputError, TextError
from byhand.files import scalars
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.model import Model
from byhand.proving.domain import Place, Shape, Variable, Whole
from byhand.proving.reading.patterns import read_pattern, set_of_words
from byhand.proving.reading.scopes import TEXT, Scope, Several, Spelling, Word
from byhand.proving.reading.sequences import OneOf, Sequence, any_of
from byhand.proving.reading.shapes import Shapes, numbers_of
from byhand.proving.reading.variables import Variables, checked, read_conditions, read_where
from byhand.tokens import Tokenizer, too_long

KEYS = ("pattern", "list", "up to", "length", "of", "where", "conditions", "groups", "spelling")
KINDS = KEYS[:4]
LINE = "line"  # the variable of a list: which of its texts


@dataclass(frozen=True)
class Setting:
    """What the texts of a property are read for: a model's tokens and how long texts may be."""

    tokens: Tokenizer
    outputs: Tokenizer
    context: int | None

    @classmethod
    def of(cls, model: Model) -> Setting:
        """The setting of a model."""
        return cls(model.vocabulary, model.outputs, model.spec.context)


def read_texts(node: Node, setting: Setting) -> tuple[Scope, ...]:
    """The shapes of all texts, each with the names of its variables."""
    if isinstance(node, Scalar):
        node = Table(node.file, node.line, node.key, {"pattern": node})
    elif isinstance(node, List):
        node = Table(node.file, node.line, node.key, {"list": node})
    if not isinstance(node, Table):
        raise node.impossible(", ".join(KINDS))
    node.only(*KEYS)
    given = [key for key in KINDS if key in node.entries]
    if len(given) != 1:
        raise node.wrong(
            _("the texts are given in one way"), expected=_("one of {names}").format(
                names=", ".join(KINDS)), found=node.keys(),
        )  # fmt: skip
    spelling = Spelling(setting.tokens, _spelling(node.get("spelling")))
    answers = spelling
    if setting.outputs is not setting.tokens:
        answers = Spelling(setting.outputs, spelling.said)
    if given[0] == "list":
        _refuse(node, "list", "where", "conditions", "groups", "of")
        return _listed(texts_in(node.entries["list"]), spelling, answers, setting)
    groups = _groups(node.get("groups"), setting.tokens)
    sequences = _sequences(node, given[0], setting, groups)
    variables = Variables()
    read_where(node.get("where"), _Sets(setting.tokens, groups, spelling).read, variables)
    named = _named(sequences, variables, node)
    read_conditions(node.get("conditions"), _with_places(variables, named))
    shapes = Shapes(variables, spelling, answers, node)
    scopes = tuple(map(shapes.scope, sequences))
    shapes.all_used()
    return scopes


def _refuse(node: Table, kind: str, *keys: str) -> None:
    for key in keys:
        if key in node.entries:
            message = _("{key} has no meaning for {kind}").format(key=repr(key), kind=repr(kind))
            raise node.entries[key].wrong(message, found=key)


def _sequences(
    node: Table, kind: str, setting: Setting, groups: Mapping[str, tuple[int, ...]]
) -> tuple[Sequence, ...]:
    """All sequences of places."""
    written = node.entries[kind]
    if kind == "pattern":
        _refuse(node, kind, "of")
        found: list[Sequence] = []
        for item in written.items if isinstance(written, List) else (written,):
            try:
                found += read_pattern(scalars.text(item), setting.tokens, groups)
            except InputError as error:
                raise item.refused(error) if error.where is None else error from None
    else:
        _refuse(node, kind, "where", "conditions")
        most = scalars.whole(written, 1, 10_000)
        every = tuple(range(len(setting.tokens)))
        of = node.get("of")
        ids = every if of is None else read_tokens(of, setting.tokens, groups)
        found = list(any_of(ids, 1 if kind == "up to" else most, most))
    for sequence in found:
        if long := too_long(len(sequence), setting.context):
            raise written.refused(long)
    return tuple(dict.fromkeys(found))


# --------------------------------------------------------------------------- tokens and numbers


def read_tokens(
    node: Node, tokens: Tokenizer, groups: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """The ids of a list of tokens and ranges, of a set such as [A B C], or of a group."""
    try:
        if isinstance(node, Scalar):
            if node.text in groups:
                return groups[node.text]
            written = node.text if node.text.startswith("[") else f"[{node.text}]"
            ((place,),) = read_pattern(written, tokens, groups)
            assert isinstance(place, OneOf)
            return place.ids
        if isinstance(node, List) and node.items:
            ids: list[int] = []
            for item in node.items:
                word = scalars.text(item)
                ids += groups[word] if word in groups else set_of_words(word, tokens)
            return tuple(dict.fromkeys(ids))
    except TextError as error:
        raise node.refused(error) from None
    raise node.impossible("[A, B, C]")


def _groups(node: Node | None, tokens: Tokenizer) -> dict[str, tuple[int, ...]]:
    groups: dict[str, tuple[int, ...]] = {}
    if node is None:
        return groups
    if not isinstance(node, Table):
        raise node.impossible('digit: ["0", "1", "2"]')
    for name, inner in node.entries.items():
        groups[name] = read_tokens(inner, tokens, groups)
    return groups


def _spelling(node: Node | None) -> dict[int, str]:
    """Number → word, from a table or from a list that begins with the word for 0."""
    if node is None:
        return {}
    if isinstance(node, List):
        items = dict(enumerate(node.items))
    elif isinstance(node, Table):
        items = {_whole(key, item): item for key, item in node.entries.items()}
    else:
        raise node.impossible("{0: zero, 1: one}")
    said: dict[int, str] = {}
    for number, item in items.items():
        word = scalars.text(item)
        decimals = word.isascii() and word.removeprefix("-").isdecimal() and len(word) < 19
        other = int(word) if decimals else number
        if word in said.values() or (other != number and other not in items):
            raise item.wrong(_("two numbers cannot be written alike"), found=word)
        said[number] = word
    return said


def _whole(key: str, node: Node) -> int:
    if not key.removeprefix("-").isdecimal() or len(key) > 15:
        raise node.wrong(_("a spelling is given for whole numbers"), found=key)
    return int(key)


class _Sets:
    """Reads the values of variables that are tokens."""

    def __init__(
        self, tokens: Tokenizer, groups: Mapping[str, tuple[int, ...]], spelling: Spelling
    ) -> None:
        self.tokens = tokens
        self.groups = groups
        self.spelling = spelling

    def read(self, node: Node) -> tuple[tuple[int, ...], bool] | None:
        """The values, and whether they are token ids; None where it must be a relation."""
        if isinstance(node, Scalar):
            text = node.text.strip()
            if text not in self.groups and not text.startswith("["):
                return None
        ids = read_tokens(node, self.tokens, self.groups)
        numbers = numbers_of(ids, self.spelling)
        return (ids_ascending(ids), True) if numbers is None else (tuple(sorted(numbers)), False)


def ids_ascending(ids: Iterable[int]) -> tuple[int, ...]:
    """Token ids as the values of a variable."""
    return tuple(sorted(ids))


# --------------------------------------------------------------------------- lists of texts


def texts_in(node: Node) -> list[Scalar]:
    """The texts of a list."""
    if not isinstance(node, List) or not node.items:
        raise node.impossible(_("a list of texts"))
    found: list[Scalar] = []
    for item in node.items:
        if not isinstance(item, Scalar):
            raise item.impossible(_("a text"))
        found.append(item)
    return found


def _listed(
    texts: list[Scalar], spelling: Spelling, answers: Spelling, setting: Setting
) -> tuple[Scope, ...]:
    """One shape for each length; which text it is, is the value of one variable."""
    rows: dict[tuple[int, ...], None] = {}
    for node in texts:
        try:
            ids = setting.tokens.encode(node.text)
            if error := too_long(len(ids), setting.context):
                raise error
        except TextError as error:
            raise node.refused(error) from None
        rows[ids] = None
    return tuple(
        _listed_scope([row for row in rows if len(row) == length], spelling, answers)
        for length in sorted({len(row) for row in rows})
    )


def _listed_scope(rows: list[tuple[int, ...]], spelling: Spelling, answers: Spelling) -> Scope:
    words = spelling.tokens.tokens
    line = Whole(0, ((LINE, 1),)) if len(rows) > 1 else Whole(0)
    columns = [dict(enumerate(column)) for column in zip(*rows, strict=True)]
    places = tuple(
        Place(line, column) if len(set(column.values())) > 1 else Place.of_token(column[0])
        for column in columns
    )
    meanings = tuple(
        Word(line, {number: words[id] for number, id in column.items()}) for column in columns
    )
    variables = (Variable(LINE, tuple(range(len(rows)))),) if len(rows) > 1 else ()
    shape = Shape(places, variables)
    return Scope(shape, {TEXT: Several(meanings)}, spelling, answers, meanings, meanings)


# --------------------------------------------------------------------------- shapes of patterns


def _named(sequences: Iterable[Sequence], variables: Variables, node: Table) -> dict[str, bool]:
    """The names of places in the pattern, and whether each is a list."""
    found: dict[str, bool] = {}
    for sequence in sequences:
        for item in sequence:
            if isinstance(item, OneOf) and item.name and item.name not in found:
                if item.name in variables.names:
                    message = _("the name {name} is given twice").format(name=repr(item.name))
                    raise node.wrong(message, found=item.name)
                found[checked(item.name, node)] = item.member is not None
            if isinstance(item, OneOf) and item.name:
                found[item.name] = found[item.name] or item.member is not None
    return found


def _with_places(variables: Variables, named: Mapping[str, bool]) -> Variables:
    """The variables for conditions, in which named places count too."""
    return _Lenient(
        variables.values, variables.words, variables.relations, variables.conditions, dict(named)
    )


@dataclass
class _Lenient(Variables):
    """Variables, and the named places of a pattern, which differ from shape to shape."""

    named: dict[str, bool] | None = None

    def form(self, name: str) -> Whole | None:
        stem = name.partition("[")[0]
        if self.named and stem in self.named:
            return Whole(0, ((name, 1),))
        return super().form(name)
