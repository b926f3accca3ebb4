"""Of a long sum the terms that matter are shown; of a range, the digits that mean something."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.document.compose.forms import range_cell
from byhand.document.compose.working import ELLIPSIS, MOST_TERMS, SHOWN_TERMS, Workings
from byhand.expression import Entry, Name, Product, Quotient, Sum, leaves
from byhand.numbers.base import Printed
from byhand.numbers.exact import Exact

F = Fraction


def value(workings: Workings, term: Any) -> float:
    found = 1.0
    for leaf in leaves(term):
        found *= workings.near(leaf)
    return found


@pytest.mark.parametrize("numbers", [{}, {"digits": 6}], ids=["floats", "enclosed"])
def test_the_largest_terms_of_a_wide_sum_are_shown_in_their_order(numbers: dict[str, Any]) -> None:
    trace = byhand.trace("minigpt", **numbers)
    workings = Workings(trace)
    whole = workings.working.of("logits", (0, 3))
    assert isinstance(whole, Sum)
    assert len(whole.terms) > MOST_TERMS
    shown, left_out = workings.shortened(whole)
    assert isinstance(shown, Sum)
    *terms, last = shown.terms
    assert last == ELLIPSIS
    assert (len(terms), left_out) == (SHOWN_TERMS, len(whole.terms) - SHOWN_TERMS)
    assert terms == [term for term in whole.terms if term in terms]
    least = min(abs(value(workings, term)) for term in terms)
    others = [term for term in whole.terms if term not in terms]
    assert all(abs(value(workings, term)) <= least for term in others)


def test_the_largest_powers_below_a_share_are_shown() -> None:
    workings = Workings(byhand.trace("minigpt"))
    tree, left_out = workings.shortened(workings.working.of("probs", (0, 3)))  # type: ignore[arg-type]
    assert isinstance(tree, Quotient)
    assert isinstance(tree.bottom, Sum)
    logits = workings.trace["logits"].array[0]
    shown = {leaf.index[1] for leaf in leaves(tree.bottom) if isinstance(leaf, Entry)}
    assert shown == set(np.argsort(-np.asarray(logits, float))[:SHOWN_TERMS].tolist())
    assert left_out == len(logits) - SHOWN_TERMS


def test_what_is_not_known_is_not_left_out() -> None:
    workings = Workings(byhand.trace("tiny", "a b"))
    assert workings.size(Name("x")) == inf
    known = Entry("logits", (0, 0))
    assert workings.size(known) == 0.0  # the logit is 1
    assert workings.size(Product((known, Entry("embed.token", (0, 1))))) == -inf  # times 0
    assert workings.size(Entry("weight.embed.token", (2, 1))) == log(1)


def test_the_middle_of_a_range_has_no_digits_beyond_its_radius() -> None:
    numbers = Exact()
    texts = {"0.9": 0, "12.25": 1, "0.0031": 3, "1234.5678": 4}
    for text, places in texts.items():
        (found,) = numbers.admit(np.array([Printed(F(text), places)], dtype=object))
        cell = range_cell(found)
        assert cell.decimal is not None
        assert cell.radius is not None
        assert len(cell.decimal.partition(".")[2]) <= max(places + 1, 0)
        assert abs(F(cell.decimal) - F(text)) + F(1, 2 * 10**places) <= F(cell.radius)
    x, y = numbers.admit(np.array([Printed(F("0.7"), 1), Printed(F("0.2"), 1)], dtype=object))
    margin = range_cell(x + y)
    assert (margin.decimal, margin.radius) == ("0.9", "0.1")
