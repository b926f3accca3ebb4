"""A generation as data: the JSON document of `byhand generate --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.document.compose.forms import DIGITS, Forms, floats
from byhand.document.media.json.records import enclosure_data, float_data
from byhand.expression import write
from byhand.numbers.enclosed.enclosure import Enclosure

if TYPE_CHECKING:
    from byhand.generating import Chosen, Generation

DATA_PLACES = 10  # decimals beside a form


def generation_data(generation: Generation) -> dict[str, Any]:
    """The generation as JSON has it: what has come so far, and `ended` null where it has not."""
    tokens = generation.model.vocabulary.tokens
    sampling = generation.sampling
    return {
        "model": generation.model.name,
        "numbers": generation.numbers.name,
        **_proof(generation),
        "tokens": [{"id": id, "text": tokens[id]} for id in generation.prompt],
        "sampling": None
        if sampling is None
        else {
            "temperature": float(sampling.temperature),
            "top_k": sampling.top_k,
            "top_p": None if sampling.top_p is None else float(sampling.top_p),
        },
        "seed": generation.seed,
        "generated": [_chosen_data(generation, chosen) for chosen in generation.choices],
        "added": generation.added,
        "text": generation.text,
        "ended": generation.ended,
    }


def _proof(generation: Generation) -> dict[str, Any]:
    """The digits that are proven and the precision it took; nothing where none were asked for."""
    if generation.digits is None:
        return {}
    return {"digits": generation.digits, "bits": getattr(generation.numbers, "bits", None)}


def _chosen_data(generation: Generation, chosen: Chosen) -> dict[str, Any]:
    value, decimal = _value(generation, chosen)
    return {
        "position": chosen.position,
        "id": chosen.id,
        "token": chosen.token,
        "text": chosen.text,
        "probability": value,
        "decimal": decimal,
        "proven": chosen.proven,
        "tied": list(chosen.tied),
        "rank": chosen.rank,
        "chance": chosen.chance,
    }


def _value(generation: Generation, chosen: Chosen) -> tuple[Any, str | None]:
    """(value, decimal) as in a trace; too long a form is told by its address in the trace of the
    text before the token."""
    entry = chosen.probability
    if isinstance(entry, Enclosure):
        return enclosure_data(entry, generation.digits or DIGITS)
    if floats(np.asarray(entry)):
        return float_data(np.asarray(entry)), None
    cell = Forms(generation.numbers, DATA_PLACES).cell(entry)
    if cell.radius is not None:
        return {"mid": cell.decimal, "rad": cell.radius}, None
    if cell.register == "rounded":
        return cell.decimal, cell.decimal
    if cell.form is None:
        return f"probs[{chosen.position - 1},{chosen.id}]", cell.decimal
    return write(cell.form), cell.decimal
