"""The writer of values as expression trees, with letters for wide parts.

A writer gives letters as they are needed and keeps their definitions.  A value that was labelled
with its address gets a letter named after it: the scores' letters are s1, s2, … The text reads back
to the same value, with `binding` giving the values of letters and entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq

from byhand.expression import (
    ONE,
    Entry,
    Expression,
    Name,
    Negative,
    Product,
    Quotient,
    leaves,
    write,
)
from byhand.numbers.exact.form import Form, number
from byhand.numbers.exact.functions import Functions
from byhand.numbers.exact.value import Atom, Value
from byhand.numbers.exact.worked import worked_form

LONGEST_LINE = 4  # times the width: a longer whole value is shown by its letter
LETTERS = {
    "scores": "s",
    "weights": "p",
    "probs": "p",
    "q": "q",
    "k": "k",
    "v": "v",
    "q_norm": "q",
    "k_norm": "k",
    "q_rotated": "q",
    "k_rotated": "k",
    "qkv": "q",
    "mixed": "m",
    "mean": "μ",
    "variance": "σ",
    "mean_square": "σ",
    "std": "σ",
    "rms": "σ",
    "centered": "c",
    "normalized": "n",
    "out": "y",
    "head_out": "y",
    "add": "x",
    "stream": "x",
    "hidden": "h",
    "gate": "g",
    "act": "a",
    "gated": "g",
    "logits": "z",
    "loss": "l",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """What a letter stands for: the entry at an address, or a working in other letters."""

    name: str
    value: Value
    expression: Expression

    def decimal(self, places: int = 4) -> str:
        """The proven decimals of the value; middle ± radius where it is only enclosed."""
        return shown_decimal(self.value, places)


def shown_decimal(value: Value, places: int) -> str:
    """Decimals within one unit of the last place; middle ± radius where that is not known."""
    if value.register == "enclosed":
        middle, radius = value.interval(places)
        return f"{middle} ± {radius}"
    return value.decimal(places)


@dataclass(slots=True)
class _Letter:
    """A letter that was given: its name, the value it stands for, and where that is found."""

    name: str
    value: Value
    entry: Entry | None
    atom: Atom | None


class Writer:
    """Trees of values, and the letters used in them.

    >>> from byhand.expression import parse, write
    >>> from byhand.numbers.exact import Exact
    >>> numbers = Exact()
    >>> value = numbers.scalar(parse("exp(1)/(exp(1) + exp(2))"))
    >>> write(numbers.writer().simplified(value))
    '1/(1 + e)'
    """

    def __init__(self, space: Functions, width: int = 40) -> None:
        self.space = space
        self.width = width
        self.longest = LONGEST_LINE * width
        self.form = Form(space, self.short, self.letter)
        self._labels: dict[object, tuple[Entry, Value]] = {}
        self._entries: dict[Entry, Value] = {}
        self._letters: dict[object, _Letter] = {}  # by the key of the value
        self._names: dict[str, _Letter] = {}
        self._count: dict[str, int] = {}
        self._trees: dict[object, Expression] = {}
        self._defined: dict[str, Expression] = {}  # in the order of the names
        self._by_working: set[str] = set()

    # ------------------------------------------------------------------- labels

    def label(self, value: Value, entry: Entry) -> None:
        """Records `value` as the number at this address; the first label of a value names it."""
        self._entries[entry] = value
        meaning = self.opened(value)
        self._labels.setdefault(key_of(meaning), (entry, meaning))

    def binding(self, leaf: Name | Entry) -> Value | None:
        """The value of a letter or a labelled entry, for reading back."""
        if isinstance(leaf, Entry):
            return self._entries.get(leaf)
        return self._names[leaf.text].value if leaf.text in self._names else None

    # ------------------------------------------------------------------- trees

    def simplified(self, value: Value) -> Expression:
        """The simplified form; a value too wide for a line is its letter."""
        tree = self.in_place(value, self.longest)
        return self.by_letter(value) if tree is None else tree

    def worked(self, value: Value) -> Expression:
        """The form a person writes down first, as e^1/(e^1 + e^2); else the simplified one."""
        tree = worked_form(value, self.short)
        return self.simplified(value) if tree is None else tree

    def in_place(self, value: Value, width: int) -> Expression | None:
        """The simplified form, if it is not wider than that."""
        if 3 * value.size > width or digits_of(value) > width:  # a term takes three places or more
            return None
        if value.num is None:
            return number(value.fraction or 0)
        key = value.key, value.q.p, value.q.q
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = self.form.of(value)
        return tree if len(write(tree)) <= width else None

    def short(self, value: Value) -> Expression:
        """In place if short, else by a letter of the value or of one it is a multiple of."""
        tree = self.in_place(value, self.width)
        return self.by_letter(value) if tree is None else tree

    # ------------------------------------------------------------------- letters

    def letter(self, atom: Atom) -> Expression:
        """The writer's letter for a letter of the space."""
        return self.by_letter(self.space.power(atom))

    def by_letter(self, value: Value) -> Expression:
        """The value as a rational times a letter of this writer."""
        value = self.opened(value)
        key = key_of(value)
        found = self._letters.get(key)
        if found is None:
            entry, meaning = self._labels.get(key, (None, value))
            atom = self.space.atoms[value.atoms[0]] if value.is_name else None
            found = _Letter(self._next_name(entry, atom), meaning, entry, atom)
            self._letters[key] = self._names[found.name] = found
        return times(value.q / found.value.q, Name(found.name))

    def opened(self, value: Value) -> Value:
        """The value; a multiple of a letter of the space, as the multiple of its definition."""
        if value.is_name:
            atom = self.space.atoms[value.atoms[0]]
            if atom.kind == "letter" and atom.argument is not None:
                return atom.argument.times(value.q)
        return value

    def _next_name(self, entry: Entry | None, atom: Atom | None) -> str:
        letter = "u"
        if entry is not None:
            parts = [part for part in entry.address.split(".") if not part.isdigit()]
            letter = "w" if parts[0] == "weight" else LETTERS.get(parts[-1], letter)
        elif atom is not None and atom.kind == "printed":
            letter = "w"
        self._count[letter] = self._count.get(letter, 0) + 1
        return f"{letter}{self._count[letter]}"

    # ------------------------------------------------------------------- definitions

    def definitions(self) -> dict[str, Definition]:
        """Every letter used so far, and those used to define them, in the order of first use."""
        while len(self._defined) < len(self._names):
            for name in list(self._names)[len(self._defined) :]:
                self._define(name)
        return {
            name: Definition(name, letter.value, self._defined[name])
            for name, letter in self._names.items()
        }

    def _define(self, name: str) -> None:
        """Defines a letter by the address of its value, by its form, or by a line of working."""
        letter = self._names[name]
        if letter.entry is not None:
            self._defined[name] = letter.entry
            return
        tree = self._full_form(letter)
        length = len(write(tree))
        line = worked_form(letter.value, self.short) if length > self.longest else None
        if line is not None and len(write(line)) < length:
            self._defined[name] = line
            self._by_working.add(name)
        else:
            self._defined[name] = tree
        # Forms use only what was made before them, but a line of working may lead in a circle.
        if self._by_working and name in (circle := reached(name, self._defined)):
            for other in circle & self._by_working:
                self._defined[other] = self._full_form(self._names[other])
            self._by_working -= circle

    def _full_form(self, letter: _Letter) -> Expression:
        """The form in names that were made before it, however long it is."""
        atom, value = letter.atom, letter.value
        if atom is not None and atom.wide is not None:
            value = self.space.from_terms(atom.wide).times(value.q)
        elif atom is not None and atom.kind == "printed" and atom.argument is not None:
            value = atom.argument.times(value.q)
        return self.form.of(value)


def digits_of(value: Value) -> int:
    """About how many digits the coefficients of a value have; no more than they really have."""
    bits = value.q.p.bit_length() + value.q.q.bit_length()
    for p in (value.num, value.den):
        bits += 0 if p is None else sum(c.bit_length() for c in p.coeffs())
    return (bits - 4 * value.size) * 3 // 10


def key_of(value: Value) -> object:
    """A key: equal for values that share a letter, multiples of each other or one rational."""
    return (value.q.p, value.q.q) if value.num is None else value.key


def reached(name: str, definitions: dict[str, Expression]) -> set[str]:
    """The letters that the definition of a letter uses, directly or through others."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for leaf in leaves(definitions.get(todo.pop(), ONE)):
            if isinstance(leaf, Name) and leaf.text not in found:
                found.add(leaf.text)
                todo.append(leaf.text)
    return found


def times(ratio: fmpq, tree: Expression) -> Expression:
    """ratio · tree."""
    size = abs(ratio)
    top = tree if size.p == 1 else Product((number(int(size.p)), tree))
    whole = top if size.q == 1 else Quotient(top, number(int(size.q)))
    return Negative(whole) if ratio < 0 else whole
