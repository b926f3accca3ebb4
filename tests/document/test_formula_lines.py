"""The laws with this model's numbers in them: rows and matrices of one position, honest signs."""

from __future__ import annotations

from functools import cache

import pytest

from byhand.document.book import Book
from byhand.document.mathematics import cell_tree, rounded_line, too_wide
from byhand.document.parts import Formula, Line, Matrix, Sign, Word
from byhand.editions import make_book
from byhand.expression import Expression, write

book_of = cache(make_book)


def law(book: Book, address: str) -> Formula:
    laws = (law for passage in book.passages for law in passage.formulas)
    return next(law for law in laws if law.address == address)


def read(line: Line) -> str:
    """A line as it is read aloud: (1 0)·(1 0; 0 1) = (1 0)."""
    brief = too_wide(line)
    near = rounded_line(line, brief)
    said = []
    for piece in line:
        match piece:
            case Sign(text=text):
                said.append("≈" if text == "=" and near else text)
            case Word(text=text):
                said.append(text)
            case Matrix(rows=rows):
                inside = (" ".join(write(cell_tree(c, brief)) for c in row) for row in rows)
                said.append(f"({'; '.join(inside)})")
            case _:
                assert isinstance(piece, Expression)
                said.append(write(piece))
    return " ".join(said)


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("embed.token", "E_1 = (0 1)"),
        ("embed.position", "P_1 = (1 0)"),
        ("stream.0", "(0 1) + (1 0) = (1 1)"),
        ("block.0.attn.scores", "(1 1) · (1 1; 0 1) = (1 2)"),
        ("block.0.attn.weights", "1/(e^1 + e^2) · (e^1 e^2) = (1/(1 + e) e/(1 + e))"),
        ("block.0.attn.out", "concat (1 e/(1 + e)) = (1 e/(1 + e))"),
        (
            "block.0.attn.norm.centered",
            "(2 (1 + 2e)/(1 + e)) − (3 + 4e)/(2(1 + e)) = (1/(2(1 + e)) -1/(2(1 + e)))",
        ),
        ("block.0.attn.norm.out", "(1 -1) ⊙ (1 1) + (0 0) = (1 -1)"),
        ("block.0.mlp.act", "relu (1 -1) = (1 0)"),
        ("next", "argmax (1 -1 0) → a"),
    ],
)
def test_every_step_of_tiny_has_its_line_with_numbers(address: str, line: str) -> None:
    assert read(law(book_of("tiny"), address).numbers) == line


def test_a_softmax_of_one_score_has_a_line_of_its_own() -> None:
    (earlier,) = law(book_of("tiny"), "block.0.attn.weights").earlier
    assert (earlier[0], read(earlier[1])) == ("0 a", "e^1/e^1 = 1")
    (first,) = law(book_of("journey"), "block.0.attn.weights").earlier
    assert first[0] == "0 the"
    assert read(first[1]).endswith("= 1")


def test_a_short_text_has_the_line_of_every_position() -> None:
    adding = law(book_of("tiny"), "block.0.attn.add")
    assert [(label, read(line)) for label, line in adding.earlier] == [
        ("0 a", "(1 0) + (1 0) = (2 0)")
    ]
    assert adding.label == "1 b"
    assert law(book_of("journey"), "block.0.attn.add").earlier == ()


def test_decimals_that_are_not_the_number_stand_after_a_sign_that_says_so() -> None:
    scores = law(book_of("journey"), "block.0.attn.scores")
    assert read(scores.numbers).startswith("1/√4 · (")
    assert read(scores.numbers).endswith("≈ (0.5501 -0.4237 -0.0123 0.1003)")
    assert "≈" in read(law(book_of("journey"), "block.0.attn.weights").numbers)


def test_of_a_large_model_a_row_has_its_first_and_last_numbers() -> None:
    questions = read(law(book_of("minigpt"), "block.0.attn.q").numbers)
    assert questions.startswith("(0.7882 -1.4643 … -0.6414) · W_q ≈ (")
    assert questions.count("…") == 2


def test_the_bend_is_written_out_where_it_bends() -> None:
    worked = law(book_of("tiny"), "block.0.mlp.act").worked
    assert worked is not None
    assert worked.address == "block.0.mlp.act[1,1]"
    assert worked.cell is not None
    assert worked.cell.form is not None
    assert write(worked.cell.form) == "0"
