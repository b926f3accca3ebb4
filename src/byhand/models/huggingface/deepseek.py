"""deepseek_v2, deepseek_v3 and glm4_moe_lite: latent attention, groups of experts, shared ones.

The scale of the scores grows with the factor of YaRN where the config has `mscale_all_dim`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from byhand.expression import Call, Expression, Number, Power, Product, Sum
from byhand.language import _
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.keys import know_their_code
from byhand.models.huggingface.rope import Keys, read_rope, rope_table
from byhand.models.huggingface.routers import (
    Usual,
    by_sigmoid,
    in_groups,
    plain_mlp,
    with_experts,
)
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    LatentSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    over_root,
)

EPS = Fraction(1, 1_000_000)
THEIR_CODE = ("configuration_deepseek.Deepseek", "modeling_deepseek.Deepseek")
LAYERS = ("dense", "sparse")
V3 = Usual(256, 8, 2048, 1, (8, 4), Fraction(5, 2))
GLM_LITE = Usual(64, 4, 1536, 1, scale=Fraction(9, 5))
METHODS = {"greedy": False, "group_limited_greedy": True}  # whether experts stand in groups


def read_v2(config: Config, name: str) -> ModelSpec:
    """The spec of a DeepSeek V2 config."""
    know_their_code(config, THEIR_CODE)
    config.word("scoring_func", "softmax", {"softmax": None})
    if config.flag("norm_topk_prob", False):  # other code reads it, the library does not
        raise config.refuse("norm_topk_prob", "false")
    bias = config.flag("mlp_bias", False)
    plain = plain_mlp(config, bias=bias)
    more: dict[str, Any] = {
        "normalised": False,
        "share_scale": config.number("routed_scaling_factor", Fraction(1)),
        "shared_bias": bias,
    }
    config.asked.update(("n_group", "topk_group"))
    if config.word("topk_method", "greedy", METHODS):
        more |= in_groups(config, None, "max")
    width = config.whole("moe_intermediate_size", 1407)
    sparse = with_experts(
        config,
        replace(plain, d_ff=width, hidden_bias=False, gate_bias=False, out_bias=False),
        ("n_routed_experts", "num_experts"),
        (64, None),
        shared=width * config.whole("n_shared_experts", 2),
        **more,
    )
    return _model(config, name, "interleaved", (2048, 0), (plain, sparse))


def read_v3(config: Config, name: str) -> ModelSpec:
    """The spec of a DeepSeek V3 config."""
    know_their_code(config, THEIR_CODE)
    plain = plain_mlp(config)
    sparse = by_sigmoid(config, plain, V3)
    # further blocks guess tokens beyond the next one; a forward pass does not read them
    config.asked.update(("num_nextn_predict_layers", "num_mtp_layers"))
    return _model(config, name, _pairing(config), (4096, 3), (plain, sparse))


def read_glm4_lite(config: Config, name: str) -> ModelSpec:
    """The spec of a GLM 4 MoE Lite config: as DeepSeek V3, with a list of plain layers."""
    plain = plain_mlp(config)
    sparse = by_sigmoid(config, plain, GLM_LITE)
    config.asked.add("num_nextn_predict_layers")
    return _model(config, name, _pairing(config), (202_752, 1), (plain, sparse), Fraction(1, 10**5))


def _pairing(config: Config) -> str:
    return "interleaved" if config.flag("rope_interleave", True) else "half"


def _model(
    config: Config,
    name: str,
    pairing: str,
    usual: tuple[int, int],
    mlps: tuple[MlpSpec, MlpSpec],
    eps: Fraction = EPS,
) -> ModelSpec:
    """The model; usual = (its context, how many blocks have no experts)."""
    d = config.whole("hidden_size")
    layers = config.whole("num_hidden_layers", most=MOST_LAYERS)
    norm = NormSpec("rmsnorm", config.epsilon("rms_norm_eps", eps), bias=False)
    attention = _attention(config, Keys(pairing=pairing, context=usual[0]))
    plain, sparse = mlps
    dense = _without_experts(config, layers, usual[1])
    blocks = (BlockSpec(attention, plain if each else sparse, norm, norm) for each in dense)
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_position_embeddings", usual[0], most=LONGEST_CONTEXT),
        blocks=tuple(blocks),
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", False),
        layout="out_in",
    )


def _without_experts(config: Config, layers: int, usual: int) -> list[bool]:
    """Whether each layer has a plain MLP: the first ones, or as a list says."""
    first = config.whole("first_k_dense_replace", usual, least=0)
    if config.whole("moe_layer_freq", 1) != 1:
        raise config.refuse("moe_layer_freq", "1")
    _key, kinds = config.value("mlp_layer_types", None)
    if kinds is None:
        return [layer < first for layer in range(layers)]
    listed = isinstance(kinds, list) and len(kinds) == layers
    if not listed or not all(isinstance(kind, str) and kind in LAYERS for kind in kinds):
        names = _("a list of {count}, each of {names}")
        expected = names.format(count=layers, names=", ".join(LAYERS))
        raise config.refuse("mlp_layer_types", expected, kinds)
    return [kind == "dense" for kind in kinds]


def _attention(config: Config, keys: Keys) -> AttentionSpec:
    """Latent attention: RoPE turns the last part of each head, the same for all heads' keys."""
    heads = config.whole("num_attention_heads")
    if (config.whole_or_none("num_key_value_heads") or heads) != heads:
        raise config.refuse("num_key_value_heads", str(heads))
    turned = config.whole("qk_rope_head_dim", 64)
    width = config.whole("qk_nope_head_dim", 128) + turned
    config.asked.update(("head_dim", "qk_head_dim"))  # both follow from these two
    rope = read_rope(config, turned, keys)
    if rope is None:
        raise config.refuse("qk_rope_head_dim", _("a number of entries to turn"))
    few = NormSpec("rmsnorm", EPS, bias=False)  # whatever rms_norm_eps says
    query_rank = config.whole_or_none("q_lora_rank", 1536)
    bias = config.flag("attention_bias", False)
    return AttentionSpec(
        heads=heads,
        d_head=width,
        kv_heads=heads,
        scale=_scale(config, width),
        rotary=rope,
        out_bias=bias,
        d_value=config.whole("v_head_dim", 128),
        latent=LatentSpec(
            rank=config.whole("kv_lora_rank", 512),
            query_rank=query_rank,
            norm=few,
            query_norm=few,
            down_bias=bias,
        ),
    )


def _scale(config: Config, width: int) -> Expression:
    """1/√width, times the square of 1 + mscale_all_dim/10 · ln factor where RoPE is scaled."""
    table, plain = rope_table(config), over_root(width)
    if table.value("rope_type", "default", "type")[1] == "default":
        return plain
    if not table.value("mscale_all_dim", None)[1]:
        return plain
    factor, more = table.positive("factor"), table.number("mscale_all_dim")
    if factor <= 1:
        return plain
    grown = Product((Number(more / 10), Call("ln", Number(factor))))
    return Product((plain, Power(Sum((Number(Fraction(1)), grown)), Number(Fraction(2)))))
