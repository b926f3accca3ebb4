"""A book as files: an index and one self-contained page for each chapter.

This module writes everything around the passages: contents, navigation, keys, and the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from byhand.document import words
from byhand.document.book import MOST_EMBEDDED, Book, Page, Passage, shown_by
from byhand.document.media.html import exercises
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.markup import Markup, element, opening
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.passages import passage_body
from byhand.document.media.html.prose import left_out, prose
from byhand.document.media.html.rechecking import Workings, data_script, numbers_in, slack_of
from byhand.document.media.html.standalone import Frame, legend
from byhand.document.media.html.tables import facts
from byhand.document.parts import AnswerField, Number
from byhand.drafts import write_all
from byhand.language import _, speaking

INDEX = "index.html"
EXPLAINED = "explained"  # the page with bars to both sides, and drawings
EXACT = "exact"  # the page where forms are the matter, so that none is folded
SCALE, WIDEST = 1.18, 490  # of the figure, on a wide screen


def write_book(book: Book, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Writes the pages of a book into a folder and returns their paths, the index first.

    Each file is complete before it gets its name, so a reader sees the old page or the new one.
    """
    return write_all({name: text.encode() for name, text in pages(book).items()}, Path(folder))


def pages(book: Book) -> dict[str, str]:
    """File name → HTML of every page, the index first."""
    workings = Workings(book)
    with speaking(book.language):
        found = {INDEX: index_of(book, workings)}
        for place, page in enumerate(book.pages):
            found[f"{page.slug}.html"] = page_of(book, page, place, workings)
    return found


def index_of(book: Book, workings: Workings | None = None) -> str:
    """The first page of a book, in the language spoken."""
    return _Sheet(book, workings or Workings(book)).index()


def page_of(book: Book, page: Page, place: int, workings: Workings | None = None) -> str:
    """One page of a book, in the language spoken; one that would be too large is brief."""
    workings = workings or Workings(book)
    text = _Sheet(book, workings, page.slug).page(page, place)
    if len(text.encode()) > MOST_EMBEDDED:
        text = _Sheet(book, workings, page.slug, brief=True).page(page, place)
    return text


class _Sheet:
    """One page being written; with `brief`, numbers come without their workings."""

    def __init__(
        self, book: Book, workings: Workings, slug: str = "", *, brief: bool = False
    ) -> None:
        self.book = book
        self.workings = workings
        self.brief = brief
        maths = Mathml(_("."), finite=book.decimals)
        self.pen = _Brief(maths) if brief else Inscriber(maths)
        self.pen.folds = slug != EXACT
        self.figures = Figures(book.spine, book.tokens, book.decimals)
        self.style = f"--figure:{min(round(self.figures.width * SCALE), WIDEST)}px"

    # ------------------------------------------------------------------ the index

    def index(self) -> str:
        """The first page: a description of the book, its contents, and the whole pass as links."""
        return self.framed(self.book.title, INDEX, self._index())

    def _index(self) -> Iterator[Markup]:
        book = self.book
        contents = (
            element(
                "li",
                element(
                    "a",
                    element("strong", page.title),
                    element("small", prose(page.aside)) if page.aside else "",
                    element("span", prose(page.intro)),
                    href=f"{page.slug}.html",
                ),
            )
            for page in book.pages
        )
        notes = [element("p", prose(words.told(note)), class_="note") for note in book.notes]
        if book.claims_checked:
            text = _("Checked against {document}: numbers that do not follow are marked ✗.")
            notes.append(element("p", text.format(document=book.claims_checked), class_="note"))
        where = _("a click leads to where it is worked out")
        caption = element("figcaption", f"{_('The whole pass')}: {where}")
        listed = element("ol", *contents)
        cover = element(
            "div",
            self.chapter(f"byhand · {book.model}", book.title, words.told(book.about)),
            facts(book.facts),
            element("nav", element("h2", _("Contents")), listed, class_="contents"),
            *notes,
            class_="cover",
        )
        drawn = self.figures.linked(self.links())
        figure = element("figure", drawn, caption, walk(), class_="whole walked")
        yield element("main", cover, figure, id="main", class_="index", style=self.style)
        yield from self.foot()

    def links(self) -> Mapping[str, str]:
        """Step → its passage: the one with the fewest steps."""
        found: dict[str, tuple[int, str]] = {}
        for page in self.book.pages:
            for passage in page.passages:
                for step in () if passage.looks_back or passage.backward else passage.lit:
                    here = (len(passage.lit), f"{page.slug}.html#{passage.id}")
                    found[step] = min(found.get(step, here), here, key=lambda pair: pair[0])
        return {step: link for step, (_count, link) in found.items()}

    # ------------------------------------------------------------------ a page

    def page(self, page: Page, place: int) -> str:
        """A chapter."""
        title = " · ".join(dict.fromkeys((page.title, self.book.title)))  # a single page has one
        return self.framed(title, page.slug, self._page(page, place))

    def _page(self, page: Page, place: int) -> Iterator[Markup]:
        count = len(self.book.pages)
        kicker = page.kicker or _("Page {number} of {count}").format(number=place + 1, count=count)
        yield opening("main", id="main", style=self.style)
        yield self.chapter(kicker, page.title, page.intro, self.badge())
        if self.brief:
            worked = (n.address for n in numbers_in(page) if n.working is not None)
            example = next((a for a in worked if not a.startswith("explain.")), None)
            text = _(
                "The workings of single numbers are left out here: "
                "with them the page would be too large."
            )
            yield left_out(text, shown_by(self.book.command, example) if example else "")
        for number, passage in enumerate(page.passages, page.first):
            yield from self.passage(passage, f"{place + 1}.{number}")
        yield Markup("</main>")
        yield element("nav", *self.turn(place), class_="turn", aria_label=_("turn the page"))
        yield from self.foot()
        lines = [] if self.brief else self.workings.of(page)
        yield data_script(lines, slack_of(self.book.numbers))

    def passage(self, passage: Passage, number: str) -> Iterator[Markup]:
        """A section: its heading, its contents, and the figure with its stations marked."""
        name = passage.id
        yield opening(
            "section",
            class_="passage",
            id=name,
            tabindex=-1,
            aria_labelledby=f"{name}-title",
            data_lit=" ".join(self.book.spine.lit(passage.lit)),
        )
        link = element("a", number, class_="number", href=f"#{name}")
        yield element("h2", link, " ", passage.title, id=f"{name}-title")
        yield opening("div", class_="text")
        yield from passage_body(passage, self.pen)
        yield Markup("</div>")
        if passage.lit:
            drawn = self.figures.of(
                passage.lit, looks_back=passage.looks_back, backward=passage.backward
            )
            yield element("figure", drawn, class_="whole")
        yield Markup("</section>")

    def chapter(self, kicker: str, title: str, intro: str, badge: str = "") -> Markup:
        """The head of a page."""
        return element(
            "header",
            element("p", kicker, class_="kicker"),
            element("h1", title),
            element("p", prose(intro), class_="intro"),
            badge,
            class_="chapter",
        )

    def badge(self) -> Markup:
        """The place for the script's result, with its words in the book's language."""
        return element(
            "p",
            id="badge",
            role="status",
            hidden=True,
            data_agree=_("{count} numbers on this page worked out again: all agree"),
            data_differ=_("{wrong} of {count} numbers on this page do not agree"),
        )

    # ------------------------------------------------------------------ around it

    def framed(self, title: str, slug: str, body: Iterator[Markup]) -> str:
        """The whole page around its body: head, navigation, script."""
        styles = ("book.css", "explained.css") if slug == EXPLAINED else ("book.css",)
        scripts: tuple[str, ...] = ("book.js",)
        if slug != INDEX and asks(self.book.page(slug)):
            styles, scripts = (*styles, exercises.STYLE), (*scripts, exercises.SCRIPT)
        frame = Frame(title, styles, ("main", _("to the text")), scripts, "no-script")
        return frame.page((self.top(slug), *body))

    def top(self, slug: str) -> Markup:
        """The links to every page."""
        items = (
            element(
                "li",
                element(
                    "a",
                    element("span", str(place), class_="place"),
                    " ",
                    element("span", page.title, class_="title"),
                    href=f"{page.slug}.html",
                    aria_current="page" if page.slug == slug else None,
                    title=page.title,
                ),
            )
            for place, page in enumerate(self.book.pages, 1)
        )
        book = element("a", self.book.title, class_="book", href=INDEX)
        every = element("nav", element("ol", *items), aria_label=_("pages"))
        return element("header", book, every, class_="top")

    def turn(self, place: int) -> Iterator[Markup]:
        """The links to the previous and the next page."""
        every = self.book.pages
        if place > 0:
            before = every[place - 1]
            last = before.passages[-1].id if before.passages else "main"
            file = f"{before.slug}.html"
            yield element("a", f"← {before.title}", rel="prev", href=file, data_last=last)
        else:
            yield element("a", f"← {_('Contents')}", rel="prev", href=INDEX)
        if place + 1 < len(every):
            after = every[place + 1]
            yield element("a", f"{after.title} →", rel="next", href=f"{after.slug}.html")

    def foot(self) -> Iterator[Markup]:
        """How to read the numbers, the keys, and the shared drawings of the figures."""
        book = self.book
        keys = _(
            "`→` or `j` next passage, `←` or `k` the one before; "
            "a number opens its working, `Esc` closes it."
        )
        pressed = Markup(str(prose(keys)).replace("code>", "kbd>"))
        yield element(
            "footer",
            legend(book.registers) if book.registers else "",
            element("section", element("h2", _("Keys")), element("p", pressed), class_="keys"),
            element("p", f"{book.numbers} · byhand", class_="made"),
            class_="bottom",
        )
        yield self.figures.drawn()


def asks(page: Page) -> bool:
    """Whether a page has exercises."""
    return any(isinstance(part, AnswerField) for one in page.passages for part in one.show)


def walk() -> Markup:
    """The button that walks the figure station by station, and the place where it says which.

    Whoever wants less motion gets a step with each press, and nothing moves by itself.
    """
    return element(
        "div",
        element(
            "button",
            _("Walk through the pass"),
            type="button",
            data_play=_("Walk through the pass"),
            data_pause=_("Pause"),
            data_step=_("Next station"),
        ),
        element("p", role="status", data_told=_("Station {place} of {count}: {station}")),
        class_="walk",
    )


class _Brief(Inscriber):
    """Numbers without their workings, for a page that would be too large with them."""

    def popover(self, name: str, number: Number, anchor: str) -> Markup:
        """The popover of a number, without its working."""
        return super().popover(name, replace(number, working=None), anchor)
