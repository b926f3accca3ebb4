"""Tables fitted to a width: the richest manner that fits, and never a line too wide."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from byhand.document.media.terminal.ink import Ink, width_of
from byhand.document.media.terminal.layout import fit
from byhand.document.parts import MASKED, Cell, NumberRow, NumberTable
from byhand.document.parts import Number as Shown
from byhand.expression import Number, parse

NAMED = Cell("named", parse("1/(1 + e)"), parse("e^1/(e^1 + e^2)"), "0.2689")
EXACT = Cell("exact", Number(Fraction(3, 2)), parse("1 + 1/2"), "1.5000")


def table(*rows: tuple[Cell, ...], columns: tuple[int, ...] = ()) -> NumberTable:
    registers = ["named" if NAMED in row else "exact" for row in rows]
    shown = [row_of(i, f"{i} w", registers[i], row) for i, row in enumerate(rows)]
    return table_of("", columns or tuple(range(len(rows[0]))), (), tuple(shown))


def table_of(
    title: str, columns: tuple[int, ...], heads: tuple[str, ...], rows: tuple[NumberRow, ...]
) -> NumberTable:
    return NumberTable("x", title, ("pos", "d"), (9, 9), columns, heads, rows)


def row_of(place: int, label: str, register: str, cells: tuple[Cell, ...]) -> NumberRow:
    return NumberRow(place, label, register, tuple(Shown("x[0,0]", cell) for cell in cells))


def lines(found: NumberTable, width: int) -> list[str]:
    return list(fit(found, width, Ink()).lines)


def test_with_room_every_form_is_on_one_line() -> None:
    assert lines(table((NAMED, EXACT)), 80) == [
        "√ 0 w   e^1/(e^1 + e^2) = 1/(1 + e) ≈ 0.2689   1 + 1/2 = 3/2"
    ]


def test_with_less_room_the_forms_of_named_numbers_stand_below_each_other() -> None:
    assert lines(table((NAMED, EXACT)), 50) == [
        "√ 0 w     e^1/(e^1 + e^2)   3/2",
        "        = 1/(1 + e)",
        "        ≈ 0.2689",
    ]


def test_with_little_room_the_working_goes_first_and_then_the_form() -> None:
    assert lines(table((NAMED, NAMED)), 40) == [
        "√ 0 w     1/(1 + e)     1/(1 + e)",
        "        ≈ 0.2689      ≈ 0.2689",
    ]
    brief = fit(table((NAMED, EXACT)), 22, Ink())
    assert list(brief.lines) == ["√ 0 w   ≈ 0.2689   3/2"]
    assert brief.brief


def test_a_table_of_exact_numbers_is_not_stacked_for_its_working() -> None:
    assert lines(table((EXACT, EXACT, EXACT)), 40) == ["  0 w   3/2   3/2   3/2"]


def test_what_still_does_not_fit_goes_on_below_with_its_indices() -> None:
    assert lines(table((NAMED,) * 3), 32) == [
        "               0          1",
        "√ 0 w   ≈ 0.2689   ≈ 0.2689",
        "",
        "               2",
        "√ 0 w   ≈ 0.2689",
    ]


def test_columns_left_out_are_seen() -> None:
    shown = table((EXACT, EXACT, EXACT), columns=(0, 1, 9))
    assert lines(shown, 30) == ["  0 w   3/2   3/2   …   3/2"]


def test_masked_entries_are_points_and_rounded_ones_carry_no_sign() -> None:
    rounded = Cell("rounded", decimal="0.27")
    assert lines(
        table_of("", (0, 1), (), (row_of(0, "0 w", "rounded", (rounded, MASKED)),)), 80
    ) == ["  0 w   0.27   ·"]


def test_an_enclosed_number_comes_with_its_radius() -> None:
    enclosed = Cell("enclosed", decimal="1.1988", radius="0.00005")
    assert lines(table_of("", (0,), (), (row_of(0, "0 A", "enclosed", (enclosed,)),)), 80) == [
        "± 0 A   1.1988 ± 0.00005"
    ]


def test_a_large_fraction_comes_with_its_decimals() -> None:
    large = Cell("exact", Number(Fraction(1234567, 7654321)), decimal="0.1613")
    assert lines(table((large,)), 80) == ["  0 w   1234567/7654321 ≈ 0.1613"]
    assert lines(table((large,)), 20) == ["  0 w   ≈ 0.1613"]


def test_wide_characters_take_two_columns() -> None:
    assert width_of("a猫b") == 4
    assert width_of("e\u0301") == 1


@given(
    st.lists(
        st.lists(st.sampled_from([NAMED, EXACT, MASKED]), min_size=3, max_size=3),
        min_size=1,
        max_size=3,
    ),
    st.integers(20, 120),
)
def test_no_line_is_wider_than_it_may_be(rows: list[list[Cell]], width: int) -> None:
    shown = lines(table(*map(tuple, rows)), width)
    assert max(map(width_of, shown)) <= width


@given(st.integers(20, 120))
def test_colour_changes_no_sign(width: int) -> None:
    found = table((NAMED, EXACT), (EXACT, MASKED))
    coloured = fit(found, width, Ink(colour=True)).lines
    assert [re.sub(r"\x1b\[[\d;]*m", "", line) for line in coloured] == lines(found, width)


# ------------------------------------------------------------------ proven digits


def proven(*decimals: str | None) -> tuple[Cell, ...]:
    return tuple(MASKED if text is None else Cell("enclosed", decimal=text) for text in decimals)


def test_proven_digits_stand_with_their_points_below_each_other() -> None:
    rows = (proven("-0.0123", "12.3"), proven("1.00", None), (Cell("exact", decimal="2"),) * 2)
    assert lines(table(*rows), 80) == [
        "  0 w   -0.0123   12.3",
        "  1 w    1.00      ·",
        "  2 w    2         2",
    ]


def test_a_radius_does_not_move_the_point() -> None:
    rows = (proven("1.25"), (Cell("enclosed", decimal="0.5", radius="2e-9"),))
    assert lines(table(*rows), 80) == ["  0 w   1.25", "  1 w   0.5 ± 2e-9"]


def test_columns_of_proven_digits_move_together_before_the_table_is_broken() -> None:
    found = table(proven("0.123456", "0.123456", "0.123456"))
    assert lines(found, 38) == ["  0 w   0.123456   0.123456   0.123456"]
    assert lines(found, 37) == ["  0 w  0.123456  0.123456  0.123456"]


def test_a_broken_table_of_proven_digits_has_pieces_of_equal_breadth() -> None:
    found = table(proven("0.1234", "0.1234", "0.1234", "0.1234"))
    assert lines(found, 32) == [
        "             0        1",
        "  0 w   0.1234   0.1234",
        "",
        "             2        3",
        "  0 w   0.1234   0.1234",
    ]


def test_where_two_numbers_do_not_fit_each_has_a_line() -> None:
    found = table(proven("0.12345678", "-0.12345678"), proven("1.2345678", None))
    assert lines(found, 26) == [
        "  0 w   0    0.12345678",
        "        1   -0.12345678",
        "  1 w   0    1.2345678",
        "        1    ·",
    ]


def test_a_number_wider_than_the_page_is_broken_behind_its_point() -> None:
    found = table(proven("0.1234567890123456", None))
    assert lines(found, 20) == [
        "  0 w   0   0.123456",
        "             7890123",
        "             456",
        "        1   ·",
    ]


digits = st.integers(1, 60).flatmap(
    lambda count: st.integers(-(10**count), 10**count).map(lambda n: f"{n / 7:.{count % 30}f}")
)


@given(
    st.lists(st.lists(digits, min_size=3, max_size=3), min_size=1, max_size=3), st.integers(30, 90)
)
def test_every_proven_digit_is_there_and_no_line_is_too_wide(
    rows: list[list[str]], width: int
) -> None:
    found = lines(table(*(proven(*row) for row in rows)), width)
    assert [line for line in found if width_of(line) > width] == []
    together = "".join("".join(found).split())
    assert all(text in together for row in rows for text in row)


def test_columns_in_their_own_order_have_an_ellipsis_where_some_are_left_out_and_others_not() -> (
    None
):
    ends = table(proven("0.12345678", "0.12345678"), columns=(0, 7))
    assert lines(ends, 24) == ["  0 w   0   0.12345678", "        …", "        7   0.12345678"]
    largest_first = table(proven("0.12345678", "0.12345678"), columns=(3, 1))
    assert lines(largest_first, 24) == ["  0 w   3   0.12345678", "        1   0.12345678"]
