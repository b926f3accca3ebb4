"""The outcome of a proof as data: the JSON documents of `byhand prove` and `byhand verify`.

    {"model", "property", "answer", "why", "texts", "cases", "passes", "seconds", "decided",
     "least": {"lead", "goal", "text", "where"},
     "counterexample": {"goal", "text", "tokens", "values", "expected", "found",
                        "address", "value", "bound", "weights", "trace"},
     "goals": [{"texts", "cases", "undecided"}],
     "open": [{"goal", "where", "texts"}]}

`answer` is "proven", "refuted" or "open", and `why` says why it is open.  `property` is the plain
tree of the property, as in its file.  `texts` is null where nobody can count them, `decided` the
share of the domain that is decided, from 0 to 1.  `least` is the case with the least lead: `lead`
is a lower bound over the case, as a decimal, and `where` the values that each variable may take
there; `text` is null unless the lead is that of one text.  Tokens are {"id", "text"}.  The number
at `address` should have been larger than `bound` (or smaller, where the claim says at most) and is
`value`: both are {"value", "decimal"}, as in the document of a trace.  `trace` is the command that
shows the whole working of the text.  What there is nothing to say about is null.

The document of a checked certificate is {"model", "accepted", "reasons", "texts", "cases",
"seconds"}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TextIO

from byhand.decimals import significant
from byhand.document.media.json.records import enclosure_data, write_document
from byhand.errors import Undecided
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.proving.outcome import Leaf, leaves

if TYPE_CHECKING:
    from byhand.proving.domain import Region
    from byhand.proving.outcome import Outcome, Tree
    from byhand.tokens import Tokenizer
    from byhand.verifying import Verification

DIGITS = 10
MOST_OPEN = 1_000  # regions that are listed one by one


def write_json(outcome: Outcome, to: TextIO) -> None:
    """Writes the document, a goal and an open region on each line."""
    write_document(document_of(outcome), to, ("goals", "open"))


def document_of(outcome: Outcome) -> dict[str, Any]:
    """The document as Python data."""
    return {
        "model": outcome.property.own.name,
        "property": plain_tree(outcome.property.source),
        "answer": outcome.answer,
        "why": outcome.why or None,
        "texts": outcome.texts,
        "cases": outcome.cases,
        "passes": outcome.passes,
        "seconds": round(outcome.seconds, 3),
        "decided": outcome.decided,
        "least": _least(outcome),
        "counterexample": _counterexample(outcome),
        "goals": [
            _goal(goal.shape.whole, tree)
            for goal, tree in zip(outcome.property.goals, outcome.trees, strict=True)
        ],
        "open": [
            {"goal": goal, "where": _where(leaf.region), "texts": leaf.region.texts}
            for goal, leaf in _open(outcome)
            if leaf.region is not None
        ][:MOST_OPEN],
    }


def plain_tree(said: Any) -> Any:
    """A tree of mappings and lists as JSON has them; numbers that JSON lacks become text."""
    if isinstance(said, Mapping):
        return {str(key): plain_tree(value) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [plain_tree(each) for each in said]
    return said if said is None or isinstance(said, str | int | float) else str(said)


def _goal(whole: Region | None, tree: Tree) -> dict[str, Any]:
    kinds = [leaf.by for leaf in leaves(tree)]
    return {
        "texts": 0 if whole is None else whole.texts,
        "cases": sum(kind in ("letters", "each") for kind in kinds),
        "undecided": kinds.count("open"),
    }


def _open(outcome: Outcome) -> Iterator[tuple[int, Leaf]]:
    for goal, tree in enumerate(outcome.trees):
        yield from ((goal, leaf) for leaf in leaves(tree) if leaf.by == "open")


def _where(region: Region | None) -> dict[str, list[int]] | None:
    return None if region is None else {name: list(own) for name, own in region.allowed.items()}


# ------------------------------------------------------------------ the least lead


def _least(outcome: Outcome) -> dict[str, Any] | None:
    least = outcome.least
    if least is None or least.lead is None:
        return None
    goals = [goal for goal, tree in enumerate(outcome.trees) if _holds(tree, least)]
    words = outcome.property.own.vocabulary
    return {
        "lead": decimal_below(least.lead),
        "goal": goals[0],
        "text": words.decode(least.where) if least.where else None,
        "where": _where(least.region),
    }


def _holds(tree: Tree, wanted: Leaf) -> bool:
    return any(leaf is wanted for leaf in leaves(tree))


def decimal_below(number: Fraction, digits: int = DIGITS) -> str:
    """A decimal that is no larger than the number, with so many significant digits.

    >>> decimal_below(Fraction(2, 3), 4), decimal_below(Fraction(-2, 3), 4)
    ('0.6666', '-0.6667')
    """
    context = Context(prec=digits, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return str(context.divide(Decimal(number.numerator), Decimal(number.denominator)))


# ------------------------------------------------------------------ the counterexample


def _counterexample(outcome: Outcome) -> dict[str, Any] | None:
    found = outcome.counterexample
    if found is None:
        return None
    model = outcome.property.own
    return {
        "goal": found.goal,
        "text": outcome.text,
        "tokens": _tokens(model.vocabulary, found.tokens),
        "values": dict(found.assigned),
        "expected": _tokens(model.outputs, found.expected),
        "found": None if found.found is None else _tokens(model.outputs, (found.found,))[0],
        "address": found.address,
        "value": number_data(found.value),
        "bound": number_data(found.bound),
        "weights": None if found.weights is None else plain_tree(found.weights),
        "trace": outcome.trace_command,
    }


def _tokens(words: Tokenizer, ids: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": id, "text": words.tokens[id]} for id in ids]


def number_data(number: Any) -> dict[str, Any] | None:
    """A number of any number system: what it is, and ten proven digits of it."""
    if number is None:
        return None
    if isinstance(number, Enclosure):
        value, decimal = enclosure_data(number, DIGITS)
        return {"value": value, "decimal": decimal}
    try:
        return {"value": str(number), "decimal": significant(number, DIGITS)}
    except Undecided:
        return {"value": str(number), "decimal": None}


# ------------------------------------------------------------------ a certificate, checked


def verification_data(found: Verification, model: str) -> dict[str, Any]:
    """Whether a certificate is accepted, and else why not."""
    return {
        "model": model,
        "accepted": found.accepted,
        "reasons": list(found.reasons),
        "texts": found.texts,
        "cases": found.leaves,
        "seconds": round(found.seconds, 3),
    }
