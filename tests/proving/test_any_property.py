"""Whatever is written in a property, it is read or refused with a message, never with a crash."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from property_samples import MACHINE, machine

from budgets import examples
from byhand.errors import InputError
from byhand.proving.properties import in_words, read_property

CHARACTERS = machine([*"01ab+()|."], kind="characters")
patterns = st.text("AB01ab[](){}|.\\-^:?<>…,+ ", max_size=14)
pieces = st.lists(
    st.sampled_from(["A", "[A B]", "{a}", "{b}", "(?<c>[0-3])", "{c}", "(", ")", "|", "{2}",
                     "{1,2}", "{a0}", "…", "{a2}", "(?<d>", "[0-9]", ".", "{a + 1}",
                     "{d[0]}", "{d}"]),
    max_size=6,
).map(" ".join)  # fmt: skip
formulas = st.text("ab01dtextc+-*/%()[]<>=., 'if", max_size=12) | st.sampled_from(
    ["a", "b + a", "text[9]", "d[0]", "c // a", "sum(d)", "a if b else c", "text", "number(text)"]
)
ranges = st.sampled_from(["0..3", "3..0", "a", "b - a", "[A B]", "b in 0..2", "c", "", "letter"])
values = st.recursive(
    formulas | st.sampled_from(["sorted", "copy", "A", "unmoved", "1/2", "-1", "4"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(["of", "over", "by", "sum", "count", "counting", "table", "token", "then",
                         "expression", "parity", "majority", "printed", "within", "A B", "digits"]),
        inner,
        max_size=2,
    ),
    max_leaves=4,
)  # fmt: skip
KINDS = ["next", "continuation", "lead", "at", "at least", "same as", "constant", "unmoved"]


def try_to_read(tree: dict[str, Any], model: Any = MACHINE) -> None:
    with suppress(InputError):
        found = read_property(tree, model)
        assert in_words(found)
        assert read_property(found.source, model).source == found.source


@settings(max_examples=examples(400))
@given(patterns | pieces, st.sampled_from([MACHINE, CHARACTERS]))
def test_any_pattern(pattern: str, model: Any) -> None:
    try_to_read({"texts": pattern, "claim": "constant"}, model)


@settings(max_examples=examples(400))
@given(
    pieces,
    st.dictionaries(st.sampled_from(["a", "b", "a0..a2", "c", "b, c", "x y"]), ranges, max_size=3),
    st.lists(formulas, max_size=2),
    formulas,
)
def test_any_variables_and_conditions(
    pattern: str, where: dict[str, str], conditions: list[str], next: str
) -> None:
    texts = {"pattern": f"A {pattern}", "where": where, "conditions": conditions}
    try_to_read({"texts": texts, "claim": {"next": next}})


@settings(max_examples=examples(400))
@given(
    st.dictionaries(st.sampled_from(KINDS), values, max_size=2) | values,
    st.none() | values,
    st.none() | values,
)
def test_any_claim_and_weights(claim: Any, weights: Any, embeddings: Any) -> None:
    tree = {"texts": "(?<a>[0-2]) (?<d>[A B]{2})", "claim": claim}
    tree |= {} if weights is None else {"weights": weights}
    tree |= {} if embeddings is None else {"embeddings": embeddings}
    try_to_read(tree)
