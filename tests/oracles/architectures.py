"""Small models that between them use every option of `byhand.spec`, with rational weights.

A case is made by asking `choose(question, answers)` again and again.  A random generator, a table
of wishes or hypothesis may be the one who answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import numpy as np

from byhand import forward
from byhand.expression import Call, Expression, Number, Quotient, parse
from byhand.numbers.base import ABSENT
from byhand.parameters import Parameter, parameters
from byhand.plan import Plan
from byhand.spec import (
    _NEWER_KINDS,
    ACTIVATIONS,
    LAYOUTS,
    NO_NORM,
    PAIRINGS,
    POSITIONS,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Tensor, Weights

Choose = Callable[[str, Sequence[Any]], Any]
EntryMaker = Callable[[Random], Fraction | Expression]
YES_NO = (False, True)
KINDS = tuple(kind for kind in ACTIVATIONS if kind not in _NEWER_KINDS)  # that all systems know
NAMED = [
    parse(text)
    for text in ("sqrt(2)/2", "-sqrt(2)/2", "1/sqrt(6)", "exp(1)", "ln(2)", "ln(10)", "cos(2*pi/5)")
]
HALF_ROOT_TWO: Expression = Quotient(Call("sqrt", Number(Fraction(2))), Number(Fraction(2)))


@dataclass(frozen=True)
class Case:
    """A model, a text and how it is to be read."""

    spec: ModelSpec
    weights: Weights
    tokens: tuple[int, ...]
    target: int
    positions: tuple[int, ...]
    mask: tuple[tuple[bool, ...], ...] | None
    answers: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def plan(self) -> Plan:
        return forward.plan(
            self.spec,
            len(self.tokens),
            positions=self.positions,
            mask=self.mask,
            target=True,
            head_outputs=True,
        )

    def __str__(self) -> str:
        return f"{self.spec}\ntokens {self.tokens} positions {self.positions} mask {self.mask}"


def make_case(
    choose: Choose, seed: int, *, largest: int = 4, entry: EntryMaker | None = None
) -> Case:
    """A case of the wished architecture; its weights follow from the seed, one entry at a time."""
    answers: dict[str, Any] = {}

    def ask(question: str, options: Sequence[Any]) -> Any:
        answers[question] = choose(question, options)
        return answers[question]

    spec = _model(ask, largest)
    length = ask("length", (1, 2, 3))
    first = ask("first position", (0, 2))
    positions = tuple(range(first, first + length))
    mask = None
    if ask("extra mask", YES_NO):  # each looks at itself and at every other one before and after
        mask = tuple(tuple((i - j) % 2 == 0 for j in range(length)) for i in range(length))
    random = Random(seed)
    make = entry or ordinary
    weights = {p.name: Tensor(p.name, _tensor(p, random, make)) for p in parameters(spec)}
    tokens = tuple(random.randrange(spec.vocab) for _place in range(length))
    target = random.randrange(spec.vocab)
    return Case(spec, Weights(weights), tokens, target, positions, mask, answers)


# ------------------------------------------------------------------ the architecture


def _model(ask: Choose, largest: int) -> ModelSpec:
    d = ask("d_model", tuple(range(2, largest + 1)))
    layout = ask("layout", LAYOUTS)
    position = ask("position", POSITIONS if d % 2 == 0 else ("none", "learned"))
    layers = ask("layers", (0, 1, 2))
    blocks = tuple(_block(ask, f"block {layer} ", d, largest) for layer in range(layers))
    tied = ask("tied", YES_NO)
    return ModelSpec(
        name="case",
        vocab=ask("vocab", (1, 3)),
        d_model=d,
        context=6,
        blocks=blocks,
        position=position,
        position_base=Fraction(ask("position base", ("10000", "7/2"))),
        embed_scale=ask("embed scale", (None, HALF_ROOT_TWO)),
        final_norm=_norm(ask, "final "),
        tied=tied,
        head_bias=ask("head bias", YES_NO),
        layout=layout,
    )


def _norm(ask: Choose, of: str, width: int = 2) -> NormSpec:
    # A layernorm over one entry is 0/0 at eps 0; that is tested by hand, where it means something.
    kind = ask(of + "norm", ("none", "layernorm", "rmsnorm") if width > 1 else ("none", "rmsnorm"))
    if kind == "none":
        return NO_NORM
    return NormSpec(
        kind,
        eps=Fraction(ask(of + "eps", ("0", "1/100000", "1/3"))),
        gain=ask(of + "gain", YES_NO),
        bias=kind == "layernorm" and ask(of + "bias", YES_NO),
    )


def _block(ask: Choose, of: str, d: int, largest: int) -> BlockSpec:
    place = ask(of + "place", ("pre", "post"))
    attention = _attention(ask, of, d, largest) if ask(of + "attention", YES_NO[::-1]) else None
    return BlockSpec(
        attention,
        _mlp(ask, of) if ask(of + "mlp", YES_NO[::-1]) else None,
        attn_norm=_norm(ask, of + "attn "),
        mlp_norm=_norm(ask, of + "mlp "),
        norm_place=place,
        parallel=place == "pre" and ask(of + "parallel", YES_NO),
    )


def _attention(ask: Choose, of: str, d: int, largest: int) -> AttentionSpec:
    out = ask(of + "out", YES_NO[::-1])
    if out:
        heads = ask(of + "heads", (1, 2, 4))
        d_head = ask(of + "d_head", (1, 2, 3, 4)[:largest])
    else:
        heads = ask(of + "heads", [count for count in (1, 2, 4) if d % count == 0])
        d_head = d // heads
    kv_heads = ask(of + "kv_heads", [count for count in (1, 2, 4) if heads % count == 0])
    packings = (None, "concatenated", "per_head") if heads == kv_heads else (None, "concatenated")
    packed = ask(of + "packed", packings)
    q_bias = ask(of + "q_bias", YES_NO)
    causal = ask(of + "causal", YES_NO)
    return AttentionSpec(
        heads=heads,
        d_head=d_head,
        kv_heads=kv_heads,
        scale=ask(of + "scale", (None, over_root(d_head), HALF_ROOT_TWO, Number(Fraction(-2, 3)))),
        causal=causal,
        window=ask(of + "window", (None, 1, 2)) if causal else None,
        rotary=_rotary(ask, of, d_head) if d_head > 1 and ask(of + "rope", YES_NO) else None,
        alibi=ask(of + "alibi", YES_NO),
        score_table=ask(of + "score table", YES_NO),
        q_norm=_norm(ask, of + "q ", d_head),
        k_norm=_norm(ask, of + "k ", d_head),
        q_bias=q_bias,
        k_bias=q_bias if packed else ask(of + "k_bias", YES_NO),
        v_bias=q_bias if packed else ask(of + "v_bias", YES_NO),
        packed=packed,
        out=out,
        out_bias=out and ask(of + "out_bias", YES_NO),
    )


def _rotary(ask: Choose, of: str, d_head: int) -> RotarySpec:
    return RotarySpec(
        width=ask(of + "rope width", [width for width in (2, 4) if width <= d_head]),
        base=Fraction(ask(of + "rope base", ("10000", "5/3"))),
        pairing=ask(of + "rope pairing", PAIRINGS),
        given=ask(of + "rope given", YES_NO),
    )


def _mlp(ask: Choose, of: str) -> MlpSpec:
    gated = ask(of + "gated", YES_NO)
    return MlpSpec(
        d_ff=ask(of + "d_ff", (1, 3)),
        activation=ask(of + "activation", KINDS),
        gated=gated,
        hidden_bias=ask(of + "hidden_bias", YES_NO),
        gate_bias=gated and ask(of + "gate_bias", YES_NO),
        out_bias=ask(of + "mlp out_bias", YES_NO),
    )


# ------------------------------------------------------------------ its weights


def ordinary(random: Random) -> Fraction:
    """A fraction of moderate size: nothing cancels but by accident."""
    return Fraction(random.randint(-6, 6), random.choice((1, 2, 3, 5)) * 3)


def nasty(random: Random) -> Fraction | Expression:
    """A weight as people set them by hand: much cancels, rows are equal, logits tie."""
    if random.random() < 0.1:
        return random.choice(NAMED)
    return Fraction(random.choice((0, 1, -1)))


def _tensor(parameter: Parameter, random: Random, entry: EntryMaker) -> np.ndarray[Any, Any]:
    data = np.empty(parameter.shape, dtype=object)
    for index in np.ndindex(*parameter.shape):
        data[index] = entry(random)
    if parameter.name.endswith("score_table"):
        for head, query, key in np.ndindex(*parameter.shape):
            if query != key and random.random() < 0.25:  # each may still look at itself
                data[head, query, key] = ABSENT
    if parameter.name.endswith("slopes"):
        data[-1] = Call("ln", Number(Fraction(10)))
    return data


# ------------------------------------------------------------------ choosing among them


def at_random(random: Random) -> Choose:
    return lambda _question, options: random.choice(list(options))


def wishing(wishes: Mapping[str, Any], otherwise: Choose) -> Choose:
    """Answers as wished wherever that is possible."""

    def choose(question: str, options: Sequence[Any]) -> Any:
        key = question if question in wishes else bare(question)
        possible = key in wishes and wishes[key] in options
        return wishes[key] if possible else otherwise(question, options)

    return choose


def plain(_question: str, options: Sequence[Any]) -> Any:
    """The first answer to everything: a short, bare model."""
    return options[0]


LAYERS = (1, 2, 1, 0, 1, 2)  # in turn: deep cases alone would pair the most


def spread(
    count: int,
    *,
    seed: int,
    among: int = 12,
    wishes: Mapping[str, Any] | None = None,
    entry: EntryMaker | None = None,
) -> Iterator[Case]:
    """Cases that pair as many different answers as possible, greedily; always the same ones."""
    random = Random(seed)
    paired: set[tuple[Any, Any]] = set()
    for number in range(count):
        wished = {"layers": LAYERS[number % len(LAYERS)], **(wishes or {})}
        fresh = [
            make_case(wishing(wished, at_random(random)), seed=1000 * seed + number, entry=entry)
            for _candidate in range(among)
        ]
        gains = [_pairs(case) - paired for case in fresh]
        best = max(range(among), key=lambda i: len(gains[i]))
        paired |= gains[best]
        yield fresh[best]


def given_answers(case: Case) -> set[tuple[str, Any]]:
    """Every question with its answer, whichever block it was asked for."""
    return {(bare(question), answer) for question, answer in case.answers.items()}


def bare(question: str) -> str:
    """The question without the block it is asked for."""
    return re.sub(r"^block \d ", "", question)


def _pairs(case: Case) -> set[tuple[Any, Any]]:
    return set(combinations(sorted(given_answers(case), key=repr), 2))
