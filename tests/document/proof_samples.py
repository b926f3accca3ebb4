"""Outcomes made by hand, as a search for a proof would return them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import byhand
from byhand.model import Model
from byhand.proving.domain import Region
from byhand.proving.outcome import (
    OPEN,
    PROVEN,
    REFUTED,
    Counterexample,
    Leaf,
    Outcome,
    Split,
    Tree,
)
from byhand.proving.properties import Property, read_property
from byhand.tokens import Vocabulary

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
Decide = Callable[[Region | None], Leaf]


@cache
def clock() -> Model:
    return byhand.open_model(str(EXAMPLES / "clock.yaml"))


def sums_modulo_seven() -> Property:
    return read_property(
        {
            "property": "the clock adds modulo 7",
            "texts": {"pattern": "{a} {b}", "where": {"a": "0..6", "b": "0..6"}},
            "claim": {"next": "(a + b) % 7"},
        },
        clock(),
    )


def letters(region: Region | None) -> Leaf:
    """Decided by one pass, with a lead that depends on the region."""
    if region is None:
        return Leaf(None, "none")
    low = sum(values[0] for values in region.allowed.values())
    return Leaf(region, "letters", Fraction(low % 23 + 3, 97), (low % 7,))


def each(region: Region | None) -> Leaf:
    assert region is not None
    first = next(region.assignments())
    return Leaf(
        region, "each", Fraction(3765, 10_000), where=region.text(first), texts=region.texts
    )


@cache
def proven_clock() -> Outcome:
    """Row 0 by letters, rows 1 to 3 text by text, the rest text by text in another case."""
    property = sums_modulo_seven()
    whole = property.goals[0].shape.whole
    assert whole is not None
    first, others = whole.cut("a", (0,))
    assert others is not None
    some, rest = others.cut("a", (1, 2, 3))
    by_letters = Leaf(first, "letters", Fraction(1, 3))
    tree = Split(
        whole, "a", (0,), (by_letters, Split(others, "a", (1, 2, 3), (each(some), each(rest))))
    )
    return Outcome(property, PROVEN, (tree,), 0.0421, 43)


@cache
def refuted_clock() -> Outcome:
    """The same, but after 3 and 5 comes 2."""
    found = proven_clock()
    tree = found.trees[0]
    assert isinstance(tree, Split)
    others = tree.parts[1]
    assert isinstance(others, Split)
    left = [Leaf(part.region, "open") for part in others.parts]
    known = Split(others.region, "a", (1, 2, 3), (left[0], left[1]))
    example = Counterexample(
        0,
        (3, 5),
        {"a": 3, "b": 5},
        (1,),
        2,
        "logits[1,1]",
        Fraction(97, 100),
        Fraction(49, 50),
    )
    trees = (replace(tree, parts=(tree.parts[0], known)),)
    return replace(found, answer=REFUTED, trees=trees, counterexample=example)


# ------------------------------------------------------------------ an adder


@cache
def ten_digits() -> Property:
    """Sums digit by digit: b = s - a."""
    vocabulary = Vocabulary((*map(str, range(10)), "+", "="), "words")
    spec = replace(clock().spec, context=30)
    return read_property(
        {
            "property": "the sum of two numbers of ten digits",
            "texts": {
                "pattern": "{a9} … {a0} + {b9} … {b0} =",
                "where": {"a0..a9": "0..9", "s0..s9": "0..18", "b0..b9": "s - a"},
            },
            "claim": {"next": "s9 // 10"},
        },
        replace(clock(), spec=spec, vocabulary=vocabulary),
    )


@cache
def adder(leaves: int = 2_000, decide: Decide = letters, answer: str = PROVEN) -> Outcome:
    """A tree with so many cases, cut digit by digit from the last on; the widest is cut first."""
    property = ten_digits()
    whole = property.goals[0].shape.whole
    assert whole is not None
    tree = _grown(whole, leaves, 0, decide)
    return Outcome(property, answer, (tree,), 402.4, 6_160)


def _grown(region: Region | None, leaves: int, depth: int, decide: Decide) -> Tree:
    """A region with about so many cases: the lower a sum, the fewer cases it needs."""
    if region is None or leaves < 2:
        return decide(region)
    name = f"s{min(depth, 9)}"
    values = region.allowed[name]
    if len(values) == 1:
        return _grown(region, leaves, depth + 1, decide) if depth < 9 else decide(region)
    first = values[: max(1, len(values) * 2 // 5)]
    one, other = region.cut(name, first)
    share = max(1, leaves * 2 // 5)
    return Split(
        region,
        name,
        first,
        (_grown(one, share, depth + 1, decide), _grown(other, leaves - share, depth, decide)),
    )


@cache
def open_adder() -> Outcome:
    """Out of time: what has 18 in its second last sum is left."""

    def decide(region: Region | None) -> Leaf:
        if region is not None and region.allowed["s1"][0] >= 13:
            return Leaf(region, "open")
        return letters(region)

    found = adder(200, decide, OPEN)
    return replace(found, why="out of time after 10 minutes")


# ------------------------------------------------------------------ texts of several lengths


@cache
def texts_up_to(length: int = 4) -> Outcome:
    """All texts of up to so many tokens, each length text by text."""
    model = replace(clock(), spec=replace(clock().spec, context=length))
    source = {"texts": {"up to": length}, "claim": {"next": "text[0]"}}
    property = read_property(source, model)
    trees = tuple(each(goal.shape.whole) for goal in property.goals)
    return Outcome(property, PROVEN, trees, 3.25, 2_800)


def listed_texts(answers: Mapping[str, str] | None = None) -> Outcome:
    """A few texts of a list, each with its own answer."""
    answers = answers or {"5 4": "2", "1 1": "2", "0 6": "6"}
    source = {"texts": list(answers), "claim": {"next": {"table": dict(answers)}}}
    property = read_property(source, replace(clock(), spec=replace(clock().spec, context=12)))
    trees = tuple(each(goal.shape.whole) for goal in property.goals)
    return Outcome(property, PROVEN, trees, 0.01, 1)


OUTCOMES: dict[str, Callable[[], Outcome]] = {
    "clock": proven_clock,
    "refuted": refuted_clock,
    "adder": adder,
    "open": open_adder,
    "lengths": texts_up_to,
    "list": listed_texts,
}
