"""Small random models that draw every newer field of `byhand.spec`, with float32 weights.

Random choices are made one by one, so that a few dozen models have every field at every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from byhand import forward
from byhand.evaluate import work_out
from byhand.expression import parse
from byhand.numbers.base import Numbers
from byhand.parameters import parameters
from byhand.plan import Plan
from byhand.rope_scaling import Scaling
from byhand.spec import (
    ACTIVATIONS,
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    HeadSpec,
    LatentSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RelativeSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Tensor, Weights
from byhand.worked import Worked

D, HEADS, WIDTH = 6, 2, 4
CAPS = (None, Fraction(5, 2), Fraction(50))


@dataclass(frozen=True)
class Model:
    """A model, its weights and the texts that it reads."""

    spec: ModelSpec
    weights: Weights
    tokens: tuple[int, ...]
    source: tuple[int, ...] | None
    segments: tuple[int, ...] | None

    def plan(self) -> Plan:
        source = None if self.source is None else len(self.source)
        return forward.plan(
            self.spec,
            len(self.tokens),
            source=source,
            segments=self.segments,
            target=True,
            head_outputs=True,
        )

    def work(self, numbers: Numbers, **more: Any) -> dict[str, Worked]:
        return work_out(
            self.plan(), self.weights, self.tokens, numbers, source=self.source, target=1, **more
        )


class Drawn:
    """Draws one part of a model after another."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = np.random.default_rng((seed, number))

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def yes(self) -> bool:
        return bool(self.random.integers(2))

    def norm(self, *, always: bool = False) -> NormSpec:
        kind = self.one_of(("layernorm", "rmsnorm") if always else ("layernorm", "rmsnorm", "none"))
        if kind == "none":
            return NO_NORM
        gain = self.yes()
        bias = kind == "layernorm" and self.yes()
        return NormSpec(kind, Fraction(1, 10**5), gain, bias, gain and self.yes())

    def rotary(self, width: int) -> RotarySpec | None:
        if self.yes():
            return None
        return RotarySpec(
            width,
            pairing=self.one_of(("half", "interleaved")),
            magnitude=self.one_of((None, parse("0.1*ln(32) + 1"))),
            scaling=self.one_of((None, Scaling("linear", Fraction(8, 3)))),
        )

    def attention(self, relative: bool, *, causal: bool = True) -> AttentionSpec:
        if self.random.integers(4) == 0:
            return self.latent(causal)
        normed = self.one_of(("head", "each", "width"))
        d_value = self.one_of((None, 3))
        rotary = self.rotary(self.one_of((2, WIDTH)))
        norms = (self.norm(), self.norm())
        return AttentionSpec(
            HEADS, WIDTH, self.one_of((1, HEADS)), over_root(WIDTH), causal,
            window=2 if causal and self.yes() else None, rotary=rotary, q_norm=norms[0],
            k_norm=norms[1], sinks=self.yes(), cap=self.one_of(CAPS), normed=normed,
            clip=self.one_of((None, Fraction(1, 3))), d_value=d_value, relative=relative,
            v_bias=self.yes(),
        )  # fmt: skip

    def latent(self, causal: bool) -> AttentionSpec:
        rotary = RotarySpec(2, pairing=self.one_of(("half", "interleaved")))
        few = LatentSpec(3, self.one_of((None, 3)), self.norm(), self.norm(), self.yes())
        return AttentionSpec(
            HEADS, WIDTH, HEADS, over_root(WIDTH), causal, rotary=rotary, latent=few,
            d_value=self.one_of((None, 3)), sinks=self.yes(), cap=self.one_of(CAPS),
        )  # fmt: skip

    def mlp(self) -> MlpSpec:
        gated = self.yes()
        mlp = MlpSpec(
            5,
            self.one_of(ACTIVATIONS),
            gated,
            hidden_bias=self.yes(),
            limit=self.one_of((None, Fraction(1, 2))) if gated else None,
            hidden_plus=self.one_of((Fraction(0), Fraction(1))) if gated else Fraction(0),
        )
        if self.yes():
            return mlp
        groups = self.one_of((None, 2))
        shared = self.one_of((None, 3))
        chosen, normalised, router, out = self.one_of((1, 2)), self.yes(), self.yes(), self.yes()
        scoring = self.one_of(("softmax", "sigmoid"))
        divided = scoring == "sigmoid" and normalised
        return replace(
            mlp,
            experts=4,
            chosen=chosen,
            normalised=normalised,
            router_bias=router,
            out_bias=out,
            scoring=scoring,
            choice_bias=self.yes(),
            groups=groups,
            groups_chosen=None if groups is None else 1,
            group_rule=self.one_of(("max", "top2")),
            share_scale=self.one_of((Fraction(1), Fraction(5, 2))),
            share_eps=self.one_of((Fraction(0), Fraction(1, 10**20))) * divided,
            shared=shared,
            shared_gate=shared is not None and self.yes(),
        )

    def block(self, relative: bool, *, causal: bool = True, cross: bool = False) -> BlockSpec:
        place = self.one_of(("pre", "post"))
        parallel = place == "pre" and self.yes()
        one = parallel and self.yes()
        return BlockSpec(
            self.attention(relative, causal=causal),
            self.mlp(),
            attn_norm=self.norm(always=True),
            mlp_norm=NO_NORM if one else self.norm(),
            norm_place=place,
            parallel=parallel,
            attn_after=self.norm(),
            mlp_after=self.norm(),
            cross=replace(self.attention(False, causal=False), rotary=None, latent=None)
            if cross
            else None,
            cross_norm=self.norm() if cross else NO_NORM,
            one_norm=one,
            from_norm=place == "pre" and self.yes(),
            add_scale=self.one_of((None, parse("0.22"))),
        )

    def spec(self) -> ModelSpec:
        buckets = self.one_of((None, RelativeSpec(4, 8)))
        encoder = None
        if self.random.integers(3) == 0:
            both = self.one_of((None, RelativeSpec(8, 8, both=True)))
            encoder = EncoderSpec(
                (self.block(both is not None, causal=False),),
                vocab=self.one_of((None, 4)),
                position=self.one_of(("none", "sinusoidal")),
                position_pairing=self.one_of(("half", "interleaved")),
                embed_scale=self.one_of((None, parse("sqrt(6)"))),
                embed_norm=self.norm(),
                final_norm=self.norm(),
                relative=both,
            )
        blocks = tuple(
            self.block(buckets is not None, cross=encoder is not None)
            for _layer in range(self.one_of((1, 2)))
        )
        return ModelSpec(
            "drawn", 5, D, None, blocks,
            position=self.one_of(("none", "sinusoidal")), final_norm=self.norm(), tied=self.yes(),
            layout=self.one_of(("in_out", "out_in")),
            position_pairing=self.one_of(("half", "interleaved")), embed_norm=self.norm(),
            embed_width=4 if encoder is None and self.yes() else None,
            segments=self.one_of((None, 2)), relative=buckets,
            head=self.one_of((None, HeadSpec("gelu", self.norm()))),
            head_scale=self.one_of((None, parse("1/sqrt(2)"))),
            logit_scale=self.one_of((None, parse("0.0625"))), logit_cap=self.one_of(CAPS),
            encoder=encoder,
        )  # fmt: skip


def drawn_model(seed: int, number: int = 0) -> Model:
    """One of the random models of this seed."""
    drawn = Drawn(seed, number)
    spec, random = drawn.spec(), drawn.random
    made = {}
    for parameter in parameters(spec):
        data = random.standard_normal(parameter.shape) / sqrt(max(2, parameter.shape[0]))
        made[parameter.name] = Tensor(parameter.name, data.astype(np.float32))
    tokens = tuple(map(int, random.integers(0, spec.vocab, 3)))
    source = segments = None
    if spec.encoder is not None:
        source = tuple(map(int, random.integers(0, spec.encoder.vocab or spec.vocab, 4)))
    if spec.segments is not None:
        segments = tuple(map(int, random.integers(0, spec.segments, 3)))
    return Model(spec, Weights(made), tokens, source, segments)
