"""How values are written: simplified, as worked, with letters and their definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from byhand.expression import Entry, Name, parse, write
from byhand.numbers.base import Printed
from byhand.numbers.exact import Exact, Limits
from byhand.numbers.exact.read import evaluate


@pytest.fixture
def numbers():
    return Exact()


@pytest.mark.parametrize(
    "text",
    [
        "1/(1 + e)",
        "-2e/3",
        "√2/2",
        "3√2·e",
        "e^(1 + √2)",
        "(1 - √2 + e)/(e^2 + 2e - 1)",
        "ln(10)",
        "2 + 3·ln(10)",
        "ln(3/2)",
        "1/ln(10)",
        "cos(2)",
        "cos(1)^2",
        "sin(3)",
        "2·cos(1)^2·sin(1)",
        "cos(2·π/19)",
        "√(2 + √2)/2",
        "(1 + √5)/4",
        "2^(1/3)",
        "1 - e",
        "e - 1",
        "(1 + e)^2",
        "1 + e^3",
        "erf(√2/2)",
        "1/√(1 + e)",
        "e^(e^80)",
        "tanh(π/2)",
        "relu(1)",
    ],
)
def test_a_simple_form_is_written_as_it_was_read(numbers, text):
    value = evaluate(parse(text), numbers.space, bounded=False)
    written = write(numbers.writer().simplified(value))
    assert written == ("1" if text == "relu(1)" else text)


def test_wide_values_get_letters_after_their_address(numbers):
    space = numbers.space
    score = numbers.scalar(parse("(1 + e + sqrt(2) + pi)^3"))
    writer = numbers.writer()
    writer.label(score, Entry("block.0.attn.scores", (0, 3, 1)))
    tree = writer.simplified(space.exp(2 * score))
    assert write(tree) == "e^(2·s1)"
    (definition,) = writer.definitions().values()
    assert definition.name == "s1"
    assert definition.expression == Entry("block.0.attn.scores", (0, 3, 1))
    assert definition.value == score
    assert definition.decimal(4) == score.decimal(4)
    assert writer.binding(Name("s1")) is score


@pytest.mark.parametrize(
    ("address", "letter"),
    [
        ("block.0.attn.weights", "p1"),
        ("block.0.attn.q", "q1"),
        ("block.1.attn.mixed", "m1"),
        ("final.norm.mean", "μ1"),
        ("block.0.attn.norm.std", "σ1"),
        ("block.0.mlp.norm.rms", "σ1"),
        ("stream.0", "x1"),
        ("block.0.mlp.add", "x1"),
        ("block.0.mlp.hidden", "h1"),
        ("logits", "z1"),
        ("weight.block.0.attn.q", "w1"),
        ("something.else", "u1"),
    ],
)
def test_letters_are_chosen_by_the_end_of_the_address(numbers, address, letter):
    value = numbers.scalar(parse("(1 + e + sqrt(2) + pi)^4"))
    writer = numbers.writer()
    writer.label(value, Entry(address, (0, 0)))
    assert write(writer.simplified(value)) == letter


def test_letters_without_an_address_are_defined_by_a_form_or_a_working(numbers):
    wide = numbers.scalar(parse("(1 + e + sqrt(2) + pi)^3"))
    writer = numbers.writer()
    assert write(writer.simplified(numbers.space.exp(wide))) == "e^u1"
    definition = writer.definitions()["u1"]
    assert evaluate(definition.expression, numbers.space) == wide


def test_writing_changes_nothing_in_the_space(numbers):
    value = numbers.scalar(parse("erf((1 + e + sqrt(2) + pi)^2)"))
    atoms = len(numbers.space.atoms)
    assert write(numbers.writer(10).simplified(value)) == "erf(u1)"
    assert len(numbers.space.atoms) == atoms
    assert (numbers.scalar(parse("erf((1 + e + sqrt(2) + pi)^2)")) - value).fraction == 0


def test_no_text_is_ever_pages_long():
    numbers = Exact()
    x = numbers.admit(np.array([[parse(f"sqrt({p}) + e^{p}") for p in range(2, 90)]]))
    weights = numbers.admit(np.arange(88 * 2).reshape(88, 2))
    wide = numbers.linear(x, weights, layout="in_out")
    writer = numbers.writer()
    assert write(writer.simplified(wide[0, 0])) == "u1"
    assert len(write(writer.simplified(numbers.space.exp(wide[0, 1]) + 1))) < 20


def test_long_rationals_are_letters_too(numbers):
    long = numbers.value(Fraction(7**300, 11**300))
    writer = numbers.writer()
    assert write(writer.simplified(long)) == "u1"
    assert evaluate(writer.definitions()["u1"].expression, numbers.space).fraction == long.fraction
    longer = numbers.value(3**20000)
    assert write(writer.simplified(longer)) == "u2"
    text = write(writer.definitions()["u2"].expression)
    assert evaluate(parse(text), numbers.space).fraction == 3**20000


def test_printed_numbers_show_their_interval(numbers):
    (w,) = numbers.admit([Printed(Fraction("0.1234"), 4)])
    writer = numbers.writer()
    writer.label(w, Entry("weight.embed.token", (0, 1)))
    assert write(writer.simplified(2 * w + 1)) == "1 + 2·w1"
    definition = writer.definitions()["w1"]
    assert definition.expression == Entry("weight.embed.token", (0, 1))
    assert definition.decimal(4) == "0.1234 ± 0.00005"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda s, a, b: s.sqrt(s.value(Fraction(2, 3))), "√(2/3)"),
        (lambda s, a, b: s.exp(s.value(1)), "e^1"),
        (lambda s, a, b: s.ln(s.value(10)), "ln(10)"),
        (lambda s, a, b: a / b, "e/√2"),
        (lambda s, a, b: a - b, "e - √2"),
        (lambda s, a, b: s.dot([a, b], [b, b]), "e·√2 + √2^2"),
        (lambda s, a, b: s.cos(s.value(2)), "cos(2)"),
        (lambda s, a, b: s.odd_function("erf", -a), "erf(-e)"),
    ],
)
def test_the_worked_form_is_how_the_value_was_made(numbers, made, expected):
    a, b = numbers.scalar(parse("e")), numbers.scalar(parse("sqrt(2)"))
    value = made(numbers.space, a, b)
    tree = numbers.writer().worked(value)
    assert write(tree) == expected
    assert evaluate(tree, numbers.space) == value


def test_the_worked_forms_of_operations_read_back(numbers):
    x = numbers.admit(np.array([[parse("e"), parse("sqrt(2)"), parse("1/3")]]))
    mean = numbers.mean(x)
    centered = numbers.center(x, mean)
    square = numbers.mean_square(x)
    gelu = numbers.activate(x, kind="gelu")
    writer = numbers.writer()
    for value, text in [
        (mean[0], "(e + √2 + 1/3)/3"),
        (square[0], "(e^2 + √2^2 + (1/3)^2)/3"),
        (gelu[0, 0], "e·(1 + erf(√2·e/2))/2"),
    ]:
        assert write(writer.worked(value)) == text
        assert evaluate(parse(text), numbers.space) == value
    assert evaluate(writer.worked(centered[0, 1]), numbers.space, writer.binding) == centered[0, 1]


def test_a_tiny_budget_still_reads_back():
    numbers = Exact(Limits(terms=2, degree=2))
    value = numbers.scalar(parse("(1 + e)^3/(sqrt(2) + pi)"))
    writer = numbers.writer()
    tree = writer.simplified(value)
    definitions = writer.definitions()
    assert evaluate(parse(write(tree)), numbers.space, writer.binding) == value
    for definition in definitions.values():
        back = evaluate(definition.expression, numbers.space, writer.binding)
        assert back == definition.value
