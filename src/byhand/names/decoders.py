"""The names of modules in the decoders without experts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from byhand.names.modules import Names
from byhand.names.pieces import Flat, Grouped, Later, Part, Sharded, piece

GPT2 = Names(
    prefix="transformer.",
    embedding="wte.weight",
    heads=("lm_head.weight",),
    outside={"embed.position": "wpe", "final.norm": "ln_f"},
    layer="h.",
    inside={
        "attn.norm": "ln_1",
        "attn.qkv": "attn.c_attn",
        "attn.out": "attn.c_proj",
        "mlp.norm": "ln_2",
        "mlp.hidden": "mlp.c_fc",
        "mlp.out": "mlp.c_proj",
    },
    leftovers=re.compile(r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)"),
)

LLAMA = Names(
    prefix="model.",
    embedding="embed_tokens.weight",
    heads=("lm_head.weight",),
    outside={"final.norm": "norm"},
    layer="layers.",
    inside={
        "attn.norm": "input_layernorm",
        "attn.q": "self_attn.q_proj",
        "attn.k": "self_attn.k_proj",
        "attn.v": "self_attn.v_proj",
        "attn.q_norm": "self_attn.q_norm",
        "attn.k_norm": "self_attn.k_norm",
        "attn.out": "self_attn.o_proj",
        "mlp.norm": "post_attention_layernorm",
        "mlp.gate": "mlp.gate_proj",
        "mlp.hidden": "mlp.up_proj",
        "mlp.out": "mlp.down_proj",
    },
    leftovers=re.compile(r"(model\.)?(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq"),
)

GPT_NEOX = Names(
    prefix="gpt_neox.",
    embedding="embed_in.weight",
    heads=("lm_head.weight", "embed_out.weight"),
    outside={"final.norm": "final_layer_norm"},
    layer="layers.",
    inside={
        "attn.norm": "input_layernorm",
        "attn.qkv": "attention.query_key_value",
        "attn.out": "attention.dense",
        "mlp.norm": "post_attention_layernorm",
        "mlp.hidden": "mlp.dense_h_to_4h",
        "mlp.out": "mlp.dense_4h_to_h",
    },
    leftovers=re.compile(
        r"(gpt_neox\.)?(layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)"
        r"|rotary_emb\.inv_freq)"
    ),
)

# ------------------------------------------------------------------ relatives of LLAMA

_LLAMA = dict(LLAMA.inside)
GRANITE = replace(LLAMA, outputs={"embed_tokens": ""})  # multiplied behind the module
GEMMA2 = replace(LLAMA, heads_first=True, inside={
    **_LLAMA,
    "attn.after": "post_attention_layernorm",
    "mlp.norm": "pre_feedforward_layernorm",
    "mlp.after": "post_feedforward_layernorm",
})  # fmt: skip
GEMMA3 = replace(
    GEMMA2,
    prefix="model.language_model.",
    prefixes=("language_model.model.",),
    heads=("lm_head.weight", "language_model.lm_head.weight"),
    leftovers=re.compile(r"(model\.)?(vision_tower|multi_modal_projector)\..*"),
)
VAULTGEMMA = replace(LLAMA, inside={**_LLAMA, "mlp.norm": "pre_feedforward_layernorm"})
HUNYUAN = replace(LLAMA, heads_first=True, inside={
    **_LLAMA,
    "attn.q_norm": "self_attn.query_layernorm",
    "attn.k_norm": "self_attn.key_layernorm",
})  # fmt: skip
OLMO2 = replace(LLAMA, heads_first=True, inside={
    **{ours: theirs for ours, theirs in _LLAMA.items() if ours not in ("attn.norm", "mlp.norm")},
    "attn.after": "post_attention_layernorm",
    "mlp.after": "post_feedforward_layernorm",
})  # fmt: skip
PHI = replace(LLAMA, heads_first=True, outside={"final.norm": "final_layernorm"}, inside={
    **_LLAMA,
    "attn.q_norm": "self_attn.q_layernorm",
    "attn.k_norm": "self_attn.k_layernorm",
    "attn.out": "self_attn.dense",
    "mlp.hidden": "mlp.fc1",
    "mlp.out": "mlp.fc2",
})  # fmt: skip
_PACKED = {
    **_LLAMA,
    "mlp.gate": piece("mlp.gate_up_proj", Part(0, 2)),
    "mlp.hidden": piece("mlp.gate_up_proj", Part(1, 2)),
}
PHI3 = replace(LLAMA, inside={**_PACKED, "attn.qkv": "self_attn.qkv_proj"})
GLM = replace(LLAMA, inside=_PACKED)
GLM4 = replace(LLAMA, inside={
    **_PACKED,
    "attn.after": "post_self_attn_layernorm",
    "mlp.after": "post_mlp_layernorm",
})  # fmt: skip
COHERE = replace(LLAMA, inside={
    **_LLAMA,
    "attn.q_norm": piece("self_attn.q_norm", Flat()),
    "attn.k_norm": piece("self_attn.k_norm", Flat()),
})  # fmt: skip
STABLELM = replace(LLAMA, heads_first=True, inside={
    **_LLAMA,
    "attn.q_norm": piece("self_attn.q_layernorm.norms.{head}", Flat()),
    "attn.k_norm": piece("self_attn.k_layernorm.norms.{head}", Flat()),
}, outputs={
    "layers.L.self_attn.q_layernorm": "block.L.attn.q_norm",
    "layers.L.self_attn.k_layernorm": "block.L.attn.k_norm",
})  # fmt: skip
STARCODER2 = replace(LLAMA, inside={
    **_LLAMA,
    "mlp.hidden": "mlp.c_fc",
    "mlp.out": "mlp.c_proj",
})  # fmt: skip
PERSIMMON = replace(LLAMA, outside={"final.norm": "final_layernorm"}, inside={
    **_LLAMA,
    "attn.qkv": "self_attn.query_key_value",
    "attn.q_norm": "self_attn.q_layernorm",
    "attn.k_norm": "self_attn.k_layernorm",
    "attn.out": "self_attn.dense",
    "mlp.hidden": "mlp.dense_h_to_4h",
    "mlp.out": "mlp.dense_4h_to_h",
})  # fmt: skip
OPT = Names(
    prefix="model.decoder.",
    prefixes=("decoder.",),
    embedding="embed_tokens.weight",
    heads=("lm_head.weight",),
    outside={
        "embed.position": piece("embed_positions", Later(2)),
        "embed.projected": "project_in",
        "head.projected": "project_out",
        "final.norm": "final_layer_norm",
    },
    layer="layers.",
    inside={
        "attn.norm": "self_attn_layer_norm",
        "attn.q": "self_attn.q_proj",
        "attn.k": "self_attn.k_proj",
        "attn.v": "self_attn.v_proj",
        "attn.out": "self_attn.out_proj",
        "mlp.norm": "final_layer_norm",
        "mlp.hidden": "fc1",
        "mlp.out": "fc2",
    },
)

BIOGPT = replace(
    OPT,
    prefix="biogpt.",
    prefixes=(),
    heads=("output_projection.weight",),
    outside={"embed.position": piece("embed_positions", Later(2)), "final.norm": "layer_norm"},
)

# ------------------------------------------------------------------ relatives of GPT-2

_MASKS = r"(transformer\.)?h\.\d+\.attn(\.attention)?\.(bias|masked_bias|embed_positions)"
GPTJ = replace(
    GPT2,
    outside={"final.norm": "ln_f"},
    inside={
        "attn.norm": "ln_1",
        "attn.q": "attn.q_proj",
        "attn.k": "attn.k_proj",
        "attn.v": "attn.v_proj",
        "attn.out": "attn.out_proj",
        "mlp.hidden": "mlp.fc_in",
        "mlp.out": "mlp.fc_out",
    },
    leftovers=re.compile(_MASKS),
)
CODEGEN = replace(
    GPTJ,
    leftovers=re.compile(_MASKS + r"|(transformer\.)?h\.\d+\.attn\.causal_mask"),
    inside={
        **GPTJ.inside,
        **{f"attn.{which}": piece("attn.qkv_proj", Sharded(which, 4)) for which in "qkv"},
    },
)
GPT_NEO = replace(GPT2, leftovers=re.compile(_MASKS), outputs={
    "h.L.attn": "block.L.attn.out",
}, inside={
    **GPT2.inside,
    "attn.q": "attn.attention.q_proj",
    "attn.k": "attn.attention.k_proj",
    "attn.v": "attn.attention.v_proj",
    "attn.out": "attn.attention.out_proj",
})  # fmt: skip
OPENAI_GPT = replace(
    GPT2,
    embedding="tokens_embed.weight",
    outside={"embed.position": "positions_embed"},
    leftovers=re.compile(r"(transformer\.)?(position_ids|h\.\d+\.attn\.bias)"),
)

# ------------------------------------------------------------------ with slopes

BLOOM = Names(
    prefix="transformer.",
    embedding="word_embeddings.weight",
    heads=("lm_head.weight",),
    outside={"embed.norm": "word_embeddings_layernorm", "final.norm": "ln_f"},
    layer="h.",
    inside={
        "attn.norm": "input_layernorm",
        "attn.qkv": "self_attention.query_key_value",
        "attn.out": "self_attention.dense",
        "mlp.norm": "post_attention_layernorm",
        "mlp.hidden": "mlp.dense_h_to_4h",
        "mlp.out": "mlp.dense_4h_to_h",
    },
    outputs={"h.L.self_attention": "block.L.attn.add", "h.L.mlp": "stream.L+1"},  # they add
)
_BY_KEY_HEADS = "self_attention.query_key_value"
FALCON = replace(BLOOM, outside={"final.norm": "ln_f"}, outputs={}, inside={
    **BLOOM.inside,
    "attn.norm": ("input_layernorm", "ln_attn"),
    "mlp.norm": ("post_attention_layernorm", "ln_mlp"),
    "attn.q": piece(_BY_KEY_HEADS, Grouped("q")),
    "attn.k": piece(_BY_KEY_HEADS, Grouped("k")),
    "attn.v": piece(_BY_KEY_HEADS, Grouped("v")),
}, leftovers=re.compile(
    r"(transformer\.)?h\.\d+\.self_attention\.rotary_emb\.inv_freq"
))  # fmt: skip
MPT = Names(
    prefix="transformer.",
    embedding="wte.weight",
    heads=("lm_head.weight",),
    outside={"final.norm": "norm_f"},
    layer="blocks.",
    inside={
        "attn.norm": "norm_1",
        "attn.qkv": "attn.Wqkv",
        "attn.out": "attn.out_proj",
        "mlp.norm": "norm_2",
        "mlp.hidden": "ffn.up_proj",
        "mlp.out": "ffn.down_proj",
    },
    outputs={"blocks.L.ffn": "stream.L+1"},  # it adds
)

DECODERS: Mapping[str, Names] = {
    "gpt2": GPT2, "llama": LLAMA, "gpt_neox": GPT_NEOX, "granite": GRANITE,
    "gemma2": GEMMA2, "gemma3": GEMMA3, "olmo2": OLMO2, "phi": PHI, "phi3": PHI3, "glm": GLM,
    "glm4": GLM4, "cohere": COHERE, "stablelm": STABLELM, "starcoder2": STARCODER2,
    "persimmon": PERSIMMON, "opt": OPT, "gptj": GPTJ, "gpt_neo": GPT_NEO,
    "codegen": CODEGEN, "biogpt": BIOGPT, "vaultgemma": VAULTGEMMA, "hunyuan": HUNYUAN,
    "openai-gpt": OPENAI_GPT, "bloom": BLOOM, "falcon": FALCON, "mpt": MPT,
}  # fmt: skip
