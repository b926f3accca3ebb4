"""Words over a region: the tokens that a place may hold, and what is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from byhand.proving.domain import Reckoned, Varies


class Words:
    """The token of each text of a region at one place; `spelled` gives it by number."""

    __slots__ = ("number", "spelled", "words")

    def __init__(self, number: Any, spelled: Mapping[int, str]) -> None:
        self.number = number
        self.spelled = spelled
        self.words = tuple(dict.fromkeys(spelled[n] for n in number.among(spelled)))

    @staticmethod
    def of(number: Any, spelled: Mapping[int, str]) -> Any:
        """The word of a number, or the Words of a Range; one word where there is only one."""
        if not isinstance(number, Reckoned):
            return spelled[number]
        found = Words(number, spelled)
        return found.words[0] if len(found.words) == 1 else found

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that the token depends on, the most important first."""
        found: tuple[str, ...] = self.number.varies().names
        return found

    def varies(self) -> Varies:
        """What to raise where one word is needed."""
        return Varies(*self.names)

    def map(self, function: Callable[[str], Any]) -> Any:
        """What a function gives for every word, if it is the same."""
        if not self.words:  # no text of the region has a token here
            raise self.varies()
        first, *rest = (function(word) for word in self.words)
        if all(type(one) is type(first) and one == first for one in rest):
            return first
        raise self.varies()

    def whole(self) -> Any:
        """The number that the token spells in decimals, as a Range where that is linear."""
        if all(word == str(n) for n, word in self.spelled.items()):
            return self.number
        return self.map(int)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, str):
            return self.map(lambda word: word == other)
        if not isinstance(other, Words):
            return False
        if set(self.words).isdisjoint(other.words):
            return False
        if self.spelled is other.spelled or self.spelled == other.spelled:
            apart = self.number - other.number
            if isinstance(apart, int) and apart == 0:
                return True
        raise Varies(*dict.fromkeys((*self.names, *other.names)))

    def __ne__(self, other: Any) -> Any:
        return not self == other

    def _compared(self, other: Any, decide: Callable[[str, str], bool]) -> Any:
        if isinstance(other, str):
            return self.map(lambda word: decide(word, other))
        if not isinstance(other, Words):
            return NotImplemented
        found = {decide(one, two) for one in self.words for two in other.words}
        if len(found) == 1:
            return found.pop()
        raise Varies(*dict.fromkeys((*self.names, *other.names)))

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, lambda one, two: one < two)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, lambda one, two: one <= two)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, lambda one, two: one > two)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, lambda one, two: one >= two)

    def __bool__(self) -> bool:
        return bool(self.map(bool))

    def _one(self, *_others: Any) -> Any:
        """Where one word is needed: these are several."""
        raise self.varies()

    __hash__ = __int__ = __index__ = _one
    __str__ = __repr__ = __format__ = _one
    __len__ = __iter__ = __getitem__ = __contains__ = __add__ = __radd__ = _one
    __mul__ = __rmul__ = __mod__ = __rmod__ = _one


def one_of(value: Any, several: Any) -> bool:
    """Whether a value is in a list, a set, a table or a text, for all texts of a region."""
    if isinstance(several, Words):
        raise several.varies()
    if not isinstance(value, Reckoned | Words):
        if isinstance(several, set | frozenset | dict | str):
            return value in several
        return _found(value, iter(several))
    if isinstance(several, str):
        return bool(value.map(lambda word: word in several)) if isinstance(value, Words) else False
    members = list(several)
    each: Sequence[Any] | None = value.words if isinstance(value, Words) else value.each()
    if each and not any(isinstance(one, Reckoned | Words) for one in members):
        found = {one in members for one in each}
        if len(found) == 1:
            return found.pop()
        raise value.varies()
    return _found(value, iter(members))


def _found(value: Any, members: Iterator[Any]) -> bool:
    """Whether one of the members equals the value; what is undecided counts only if none does."""
    undecided: Varies | None = None
    for member in members:
        try:
            if member == value:
                return True
        except Varies as error:
            undecided = undecided or error
    if undecided is not None:
        raise undecided
    return False
