"""ModelSpec → the `model:` table of a model file, as plain data that YAML can write.

`architecture` reads the table back to the same spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from byhand.dimensions import UNNAMED, Dimensions
from byhand.expression import Expression, Number, write
from byhand.rope_scaling import Scaling
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    LatentSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    over_root,
)

Table = dict[str, Any]

_BIASED = ("q", "k", "v", "out")
_LONGEST_DECIMAL = 40  # places; a longer decimal is written as a fraction


def model_table(spec: ModelSpec, dimensions: Dimensions = UNNAMED) -> Table:
    """The table of a spec; if blocks differ, each is written in full under `blocks`."""
    table: Table = {"d_model": spec.d_model}
    if dimensions.stream:
        table["stream"] = list(dimensions.stream)
    if spec.context is not None:
        table["context"] = spec.context
    table |= {"layers": len(spec.blocks), "layout": spec.layout}
    table |= _given({"segments": spec.segments, "embed_width": spec.embed_width})
    table |= _stack(spec, dimensions)
    table["head"] = {"tied": spec.tied, "bias": spec.head_bias} | _head(spec)
    if spec.encoder is not None:
        encoder: Table = {"layers": len(spec.encoder.blocks)}
        encoder |= _given({"context": spec.encoder.context})
        table["encoder"] = encoder | _stack(spec.encoder, UNNAMED)
    return table


def _stack(side: ModelSpec | EncoderSpec, dimensions: Dimensions) -> Table:
    """One stream: its embedding, positions, blocks and last norm."""
    table = _given({"embed_scale": side.embed_scale})
    if side.embed_norm.kind != "none":
        table["embed_norm"] = _norm(side.embed_norm)
    if side.relative is not None:
        buckets, distance = side.relative.buckets, side.relative.distance
        table["relative"] = {"buckets": buckets, "distance": distance, "both": side.relative.both}
    table |= _positions_and_blocks(side, dimensions)
    return table | {"final_norm": _norm(side.final_norm)}


def _head(spec: ModelSpec) -> Table:
    """What the head does besides a product with a matrix."""
    scales = {"scale": spec.head_scale, "logit_scale": spec.logit_scale, "cap": spec.logit_cap}
    table = _given(scales)
    if (head := spec.head) is not None:
        inner = {"activation": head.activation, "norm": _norm(head.norm), "bias": head.bias}
        table["hidden"] = inner
    flags = {"in_place": spec.in_place, "fixed_bias": spec.fixed_bias}
    return table | {key: True for key, said in flags.items() if said}


def _given(values: Mapping[str, int | str | Fraction | Expression | None]) -> Table:
    """The values that are there, numbers as text."""
    return {
        key: value if isinstance(value, int | str) else number_text(value)
        for key, value in values.items()
        if value is not None
    }


def number_text(value: Fraction | Expression, decimals: bool = False) -> str:
    """A number as model files write it; it reads back to the same number.

    3/4 stays a fraction and 0.2 a decimal; among `decimals`, 3/4 is 0.75.
    """
    if isinstance(value, Number):
        value = value.value
    if not isinstance(value, Fraction):
        return write(value)
    below = value.denominator
    if below == 1 or (not decimals and below & (below - 1) == 0 and below <= 1024):
        return str(value)
    return decimal_text(value) or str(value)


def decimal_text(value: Fraction) -> str | None:
    """The full decimal of a number; None if it is endless or very long."""
    rest, places = value.denominator, 0
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > _LONGEST_DECIMAL or abs(value) >= 10**_LONGEST_DECIMAL:
        return None
    return fixed(value, places)


def fixed(value: Fraction, places: int) -> str:
    """A number of at most so many decimals, written with all of them."""
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits


# ------------------------------------------------------------------ positions and blocks


def _positions_and_blocks(spec: ModelSpec | EncoderSpec, dimensions: Dimensions) -> Table:
    stream: list[Any] = [] if spec.position == "none" else [spec.position]
    if spec.position == "learned" and spec.first_row:
        stream = [{"kind": "learned", "first_row": spec.first_row}]
    if spec.position == "sinusoidal":
        waves: Table = {"kind": "sinusoidal", "base": number_text(spec.position_base)}
        if spec.position_pairing != "interleaved":
            waves["pairing"] = spec.position_pairing
        stream = [waves]
    if not spec.blocks:
        return {"position": _one_or_more(stream)}
    first = spec.blocks[0]
    units = [dimensions.of_units(layer) for layer in range(len(spec.blocks))]
    if all(block == first for block in spec.blocks) and len(set(units)) == 1:
        table: Table = {"position": _one_or_more([*stream, *_relative(first.attention)])}
        return table | _block(first, units[0])
    # Nothing is inherited, since some keys have no word for the default.
    return {
        "position": _one_or_more(stream),
        "attention": "none",
        "mlp": "none",
        "blocks": {
            layer: {"position": _one_or_more(_relative(block.attention))}
            | _block(block, units[layer])
            for layer, block in enumerate(spec.blocks)
        },
    }


def _block(block: BlockSpec, units: tuple[str, ...]) -> Table:
    """The table of a block; its norm is attention's, and the MLP has its own if it differs."""
    shared = block.attn_norm
    own = shared if block.one_norm else block.mlp_norm
    attention: Any = "none" if block.attention is None else _attention(block.attention)
    mlp: Any = "none" if block.mlp is None else _mlp(block.mlp, units)
    if shared != own and block.mlp is not None:
        mlp["norm"] = _own(own, shared)
    elif shared != own and block.attention is not None:
        shared, own = own, shared
        attention["norm"] = _own(own, shared)
    for table, after in ((attention, block.attn_after), (mlp, block.mlp_after)):
        if after.kind != "none":
            table["after"] = _norm(after)
    norm: Table = {"kind": "none"} if shared.kind == "none" else _norm(shared)
    norm |= {"place": block.norm_place}
    norm |= ({"one": True} if block.one_norm else {}) | (
        {"from": "norm"} if block.from_norm else {}
    )
    table = {
        "norm": norm,
        "attention": attention,
        "mlp": mlp,
        "residual": "parallel" if block.parallel else "serial",
    }
    if block.cross is not None:
        table["cross"] = _attention(block.cross, causal=False)
        if block.cross_norm != shared:
            table["cross"]["norm"] = _own(block.cross_norm, shared)
    return table | _given({"add_scale": block.add_scale})


def _one_or_more(kinds: list[Any]) -> Any:
    return kinds[0] if len(kinds) == 1 else kinds or "none"


def _relative(attention: AttentionSpec | None) -> list[Any]:
    """RoPE and ALiBi, if an attention has them."""
    kinds: list[Any] = []
    if attention and (rotary := attention.rotary):
        rope: Table = {"kind": "rope", "width": rotary.width, "pairing": rotary.pairing}
        rope |= {"angles": "given"} if rotary.given else {"base": number_text(rotary.base)}
        if rotary.magnitude is not None:
            rope["magnitude"] = number_text(rotary.magnitude)
        if rotary.scaling is not None:
            rope["scaling"] = _scaling(rotary.scaling)
        kinds.append(rope)
    if attention and attention.alibi:
        kinds.append("alibi")
    return kinds


def _scaling(scaling: Scaling) -> Table:
    """The rule of RoPE's angles, without defaults."""
    usual = Scaling(scaling.kind)
    table: Table = {"kind": scaling.kind}
    for key in ("factor", "length", "slow", "fast", "whole"):
        if (value := getattr(scaling, key)) != getattr(usual, key):
            table |= _given({key: value})
    for key in ("short_factors", "long_factors"):
        if factors := getattr(scaling, key):
            table[key] = [number_text(factor) for factor in factors]
    return table


def _norm(norm: NormSpec) -> Any:
    if norm.kind == "none":
        return "none"
    table = {
        "kind": norm.kind,
        "eps": number_text(norm.eps),
        "gain": norm.gain,
        "bias": norm.bias,
    }
    return table | ({"plus_one": True} if norm.plus_one else {})


def _own(norm: NormSpec, shared: NormSpec) -> Any:
    """A sublayer's own norm, which is merged over the one that the block has."""
    table = _norm(norm)
    if isinstance(table, dict) and shared.plus_one:
        table["plus_one"] = norm.plus_one
    return table


def _attention(attention: AttentionSpec, causal: bool = True) -> Table:
    """The table of an attention, without defaults."""
    scale = attention.scale
    table: Table = {"heads": attention.heads}
    if attention.kv_heads != attention.heads:
        table["kv_heads"] = attention.kv_heads
    table["d_head"] = attention.d_head
    if scale != (over_root(attention.d_head) if attention.queries else None):
        table["scale"] = "none" if scale is None else number_text(scale)
    for key in ("window", "cap", "clip", "d_value"):
        table |= _given({key: getattr(attention, key)})
    if attention.latent is not None:
        table["latent"] = _latent(attention.latent)
    biases = {place: getattr(attention, f"{place}_bias") for place in _BIASED}
    others: Table = {
        "causal": (attention.causal, causal),
        "bias": (biases, dict.fromkeys(_BIASED, False)),
        "packed": (attention.packed or "none", "none"),
        "out": (attention.out, True),
        "q_norm": (_norm(attention.q_norm), "none"),
        "k_norm": (_norm(attention.k_norm), "none"),
        "score_table": (attention.score_table, False),
        "queries": (attention.queries, True),
        "nothing": ("zero" if attention.nothing else "refused", "refused"),
        "sinks": (attention.sinks, False),
        "normed": (attention.normed, "head"),
        "turned_first": (attention.turned_first, False),
        "relative": (attention.relative, False),
    }
    return table | {key: now for key, (now, usual) in others.items() if now != usual}


def _latent(latent: LatentSpec) -> Table:
    """The table of latent attention, without defaults."""
    table = _given({"rank": latent.rank, "query_rank": latent.query_rank})
    for key, norm in (("norm", latent.norm), ("query_norm", latent.query_norm)):
        table |= {} if norm.kind == "none" else {key: _norm(norm)}
    return table | ({"bias": True} if latent.down_bias else {})


def _mlp(mlp: MlpSpec, units: tuple[str, ...]) -> Table:
    table: Table = {"d_ff": mlp.d_ff, "activation": mlp.activation}
    if units:
        table["units"] = list(units)
    biased = ("hidden", "gate", "out", *["router"] * (mlp.experts is not None))
    biases = {place: getattr(mlp, f"{place}_bias") for place in biased}
    if mlp.gated:
        table["gated"] = True
    usual = MlpSpec(1)
    for key in (
        "limit", "hidden_plus", "experts", "chosen", "normalised", "scoring", "choice_bias",
        "groups", "groups_chosen", "group_rule", "share_scale", "share_eps", "shared",
        "shared_gate", "shared_bias",
    ):  # fmt: skip
        if (value := getattr(mlp, key)) != getattr(usual, key):
            table |= _given({key: value})
    return table | ({"bias": biases} if any(biases.values()) else {})
