"""The names of modules in families with experts and latent attention.

Files have a tensor for each expert, or one for all of them, as newer releases of transformers save
them.  A block without experts has the matrices of one MLP instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from byhand.names.decoders import LLAMA
from byhand.names.modules import Names, Place
from byhand.names.pieces import Part, Piece, Turned, piece

ATTENTION = {name: place for name, place in LLAMA.inside.items() if name.startswith("attn.")}
NORMS = {"mlp.norm": "post_attention_layernorm"}


def _stacked(module: str, *order: str) -> dict[str, tuple[Piece, ...]]:
    """The tensors of all experts in two: gate and hidden side by side, and out."""
    return {
        "mlp.gate": (piece(f"{module}.gate_up_proj", Part(0, 2, *order), weight=""),),
        "mlp.hidden": (piece(f"{module}.gate_up_proj", Part(1, 2, *order), weight=""),),
        "mlp.out": (piece(f"{module}.down_proj", weight=""),),
    }


def _experts(stacked: str, single: str, *names: str) -> dict[str, Place]:
    """gate, hidden and out: of each expert, of all experts, or of a plain MLP."""
    plain = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    return {
        ours: (piece(f"{single}.{{expert}}.{name}"), *pieces, piece(other))
        for (ours, pieces), name, other in zip(_stacked(stacked).items(), names, plain, strict=True)
    }


def _shared(module: str) -> dict[str, Place]:
    return {
        "mlp.shared.gate": f"{module}.gate_proj",
        "mlp.shared.hidden": f"{module}.up_proj",
        "mlp.shared.out": f"{module}.down_proj",
    }


def _family(
    *inside: Mapping[str, Place],
    shared: str = "",
    module: str = "mlp",
    attention: Mapping[str, Place] = ATTENTION,
    outputs: Mapping[str, str] | None = None,
) -> Names:
    """A family like llama, with other modules in its layers; `module` is around the experts."""
    every: dict[str, Place] = {**attention, **NORMS}
    for some in (*inside, _shared(f"mlp.{shared}") if shared else {}):
        every |= some
    at = f"layers.L.{module}"
    given = {
        f"{at}.experts": "block.L.mlp.combined block.L.mlp.out",
        f"{at}.experts.act_fn": "",  # of one expert after the other
        f"{at}.{shared or 'shared'}.act_fn": "block.L.mlp.shared.act",
    }
    return replace(LLAMA, inside=every, outputs={**given, **(outputs or {})})


_QWEN = _experts("mlp.experts", "mlp.experts", "gate_proj", "up_proj", "down_proj")

MIXTRAL = _family(
    {"mlp.router": ("block_sparse_moe.gate", "mlp.gate")},
    _experts("mlp.experts", "block_sparse_moe.experts", "w1", "w3", "w2"),
)

MINIMAX_M2 = _family(
    {
        "mlp.router": ("block_sparse_moe.gate", "mlp.gate"),
        "mlp.choice_bias": (
            piece("block_sparse_moe", weight=".e_score_correction_bias"),
            piece("mlp", weight=".e_score_correction_bias"),
        ),
    },
    _experts("mlp.experts", "block_sparse_moe.experts", "w1", "w3", "w2"),
    outputs={"layers.L.mlp": "block.L.mlp.out"},  # it keeps a bias, too
)

QWEN_MOE = _family(
    {"mlp.router": "mlp.gate", "mlp.shared.score": "mlp.shared_expert_gate"},
    _QWEN,
    shared="shared_expert",
)

GRANITE_MOE = _family(
    {"mlp.router": ("block_sparse_moe.router.layer", "block_sparse_moe.router")},
    {
        ours: (piece(f"block_sparse_moe.{module}", *each.rules), each)
        for (ours, (each,)), module in zip(
            _stacked("block_sparse_moe.experts").items(),
            ("input_linear", "input_linear", "output_linear"),
            strict=True,
        )
    },
    {
        "mlp.shared.gate": piece("shared_mlp.input_linear", Part(0, 2)),
        "mlp.shared.hidden": piece("shared_mlp.input_linear", Part(1, 2)),
        "mlp.shared.out": "shared_mlp.output_linear",
    },
    module="block_sparse_moe",
    outputs={
        "embed_tokens": "",  # multiplied behind the module
        "layers.L.block_sparse_moe": "block.L.mlp.combined block.L.mlp.out",
        "layers.L.shared_mlp.activation": "block.L.mlp.shared.act",
    },
)

GPT_OSS = _family(
    {"attn.sinks": piece("self_attn", weight=".sinks"), "mlp.router": "mlp.router"},
    {
        ours: piece(each.module, *each.rules, Turned(), weight="", bias="_bias")
        for ours, (each,) in _stacked("mlp.experts", "turn").items()
    },
)

_SIGMOID: Mapping[str, Place] = {
    "mlp.router": "mlp.gate",
    "mlp.choice_bias": piece("mlp.gate", weight=".e_score_correction_bias"),
}

GLM_MOE = replace(_family(_SIGMOID, _QWEN, shared="shared_experts"), further=True)

_LATENT = _family(
    {
        "attn.q_latent": "self_attn.q_a_proj",
        "attn.q_latent_norm": "self_attn.q_a_layernorm",
        "attn.q_wide": ("self_attn.q_b_proj", "self_attn.q_proj"),
        "attn.kv_latent": "self_attn.kv_a_proj_with_mqa",
        "attn.kv_latent_norm": "self_attn.kv_a_layernorm",
        "attn.kv_wide": "self_attn.kv_b_proj",
    },
    _SIGMOID,
    _QWEN,
    shared="shared_experts",
    attention={name: ATTENTION[name] for name in ("attn.norm", "attn.out")},
)

DEEPSEEK = replace(_LATENT, further=True)

MIXTURES: Mapping[str, Names] = {
    "mixtral": MIXTRAL,
    "minimax_m2": MINIMAX_M2,
    "qwen_moe": QWEN_MOE,
    "granitemoe": GRANITE_MOE,
    "gpt_oss": GPT_OSS,
    "glm_moe": GLM_MOE,
    "deepseek": DEEPSEEK,
}
