"""The section on attribution: the terms of a logit as bars, their sum, and how it closes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from byhand.document.compose.explanation.numerals import short_float
from byhand.document.compose.explanation.parts import Bar, Bars, Block, Grid, Section, Told
from byhand.document.compose.explanation.scope import Scope
from byhand.document.words import joined, whole, why_missing
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.attribution import Attribution, Term
    from byhand.explaining.sources import Source

FEW, MANY = 12, 40  # terms that are shown: at first sight, and where the section is asked for
SMALLEST = 1e-300  # of a radius that is written as it is
WIDEST = 8  # tokens whose logits stand side by side


def section(scope: Scope) -> Section:
    """Where the logit comes from."""
    return Section(
        "attribution",
        _("Where the logit comes from"),
        _(
            "Every part of the model adds to the stream, and the end of the model reads the "
            "stream: so the logit is a sum with a term for each part. Norms have the scale that "
            "this text gives them."
        ),
        tuple(_blocks(scope)),
    )


def _blocks(scope: Scope) -> Iterator[Block]:
    found = scope.found
    attribution = found.attribution
    if attribution is None:
        yield missing_told(scope)
        return
    yield _bars(scope, attribution)
    yield from limits_told(attribution)
    if not found.neurons and not found.keys and not scope.full:
        return
    if scope.full and found.against is not None and (table := _table(scope)):
        yield table


def missing_told(scope: Scope) -> Told:
    """Why there is nothing to explain."""
    missing = scope.found.missing
    return Told(_("the logits are not numbers") if missing is None else why_missing(missing))


def subject(scope: Scope) -> str:
    """What is explained, in signs: A − B, or A."""
    found = scope.found
    assert found.token is not None
    one = scope.token(found.token)
    return one if found.against is None else f"{one} − {scope.token(found.against)}"


def _bars(scope: Scope, attribution: Attribution) -> Bars:
    found = scope.found
    most = None if scope.every else MANY if scope.full else FEW
    shown = found.foremost(most)
    assert shown is not None
    sizes = [*shown.sizes, shown.rest_size]
    largest = max(map(abs, sizes), default=0.0)
    if not 0 < largest < float("inf"):
        largest = 1.0
    entries = [term.array[0, 0] for term in shown.terms]
    if shown.folded:
        entries.append(_only(attribution, shown.rest))
    if attribution.total is not None:
        entries.append(attribution.totals[0, 0])
    values = scope.numerals.column(entries)
    most_of_all = max(map(abs, shown.sizes), default=0.0)
    bars = [
        _term(scope, term, value, size / largest, abs(size) == most_of_all)
        for term, value, size in zip(shown.terms, values, shown.sizes, strict=False)
    ]
    if shown.folded:
        text = _("{count} more terms").format(count=whole(shown.folded))
        bars.append(Bar(text, values[len(bars)], shown.rest_size / largest, "rest"))
    if attribution.total is not None:
        bars.append(Bar(_("sum"), values[-1], 0.0, "sum"))
    where = scope.where(found.position)
    if found.against is None:
        title = _("the logit of {token} after position {place}")
        title = title.format(token=subject(scope), place=where)
    else:
        title = _("what tells {one} from {other} after position {place}: logit {difference}")
        title = title.format(
            one=scope.token(found.token or 0),
            other=scope.token(found.against),
            place=where,
            difference=subject(scope),
        )
    return Bars(title, tuple(bars), tuple(closing(scope, attribution)))


def _only(attribution: Attribution, value: Any) -> Any:
    """The one entry of a value of one row and one column."""
    return attribution.trace.numbers.entries(value)[0, 0]


def _term(scope: Scope, term: Term, value: str, size: float, largest: bool) -> Bar:
    found = scope.found
    assert found.token is not None
    return Bar(
        term.source.name,
        value,
        size,
        address=term.source.at("logits", found.position, found.token),
        about=about_source(scope, term.source),
        largest=largest,
    )


def about_source(scope: Scope, source: Source) -> str:
    """The token behind a source, where there is one."""
    tokens = scope.found.trace.tokens
    if source.kind == "token":
        return scope.token(tokens[scope.found.position])
    if source.kind == "key":
        return scope.token(tokens[source.index[-1]])
    return ""


def closing(scope: Scope, attribution: Attribution) -> Iterator[Told]:
    """What is not known of the terms, and how their sum closes."""
    unknown = [term for term in attribution.terms if term.missing is not None]
    if unknown:
        text = _("not known: {names}")
        yield Told(text.format(names=joined([term.source.name for term in unknown])), "open")
    yield Told(closing_text(scope, attribution), "closing")


def closing_text(scope: Scope, attribution: Attribution) -> str:
    """How the sum closes: what the trace has less what the terms add up to."""
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


def limits_told(attribution: Attribution) -> Iterator[Told]:
    """The norms that took 0/0 for 0, so that nothing gets past them."""
    if attribution.limits:
        names = [norm.removesuffix(".normalized") for norm, _position in attribution.limits]
        text = _(
            "{norms}: the row has no spread, and there is no eps; 0/0 counts as 0, and so does "
            "every term on its way through"
        )
        yield Told(text.format(norms=joined(names)))


def _largest(numbers: Any) -> Any:
    """The number that is furthest from 0."""
    return max(numbers.ravel(), key=lambda number: abs(float(number)))


def size_text(size: float) -> str:
    """A small size to two digits: 2.1e-6."""
    if not size:
        return "0"
    text = f"{size:.1e}"
    for long, short in ((".0e", "e"), ("e-0", "e-"), ("e+0", "e"), ("e+", "e")):
        text = text.replace(long, short)
    return short_float(size, 3) if 0.01 <= size < 1000 else text


def _table(scope: Scope) -> Grid | None:
    """The terms of several tokens' logits side by side, as far as a vocabulary is small."""
    whole_table = scope.found.attribution_table
    if whole_table is None or len(whole_table.columns) > WIDEST or whole_table.total is None:
        return None
    numerals = scope.numerals
    terms = [term for term in whole_table.terms if term.missing is None]
    if len(terms) > MANY and not scope.every:
        return None
    columns = [
        numerals.column([*(term.array[0, at] for term in terms), whole_table.totals[0, at]])
        for at in range(len(whole_table.columns))
    ]
    names = [*(term.source.name for term in terms), _("sum")]
    rows = list(zip(names, *columns, strict=True))
    return Grid(
        _("the logits themselves, term by term"),
        ("", *map(scope.token, whole_table.columns)),
        tuple(rows),
        (False, *[True] * len(columns)),
    )
