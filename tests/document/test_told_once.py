"""A book says each thing once, and leaves out the chapter that has nothing to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from byhand.document.book import Book, Page, Passage
from byhand.document.compose.book import bind
from byhand.document.compose.book.told_once import SHORT, told_once
from byhand.document.parts import Finding, LeftOut, Remark
from byhand.editions import make_book, make_edition
from byhand.language import speaking
from byhand.models import builtin_names


def paragraphs(book: Book) -> Iterator[str]:
    """Every paragraph of prose: what passages say, remarks, findings, what is left out."""
    for page in book:
        yield page.intro
        for passage in page.passages:
            yield " ".join(passage.sentences)
            yield from (mark.text for mark in passage.remarks)
            for part in passage.show:
                match part:
                    case Finding(lead=lead, told=told):
                        yield " ".join((lead, *told))
                    case LeftOut(text=text, command=command):
                        yield f"{text} {command}"


@pytest.mark.parametrize("name", builtin_names())
def test_no_paragraph_of_a_built_in_book_comes_twice(name: str) -> None:
    edition = make_edition(name)
    for language in ("en", "es"):
        with speaking(language):
            book = bind(edition, language)
            said = Counter(text for text in paragraphs(book) if len(text) > SHORT)
        assert len(said) > 30
        assert [text for text, times in said.items() if times > 1] == []


def test_a_sentence_and_a_remark_are_told_where_they_belong() -> None:
    long = "Each position turns its row into three: a query, a key and a value."
    mark = Remark("leaves", "position 1 leaves the exact numbers here")
    first = Passage("a", "A", (long, "Short."), ("q",), remarks=(mark,))
    pages = told_once(
        (
            Page("whole", "", "", (Passage("w", "W", ("Once.",), ("q",), remarks=(mark,)),)),
            Page("attention", "", "", (first, Passage("b", "B", (long, "Short."), ("k",)))),
        )
    )
    assert [p.remarks for page in pages for p in page.passages] == [(), (mark,), ()]
    assert [p.sentences for p in pages[1].passages] == [(long, "Short."), ("Short.",)]


def test_a_chapter_without_a_number_goes_unless_it_says_why() -> None:
    why = Passage("l", "No loss is known", (), show=(LeftOut("there is no target"),))
    none = Passage("n", "No attention", ("This model has no attention.",))
    pages = [Page(slug, "", "", (one,)) for slug, one in
             (("attention", none), ("losses", why), ("step", why))]  # fmt: skip
    assert [page.slug for page in told_once(pages)] == ["losses"]


def test_what_is_exact_is_no_chapter_where_all_is_rounded() -> None:
    assert "exact" not in [page.slug for page in make_book("minigpt-init", claims=())]
    assert "exact" in [page.slug for page in make_book("tiny")]
