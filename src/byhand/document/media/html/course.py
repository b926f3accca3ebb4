"""The course as pages: like those of a book, with the figure of each chapter's own model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byhand.document.book import Book
from byhand.document.media.html.page import INDEX, index_of, page_of
from byhand.document.media.html.rechecking import Workings
from byhand.language import speaking


def course_pages(books: Sequence[Book]) -> dict[str, str]:
    """File name → HTML of every page, the contents first."""
    with speaking(books[0].language):
        found = {INDEX: index_of(books[0])}
        for place, (book, page) in enumerate(zip(books, books[0].pages, strict=True)):
            own = Workings(replace(book, pages=(page,)))  # others have other models' numbers
            found[f"{page.slug}.html"] = page_of(book, page, place, own)
    return found
