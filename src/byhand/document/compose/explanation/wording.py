"""The words that sentences about a model share: parts, tokens, unknown facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.language import _
from byhand.spec import ModelSpec
from byhand.worked import Missing

if TYPE_CHECKING:
    from byhand.explaining.ablation import Part
    from byhand.explaining.circuits import HeadCircuits
    from byhand.model import Model

MOST_PARTS = 5  # parts named in one sentence


def why_untold(missing: Missing) -> str:
    """Why something is unknown."""
    if missing.kind == "unknown":
        return _("{name} is unknown").format(name=missing.cause)
    return words.why_missing(missing)


def quoted(token: str) -> str:
    """A token for a sentence: a letter by itself, a word in quotes."""
    shown = words.token_label(token)
    letter = len(shown) == 1 and shown.isalnum()
    return shown if letter or shown != token else _("“{token}”").format(token=token)


def part_name(part: Part, spec: ModelSpec) -> str:
    """A part of the model as a sentence names it, with its block where there are several."""
    match part.kind:
        case "position":
            return _("the position table")
        case "token":
            return _("the token's embedding")
        case "bias":
            return _("the bias {name}").format(name=part.name)
        case _:
            return trip_name(part.kind, part.layer, part.index, spec)


def trip_name(kind: str, layer: int | None, index: int | None, spec: ModelSpec) -> str:
    """A side-trip, a head or a neuron as a sentence names it."""
    several = len(spec.blocks) > 1
    match kind:
        case "attn":
            text = _("the attention of block {layer}") if several else _("the attention")
        case "mlp":
            text = _("the MLP of block {layer}") if several else _("the MLP")
        case "head":
            text = _("head {index} of block {layer}") if several else _("head {index}")
        case _:
            text = _("neuron {index} of block {layer}") if several else _("neuron {index}")
    return text.format(layer=layer, index=index)


def head_sentences(found: HeadCircuits, model: Model) -> tuple[str, ...]:
    """Sentences on where a head looks, and what it then writes."""

    def token(id: int) -> str:
        return quoted(model.vocabulary.tokens[id])

    def answer(id: int) -> str:
        return quoted(model.outputs.tokens[id])

    looks = [
        _("from {query} it looks most at {key}").format(query=token(query), key=token(key))
        for query, key in found.looks
    ]
    writes = [
        _("reads {read}, writes {written}").format(read=token(read), written=answer(written))
        for read, written in found.writes
    ]
    return (*looks, *writes)


def either(names: Sequence[str], most: int = MOST_PARTS) -> str:
    """a, b or one of 3 more: each by itself."""
    shown = list(names)
    if len(shown) > most:
        more = len(shown) - most + 1
        shown = [*shown[: most - 1], _("one of {count} more").format(count=words.whole(more))]
    if len(shown) < 2:
        return "".join(shown)
    return _("{most} or {last}").format(most=", ".join(shown[:-1]), last=shown[-1])
