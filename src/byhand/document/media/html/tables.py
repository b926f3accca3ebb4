"""Tables to read: next tokens, registers, claims; and facts.

Tables of numbers with workings are in `parts`, grids in `explained`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from byhand.document.media.html.explained import bar
from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.numbers import Inscriber, focusable, register_mark
from byhand.document.media.html.prose import address, also_left_out, prose
from byhand.document.media.wording import MARKS, claim_heads, prediction_heads, sentence
from byhand.document.numerals import localised
from byhand.document.parts import Candidates, Predictions, RegisterMap
from byhand.document.parts.verdicts import VerdictLine, VerdictTable
from byhand.language import _


def table(kind: str, label: str, heads: Iterable[str], rows: Iterable[Markup]) -> Markup:
    """A table with its column heads; its label is for screen readers only."""
    above = (element("th", head, scope="col") if head else element("td") for head in heads)
    inside = element(
        "table",
        element("caption", label, class_="sr"),
        element("thead", element("tr", *above)),
        element("tbody", *rows),
    )
    return element("div", inside, **focusable(f"table {kind}", label))


def predictions(part: Predictions, pen: Inscriber) -> Iterator[Markup]:
    """The next token after each position, with a link to its line."""
    rows = (
        element(
            "tr",
            element("th", found.label, scope="row"),
            element("td", found.token or "?", class_="token"),
            element(
                "td",
                element("span", "✓" if found.proven else "", class_="proven", aria_hidden="true"),
                " ",
                prose(sentence(found.sentence)),
            ),
            id=pen.here(f"{part.address}[{found.position}]"),
        )
        for found in part.predictions
    )
    yield table("predictions", part.address, prediction_heads(), rows)
    yield also_left_out(part.left_out)


def candidates(part: Candidates, pen: Inscriber) -> Iterator[Markup]:
    """The candidates for the next word, with bars for their probabilities."""
    aim = Markup(" ") + element("span", _("target"), class_="aim")
    rows = (
        element(
            "tr",
            element("th", found.token, aim if found.target else "", scope="row"),
            pen.number(found.logit),
            pen.number(found.probability),
            bar(found.share),
            class_="target" if found.target else None,
        )
        for found in part.candidates
    )
    heads = (_("word"), _("logit"), _("probability"), "")
    yield table("candidates", _("after {label}").format(label=part.label), heads, rows)
    yield also_left_out(part.left_out)


def register_map(part: RegisterMap, pen: Inscriber) -> Iterator[Markup]:
    """The registers of the whole pass: a row for each step, a column for each position."""
    rows = (
        element(
            "tr",
            element("th", address(line.address), scope="row"),
            *map(_crossing, line.registers, line.crossings),
        )
        for line in part.lines
    )
    yield table("registers", _("registers"), (_("step"), *part.labels), rows)
    yield also_left_out(part.left_out)


def _crossing(register: str | None, crossing: str) -> Markup:
    """The register of a step at a position, and whether it changes there."""

    def seen(sign: str, kind: str | None = None) -> Markup:
        return element("span", sign, class_=kind, aria_hidden="true")

    if register is None:
        return element(
            "td", seen("?"), element("span", _("unknown"), class_="sr"), class_="unknown"
        )
    shown = [seen("■", "square")] if register == "exact" else []
    shown.append(register_mark(register))
    if crossing:
        crossed = {"leaves": _("leaves the exact numbers"), "returns": _("is exact again")}
        told = element("span", " ", crossed[crossing], class_="sr")
        shown += [seen(MARKS.get(crossing, ""), "crossing"), told]
    return element("td", *shown, class_=f"{register} {crossing}")


def checked_table(part: VerdictTable, pen: Inscriber) -> Iterator[Markup]:
    """What a document prints, line by line, with the verdict."""
    yield table("claims", part.title, claim_heads(), map(_checked, part.lines))


def _checked(line: VerdictLine) -> Markup:
    _verdict, _where, printed, follows = claim_heads()
    sign = element("span", line.sign, class_="sign")
    row = element(
        "tr",
        element("td", sign, " ", line.word, class_="verdict"),
        element("th", address(line.address), scope="row"),
        element("td", localised(line.claimed), data_head=printed),
        element("td", localised(line.expected), data_head=follows if line.expected else None),
        class_=line.verdict.lower(),
    )
    if not line.told:
        return row
    told = [element("p", prose(sentence(text))) for _kind, text in line.told]
    if line.source:
        told.append(element("p", line.source, class_="quiet"))
    return row + element("tr", element("td"), element("td", *told, colspan=3), class_="told")


def facts(pairs: Iterable[tuple[str, str]], title: str = "") -> Markup:
    """Facts with their names, under a title."""
    listed = (element("div", element("dt", name), element("dd", prose(f))) for name, f in pairs)
    above = element("p", title) if title else Markup()
    return above + element("dl", *listed, class_="facts")
