"""A book as files: an index and one page a chapter, each standing by itself.

Here is what surrounds the passages: head, contents, legend, foot, and the writing of the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

from byhand.document import words
from byhand.document.book import MOST_EMBEDDED, Book, Page, Passage
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.passages import passage_body
from byhand.document.media.html.prose import left_out, prose, sentence
from byhand.document.media.html.rechecking import Workings, data_script, numbers_in, slack_of
from byhand.document.media.html.style import style, text_of
from byhand.document.media.html.tables import facts
from byhand.document.parts import Number
from byhand.document.words import SIGNS
from byhand.drafts import write_all
from byhand.language import _, speaking

INDEX = "index.html"
EXPLAINED = "explained"  # the page with bars to both sides, and drawings
SCALE, WIDEST = 1.18, 490  # of the figure, on a wide screen


def write_book(book: Book, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Writes the pages of a book into a folder and returns their paths, the index first.

    Each file is complete before it takes its name, so whoever reads meanwhile sees the old page
    or the new one.
    """
    return write_all({name: text.encode() for name, text in pages(book).items()}, Path(folder))


def pages(book: Book) -> dict[str, str]:
    """File name → HTML of every page, the index first."""
    workings = Workings(book)
    with speaking(book.language):
        found = {INDEX: _joined(_Sheet(book, workings).index())}
        for place, page in enumerate(book.pages):
            found[f"{page.slug}.html"] = _fitted(book, workings, page, place)
    return found


def _fitted(book: Book, workings: Workings, page: Page, place: int) -> str:
    """The page, without the workings of its numbers where it would be too large with them."""
    text = _joined(_Sheet(book, workings).page(page, place))
    if len(text.encode()) <= MOST_EMBEDDED:
        return text
    return _joined(_Sheet(book, workings, brief=True).page(page, place))


def _style(slug: str) -> str:
    """How a page looks."""
    names = ("book.css", "explained.css") if slug == EXPLAINED else ("book.css",)
    return style(*names)


def _joined(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


class _Sheet:
    """One page as it is written; `brief`: the numbers come without their workings."""

    def __init__(self, book: Book, workings: Workings, brief: bool = False) -> None:
        self.book = book
        self.workings = workings
        self.brief = brief
        maths = Mathml(_("."), finite=workings.decimal)
        self.pen = _Brief(maths) if brief else Inscriber(maths)
        self.figures = Figures(book.spine, book.tokens, workings.decimal)
        self.style = f'style="--figure:{min(round(self.figures.width * SCALE), WIDEST)}px"'

    # ------------------------------------------------------------------ the index

    def index(self) -> Iterator[str]:
        book = self.book
        yield from self.head(book.title, "index")
        yield '<main id="main" class="index" ' + self.style + ">"
        yield '<div class="cover"><header class="chapter">'
        model = escape(book.model)
        yield f'<p class="kicker">byhand · {model}</p><h1>{escape(book.title)}</h1>'
        yield f'<p class="intro">{prose(words.told(book.about))}</p></header>'
        yield from facts(book.facts)
        yield '<nav class="contents"><h2>' + escape(_("Contents")) + "</h2><ol>"
        for page in book.pages:
            yield (
                f'<li><a href="{escape(page.slug)}.html"><strong>{escape(page.title)}</strong>'
                f"<span>{prose(page.intro)}</span></a></li>"
            )
        yield "</ol></nav>"
        for note in book.notes:
            yield f'<p class="note">{prose(words.told(note))}</p>'
        if book.claims_checked:
            text = _("Checked against {document}: numbers that do not follow are marked ✗.")
            yield f'<p class="note">{escape(text.format(document=book.claims_checked))}</p>'
        yield "</div>"
        title = escape(_("The whole pass"))
        yield f'<figure class="whole">{self.figures.linked(self.links())}'
        where = escape(_("a click leads to where it is worked out"))
        yield f"<figcaption>{title}: {where}</figcaption></figure></main>"
        yield from self.foot(None)

    def links(self) -> Mapping[str, str]:
        """Where each step is worked out: the shortest of the passages that light it."""
        found: dict[str, tuple[int, str]] = {}
        for page in self.book.pages:
            for passage in page.passages:
                for step in () if passage.looks_back else passage.lit:
                    here = (len(passage.lit), f"{page.slug}.html#{passage.id}")
                    found[step] = min(found.get(step, here), here, key=lambda pair: pair[0])
        return {step: link for step, (_count, link) in found.items()}

    # ------------------------------------------------------------------ a page

    def page(self, page: Page, place: int) -> Iterator[str]:
        count = len(self.book.pages)
        yield from self.head(page.title, page.slug)
        yield f'<main id="main" {self.style}><header class="chapter">'
        kicker = _("Page {number} of {count}").format(number=place + 1, count=count)
        yield f'<p class="kicker">{escape(kicker)}</p><h1>{escape(page.title)}</h1>'
        yield f'<p class="intro">{prose(page.intro)}</p>{self.badge()}</header>'
        if self.brief:
            worked = (n.address for n in numbers_in(page) if n.working is not None)
            example = next((a for a in worked if not a.startswith("explain.")), None)
            text = _(
                "The workings of single numbers are left out here: "
                "with them the page would be too large."
            )
            command = f"byhand trace {self.book.command} --at '{example}'"
            yield left_out(text, command if example else "")
        for number, passage in enumerate(page.passages):
            yield from self.passage(passage, f"{place + 1}.{number + 1}")
        yield "</main>"
        yield from self.turn(place)
        yield from self.foot([] if self.brief else self.workings.of(page))

    def passage(self, passage: Passage, number: str) -> Iterator[str]:
        name = escape(passage.id)
        lit = " ".join(self.book.spine.lit(passage.lit))
        yield (
            f'<section class="passage" id="{name}" tabindex="-1" aria-labelledby="{name}-title"'
            f' data-lit="{escape(lit)}">'
        )
        yield (
            f'<h2 id="{name}-title"><a class="number" href="#{name}">{number}</a> '
            f'{escape(passage.title)}</h2><div class="text">'
        )
        yield from passage_body(passage, self.pen)
        yield "</div>"
        if passage.lit:
            drawn = self.figures.of(passage.lit, looks_back=passage.looks_back)
            yield f'<figure class="whole">{drawn}</figure>'
        yield "</section>"

    # ------------------------------------------------------------------ around it

    def head(self, title: str, slug: str) -> Iterator[str]:
        book = self.book
        name = title if title == book.title else f"{title} · {book.title}"
        yield f'<!doctype html>\n<html lang="{escape(book.language)}" class="no-script">'
        yield '<head><meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield '<meta name="generator" content="byhand">'
        yield '<link rel="icon" href="data:,">'  # else a browser asks for one
        yield f"<title>{escape(name)}</title>"
        yield f"<style>\n{_style(slug)}</style></head><body>"
        yield f'<a class="skip" href="#main">{escape(_("to the text"))}</a>'
        yield f'<header class="top"><a class="book" href="{INDEX}">{escape(book.title)}</a>'
        yield f'<nav aria-label="{escape(_("pages"))}"><ol>'
        for place, page in enumerate(book.pages):
            here = ' aria-current="page"' if page.slug == slug else ""
            yield (
                f'<li><a href="{escape(page.slug)}.html"{here} title="{escape(page.title)}">'
                f'<span class="place">{place + 1}'
                f'</span> <span class="title">{escape(page.title)}</span></a></li>'
            )
        yield "</ol></nav></header>"

    def turn(self, place: int) -> Iterator[str]:
        """To the page before and the page after."""
        yield f'<nav class="turn" aria-label="{escape(_("turn the page"))}">'
        all_pages = self.book.pages
        if place > 0:
            before = all_pages[place - 1]
            last = before.passages[-1].id if before.passages else "main"
            yield (
                f'<a rel="prev" href="{escape(before.slug)}.html" data-last="{escape(last)}">'
                f"← {escape(before.title)}</a>"
            )
        else:
            yield f'<a rel="prev" href="{INDEX}">← {escape(_("Contents"))}</a>'
        if place + 1 < len(all_pages):
            after = all_pages[place + 1]
            yield f'<a rel="next" href="{escape(after.slug)}.html">{escape(after.title)} →</a>'
        yield "</nav>"

    def foot(self, lines: list[tuple[str, str]] | None) -> Iterator[str]:
        book = self.book
        yield '<footer class="bottom">'
        if book.registers:
            yield f'<section class="legend"><h2>{escape(_("How to read the numbers"))}</h2><ul>'
            for register, about in book.registers:
                sign = SIGNS.get(register, "") or "1"
                yield (
                    f'<li class="{escape(register)}"><span class="sample" aria-hidden="true">{sign}'
                    f"</span><span>{prose(sentence(about))}</span></li>"
                )
            yield "</ul></section>"
        keys = _(
            "`→` or `j` next passage, `←` or `k` the one before; "
            "a number opens its working, `Esc` closes it."
        )
        pressed = prose(keys).replace("code>", "kbd>")
        yield f'<section class="keys"><h2>{escape(_("Keys"))}</h2><p>{pressed}</p></section>'
        yield f'<p class="made">{escape(book.numbers)} · byhand</p></footer>'
        yield from self.figures.drawn()
        if lines is not None:
            yield data_script(lines, slack_of(book.numbers))
        yield f"<script>\n{text_of('book.js')}</script>"
        yield "</body></html>"

    def badge(self) -> str:
        """Where the script says what it found; its words stand here, in the book's language."""
        return (
            '<p id="badge" role="status" hidden'
            f' data-agree="{escape(_("{count} numbers on this page worked out again: all agree"))}"'
            f' data-differ="{escape(_("{wrong} of {count} numbers on this page do not agree"))}"'
            "></p>"
        )


class _Brief(Inscriber):
    """Numbers without their workings, for a page that would be too large with them."""

    def popover(self, name: str, number: Number, anchor: str) -> str:
        return super().popover(name, replace(number, working=None), anchor)
