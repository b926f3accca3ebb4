"""Words that pages and paper have alike: sentences, heads of tables, cells, what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from byhand.document.mathematics import in_short
from byhand.document.numerals import localised, short_number, written, written_cell
from byhand.document.parts import (
    Answer,
    AnswerField,
    AnswerSheets,
    CaseTable,
    Column,
    Grid,
    LensTable,
    NumberTable,
    Stop,
    StreamLine,
    Terms,
)
from byhand.expression import write
from byhand.language import _, amount, later

SETTLED = "◂"
LONGEST_BELOW, MOST_BELOW = 60, 24  # characters of a form below a table, and how many of them
ANSWERS = {"proven": "✓", "refuted": "✗", "open": "?"}
MARKS = {
    "leaves": "↗",
    "returns": "↙",
    "stops": "■",
    "limit": "!",
    "open": "?",
    "claim": "✗",
    "carried": "→",
    "closing": "=",
}


# ------------------------------------------------------------------ sentences


def sentence(text: str) -> str:
    """With a capital letter, as sentences on a page begin; addresses stay as they are."""
    first = text.split(" ", 1)[0]
    as_it_is = first == "byhand" or set(".[`") & set(first.rstrip("."))
    return text if as_it_is else text[:1].upper() + text[1:]


def told(text: str) -> str:
    """A sentence of a terminal as a page has it: a capital, a full stop, numbers as written."""
    stopped = text if text.endswith((".", ":", "?", "…")) else text + "."
    return sentence(written(stopped))


def defined_words() -> str:
    """What stands before a number with letters in it."""
    return _("Written as what it is, with a letter for each number that has a name of its own:")


def left_out_words(what: str) -> str:
    """What a table or a picture does not show."""
    return _("left out: {what}").format(what=what)


def exact_forms(table: NumberTable) -> str:
    """On paper, below a table of decimals: what these numbers are exactly, as far as it fits."""
    numbers = [n for row in table.rows for n in row.numbers if in_short(n.cell)]
    forms = [
        (n.address, write(n.cell.form).replace("-", "−"))
        for n in numbers
        if n.cell.form is not None
    ]
    short = [each for each in forms if len(each[1]) <= LONGEST_BELOW][:MOST_BELOW]
    if not short:
        return ""
    name = table.address.partition("[")[0]
    said = [f"{where.removeprefix(name)} = {form}" for where, form in short]
    if more := len(forms) - len(short):
        said.append(amount(more, later("1 more is too long"), later("{count} more are too long")))
    return _("exactly: {forms}").format(forms="; ".join(said))


def way_title(line: StreamLine) -> str:
    """What the way of one position along the stream is called."""
    return _("The path of position {label}").format(label=line.label)


def length_words(stop: Stop) -> str:
    """How long the vector is at a stop."""
    return _("length {size}").format(size=short_number(stop.size))


# ------------------------------------------------------------------ tables


def prediction_heads() -> tuple[str, ...]:
    """Above the next tokens."""
    return _("after"), _("next token"), ""


def claim_heads() -> tuple[str, ...]:
    """Above what a document prints."""
    return _("verdict"), _("where"), _("printed"), _("follows")


def term_columns(part: Terms) -> tuple[Column, ...]:
    """Of a sum: the term, its numbers and a bar."""
    numbers = (*part.tokens, *([part.compared] if part.compared else ()))
    return Column(_("term")), *_numbers(numbers), Column("")


def lens_columns(part: LensTable) -> tuple[Column, ...]:
    """Of the lens: the step, who leads, how likely with a bar, and the logits compared."""
    places = [_("place of {token}").format(token=part.tokens[0])] if part.placed else []
    first = (Column(_("after")), Column(_("leads")), *_numbers([_("probability")]), Column(""))
    return *first, *_numbers((*part.tokens, *places))


def answer_words(part: Answer) -> str:
    """The sentence of an answer with its numbers as the language writes them; texts of a
    counterexample, which may look like numbers, stay as they are."""
    return sentence(part.sentence) if part.kind == "refuted" else told(part.sentence)


def edges(part: CaseTable, row: int, column: int) -> Iterator[str]:
    """The sides of a square at which its case ends: top, left, bottom, right."""
    own = part.rows[row][column]
    for side, down, across in (
        ("top", -1, 0),
        ("left", 0, -1),
        ("bottom", 1, 0),
        ("right", 0, 1),
    ):
        at, place = row + down, column + across
        inside = 0 <= at < len(part.rows) and 0 <= place < len(part.heads)
        beside = part.rows[at][place] if inside else None
        if beside is None or (beside.case, beside.kind) != (own.case, own.kind):
            yield f"ends-{side}"


def _numbers(heads: Iterable[str]) -> Iterable[Column]:
    return (Column(head, "number") for head in heads)


def cell_words(column: Column, text: str) -> tuple[str, str]:
    """How a cell of a grid is written (plain, address, share or prose), and its text; what is no
    address among addresses is in words."""
    match column.kind:
        case "number":
            return "plain", localised(text)
        case "address" if text and " " not in text:
            return "address", text
        case "formula":
            return "plain", text
        case "share" if text:
            return "share", text
        case _:
            return "prose", written_cell(text)


# ------------------------------------------------------------------ exercises on paper

ROOM = "____________"


def field_facts(part: AnswerField) -> tuple[tuple[str, str], ...]:
    """Where an answer belongs, and room to write it."""
    room = "   ".join([ROOM] * len(part.right))
    return (_("address"), f"`{part.address}`"), (_("your answer"), room)


def sheets_grid(part: AnswerSheets) -> Grid:
    """The answer sheets, each with the command that marks it."""
    rows = tuple((f"`{one.file}`", f"`{one.command}`") for one in part.sheets)
    return Grid("", (Column(_("sheet")), Column(_("command"))), rows)
