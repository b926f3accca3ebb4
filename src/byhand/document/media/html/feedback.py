"""Feedback on worksheets as pages: one page for each student, and one for the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.prose import prose
from byhand.document.media.html.standalone import Frame
from byhand.document.media.wording import told as as_sentence
from byhand.document.parts.feedback import Feedback, FeedbackLine
from byhand.document.parts.verdicts import ClassTable
from byhand.language import _

STYLES = ("report.css", "feedback.css")


def feedback_page(part: Feedback, back: str = "") -> str:
    """One student's page; `back` is the file of the class's page."""
    title = _("{student}: worksheet marked").format(student=part.student)
    frame = Frame(title, STYLES, kind="feedback")
    said = [element("p", prose(text), class_="result") for text in part.said]
    total = " · ".join(filter(None, (part.marks, part.percent)))
    header = element(
        "header",
        element("h1", element("small", part.about), part.student),
        element("p", _("Marks: {marks}").format(marks=total), class_="total"),
        *said,
    )
    table = element(
        "table",
        element("caption", _("Every line"), class_="sr"),
        element("thead", element("tr", *(element("th", head, scope="col") for head in _heads()))),
        element("tbody", *(row for line in part.lines for row in _rows(line))),
        class_="lines",
    )
    main = element("main", element("div", table, class_="scroll", tabindex=0, role="region",
                                   aria_label=_("Every line")))  # fmt: skip
    foot = element("p", element("a", _("to the class"), href=back), class_="back") if back else ""
    return frame.page((header, main, element("footer", foot)))


def _heads() -> tuple[str, ...]:
    return _("line"), _("you wrote"), _("verdict"), _("marks")


def _rows(line: FeedbackLine) -> Iterator[Markup]:
    """The line, and below it what is said of it."""
    kind = line.verdict.lower()
    sign = element("span", line.sign, class_="sign", aria_hidden="true")
    where = (
        f"{line.number}. {line.named} ",
        element("code", line.address, class_="quiet"),
    )
    yield element(
        "tr",
        element("th", *where, scope="row"),
        element("td", line.wrote, class_="n"),
        element("td", sign, " ", line.word, class_="n"),
        element("td", line.marks, class_="mark"),
        class_=kind,
    )
    told = [element("p", prose(as_sentence(text))) for text in line.told]
    if line.expected:
        text = _("From your own lines above: {numbers}").format(numbers=line.expected)
        told.append(element("p", text))
    if told:
        yield element("tr", element("td", *told, colspan=4), class_=f"{kind} why")


def class_page(table: ClassTable, files: Sequence[str], about: Mapping[str, str]) -> str:
    """The class on one page: each student's result with a link, and the commonest mistakes.

    `files` are the students' pages in the order of the rows; `about` are further files with words.
    """
    frame = Frame(_("The class: worksheets marked"), STYLES, kind="feedback")
    rows = (
        element(
            "tr",
            element("th", element("a", row.student, href=file), scope="row"),
            element("td", row.marks, class_="n"),
            element("td", row.share, class_="n"),
            *(element("td", sign, class_="at") for sign in row.signs),
        )
        for row, file in zip(table.rows, files, strict=True)
    )
    heads = [element("th", head, scope="col") for head in (_("student"), _("marks"), "%")]
    for number in range(1, len(table.lines) + 1):
        heads.append(element("th", str(number), scope="col", class_="at"))
    main = [
        element(
            "div",
            element(
                "table",
                element("caption", _("The class"), class_="sr"),
                element("thead", element("tr", *heads)),
                element("tbody", *rows),
                class_="class",
            ),
            class_="scroll", tabindex=0, role="region", aria_label=_("The class"),
        ),
        element("p", "   ".join(table.legend), class_="quiet small"),
    ]  # fmt: skip
    if table.mistakes:
        main.append(element("h2", _("The commonest mistakes")))
        lines = (
            element("li", said, " ", element("span", who, class_="quiet"))
            for said, who in table.mistakes
        )
        main.append(element("ul", *lines))
    main += _lines(table)
    links = (element("p", element("a", said, href=file)) for file, said in about.items())
    return frame.page(
        (
            element("header", element("h1", table.title)),
            element("main", *main),
            element("footer", *links),
        )
    )


def _lines(table: ClassTable) -> Iterator[Markup]:
    """Every line with its number, its name, and how many have it right."""
    if not table.called:
        return
    yield element("h2", _("The lines"))
    rows = (
        element(
            "tr",
            element("th", f"{number}. {name} ", element("code", line, class_="quiet"), scope="row"),
            element(
                "td", _("{count} of {all}").format(count=right, all=len(table.rows)), class_="n"
            ),
        )
        for number, (name, line, right) in enumerate(
            zip(table.called, table.lines, table.right, strict=True), 1
        )
    )
    heads = (element("th", head, scope="col") for head in (_("line"), _("right")))
    yield element(
        "table",
        element("caption", _("The lines"), class_="sr"),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
        class_="lines",
    )
