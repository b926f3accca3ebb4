"""Answers that claims ask for: tokens, expressions, tables, files and built-in functions.

What a property writes becomes a function of the variables (`raw`), whose values are numbers and
words.  `Tokens` turns these into token ids.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from byhand.errors import InputError, TextError
from byhand.files import scalars
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.proving.claims import Function
from byhand.proving.domain import Reckoned
from byhand.proving.reading import built_in
from byhand.proving.reading.scopes import TEXT, Scope, Spelling
from byhand.proving.reading.words import Words
from byhand.tokens import Tokenizer

FORMS = ("table", "file", "expression", "token", *built_in.NAMES)


class Tokens:
    """Turns the values of functions into token ids."""

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling
        self._known: dict[tuple[type, Any], int] = {}

    def one(self, value: Any) -> int:
        """The id of one token: a number is spelled, a word is a token."""
        kind = type(value)
        if kind is int or kind is str:
            key = (kind, value)
            if key not in self._known:
                self._known[key] = self._id(value)
            return self._known[key]
        if isinstance(value, Reckoned | Words):
            raise value.varies()
        raise self.wrong(value)

    def any(self, value: Any) -> tuple[int, ...]:
        """The ids of one token, or of all tokens of a list or a set."""
        if isinstance(value, list | tuple | set | frozenset):
            if not value:
                raise self.wrong(value)
            return tuple(sorted({self.one(each) for each in value}))
        return (self.one(value),)

    def each(self, value: Any) -> list[Any]:
        """The tokens of a continuation, one after the other, as numbers and words."""
        if isinstance(value, list | tuple):
            return [part for item in value for part in self.each(item)]
        if isinstance(value, str) and self.spelling.id(value) is None:
            ids = self.spelling.tokens.encode(value)
            return [self.spelling.tokens.tokens[id] for id in ids]
        return [value]

    def _id(self, value: int | str) -> int:
        word = self.spelling.word(value) if isinstance(value, int) else value
        id = self.spelling.id(word)
        if id is None:
            raise self.wrong(value)
        return id

    def wrong(self, value: Any) -> InputError:
        """The error for a value that is no token."""
        hint = None
        if isinstance(value, bool):
            hint = _("say which token is meant: 'yes' if a > b else 'no'")
        return InputError(
            _("the function gives something that is no token"),
            expected=self.spelling.tokens.sample(),
            found=repr(value)[:60],
            hint=hint,
        )


def raw(node: Node, scope: Scope, *, several: bool) -> Function:
    """The function that a node gives for the texts of a scope; `several`: of a continuation."""
    try:
        if isinstance(node, List):
            return _listed(node, scope, several)
        if isinstance(node, Table):
            return _formed(node, scope, several)
        return _written(node, scope, several)
    except InputError as error:
        raise _located(error, node) from None


def _located(error: InputError, node: Node) -> InputError:
    """The error with its place: this node, or the line of a program."""
    where = error.where or ""
    if where.startswith(":"):  # a line of a program
        named = node.get("file") if isinstance(node, Table) else None
        if named is None:
            return node.refused(error)
        error.where = scalars.text(named) + where
        return error
    return error if where else node.refused(error)


def _listed(node: List, scope: Scope, several: bool) -> Function:
    """A list: one of these tokens, or for a continuation each in its turn."""
    if not node.items:
        raise node.wrong(_("a list of tokens is empty"), expected=scope.answers.tokens.sample())
    if not several:
        tokens = Tokens(scope.answers)
        words: list[str] = []
        for item in node.items:
            word = scalars.text(item)
            try:
                tokens.one(word)
            except InputError:
                scope.answers.tokens.id(word)  # raises, with the nearest
            words.append(word)
        return Function(lambda _values: list(words), f"[{', '.join(words)}]")
    parts = [raw(item, scope, several=False) for item in node.items]

    def collected(values: Mapping[str, Any]) -> list[Any]:
        return [part.call(values) for part in parts]

    return Function(collected, f"[{', '.join(part.source for part in parts)}]")


def _written(node: Node, scope: Scope, several: bool) -> Function:
    """A word: a token, a text, the name of a built-in function, or an expression."""
    if not isinstance(node, Scalar) or not node.text:
        raise node.impossible(scope.answers.tokens.sample())
    text = node.text
    tokens = _spelled(text, scope.answers.tokens, several)
    names = _names(text)
    if tokens is not None:
        if text in built_in.NAMES or names.intersection(scope.names):
            raise node.wrong(
                _("{text} may be a token or an expression").format(text=repr(text)),
                expected=f"{{token: {text}}}, {{expression: {text}}}",
            )
        return Function(lambda _values: list(tokens) if several else tokens[0], text)
    if text in built_in.NAMES:
        return _function(text, node, scope, several)
    try:
        return scope.function(text)
    except InputError as error:
        if text.isidentifier():
            hint = error.hint
            try:
                scope.answers.tokens.id(text)
            except TextError as unknown:
                hint = unknown.hint or hint
            raise node.wrong(
                _("{text} is neither a token nor a variable").format(text=repr(text)),
                expected=scope.answers.tokens.sample(),
                hint=hint,
            ) from None
        raise


def _names(text: str) -> set[str]:
    """The names in a text, if it is an expression."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _spelled(text: str, tokenizer: Tokenizer, several: bool) -> list[str] | None:
    """The tokens of a text, one unless several are asked for; None where it is no text."""
    try:
        if not several:
            return [tokenizer.tokens[tokenizer.id(text)]]
        return [tokenizer.tokens[id] for id in tokenizer.encode(text)]
    except TextError:
        return None


def _formed(node: Table, scope: Scope, several: bool) -> Function:
    """A table with one key that says what is meant."""
    given = [key for key in FORMS if key in node.entries]
    if len(given) != 1:
        raise node.impossible(", ".join(FORMS))
    (key,) = given
    inner = node.entries[key]
    if key == "file":
        node.only("file", "content")
        content = node.needed("content")
        assert isinstance(content, Scalar)
        return scope.program(content.text, scalars.text(inner))
    node.only(key)
    if key == "table":
        return _tabled(inner, scope, several)
    if key == "expression":
        return scope.function(scalars.text(inner))
    if key == "token":
        word = inner.text if isinstance(inner, Scalar) else scalars.text(inner)
        found = _spelled(word, scope.answers.tokens, several)
        if found is None:
            scope.answers.tokens.encode(word) if several else scope.answers.tokens.id(word)
        assert found is not None
        return Function(lambda _values: list(found) if several else found[0], word)
    return _function(key, inner, scope, several)


def _function(name: str, node: Node, scope: Scope, several: bool) -> Function:
    if not several and built_in.gives_several(name, node):
        raise node.wrong(
            _("{name} gives several tokens").format(name=name),
            expected=f"continuation: {name}",
            found=name,
        )
    return built_in.built_in(name, node, scope)


# --------------------------------------------------------------------------- tables


def _tabled(node: Node, scope: Scope, several: bool) -> Function:
    """A table from texts to tokens; `several`: to the texts that follow."""
    if not isinstance(node, Table) or not node.entries:
        raise node.impossible(_("a table from texts to tokens"))
    tokenizer, outputs = scope.spelling.tokens, scope.answers.tokens
    known: dict[tuple[str, ...], Any] = {}
    for text, answer in node.entries.items():
        try:
            key = tuple(tokenizer.tokens[id] for id in tokenizer.encode(text))
            known[key] = _answer(answer, outputs, several)
        except TextError as error:
            raise answer.refused(error) from None

    def looked_up(text: list[Any]) -> Any:
        key = tuple(text)
        for word in key:
            if isinstance(word, Words):
                raise word.varies()
        if key not in known:
            shown = tokenizer.decode([tokenizer.id(word) for word in key])
            raise node.wrong(_("the table has no line for a text"), found=shown)
        return known[key]

    return scope.calling(looked_up, (TEXT,), _("a table"))


def _answer(node: Node, outputs: Tokenizer, several: bool) -> Any:
    if isinstance(node, List) and not several:
        return [outputs.tokens[outputs.id(scalars.text(item))] for item in node.items]
    if not isinstance(node, Scalar):
        raise node.impossible(outputs.sample())
    if several:
        return [outputs.tokens[id] for id in outputs.encode(node.text)]
    return outputs.tokens[outputs.id(node.text)]
