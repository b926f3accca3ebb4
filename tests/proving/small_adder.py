"""A small adder: a head weighs digits by exact powers of ten, steps read off the digit."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from byhand.files import parse_model
from byhand.model import Model
from byhand.proving.properties import Property, read_property

DIGITS = [str(digit) for digit in range(10)]


def adder(digits: int, width: Fraction | None = None) -> Model:
    """An adder of so many digits, for texts like `2 7 + 4 5 =`; its steps rise over `width`, which
    is right if that is at most 10^-digits, the distance of the sums from a step."""
    length, context = 2 * digits + 2, 3 * digits + 2
    whole = 2 * sum(Fraction(1, 10**k) for k in range(digits + 1))
    table = [["masked"] * context for _query in range(context)]
    for query in range(context):
        row, place = table[query], digits - (query - length + 1)
        if query < length - 1:
            row[query] = "0"
            continue
        below = range(min(place, digits - 1) + 1)
        for k in below:
            row[digits - 1 - k] = row[2 * digits - k] = f"-{place - k}*ln(10)"
        rest = whole - 2 * sum(Fraction(1, 10 ** (place - k)) for k in below)
        if rest:
            row[length - 1] = f"ln({rest})"
    rise = width or Fraction(1, 10**digits)
    hidden = [[Fraction(0)] * 38 for _row in range(12)]
    hidden[1] = [whole / rise] * 38
    bias = [one - Fraction(step) / rise for step in range(1, 20) for one in (1, 0)]
    out = [[0] * 12 for _unit in range(38)]
    for step in range(1, 20):
        for unit, sign in ((2 * step - 2, 1), (2 * step - 1, -1)):
            out[unit][2 + step % 10] += sign
            out[unit][2 + (step - 1) % 10] -= sign
    tree = {
        "name": "adder",
        "vocabulary": [*DIGITS, "+", "="],
        "model": {
            "d_model": 12,
            "context": context,
            "layers": 1,
            "attention": {"heads": 1, "d_head": 1, "scale": "none", "score_table": "true"},
            "mlp": {"d_ff": 38, "bias": {"hidden": "true", "out": "true"}},
            "head": {"tied": "false", "bias": "true"},
        },
        "weights": {
            "embed.token": [[min(id, 10) % 10, *[0] * 11] for id in range(12)],
            "block.0.attn.q": "zeros",
            "block.0.attn.k": "zeros",
            "block.0.attn.v": [[1], *[[0]] * 11],
            "block.0.attn.score_table": [table],
            "block.0.attn.out": [[0, 1, *[0] * 10]],
            "block.0.mlp.hidden": hidden,
            "block.0.mlp.hidden_bias": bias,
            "block.0.mlp.out": out,
            "block.0.mlp.out_bias": [0, 0, 1, *[0] * 9],
            "head": [[int(row - 2 == id) for id in range(12)] for row in range(12)],
            "head_bias": [*[0] * 10, -1, -1],
        },
    }
    return parse_model(json.dumps(_as_text(tree)), "adder")


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(one) for key, one in value.items()}
    return [_as_text(one) for one in value] if isinstance(value, list) else str(value)


def sums(digits: int, model: Model | None = None) -> Property:
    """The property that an adder gives every digit of every sum."""
    names = [f"{{{name}{k}}}" for name in "ab" for k in reversed(range(digits))]
    pattern = " ".join([*names[:digits], "+", *names[digits:], "="])
    total = " + ".join(f"{10**k}*s{k}" for k in range(digits))
    last = digits - 1
    tree = {
        "property": "every digit of every sum",
        "texts": {
            "pattern": pattern,
            "where": {f"a0..a{last}": "0..9", f"s0..s{last}": "0..18", f"b0..b{last}": "s - a"},
        },
        "claim": {"continuation": [f"({total})//{10**k}%10" for k in reversed(range(digits + 1))]},
    }
    return read_property(tree, model or adder(digits))
