"""Sequences of places: what a pattern consists of, and every sequence that it allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from byhand.errors import InputError
from byhand.language import _

MOST_SHAPES = 10_000
LONGEST = 100_000  # places of one text
MOST_PLACES = 4_000_000  # of all sequences together, as long as the longest


@dataclass(frozen=True, slots=True)
class OneOf:
    """A place that holds one of some tokens; `name` and `member` where the pattern names it."""

    ids: tuple[int, ...]
    name: str = ""
    member: int | None = None  # its place in the list of this name; None: the name is its own


@dataclass(frozen=True, slots=True)
class Value:
    """A place that holds a number, or a named token again: before + {written} + after."""

    written: str
    before: str = ""
    after: str = ""


Item = OneOf | Value
Sequence = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of some rows."""

    options: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """A part, repeated."""

    part: Part
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Named:
    """A part with a name: a variable, or a list where it is not one place."""

    name: str
    part: Part
    alone: bool  # one place, not repeated


Part = OneOf | Value | Row | Either | Times | Named


def either(options: list[Row]) -> Part:
    """One of some rows; where each is a single token, one of these tokens."""
    ids: list[int] = []
    for row in options:
        match row.parts:
            case (OneOf(ids=some, name=""),):
                ids += some
            case _:
                return options[0] if len(options) == 1 else Either(tuple(options))
    return OneOf(tuple(dict.fromkeys(ids)))


def any_of(ids: tuple[int, ...], least: int, most: int) -> tuple[Sequence, ...]:
    """The sequences of so many places, each of which holds any of these tokens."""
    return expanded(Times(OneOf(ids), least, most))


def expanded(part: Part) -> tuple[Sequence, ...]:
    """Every sequence that a pattern allows; an InputError where there are too many."""
    count, longest = _count(part), _longest(part)
    if count > MOST_SHAPES:
        raise InputError(
            _("the pattern allows too many different forms of texts"),
            expected=_("at most {count}").format(count=f"{MOST_SHAPES:,}"),
            hint=_("repetitions with many lengths, one after the other, multiply"),
        )
    if longest > LONGEST or count * longest > MOST_PLACES:
        raise InputError(
            _("the texts of the pattern are too long"),
            expected=_("at most {count} tokens").format(count=f"{LONGEST:,}"),
        )
    found = [_members_counted(row) for row in dict.fromkeys(_sequences(part))]
    if () in found:
        raise InputError(
            _("the pattern allows an empty text"),
            expected=_("at least one token"),
            hint=_("repeat at least once: {1,3}, not {0,3}"),
        )
    return tuple(found)


def _count(part: Part) -> int:
    """How many sequences there are, at most."""
    match part:
        case Row(parts=parts):
            total = 1
            for one in parts:
                total = min(total * _count(one), MOST_SHAPES + 1)
            return total
        case Either(options=options):
            return sum(map(_count, options))
        case Named(part=inner):
            return _count(inner)
        case Times(part=inner, least=least, most=most):
            each = _count(inner)
            if each == 1:
                return most - least + 1
            return sum(min(each**n, MOST_SHAPES + 1) for n in range(least, min(most, 60) + 1))
    return 1


def _longest(part: Part) -> int:
    """How many places a sequence has, at most."""
    match part:
        case Row(parts=parts):
            return sum(map(_longest, parts))
        case Either(options=options):
            return max(map(_longest, options))
        case Named(part=inner):
            return _longest(inner)
        case Times(part=inner, most=most):
            return _longest(inner) * most
    return 1


def _sequences(part: Part) -> Iterator[Sequence]:
    match part:
        case OneOf() | Value():
            yield (part,)
        case Named(name=name, part=inner, alone=alone):
            for row in _sequences(inner):
                yield tuple(_named(item, name, alone) for item in row)
        case Either(options=options):
            yield from chain.from_iterable(map(_sequences, options))
        case Row(parts=parts):
            yield from _rows(parts)
        case Times(part=inner, least=least, most=most):
            if isinstance(inner, OneOf | Value):
                yield from ((inner,) * count for count in range(least, most + 1))
            else:
                for count in range(least, most + 1):
                    yield from _rows((inner,) * count)


def _rows(parts: tuple[Part, ...]) -> Iterator[Sequence]:
    rows: list[Sequence] = [()]
    for part in parts:
        options = list(_sequences(part))
        rows = [(*row, *option) for row in rows for option in options]
    yield from rows


def _named(item: Item, name: str, alone: bool) -> Item:
    if isinstance(item, OneOf) and not item.name:
        return replace(item, name=name, member=None if alone else -1)
    return item


def _members_counted(row: Sequence) -> Sequence:
    """The members of each list numbered from 0, in the order of the text."""
    seen: dict[str, int] = {}
    found: list[Item] = []
    for item in row:
        if isinstance(item, OneOf) and item.member is not None:
            place = seen.get(item.name, 0)
            seen[item.name] = place + 1
            item = replace(item, member=place)
        found.append(item)
    return tuple(found)


def as_lists(part: Part) -> Part:
    """The part inside a repetition: its names stand for lists."""
    match part:
        case Named():
            return replace(part, part=as_lists(part.part), alone=False)
        case Row(parts=parts):
            return Row(tuple(map(as_lists, parts)))
        case Either(options=options):
            return Either(tuple(Row(tuple(map(as_lists, row.parts))) for row in options))
        case Times(part=inner):
            return replace(part, part=as_lists(inner))
    return part
