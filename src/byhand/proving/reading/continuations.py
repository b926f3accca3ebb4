"""Continuations: the tokens that must follow, each as a function and as a place of longer texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byhand.files.tree import Node
from byhand.language import _, amount, later
from byhand.proving.claims import Function
from byhand.proving.domain import Computed, Place, Reckoned, Region, Values, Varies
from byhand.proving.reading.answers import Tokens
from byhand.proving.reading.scopes import Scope, Spelling
from byhand.proving.reading.wholes import ranges_of
from byhand.proving.reading.words import Words


class EachToken:
    """The tokens of a continuation, each as a function and as a place."""

    def __init__(self, made: Function, tokens: Tokens, length: int, node: Node) -> None:
        self.made = made
        self.tokens = tokens
        self.length = length
        self.node = node

    def value(self, place: int, values: Mapping[str, Any]) -> Any:
        """The number or word at one place of the continuation."""
        found = self.tokens.each(self.made.call(values))
        if len(found) != self.length:
            raise self.node.wrong(
                _("the continuations have different lengths"),
                expected=amount(self.length, later("1 token"), later("{count} tokens")),
                found=amount(len(found), later("1 token"), later("{count} tokens")),
                hint=_("texts of one form are continued by the same number of tokens"),
            )
        return found[place]

    def id(self, place: int) -> Any:
        """The function that gives the id of the token, alone in a tuple."""
        return lambda values: (self.tokens.one(self.value(place, values)),)

    def place(self, place: int, scope: Scope) -> Place:
        """The token as a place of the texts that the next goals are about."""
        labels = _labels(scope.spelling)
        outputs = self.tokens.spelling.tokens

        def label(value: Any) -> int:
            word = outputs.tokens[self.tokens.one(value)]
            if word not in labels.of:
                raise self.node.wrong(
                    _("{token} is not in the vocabulary").format(token=repr(word)),
                    expected=scope.spelling.tokens.sample(),
                    found=word,
                    hint=_("only the last token may be a word that no text has"),
                )
            return labels.of[word]

        def function(values: Mapping[str, Any]) -> Any:
            value = self.value(place, values)
            linear = isinstance(value, Reckoned) and value.linear is not None
            return value if linear else label(value)

        def among(region: Region) -> Values:
            try:
                value = self.value(place, ranges_of(region))
            except Varies:
                return labels.every
            if isinstance(value, Reckoned):
                return tuple(value.among(labels.numbers)) or labels.every
            if isinstance(value, Words):
                return tuple(sorted({label(word) for word in value.words})) or labels.every
            return (label(value),)

        whole = scope.shape.whole
        values = labels.every if whole is None else among(whole)
        return Place(Computed(function, values, self.made.source, among), labels.tokens)


@dataclass(frozen=True, slots=True)
class _Labels:
    """The numbers that stand for tokens: those that they spell, and for words others beyond."""

    of: Mapping[str, int]  # by word
    tokens: Mapping[int, int]  # number → id
    numbers: frozenset[int]  # those that tokens spell
    every: Values


def _labels(spelling: Spelling) -> _Labels:
    words = spelling.tokens.tokens
    spelled = {word: spelling.number(word) for word in words}
    numbers = frozenset(number for number in spelled.values() if number is not None)
    beyond = max(numbers, default=-1) + 1
    of = {
        word: beyond + id if spelled[word] is None else int(spelled[word] or 0)
        for id, word in enumerate(words)
    }
    tokens = {of[word]: id for id, word in enumerate(words)}
    return _Labels(of, tokens, numbers, tuple(sorted(tokens)))
