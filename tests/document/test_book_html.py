"""The pages of a book as files: valid, whole, small, and standing by themselves.

Of a book that has every kind of part; `test_books_validated` asks the same of all built-in models.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import html5lib
import pytest
from samples import sample_book
from validating import Elements

from byhand.document.book import Book
from byhand.document.media.html import page as html_page
from byhand.document.media.html import write_book
from byhand.document.media.html.page import pages
from byhand.document.parts import NumberTable, Remark
from byhand.editions import make_book
from byhand.errors import OutputError
from byhand.language import _, speaking

book_of = cache(make_book)


@pytest.fixture(scope="module")
def sample() -> dict[str, str]:
    """File name → text of every page of the sample."""
    return pages(sample_book())


# ------------------------------------------------------------------ valid


def test_every_page_is_html_that_a_strict_parser_accepts(sample: dict[str, str]) -> None:
    for file, text in sample.items():
        html5lib.HTMLParser(strict=True).parse(text)
        assert Elements(text).found, file


def test_no_id_is_given_twice_and_every_reference_finds_its_aim(sample: dict[str, str]) -> None:
    parsed = {file: Elements(text) for file, text in sample.items()}
    ids = {file: set(elements.values("id")) for file, elements in parsed.items()}
    for file, elements in parsed.items():
        assert [each for each, n in Counter(elements.values("id")).items() if n > 1] == []
        for attribute in ("popovertarget", "aria-labelledby", "data-copy"):
            assert set(" ".join(elements.values(attribute)).split()) <= ids[file], attribute
        for link in elements.values("href"):
            if link == "data:,":
                continue
            target, _hash, place = link.partition("#")
            assert (target or file) in parsed, link
            assert not place or place in ids[target or file], link


def test_nothing_is_fetched_from_anywhere(sample: dict[str, str]) -> None:
    for text in sample.values():
        elements = Elements(text)
        assert elements.values("src") == elements.values("srcset") == []
        own = text.replace("http://www.w3.org/2000/svg", "")  # a name, which nobody fetches
        assert not re.search(r"@import|url\((?!#)|https?://", own)
        assert "import(" not in text
        assert 'type="module"' not in text


def test_every_picture_has_words(sample: dict[str, str]) -> None:
    for text in sample.values():
        for attributes in Elements(text).all("svg"):
            named = attributes.get("aria-label") or attributes.get("aria-labelledby")
            assert named or attributes.get("aria-hidden") == "true"


# ------------------------------------------------------------------ whole


def test_every_passage_of_the_book_stands_on_its_page_with_its_figure() -> None:
    book = book_of("tiny")
    found = pages(book)
    for page in book.pages:
        text = found[f"{page.slug}.html"]
        for passage in page.passages:
            section = text.partition(f'id="{passage.id}"')[2].partition("</section>")[0]
            assert section.count('<figure class="whole">') == bool(passage.lit)
            assert section.count('class="formula"') == len(passage.formulas)
            told = [*passage.remarks, *(p for p in passage.show if isinstance(p, Remark))]
            assert section.count('class="remark ') == len(told)


def test_every_number_of_a_table_has_its_address_and_its_working() -> None:
    text = pages(book_of("tiny"))["attention.html"]
    cell = text.partition('id="block.0.attn.scores[0,1,1]"')[2].partition("</td>")[0]
    assert 'data-a="block.0.attn.scores[0,1,1]"' in cell
    assert 'data-copy="block.0.attn.scores[0,1,1]"' in cell
    assert '<div class="values"><math><mo>=</mo><mn>1</mn><mo>⋅</mo><mn>1</mn>' in cell


def test_registers_are_told_by_a_mark_and_a_word_not_by_colour_alone() -> None:
    text = pages(book_of("tiny"))["attention.html"]
    cell = text.partition('id="block.0.attn.weights[0,1,1]"')[2].partition("</button>")[0]
    assert '<span class="sign" aria-hidden="true">√</span><span class="sr"> named</span>' in cell


def test_what_does_not_follow_is_pointed_out_at_its_number_and_in_the_text() -> None:
    text = pages(sample_book())["attention.html"]
    assert '<p class="remark claim"><span class="sign" aria-hidden="true">✗</span>' in text
    assert '<tr class="error">' in text


def test_words_of_a_book_are_escaped() -> None:
    text = pages(sample_book())["attention.html"]
    assert "<code>block.0.attn.scores</code>" in text  # from backticks
    book = book_of("tiny")
    cruel = Book(**{**_fields(book), "title": "<script>alert(1)</script>"})
    assert all("<script>alert" not in page for page in pages(cruel).values())


def _fields(book: Book) -> dict[str, object]:
    return {name: getattr(book, name) for name in book.__dataclass_fields__}


# ------------------------------------------------------------------ small, and in its language


def test_a_page_that_would_be_too_large_leaves_the_workings_out_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = book_of("tiny")
    whole = pages(book)["block.html"]
    monkeypatch.setattr(html_page, "MOST_EMBEDDED", len(whole.encode()) - 1)
    brief = pages(book)["block.html"]
    assert len(brief) < len(whole)
    assert brief.count('class="values"') < whole.count('class="values"') / 2
    assert "The workings of single numbers are left out here" in brief
    assert "left out here" not in whole


def test_a_spanish_book_says_its_language_and_writes_its_decimals() -> None:
    text = pages(make_book("tiny", language="es"))["attention.html"]
    assert '<html lang="es"' in text
    with speaking("es"):
        point = _(".")
    assert f'<data value="0.7311">0{point}7311</data>' in text  # the data keep the point


# ------------------------------------------------------------------ the files


def test_a_book_is_written_as_an_index_and_a_file_a_page(tmp_path: Path) -> None:
    book = sample_book()
    paths = write_book(book, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["index.html", "attention.html", "parameters.html"]
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(
        path.name for path in paths
    )


def test_a_page_is_replaced_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("old")

    def fails(self: Path, target: Path) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OutputError, match="cannot be written"):
        write_book(sample_book(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert (tmp_path / "index.html").read_text() == "old"


def test_a_folder_that_cannot_be_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        write_book(sample_book(), tmp_path / "file")


def test_a_table_of_rounded_numbers_says_so_once() -> None:
    text = pages(make_book("minigpt"))["attention.html"]
    table = text.partition('<div class="table step"')[2].partition("</table>")[0]
    caption, _end, rows = table.partition("</caption>")
    assert caption.count("~") == 1
    assert "rounded" in caption
    assert "~" not in rows


def test_the_next_tokens_are_told_once_and_their_addresses_lead_to_them() -> None:
    text = pages(book_of("tiny"))["next.html"]
    assert '<tr id="next[1]">' in text
    assert 'aria-label="next"><table>' in text
    assert '<code class="address">next</code>' not in text


def test_a_weight_is_called_what_the_formulas_call_it() -> None:
    book = make_book("journey")
    titles = [
        part.title
        for passage in book.page("parameters").passages
        for part in passage.show
        if isinstance(part, NumberTable)
    ]
    assert titles[:2] == ["E", "P"]
    assert {"W_q", "W_hidden"} <= set(titles)


def test_what_is_unknown_is_a_question_mark_and_says_why() -> None:
    book = make_book("abc-walkthrough")
    (told,) = (p for p in book.passages if p.id == "exact-map")
    assert "weight.block.0.attn.qkv is unknown" in " ".join(told.sentences)
    assert '<td class="unknown"><span aria-hidden="true">?</span>' in pages(book)["exact.html"]
