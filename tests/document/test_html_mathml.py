"""Formulas as MathML: well-formed, in the elements of MathML Core, and of the same value."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.document.media.html.mathml import Mathml
from byhand.document.numerals import in_full
from byhand.expression import (
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    parse,
    rational,
)

CORE = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "msup", "msub",
    "msubsup", "mtable", "mtr", "mtd", "semantics", "annotation",
}  # fmt: skip
PARTS = {"mfrac": 2, "msup": 2, "msub": 2, "msubsup": 3}


def drawn(tree: Expression, maths: Mathml | None = None) -> ElementTree.Element:
    root = ElementTree.fromstring((maths or Mathml()).formula(tree))
    for element in root.iter():
        assert element.tag in CORE
        assert len(element) == PARTS.get(element.tag, len(element))
    return root


def text(tree: Expression) -> str:
    return "".join(drawn(tree).itertext())


# ------------------------------------------------------------------ as people write


@pytest.mark.parametrize(
    ("written", "looks"),
    [
        ("1 - 2", "1−2"),
        ("-(1 + 2)", "−(1+2)"),
        ("2*(1 + e)", "2\u2062(1+e)"),
        ("2*sqrt(3)", "2\u20623"),
        ("3*4", "3⋅4"),
        ("(1 + e)*(1 - e)", "(1+e)⋅(1−e)"),
        ("(1 + 2)^2", "(1+2)2"),
        ("ln(2)", "ln\u2061(2)"),
        ("e^(1/2)", "e1/2"),
        ("pi", "π"),
    ],
)
def test_a_formula_looks_as_people_write_it(written: str, looks: str) -> None:
    assert text(parse(written)) == looks


def test_a_quotient_needs_no_brackets_and_a_root_neither() -> None:
    assert "(" not in text(parse("(1 + e)/(2 + e)"))
    assert "(" not in text(parse("sqrt(1 + e)"))


def test_an_entry_has_its_index_below_and_so_has_the_name_of_a_weight() -> None:
    assert Mathml().draw(Entry("q", (0, 1))) == "<msub><mi>q</mi><mtext>0,1</mtext></msub>"
    weight = drawn(Entry("W_q", (0, 1)))
    assert [element.tag for element in weight.iter()][1:] == [
        "msub", "mi", "mrow", "mi", "mspace", "mtext",
    ]  # fmt: skip
    squared = drawn(Power(Entry("x", (1,)), Number(Fraction(2))))
    assert squared[0].tag == "msubsup"


def test_a_transposed_matrix_a_sum_and_a_size_have_their_signs() -> None:
    assert text(Name("Eᵀ")) == "ET"
    assert text(Call("Σ", Name("x"))) == "∑x"
    assert text(Call("abs", Name("x"))) == "|x|"


def test_numerals_are_written_as_the_language_does() -> None:
    assert Mathml(",").draw(Negative(Name("0.25"))).endswith("<mn>0,25</mn>")
    assert Mathml(",", finite=True).draw(Number(Fraction(1, 4))) == '<mn class="exact">0,25</mn>'
    assert Mathml().draw(Name("3e-05")) == (
        "<mn>3</mn><mo>⋅</mo>"
        '<msup><mn>10</mn><mrow><mo form="prefix">−</mo><mn>5</mn></mrow></msup>'
    )


def test_words_in_names_are_escaped() -> None:
    assert "<mi>&lt;b&gt;</mi>" in Mathml().draw(Name("<b>"))


# ------------------------------------------------------------------ the value survives


small = st.integers(min_value=-9, max_value=9)
numbers = st.builds(lambda p, q: Number(Fraction(p, q)), small, st.integers(1, 9))
trees = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.builds(Negative, inner),
        st.builds(lambda parts: Sum(tuple(parts)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: Product(tuple(parts)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(Quotient, inner, inner),
        st.builds(lambda x, n: Power(x, Number(Fraction(n))), inner, st.integers(1, 3)),
    ),
    max_leaves=8,
)


@given(trees, st.booleans())
def test_what_is_drawn_has_the_value_of_the_tree(tree: Expression, finite: bool) -> None:
    try:
        value = rational(tree)
    except Exception:  # a division by zero, which is refused
        return
    assert value is not None
    assert worth(drawn(tree, Mathml(finite=finite))) == value


def worth(element: ElementTree.Element) -> Fraction:
    """The value of a drawn formula, read back from the elements alone."""
    children = list(element)
    match element.tag:
        case "mn":
            return Fraction(element.text or "")
        case "mfrac":
            return worth(children[0]) / worth(children[1])
        case "msup":
            return worth(children[0]) ** int(worth(children[1]))
        case _:
            return _row(children)


def _row(children: list[ElementTree.Element]) -> Fraction:
    signs = [child.text if child.tag == "mo" else "" for child in children]
    if signs[0] == "(" and signs[-1] == ")":
        return _row(children[1:-1])
    total, product, sign = Fraction(0), None, 1
    for child, text in zip(children, signs, strict=True):
        if text in ("+", "−"):
            if product is not None:
                total, product, sign = total + sign * product, None, 1
            sign = -sign if text == "−" else sign
        elif child.tag != "mo":
            product = worth(child) if product is None else product * worth(child)
    assert product is not None
    return total + sign * product


@given(trees)
def test_the_text_that_comes_along_reads_back(tree: Expression) -> None:
    try:
        value = rational(tree)
    except Exception:
        return
    root = ElementTree.fromstring(Mathml(annotated=True).formula(tree))
    note = root.find("semantics/annotation")
    assert note is not None
    assert rational(parse(note.text or "")) == value


@given(st.fractions())
def test_few_decimals_say_the_number_in_full(value: Fraction) -> None:
    shown = in_full(value)
    assert shown is None or Fraction(shown) == value


def test_only_few_decimals_stand_for_a_fraction() -> None:
    assert in_full(Fraction(3, 10)) == "0.3"
    assert in_full(Fraction(-1, 8)) == "-0.125"
    assert in_full(Fraction(1, 3)) is None
    assert in_full(Fraction(1, 2**7)) is None
