"""The parameters of a model: every tensor its architecture needs, with its shape and its part.

A matrix is stored as its model writes it; a buffer is needed but not learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    LatentSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of weights.  A buffer is needed but not learned: tables of scores, slopes."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]  # each side in the symbols of the glossary: vocab, d, d_ff, …
    part: str  # embedding, position, attention, mlp, norm, head
    kind: str  # matrix, bias, gain, buffer

    @property
    def size(self) -> int:
        """The number of entries."""
        size = 1
        for side in self.shape:
            size *= side
        return size


def parameters(spec: ModelSpec) -> tuple[Parameter, ...]:
    """Every tensor the model needs, in spine order."""
    return tuple(_inventory(spec))


def learned(spec: ModelSpec) -> tuple[Parameter, ...]:
    """The parameters proper: what training changes.  Buffers, such as tables of scores, are not."""
    return tuple(parameter for parameter in parameters(spec) if parameter.kind != "buffer")


def size_of(spec: ModelSpec) -> int:
    """How many parameters a model has.  This alone decides whether a model is small or large."""
    return sum(parameter.size for parameter in learned(spec))


def _inventory(spec: ModelSpec) -> Iterator[Parameter]:
    d = ("d", spec.d_model)
    wide = d if spec.embed_width is None else ("embed_width", spec.embed_width)
    yield _tensor("embed.token", "embedding", "matrix", ("vocab", spec.vocab), wide)
    if spec.embed_width is not None:
        yield _matrix(spec, "embed.projected", "embedding", wide, d)
    if spec.segments is not None:
        yield _tensor("embed.segment", "embedding", "matrix", ("segments", spec.segments), d)
    if spec.encoder is not None:
        if spec.encoder.vocab is not None:
            words = ("source_vocab", spec.encoder.vocab)
            yield _tensor("encoder.embed.token", "embedding", "matrix", words, d)
        yield from _stack(spec, spec.encoder, "encoder.")
    yield from _stack(spec, spec, "")
    if spec.head is not None:
        yield _matrix(spec, "head.hidden", "head", d, d)
        if spec.head.bias:
            yield _tensor("head.hidden_bias", "head", "bias", d)
        yield from _norm("head.norm", spec.head.norm, d)
    if spec.embed_width is not None:
        yield _matrix(spec, "head.projected", "head", d, wide)
    answers = (spec.answer_axis, spec.answers)
    if not spec.tied:
        yield _matrix(spec, "head", "head", wide, answers)
    if spec.head_bias:
        yield _tensor("head_bias", "head", "buffer" if spec.fixed_bias else "bias", answers)


def _stack(spec: ModelSpec, side: ModelSpec | EncoderSpec, stack: str) -> Iterator[Parameter]:
    """The tensors of one stream: positions, blocks and norms, with `stack` before their names."""
    d = ("d", spec.d_model)
    if side.position == "learned":
        assert side.context is not None
        first = f"{side.first_row} + " if side.first_row else ""
        context = (f"{first}context", side.first_row + side.context)
        yield _tensor(f"{stack}embed.position", "position", "matrix", context, d)
    yield from _norm(f"{stack}embed.norm", side.embed_norm, d)
    if side.relative is not None:
        heads = next((b.attention.heads for b in side.blocks if b.attention), 1)
        sides = (("buckets", side.relative.buckets), ("heads", heads))
        yield _tensor(f"{stack}relative", "position", "matrix", *sides)
    for layer, block in enumerate(side.blocks):
        yield from _block(spec, f"{stack}block.{layer}", block)
    yield from _norm(f"{stack}final.norm", side.final_norm, d)


Side = tuple[str, int]


def _tensor(name: str, part: str, kind: str, *sides: Side) -> Parameter:
    return Parameter(
        name, tuple(size for _symbol, size in sides), tuple(s for s, _size in sides), part, kind
    )


def _matrix(
    spec: ModelSpec, name: str, part: str, source: Side, target: Side, each: tuple[Side, ...] = ()
) -> Parameter:
    """A matrix, or with `each` one for each expert, stacked."""
    sides = (source, target) if spec.layout == "in_out" else (target, source)
    return _tensor(name, part, "matrix", *each, *sides)


def _norm(name: str, norm: NormSpec, *sides: Side) -> Iterator[Parameter]:
    if norm.kind != "none" and norm.gain:
        yield _tensor(f"{name}.gain", "norm", "gain", *sides)
    if norm.kind != "none" and norm.bias:
        yield _tensor(f"{name}.bias", "norm", "bias", *sides)


def _block(spec: ModelSpec, at: str, block: BlockSpec) -> Iterator[Parameter]:
    d = ("d", spec.d_model)
    if block.attention:
        yield from _norm(f"{at}.attn.norm", block.attn_norm, d)
        yield from _attention(spec, f"{at}.attn", block.attention)
        yield from _norm(f"{at}.attn.after", block.attn_after, d)
    if block.cross:
        yield from _norm(f"{at}.cross.norm", block.cross_norm, d)
        yield from _attention(spec, f"{at}.cross", block.cross)
    if block.mlp:
        yield from _norm(f"{at}.mlp.norm", block.mlp_norm, d)
        yield from _mlp(spec, f"{at}.mlp", block.mlp)
        yield from _norm(f"{at}.mlp.after", block.mlp_after, d)


def _attention(spec: ModelSpec, at: str, attn: AttentionSpec) -> Iterator[Parameter]:
    d = ("d", spec.d_model)

    def wide(name: str, size: int) -> Side:
        return d if size == spec.d_model else (name, size)

    q = wide("heads·d_head", attn.q_width)
    kv = wide("kv_heads·d_head" if attn.kv_heads != attn.heads else "heads·d_head", attn.kv_width)
    mixed, values = q, kv
    if attn.d_value is not None:
        mixed = wide("heads·d_value", attn.heads * attn.d_value)
        values = wide("kv_heads·d_value", attn.kv_heads * attn.d_value)
    if attn.latent:
        yield from _latent(spec, at, attn, attn.latent)
    elif attn.packed:
        total = attn.q_width + 2 * attn.kv_width
        packed = (f"3·{q[0]}" if q == kv else f"({q[0]} + 2·{kv[0]})", total)
        yield _matrix(spec, f"{at}.qkv", "attention", d, packed)
        if attn.q_bias:
            yield _tensor(f"{at}.qkv_bias", "attention", "bias", packed)
    else:
        for name, side, bias in (
            ("q", q, attn.q_bias),
            ("k", kv, attn.k_bias),
            ("v", values, attn.v_bias),
        )[0 if attn.queries else 2 :]:
            yield _matrix(spec, f"{at}.{name}", "attention", d, side)
            if bias:
                yield _tensor(f"{at}.{name}_bias", "attention", "bias", side)
    for name, norm, heads in (("q", attn.q_norm, attn.heads), ("k", attn.k_norm, attn.kv_heads)):
        sides: tuple[Side, ...] = (("d_head", attn.d_head),)
        if attn.normed == "width":
            sides = (q if name == "q" else kv,)
        elif attn.normed == "each":  # (head, 1, d_head), which multiplies (head, pos, d_head)
            sides = (("heads" if name == "q" else "kv_heads", heads), ("1", 1), *sides)
        yield from _norm(f"{at}.{name}_norm", norm, *sides)
    if attn.rotary and attn.rotary.given:
        pairs = ("rope_width/2", attn.rotary.width // 2)
        yield _tensor(f"{at}.frequencies", "attention", "buffer", pairs)
    if attn.alibi:
        yield _tensor(f"{at}.slopes", "attention", "buffer", ("heads", attn.heads))
    if attn.sinks:
        yield _tensor(f"{at}.sinks", "attention", "bias", ("heads", attn.heads))
    if attn.score_table:
        assert spec.context is not None
        square = (("context", spec.context), ("context", spec.context))
        yield _tensor(f"{at}.score_table", "attention", "buffer", ("heads", attn.heads), *square)
    if attn.out:
        yield _matrix(spec, f"{at}.out", "attention", mixed, d)
        if attn.out_bias:
            yield _tensor(f"{at}.out_bias", "attention", "bias", d)


def _latent(
    spec: ModelSpec, at: str, attn: AttentionSpec, latent: LatentSpec
) -> Iterator[Parameter]:
    """The matrices of latent attention: down to a few numbers, and up to the heads."""
    assert attn.rotary is not None
    d, turned = ("d", spec.d_model), attn.rotary.width
    q = ("heads·d_head", attn.q_width)
    few = ("rank", latent.rank)
    if latent.query_rank is None:
        yield _matrix(spec, f"{at}.q_wide", "attention", d, q)
    else:
        few_q = ("query_rank", latent.query_rank)
        yield _matrix(spec, f"{at}.q_latent", "attention", d, few_q)
        if latent.down_bias:
            yield _tensor(f"{at}.q_latent_bias", "attention", "bias", few_q)
        yield from _norm(f"{at}.q_latent_norm", latent.query_norm, few_q)
        yield _matrix(spec, f"{at}.q_wide", "attention", few_q, q)
    down = ("rank + rope_width", latent.rank + turned)
    yield _matrix(spec, f"{at}.kv_latent", "attention", d, down)
    if latent.down_bias:
        yield _tensor(f"{at}.kv_latent_bias", "attention", "bias", down)
    yield from _norm(f"{at}.kv_latent_norm", latent.norm, few)
    width = attn.d_head - turned + attn.value_width
    up = ("heads·(d_head - rope_width + d_value)", attn.heads * width)
    yield _matrix(spec, f"{at}.kv_wide", "attention", few, up)


def _mlp(spec: ModelSpec, at: str, mlp: MlpSpec, inside: str = "d_ff") -> Iterator[Parameter]:
    d, wide = ("d", spec.d_model), (inside, mlp.d_ff)
    each: tuple[Side, ...] = ()
    if mlp.experts is not None:
        experts = ("experts", mlp.experts)
        each = (experts,)
        yield _matrix(spec, f"{at}.router", "mlp", d, experts)
        if mlp.router_bias:
            yield _tensor(f"{at}.router_bias", "mlp", "bias", experts)
        if mlp.choice_bias:
            yield _tensor(f"{at}.choice_bias", "mlp", "buffer", experts)
    for name, source, target, there, bias in (
        ("gate", d, wide, mlp.gated, mlp.gate_bias),
        ("hidden", d, wide, True, mlp.hidden_bias),
        ("out", wide, d, True, mlp.out_bias),
    ):
        if there:
            yield _matrix(spec, f"{at}.{name}", "mlp", source, target, each)
        if bias:
            yield _tensor(f"{at}.{name}_bias", "mlp", "bias", *each, target)
    if mlp.shared is not None:
        yield from _mlp(spec, f"{at}.shared", mlp.shared_mlp, "d_shared")
        if mlp.shared_gate:
            yield _matrix(spec, f"{at}.shared.score", "mlp", d, ("1", 1))
