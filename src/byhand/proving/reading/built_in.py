"""The built-in functions of claims: copy, sorted, sum, parity, count and majority.

Each is a function of some places of the text, by default of all that are no fixed tokens.  They
work on plain numbers and words and, like all functions, on `wholes.Range` and `wholes.Words`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from byhand.errors import InputError, TextError
from byhand.files import scalars
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.proving.claims import Function
from byhand.proving.domain import Reckoned
from byhand.proving.reading.callables import FUNCTIONS
from byhand.proving.reading.scopes import Scope, Spelling
from byhand.proving.reading.words import Words

NAMES = ("copy", "sorted", "sum", "parity", "count", "majority")
SEVERAL = ("copy", "sorted")  # these give several tokens
_KEYS = {
    "copy": ("of", "then"),
    "sorted": ("of", "descending", "then"),
    "sum": ("of", "modulo", "digits", "backwards", "then"),
    "parity": ("of", "counting", "even", "odd"),
    "count": ("of", "counting"),
    "majority": ("of", "tie"),
}


def built_in(name: str, node: Node, scope: Scope) -> Function:
    """The function of this name, with the settings that the node gives."""
    settings = node if isinstance(node, Table) else Table(node.file, node.line, node.key, {})
    if not isinstance(node, Table) and not (isinstance(node, Scalar) and node.text in ("", name)):
        settings = Table(node.file, node.line, node.key, {"of": node})
    settings.only(*_KEYS[name])
    make = {"copy": _copy, "sorted": _sorted, "sum": _sum, "parity": _parity, "count": _count,
            "majority": _majority}[name]  # fmt: skip
    then = settings.get("then")
    call = make(settings, scope)
    if then is not None:
        call = _followed(call, _tokens(then, scope.answers))
    return _of_places(call, settings.get("of"), scope, name)


def gives_several(name: str, node: Node) -> bool:
    """Whether the function gives several tokens, and so is the claim of a continuation."""
    return name in SEVERAL or (isinstance(node, Table) and "digits" in node.entries)


Call = Callable[[list[Any]], Any]


def _of_places(call: Call, of: Node | None, scope: Scope, name: str) -> Function:
    """The function of the places that `of` names."""
    if of is None:
        words = name in ("majority", "count")
        return scope.of_places(call, scope.words if words else scope.varied, name)
    items = of.items if isinstance(of, List) else (of,)
    parts: list[Function] = []
    for item in items:
        try:
            parts.append(scope.function(scalars.text(item)))
        except InputError as error:
            raise item.refused(error) from None

    def collected(values: Any) -> Any:
        found = [part.call(values) for part in parts]
        alone = len(found) == 1 and isinstance(found[0], list | tuple)
        return call(list(found[0]) if alone else found)

    return Function(collected, f"{name}({', '.join(part.source for part in parts)})")


def _followed(call: Call, more: tuple[str, ...]) -> Call:
    """The function, with fixed tokens at the end."""

    def followed(places: list[Any]) -> Any:
        found = call(places)
        return [*(found if isinstance(found, list) else [found]), *more]

    return followed


def _copy(settings: Table, scope: Scope) -> Call:
    return list


def _sorted(settings: Table, scope: Scope) -> Call:
    """Numbers by size, words in the order of the vocabulary."""
    down = settings.get("descending")
    backwards = False if down is None else scalars.truth(down)

    def rank(value: Any) -> Any:
        if isinstance(value, Words):
            return value.map(scope.spelling.tokens.id)
        return scope.spelling.tokens.id(value) if isinstance(value, str) else value

    return lambda places: sorted(places, key=rank, reverse=backwards)


def _sum(settings: Table, scope: Scope) -> Call:
    modulo, digits, back = map(settings.get, ("modulo", "digits", "backwards"))
    by = None if modulo is None else scalars.whole(modulo, 1)
    count = None if digits is None else scalars.whole(digits, 1, 1000)
    backwards = False if back is None else scalars.truth(back)

    def total(places: list[Any]) -> Any:
        found: Any = sum(_number(place) for place in places)
        found = found if by is None else found % by
        if count is None:
            return found
        written: list[Any] = FUNCTIONS["digits"](found, count)
        return written[::-1] if backwards else written

    return total


def _number(place: Any) -> Any:
    """The number of a place, or of a list of digits."""
    return (
        FUNCTIONS["number"](place) if isinstance(place, list | tuple) else FUNCTIONS["int"](place)
    )


def _tokens(node: Node, known: Spelling) -> tuple[str, ...]:
    """The tokens that a setting names, which must be known."""
    words: list[str] = []
    for item in node.items if isinstance(node, List) else (node,):
        words.append(scalars.text(item))
        try:
            known.tokens.id(words[-1])
        except TextError as error:
            raise item.refused(error) from None
    return tuple(words)


def _token(node: Node, known: Spelling) -> str:
    (word,) = _tokens(node, known) if isinstance(node, Scalar) else (scalars.text(node),)
    return word


def _number_of(counted: Sequence[str], places: list[Any]) -> int:
    """How many places hold one of these tokens."""
    return sum(
        place.map(lambda word: word in counted)
        if isinstance(place, Words)
        else FUNCTIONS["str"](place) in counted
        for place in places
    )


def _count(settings: Table, scope: Scope) -> Call:
    counting = settings.get("counting")
    if counting is None:
        raise settings.wrong(
            _("the key {key} is missing").format(key=repr("counting")),
            expected="count: {counting: A}",
        )
    counted = _tokens(counting, scope.spelling)
    return lambda places: _number_of(counted, places)


def _parity(settings: Table, scope: Scope) -> Call:
    counting = settings.get("counting")
    counted = None if counting is None else _tokens(counting, scope.spelling)
    even, odd = _even_and_odd(settings, scope)

    def parity(places: list[Any]) -> str:
        total = sum(map(_number, places)) if counted is None else _number_of(counted, places)
        return odd if total % 2 == 1 else even

    return parity


def _even_and_odd(settings: Table, scope: Scope) -> tuple[str, str]:
    given = [settings.get(key) for key in ("even", "odd")]
    for usual, node in zip(("even", "odd"), given, strict=True):
        if node is not None and None in given:
            raise node.wrong(
                _("even and odd are given together"), expected="even, odd", found=usual
            )
    if given[0] is not None and given[1] is not None:
        return _token(given[0], scope.answers), _token(given[1], scope.answers)
    for even, odd in (("even", "odd"), (scope.spelling.word(0), scope.spelling.word(1))):
        if scope.answers.id(even) is not None and scope.answers.id(odd) is not None:
            return even, odd
    raise settings.wrong(
        _("the tokens for even and odd are missing"), expected="parity: {even: E, odd: O}"
    )


def _majority(settings: Table, scope: Scope) -> Call:
    """The token at most places; of a tie all its tokens, or the one that `tie` gives."""
    tie = settings.get("tie")
    said = None if tie is None else _token(tie, scope.answers)

    def majority(places: list[Any]) -> Any:
        sure: dict[str, int] = {}
        possible: dict[str, int] = {}
        open: Words | Reckoned | None = None
        for place in places:
            if isinstance(place, Reckoned):
                raise place.varies()
            several = place.words if isinstance(place, Words) else (str(place),)
            if len(several) == 1:
                sure[several[0]] = sure.get(several[0], 0) + 1
            else:
                open = open or place
            for word in several:
                possible[word] = possible.get(word, 0) + 1
        if not sure:
            raise open.varies() if open else ValueError(_("no place is left to count"))
        most = max(sure.values())
        ahead = [word for word, count in possible.items() if count >= most]
        if open is None:
            return ahead[0] if len(ahead) == 1 else said or ahead
        if len(ahead) == 1 and sure.get(ahead[0]) == most:
            return ahead[0]
        raise open.varies()

    return majority
