"""What is said of a region holds for every text of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgets import examples
from byhand.proving.claims import Function
from byhand.proving.domain import Place, Region, Shape, Variable, Whole
from byhand.proving.reading.functions import compile_expression
from byhand.proving.reading.wholes import Range, Varies, largest, least, ranges_of
from byhand.proving.reading.words import Words, one_of

NAMES = ("x", "y", "z")


def region(conditions: tuple[Whole, ...] = (), **allowed: tuple[int, ...]) -> Region:
    variables = tuple(Variable(name, values) for name, values in allowed.items())
    return Region(Shape((), variables, conditions), allowed)


def function(text: str) -> Function:
    compiled = compile_expression(text, NAMES)
    return Function(lambda values: compiled.call(*(values[n] for n in compiled.names)), text)


def over(written: Function, where: Region) -> Any:
    """Its value over a region, or the Varies that it raises."""
    try:
        return written.over(where)
    except Varies as varies:
        return varies


def sure(value: Any) -> bool:
    return not isinstance(value, Range | Words)


# ------------------------------------------------------------------------------- brute force


numbers = st.integers(-12, 12)
operands = st.one_of(st.sampled_from(NAMES), numbers.map(lambda n: f"({n})"))


def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    positive = st.integers(1, 12).map(str)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda t: "({}{}{})".format(*t)
        ),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(-12, 12).filter(bool)).map(
            lambda t: "({} {} ({}))".format(*t)
        ),
        st.tuples(st.sampled_from(["abs", "int", "-"]), inner).map(lambda t: "{}({})".format(*t)),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda t: "{}({}, {})".format(*t)
        ),
        st.tuples(inner, st.integers(0, 3)).map(lambda t: "({} ** {})".format(*t)),
        st.tuples(
            inner, inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner, inner
        ).map(lambda t: "({} if {} {} {} else {})".format(*t)),
        st.tuples(inner, inner, inner).map(lambda t: "sorted([{}, {}, {}])[1]".format(*t)),
        st.tuples(inner, positive, inner).map(lambda t: "({} in ({}, {}))".format(*t)),
        st.tuples(inner, positive).map(lambda t: "digits({}, 3)[{} % 3]".format(*t)),
    )


expressions = st.recursive(operands, longer, max_leaves=7)
values = st.sets(st.integers(-9, 18), min_size=1, max_size=5).map(lambda s: tuple(sorted(s)))


@settings(max_examples=examples(1000))
@given(expressions, values, values, values)
def test_a_number_over_a_region_is_that_of_every_text_or_lies_between_its_ends(
    text: str, xs: tuple[int, ...], ys: tuple[int, ...], zs: tuple[int, ...]
) -> None:
    where = region(x=xs, y=ys, z=zs)
    written = function(text)
    each = {written.at(dict(zip(NAMES, point, strict=True))) for point in product(xs, ys, zs)}
    found = over(written, where)
    if isinstance(found, Varies):
        assert found.names
        assert set(found.names) <= set(where.free)
    elif sure(found):
        assert each == {found}
    else:
        low, high = found.ends
        assert low <= min(each)
        assert max(each) <= high
        assert set(found.names) <= set(where.free)
        assert each <= set(found.among(range(low, high + 1)))


@settings(max_examples=examples(500))
@given(expressions, values, values)
def test_ends_hold_where_conditions_bind_variables_together(
    text: str, xs: tuple[int, ...], ys: tuple[int, ...]
) -> None:
    bound = Whole(3, (("x", 1), ("y", -1)))  # y <= x + 3
    where = region((bound,), x=xs, y=ys, z=(2,)).narrowed()
    if where is None:
        return
    written = function(text)
    each = {written.at(assigned) for assigned in where.assignments()}
    if not each:
        return
    found = over(written, where)
    if isinstance(found, Varies):
        assert found.names
    elif sure(found):
        assert each == {found}
    else:
        assert found.ends[0] <= min(each)
        assert max(each) <= found.ends[1]


tokens = st.sampled_from(["text[0]", "text[1]", "text[2]", "'a'", "'b'", "'c'"])
questions = st.one_of(
    st.tuples(tokens, st.sampled_from(["==", "!=", "<", ">="]), tokens).map(" ".join),
    st.tuples(tokens, tokens, tokens).map(lambda t: "{} in ({}, {})".format(*t)),
    tokens.map(lambda t: f"{t} in 'ab'"),
    tokens.map(lambda t: f"{t}.startswith('a')"),
    tokens.map(lambda t: f"text.count({t}) == 2"),
    tokens.map(lambda t: f"text.index({t}) > 0 if {t} in text else True"),
    st.just("sorted(text)[0] == 'a'"),
    st.just("text[::-1] == text"),
    st.just("max(text) > text[0]"),
    st.just("len(set(text)) == 1"),
    st.just("{'a': 1, 'b': 2, 'c': 3}[text[0]] < 2"),
)


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(inner, st.sampled_from(["and", "or", "!=", "if 1 else"]), inner).map(
        lambda t: "({}) {} ({})".format(*t)
    )


@settings(max_examples=examples(500))
@given(st.recursive(questions, joined, max_leaves=4), st.lists(values, min_size=3, max_size=3))
def test_a_word_over_a_region_is_that_of_every_text(
    question: str, allowed: list[tuple[int, ...]]
) -> None:
    letters = {number: "abc"[number % 3] for number in range(-9, 19)}
    where = region(**dict(zip(NAMES, allowed, strict=True)))
    compiled = compile_expression(question, ("text",))
    written = Function(
        lambda found: compiled.call(
            *[[Words.of(found[name], letters) for name in NAMES] for _text in compiled.names]
        ),
        question,
    )
    each = {written.at(dict(zip(NAMES, point, strict=True))) for point in product(*allowed)}
    found = over(written, where)
    if isinstance(found, Varies):
        assert set(found.names) <= set(where.free)
    else:
        assert each == {found}


# ------------------------------------------------------------------------------- digits of a sum


def ten_digits() -> Region:
    """a + b of ten digits each, where b = s - a digit by digit."""
    variables = [Variable(f"a{i}", tuple(range(10))) for i in range(10)]
    variables += [Variable(f"s{i}", tuple(range(19))) for i in range(10)]
    digits = {n: n for n in range(10)}
    places = [Place(Whole(0, ((f"s{i}", 1), (f"a{i}", -1))), digits) for i in range(10)]
    found = Shape(tuple(places), tuple(variables)).whole
    assert found is not None
    return found


def digit(k: int, values: dict[str, Any]) -> Any:
    total = sum((values[f"a{i}"] + (values[f"s{i}"] - values[f"a{i}"])) * 10**i for i in range(10))
    return total // 10**k % 10


def part(where: Region, **allowed: tuple[int, ...]) -> Region:
    for name, some in allowed.items():
        found = where.cut(name, some)[0]
        assert found is not None
        where = found
    return where


def test_a_digit_of_a_sum_is_one_number_once_its_column_and_the_carry_are_known() -> None:
    where = part(ten_digits(), s4=(13,), s3=tuple(range(9)))
    assert digit(4, ranges_of(where)) == 3  # no carry: column 3 gives at most 8, and one is carried
    where = part(ten_digits(), s4=(13,), s3=tuple(range(10, 19)))
    assert digit(4, ranges_of(where)) == 4  # a carry, whatever the columns below give
    where = part(ten_digits(), s4=(9,), s3=(9,), s2=(9,), s1=tuple(range(10, 19)))
    assert digit(4, ranges_of(where)) == 0  # a carry that runs through two nines


def test_a_digit_with_an_open_carry_names_the_column_that_decides_it() -> None:
    where = part(ten_digits(), s4=(13,))
    found = digit(4, ranges_of(where))
    assert found.names[0] == "s3"
    assert found.among(range(10)) == (3, 4)
    where = part(where, s3=(9,))
    assert digit(4, ranges_of(where)).names[0] == "s2"


def test_a_digit_is_a_linear_form_where_its_column_is_open_and_nothing_is_carried_out() -> None:
    where = part(ten_digits(), s4=(0, 1, 2, 3), s3=tuple(range(9)))
    found = digit(4, ranges_of(where))
    assert found.linear == Whole(0, (("s4", 1),))
    with pytest.raises(Varies) as varies:
        int(found)
    assert varies.value.names == ("s4",)


# ------------------------------------------------------------------------------- single questions


def test_variables_with_one_value_are_plain_numbers() -> None:
    values = ranges_of(region(x=(3,), y=(1, 2)))
    assert values["x"] == 3
    assert type(values["x"]) is int
    assert isinstance(values["y"], Range)


def test_the_variable_that_moves_a_number_most_is_named_first() -> None:
    values = ranges_of(region(x=(0, 1), y=(0, 1), z=(0, 1)))
    number = values["x"] + 10 * values["y"] - 3 * values["z"]
    assert number.names == ("y", "z", "x")
    assert number.ends == (-3, 11)


def test_what_a_place_may_hold_bounds_a_difference_more_than_its_variables_do() -> None:
    values = ranges_of(ten_digits())
    assert (values["s3"] - values["a3"]).ends == (0, 9)
    assert (values["a3"] - values["s3"] + 1).ends == (-8, 1)


def test_a_limit_of_a_form_holds_for_the_same_form_with_another_constant() -> None:
    place = Place(Whole(2, (("s", 1), ("a", -1))), {n: n for n in range(10)})  # 2 + s - a in 0..9
    variables = (Variable("s", tuple(range(19))), Variable("a", tuple(range(10))))
    whole = Shape((place,), variables).whole
    assert whole is not None
    values = ranges_of(whole)
    assert (values["s"] - values["a"]).ends == (-2, 7)
    assert (values["a"] - values["s"] + 5).ends == (-2, 7)


def test_comparisons_are_decided_up_to_the_ends() -> None:
    x = ranges_of(region(x=(0, 1)))["x"]
    assert (x < 2, x < 0, x <= 1, x <= -1, x > 1, x > -1, x >= 0, x >= 2) == (
        True, False, True, False, False, True, True, False,
    )  # fmt: skip
    for open in (lambda: x < 1, lambda: x <= 0, lambda: x > 0, lambda: x >= 1, lambda: x == 1):
        with pytest.raises(Varies):
            open()


def test_words_of_two_places_are_equal_only_where_that_is_sure() -> None:
    values = ranges_of(region(x=(0, 1), y=(0, 1)))
    letters = {0: "a", 1: "b"}
    x, y = (Words.of(values[name], letters) for name in "xy")
    assert x == Words.of(values["x"], dict(letters))
    assert x != Words.of(values["y"], {0: "c", 1: "d"})
    with pytest.raises(Varies) as varies:
        assert x == y
    assert set(varies.value.names) == {"x", "y"}


def test_equality_is_refused_by_divisors_and_gaps() -> None:
    values = ranges_of(region(x=(0, 2, 4), y=(0, 1, 2, 3)))
    assert (values["x"] == 3) is False
    assert (2 * values["x"] + 4 * values["y"] == 5) is False
    assert values["x"] % 2 == 0
    with pytest.raises(Varies):
        assert values["x"] == 2


def test_what_needs_one_number_refuses_several() -> None:
    x = ranges_of(region(x=(0, 1)))["x"]
    for use in (hash, int, str, repr, [1, 2].__getitem__, lambda n: 5 % n, lambda n: 2**n):
        with pytest.raises(Varies):
            use(x)
    assert bool(x + 1)


def test_least_and_largest_of_overlapping_numbers_keep_their_ends() -> None:
    values = ranges_of(region(x=(0, 5), y=(3, 4)))
    assert least([values["x"], values["y"], 9]).ends == (0, 4)
    assert largest([values["x"], values["y"]]).ends == (3, 5)
    assert largest([values["x"], 7]) == 7


def test_a_word_is_decided_where_all_or_none_of_its_tokens_match() -> None:
    number = ranges_of(region(x=(0, 1, 2)))["x"]
    word = Words.of(number, {0: "(", 1: "[", 2: "{", 3: ")"})
    assert (word == ")") is False
    assert one_of(word, ("(", "[", "{"))
    assert not one_of(word, {")"})
    with pytest.raises(Varies) as varies:
        assert word == "("
    assert varies.value.names == ("x",)
    assert Words.of(number, {0: "a", 1: "a", 2: "a"}) == "a"


def test_words_that_are_numerals_become_numbers() -> None:
    number = ranges_of(region(x=(0, 1, 2)))["x"]
    assert Words.of(number, {n: str(n) for n in range(10)}).whole() is number
