"""Comparisons, generations, inventories and models as data, for `--json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.document.compose.forms import DIGITS, Forms, floats
from byhand.document.media.json.records import (
    beside_data,
    enclosure_data,
    float_data,
    number,
    plain,
)
from byhand.document.media.json.trace import in_style, proof_data, step_record
from byhand.expression import write
from byhand.numbers.enclosed.enclosure import Enclosure

if TYPE_CHECKING:
    from byhand.comparing import StepComparison
    from byhand.counting import Inventory, Line
    from byhand.distinct import Held
    from byhand.document.compose.comparison import Compared
    from byhand.generating import Chosen, Generation
    from byhand.model import Model
    from byhand.storage import Space, Storage

DATA_PLACES = 10  # decimals beside a form


# ------------------------------------------------------------------ a comparison


def comparison_data(found: Compared) -> dict[str, Any]:
    """The largest error of each step, and the next tokens of both runs."""
    trace = found.proven
    return {
        "model": trace.model.name,
        "numbers": found.floats.numbers.name,
        "true": trace.numbers.name,
        **proof_data(trace),
        "tokens": [{"id": id, "text": trace.token(id)} for id in trace.tokens],
        **beside_data(trace.model, trace.source, trace.segments),
        "steps": in_style(
            [_compared_step(found, step) for step in found.steps], trace.plan, found.names
        ),
        "next": _compared_tokens(found),
    }


def _compared_step(found: Compared, step: StepComparison) -> dict[str, Any]:
    true = found.proven.steps[step.address]
    value, decimal = enclosure_data(true.at(step.at), found.digits)
    return {
        **step_record(true.step),
        "entries": step.entries,
        "ulps": number(step.ulps),
        "at": list(step.at),
        "missed_zeros": [list(at) for at in step.missed_zeros],
        "unclear": step.unclear,
        "true": {"value": value, "decimal": decimal},
        "float": float_data(np.asarray(found.floats.steps[step.address].at(step.at))),
        "digits": number(step.fewest_digits),
        "usual_digits": number(step.usual_digits),
    }


def _compared_tokens(found: Compared) -> list[dict[str, Any]] | None:
    trace, digits = found.proven, found.digits
    if trace.next is None or found.floats.next is None:
        return None
    return [
        {
            "position": position,
            "id": one.id,
            "token": None if one.id is None else trace.answer(one.id),
            "proven": one.proven,
            "margin": None if one.margin is None else enclosure_data(one.margin, digits)[0],
            "float_id": other.id,
            "float_token": None if other.id is None else trace.answer(other.id),
            "same": one.id == other.id if one.proven else None,
        }
        for position, (one, other) in enumerate(zip(trace.next, found.floats.next, strict=True))
    ]


# ------------------------------------------------------------------ a generation


def generation_data(generation: Generation) -> dict[str, Any]:
    """The generation as data for JSON: the tokens so far; `ended` is null if it has not ended."""
    tokens = generation.model.vocabulary.tokens
    sampling = generation.sampling
    return {
        "model": generation.model.name,
        "numbers": generation.numbers.name,
        **_proof(generation),
        "tokens": [{"id": id, "text": tokens[id]} for id in generation.prompt],
        **beside_data(generation.model, generation.source, generation.segments),
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
    """The proven digits and the precision needed; empty if none were asked for."""
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
    """(value, decimal) as in a trace; too long a form is replaced by its address."""
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


# ------------------------------------------------------------------ inventories and models


def inventory_data(inventory: Inventory) -> dict[str, Any]:
    """The inventory as JSON has it."""
    return {
        "model": inventory.model,
        "total": inventory.total,
        "without_biases": inventory.without_biases,
        "norms": inventory.norms,
        "unique": inventory.unique,
        "tied": inventory.tied,
        "shared": [{"name": name, "same_as": owner} for name, owner in inventory.shared],
        "lines": [_line(line) for line in inventory.lines],
        "buffers": [_line(line) for line in inventory.buffers],
        "numbers": inventory.numbers,
        "held": None if inventory.held is None else _held(inventory.held),
        "stored": None if inventory.storage is None else _stored(inventory.storage),
    }


def _stored(storage: Storage) -> dict[str, Any]:
    """The space in files: bits of a weight (exactly, and as a decimal), bytes and formats."""
    return {
        **_space(storage.whole),
        "components": {name: _space(space) for name, space in storage.components.items()},
    }


def _space(space: Space) -> dict[str, Any]:
    return {
        "bits": float(space.bits),
        "exact_bits": str(space.bits),
        "bytes": space.bytes,
        "formats": list(space.formats),
    }


def _held(held: Held) -> dict[str, Any]:
    """The different numbers of the weights, of all together and of each tensor."""
    whole = plain(held.whole)
    del whole["name"]
    return {**whole, "tensors": [plain(each) for each in held.tensors]}


def _line(line: Line) -> dict[str, Any]:
    return {**plain(line), "symbols": dict(line.symbols)}


def models_data(found: Iterable[tuple[Model, int]]) -> list[dict[str, Any]]:
    """The models, each with its text and its number of parameters."""
    return [
        {"name": m.name, "about": m.about, "text": m.text, "target": m.target, "parameters": n}
        for m, n in found
    ]
