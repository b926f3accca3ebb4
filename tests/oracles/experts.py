"""Cases with what today's models have: sinks, experts, and a magnitude of turns."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from byhand.expression import Expression, Number, parse
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, EntryMaker, _tensor

MAGNITUDES: tuple[Expression, ...] = (Number(Fraction(5, 4)), parse("0.1*ln(32) + 1"))
CAPS = (None, Fraction(5, 2), Fraction(50))
CHOICES = ((2, 1), (3, 2), (3, 3), (4, 2))  # experts, and how many of them answer


def modern(case: Case, number: int, entry: EntryMaker) -> Case:
    """The case with a sink in each attention and experts in each MLP, weights drawn anew."""

    def attention(spec: AttentionSpec) -> AttentionSpec:
        rotary = spec.rotary and replace(spec.rotary, magnitude=MAGNITUDES[number % 2])
        return replace(spec, sinks=True, rotary=rotary, cap=CAPS[number % 3])

    def mlp(spec: MlpSpec) -> MlpSpec:
        experts, chosen = CHOICES[number % len(CHOICES)]
        return replace(
            spec,
            experts=experts,
            chosen=chosen,
            normalised=number % 3 > 0,
            router_bias=number % 2 == 0,
        )

    def changed(block: BlockSpec) -> BlockSpec:
        return replace(
            block,
            attention=block.attention and attention(block.attention),
            mlp=block.mlp and mlp(block.mlp),
        )

    spec = replace(case.spec, blocks=tuple(map(changed, case.spec.blocks)))
    random = Random(number)
    drawn = {p.name: Tensor(p.name, _tensor(p, random, entry)) for p in parameters(spec)}
    return replace(case, spec=spec, weights=Weights(drawn))
