"""The section on the final stream: what each part of the model left in it, entry by entry.

Of a wide stream each part is told by its length and by how far it reaches along the stream: these
reaches add up to the stream's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from byhand.document.compose.explanation.attribution import about_source, closing, limits_told
from byhand.document.compose.explanation.numerals import short_float
from byhand.document.compose.explanation.parts import Block, Grid, Section, Told
from byhand.document.compose.explanation.scope import Scope
from byhand.document.words import whole, why_missing
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.attribution import Attribution

WIDEST = 8  # entries that stand side by side
MANY = 40  # terms that are shown
DIGITS = 4  # of a rounded length


def section(scope: Scope) -> Section:
    """What the stream is made of at its end."""
    return Section(
        "stream",
        _("What the stream is made of"),
        _(
            "What enters the final norm and the unembedding, as the sum of what every part of the "
            "model added to it."
        ),
        tuple(_blocks(scope)),
    )


def _blocks(scope: Scope) -> Iterator[Block]:
    attribution = scope.found.stream
    if attribution is None:
        missing = scope.found.missing
        yield Told(_("the stream is not known") if missing is None else why_missing(missing))
        return
    narrow = len(attribution.columns) <= WIDEST
    yield _entries(scope, attribution) if narrow else _reaches(scope, attribution)
    yield from closing(scope, attribution)
    yield from limits_told(attribution)


def _entries(scope: Scope, attribution: Attribution) -> Grid:
    """Every entry of a narrow stream."""
    terms = [term for term in attribution.terms if term.missing is None]
    totals = [] if attribution.totals is None else [attribution.totals[0]]
    columns = [
        scope.numerals.column([row[at] for row in (*(term.array[0] for term in terms), *totals)])
        for at in range(len(attribution.columns))
    ]
    names = [
        *(_name(scope, attribution, at) for at in range(len(terms))),
        *[_("sum")] * len(totals),
    ]
    rows = tuple(zip(names, *columns, strict=True))
    return Grid(
        _title(scope),
        ("", *(f"[{entry}]" for entry in attribution.columns)),
        rows,
        (False, *[True] * len(columns)),
    )


def _reaches(scope: Scope, attribution: Attribution) -> Grid:
    """Of each part its length, and how far it goes along the stream; the largest first."""
    lengths, along = attribution.reaches
    order = np.argsort(-np.abs(along), kind="stable").tolist()
    shown = order if scope.every else order[:MANY]
    rows = [
        (_name(scope, attribution, at), _short(lengths[at]), _short(along[at], sign=True))
        for at in shown
    ]
    rest = order[len(shown) :]
    if rest:
        text = _("{count} more terms").format(count=whole(len(rest)))
        rows.append((text, "", _short(float(along[rest].sum()), sign=True)))
    rows.append((_("sum"), "", _short(float(along.sum()), sign=True)))
    return Grid(
        _title(scope),
        ("", _("length"), _("along the stream")),
        tuple(rows),
        (False, True, True),
        note=_("what lies along the stream adds up to its length; both are rounded"),
    )


def _title(scope: Scope) -> str:
    return _("the final stream at position {place}").format(place=scope.where(scope.found.position))


def _name(scope: Scope, attribution: Attribution, at: int) -> str:
    term = [term for term in attribution.terms if term.missing is None][at]
    about = about_source(scope, term.source)
    return f"{term.source.name}  {about}" if about else term.source.name


def _short(value: float, *, sign: bool = False) -> str:
    text = short_float(value, DIGITS)
    return f"+{text}" if sign and value > 0 else text
