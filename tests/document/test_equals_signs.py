"""= stands before numbers that are equal, to the last digit; before rounded ones stands ≈."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from books import NAMES, Shelf

from byhand.document.book import Book
from byhand.document.mathematics import form_lines, rounded_line, too_wide
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.rechecking import numbers_in
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.numbers import Inscriber as TypstInscriber
from byhand.document.parts import Matrix, Sign
from byhand.editions import make_book
from byhand.errors import ExpressionError
from byhand.expression import parse
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from calling import Outcome

ROOT = Path(__file__).parents[2]
DECIMAL = r"[-−]?\d+(?:[.,]\d+)+"


def false_equations(text: str) -> Iterator[str]:
    """What is said to be a decimal and is another number: the left side is read and worked out.

    A left side that has no value (a name, an address) says what something is called.
    """
    for found in re.finditer(rf"([^=≈\n:;]+?) = ({DECIMAL})(?![\d ]*[±%…])", text):
        right = found[2].replace("−", "-")
        meant = {right.replace(",", "."), right.replace(",", "")}  # a decimal comma, or thousands
        for left in _sides(found[1].translate({0x2212: "-", 0xB2: "^2", 0xB3: "^3"})):
            with suppress(ExpressionError):
                numbers = Exact()
                value = numbers.scalar(parse(left))
                if not any(value == numbers.scalar(parse(n)) for n in meant if n.count(".") < 2):
                    yield found[0]
                break


def _sides(text: str) -> Iterator[str]:
    """What may be the left side, the longest first: words before it are not part of it."""
    words = text.split()
    for start in range(len(words)):
        yield " ".join(words[start:])


def test_a_rounded_number_after_an_equals_sign_is_found() -> None:
    text = "Guessing costs ln 6 = 1.7918. 1/8 = 0.125, 1/3 = 0.333 and loss = 1.83; ln 6 ≈ 1.7918."
    assert [each.rpartition(" ")[2] for each in false_equations(text)] == ["1.7918", "0.333"]


@pytest.mark.parametrize("name", NAMES)
def test_sentences_of_books_state_no_false_equation(name: str, shelf: Shelf) -> None:
    for file, page in shelf[name].texts.items():
        prose = re.findall(r"<(p|li|td|figcaption)\b[^>]*>(.*?)</\1>", page, re.DOTALL)
        said = unescape(re.sub(r"<[^>]+>", "", " \n".join(text for _tag, text in prose)))
        assert list(false_equations(said)) == [], file


@cache
def rounded_books() -> tuple[Book, ...]:
    """Books whose numbers are rounded: by a pencil, and as floats."""
    return (
        make_book("journey", numbers=Pencil(3), claims=()),
        make_book("tiny", numbers=Floats("float32"), claims=()),
    )


def test_a_number_that_is_not_all_there_is_stands_behind_a_wave(shelf: Shelf) -> None:
    html, typst = Inscriber(Mathml(".")), TypstInscriber(TypstMaths("."))
    books = (*rounded_books(), *(shelf[name].book for name in ("tiny", "journey", "abc")))
    seen = set()
    for book in books:
        for number in numbers_in(book):
            cell = number.cell
            exact = cell.register == "exact" and not cell.cut
            if cell.masked or cell.decimal is None or cell.radius is not None or exact:
                continue
            seen.add(cell.register)
            lines = list(form_lines(cell))
            assert not re.search(r"= <data", "".join(html.lines(lines, cell))), number.address
            told = "".join(typst.lines(lines, cell))
            assert 'value-line("= ' not in told, number.address
    assert seen == {"rounded", "named", "exact"}


def test_laws_with_rounded_numbers_in_them_have_a_wave() -> None:
    for book in rounded_books():
        for law in (law for passage in book.passages for law in passage.formulas):
            for _label, line in (*law.earlier, ("", law.numbers)):
                cells = [c for p in line if isinstance(p, Matrix) for r in p.rows for c in r]
                if any(cell.register == "rounded" for cell in cells):
                    equal = [p for p in line if isinstance(p, Sign) and p.text == "="]
                    assert rounded_line(line, too_wide(line)) or not equal, law.address


@pytest.mark.parametrize(
    "call",
    [
        "trace journey --at block.0.attn.q[0,1,0] --at block.0.attn.weights[0,1,0] --decimals 2",
        "trace journey --at block.0.attn.q[0,1,0] --at logits[3,1] --float float32",
        "trace journey --target mat",
        "trace journey --target mat --decimals 3",
        "trace abc --float float64",
        "trace tiny",
        "trace tiny --digits 5",
        "explain journey",
        "explain abc",
        "generate journey -n 1",
        "check journey",
        "trace journey --lang es --target mat",
    ],
)
def test_the_terminal_states_no_false_equation(call: str, byhand: Callable[..., Outcome]) -> None:
    told = byhand(*call.split())
    assert told.status in (0, 1)
    chains = re.sub(r"\n +(?=[=≈] )", " ", told.out)  # one number, a form a line
    assert list(false_equations(chains)) == []


def test_what_is_printed_in_docs_states_no_false_equation() -> None:
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        assert list(false_equations(path.read_text("utf-8"))) == [], path.name
