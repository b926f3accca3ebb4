"""The forms of an entry, from its number system: tree, working, decimals."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Protocol

import numpy as np

from byhand import decimals
from byhand.document.parts import MASKED, Cell, Letter
from byhand.errors import Undecided
from byhand.expression import (
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
from byhand.language import _
from byhand.numbers.base import Numbers, Printed, Unknown
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace

PLACES = 4  # decimals shown beside a form
DIGITS = 6  # significant digits of an enclosure by default
WIDEST_FORM = 60  # characters of a form in a table; wider ones become decimals
CONSTANTS = ("e", "pi")


def floats(array: Any) -> bool:
    """Whether these are floats, not exact values or decimals worked out by hand."""
    return isinstance(array, np.ndarray) and array.dtype != np.dtype(object)


class Writes(Protocol):
    """A writer of exact-or-named values (see `numbers.exact`)."""

    def label(self, value: Any, entry: Entry) -> None:
        """Names the value by the address of its entry."""

    def in_place(self, value: Any, width: int) -> Expression | None:
        """The simplified form, if it is no wider than `width`; else None."""

    def simplified(self, value: Any) -> Expression:
        """The simplified form, or a letter."""

    def worked(self, value: Any) -> Expression:
        """The form before simplification."""

    def definitions(self) -> Any:
        """Every letter used so far, with its definition."""


class Forms:
    """Cells of one number system's entries; letters are defined in the order of use."""

    def __init__(self, numbers: Numbers, places: int = PLACES, digits: int | None = None) -> None:
        self.numbers = numbers
        self.places = places
        self.digits = digits or DIGITS
        self.writer: Writes | None = numbers.writer() if hasattr(numbers, "writer") else None

    def label(self, trace: Trace, *first: Entry) -> None:
        """Names letters after their entries; equal entries share the first name."""
        if self.writer is None:
            return
        for leaf in first:
            self.writer.label(trace.steps[leaf.address].at(leaf.index), leaf)
        for worked in trace.values():
            for index, entry in worked.entries():
                if entry is not None and entry.fraction is None:
                    self.writer.label(entry, Entry(worked.address, index))

    def cell(self, entry: Any, *, form: bool = True, worked: bool = False) -> Cell:
        """The entry for a table: short, and without letters, which need definitions.

        Without `form`, a number that is not rational has only its decimals.
        """
        if entry is None or self.writer is None or self.numbers.register(entry) == "enclosed":
            return self.full(entry)
        register, decimal = self.numbers.register(entry), self.decimal(entry)
        cut = entry.fraction is not None and Fraction(decimal) != entry.fraction
        tree = self.in_place(entry) if form or entry.fraction is not None else None
        if tree is None and cut:  # too wide for a table; without it, only the decimals are left
            tree = self.writer.simplified(entry)
        if tree is None or any(letters_in(tree)):
            return Cell(register, decimal=decimal, cut=cut)
        line = self.writer.worked(entry) if worked and not wide(tree) else tree
        told = line != tree and not isinstance(line, Number) and not any(letters_in(line))
        return Cell(register, tree, line if told else None, decimal, cut=cut)

    def in_place(self, entry: Any) -> Expression | None:
        """The simplified form, unless it is too wide for a table."""
        return None if self.writer is None else self.writer.in_place(entry, WIDEST_FORM)

    def full(self, entry: Any) -> Cell:
        """The entry in every form that its number system gives, letters among them."""
        if entry is None:
            return MASKED
        if isinstance(entry, Enclosure):
            return enclosed_cell(entry, self.digits)
        register = self.numbers.register(entry)
        if self.writer is None:
            text = self.text(entry)
            return Cell(register, decimal=text, cut=_cut(text, entry))
        if register == "enclosed":
            middle, radius = entry.interval(self.places)
            return Cell(register, decimal=middle, radius=radius)
        form, worked = self.writer.simplified(entry), self.writer.worked(entry)
        decimal = self.decimal(entry)
        return Cell(
            register,
            None if is_letter(form) else form,
            None if worked == form or isinstance(worked, Number) else worked,
            decimal,
            cut=entry.fraction is not None and Fraction(decimal) != entry.fraction,
        )

    def text(self, entry: Any) -> str:
        """The text of an entry of a system with a single form."""
        write = getattr(self.numbers, "text", str)
        return str(write(entry))

    def decimal(self, entry: Any) -> str:
        """Proven decimals; one significant digit if all decimals would be 0."""
        shown: str = entry.decimal(self.places)
        if set(shown) <= set("-0.") and entry.fraction != 0:
            try:
                return str(entry.significant(1))
            except Undecided:  # not separated from 0: zeros are proven
                return shown
        return shown

    # ------------------------------------------------------------------ letters

    def letters(self, trees: Iterable[Expression | None]) -> tuple[Letter, ...]:
        """The definitions of the letters in some trees, and of the letters in those definitions."""
        return self.definitions([n for tree in trees if tree is not None for n in letters_in(tree)])

    def letter_decimal(self, definition: Any) -> str:
        """The decimals of a letter's value; midpoint ± radius if it is a range."""
        if definition.value.register == "enclosed":
            return str(definition.decimal(self.places))
        return self.decimal(definition.value)

    def definitions(self, names: Iterable[str]) -> tuple[Letter, ...]:
        """The definitions of some letters, and of the letters in those, in the order of use."""
        todo = list(names)
        if not todo or self.writer is None:
            return ()
        known = self.writer.definitions()
        found: dict[str, Letter] = {}
        for name in todo:  # grows as definitions bring further letters
            if name in known and name not in found:
                definition = known[name]
                found[name] = Letter(name, definition.expression, self.letter_decimal(definition))
                todo.extend(letters_in(definition.expression))
        return tuple(found.values())


def _cut(text: str, entry: Any) -> bool:
    """Whether a text shows less than the whole entry; infinities and NaN are shown in full."""
    try:
        return Fraction(text) != Fraction(entry if isinstance(entry, Fraction) else float(entry))
    except (ValueError, OverflowError, ZeroDivisionError):
        return False


def wide(tree: Expression) -> bool:
    """Whether a form is too wide for a table."""
    return len(write(tree)) > WIDEST_FORM


def letters_in(tree: Expression) -> Iterable[str]:
    """The letters of a tree in order of appearance."""
    names = (leaf.text for leaf in leaves(tree) if isinstance(leaf, Name))
    return dict.fromkeys(name for name in names if name not in CONSTANTS)


def is_letter(tree: Expression) -> bool:
    """Whether a form is a letter or a multiple of one, which says nothing new of the entry."""
    match tree:
        case Name(text=text):
            return text not in CONSTANTS
        case Negative(of=x) | Quotient(top=x, bottom=Number()) | Product(factors=(Number(), x)):
            return is_letter(x)
        case _:
            return False


def enclosed_cell(entry: Enclosure, digits: int) -> Cell:
    """The proven digits of an enclosure, as many as asked for.

    An exact number with no more digits is shown as it is.  A number that is not known narrowly
    enough is shown with its radius, so the number of digits never misleads.
    """
    middle, radius = entry.interval(digits)
    if radius == "0":
        return Cell("exact", decimal=middle)
    if entry.proves(digits):
        return Cell("enclosed", decimal=entry.decimal(digits))
    return Cell("enclosed", decimal=middle, radius=radius)


def range_cell(entry: Any, places: int = PLACES) -> Cell:
    """An exact-or-named value known within a range, without digits beyond its radius."""
    middle, radius = entry.interval(places)
    if radius not in ("0", "∞"):
        first = -Decimal(radius).adjusted()  # the place of the radius's first digit
        middle, radius = entry.interval(min(max(first, 0), places))
    return Cell("enclosed", decimal=middle, radius=radius)


def margin_cell(entry: Enclosure, digits: int) -> Cell:
    """The margin of a token: so many digits, or as many as are proven."""
    cell = enclosed_cell(entry, digits)
    if cell.radius is None or not entry.proves(1):
        return cell
    return Cell("enclosed", decimal=entry.decimal(digits))


def rational_cell(value: Fraction | int) -> Cell:
    """A plain rational number, such as an id."""
    return Cell("exact", Number(Fraction(value)))


# ------------------------------------------------------------------ weights as they were given

SYMBOLS = {"bias": "b", "gain": "gain", "slopes": "slope", "frequencies": "θ", "table": "table",
           "sinks": "sink"}  # fmt: skip
LONGEST_WEIGHT = 24  # characters of a fraction; longer ones become decimals too


def symbol_of(step: Step, role: str, address: str) -> str:
    """The name of a weight in its step's formula."""
    match step.op, role:
        case "embed", _:
            tables = {"token": "E", "segment": "S"}
            return tables.get(step.address.rpartition("embed.")[2], "P")
        case "bucket_scores", _:
            return "R"
        case "linear", "weight" if address == WEIGHT + "embed.token":
            return "E"
        case "blend", _:
            return "weight"
        case "linear", "weight" if step.stage == "backward":
            return f"W_{address.rpartition('.')[2]}"
        case "expert_linear", "weight":
            return f"W_{address.rpartition('.')[2]}"
        case "linear", "weight":
            last = step.address in ("logits", "head.out")
            return "W_head" if last else f"W_{step.address.rpartition('.')[2]}"
        case "affine", _:
            return role
        case _:
            return SYMBOLS.get(role, role)


def word_instead(entries: list[Any], axes: int) -> str:
    """A word in place of the numbers: identity, zeros, …"""
    if axes == 2:
        square = len(entries) == len(entries[0])
        if square and all(x == (i == j) for i, r in enumerate(entries) for j, x in enumerate(r)):
            return _("identity")
        entries = [x for row in entries for x in row]
    if any(isinstance(x, Unknown) for x in entries):
        return _("unknown")
    if all(x == 0 for x in entries):
        return _("zeros")
    return _("ones") if all(x == 1 for x in entries) else ""


def weight_cell(entry: Any) -> Cell:
    """A weight as given; an unknown one has no register."""
    match entry:
        case None:
            return MASKED
        case Printed(value=value, places=places):
            sign = "-" if value < 0 else ""
            whole, rest = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
            printed = f"{sign}{whole}.{rest:0{places}d}" if places else f"{sign}{whole}"
            return Cell("enclosed", decimal=printed, radius="0." + "0" * places + "5")
        case Fraction() | int():
            number = Number(Fraction(entry))
            long = len(write(number)) > LONGEST_WEIGHT
            return _with_decimals(number) if long else rational_cell(entry)
        case Unknown():
            return MASKED
        case float() | np.generic():  # bfloat16 is not an np.floating
            if not isfinite(entry):
                return Cell("rounded", decimal=str(float(entry)))
            return _with_decimals(Number(Fraction(float(entry))))
        case _:
            tree: Expression = entry
            return Cell("named", tree)


def _with_decimals(number: Number) -> Cell:
    """A number too long for a table; one significant digit if its decimals would be 0."""
    decimal = decimals.places(number.value, PLACES)
    if number.value and not Fraction(decimal):
        decimal = decimals.significant(number.value, 1)
    return Cell("exact", number, decimal=decimal, cut=Fraction(decimal) != number.value)
