"""The book as a PDF: its formulas, its source, and the file."""

from __future__ import annotations

import builtins
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import sample_book

from byhand.document.book import Book, Page, Passage
from byhand.document.media.typst import typst_source, write_pdf
from byhand.document.media.typst.figure import Figures
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.quoting import code, prose, string
from byhand.document.media.typst.strips import picture
from byhand.document.media.typst.writing import typeset
from byhand.document.parts import (
    Column,
    Grid,
    HeatStrip,
    LeftOut,
)
from byhand.editions import make_book
from byhand.errors import InputError, OutputError
from byhand.expression import Call, Entry, Name, Number, Power, Product, Quotient, parse


def drawn(text: str, **settings: Any) -> str:
    return TypstMaths(**settings).draw(parse(text))


# ------------------------------------------------------------------ formulas


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/2", 'frac("1","2")'),
        ("e/(1 + e)", 'frac(italic("e"),"1"+italic("e"))'),
        ("2*e", '"2"italic("e")'),
        ("2*sqrt(3)", '"2"sqrt("3")'),
        ("e^2", 'italic("e")^("2")'),
        ("e^(1/2)", 'italic("e")^("1"\\/"2")'),
        ("-3", '-"3"'),
        ("1 - e", '"1"-italic("e")'),
        ("(1 + e)*(1 - e)", '("1"+italic("e"))⋅("1"-italic("e"))'),
        ("ln(2)", 'op("ln")("2")'),
    ],
)
def test_a_tree_is_drawn_as_people_write_it(text: str, expected: str) -> None:
    assert drawn(text) == expected


def test_a_decimal_has_the_sign_of_the_language() -> None:
    maths = TypstMaths(",")
    assert maths.draw(Name("0.25")) == '"0,25"'
    assert maths.numeral("-1.5e-07") == '-"1,5"⋅"10"^(-"7")'


def test_a_fraction_is_a_decimal_where_these_say_it_in_full() -> None:
    maths = TypstMaths(finite=True)
    assert maths.draw(Number(Fraction(-3, 10))) == '-"0.3"'
    assert maths.draw(Number(Fraction(1, 3))) == 'frac("1","3")'


def test_names_have_their_index_below() -> None:
    maths = TypstMaths()
    assert maths.draw(Name("W_q")) == 'italic("W")_(italic("q"))'
    assert maths.draw(Name("Eᵀ")) == 'italic("E")^"T"'
    assert maths.draw(Name("scores")) == '"scores"'
    assert maths.draw(Entry("q", (0, 1))) == 'italic("q")_"0,1"'
    assert maths.draw(Entry("W_q", (0, 1))) == 'italic("W")_(italic("q")thin"0,1")'
    assert maths.draw(Power(Entry("q", (0,)), Number(Fraction(2)))) == 'italic("q")_"0"^("2")'


def test_a_fraction_that_no_line_can_hold_has_a_slash() -> None:
    long = Call("sqrt", parse(" + ".join(f"{k}*e^{k}" for k in range(2, 40))))
    tree = Quotient(Product((long, Name("x"))), Name("y"))
    assert "frac" not in TypstMaths().draw(tree)
    assert TypstMaths().draw(Call("abs", Name("x"))) == 'abs(italic("x"))'


def test_every_formula_of_the_books_is_typeset() -> None:
    pytest.importorskip("typst")
    for model in ("tiny", "abc"):
        assert typeset(typst_source(make_book(model))).startswith(b"%PDF-")


# ------------------------------------------------------------------ the source


def test_words_stand_in_strings_so_nothing_of_them_is_markup() -> None:
    assert string('a"b\\c') == '"a\\"b\\\\c"'
    assert string("a\nb") == '"a\\u{a}b"'
    assert prose("see `x[0]` there") == '[#"see ";#code("x[\u200b0]");#" there";]'
    assert prose("a lone ` sign") == '[#"a lone ` sign";]'
    assert code("it's") == 'code("it\'s")'  # code stays as it is; words get an apostrophe
    assert prose("it's") == '[#"it’s";]'


def test_a_book_of_hostile_words_is_typeset_as_it_is() -> None:
    pytest.importorskip("typst")
    nasty = '#panic("x") $ ] ) } \\ // /* * _ ` " @x <y> = \t\x1b'
    book = sample_book()
    passage = replace(book.pages[0].passages[0], title=nasty, sentences=(nasty, nasty))
    page = Page("attention", nasty, nasty, (passage,))
    hostile = replace(
        book, title=nasty, about=nasty, text=nasty, tokens=(nasty, nasty), pages=(page,),
        facts=((nasty, nasty),), notes=(nasty,),
    )  # fmt: skip
    assert typeset(typst_source(hostile)).startswith(b"%PDF-")


def test_each_passage_lights_what_it_works_out() -> None:
    book = make_book("tiny", claims=())
    figures = Figures(book.spine)
    name, lit, told = figures.where(("block.0.attn.scores",))
    rows = figures.used[(0,)]
    (place,) = eval(lit)  # an array of Typst with one number is a tuple of Python
    assert rows[place].label == "scores"
    assert name == "pass-0"
    assert "scores" in told
    assert "#let pass-0 = (" in next(iter(figures.definitions()))


def test_the_source_says_its_language_and_writes_numbers_in_it() -> None:
    source = typst_source(make_book("tiny", language="es", claims=()))
    assert 'language: "es"' in source
    assert '"≈ 0,2689"' in source
    assert not re.search(r'"[-−≈ ]*[0-9]+\.[0-9]{4}"', source)


def test_registers_are_told_by_a_sign_and_not_by_colour_alone() -> None:
    design = (Path(typst_source.__code__.co_filename).parent / "book.typ").read_text("utf-8")
    assert 'named: (colour: colours.named, sign: "√")' in design
    assert 'register: "named"' in typst_source(make_book("tiny", claims=()))


@pytest.mark.parametrize("model", ["tiny", "journey", "abc"])
def test_no_number_is_empty(model: str) -> None:
    source = typst_source(make_book(model, claims=()))
    assert 'number(""' not in source
    assert not re.search(r'[(,;]""[,;)]', source)


def test_a_strip_has_every_cell_once() -> None:
    values = np.array([[-1, 0, 0, 1], [np.nan, 0.5, 0.5, 0.5]], np.float32)
    svg = picture(values, 1.0)
    assert [svg.count(f"h{length}v1") for length in (1, 2, 3)] == [3, 1, 1]


# ------------------------------------------------------------------ the file


def strip_book() -> Book:
    values = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    strip = HeatStrip("weight.head", "W", ("d", "vocab"), (4, 8), values, 1.0, blocks=2)
    passage = Passage("strips", "Strips", ("Colours.",), show=(strip,))
    return replace(sample_book(), pages=(Page("strips", "Strips", "", (passage,)),))


def statistics_book() -> Book:
    lines = tuple(
        (f"block.{k}.mlp.hidden", "1024 × 3072", "-1.5", "2.25e-07", "0", "0.5", "3", f"x[{k}]")
        for k in range(60)
    )
    kinds = ("address", "words", *["number"] * 5, "address")
    table = Grid("", tuple(Column(f"column {k}", kind) for k, kind in enumerate(kinds)), lines)
    shown = (table, LeftOut("The rest.", "byhand trace gpt2 --only loss"))
    passage = Passage("statistics", "Statistics", ("Large.",), show=shown)
    return replace(sample_book(), pages=(Page("parameters", "Large", "", (passage,)),))


@pytest.mark.parametrize(
    "book", [sample_book(), sample_book("es"), strip_book(), statistics_book()]
)
def test_a_book_becomes_an_accessible_pdf(book: Book, tmp_path: Path) -> None:
    pytest.importorskip("typst")
    write_pdf(book, tmp_path / "book.pdf")
    data = (tmp_path / "book.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert b"pdfuaid" in data
    assert [path.name for path in tmp_path.iterdir()] == ["book.pdf"]


def test_the_same_book_gives_the_same_bytes() -> None:
    pytest.importorskip("typst")
    source = typst_source(sample_book())
    assert typeset(source) == typeset(source)


def test_signs_that_no_font_has_do_not_stop_the_book() -> None:
    pytest.importorskip("typst")
    book = replace(sample_book(), about="\U000e0041 \ue000 日本")
    assert typeset(typst_source(book)).startswith(b"%PDF-")


def test_a_place_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("typst")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        write_pdf(sample_book(), tmp_path / "file" / "book.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_typst_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def missing(name: str, *rest: Any, **settings: Any) -> Any:
        if name == "typst":
            raise ModuleNotFoundError(name)
        return load(name, *rest, **settings)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InputError, match=r"byhand\[pdf\]"):
        typeset("")


def test_the_figure_is_told_on_paper_as_on_a_page() -> None:
    told = "The whole pass; worked out here: block 0 attention scores"
    assert f'"{told}' in typst_source(make_book("tiny", language="en"))
