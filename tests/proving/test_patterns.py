"""Patterns, lists and lengths: which texts they mean."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_samples import MACHINE, domain, machine, read, texts_of

from byhand.errors import InputError
from byhand.proving.domain import Whole

CHARACTERS = machine([*"0123456789+=ab", " ", "."], kind="characters")
UNSPACED = machine([*"01ab+"], kind="characters")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("A B", ["A B"]),
        ("[A B] =", ["A =", "B ="]),
        ("[0-2]", ["0", "1", "2"]),
        ("[0-1 A]", ["0", "1", "A"]),
        ("[0 1]{2}", ["0 0", "0 1", "1 0", "1 1"]),
        ("A{1,3}", ["A", "A A", "A A A"]),
        ("[A B]{1,2}", ["A", "B", "A A", "A B", "B A", "B B"]),
        ("(A | B C) =", ["A =", "B C ="]),
        ("(A | B){2}", ["A A", "A B", "B A", "B B"]),
        ("(A B){2}", ["A B A B"]),
        ("A | B", ["A | B"]),  # outside parentheses, a bar is a token
        (r"(A \| | B)", ["A |", "B"]),
        (r"\( [( )] \)", ["( ( )", "( ) )"]),
        ("[^0-9 + = ( ) | even odd <end> h1 h2]", ["A", "B", "C"]),
        ("(?<x>[A B]) {x}", ["A A", "B B"]),
        ("((?<x>[A B]) +){2} {x[0]}", ["A + A + A", "A + B + A", "B + A + B", "B + B + B"]),
        ("<end>", ["<end>"]),
        ("", None),
    ],
)
def test_a_pattern_of_words_means_these_texts(pattern: str, texts: list[str] | None) -> None:
    if texts is None:
        with pytest.raises(InputError):
            domain(pattern)
    else:
        assert domain(pattern) == texts


def test_any_token_is_a_point_that_stands_alone() -> None:
    assert domain(".") == list(MACHINE.vocabulary.tokens)
    assert len(domain(". A .")) == len(MACHINE.vocabulary) ** 2
    dotted = machine(["a.b", "."])
    assert domain("a.b .", dotted) == ["a.b a.b", "a.b ."]
    assert domain(r"a.b \.", dotted) == ["a.b ."]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("[0-1]+a", ["0+a", "1+a"]),
        ("a b", ["a b"]),  # the blank is a token of this vocabulary
        ("[a ]{2}", ["aa", "a ", " a", "  "]),
        (r"a\.", ["a."]),
        ("{x}={x}", ["3=3", "4=4"]),
        ("(a|b+)", ["a", "b+"]),
    ],
)
def test_a_pattern_of_characters_is_written_as_the_text_is(pattern: str, texts: list[str]) -> None:
    more = {"where": {"x": "3..4"}} if "x" in pattern else {}
    assert domain(pattern, CHARACTERS, **more) == texts


def test_blanks_that_are_no_tokens_are_for_reading() -> None:
    assert domain(" [0 1] +{2} ", UNSPACED) == ["0++", "1++"]
    assert domain("[0 1] [a b]", UNSPACED) == ["0a", "0b", "1a", "1b"]


def test_groups_of_tokens_have_names() -> None:
    groups = {"letter": ["A", "B"], "sign": ["+", "="], "any": ["letter", "sign"]}
    assert domain("[:letter:] [:sign: C]", groups=groups)[:4] == ["A +", "A =", "A C", "B +"]
    assert domain("[:any:]", groups=groups) == ["+", "=", "A", "B"]


def test_several_patterns_are_one_domain() -> None:
    assert domain(["A [0 1]", "B"]) == ["A 0", "A 1", "B"]


def test_variables_run_through_a_family() -> None:
    where = {"a0..a2": "0..1"}
    assert domain("{a2} … {a0}", where=where) == domain("[0 1]{3}")
    assert domain("{a0} ... {a2}", where=where) == domain("[0 1]{3}")
    assert domain("{a2} … {a0} {a2}", where={"a0, a1": "0..1", "a2": "4..4"})[0] == "4 0 0 4"


def test_a_place_may_hold_a_linear_expression() -> None:
    assert domain("{a} {2*a + 1} {9 - a}", where={"a": "0..4"})[3] == "3 7 6"
    assert domain("{a - 1}", where={"a": "0..3"}) == ["0", "1", "2"]  # -1 has no token


def test_a_word_may_contain_a_number() -> None:
    assert domain("h{a} =", where={"a": "1..2"}) == ["h1 =", "h2 ="]


def test_relations_of_a_family_hold_member_by_member() -> None:
    where = {"a0..a1": "0..9", "s0..s1": "0..18", "b0..b1": "s - a in 0..9"}
    found = read(texts={"pattern": "{a1} {a0} + {b1} {b0}", "where": where}, claim={"next": "A"})
    (goal,) = found.goals
    assert goal.shape.places[4].value == Whole(0, (("s0", 1), ("a0", -1)))
    whole = goal.shape.whole
    assert whole is not None
    assert whole.texts == 10**4
    assert sorted(texts_of(found)) == sorted(domain("[0-9]{2} + [0-9]{2}"))


def test_relations_may_be_written_in_any_order_and_of_each_other() -> None:
    assert domain("{c} {b} {a}", where={"c": "b + 1", "b": "2*a", "a": "0..2"}) == [
        "1 0 0", "3 2 1", "5 4 2",
    ]  # fmt: skip


def test_a_relation_keeps_its_range_where_more_tokens_exist() -> None:
    assert domain("{a} {b}", where={"a": "0..9", "b": "9 - a in 2..4"}) == ["5 4", "6 3", "7 2"]


def test_a_relation_that_no_place_holds_keeps_its_range() -> None:
    where = {"a, b": "0..4", "sum_of_both": "a + b in 3..4"}
    found = domain("{a} {b}", where=where)
    assert found == [f"{a} {b}" for a, b in product(range(5), repeat=2) if 3 <= a + b <= 4]


@pytest.mark.parametrize("sign", ["<=", "<", ">=", ">", "=="])
def test_conditions_compare_linear_expressions(sign: str) -> None:
    found = domain("{a} {b}", where={"a, b": "0..4"}, conditions=[f"a {sign} 2*b - 1"])
    pairs = product(range(5), repeat=2)
    assert found == [f"{a} {b}" for a, b in pairs if eval(f"{a} {sign} 2*{b}-1")]


def test_conditions_may_be_chains_and_of_families_and_of_named_places() -> None:
    assert domain("(?<a>[0-9]{3})", conditions="a[0] < a[1] < a[2]")[-1] == "7 8 9"
    where = {"a0..a1": "0..2", "b0..b1": "0..2"}
    found = domain("{a0} {a1} {b0} {b1}", where=where, conditions=["a <= b"])
    assert len(found) == 36
    assert all(text[0] <= text[4] and text[2] <= text[6] for text in found)


def test_values_may_be_listed_as_numbers_tokens_or_a_group() -> None:
    assert domain("{a}", where={"a": [7, 3]}) == ["3", "7"]
    assert domain("{a} {a}", where={"a": ["B", "C"]}) == ["B B", "C C"]
    assert domain("{a}", where={"a": "letter"}, groups={"letter": ["A", "C"]}) == ["A", "C"]


def test_numbers_are_spelled_as_the_property_says() -> None:
    words = machine(["zero", "one", "two", "3"])
    spelling = ["zero", "one", "two"]
    assert domain("{a}", words, where={"a": "0..3"}, spelling=spelling) == [
        "zero", "one", "two", "3",
    ]  # fmt: skip
    texts = {
        "pattern": "(?<a>[zero one]) (?<b>[zero one])",
        "spelling": {"0": "zero", "1": "one", "2": "two"},
    }
    found = read(words, texts=texts, claim={"next": "a + b"})
    assert found.goals[0].claim.answers.at({"a": 1, "b": 1}) == (2,)  # type: ignore[union-attr]


def test_all_texts_up_to_a_length_or_of_one_length() -> None:
    next = {"next": "A"}
    assert texts_of(read(texts={"up to": 2, "of": ["A", "B"]}, claim=next)) == [
        "A", "B", "A A", "A B", "B A", "B B",
    ]  # fmt: skip
    assert len(texts_of(read(texts={"length": 2}, claim=next))) == len(MACHINE.vocabulary) ** 2
    assert len(texts_of(read(texts={"length": 3, "of": "[0-4]"}, claim=next))) == 125


def test_a_list_of_texts_is_one_shape_for_each_length() -> None:
    found = read(texts=["A B", "B", "A C", "A B"], claim={"next": "text[-1]"})
    assert texts_of(found) == ["B", "A B", "A C"]
    assert found.goals[0].shape.variables == ()
    (line,) = found.goals[1].shape.variables
    assert (line.name, line.values) == ("line", (0, 1))


def test_ten_to_the_twenty_texts_are_not_counted_one_by_one() -> None:
    found = read(texts="[0-9]{10} | [0-9]{10} |", claim={"next": "number(text[:10]) % 7"})
    whole = found.goals[0].shape.whole
    assert whole is not None
    assert whole.texts == 10**20
    assert whole.first() == dict.fromkeys(whole.allowed, 0)


PARTS = ("A", "B", "[A B]", "(A | B C)", "C{1,2}", "[0-2]{2}")


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4))
def test_parts_one_after_the_other_mean_all_combinations(parts: list[str]) -> None:
    each = [domain(part) for part in parts]
    combined = {" ".join(texts) for texts in product(*each)}
    assert set(domain(" ".join(parts))) == combined


# ------------------------------------------------------------------------------- mistakes


def mistake(pattern: Any, **more: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        domain(pattern, **more)
    assert caught.value.where
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("(A", "a parenthesis is not closed", r"write \( for the token"),
        ("A)", "')' closes nothing", r"write \) for the token"),
        ("A ]", "']' closes nothing", r"write \] for the token"),
        ("[A", "a set of tokens is not closed", r"write \[ for the token"),
        ("[]", "a set without tokens", None),
        ("{", "braces hold a variable or a repetition", r"write \{ for the token"),
        ("A {3}", "a token is missing",
         "a repetition stands right behind what it repeats: [0-9]{3}"),
        ("A{2,1}", "a repetition goes from the smaller to the larger number", None),
        ("A{1,}", "a repetition needs an end", None),
        ("A{0,2}", "the pattern allows an empty text", "repeat at least once: {1,3}, not {0,3}"),
        ("Z", "'Z' is not in the vocabulary", None),
        ("[A Z]", "'Z' is not in the vocabulary", None),
        ("Even", "'Even' is not in the vocabulary", "did you mean even?"),
        ("[:digits:]", "there is no group 'digits'", None),
        ("(?<a>A) (?<a>B)", "the name 'a' is given twice", None),
        ("(?<len>[A B])", "a variable cannot be called 'len'", None),
        ("(?<1>A)", "a place is named like this: (?<a>[0-9])", None),
        ("A … B", "dots stand between two variables of one family", r"write \… for the token"),
        ("{x} B", "there is no variable 'x' here", None),
        ("A\\", "a backslash stands before a sign", None),
        ("[0-9]{1,200} [0-9]{1,200}", "the pattern allows too many different forms of texts",
         "repetitions with many lengths, one after the other, multiply"),
        ("(A | B C){1,14}", "the pattern allows too many different forms of texts",
         "repetitions with many lengths, one after the other, multiply"),
        ("(" * 2000 + "A", "nested more than 50 deep", None),
        ("A{200000}", "the texts of the pattern are too long", None),
        ("(((A{9999}){9999}){9999}){9999}", "the texts of the pattern are too long", None),
    ],
)  # fmt: skip
def test_a_mistake_in_a_pattern_is_named(pattern: str, message: str, hint: str | None) -> None:
    error = mistake(pattern)
    assert error.where == "texts.pattern" or error.where == "texts"
    assert error.message == message
    assert error.hint == hint


@pytest.mark.parametrize(
    ("where", "message", "place"),
    [
        ({"a": "", "b": "0..9"}, "a variable has no values", "a"),
        ({"a": "9..0"}, "a range goes from the smaller to the larger number", "a"),
        ({"a": "0..999999"}, "a variable has too many values", "a"),
        ({"a": "0..12"}, "a has no token for a number that it may be", ""),
        ({"a": "b", "b": "a"}, "relations run in a circle", "a"),
        ({"a": "b + 1"}, "there is no variable 'b' here", "a"),
        ({"a": "b*b", "b": "0..3"}, "this is not linear in variables", "a"),
        ({"a": "-" * 1900 + "b", "b": "0..3"}, "this is not linear in variables", "a"),
        ({"a": "b / 2", "b": "0..3"}, "this is not linear in variables", "a"),
        ({"a": "b in 3", "b": "0..3"}, "b in 3 is not possible here", "a"),
        ({"a": "w", "w": ["A", "B"]}, "'w' stands for words, not for numbers", "a"),
        ({"a": {"b": "c"}}, "a table with the keys b is not possible here", "a"),
        ({"a": ["A", "Z"]}, "'Z' is not in the vocabulary", "a"),
        ({"a": "0..3", "b": "0..3"}, "no place of the pattern holds the variable 'b'", ""),
        ({"a": "0..3", "a ": "0..3"}, "the name 'a' is given twice", "a "),
        ({"a": "0..3", "if": "0..3"}, "a variable cannot be called 'if'", "if"),
        ({"a": "0..3", "text": "0..3"}, "a variable cannot be called 'text'", "text"),
        ({"a": "0..3", "3": "0..3"}, "this is no name of a variable", "3"),
    ],
)
def test_a_mistake_in_a_variable_is_named(where: Any, message: str, place: str) -> None:
    error = mistake("{a}", where=where)
    assert error.message == message
    assert (error.where or "").endswith(place)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a != 3", "this comparison is not possible here"),
        ("a", "a condition is a comparison"),
        ("a <= c", "there is no variable 'c' here"),
        ("a <=", "this is not linear in variables"),
        ("a > 9", "there is no text like this"),
        (["a"], "a list of 1 is not possible here"),
    ],
)
def test_a_mistake_in_a_condition_is_named(condition: Any, message: str) -> None:
    assert mistake("{a}", where={"a": "0..9"}, conditions=[condition]).message == message


def test_families_of_a_condition_have_the_same_members() -> None:
    where = {"a0..a1": "0..1", "b0..b2": "0..1"}
    error = mistake("{a0} {a1} {b0} {b1} {b2}", where=where, conditions=["a <= b"])
    assert error.message == "the families have different members"


def test_too_many_variables_or_numbers_are_refused() -> None:
    assert mistake("{a0}", where={"a0..a30000": "0..1"}).message == "too many variables"
    error = mistake("{99999*a}", where={"a": "0..99999"})
    assert error.message == "99999*a can have too many values"
    assert mistake("{a}", where="a").message == "where is a table"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"pattern": "A", "list": ["A"]}, "the texts are given in one way"),
        ({}, "the texts are given in one way"),
        ({"paterns": "A"}, "there is no key 'paterns' here"),
        ({"list": []}, "a list of 0 is not possible here"),
        ({"list": ["A Z"]}, "'Z' is not in the vocabulary"),
        ({"list": ["A"], "where": {"a": "0..1"}}, "'where' has no meaning for 'list'"),
        ({"up to": "many"}, "many is not possible here"),
        ({"up to": 2, "of": ["Z"]}, "'Z' is not in the vocabulary"),
        ({"pattern": "A", "of": ["A"]}, "'of' has no meaning for 'pattern'"),
        ({"pattern": "A", "spelling": {"x": "y"}}, "a spelling is given for whole numbers"),
        ({"pattern": "A", "spelling": ["A", "A"]}, "two numbers cannot be written alike"),
        ({"pattern": "A", "spelling": {"0": "1"}}, "two numbers cannot be written alike"),
        ({"pattern": "A", "groups": ["A"]}, "a list of 1 is not possible here"),
    ],
)
def test_a_mistake_in_the_texts_is_named(texts: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(texts=texts, claim={"next": "A"})
    assert caught.value.message == message


def test_texts_longer_than_the_context_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        read(machine(["A", "B"], context=3), texts="[A B]{4}", claim={"next": "A"})
    assert caught.value.message == "the text is too long for this model"
