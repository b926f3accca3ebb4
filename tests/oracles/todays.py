"""Small models with what today's have: each number draws another mixture of the newer options.

Norms behind a sublayer, gains of 1 + w, caps, clips, factors, latent and cross-attention, scores by
distance, encoders, segments, and experts that are chosen within groups, beside shared ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from byhand import forward
from byhand.expression import Expression, Number
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
from oracles.architectures import HALF_ROOT_TWO, Case, EntryMaker, _tensor

EPS = Fraction(1, 100)
SCALES: tuple[Expression | None, ...] = (None, HALF_ROOT_TWO, Number(Fraction(1, 3)))


@dataclass(frozen=True)
class Todays(Case):
    """A case whose model may read a source, and kinds of tokens."""

    source: tuple[int, ...] | None = None
    segments: tuple[int, ...] | None = None

    def plan(self) -> Plan:
        return forward.plan(
            self.spec,
            len(self.tokens),
            positions=self.positions,
            mask=self.mask,
            target=True,
            head_outputs=True,
            segments=self.segments,
            source=None if self.source is None else len(self.source),
        )


def todays(number: int, entry: EntryMaker, *, d: int = 4, vocab: int = 3) -> Todays:
    """The case of this number; the kinds of attention and activations take turns."""
    random = Random(number)
    spec = _Drawn(random, number, d).model(vocab)
    weights = {p.name: Tensor(p.name, _tensor(p, random, entry)) for p in parameters(spec)}
    length = random.randint(2, 3)
    first = random.choice((0, 2)) if spec.encoder is None else 0
    words = spec.encoder and (spec.encoder.vocab or vocab)
    return Todays(
        spec,
        Weights(weights),
        tuple(random.randrange(vocab) for _place in range(length)),
        random.randrange(vocab),
        tuple(range(first, first + length)),
        None,
        source=words and tuple(random.randrange(words) for _place in range(2)),
        segments=spec.segments and tuple(random.randrange(spec.segments) for _ in range(length)),
    )


class _Drawn:
    def __init__(self, random: Random, number: int, d: int) -> None:
        self.random, self.number, self.d = random, number, d

    def maybe(self) -> bool:
        return self.random.random() < 0.5

    def one_of(self, options: Sequence[Any]) -> Any:
        return self.random.choice(list(options))

    def norm(self, *, there: bool = False) -> NormSpec:
        kind = self.one_of(("layernorm", "rmsnorm") if there else ("none", "layernorm", "rmsnorm"))
        if kind == "none":
            return NO_NORM
        gain = self.maybe()
        bias = kind == "layernorm" and self.maybe()
        return NormSpec(kind, EPS, gain=gain, bias=bias, plus_one=gain and self.maybe())

    def scale(self) -> Expression | None:
        found: Expression | None = self.one_of(SCALES)
        return found

    # ------------------------------------------------------------------ attention

    def attention(self, kind: int, *, relative: bool, cross: bool = False) -> AttentionSpec:
        if kind % 4 == 3 and not cross:
            return self.latent()
        heads, kv_heads, d_head = self.one_of(((2, 1, 2), (2, 2, 2), (1, 1, 4)))
        normed = self.one_of(("head", "each", "width"))
        q_norm, k_norm = (
            (self.norm(there=normed != "head"), self.norm(there=normed != "head"))
            if self.maybe()
            else (NO_NORM, NO_NORM)
        )
        rotary = None
        if not cross and not relative and self.maybe():
            rotary = RotarySpec(2, base=Fraction(100), scaling=Scaling("linear", Fraction(3, 2)))
        return AttentionSpec(
            heads,
            d_head,
            kv_heads,
            scale=self.one_of((None, over_root(d_head))),
            causal=not cross and self.maybe(),
            rotary=rotary,
            q_norm=q_norm,
            k_norm=k_norm,
            normed=normed,
            clip=self.one_of((None, Fraction(1, 2))),
            cap=self.one_of((None, Fraction(3, 2))),
            sinks=self.maybe(),
            d_value=self.one_of((None, 3)),
            q_bias=self.maybe(),
            v_bias=self.maybe(),
            out_bias=self.maybe(),
            relative=relative,
        )

    def latent(self) -> AttentionSpec:
        few = LatentSpec(
            rank=2,
            query_rank=self.one_of((None, 3)),
            norm=self.norm(),
            query_norm=self.norm(),
            down_bias=self.maybe(),
        )
        return AttentionSpec(
            2,
            3,
            2,
            scale=over_root(3),
            causal=self.maybe(),
            rotary=RotarySpec(2, base=Fraction(100), pairing=self.one_of(("half", "interleaved"))),
            d_value=self.one_of((None, 2)),
            latent=few,
            cap=self.one_of((None, Fraction(3, 2))),
        )

    # ------------------------------------------------------------------ MLPs

    def mlp(self, turn: int) -> MlpSpec:
        gated = self.maybe()
        settings: dict[str, Any] = {
            "d_ff": self.one_of((2, 3)),
            "activation": ACTIVATIONS[turn % len(ACTIVATIONS)],
            "gated": gated,
            "hidden_bias": self.maybe(),
            "out_bias": self.maybe(),
            "limit": self.one_of((None, Fraction(1, 2))) if gated else None,
            "hidden_plus": Fraction(self.one_of((0, 1))) if gated else Fraction(0),
        }
        if turn % 2:
            return MlpSpec(**settings)
        experts, chosen, groups, kept, rule = self.one_of(
            (
                (4, 2, 2, 1, "top2"),
                (4, 2, 2, 1, "max"),
                (4, 1, 4, 2, "max"),
                (3, 2, None, None, "max"),
            )
        )
        shared = self.one_of((None, 2))
        scoring = self.one_of(("softmax", "sigmoid"))
        normalised = self.maybe()
        return MlpSpec(
            **settings,
            experts=experts,
            chosen=chosen,
            groups=groups,
            groups_chosen=kept,
            group_rule=rule,
            scoring=scoring,
            normalised=normalised,
            choice_bias=self.maybe(),
            share_scale=self.one_of((Fraction(1), Fraction(5, 2))),
            share_eps=Fraction(self.one_of((0, normalised)) if scoring == "sigmoid" else 0, 64),
            shared=shared,
            shared_gate=shared is not None and turn % 4 == 0,
        )

    # ------------------------------------------------------------------ the whole

    def block(self, turn: int, *, relative: bool, cross: bool = False) -> BlockSpec:
        place = self.one_of(("pre", "pre", "post"))
        parallel = place == "pre" and self.maybe()
        one_norm = parallel and self.maybe()
        return BlockSpec(
            self.attention(turn, relative=relative),
            self.mlp(turn),
            attn_norm=self.norm(),
            mlp_norm=NO_NORM if one_norm else self.norm(),
            norm_place=place,
            parallel=parallel,
            attn_after=self.norm(),
            mlp_after=self.norm(),
            cross=self.attention(0, relative=False, cross=True) if cross else None,
            cross_norm=self.norm() if cross else NO_NORM,
            one_norm=one_norm,
            from_norm=place == "pre" and self.maybe(),
            add_scale=self.scale(),
        )

    def encoder(self) -> EncoderSpec:
        relative = self.one_of((None, RelativeSpec(4, 5, both=True)))
        return EncoderSpec(
            (self.block(1, relative=relative is not None),),
            vocab=self.one_of((None, 5)),
            context=6,
            position=self.one_of(("none", "learned", "sinusoidal")),
            position_pairing=self.one_of(("half", "interleaved")),
            embed_scale=self.scale(),
            embed_norm=self.norm(),
            final_norm=self.norm(),
            relative=relative,
        )

    def model(self, vocab: int) -> ModelSpec:
        encoder = self.encoder() if self.number % 3 == 2 else None
        relative = self.one_of((None, RelativeSpec(4, 6)))
        blocks = (
            self.block(self.number, relative=relative is not None, cross=encoder is not None),
        )
        position = self.one_of(("none", "learned", "sinusoidal"))
        head = (
            HeadSpec(self.one_of(ACTIVATIONS), self.norm(), self.maybe()) if self.maybe() else None
        )
        return ModelSpec(
            name="today",
            vocab=vocab,
            d_model=self.d,
            context=6,
            blocks=blocks,
            position=position,
            position_pairing=self.one_of(("half", "interleaved")),
            embed_scale=self.scale(),
            final_norm=self.norm(),
            tied=self.maybe(),
            head_bias=self.maybe(),
            layout=self.one_of(("in_out", "out_in")),
            embed_norm=self.norm(),
            embed_width=None if encoder is not None else self.one_of((None, 3)),
            segments=self.one_of((None, 2)),
            relative=relative,
            head=head,
            head_scale=self.scale(),
            logit_scale=self.scale(),
            logit_cap=self.one_of((None, Fraction(5, 2))),
            encoder=encoder,
        )
