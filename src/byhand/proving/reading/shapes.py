"""Shapes of sequences: places get tokens, variables get values, names get a meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from byhand.errors import InputError
from byhand.files.tree import Table
from byhand.language import _
from byhand.proving.domain import Place, Shape, Variable, Whole
from byhand.proving.reading.scopes import (
    TEXT,
    Meaning,
    Number,
    Scope,
    Several,
    Spelling,
    Word,
    place_meaning,
)
from byhand.proving.reading.sequences import Item, OneOf, Sequence, Value
from byhand.proving.reading.variables import Relation, Variables, combined, linear, unknown

WIDEST = 1_000_000  # numbers between the ends of what a place may hold


def numbers_of(ids: Iterable[int], spelling: Spelling) -> dict[int, int] | None:
    """Number → id, where every token spells a number of its own; else None."""
    found: dict[int, int] = {}
    for id in ids:
        number = spelling.number(spelling.tokens.tokens[id])
        if number is None or number in found:
            return None
        found[number] = id
    return found


class Shapes:
    """Makes shapes of sequences; what they share is made once."""

    def __init__(
        self, variables: Variables, spelling: Spelling, answers: Spelling, node: Table
    ) -> None:
        self.variables = variables
        self.spelling = spelling
        self.answers = answers
        self.node = node
        self.pattern = node.entries.get("pattern", node)
        self.words = spelling.tokens.tokens
        self.used: set[str] = set()
        self._labels: dict[tuple[int, ...], dict[int, int]] = {}
        self._spelled: dict[int, tuple[Mapping[int, int], dict[int, str]]] = {}

    def scope(self, sequence: Sequence) -> Scope:
        """The shape of a sequence, with the names of its variables."""
        return _Shape(self, sequence).scope()

    def labels(self, ids: tuple[int, ...]) -> dict[int, int]:
        """Number → id: the numbers that the tokens spell, or their ids."""
        if ids not in self._labels:
            self._labels[ids] = numbers_of(ids, self.spelling) or {id: id for id in sorted(ids)}
        return self._labels[ids]

    def spelled(self, tokens: Mapping[int, int]) -> dict[int, str]:
        """Number → word, of number → id."""
        known = self._spelled.get(id(tokens))
        if known is None or known[0] is not tokens:
            known = tokens, {number: self.words[token] for number, token in tokens.items()}
            self._spelled[id(tokens)] = known
        return known[1]

    def all_used(self) -> None:
        """Refuses a variable that no text depends on."""
        for name in self.variables.values:
            if name not in self.used:
                raise self.node.wrong(
                    _("no place of the pattern holds the variable {name}").format(name=repr(name)),
                    expected=f"{{{name}}}",
                    found=name,
                )


class _Shape:
    def __init__(self, common: Shapes, sequence: Sequence) -> None:
        self.common = common
        self.sequence = sequence
        self.variables: dict[str, Variable] = {}
        self.forms: dict[str, Whole] = {}  # the names of places
        self.tokens: dict[str, Mapping[int, int]] = {}  # of the same
        self.lists: dict[str, list[str]] = {}
        self.restricted: set[str] = set()  # relations whose ends a place keeps

    def scope(self) -> Scope:
        found: dict[int, Place] = {}
        for position, item in enumerate(self.sequence):
            if isinstance(item, OneOf):
                found[position] = self.one_of(item, position)
        for position, item in enumerate(self.sequence):
            if isinstance(item, Value):
                found[position] = self.value(item)
        places = tuple(found[position] for position in range(len(self.sequence)))
        conditions = self.conditions(places)
        shape = Shape(places, tuple(self.variables.values()), conditions)
        words = [Word(_form(p), self.common.spelled(p.tokens)) for p in places]
        open = [n for n, item in enumerate(self.sequence) if not _fixed(item)]
        numbers = tuple(
            place_meaning(places[n], words[n].spelled, self.common.spelling) for n in open
        )
        names = {**self.names(), TEXT: Several(tuple(words))}
        return Scope(
            shape,
            names,
            self.common.spelling,
            self.common.answers,
            numbers,
            tuple(words[n] for n in open),
        )

    # ----------------------------------------------------------------------- places

    def one_of(self, item: OneOf, position: int) -> Place:
        tokens = self.common.labels(item.ids)
        name = f"{TEXT}[{position}]"
        if item.name:
            name = item.name if item.member is None else f"{item.name}[{item.member}]"
        if len(tokens) == 1:
            form = Whole(next(iter(tokens)))
        else:
            form = Whole(0, ((name, 1),))
            self.variables[name] = Variable(name, tuple(sorted(tokens)))
        if item.name:
            self.forms[name], self.tokens[name] = form, tokens
            if item.member is not None:
                self.lists.setdefault(item.name, []).append(name)
        return Place(form, tokens)

    def value(self, item: Value) -> Place:
        """The place of {a}, {s - a} or h{a}."""
        written = item.written
        plain = not item.before and not item.after
        if written in self.tokens and plain:  # the same token again
            return Place(self.forms[written], self.tokens[written])
        variables = self.common.variables
        if written in variables.words and plain:
            self.use(written)
            ids = variables.values[written]
            return Place(Whole(0, ((written, 1),)), {id: id for id in ids})
        try:
            form = linear(written, self.stands_for)
        except InputError as error:
            raise self.common.pattern.refused(error) from None
        return Place(form, self.numbers(item, form))

    def stands_for(self, name: str) -> Whole:
        """The linear form of a name."""
        variables = self.common.variables
        form = self.forms.get(name) or variables.form(name)
        if form is None:
            raise unknown(name, (*variables.names, *self.forms))
        tokens = self.tokens.get(name)
        words = tokens is not None and any(
            self.common.spelling.word(n) != self.common.words[id] for n, id in tokens.items()
        )
        if name in variables.words or words:
            raise InputError(
                _("{name} stands for words, not for numbers").format(name=repr(name)), found=name
            )
        for one in form.names:
            if one in variables.values:
                self.use(one)
        return form

    def use(self, name: str) -> None:
        """Notes that a variable of `where` belongs to this shape."""
        self.common.used.add(name)
        self.variables.setdefault(name, Variable(name, self.common.variables.values[name]))

    def numbers(self, item: Value, form: Whole) -> dict[int, int]:
        """Number → id, for all that the place may hold."""
        low, high = form.ends({one.name: one.values for one in self.variables.values()})
        relation = self.common.variables.relations.get(item.written)
        if relation and relation.ends:
            low, high = max(low, relation.ends[0]), min(high, relation.ends[1])
            self.restricted.add(item.written)
        if high - low > WIDEST:
            raise self.common.pattern.wrong(
                _("{name} can have too many values").format(name=item.written),
                expected=_("at most {count}").format(count=f"{WIDEST:,}"),
            )
        spelling, found, missing = self.common.spelling, dict[int, int](), ""
        for number in range(low, high + 1):
            word = spelling.word(number) if not item.before and not item.after else str(number)
            id = spelling.id(f"{item.before}{word}{item.after}")
            if id is not None:
                found[number] = id
            elif self.is_value(item.written, number):
                missing = missing or f"{item.before}{word}{item.after}"
        if missing or not found:
            raise self.common.pattern.wrong(
                _("{name} has no token for a number that it may be").format(name=item.written),
                expected=spelling.tokens.sample(),
                found=missing or f"{low}..{high}",
                hint=_("say how numbers are written: spelling: {0: zero, 1: one}"),
            )
        return found

    def is_value(self, written: str, number: int) -> bool:
        """Whether this is a value that a variable was given: then it needs a token."""
        return number in self.common.variables.values.get(written, ())

    # ----------------------------------------------------------------------- conditions, names

    def conditions(self, places: Iterable[Place]) -> tuple[Whole, ...]:
        """The conditions about variables of this shape; their other variables join it."""
        found: list[Whole] = []
        todo = list(self.common.variables.conditions)
        for name, relation in self.common.variables.relations.items():
            if relation.ends and name not in self.restricted:
                todo += _kept_within(relation)
        changed = True
        while changed:
            changed = False
            for number in list(todo):
                if any(name in self.variables or name in self.forms for name in number.names):
                    todo.remove(number)
                    found.append(self.here(number))
                    changed = True
        return tuple(found)

    def here(self, number: Whole) -> Whole:
        """The condition in the variables of this shape."""
        total = Whole(number.constant)
        for name, factor in number.factors:
            try:
                total = combined(total, self.stands_for(name), factor)
            except InputError as error:
                raise self.common.node.refused(error) from None
        return total

    def names(self) -> dict[str, Meaning]:
        """What functions may use: variables, relations, families, named places and lists."""
        variables = self.common.variables
        found: dict[str, Meaning] = {}
        for name in variables.names:
            form = variables.form(name)
            assert form is not None
            if not all(one in self.variables for one in form.names):
                continue
            found[name] = Number(form)
            if name in variables.words:
                words = {id: self.common.words[id] for id in variables.values[name]}
                found[name] = Word(form, words)
        for stem, members in variables.families.items():
            if sorted(members) == list(range(len(members))):
                each = [found[members[n]] for n in range(len(members)) if members[n] in found]
                if len(each) == len(members):
                    found[stem] = Several(tuple(each))
        for name, form in self.forms.items():
            place = Place(form, self.tokens[name])
            meaning = place_meaning(place, self.common.spelled(place.tokens), self.common.spelling)
            found[name] = meaning
        for name, members_of in self.lists.items():
            found[name] = Several(tuple(found.pop(member) for member in members_of))
        return found


def _form(place: Place) -> Whole:
    assert isinstance(place.value, Whole)
    return place.value


def _fixed(item: Item) -> bool:
    return isinstance(item, OneOf) and len(item.ids) == 1 and not item.name


def _kept_within(relation: Relation) -> list[Whole]:
    assert relation.ends is not None
    low, high = relation.ends
    least = Whole(relation.form.constant - low, relation.form.factors)
    most = combined(Whole(high), relation.form, -1)
    return [least, most]
