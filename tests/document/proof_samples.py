"""Outcomes made by hand, as a search for a proof would return them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import byhand
from byhand.model import Model
from byhand.proving.claims import Function, Next
from byhand.proving.domain import Place, Region, Shape, Variable, Whole
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
from byhand.proving.properties import Goal, Property
from byhand.tokens import Vocabulary

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DIGITS = {digit: digit for digit in range(10)}
Decide = Callable[[Region | None], Leaf]


@cache
def clock() -> Model:
    return byhand.open_model(str(EXAMPLES / "clock.yaml"))


def variable(name: str, factor: int = 1) -> Whole:
    return Whole(0, ((name, factor),))


def sums_modulo_seven() -> Property:
    tokens = {number: number for number in range(7)}
    shape = Shape(
        (Place(variable("a"), tokens), Place(variable("b"), tokens)),
        (Variable("a", tuple(range(7))), Variable("b", tuple(range(7)))),
    )
    answers = Function(lambda at: ((at["a"] + at["b"]) % 7,), "(a + b) % 7")
    source = {"property": "the clock adds modulo 7"}
    return Property(clock(), (Goal(shape, Next(answers)),), clock(), source=source)


def cut(tree: Leaf, name: str, first: tuple[int, ...], decide: Decide) -> Tree:
    """A case cut in two, each part decided anew."""
    assert tree.region is not None
    one, other = tree.region.cut(name, first)
    return Split(tree.region, name, first, (decide(one), decide(other)))


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


def ten_digits(length: int = 10) -> Property:
    """Sums digit by digit: b = s - a, as 'a9 … a0 + b9 … b0 ='."""
    vocabulary = Vocabulary((*map(str, range(10)), "+", "="), "words")
    model = replace(clock(), vocabulary=vocabulary)
    places = range(length - 1, -1, -1)
    shape = Shape(
        (
            *(Place(variable(f"a{k}"), DIGITS) for k in places),
            Place.of_token(10),
            *(Place(Whole(0, ((f"s{k}", 1), (f"a{k}", -1))), DIGITS) for k in places),
            Place.of_token(11),
        ),
        (
            *(Variable(f"a{k}", tuple(range(10))) for k in places),
            *(Variable(f"s{k}", tuple(range(19))) for k in places),
        ),
    )
    answers = Function(lambda at: (at[f"s{length - 1}"] // 10,), f"s{length - 1} // 10")
    source = {"property": "the sum of two numbers of ten digits"}
    return Property(model, (Goal(shape, Next(answers)),), model, source=source)


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


def open_adder() -> Outcome:
    """Out of time: what has 18 in its second last sum is left."""

    def decide(region: Region | None) -> Leaf:
        if region is not None and region.allowed["s1"][0] >= 13:
            return Leaf(region, "open")
        return letters(region)

    found = adder(200, decide, OPEN)
    return replace(found, why="out of time after 10 minutes")


# ------------------------------------------------------------------ texts of several lengths


def texts_up_to(length: int = 4) -> Outcome:
    """All texts of up to so many tokens, each length text by text."""
    tokens = {number: number for number in range(7)}
    goals, trees = [], []
    for count in range(1, length + 1):
        names = [f"t{place}" for place in range(count)]
        shape = Shape(
            tuple(Place(variable(name), tokens) for name in names),
            tuple(Variable(name, tuple(range(7))) for name in names),
        )
        answers = Function(lambda at: (at["t0"],), "t0")
        goals.append(Goal(shape, Next(answers)))
        trees.append(each(shape.whole))
    source = {"property": "the first token comes again"}
    property = Property(clock(), tuple(goals), clock(), source=source)
    return Outcome(property, PROVEN, tuple(trees), 3.25, 2_800)


OUTCOMES: dict[str, Callable[[], Outcome]] = {
    "clock": proven_clock,
    "refuted": refuted_clock,
    "adder": adder,
    "open": open_adder,
    "lengths": texts_up_to,
}
