"""Cases as makers of machines write them: attention without queries, queries that see nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from byhand.numbers.base import ABSENT
from byhand.parameters import parameters
from byhand.spec import NO_NORM, AttentionSpec, BlockSpec
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, _tensor


def without_queries(attention: AttentionSpec) -> AttentionSpec:
    """The same attention, whose scores are a table and slopes, or 0."""
    return replace(
        attention, queries=False, scale=None, rotary=None, q_norm=NO_NORM, k_norm=NO_NORM,
        q_bias=False, k_bias=False, packed=None,
    )  # fmt: skip


def dyadic(random: Random) -> Fraction:
    """A number that floats hold."""
    return Fraction(random.randint(-8, 8), 8)


def hand_set(case: Case) -> Case:
    """Every other attention loses its queries, and in all of them some queries see nothing.

    The mask hides every key from the last query, and a table those of the first for head 0.
    """

    def changed(layer: int, block: BlockSpec) -> BlockSpec:
        attention = block.attention and replace(block.attention, nothing=True)
        if attention and layer % 2 == 0:
            attention = without_queries(attention)
        return replace(block, attention=attention)

    blocks = tuple(changed(layer, block) for layer, block in enumerate(case.spec.blocks))
    spec = replace(case.spec, blocks=blocks)
    random, weights = Random(7), {}
    for parameter in parameters(spec):
        name = parameter.name
        data = case.weights[name].data if name in case.weights else None
        data = (_tensor(parameter, random, dyadic) if data is None else data).copy()
        if name.endswith(".score_table"):
            data[0, case.positions[0]] = ABSENT
        if name.endswith(".slopes"):
            data[-1] = Fraction(3, 4)
        weights[name] = Tensor(name, data)
    count = len(case.tokens)
    mask = case.mask or tuple((True,) * count for _query in range(count))
    mask = (*mask[:-1], (False,) * count) if count > 1 else mask
    return replace(case, spec=spec, weights=Weights(weights), mask=mask)
