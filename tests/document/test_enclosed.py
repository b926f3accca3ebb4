"""Enclosures as they are shown: the number of digits never misleads."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byhand
from byhand.document.compose.forms import enclosed_cell
from byhand.document.compose.listing import unproven
from byhand.document.compose.tables import Window
from byhand.document.compose.trace import document
from byhand.document.compose.working import workings
from byhand.document.media.json.records import enclosure_data
from byhand.document.media.json.trace import document_of
from byhand.document.parts import Cell, StepPart, Title, WorkingLine
from byhand.document.words import some_of, undecided
from byhand.evaluate import prepare
from byhand.expression import write
from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import EVERYTHING, Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.proof import Proof, Unproven

fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=10**12)
radii = st.integers(0, 40).map(lambda n: Fraction(n and 1, 10**n))


def test_of_a_whole_vocabulary_the_first_tokens_are_named() -> None:
    tokens = [f"t{id}" for id in range(50_000)]
    assert some_of(tokens[:3]) == "t0, t1 and t2"
    assert some_of(tokens, 2) == "t0, t1 and 49,998 more"
    assert undecided(tokens) == "undecided between t0, t1, t2, t3, t4, t5, t6, t7 and 49,992 more"


def test_a_cell_has_all_digits_or_is_exact_or_has_a_radius() -> None:
    narrow, third = Fraction(1, 10**9), Fraction(1, 3)
    assert enclosed_cell(Enclosure(third, narrow), 6) == Cell("enclosed", decimal="0.333333")
    assert enclosed_cell(Enclosure(Fraction(5, 2), Fraction(0)), 6) == Cell("exact", decimal="2.5")
    wide = enclosed_cell(Enclosure(third, Fraction(1, 1000)), 6)
    assert (wide.register, wide.decimal, wide.radius) == ("enclosed", "0.333", "0.0014")


@given(fractions, radii, st.integers(1, 30))
def test_what_a_cell_shows_is_true_of_the_whole_enclosure(
    mid: Fraction, rad: Fraction, digits: int
) -> None:
    entry = Enclosure(mid, rad)
    cell = enclosed_cell(entry, digits)
    assert cell.decimal is not None
    shown = Fraction(cell.decimal)
    if cell.register == "exact":
        assert (shown, entry.rad) == (mid, 0)
    elif cell.radius is not None:
        assert abs(mid - shown) + rad <= Fraction(cell.radius)
    else:
        mantissa, _e, exponent = cell.decimal.partition("e")
        last = Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        assert abs(mid - shown) + rad <= last
        assert len(mantissa.replace(".", "").lstrip("-0")) == digits


@given(fractions, radii, st.integers(1, 30))
def test_the_data_of_an_enclosure_contains_it(mid: Fraction, rad: Fraction, digits: int) -> None:
    value, _decimal = enclosure_data(Enclosure(mid, rad), digits)
    assert abs(mid - Fraction(value["mid"])) + rad <= Fraction(value["rad"])


def test_an_enclosure_that_knows_nothing_says_so() -> None:
    assert enclosure_data(EVERYTHING, 12) == ({"mid": "0", "rad": "inf"}, None)
    assert enclosed_cell(EVERYTHING, 12) == Cell("enclosed", decimal="0", radius="∞")


def test_the_title_tells_the_precision_and_the_tables_the_digits_asked_for() -> None:
    trace = byhand.trace("journey", digits=9)
    assert trace.proof is not None
    title, *parts = document(trace)
    assert isinstance(title, Title)
    facts = dict(title.facts)
    bits = trace.proof.bits
    assert facts["numbers"] == f"9 significant digits, proven; worked out with {bits} bits"
    assert facts["proven"] == "4 of 4 next tokens"
    probs = next(p for p in parts if isinstance(p, StepPart) and p.address == "probs")
    assert probs.tables[0].rows[3].cells[4].decimal == "0.160206345"
    assert probs.register == "enclosed"


def test_no_position_leaves_the_exact_numbers_where_there_are_none() -> None:
    trace = byhand.trace("journey", digits=3)
    assert trace.crossings == ()
    assert all(not part.remarks for part in document(trace) if isinstance(part, StepPart))


def test_values_written_into_a_working_are_short_and_the_result_is_not() -> None:
    (line,) = workings(byhand.trace("journey", digits=30), "loss[0]")
    assert isinstance(line, WorkingLine)
    assert line.values is not None
    assert write(line.values) == "-ln(0.160206)"
    assert line.cell.decimal == "1.83129263704710891827749848880"
    assert line.decimals


@pytest.mark.parametrize("numbers", [Balls(90), Limbs(120)], ids=["balls", "limbs"])
def test_of_a_large_vocabulary_the_largest_logits_are_shown(numbers: Numbers) -> None:
    trace = prepare(byhand.open_model("minigpt"), numbers=numbers, only=["logits", "next"]).work()
    assert trace.next is not None
    columns = Window().columns_of(trace["logits"])
    assert columns[0] == trace.next[-1].id
    last = np.array([float(x) for x in trace["logits[-1]"]])
    assert list(columns) == np.argsort(-last)[:5].tolist()


# ------------------------------------------------------------------ what is not proven


def test_the_first_of_what_is_not_proven_are_told_and_the_rest_counted() -> None:
    trace = byhand.trace("journey", digits=3)
    near = Enclosure(Fraction(1, 3), Fraction(1, 10**4))
    open_ones = (
        Unproven("next[1]", "next", Enclosure(Fraction(0), Fraction(1, 10**20)), (1, 2)),
        Unproven("logits[0,0]", "digits", near),
        Unproven("logits[0,1]", "digits", Enclosure(Fraction(0), Fraction(1, 10**30))),
        *(Unproven(f"probs[{i},0]", "digits", near) for i in range(20)),
    )
    open_trace = replace(trace, proof=Proof(12, 4096, open_ones, 1234))
    found = unproven(open_trace)
    assert found.lead == "not proven to 12 digits, with 4,096 bits:"
    assert found.told[:3] == (
        "next[1]: cat and sat, 0 ± 1e-20 apart",
        "logits[0,0] = 0.3333 ± 0.00014",
        "logits[0,1] = 0 ± 1e-30, perhaps zero",
    )
    assert found.told[10:] == ("and 1,224 more",)
    undecided = document_of(open_trace)["undecided"]
    assert undecided["count"] == 1234
    assert undecided["first"][0] == {
        "address": "next[1]",
        "asked": "next",
        "enclosure": {"mid": "0", "rad": "1e-20"},
        "candidates": [1, 2],
    }
