"""A worksheet's answers are read as people type them; nothing else in a file is touched."""

from __future__ import annotations

import pytest

from byhand.checking.readers.answers import readable

HEAD = "student: Ana\nprecision: decimals:3\nmarks:\n  a[0]: 1\n\nclaims:\n"
FOOT = "\n\ngiven:\n  b: [0,5, 1]\n"


def read(answer: str, key: str = "a[0]") -> str:
    found = readable(f"{HEAD}  {key}: {answer}{FOOT}")
    assert found.startswith(HEAD)
    assert found.endswith(FOOT)
    return found.removeprefix(f"{HEAD}  {key}: ").removesuffix(FOOT)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("[0,387, 0,146]", '["0.387", "0.146"]'),
        ("0,387; -0,146", '["0.387", "-0.146"]'),
        ("0.387 0.146", '["0.387", "0.146"]'),
        ("0.387, 0.146", '["0.387", "0.146"]'),
        ("[0.387, 0.146", '["0.387", "0.146"]'),
        ("[?, 0.146]", '["_", "0.146"]'),
        ("[, 0.146]", '["_", "0.146"]'),
        ("[-, 0.146]", '["_", "0.146"]'),
        ("[]", "_"),
        ("0,55", '"0.55"'),
        ("1.833 nats", '"1.833"'),
        ("= 0.5", '"0.5"'),
        ("0.5.", '"0.5"'),
        ("a: b: c", '"a: b: c"'),
        ("&x 1", '"&x 1"'),
    ],
)
def test_an_answer_is_written_as_it_was_meant(typed: str, meant: str) -> None:
    assert read(typed) == meant


@pytest.mark.parametrize(
    "typed",
    ["[0.387, 0.146]", "[0.1,0.2]", "0.5; 0.2", "_", "", "1/3", "19.8%", "~0.2", '"0.5"', "2.6M",
     "e/(1 + e)", "[[0.1, 0.2], [0.3, 0.4]]", "masked"],
)  # fmt: skip
def test_an_answer_that_is_read_anyway_stays_as_it_is(typed: str) -> None:
    assert read(typed) == typed


def test_a_word_is_no_number() -> None:
    assert read("1,5", key="next[0]") == "1,5"


def test_rows_below_their_name_stay_as_they_are() -> None:
    text = f"{HEAD}  a[0]:\n    - 0.1\n    - 0.2{FOOT}"
    assert readable(text) == text


def test_other_files_of_claims_stay_as_they_are() -> None:
    text = "claims:\n  loss: 0,55 nats\n"
    assert readable(text) == text
