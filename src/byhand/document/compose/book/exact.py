"""The chapter on exact and named numbers: registers, boundaries and the way back.

It ends with the printed numbers of a document that do not follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.claims import claims_title
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.formulas import formula
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.passages import remarks_of
from byhand.document.compose.book.spoken_numbers import NEAR
from byhand.document.compose.tables import Index
from byhand.document.numerals import localised
from byhand.document.parts import Facts, LeftOut, Part, RegisterLine, RegisterMap
from byhand.document.parts.verdicts import VerdictTable
from byhand.expression import write
from byhand.language import _, amount, later
from byhand.tracing import Crossing
from byhand.worked import Worked

SLUG = "exact"
MOST_POSITIONS = 32
LONGEST_FORM = 40  # characters of a number in a sentence about a crossing
MOST_CROSSINGS = 24  # crossings listed one by one
_LONG_NUMBER = re.compile(r"[0-9]{8}")  # unreadably long


def page(edition: Edition) -> Page:
    """The page on exact and named numbers."""
    if edition.trace.numbers.uniform is not None:
        return Page(
            SLUG,
            _("What the document prints"),
            _("Every printed line about this model, judged from the lines above it."),
            (_claims(edition),),
        )
    return Page(
        SLUG,
        _("What is exact and what is named"),
        _("Which numbers are exact to the last digit, and how we know."),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    yield _registers(edition)
    yield _map(edition)
    yield from _crossings(edition)
    yield _ends(edition)
    if edition.checked:
        yield _claims(edition)


def _registers(edition: Edition) -> Passage:
    trace = edition.trace
    sentences = [
        _(
            "A fraction is exact: 3/2 is 3/2. Sums, products and quotients of fractions "
            "are fractions again, so most of a pass can be written down without losing "
            "anything."
        ),
        _(
            "e^1 and √2 are not fractions. Such a number is not rounded but named: "
            "it is written as what it is. Decimals beside it are proven to their "
            "last place."
        ),
    ]
    found = {r for worked in trace.values() if not worked.whole for r in worked.row_registers}
    if "enclosed" in found:
        sentences.append(
            _(
                "Some weights here are known only to the decimals that were printed. What is made "
                "of them is enclosed: proven to lie within ± of what is shown."
            )
        )
    facts = [
        (words.register_word(r), words.register_about(r).partition(": ")[2])
        for r in ("exact", "named", "enclosed", "rounded")
        if r in found
    ]
    show = (Facts(tuple(facts)),)
    return Passage(f"{SLUG}-registers", _("How a number is known"), tuple(sentences), show=show)


def _map(edition: Edition) -> Passage:
    trace = edition.trace
    places = range(min(len(trace.tokens), MOST_POSITIONS))
    crossed = {(c.address, c.position): c for c in trace.crossings}

    def word(address: str, place: int) -> str:
        crossing = crossed.get((address, place))
        return "" if crossing is None else "returns" if crossing.returns else "leaves"

    lines = tuple(
        RegisterLine(
            worked.address,
            tuple(
                worked.row_registers[place] if worked.row_registers else None for place in places
            ),
            tuple(word(worked.address, place) for place in places),
        )
        for worked in trace.values()
        if worked.step.position_axis is not None and not worked.step.of_source
    )
    hidden = len(trace.tokens) - len(places)
    left_out = (
        amount(hidden, later("1 later position"), later("{count} later positions"))
        if hidden
        else ""
    )
    sentences = [
        _(
            "One line per step, one column per position. A position can leave the exact "
            "numbers, and it can come back where the names cancel."
        )
    ]
    if missing := next(
        (worked.missing for worked in trace.values() if worked.missing is not None), None
    ):
        sentences.append(
            _("A question mark stands where a line is not known ({why}).").format(
                why=words.why_missing(missing)
            )
        )
    return Passage(
        f"{SLUG}-map",
        _("The pass as a map"),
        tuple(sentences),
        show=(RegisterMap(edition.showing.labels[: len(places)], lines, left_out),),
    )


def _crossings(edition: Edition) -> Iterator[Passage]:
    """A passage for each step where positions cross the boundary, in spine order."""
    found = edition.trace.crossings
    groups = [(a, list(some)) for a, some in groupby(found, key=lambda c: c.address)]
    for address, some in groups[:MOST_CROSSINGS]:
        yield _crossing(edition, address, some)
    if (more := len(groups) - MOST_CROSSINGS) > 0:
        yield _more_crossings(more)


def _more_crossings(more: int) -> Passage:
    text = _("At {count} more steps positions leave the exact numbers or come back; the map above "
             "shows them.")  # fmt: skip
    return Passage(f"{SLUG}-more", _("And so on"), (text.format(count=more),))


def _crossing(edition: Edition, address: str, some: Sequence[Crossing]) -> Passage:
    trace, showing = edition.trace, edition.showing
    worked = trace.steps[address]
    back = [c.position for c in some if c.returns]
    left = [c.position for c in some if not c.returns]
    position = (back or left)[0]
    axis = worked.step.position_axis or 0
    index = [0] * len(worked.step.shape)
    index[axis] = position
    if worked.step.axes[-1] in ("key", "source_key"):
        index[-1] = min(position, worked.step.shape[-1] - 1)
    sentences = []
    if left and any(read in trace.steps for read in worked.step.reads):
        sentences.append(_("Up to here everything in its row was a fraction."))
    if back:
        sentences.append(
            _(
                "Here the names are gone. What looked as if it could only be rounded is a fraction "
                "again, and stays one until the next boundary."
            )
        )
    sentences.append(
        _("`{address}` is {value}.").format(
            address=address + "[" + ",".join(map(str, index)) + "]",
            value=_in_full(showing, worked, tuple(index)),
        )
    )
    law = formula(showing, worked, tuple(index))
    crossing = back or left
    names = words.joined([showing.position_of(worked.step, place) for place in crossing])
    single = len(crossing) == 1
    if back:
        one, many = _("Back to exact: position {which}"), _("Back to exact: positions {which}")
    else:
        one, many = _("The boundary: position {which}"), _("The boundary: positions {which}")
    title = one if single else many
    return Passage(
        f"{SLUG}-{address.replace('.', '-')}",
        title.format(which=names),
        tuple(sentences),
        lit=(address,),
        formulas=() if law is None else (law,),
        show=tuple(showing.tables(worked)) if edition.everything else (),
        remarks=tuple(remarks_of(edition, [worked])),
    )


def _in_full(showing: Showing, worked: Worked, index: Index) -> str:
    """An entry by its form, even a long one, since the form matters here."""
    form = showing.cell(worked, index).form
    if form is None or len(text := write(form)) > LONGEST_FORM or _LONG_NUMBER.search(text):
        return showing.said(worked, index)
    return localised(text)


def _ends(edition: Edition) -> Passage:
    """The passage on how far each position stays exact, and its last value."""
    trace, showing = edition.trace, edition.showing
    sentences = []
    logits = trace.steps["logits"]
    for place in range(min(len(trace.tokens), MOST_POSITIONS)):
        crossings = [c for c in trace.crossings if c.position == place and not c.of_source]
        name = showing.position(place)
        known = logits.missing is None
        row = showing.row_said(logits, (place,)) if known else "?"
        before = [c for c in crossings if c.address not in ("probs", "loss")]
        if known and logits.row_registers[place] == "exact":
            if not before:
                text = _("Position {which} is exact all the way to its logits, {row}.")
            elif NEAR in row:
                text = _(
                    "Position {which} leaves the exact numbers, comes back, and ends with exact "
                    "logits, {row}."
                )
            else:
                text = _(
                    "Position {which} leaves the exact numbers, comes back, and ends with logits "
                    "that are exactly {row}."
                )
            sentences.append(text.format(which=name, row=row))
        elif known:
            sentences.append(
                _("Position {which} ends with named logits: {row}.").format(which=name, row=row)
            )
    show: list[Part] = []
    if (hidden := len(trace.tokens) - MOST_POSITIONS) > 0:
        show.append(
            LeftOut(amount(hidden, later("1 later position"), later("{count} later positions")))
        )
    if edition.everything:
        show += showing.tables(logits)
    return Passage(
        f"{SLUG}-ends",
        _("How each position ends"),
        tuple(sentences) or (_("The logits could not be worked out."),),
        show=tuple(show),
    )


def _claims(edition: Edition) -> Passage:
    """The passage with every printed number of a document, marked."""
    lines = edition.checked
    wrong = [line for line in lines if line.verdict in ("ERROR", "UNSUPPORTED")]
    carried = [line for line in lines if line.verdict == "CARRIED"]
    sentences = [
        _(
            "{source} prints {count} lines about this model; each is judged from the lines above "
            "it."
        ).format(source=edition.claims_from, count=len(lines))
    ]
    if wrong:
        text = (
            _("{count} of them do not follow")
            if len(wrong) > 1
            else _("One of them does not follow")
        )
        first = text.format(count=len(wrong))
        sentences.append(f"{first}: " + words.joined([f"`{line.address}`" for line in wrong]) + ".")
    else:
        sentences.append(_("All of them follow."))
    if carried:
        sentences.append(
            _(
                "What is built on an earlier error and follows from it is carried forward: {lines}."
            ).format(lines=words.joined([f"`{line.address}`" for line in carried]))
        )
    return Passage(
        f"{SLUG}-claims",
        _("What the document prints"),
        tuple(sentences),
        show=(VerdictTable(claims_title(edition), lines),),  # the table and the steps explain it
    )
