"""Whole passes along the stream, of random small models and nasty weights, against Arb.

The models have every option that a sublayer along the stream may have.  Weights are of usual sizes,
or of very different ones in one model; words may have equal rows, and texts the same word twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from benchmarks.soundness.counts import Count
from benchmarks.soundness.drawn import KINDS, RIM, Drawn
from benchmarks.soundness.truth import place_of_largest
from byhand import forward, stream_passes
from byhand.evaluate import Admitted, work_out
from byhand.expression import parse
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed
from byhand.parameters import parameters
from byhand.plan import Plan
from byhand.rope_scaling import Scaling
from byhand.spec import (
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.arb_pass import VANISHING, ArbPass

EPS = (Fraction(1, 10**5), Fraction(1, 10**6), Fraction(1, 10**12), Fraction(1, 4), Fraction(0))


@dataclass(frozen=True)
class Model:
    """A model, its weights and a text."""

    spec: ModelSpec
    weights: Weights
    tokens: tuple[int, ...]

    def plan(self, *, logprobs: bool = False) -> Plan:
        return forward.plan(self.spec, len(self.tokens), logprobs=logprobs)


def norm(drawn: Drawn, *, always: bool = True) -> NormSpec:
    if not always and drawn.yes(0.3):
        return NO_NORM
    kind = drawn.one_of(("layernorm", "rmsnorm"))
    gain = drawn.yes(0.8)
    eps = EPS[0] if drawn.yes() else drawn.one_of(EPS)
    return NormSpec(kind, eps, gain, kind == "layernorm" and drawn.yes(), gain and drawn.yes(0.3))


def attention(drawn: Drawn) -> AttentionSpec:
    kv = drawn.whole(1, 2)
    heads = kv * drawn.whole(1, 2)
    wide = drawn.whole(1, 4)
    packed = drawn.one_of((None, None, "concatenated", "per_head"))
    kv = heads if packed == "per_head" else kv
    bias = drawn.yes()
    biases = (bias,) * 3 if packed else (bias, drawn.yes(), drawn.yes())
    rotary = None
    if wide > 1 and drawn.yes():
        rotary = RotarySpec(
            drawn.one_of((2, wide // 2 * 2)), drawn.one_of((Fraction(10_000), Fraction(3))),
            drawn.one_of(("half", "interleaved")),
            magnitude=drawn.one_of((None, None, parse("0.1*ln(32) + 1"), parse("1/3"))),
            scaling=drawn.one_of((None, None, Scaling("linear", Fraction(8, 3)))),
        )  # fmt: skip
    causal = drawn.yes(0.8)
    narrow = drawn.whole(1, 3) if packed is None and drawn.yes(0.3) else None
    return AttentionSpec(
        heads, wide, kv, drawn.one_of((over_root(wide), None, parse("1/8"), parse("4"))), causal,
        window=2 if causal and drawn.yes(0.2) else None, rotary=rotary,
        q_bias=biases[0], k_bias=biases[1], v_bias=biases[2], packed=packed,
        out_bias=drawn.yes(), d_value=narrow,
    )  # fmt: skip


def block(drawn: Drawn) -> BlockSpec:
    gated = drawn.yes()
    mlp = MlpSpec(drawn.whole(1, 4), drawn.one_of(KINDS), gated, drawn.yes(),
                  gated and drawn.yes(), drawn.yes())  # fmt: skip
    return BlockSpec(
        attention(drawn) if drawn.yes(0.9) else None, mlp if drawn.yes(0.9) else None,
        norm(drawn), norm(drawn), parallel=drawn.yes(0.2),
    )  # fmt: skip


def model(drawn: Drawn) -> Model:
    """A model of up to three layers and four positions."""
    d = drawn.whole(1, 5) if drawn.yes(0.7) else 2
    vocab = drawn.one_of((1, 2, 3, 5))
    blocks = tuple(block(drawn) for _layer in range(drawn.one_of((0, 1, 2, 2, 3))))
    spec = ModelSpec(
        "drawn", vocab, d, 4, blocks, position=drawn.one_of(("none", "learned")),
        final_norm=norm(drawn, always=False), tied=drawn.yes(),
        layout=drawn.one_of(("in_out", "out_in")),
        embed_scale=drawn.one_of((None, None, parse("sqrt(6)"))),
        embed_norm=norm(drawn) if drawn.yes(0.2) else NO_NORM,
        logit_scale=drawn.one_of((None, None, parse("0.0625"))),
    )  # fmt: skip
    tokens = tuple(int(x) for x in drawn.random.integers(0, vocab, drawn.whole(1, 4)))
    return Model(spec, weights(drawn, spec), tokens)


def weights(drawn: Drawn, spec: ModelSpec) -> Weights:
    """Weights of usual sizes, or some tensors far smaller or larger than others."""
    nasty = drawn.one_of((0.0, 0.0, 1.0, 3.0, 9.0))  # decimal powers
    made = {}
    for parameter in parameters(spec):
        power = drawn.random.uniform(-nasty, nasty / 2)
        data = drawn.random.standard_normal(parameter.shape) * 10.0**power
        data = data / np.sqrt(max(2, parameter.shape[0]))
        if parameter.kind == "gain" and nasty < 2:
            data = 1 + 0.3 * data
        if drawn.yes(0.1):
            data = data * (drawn.random.random(parameter.shape) < 0.5)
        if drawn.yes(0.1):
            data = np.round(data)
        if parameter.name == "embed.token" and len(data) > 1 and drawn.yes(0.3):
            data[0] = data[-1]
            if drawn.yes(0.3):
                data[1] = data[1] * 1e-38
        made[parameter.name] = Tensor(
            parameter.name, data.astype(drawn.one_of((np.float32, np.float32, np.float64)))
        )
    return Weights(made)


def outside(found: Enclosure, real: Any) -> str | None:
    """Whether a ball is in the enclosure: None, "missed" or "open"; what vanishes counts as 0."""
    if found.rad == inf:
        return None
    with ctx.workprec(600):
        mid, rad = (arb(fmpq(x.numerator, x.denominator)) for x in (found.mid, found.rad))
        away = abs(real - mid)
        if away <= rad + VANISHING:
            return None
        return "missed" if away > rad else "open"


def pass_case(drawn: Drawn, count: Count) -> bool:
    """One whole pass: every entry of the streams, the logits and the probabilities in Arb.

    True where the model has sublayers along the stream, and Arb could work it out.
    """
    given = model(drawn)
    bits = drawn.one_of((12, 40, 60, 100, 200))
    plan = given.plan()
    known = [one.sublayer for one in stream_passes.stretches(plan) if one.sublayer]
    every = drawn.yes(0.3)  # the steps inside, too
    kept = None if every else [*(one.sum.address for one in known), "logits", "probs", "next"]
    steps = work_out(plan, given.weights, given.tokens, Limbs(bits), keep=kept)
    try:
        oracle = ArbPass(plan, given.weights, given.tokens)
    except (AssertionError, ZeroDivisionError):
        return False  # nothing over nothing at 400 bits
    for address, worked in steps.items():
        step = worked.step
        if step.op in ("given", "argmax"):
            continue
        for index, real in oracle.values[address].items():
            if real is None:
                continue
            found = worked.at(index)
            said = outside(found, real)
            count.samples += 1
            count.endless += found.rad == inf
            count.open += said == "open"
            if said == "missed":
                count.missed += 1
                count.first.append(f"{address}{list(index)} {found} {real}")
    check_next(count, steps, oracle)
    return bool(known)


def check_next(count: Count, steps: Any, oracle: ArbPass) -> None:
    """What is said of the next tokens, beside the true logits."""
    logits, width = oracle.values["logits"], steps["logits"].step.shape[-1]
    for position, found in enumerate(steps["next"].value):
        row = [logits[position, token] for token in range(width)]
        count.samples += 1
        best = row[place_of_largest(row)]
        if not found.proven:
            wrong = all(row[k] < best for k in found.candidates)
        else:
            wrong = row[found.id] < best
            others = [x for token, x in enumerate(row) if token != found.id]
            if found.margin is not None and others:
                lead = row[found.id] - others[place_of_largest(others)]
                wrong = wrong or outside(found.margin, lead) == "missed"
        if wrong:
            count.missed += 1
            count.first.append(f"next[{position}] {found} {row}")


# ------------------------------------------------------------------ from the rim of a ball


def displaced_case(drawn: Drawn, count: Count, texts: int = 2) -> bool:
    """A pass from a stream that is known within balls: the true one stands at their rims."""
    given = model(drawn)
    plan = given.plan()
    start = plan["stream.0"]
    first = start.address
    part = plan.only(["logits", "probs"], given=[first])
    steps_of = (replace(one, op="embed", inputs={}) if one is start else one for one in part.steps)
    part = Plan(part.spec, part.length, tuple(steps_of), {})
    known = [one.sublayer for one in stream_passes.stretches(part) if one.sublayer]
    if not known:
        return False
    shape = start.shape
    middle = drawn.random.standard_normal(shape) * 10.0 ** drawn.random.uniform(-3, 2)
    if drawn.yes(0.2) and len(middle) > 1:
        middle[-1] = middle[0]
    ball = np.abs(middle).max() * 10.0 ** drawn.random.uniform(-20, 0.3)
    balls = np.full(shape[0], ball) * 10.0 ** drawn.random.uniform(-4, 0, shape[0])
    numbers = Limbs(drawn.one_of((60, 100, 200)))
    value = Enclosed(arithmetic.from_floats(middle)[0], balls)
    run = stream_passes.Run(
        partial(work_out, given={}), Admitted(given.weights, numbers), numbers, None,
        {"tokens": given.tokens, "source": None, "target": None, "targets": None},
        {first: Worked(part[first], value, numbers)},
    )  # fmt: skip
    asked = [*(one.sum.address for one in known), plan["logits"].address, plan["probs"].address]
    steps = run.along(part, asked, None, lasting=True)
    for text in range(texts):
        away = drawn.random.standard_normal(shape)
        if text % 2 and drawn.yes(0.7):
            away = away * (np.arange(shape[0]) == drawn.whole(0, shape[0] - 1))[:, None]
        elif text % 2:
            away = -middle
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        away = away / np.where(lengths > 0, lengths, 1.0) * balls[:, None] * RIM
        table = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            table[index] = Fraction(middle[index]) + Fraction(away[index])
        try:
            oracle = ArbPass(part, given.weights, given.tokens, given={first: table})
        except (AssertionError, ZeroDivisionError):
            continue
        for address in asked:
            for index, real in oracle.values[address].items():
                if real is None:
                    continue
                found = steps[address].at(index)
                said = outside(found, real)
                count.samples += 1
                count.endless += found.rad == inf
                count.open += said == "open"
                if said == "missed":
                    count.missed += 1
                    count.first.append(f"{address}{list(index)} {found} {real}")
                if found.rad not in (0, inf):
                    count.nearest = max(count.nearest, _used(found, real))
    return True


def _used(found: Enclosure, real: arb) -> float:
    with ctx.workprec(200):
        mid, rad = (arb(fmpq(x.numerator, x.denominator)) for x in (found.mid, found.rad))
        return float(abs(real - mid) / rad)


# ------------------------------------------------------------------ many of them

PASSES: dict[str, Callable[[Drawn, Count], bool]] = {
    "from tokens": pass_case,
    "from the rim of a stream": displaced_case,
}


def passes_of(name: str, wanted: int, seed: int) -> tuple[Count, int]:
    """So many whole passes that have sublayers along the stream, and how many there were."""
    count, done, number = Count(f"whole passes {name}"), 0, 0
    while done < wanted:
        before = count.missed
        done += PASSES[name](Drawn(np.random.default_rng((seed, number))), count)
        if count.missed > before:
            count.first[-1] = f"pass {number} of seed {seed}: {count.first[-1]}"
        number += 1
    return count, done
