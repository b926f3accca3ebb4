"""Writing values: as expression trees, with letters for what is too wide to write in place.

A writer gives letters as they are needed and keeps their definitions.  A letter of a value that
was labelled with its address is named after that: the scores' letters are s1, s2, …  What is
written reads back to the same value, with `binding` giving the values of letters and entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq

from byhand.expression import (
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Product,
    Quotient,
    leaves,
    write,
)
from byhand.numbers.exact.decimals import shown
from byhand.numbers.exact.form import Form, number
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.space import Space
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
        """Its decimals, proven; middle ± radius where it is only enclosed."""
        return shown_decimal(self.value, places)


def shown_decimal(value: Value, places: int) -> str:
    """Decimals within one unit of the last place; middle ± radius where that is not known."""
    if value.register == "enclosed":
        middle, radius = value.interval(places)
        return f"{middle} ± {radius}"
    return value.decimal(places)


class Writer:
    """Trees of values, and the letters used in them.

    >>> from byhand.expression import parse, write
    >>> from byhand.numbers.exact import Exact
    >>> numbers = Exact()
    >>> value = numbers.scalar(parse("exp(1)/(exp(1) + exp(2))"))
    >>> write(numbers.writer().simplified(value))
    '1/(1 + e)'
    """

    def __init__(self, space: Space, width: int = 40) -> None:
        self.space = space
        self.width = width
        self.labels: dict[object, tuple[Entry, Value]] = {}
        self.entries: dict[Entry, Value] = {}
        self.names: dict[object, str] = {}
        self.values: dict[str, Value] = {}
        self.form = Form(space, self.short, self.letter)
        self._count: dict[str, int] = {}
        self._entry_of: dict[str, Entry] = {}
        self._atom_of: dict[str, Atom] = {}
        self._trees: dict[object, Expression] = {}

    # ------------------------------------------------------------------- labels

    def label(self, value: Value, entry: Entry) -> None:
        """`value` is the number at this address; the first label of a value names it."""
        self.entries[entry] = value
        if value.num is not None:
            self.labels.setdefault(value.key, (entry, value))

    def binding(self, leaf: Name | Entry) -> Value | None:
        """The value of a letter or a labelled entry, for reading back."""
        return self.values.get(leaf.text) if isinstance(leaf, Name) else self.entries.get(leaf)

    # ------------------------------------------------------------------- trees

    def simplified(self, value: Value) -> Expression:
        """The simplified form; a value too wide for a line is its letter."""
        tree = self.in_place(value, LONGEST_LINE * self.width)
        return self.by_letter(value) if tree is None else tree

    def worked(self, value: Value) -> Expression:
        """The form a person writes down first, as e^1/(e^1 + e^2); else the simplified one."""
        tree = worked_form(value, self.short)
        return self.simplified(value) if tree is None else tree

    def in_place(self, value: Value, width: int) -> Expression | None:
        """The simplified form, if it is not wider than that."""
        if value.num is None:
            return number(value.fraction or 0)
        if 3 * value.size > width:  # a term takes three places or more
            return None
        key = value.key, value.q.p, value.q.q
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = self.form.of(value)
        return tree if len(write(tree)) <= width else None

    def short(self, value: Value) -> Expression:
        """In place if short, else by a letter of the value or of one it is a multiple of."""
        tree = self.in_place(value, self.width)
        return self.by_letter(value) if tree is None else tree

    def by_letter(self, value: Value) -> Expression:
        """A rational times a letter."""
        if value.key in self.labels:
            entry, labelled = self.labels[value.key]
            name, unit = self.name_of_entry(entry, labelled), labelled
        else:
            letter = self.space.letter(value)
            if len(letter.atoms) != 1:
                return self.form.of(value)
            atom = self.space.atoms[letter.atoms[0]]
            if atom.kind not in ("letter", "printed"):
                return self.form.of(letter)
            name, unit = self.name_of_atom(atom), self.space.power(atom)
            value = letter
        ratio = value.q / unit.q
        return times(ratio, Name(name))

    # ------------------------------------------------------------------- letters

    def letter(self, atom: Atom) -> Expression:
        return Name(self.name_of_atom(atom))

    def name_of_entry(self, entry: Entry, value: Value) -> str:
        if entry not in self.names:
            parts = [part for part in entry.address.split(".") if not part.isdigit()]
            weight = "w" if parts[0] == "weight" else "u"
            name = self.next_name(LETTERS.get(parts[-1], weight) if weight == "u" else weight)
            self.names[entry] = name
            self.values[name] = value
            self._entry_of[name] = entry
        return self.names[entry]

    def name_of_atom(self, atom: Atom) -> str:
        meaning = atom.argument if atom.kind == "letter" and atom.wide is None else None
        value = self.space.power(atom) if meaning is None else meaning
        entry, labelled = self.labels.get(value.key, (None, value))
        if entry is not None and labelled.q == value.q:
            return self.name_of_entry(entry, labelled)
        if atom.id not in self.names:
            name = self.next_name("w" if atom.kind == "printed" else "u")
            self.names[atom.id] = name
            self.values[name] = self.space.power(atom)
            self._atom_of[name] = atom
        return self.names[atom.id]

    def next_name(self, letter: str) -> str:
        self._count[letter] = self._count.get(letter, 0) + 1
        return f"{letter}{self._count[letter]}"

    def definitions(self) -> dict[str, Definition]:
        """Every letter used so far, and those used to define them, in the order of first use."""
        found: dict[str, Definition] = {}
        while len(found) < len(self.values):
            for name in list(self.values):
                if name not in found:
                    found[name] = Definition(name, self.values[name], self.defined(name))
        return found

    def defined(self, name: str) -> Expression:
        """The address of what the letter stands for, or its form in names that were made before."""
        if name in self._entry_of:
            return self._entry_of[name]
        atom = self._atom_of[name]
        if atom.wide is not None:
            return self.form.of(self.space.from_terms(atom.wide))
        assert atom.argument is not None
        return self.form.of(atom.argument)


def times(ratio: fmpq, tree: Expression) -> Expression:
    """ratio · tree."""
    size = abs(ratio)
    top = tree if size.p == 1 else Product((number(int(size.p)), tree))
    whole = top if size.q == 1 else Quotient(top, number(int(size.q)))
    return Negative(whole) if ratio < 0 else whole
