"""The answer to a property: proven, refuted by a text, or open; in one sentence and some facts."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from shlex import quote
from typing import Any

from byhand import decimals
from byhand.document import words
from byhand.document.compose.proof.decisions import case_words
from byhand.document.compose.proof.trees import cases, size
from byhand.document.compose.proof.wording import (
    Speller,
    at_least,
    counted,
    seconds,
    share,
    text_of,
)
from byhand.document.numerals import in_full
from byhand.document.parts import Answer, Column, Facts, Grid, LeftOut, Part
from byhand.errors import ByhandError
from byhand.language import _, amount, later
from byhand.proving.claims import AtLeast
from byhand.proving.outcome import OPEN, PROVEN, Counterexample, Leaf, Outcome

NEARLY_ALL = Fraction(9999, 10_000)  # where something is open, it is not all
MOST_OPEN = 8  # open regions that are listed
MOST_COUNTED = 200  # open regions whose texts are counted exactly
MOST_WEIGHTS = 8
DIGITS = 6  # of the number that goes wrong


def answer(outcome: Outcome, *, timed: bool = True) -> Answer:
    """The answer with its figures: texts, cases, passes, time, the least lead."""
    if outcome.answer == PROVEN:
        word, sentence = _("Proven"), _proven(outcome)
    elif outcome.answer == OPEN:
        word, sentence = _("Open"), _open(outcome)
    else:
        word, sentence = _("Refuted"), _refuted(outcome)
    return Answer(outcome.answer, word, sentence, tuple(_figures(outcome, timed)))


def _proven(outcome: Outcome) -> str:
    return {
        None: _("It holds for every text of the domain."),
        0: _("There is no text in the domain."),
        1: _("It holds for the one text of the domain."),
    }.get(
        outcome.texts,
        _("It holds for all {count} texts.").format(count=counted(outcome.texts or 0)),
    )


def _open(outcome: Outcome) -> str:
    left = len(outcome.open)
    text = _("{done} of the domain is proven, {count} regions are left")
    if left == 1:
        text = _("{done} of the domain is proven, 1 region is left")
    said = text.format(done=done(outcome), count=words.whole(left))
    said = said[:1].upper() + said[1:]
    return f"{said}: {outcome.why}." if outcome.why else f"{said}."


def _refuted(outcome: Outcome) -> str:
    found = outcome.counterexample
    if found is None:
        return _("It does not hold.")
    text = _quoted(text_of(outcome.property.model, found.tokens))
    token = Speller(outcome.property.goals[found.goal].shape, outcome.property.model).answer
    if found.found is None or not found.expected:
        return _("It does not hold for {text}.").format(text=text)
    names = {
        "text": text,
        "found": _quoted(token(found.found)),
        "expected": words.some_of([_quoted(token(id)) for id in found.expected]),
    }
    return _("After {text} comes {found}, not {expected}.").format(**names)


def _quoted(text: str) -> str:
    return _("“{token}”").format(token=text)


def _figures(outcome: Outcome, timed: bool) -> Iterator[tuple[str, str]]:
    whole = outcome.texts
    if whole is not None and outcome.answer != OPEN:
        yield _("texts"), counted(whole)
    yield _("cases"), words.whole(outcome.cases)
    yield _("passes"), words.whole(outcome.passes)
    if timed:
        yield _("time"), seconds(outcome.seconds)
    least = outcome.least
    if least is not None and least.lead is not None and outcome.answer != "refuted":
        yield least_words(outcome), f"≥ {at_least(least.lead)}"


def least_words(outcome: Outcome) -> str:
    """What a proof has to spare: the lead of a logit, or the distance from a bound."""
    return _("least margin") if bounds_asked(outcome) else _("least lead")


def bounds_asked(outcome: Outcome) -> bool:
    """Whether a bound of some number is claimed, and not which token comes."""
    return any(isinstance(goal.claim, AtLeast) for goal in outcome.property.goals)


def done(outcome: Outcome) -> str:
    """How much of the domain is decided; by assignments where texts are too many to count."""
    left = outcome.open
    if outcome.texts and len(left) <= MOST_COUNTED:
        counts = [None if leaf.region is None else leaf.region.texts for leaf in left]
        if None not in counts and not any(goal.shape.after for goal in outcome.property.goals):
            return share(1 - Fraction(sum(count or 0 for count in counts), outcome.texts))
    part = min(Fraction(outcome.decided), NEARLY_ALL)
    return _("about {share}").format(share=share(part))


# ------------------------------------------------------------------ the counterexample


def counterexample(outcome: Outcome, called: str) -> Iterator[Part]:
    """The text for which it fails, what comes instead, and the number that goes wrong."""
    found = outcome.counterexample
    assert found is not None
    yield Facts(tuple(_told(outcome, found)))
    if found.weights:
        yield _weights(found)
    text = quote(outcome.property.model.vocabulary.decode(found.tokens))
    dashed = "-- " * text.startswith("-")  # a text that begins like an option
    command = f"byhand trace {called} --at '{found.address}' {dashed}{text}"
    told = _("how this number comes about:")
    if found.weights:
        told = _("how this number comes about with the model's own weights:")
    yield LeftOut(told, command)


def _told(outcome: Outcome, found: Counterexample) -> Iterator[tuple[str, str]]:
    model = outcome.property.model
    speller = Speller(outcome.property.goals[found.goal].shape, model)
    yield _("text"), text_of(model, found.tokens)
    if found.assigned:
        yield _("with"), speller.assigned(found.assigned)
    if found.expected:
        yield _("should come"), words.some_of([speller.answer(id) for id in found.expected])
    if found.found is not None:
        yield _("comes"), speller.answer(found.found)
    yield found.address, _number(found.value)
    if found.bound is not None:
        yield _bound_name(outcome, found), _number(found.bound)


def _bound_name(outcome: Outcome, found: Counterexample) -> str:
    claim = outcome.property.goals[found.goal].claim
    if isinstance(claim, AtLeast):
        return _("should be at most") if claim.most else _("should be at least")
    return _("should be larger than")


def _weights(found: Counterexample) -> Grid:
    weights = list((found.weights or {}).items())
    hidden = len(weights) - MOST_WEIGHTS
    return Grid(
        _("with these weights, which the property allows"),
        (Column(_("weight"), "address"), Column(_("value"), "number")),
        tuple((name, _number(value)) for name, value in weights[:MOST_WEIGHTS]),
        left_out=_("{count} more").format(count=words.whole(hidden)) if hidden > 0 else "",
    )


def _number(number: Any) -> str:
    """A number of a trace: exactly where that is short, else in a few digits; as it prints itself
    where those are not known."""
    exact = number if isinstance(number, Fraction) else getattr(number, "fraction", None)
    short = None if exact is None else in_full(exact)
    try:
        return decimals.significant(number, DIGITS) if short is None else short
    except (ByhandError, TypeError, ValueError, ArithmeticError):
        return str(number)


# ------------------------------------------------------------------ what is left


def left(outcome: Outcome) -> Grid:
    """The open regions, the largest first."""
    known = [
        (leaf, at, names)
        for at, tree in enumerate(outcome.trees)
        for leaf, names in cases(tree)
        if leaf.by == "open"
    ]
    largest = sorted(known, key=lambda case: -size(case[0]))[: 4 * MOST_OPEN]
    found = sorted(largest, key=lambda case: -_texts(case[0])[0])
    hidden = len(known) - MOST_OPEN
    return Grid(
        "",
        (Column(_("texts"), "number"), Column(_("region"))),
        tuple(_left_row(outcome, *case) for case in found[:MOST_OPEN]),
        left_out=amount(hidden, later("1 more region"), later("{count} more regions"))
        if hidden > 0
        else "",
    )


def _left_row(outcome: Outcome, leaf: Leaf, at: int, names: frozenset[str]) -> tuple[str, str]:
    assert leaf.region is not None
    count, exact = _texts(leaf)
    text = counted(count) if exact else f"≤ {counted(count)}"
    return words.together(text), case_words(outcome, at, leaf.region, names)


def _texts(leaf: Leaf) -> tuple[int, bool]:
    """How many texts a region has, and whether that is exact; else a bound."""
    texts = None if leaf.region is None else leaf.region.texts
    return (size(leaf), False) if texts is None else (texts, True)
