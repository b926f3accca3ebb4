"""The books of all built-in models as files: valid HTML, whole, small, and what docs/ links to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import html5lib
import pytest
from books import EDITIONS, LARGE, NAMES, Shelf, books_tool
from validating import Elements

from byhand.document.book import MOST_EMBEDDED

ALL = (*NAMES, LARGE)
Pages = dict[str, Elements]


@pytest.fixture(scope="module")
def taken_apart(shelf: Shelf) -> Callable[[str], Pages]:
    """The elements of every page of a book, by file name."""

    @cache
    def parse(name: str) -> Pages:
        return {file: Elements(text) for file, text in shelf[name].texts.items()}

    return parse


@pytest.mark.parametrize("name", [name for name in ALL if name != "journey-es"])
def test_every_page_is_html_that_a_strict_parser_accepts(shelf: Shelf, name: str) -> None:
    """The Spanish tiny stands for Spanish pages: languages differ in words, not in elements."""
    for text in shelf[name].texts.values():
        html5lib.HTMLParser(strict=True).parse(text)


@pytest.mark.parametrize("name", ALL)
def test_no_id_is_given_twice_and_every_reference_finds_its_aim(
    taken_apart: Callable[[str], Pages], name: str
) -> None:
    pages = taken_apart(name)
    ids = {file: set(elements.values("id")) for file, elements in pages.items()}
    for file, elements in pages.items():
        assert [each for each, n in Counter(elements.values("id")).items() if n > 1] == []
        for attribute in ("popovertarget", "aria-labelledby", "aria-describedby", "data-copy"):
            named = {id for value in elements.values(attribute) for id in value.split(" ")}
            assert named <= ids[file], (file, attribute)
        for link in elements.values("href"):
            if link != "data:,":
                target, _hash, place = link.partition("#")
                assert (target or file) in pages, link
                assert not place or place in ids[target or file], link


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_fetched_from_anywhere(
    shelf: Shelf, taken_apart: Callable[[str], Pages], name: str
) -> None:
    for file, elements in taken_apart(name).items():
        assert elements.values("srcset") == elements.values("action") == [], file
        assert all(source.startswith("data:") for source in elements.values("src")), file
        text = shelf[name].texts[file]
        own = text.replace("http://www.w3.org/2000/svg", "")  # a name, which nobody fetches
        assert not re.search(r"@import|url\((?!data:|#)|https?://|import\(", own), file
        assert 'type="module"' not in text, file


@pytest.mark.parametrize("name", ALL)
def test_every_page_has_one_heading_one_language_and_words_for_its_pictures(
    shelf: Shelf, taken_apart: Callable[[str], Pages], name: str
) -> None:
    for file, elements in taken_apart(name).items():
        assert [page.get("lang") for page in elements.all("html")] == [shelf[name].language], file
        assert len(elements.all("h1")) == len(elements.all("main")) == 1, file
        for attributes in elements.all("svg"):
            named = attributes.get("aria-label") or attributes.get("aria-labelledby")
            assert named or attributes.get("aria-hidden") == "true", file


@pytest.mark.parametrize("name", ALL)
def test_no_page_is_larger_than_it_may_be(shelf: Shelf, name: str) -> None:
    limit = 300_000 if name.startswith("tiny") else MOST_EMBEDDED
    sizes = {file: len(text.encode()) for file, text in shelf[name].texts.items()}
    assert {file: size for file, size in sizes.items() if size >= limit} == {}


# ------------------------------------------------------------------ those that docs/ links to


@pytest.mark.parametrize("name", [name for name, each in EDITIONS.items() if each.kept])
def test_the_kept_books_are_what_would_be_written_now(shelf: Shelf, name: str) -> None:
    assert books_tool().stale(name, shelf[name].folder) == [], "run `make books`"


def test_every_book_is_listed_and_those_that_are_kept_are_linked() -> None:
    tool = books_tool()
    listed = (tool.FOLDER / tool.INDEX).read_text("utf-8")
    assert listed == tool.index(), "run `make books`"
    assert set(re.findall(r"\(([\w-]+)/index\.html\)", listed)) == set(tool.KEPT)
    rows = re.findall(r"(?m)^\| \[?([\w-]+)", listed)
    assert rows == ["book", *(each.name for each in tool.editions())]
