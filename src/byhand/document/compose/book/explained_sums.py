"""The numbers of the chapter on what the numbers say: sums, the lens, what heads read and write.

Everything is taken from an `Explanation`; here each number gets its address and its forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from byhand.document import words
from byhand.document.compose.book.explained_words import source_words, stopped, written
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.strips import drawn
from byhand.document.compose.explanation.attribution import closing_text, limits_told
from byhand.document.compose.explanation.parts import STRONG, Grid, together
from byhand.document.compose.explanation.scope import Scope
from byhand.document.explained_parts import (
    Finding,
    LensLine,
    LensTable,
    TermLine,
    Terms,
    TextTable,
)
from byhand.document.mathematics import cell_tree
from byhand.document.numerals import localised
from byhand.document.parts import MASKED, Cell, Number, NumberRow, NumberTable, WorkingLine
from byhand.expression import Entry, Expression, Sum
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.tracing import weakest

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.explaining.attribution import Attribution, Term
    from byhand.explaining.circuits import Table
    from byhand.explaining.lens import LensRow

MOST_TERMS = 32  # of a sum; of more, those that matter most, and the others put together
WIDEST_FORMS = 4  # columns of a table that has room for forms beside decimals
MOST_READ = 8  # tokens of a text whose rows of a large table are listed
MOST_STRONGEST = 3  # columns of such a row


# ------------------------------------------------------------------ where the logit comes from


def terms(showing: Showing, found: Explanation) -> Terms | None:
    """The logits that are compared, term by term; None where they are not known."""
    from byhand.explaining.foremost import sizes

    table, chosen = found.attribution_table, found.attribution
    if table is None or chosen is None:
        return None
    known = [at for at, term in enumerate(chosen.terms) if term.missing is None]
    near = {at: size for at, size in enumerate(sizes(chosen)) if at in set(known)}
    shown, folded = known, []
    if len(known) > MOST_TERMS:
        order = sorted(known, key=lambda at: -abs(near[at]))
        shown, folded = sorted(order[: MOST_TERMS - 1]), sorted(order[MOST_TERMS - 1 :])
    maker = _Terms(showing, found, table, chosen)
    rest = sum(near[at] for at in folded)
    longest = max((abs(size) for size in (*(near[at] for at in shown), rest)), default=0.0)
    longest = longest if longest > 0 else 1.0
    first = max((abs(near[at]) for at in shown), default=0.0)
    lines = [maker.term(at, near[at] / longest, abs(near[at]) == first) for at in shown]
    if folded:
        lines.append(maker.rest(folded, rest / longest))
    if table.totals is not None:
        lines.append(maker.total())
    return maker.part(lines)


class _Terms:
    """One table of terms as it is made."""

    def __init__(
        self, showing: Showing, found: Explanation, table: Attribution, chosen: Attribution
    ) -> None:
        self.showing, self.found, self.table, self.chosen = showing, found, table, chosen
        self.scope = Scope(found)
        self.tokens = found.compared

    def cell(self, entry: Any) -> Cell:
        return self.showing.forms.cell(entry)

    def apart(self, entry: Any) -> Cell | None:
        """A difference: beside the forms of what it comes from, the decimals of it are enough."""
        if self.found.against is None:
            return None
        cell = self.cell(entry)
        brief = cell.register == "named" and cell.decimal is not None
        return replace(cell, form=None, worked=None) if brief else cell

    def number(self, term: Term, token: int) -> Number:
        entry = self.table.entry(term, self.found.position, token)
        address = term.source.at("logits", self.found.position, token)
        return Number(address, self.cell(entry))

    def term(self, at: int, size: float, largest: bool) -> TermLine:
        term, difference = self.table.terms[at], self.chosen.terms[at]
        return TermLine(
            term.source.name,
            source_words(self.scope, term.source),
            tuple(self.number(term, token) for token in self.tokens),
            self.apart(difference.array[0, 0]),
            size,
            largest=largest,
        )

    def rest(self, folded: Sequence[int], size: float) -> TermLine:
        """The terms that are not told one by one, added up."""
        numbers = self.table.numbers

        def added(attribution: Attribution) -> Any:
            values = (attribution.terms[at].value for at in folded)
            return numbers.entries(reduce(numbers.add, values))[0]

        whole, columns = added(self.table), self.table.columns
        return TermLine(
            _("{count} more terms").format(count=words.whole(len(folded))),
            "",
            tuple(self.cell(whole[columns.index(token)]) for token in self.tokens),
            self.apart(added(self.chosen)[0]),
            size,
            "rest",
        )

    def total(self) -> TermLine:
        totals = self.table.totals[0]
        numbers = []
        for token in self.tokens:
            cell = self.cell(totals[self.table.columns.index(token)])
            address = f"explain.logits.total[{self.found.position},{token}]"
            numbers.append(Number(address, cell, self.working(address, token, cell)))
        difference = self.apart(self.chosen.totals[0, 0])
        return TermLine(_("sum"), "", tuple(numbers), difference, 0.0, "sum")

    def working(self, address: str, token: int, cell: Cell) -> WorkingLine | None:
        """The sum written out, where the book writes out its numbers."""
        if not self.showing.workings or len(self.table.terms) > MOST_TERMS:
            return None
        names = _short_names([term.source.address for term in self.table.terms])
        place = (self.found.position, token)
        symbols: list[Expression] = []
        values: list[Expression] = []
        rounded = False
        for term in self.table.terms:
            own = self.cell(self.table.entry(term, *place))
            symbols.append(Entry(names[term.source.address], (*term.source.index, *place)))
            values.append(cell_tree(own))
            rounded = rounded or (own.cut and values[-1] != own.form)
        sources = tuple((short, f"explain.logits.{full}") for full, short in names.items())
        return WorkingLine(
            address, cell, Sum(tuple(symbols)), Sum(tuple(values)), rounded, sources=sources
        )

    def part(self, lines: Sequence[TermLine]) -> Terms:
        found, scope, chosen = self.found, self.scope, self.chosen
        where = scope.where(found.position)
        one = scope.token(found.compared[0])
        if found.against is None:
            title = _("the logit of {token} after position {place}")
            title, compared = title.format(token=one, place=where), ""
        else:
            other = scope.token(found.against)
            compared = f"{one} − {other}"
            title = _("what tells {one} from {other} after position {place}: logit {difference}")
            title = title.format(one=one, other=other, place=where, difference=compared)
        unknown = [term.source.name for term in chosen.terms if term.missing is not None]
        remarks = [each.text for each in limits_told(chosen)]
        if unknown:
            remarks.append(_("not known: {names}").format(names=words.joined(unknown)))
        return Terms(
            title,
            tuple(map(scope.token, self.tokens)),
            compared,
            tuple(lines),
            chosen.closes,
            written(closing_text(scope, chosen)),
            tuple(remarks),
        )


def _short_names(addresses: Sequence[str]) -> dict[str, str]:
    """The last word of each address, or more of it where two would be called the same."""
    last = {address: address.rpartition(".")[2] for address in addresses}
    names = list(last.values())
    return {
        address: name if names.count(name) == 1 else address.removeprefix("weight.")
        for address, name in last.items()
    }


# ------------------------------------------------------------------ the lens


def lens_table(showing: Showing, found: Explanation, grid: Grid) -> LensTable:
    """Who leads after each step at one position, as `grid` tells it, with the numbers' forms."""
    scope = Scope(found)
    rows = found.lens.of_position(found.position)
    placed = len(grid.heads) > len(found.compared) + 3  # the last column says it
    settled = {row for row, _column in grid.strong}
    return LensTable(
        grid.title,
        tuple(map(scope.token, found.compared)),
        tuple(
            _lens_line(showing, scope, row, cells[-1] if placed else "", at in settled)
            for at, (row, cells) in enumerate(zip(rows, grid.rows, strict=True))
        ),
        grid.note.removeprefix(STRONG).strip(),
    )


def _lens_line(showing: Showing, scope: Scope, row: LensRow, place: str, settled: bool) -> LensLine:
    if row.missing is not None or row.leader is None:
        missing = "" if row.missing is None else words.why_missing(row.missing)
        return LensLine(row.step, "?", None, 0.0, (), missing=missing)
    found, forms = scope.found, showing.forms
    at = row.address.removesuffix("]")
    probability = None
    if row.probs is not None and row.leader.id is not None:
        probability = forms.cell(row.probs[row.leader.id])
    return LensLine(
        row.step,
        scope.leader(row.leader),
        probability,
        _near(probability),
        tuple(Number(f"{at},{id}]", forms.cell(row.logits[id])) for id in found.compared),
        place,
        settled,
    )


def _near(cell: Cell | None) -> float:
    """A float near a share, for the length of a bar."""
    return 0.0 if cell is None else drawn(float(cell.decimal or 1.0))


# ------------------------------------------------------------------ what heads read and write


def circuit_tables(
    showing: Showing, found: Explanation, heads: Sequence[tuple[int, int]]
) -> Iterator[NumberTable]:
    """QK and OV of some heads, token by token."""
    for layer, head in heads:
        for each in found.circuits(layer):
            if each.head == head:
                yield _circuit(showing, each.qk, _("QK: looks at"), ("query", "key"))
                yield _circuit(showing, each.ov, _("OV: writes"), ("key", "vocab"))


def circuit_lists(
    found: Explanation, heads: Sequence[tuple[int, int]]
) -> Iterator[TextTable | Finding]:
    """Of a larger vocabulary, what each head looks for and writes at the tokens of the text."""
    scope = Scope(found)
    for layer, head in heads:
        for each in found.circuits(layer):
            if each.head == head:
                yield _listed(scope, layer, head, each.qk, each.ov)
    said = [text for layer in dict.fromkeys(at for at, _head in heads)
            for text in found.circuits(layer).said]  # fmt: skip
    if said:
        yield Finding("", tuple(stopped(written(text)) for text in dict.fromkeys(said)))


def _listed(scope: Scope, layer: int, head: int, qk: Table, ov: Table) -> TextTable:
    own = [id for id in dict.fromkeys(scope.found.trace.tokens) if id in qk.rows][-MOST_READ:]
    hidden = len(qk.rows) - len(own)
    name = _("block {layer}, head {head}").format(layer=layer, head=head)
    return TextTable(
        f"{name}: {qk.address}[{head}], {ov.address}[{head}]",
        (_("token"), _("looks at"), _("writes")),
        tuple((scope.token(id), _strongest(scope, qk, id), _strongest(scope, ov, id))
              for id in own),
        (False, False, False),
        left_out=_("{count} more tokens").format(count=words.whole(hidden)) if hidden else "",
    )  # fmt: skip


def _strongest(scope: Scope, table: Table, row: int) -> str:
    if not table.strongest or row not in table.rows:
        return ""
    columns = table.strongest[table.rows.index(row)][:MOST_STRONGEST]
    said = [
        together(f"{scope.token(at)} {localised(scope.numerals.signed(table.at(row, at)))}")
        for at in columns
        if table.at(row, at) is not ABSENT
    ]
    return "; ".join(said) if "," in "".join(said) else ", ".join(said)


def _circuit(showing: Showing, table: Table, title: str, axes: tuple[str, str]) -> NumberTable:
    rows, brief = [], len(table.columns) > WIDEST_FORMS
    for place, row in enumerate(table.rows):
        numbers = tuple(
            Number(table.address_of(row, column), _entry(showing, table.at(row, column), brief))
            for column in table.columns
        )
        register = weakest(n.cell.register for n in numbers if n.cell.register is not None)
        rows.append(NumberRow(place, showing.token(row), register, numbers))
    return NumberTable(
        f"{table.address}[{table.head}]",
        title,
        axes,
        (len(table.rows), len(table.columns)),
        tuple(range(len(table.columns))),
        tuple(map(showing.token, table.columns)),
        tuple(rows),
    )


def _entry(showing: Showing, entry: Any, brief: bool) -> Cell:
    return MASKED if entry is ABSENT else showing.forms.cell(entry, form=not brief)
