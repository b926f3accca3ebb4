"""The working of one number: in short names, with the values, and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from math import inf, isnan, log, nan
from typing import Any

import numpy as np

from byhand.address import Address, read_address, within, write_index
from byhand.document import words
from byhand.document.compose.forms import DIGITS, Forms, rational_cell, weight_cell
from byhand.document.compose.short_names import ShortNames
from byhand.document.parts import MASKED, Cell, Part, Remark, WorkingLine
from byhand.errors import AddressError, nearest
from byhand.expression import (
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    leaves,
    substitute,
    write,
)
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.plan import WEIGHT, Plan
from byhand.tracing import Trace
from byhand.weights import Weights
from byhand.worked import Worked
from byhand.working import Working

MOST_LINES = 64  # lines for one address with slices
MOST_TERMS = 12  # terms of one sum; of a longer sum the largest are shown
SHOWN_TERMS = 6
WIDEST_VALUE = 24  # characters of a form inside a line; wider ones become decimals
ELLIPSIS = Name("…")

Index = tuple[int, ...]


def workings(trace: Trace, address: str) -> Iterator[Part]:
    """The working of the entry at an address, or of each entry of a slice."""
    return Workings(trace).parts(read_address(address))


def shape_at(wanted: Address, plan: Plan, weights: Weights) -> tuple[int, ...]:
    """The shape of an address's step or weight; an AddressError if it is unknown or outside."""
    weight = wanted.name.startswith(WEIGHT)
    shape = weight_shape(wanted.name, weights) if weight else plan[wanted.name].shape
    within(wanted, shape)
    return shape


def weight_shape(address: str, weights: Weights) -> tuple[int, ...]:
    """The shape of the weight at weight.NAME; an AddressError with the nearest."""
    name = address.removeprefix(WEIGHT)
    if name not in weights:
        raise AddressError(
            _("there is no weight {name}").format(name=repr(address)),
            hint=nearest(address, [WEIGHT + known for known in weights]),
        )
    return weights[name].shape


Written = tuple[Expression, bool]  # a value as a tree, and whether it is a decimal


class Workings:
    """The lines of working of one trace, with common names of letters."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.forms = Forms(trace.numbers, digits=trace.digits)
        self.forms.label(trace)
        written_in = min(self.forms.digits, DIGITS)  # long numbers make a line unreadable
        self.inner = Forms(trace.numbers, digits=written_in) if trace.digits else self.forms
        given = {
            name: trace.steps[name].value
            for name in ("tokens", "source", "target", "targets")
            if name in trace.steps
        }
        self.working = Working(trace.plan, given, self.absent)
        self.names = ShortNames(trace.plan)

    def absent(self, address: str, index: Index) -> bool:
        """Whether an entry is masked."""
        worked = self.trace.steps[address]
        return worked.missing is None and worked.at(index) is ABSENT

    def parts(self, wanted: Address) -> Iterator[Part]:
        """The working of each entry of an address, up to MOST_LINES."""
        indices = self.indices(wanted)
        for index in islice(indices, MOST_LINES):
            if wanted.name.startswith(WEIGHT):
                yield self.weight(wanted.name, index)
            else:
                yield self.entry(self.trace.worked(wanted), index)
        if rest := sum(1 for _index in indices):
            yield Remark("more", _("… left out: {count} more entries").format(count=rest))

    def indices(self, wanted: Address) -> Iterator[Index]:
        """The entries of an address; whole axes where the index ends."""
        shape = shape_at(wanted, self.trace.plan, self.trace.model.weights)
        index = (*within(wanted, shape), *(slice(None) for _axis in shape[len(wanted.index) :]))
        places = [
            range(size)[place] if isinstance(place, slice) else (place,)
            for place, size in zip(index, shape, strict=True)
        ]
        return product(*places)

    # ------------------------------------------------------------------ weights

    def weight(self, address: str, index: Index) -> WorkingLine:
        """A weight, which has no working."""
        name, cell = address + write_index(index), self.weight_cell(address, index)
        if isinstance(self.weight_entry(address, index), Unknown):
            text = _("{name} is unknown").format(name=address)
            return WorkingLine(name, cell=cell, remarks=(Remark("more", text),), missing=True)
        return WorkingLine(name, cell=cell)

    def weight_cell(self, address: str, index: Index) -> Cell:
        """The cell of one weight."""
        return weight_cell(self.weight_entry(address, index))

    def weight_entry(self, address: str, index: Index) -> Any:
        """One weight as the model has it."""
        return self.trace.model.weights[address.removeprefix(WEIGHT)].data[index]

    # ------------------------------------------------------------------ steps

    def entry(self, worked: Worked, index: Index) -> WorkingLine:
        """The working of one entry of a step."""
        name = worked.address + write_index(index)
        if worked.step.op == "given":
            value = worked.value[index[0]] if index else worked.value
            read = worked.address == "tokens"
            text = self.token(self.trace.token(value) if read else self.trace.answer(value))
            return WorkingLine(name, cell=rational_cell(value), remarks=(Remark("value", text),))
        if worked.step.op == "argmax":
            return self.next(name, worked, index[0])
        if worked.step.op == "choose" and worked.missing is None:
            return self.chosen(name, worked, index)
        cell = MASKED if worked.missing else self.forms.full(worked.at(index))
        line = self.line(worked, index, cell)
        if line is None:
            return WorkingLine(name, cell=cell)
        line = replace(line, letters=self.forms.letters([cell.form]))
        if worked.missing is None:
            return line
        why = Remark("more", words.why_missing(worked.missing))
        return replace(line, remarks=(*line.remarks, why), missing=True)

    def line(self, worked: Worked, index: Index, cell: Cell) -> WorkingLine | None:
        """The working of an entry with this cell; None if no line leads to it."""
        tree = self.working.of(worked.address, index)
        if tree is None:
            return None
        shown, left_out = self.shortened(tree)
        names = self.names.inside(worked.step, shown)
        values, decimals = self.with_values(shown)
        return WorkingLine(
            worked.address + write_index(index),
            cell=cell,
            symbols=substitute(shown, lambda leaf: _renamed(leaf, names)),
            values=values,
            decimals=decimals,
            sources=tuple((short, address) for address, short in names.items()),
            remarks=(_left_out(left_out),) if left_out else (),
        )

    def next(self, name: str, worked: Worked, position: int) -> WorkingLine:
        """The predicted token after one position, and whether it is proven."""
        if worked.missing is not None:
            why = Remark("more", words.why_missing(worked.missing))
            return WorkingLine(name, cell=MASKED, remarks=(why,), missing=True)
        found = worked.value[position]
        if found.id is None:
            text = words.undecided(
                [words.token_label(self.trace.answer(id)) for id in found.candidates]
            )
            return WorkingLine(name, cell=MASKED, remarks=(Remark("open", text),), missing=True)
        text = self.token(self.trace.answer(found.id))
        if self.trace.proof is not None:
            text += ", " + (_("proven") if found.proven else _("not proven"))
        return WorkingLine(name, cell=rational_cell(found.id), remarks=(Remark("value", text),))

    def chosen(self, name: str, worked: Worked, index: Index) -> WorkingLine:
        """Whether an expert is chosen, by its score."""
        cell = self.forms.full(worked.at(index))
        score = worked.step.inputs["x"] + write_index(index)
        text = _("1 where {score} is among the {count} largest of its row, else 0").format(
            score=score, count=worked.step.attributes["count"]
        )
        return WorkingLine(name, cell=cell, remarks=(Remark("more", text),))

    def token(self, word: str) -> str:
        """A token for a sentence."""
        return _("the token {token}").format(token=words.token_label(word))

    # ------------------------------------------------------------------ the terms that matter

    def shortened(self, tree: Expression) -> tuple[Expression, int]:
        """The tree with only the largest terms of its longest sums, and the number left out."""
        match tree:
            case Sum(terms=terms) if len(terms) > MOST_TERMS:
                sizes = [self.size(term) for term in terms]
                largest = sorted(range(len(terms)), key=lambda k: -sizes[k])[:SHOWN_TERMS]
                shown = (terms[k] for k in sorted(largest))
                return Sum((*shown, ELLIPSIS)), len(terms) - SHOWN_TERMS
            case Quotient(top=top, bottom=bottom):
                above, left_out = self.shortened(top)
                below, also = self.shortened(bottom)
                return Quotient(above, below), left_out + also
            case Product(factors=(Sum() as first, *rest)):
                short, left_out = self.shortened(first)
                return Product((short, *rest)), left_out
            case Sum(terms=(first, *rest)):
                short, left_out = self.shortened(first)
                return Sum((short, *rest)), left_out
            case _:
                return tree, 0

    def size(self, term: Expression) -> float:
        """The approximate size of a term, as a logarithm; infinite if unknown."""
        match term:
            case Entry():
                return logarithm(self.near(term))
            case Power(base=Name("e"), exponent=Entry() as exponent):
                return self.near(exponent)
            case Power(base=base, exponent=Number(value=exponent)):
                return float(exponent) * self.size(base)
            case Product(factors=factors):
                return sum(map(self.size, factors))
            case _:
                return inf

    def near(self, leaf: Entry) -> float:
        """A float near an entry, to compare terms; NaN if unknown."""
        from byhand.explaining.approximations import near_entry  # a short sum does not need it

        if leaf.address.startswith(WEIGHT):
            return near_entry(self.weight_value(leaf))
        worked = self.trace.steps[leaf.address]
        return nan if worked.missing is not None else near_entry(worked.at(leaf.index))

    def weight_value(self, leaf: Entry) -> Any:
        """A weight as a number; an expression, such as √2/2, in the numbers of the trace."""
        entry = self.weight_entry(leaf.address, leaf.index)
        match entry:
            case Unknown():
                return ABSENT
            case Printed(value=value):
                return value
            case float() | Fraction() | np.generic() | None:
                return entry
        numbers = self.trace.numbers
        return numbers.entries(numbers.admit(np.array([entry], dtype=object)))[0]

    # ------------------------------------------------------------------ values written in

    def with_values(
        self, tree: Expression, value_of: Callable[[Entry], Written | None] | None = None
    ) -> tuple[Expression | None, bool]:
        """The tree with its entries' values, and whether some are decimals."""
        value_of = value_of or self.value_of
        written = {leaf: value_of(leaf) for leaf in leaves(tree) if isinstance(leaf, Entry)}
        if any(value is None for value in written.values()):
            return None, False
        known = {leaf: value for leaf, value in written.items() if value is not None}

        def change(leaf: Name | Entry) -> Expression:
            return known[leaf][0] if isinstance(leaf, Entry) else leaf

        return substitute(tree, change), any(decimal for _tree, decimal in known.values())

    def value_of(self, leaf: Entry) -> Written | None:
        """The value as a tree, and whether it is a decimal; None if unknown."""
        if leaf.address.startswith(WEIGHT):
            cell = self.weight_cell(leaf.address, leaf.index)
        else:
            worked = self.trace.steps[leaf.address]
            if worked.missing is not None:
                return None
            cell = self.step_cell(worked, leaf.index)
        if cell.form is not None and (cell.decimal is None or short(cell)):
            return cell.form, False
        if cell.decimal is None:
            return None
        negative = cell.decimal.startswith("-")
        decimal = Name(cell.decimal.removeprefix("-"))
        whole = cell.register in ("rounded", "exact") and not cell.cut
        return (Negative(decimal) if negative else decimal), not whole

    def step_cell(self, worked: Worked, index: Index) -> Cell:
        """An entry of a step as written inside a line."""
        return self.inner.cell(worked.at(index))


def short(cell: Cell) -> bool:
    """Whether a form is short enough to stand inside another."""
    if cell.register == "exact":
        return cell.plain
    return cell.form is not None and len(write(cell.form)) <= WIDEST_VALUE


def logarithm(x: float) -> float:
    """ln |x|; infinite where x is not known."""
    if isnan(x):
        return inf
    return log(abs(x)) if x else -inf


def _left_out(count: int) -> Remark:
    """A remark on how many terms of a long sum are left out."""
    return Remark("more", _("… left out: {count} smaller terms").format(count=count))


def _renamed(leaf: Name | Entry, names: dict[str, str]) -> Expression:
    return Entry(names[leaf.address], leaf.index) if isinstance(leaf, Entry) else leaf
