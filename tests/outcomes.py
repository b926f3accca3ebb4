"""Outcomes made by hand: a property of two tokens of `tiny`, proven, refuted or open."""

from __future__ import annotations

from fractions import Fraction

from byhand.models import open_model
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

WORDS = {"texts": {"up to": 2}, "claim": {"next": ["a"]}}


def two_tokens() -> Shape:
    """All texts of two tokens of `tiny`: 9 of them."""
    names = ("x", "y")
    places = (Place(Whole(0, ((name, 1),)), {id: id for id in range(3)}) for name in names)
    return Shape(tuple(places), tuple(Variable(name, (0, 1, 2)) for name in names))


def claimed() -> Property:
    """The next token is a."""
    tiny = open_model("tiny")
    goal = Goal(two_tokens(), Next(Function(lambda _values: (0,), "a")))
    return Property(tiny, (goal,), tiny, source=WORDS)


def part(name: str, *values: int) -> Region:
    """The texts where a variable has one of these values."""
    shape = two_tokens()
    allowed = {one.name: one.values for one in shape.variables}
    return Region(shape, {**allowed, name: values})


def halves(first: Leaf, other: Leaf) -> Tree:
    """The domain cut in two: x is a, or b or c."""
    whole = two_tokens().whole
    assert whole is not None
    return Split(whole, "x", (0,), (first, other))


def proven() -> Outcome:
    """Three texts in one pass, six each in its own; the least lead is that of `b c`."""
    letters = Leaf(part("x", 0), "letters", Fraction(1, 3), next=(0,))
    each = Leaf(part("x", 1, 2), "each", Fraction(1, 7), where=(1, 2), texts=6)
    return Outcome(claimed(), PROVEN, (halves(letters, each),), 0.25, 7, called="tiny")


def refuted() -> Outcome:
    """`b c` is followed by c."""
    found = Counterexample(
        0, (1, 2), {"x": 1, "y": 2}, (0,), 2, "logits[1,0]", Fraction(1, 4), Fraction(1, 2)
    )
    letters = Leaf(part("x", 0), "letters", Fraction(1, 3), next=(0,))
    left = Leaf(part("x", 1, 2), "open")
    trees = (halves(letters, left),)
    return Outcome(claimed(), REFUTED, trees, 0.25, 3, counterexample=found, called="tiny")


def left_open(why: str = "out of time") -> Outcome:
    """A third is decided."""
    letters = Leaf(part("x", 0), "letters", Fraction(1, 3), next=(0,))
    left = Leaf(part("x", 1, 2), "open")
    return Outcome(claimed(), OPEN, (halves(letters, left),), 2.0, 3, why=why, called="tiny")
