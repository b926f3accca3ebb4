"""The names of modules in the decoders without experts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from byhand.names.modules import Names

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

DECODERS: Mapping[str, Names] = {"gpt2": GPT2, "llama": LLAMA, "gpt_neox": GPT_NEOX}
