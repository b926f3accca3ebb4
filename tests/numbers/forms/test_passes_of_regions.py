"""Every number of every model and text of a region lies in its form, at every choice of letters."""

from __future__ import annotations

import pytest

from byhand.numbers.forms import Forms, PreciseForms
from oracles.architectures import Case, spread
from oracles.regions import choices, outside, random_region, worked_in_forms

CASES = list(spread(24, seed=19))


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_every_number_of_a_region_lies_in_its_form(case: Case) -> None:
    check(case, Forms())


@pytest.mark.parametrize("case", CASES[::4], ids=range(0, len(CASES), 4))
def test_every_number_of_a_region_lies_in_its_form_in_arb(case: Case) -> None:
    check(case, PreciseForms())


def check(case: Case, numbers: Forms) -> None:
    number = CASES.index(case)
    region = random_region(case, number)
    passed = worked_in_forms(region, numbers)
    for letters in choices(region, number, 2):
        for place in range(region.moves.shape[1]):
            assert not list(outside(region, passed, letters, place))
