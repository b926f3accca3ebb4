"""Scopes: the names that functions may use for the texts of one shape, and what they stand for.

A variable is a number, or a word where its tokens are no numbers.  A family `a0 … a9` and a named
group are lists.  `text` is the list of all tokens.  A value is made of the variables when it is
needed: of plain numbers for one text, of `wholes.Range`s for a region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from byhand.errors import InputError
from byhand.proving.claims import Function
from byhand.proving.domain import Place, Shape, Varies, Whole
from byhand.proving.reading.functions import (
    Compiled,
    compile_expression,
    compile_file,
    without_value,
)
from byhand.proving.reading.words import Words
from byhand.tokens import Tokenizer

TEXT = "text"
Getter = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Spelling:
    """How numbers are written as tokens: by their decimals, unless the property says otherwise."""

    tokens: Tokenizer
    said: Mapping[int, str] = field(default_factory=dict)
    _ids: dict[str, int | None] = field(default_factory=dict, compare=False)

    def id(self, word: str) -> int | None:
        """The id of a token, or None where the vocabulary has no such token."""
        if word not in self._ids:
            try:
                self._ids[word] = self.tokens.id(word)
            except InputError:
                self._ids[word] = None
        return self._ids[word]

    def word(self, number: int) -> str:
        """The word for a number."""
        return self.said.get(number, str(number))

    def number(self, word: str) -> int | None:
        """The number that a word spells, or None."""
        for number, said in self.said.items():
            if said == word:
                return number
        plain = word.isascii() and word.removeprefix("-").isdecimal() and len(word) < 19
        return int(word) if plain and self.word(int(word)) == word else None


@dataclass(frozen=True, slots=True)
class Number:
    """A name that stands for a whole number."""

    form: Whole

    def get(self) -> Getter:
        """How its value is made."""
        if self.form.constant == 0 and len(self.form.factors) == 1:
            ((name, factor),) = self.form.factors
            if factor == 1:
                return lambda values: values[name]
        return self.form.at


@dataclass(frozen=True, slots=True)
class Word:
    """A name that stands for a token."""

    form: Whole
    spelled: Mapping[int, str]  # number → token

    def get(self) -> Getter:
        """How its value is made."""
        number, spelled = Number(self.form).get(), self.spelled
        if not self.form.factors:
            return lambda _values: spelled[self.form.constant]

        def word(values: Mapping[str, Any]) -> Any:
            label = number(values)
            return spelled[label] if isinstance(label, int) else Words.of(label, spelled)

        return word


@dataclass(frozen=True, slots=True)
class Several:
    """A name that stands for a list."""

    members: tuple[Number | Word | Several, ...]

    def get(self) -> Getter:
        """How its value is made."""
        getters = [member.get() for member in self.members]
        return lambda values: [get(values) for get in getters]


Meaning = Number | Word | Several


@dataclass(frozen=True)
class Scope:
    """A shape, and what the names in functions stand for in its texts."""

    shape: Shape
    names: Mapping[str, Meaning]
    spelling: Spelling  # of the texts
    answers: Spelling  # of what the model predicts: the same, unless it has an alphabet of its own
    varied: tuple[Number | Word, ...]  # the places that are no fixed tokens, in order
    words: tuple[Word, ...]  # the same, as tokens

    def function(self, text: str) -> Function:
        """The function that an expression writes down."""
        return self._function(compile_expression(text, self.names), text)

    def program(self, text: str, shown: str) -> Function:
        """The function `answer` of a Python file."""
        return self._function(compile_file(text, self.names), shown)

    def calling(self, call: Callable[..., Any], names: tuple[str, ...], shown: str) -> Function:
        """A built-in function of some names."""
        return self._function(Compiled(call, names), shown)

    def of_places(
        self, call: Callable[[list[Any]], Any], places: tuple[Meaning, ...], shown: str
    ) -> Function:
        """A built-in function of some places."""
        return _guarded(call, [Several(places).get()], shown)

    def _function(self, compiled: Compiled, shown: str) -> Function:
        getters = [self.names[name].get() for name in compiled.names]
        return _guarded(compiled.call, getters, shown)


def _guarded(call: Callable[..., Any], getters: list[Getter], shown: str) -> Function:
    """The function of all variables; an error inside says for which text there is no value."""

    def of_variables(values: Mapping[str, Any]) -> Any:
        try:
            return call(*[get(values) for get in getters])
        except (Varies, InputError):
            raise
        except Exception as error:
            raise without_value(error, values) from None

    return Function(of_variables, shown)


def place_meaning(place: Place, tokens: Mapping[int, str], spelling: Spelling) -> Number | Word:
    """What a place stands for: a number where its tokens are the words for its numbers."""
    assert isinstance(place.value, Whole)
    if all(spelling.word(n) == word for n, word in tokens.items()):
        return Number(place.value)
    return Word(place.value, tokens)
