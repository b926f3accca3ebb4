"""The sections on sums: the terms of the logit and their closing, and the final stream.

In a wide stream each part is shown by its length and by its projection on the stream.  These
projections add up to the stream's length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.document.compose.explanation.numerals import short_float
from byhand.document.compose.explanation.scope import Scope, numbers
from byhand.document.compose.explanation.wording import quoted, trip_name
from byhand.document.mathematics import cell_tree
from byhand.document.parts import (
    Cell,
    Column,
    Grid,
    Number,
    Part,
    Remark,
    TermLine,
    Terms,
    WorkingLine,
)
from byhand.document.words import joined, why_missing
from byhand.expression import Entry, Expression, Sum
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining.attribution import Attribution, Term
    from byhand.explaining.sources import Source

FEW, MANY = 12, 40  # terms shown: in short, and if the section is asked for
SMALLEST = 1e-300  # smallest radius written as it is
WIDEST = 8  # most tokens, or entries of the stream, side by side
LONGEST_SUM = 32  # terms of a sum that is written out
DIGITS = 4  # digits of a rounded length


def parts(scope: Scope) -> Iterator[Part]:
    """The terms of the logit as bars; with `full`, all logits of a small vocabulary."""
    if scope.found.attribution is None:
        yield missing_told(scope)
        return
    yield from summed(scope)
    if scope.full and scope.found.against is not None and (table := _table(scope)):
        yield table


def missing_told(scope: Scope) -> Remark:
    """A remark on why there is nothing to explain."""
    missing = scope.found.missing
    reason = _("the logits are not numbers") if missing is None else why_missing(missing)
    return Remark("more", reason)


# ------------------------------------------------------------------ the logit as a sum


def summed(scope: Scope) -> Iterator[Terms | Remark]:
    """The terms of the explained logit, and remarks on them; nothing if the logits are unknown."""
    table, chosen = scope.found.attribution_table, scope.found.attribution
    if table is not None and chosen is not None:
        yield _Summing(scope, table, chosen).part()
        yield from _limits(chosen)


class _Summing:
    """The terms of the explained logit, or lead, while they are collected."""

    def __init__(self, scope: Scope, table: Attribution, chosen: Attribution) -> None:
        self.scope, self.found = scope, scope.found
        self.table, self.chosen = table, chosen
        self.tokens = self.found.compared
        self.of_table = {term.source: term for term in table.terms}

    def part(self) -> Terms:
        found, scope = self.found, self.scope
        where, one = scope.where(found.position), scope.answer(self.tokens[0])
        if found.against is None:
            title = _("the logit of {token} after position {place}")
            title, compared = title.format(token=one, place=where), ""
        else:
            other = scope.answer(found.against)
            compared = f"{one} − {other}"
            title = _("{one} against {other} after position {place}: logit {difference}")
            title = title.format(one=one, other=other, place=where, difference=compared)
        return Terms(
            title,
            tuple(map(scope.answer, self.tokens)),
            compared,
            tuple(self.lines()),
            self.chosen.closes,
            closing_text(scope, self.chosen),
            _unknown(self.chosen),
        )

    def lines(self) -> Iterator[TermLine]:
        scope = self.scope
        most = scope.terms or (MANY if scope.full else FEW)
        shown = self.found.foremost(None if scope.every else most)
        assert shown is not None
        longest = max(map(abs, (*shown.sizes, shown.rest_size)), default=0.0)
        longest = longest if 0 < longest < float("inf") else 1.0
        largest = max(map(abs, shown.sizes), default=0.0)
        entries = [term.array[0, 0] for term in shown.terms]
        if shown.others:
            entries.append(self.chosen.numbers.entries(shown.rest)[0, 0])
        if self.chosen.total is not None:
            entries.append(self.chosen.totals[0, 0])
        added = iter(scope.numerals.column(entries))
        for term, size in zip(shown.terms, shown.sizes, strict=True):
            yield self.term(term.source, next(added), size / longest, abs(size) == largest)
        if shown.others:
            text = amount(len(shown.others), later("1 more term"), later("{count} more terms"))
            yield self.line(text, self.rest(shown.others), next(added), shown.rest_size / longest,
                            "rest")  # fmt: skip
        if self.chosen.total is not None:
            yield self.line(_("sum"), self.totals(), next(added), 0.0, "sum")

    def term(self, source: Source, added: Number, size: float, largest: bool) -> TermLine:
        own, place = self.of_table[source], self.found.position
        logits = [
            self.scope.numerals.number(
                self.table.entry(own, place, token), source.at("logits", place, token)
            )
            for token in self.tokens
        ]
        line = self.line(source.name, logits, added, size)
        about, token = _source_words(self.scope, source), _token_of(self.scope, source)
        return replace(line, about=about, token=token, largest=largest)

    def line(
        self, name: str, logits: Iterable[Number], added: Number, size: float, kind: str = "term"
    ) -> TermLine:
        """A line with the number of each logit, and their difference."""
        if self.found.against is None:
            (alone,) = logits
            return TermLine(name, "", "", (replace(alone, short=added.short),), None, size, kind)
        brief = added.cell.register == "named" and added.cell.decimal is not None
        if brief:  # beside the forms of its terms, decimals are enough
            added = replace(added, cell=replace(added.cell, form=None, worked=None))
        return TermLine(name, "", "", tuple(logits), added, size, kind)

    def rest(self, others: Sequence[Term]) -> list[Number]:
        """The sum of the terms that are not listed."""
        add = self.table.numbers.add
        whole = reduce(add, (self.of_table[term.source].value for term in others))
        entries = self.table.numbers.entries(whole)[0]
        return [
            self.scope.numerals.number(entries[self.table.columns.index(token)])
            for token in self.tokens
        ]

    def totals(self) -> Iterator[Number]:
        entries = self.table.totals[0]
        for token in self.tokens:
            address = f"explain.logits.total[{self.found.position},{token}]"
            entry = entries[self.table.columns.index(token)]
            number = self.scope.numerals.number(entry, address)
            yield replace(number, working=self.working(address, token, number.cell))

    def working(self, address: str, token: int, cell: Cell) -> WorkingLine | None:
        """The sum written out, if workings are shown."""
        if not self.scope.workings or len(self.table.terms) > LONGEST_SUM:
            return None
        names = _short_names([term.source.address for term in self.table.terms])
        place = (self.found.position, token)
        symbols: list[Expression] = []
        values: list[Expression] = []
        rounded = False
        for term in self.table.terms:
            own = self.scope.numerals.forms.cell(self.table.entry(term, *place))
            symbols.append(Entry(names[term.source.address], (*term.source.index, *place)))
            values.append(cell_tree(own))
            rounded = rounded or (own.cut and values[-1] != own.form)
        sources = tuple((short, f"explain.logits.{full}") for full, short in names.items())
        return WorkingLine(
            address, cell, Sum(tuple(symbols)), Sum(tuple(values)), rounded, sources=sources
        )


def _short_names(addresses: Sequence[str]) -> dict[str, str]:
    """The last word of each address, or more of it where two would be equal."""
    last = {address: address.rpartition(".")[2] for address in addresses}
    names = list(last.values())
    return {
        address: name if names.count(name) == 1 else address.removeprefix("weight.")
        for address, name in last.items()
    }


def _token_of(scope: Scope, source: Source) -> str:
    """The token of a source; empty if it has none."""
    tokens = scope.found.trace.tokens
    if source.kind == "token":
        return scope.token(tokens[scope.found.position])
    return scope.token(tokens[source.index[-1]]) if source.kind == "key" else ""


def _source_words(scope: Scope, source: Source) -> str:
    """A source in words: the embedding of b, head 2 of block 0."""
    spec = scope.found.model.spec
    match source.kind:
        case "token":
            trace = scope.found.trace
            token = trace.token(trace.tokens[scope.found.position])
            return _("the embedding of {token}").format(token=quoted(token))
        case "position":
            return _("position {position}").format(position=scope.found.position)
        case "head" | "mlp":
            index = source.index[0] if source.index else None
            return trip_name(source.kind, source.layer, index, spec)
        case "bias" | "norm" if source.layer is not None:
            trip = "attn" if ".attn." in source.address else "mlp"
            text = _("{part}: its bias") if source.kind == "bias" else _("{part}: its norm's bias")
            return text.format(part=trip_name(trip, source.layer, None, spec))
        case "bias":
            return _("the unembedding: its bias")
        case "norm":
            return _("the final norm: its bias")
        case _:
            return ""


def _table(scope: Scope) -> Grid | None:
    """The terms of several tokens' logits side by side, for a small vocabulary."""
    table = scope.found.attribution_table
    if table is None or len(table.columns) > WIDEST or table.total is None:
        return None
    terms = [term for term in table.terms if term.missing is None]
    if len(terms) > MANY and not scope.every:
        return None
    names = [term.source.name for term in terms]
    title = _("the logits themselves, term by term")
    return _entries(scope, table, title, names, [scope.answer(id) for id in table.columns])


def _entries(
    scope: Scope, table: Attribution, title: str, names: Sequence[str], heads: Sequence[str]
) -> Grid:
    """Every number of the known terms, and their sums if all are known."""
    rows = [term.array[0] for term in table.terms if term.missing is None]
    rows += [] if table.totals is None else [table.totals[0]]
    columns = [
        [number.short for number in scope.numerals.column(row[at] for row in rows)]
        for at in range(len(table.columns))
    ]
    cells = list(zip(*columns, strict=True))
    return Grid(
        title,
        numbers(Column("", "address"), heads),
        tuple((name, *row) for name, row in zip(names, cells, strict=False)),
        totals=tuple((_("sum"), *row) for row in cells[len(names) :]),
    )


# ------------------------------------------------------------------ how a sum closes


def _unknown(attribution: Attribution) -> str:
    """The unknown terms, in words."""
    names = [term.source.name for term in attribution.terms if term.missing is not None]
    return _("not known: {names}").format(names=joined(names)) if names else ""


def closing_text(scope: Scope, attribution: Attribution) -> str:
    """How the sum closes: the trace's value less the sum of the terms."""
    match attribution.closes:
        case "exact":
            return _("remainder: exactly 0")
        case "proven":
            if attribution.radius < SMALLEST:
                return _("remainder: proven to contain 0, radius below {size}").format(
                    size=size_text(SMALLEST)
                )
            text = _("remainder: proven to contain 0, radius {radius}")
            return text.format(radius=size_text(float(attribution.radius)))
        case "rounded":
            left, whole = map(_largest, (attribution.remainders, attribution.totals))
            text = _("remainder: rounded, {size} of {whole}")
            size = size_text(abs(float(left)))
            return text.format(size=size, whole=scope.number(whole).removeprefix("-"))
        case _:
            return _("remainder: open, since a term or the logit is not known")


def _limits(attribution: Attribution) -> Iterator[Remark]:
    """Remarks on norms that took 0/0 as 0, so that they pass nothing on."""
    if attribution.limits:
        names = [norm.removesuffix(".normalized") for norm, _position in attribution.limits]
        text = _(
            "{norms}: the row has no spread, and there is no eps; 0/0 counts as 0, and so does "
            "every term on its way through"
        )
        yield Remark("limit", text.format(norms=joined(names)))


def _largest(numbers: Any) -> Any:
    """The number furthest from 0."""
    return max(numbers.ravel(), key=lambda number: abs(float(number)))


def size_text(size: float) -> str:
    """A small size to two digits: 2.1e-6."""
    if not size:
        return "0"
    text = f"{size:.1e}"
    for long, short in ((".0e", "e"), ("e-0", "e-"), ("e+0", "e"), ("e+", "e")):
        text = text.replace(long, short)
    return short_float(size, 3) if 0.01 <= size < 1000 else text


# ------------------------------------------------------------------ the final stream


def stream_parts(scope: Scope) -> Iterator[Part]:
    """The terms of the final stream, and how their sum closes."""
    attribution = scope.found.stream
    if attribution is None:
        missing = scope.found.missing
        reason = _("the residual stream is not known") if missing is None else why_missing(missing)
        yield Remark("more", reason)
        return
    title = _("the final residual stream at position {place}")
    title = title.format(place=scope.where(scope.found.position))
    sources = [term.source for term in attribution.terms if term.missing is None]
    tokens = [_token_of(scope, source) for source in sources]
    names = [f"{s.name}  {token}" if token else s.name
             for s, token in zip(sources, tokens, strict=True)]  # fmt: skip
    if len(attribution.columns) <= WIDEST:
        heads = [f"[{entry}]" for entry in attribution.columns]
        yield _entries(scope, attribution, title, names, heads)
    else:
        yield _reaches(scope, attribution, title, names)
    if unknown := _unknown(attribution):
        yield Remark("open", unknown)
    yield Remark("closing", closing_text(scope, attribution))
    yield from _limits(attribution)


def _reaches(scope: Scope, attribution: Attribution, title: str, names: Sequence[str]) -> Grid:
    """The length of each part and its projection on the stream; the largest first."""
    lengths, along = attribution.reaches
    order = np.argsort(-np.abs(along), kind="stable").tolist()
    shown = order if scope.every else order[:MANY]
    rows = [(names[at], short_float(lengths[at], DIGITS), _signed(along[at])) for at in shown]
    if rest := order[len(shown) :]:
        text = amount(len(rest), later("1 more term"), later("{count} more terms"))
        rows.append((text, "", _signed(float(along[rest].sum()))))
    return Grid(
        title,
        numbers(Column("", "address"), (_("length"), _("along the stream"))),
        tuple(rows),
        totals=((_("sum"), "", _signed(float(along.sum()))),),
        note=_("what lies along the residual stream adds up to its length; both are rounded"),
    )


def _signed(value: float) -> str:
    text = short_float(value, DIGITS)
    return f"+{text}" if value > 0 else text
