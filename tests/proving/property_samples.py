"""Small models for the tests of properties: only their vocabularies matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byhand.files.making import make_model
from byhand.model import Model
from byhand.proving.properties import Goal, Property, read_property

WORDS = (*"0123456789", "+", "=", "|", "(", ")", "A", "B", "C", "h1", "h2", "even", "odd", "<end>")


def machine(
    tokens: Sequence[str] = WORDS, kind: str = "words", context: int | None = None
) -> Model:
    """A model of one block over these tokens."""
    spec: dict[str, Any] = {
        "d_model": 2, "layers": 1, "attention": {"heads": 1}, "mlp": "none",
    }  # fmt: skip
    if context is not None:
        spec["context"] = context
    weights = {f"block.0.attn.{name}": "identity" for name in ("q", "k", "v", "out")}
    rows = [[number % 3, "1/3"] for number in range(len(tokens))]
    vocabulary = {"kind": kind, "tokens": list(tokens)}
    return make_model(spec, {"embed.token": rows, **weights}, vocabulary, name="machine")


MACHINE = machine()


def read(model: Model = MACHINE, **tree: Any) -> Property:
    """The property of a table, which reads back to the same from its own source."""
    found = read_property({key.replace("_", " "): value for key, value in tree.items()}, model)
    again = read_property(found.source, model)
    assert again.source == found.source
    assert [goal.shape.variables for goal in again.goals] == [
        g.shape.variables for g in found.goals
    ]
    return found


def texts_of(property: Property) -> list[str]:
    """Every text of the domain, shape by shape."""
    found = []
    for goal in property.goals:
        if goal.shape.after == 0 and (whole := goal.shape.whole) is not None:
            decode = property.own.vocabulary.decode
            found += [decode(whole.text(assigned)) for assigned in whole.assignments()]
    return found


def domain(pattern: Any, model: Model = MACHINE, **more: Any) -> list[str]:
    """Every text of a pattern."""
    texts = {"pattern": pattern, **more}
    return texts_of(read(model, texts=texts, claim={"next": [model.vocabulary.tokens[-1]]}))


def answers(property: Property) -> dict[str, str]:
    """Text → the tokens that are right after it, or those of a continuation one after the other."""
    found: dict[str, str] = {}
    model = property.own
    for goal in property.goals:
        for text, ids in _answers(goal, model):
            tokens = " ".join(model.vocabulary.tokens[id] for id in ids)
            found[text] = f"{found[text]} {tokens}" if text in found else tokens
    return found


def _answers(goal: Goal, model: Model) -> list[tuple[str, tuple[int, ...]]]:
    whole = goal.shape.whole
    assert whole is not None
    length = len(goal.shape.places) - goal.shape.after
    return [
        (
            model.vocabulary.decode(whole.text(assigned)[:length]),
            goal.claim.answers.at(assigned),  # type: ignore[union-attr]
        )
        for assigned in whole.assignments()
    ]
