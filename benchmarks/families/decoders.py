"""The configs of decoders without experts."""

from __future__ import annotations

from typing import Any

from benchmarks.families.registry import family

Settings = dict[str, Any]
SIZES: Settings = {
    "vocab_size": 17, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 15, "max_position_embeddings": 40,
    "pad_token_id": None, "bos_token_id": None, "eos_token_id": 3,
}  # fmt: skip
ODD: Settings = {"hidden_size": 21, "num_attention_heads": 3, "num_key_value_heads": 1,
                 "head_dim": 10, "vocab_size": 19}  # fmt: skip
YARN: Settings = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
                  "rope_theta": 10000.0}  # fmt: skip
LLAMA3: Settings = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 20,
}  # fmt: skip
LINEAR: Settings = {"rope_type": "linear", "factor": 2.5, "rope_theta": 5000.0}
DYNAMIC: Settings = {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 10000.0}
GROUPED: Settings = {"num_key_value_heads": 4}
ONE: Settings = {"num_key_value_heads": 1}


def rope(table: Settings) -> Settings:
    return {"rope_parameters": table}


family(
    "llama", SIZES,
    plain={}, odd=ODD, tied={"tie_word_embeddings": True},
    biased={"attention_bias": True, "mlp_bias": True, "hidden_act": "gelu"},
    yarn=rope(YARN), yarn_not_cut=rope({**YARN, "truncate": False, "mscale": 0.8,
                                        "mscale_all_dim": 1.3}),
    llama3=rope(LLAMA3), linear=rope(LINEAR),
    dynamic={**rope(DYNAMIC), "max_position_embeddings": 12, "length": 12},
    yarn_factor=rope({**YARN, "attention_factor": 0.9, "beta_fast": 8, "beta_slow": 2}),
)  # fmt: skip
family(
    "mistral", SIZES,
    plain={}, window={"sliding_window": 3}, odd={**ODD, "sliding_window": None},
    tied={"tie_word_embeddings": True, "sliding_window": 1}, grouped=GROUPED, yarn=rope(YARN),
)  # fmt: skip
family(
    "ministral", {**SIZES, "head_dim": 8},
    plain={}, window={"sliding_window": 3}, odd={**ODD, "layer_types": ["full_attention"] * 3},
    kinds={"sliding_window": 2,
           "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    tied={"tie_word_embeddings": True}, linear=rope(LINEAR),
)  # fmt: skip
family(
    "qwen2", SIZES,
    plain={}, tied={"tie_word_embeddings": True}, one=ONE,
    windows={"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    kinds={"use_sliding_window": True, "sliding_window": 3,
           "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    yarn=rope(YARN),
)  # fmt: skip
family(
    "qwen3", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD, tied={"tie_word_embeddings": True}, biased={"attention_bias": True},
    windows={"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    yarn=rope(YARN),
)  # fmt: skip
family(
    "granite", SIZES,
    plain={}, multiplied={"embedding_multiplier": 12.0, "logits_scaling": 8.0,
                          "residual_multiplier": 0.22, "attention_multiplier": 0.015625},
    biased={"attention_bias": True, "mlp_bias": True, "attention_multiplier": 0.3},
    tied={"tie_word_embeddings": True, "embedding_multiplier": 3}, one={**ONE, **rope(LLAMA3)},
    divided={"logits_scaling": 3.0, "residual_multiplier": 2.5}, yarn=rope(YARN),
)  # fmt: skip
family(
    "smollm3", SIZES,
    plain={}, interval={"no_rope_layer_interval": 2}, untied={"tie_word_embeddings": False},
    layers={"no_rope_layers": [0, 1, 1], "use_sliding_window": True, "sliding_window": 3},
    kinds={"sliding_window": 3, "use_sliding_window": True,
           "layer_types": ["full_attention", "sliding_attention", "full_attention"]},
    biased={"attention_bias": True, "mlp_bias": True}, yarn=rope(YARN),
)  # fmt: skip
family(
    "helium", {**SIZES, "head_dim": 6},
    plain={}, odd={**ODD, "hidden_size": 30}, tied={"tie_word_embeddings": True},
    biased={"attention_bias": True, "mlp_bias": True}, linear=rope(LINEAR), llama3=rope(LLAMA3),
)  # fmt: skip
family(
    "seed_oss", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD, out_biased={"attention_out_bias": True, "mlp_bias": True},
    unbiased={"attention_bias": False}, tied={"tie_word_embeddings": True},
    no_width={"head_dim": None}, yarn=rope(YARN),
)  # fmt: skip
family(
    "arcee", SIZES,
    plain={}, odd={**ODD, "hidden_size": 24}, biased={"attention_bias": True, "mlp_bias": True},
    tied={"tie_word_embeddings": True}, silu={"hidden_act": "silu"}, yarn=rope(YARN),
)  # fmt: skip
WINDOWS: Settings = {"sliding_window": 3, "num_hidden_layers": 5}
family(
    "cwm", {**SIZES, **WINDOWS, "head_dim": 8, "bos_token_id": 1},
    plain={}, odd={**ODD, "hidden_size": 24}, biased={"mlp_bias": True}, yarn=rope(YARN),
    kinds={"layer_types": ["full_attention", "sliding_attention"] * 2 + ["full_attention"]},
    tied={"tie_word_embeddings": True}, llama3=rope(LLAMA3),
)  # fmt: skip
family(
    "ernie4_5", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD, biased={"use_bias": True}, untied={"tie_word_embeddings": False},
    no_width={"head_dim": None}, yarn=rope(YARN), gelu={"hidden_act": "gelu"},
)  # fmt: skip
NTK: Settings = {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 50.0, "factor": 1.0}
family(
    "hunyuan_v1_dense", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD, biased={"attention_bias": True}, tied={"tie_word_embeddings": True},
    alpha=rope({**NTK, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0}), linear=rope(LINEAR),
    dynamic={**rope(DYNAMIC), "max_position_embeddings": 12, "length": 12},
)  # fmt: skip
family(
    "jais2", SIZES,
    plain={}, odd={**ODD, "hidden_size": 24}, unbiased={"attention_bias": False,
                                                       "mlp_bias": False},
    tied={"tie_word_embeddings": True}, silu={"hidden_act": "silu", "layer_norm_eps": 0.01},
    yarn=rope(YARN),
)  # fmt: skip
family(
    "gpt_neox", {key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
    plain={"hidden_size": 64}, serial={"use_parallel_residual": False, "rotary_pct": 1.0},
    unbiased={"attention_bias": False, "rotary_pct": 0.67, "tie_word_embeddings": True},
    relu={"hidden_act": "relu", "rotary_pct": 0.0}, linear=rope({**LINEAR,
                                                                 "partial_rotary_factor": 1.0}),
    base={"rotary_pct": 1.0, "rotary_emb_base": 500, "layer_norm_eps": 0.01},
)  # fmt: skip
GPT2: Settings = {
    "vocab_size": 17, "n_positions": 14, "n_embd": 12, "n_layer": 3, "n_head": 3,
    "bos_token_id": None, "eos_token_id": 3, "pad_token_id": None,
}  # fmt: skip
family(
    "gpt2", GPT2,
    plain={}, odd={"n_embd": 15, "n_inner": 7}, untied={"tie_word_embeddings": False},
    relu={"activation_function": "relu", "scale_attn_weights": False},
    layers={"scale_attn_by_inverse_layer_idx": True, "activation_function": "quick_gelu"},
    eps={"layer_norm_epsilon": 0.01, "activation_function": "gelu_fast"},
)  # fmt: skip
family(
    "gemma", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD, untied={"tie_word_embeddings": False}, biased={"attention_bias": True},
    gelu={"hidden_act": "gelu", "rms_norm_eps": 0.01}, linear=rope(LINEAR), silu={"hidden_act":
                                                                                 "silu"},
)  # fmt: skip
NO_CAP = {"unlike": {"sdpa": "sdpa has no soft cap"}}
family(
    "gemma2", {**SIZES, "head_dim": 8, "query_pre_attn_scalar": 13, "sliding_window": 3, **NO_CAP},
    plain={}, odd={**ODD, "hidden_size": 24}, uncapped={"attn_logit_softcapping": None,
                                  "final_logit_softcapping": None, "unlike": {}},
    capped={"attn_logit_softcapping": 0.7, "final_logit_softcapping": 1.5},
    kinds={"layer_types": ["full_attention", "full_attention", "sliding_attention"]},
    untied={"tie_word_embeddings": False, "attention_bias": True}, yarn=rope(YARN),
)  # fmt: skip
family(
    "vaultgemma", {**SIZES, "head_dim": 8, "query_pre_attn_scalar": 13, "sliding_window": 3},
    plain={}, odd={**ODD, "hidden_size": 24}, uncapped={"attn_logit_softcapping": None,
                                                       "final_logit_softcapping": None},
    capped={"attn_logit_softcapping": 0.7, "final_logit_softcapping": 1.5},
    kinds={"layer_types": ["full_attention", "full_attention", "sliding_attention"]},
    untied={"tie_word_embeddings": False, "attention_bias": True}, yarn=rope(YARN),
)  # fmt: skip
BOTH = {"sliding_attention": {"rope_type": "default", "rope_theta": 700.0}}
family(
    "gemma3_text", {**SIZES, "head_dim": 8, "query_pre_attn_scalar": 13, "sliding_window": 3},
    plain={"num_hidden_layers": 7}, odd={**ODD, "hidden_size": 24, "sliding_window_pattern": 2},
    ropes=rope({**BOTH, "full_attention": LINEAR}),
    scaled={"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 90000.0,
            "rope_local_base_freq": 300.0, "sliding_window_pattern": 3},
    kinds={"layer_types": ["full_attention", "full_attention", "sliding_attention"],
           **rope({**BOTH, "full_attention": YARN})},
    capped={"final_logit_softcapping": 1.5, "attn_logit_softcapping": 2.0},
    untied={"tie_word_embeddings": False, "attention_bias": True},
)  # fmt: skip
family(
    "olmo", SIZES,
    plain={}, clipped={"clip_qkv": 0.4}, tied={"tie_word_embeddings": True},
    biased={"attention_bias": True}, one=ONE, linear=rope(LINEAR), gelu={"hidden_act": "gelu"},
)  # fmt: skip
family(
    "olmo2", SIZES,
    plain={}, odd={"hidden_size": 18, "num_attention_heads": 3, "num_key_value_heads": 1},
    tied={"tie_word_embeddings": True}, biased={"attention_bias": True}, yarn=rope(YARN),
    eps={"rms_norm_eps": 0.01, **GROUPED},
)  # fmt: skip
family(
    "olmo3", {**SIZES, "num_hidden_layers": 5, "sliding_window": 3},
    plain={}, odd={"hidden_size": 18, "num_attention_heads": 3, "num_key_value_heads": 1},
    tied={"tie_word_embeddings": True}, biased={"attention_bias": True},
    ropes=rope({**BOTH, "full_attention": YARN}),
    kinds={"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]},
)  # fmt: skip
family(
    "exaone4", {**SIZES, "num_hidden_layers": 5, "sliding_window": 3},
    plain={}, no_window={"sliding_window": None, "layer_types": ["full_attention"] * 5},
    tied={"tie_word_embeddings": True}, pattern={"sliding_window_pattern": 2},
    kinds={"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]},
    odd={"hidden_size": 18, "num_attention_heads": 3, "num_key_value_heads": 1},
    llama3=rope(LLAMA3),
)  # fmt: skip
family(
    "cohere", SIZES,
    plain={}, normed={"use_qk_norm": True}, untied={"tie_word_embeddings": False},
    biased={"attention_bias": True, "logit_scale": 1.0}, one={**ONE, "use_qk_norm": True,
                                                              "logit_scale": 3.5},
    linear=rope(LINEAR), eps={"layer_norm_eps": 0.01, "hidden_act": "gelu"},
)  # fmt: skip
family(
    "cohere2", {**SIZES, "num_hidden_layers": 5, "sliding_window": 3},
    plain={}, pattern={"sliding_window_pattern": 2}, untied={"tie_word_embeddings": False},
    biased={"attention_bias": True, "logit_scale": 1.0}, one={**ONE, "logit_scale": 3.5},
    kinds={"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]},
)  # fmt: skip
family(
    "phi", SIZES,
    plain={"hidden_size": 32}, normed={"qk_layernorm": True, "partial_rotary_factor": 0.67},
    tied={"tie_word_embeddings": True, "partial_rotary_factor": 1.0},
    one={**ONE, "hidden_size": 48}, relu={"hidden_act": "relu", "hidden_size": 16},
    linear=rope({**LINEAR, "partial_rotary_factor": 0.34}),
)  # fmt: skip
LONG: Settings = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.5, 2.25],
                  "long_factor": [1.5, 2.5, 7.0]}  # fmt: skip
family(
    "phi3", {**SIZES, "original_max_position_embeddings": 40},
    plain={}, window={"sliding_window": 3}, tied={"tie_word_embeddings": True}, one=ONE,
    partial={"partial_rotary_factor": 0.67},
    short={**rope(LONG), "original_max_position_embeddings": 20},
    long={**rope(LONG), "original_max_position_embeddings": 6},
    factor=rope({**LONG, "attention_factor": 0.8, "factor": 2.0}),
)  # fmt: skip
family(
    "stablelm", {**SIZES, "hidden_size": 32},
    plain={}, normed={"qk_layernorm": True}, parallel={"use_parallel_residual": True},
    biased={"use_qkv_bias": True, "partial_rotary_factor": 0.5}, tied={"tie_word_embeddings": True,
                                                                      **GROUPED},
    all={"qk_layernorm": True, "use_parallel_residual": True, "use_qkv_bias": True,
         "partial_rotary_factor": 1.0, "layer_norm_eps": 0.01},
    linear=rope({**LINEAR, "partial_rotary_factor": 0.5}),
)  # fmt: skip
family(
    "starcoder2", SIZES,
    plain={}, window={"sliding_window": 3}, unbiased={"use_bias": False},
    untied={"tie_word_embeddings": False}, one={**ONE, "norm_epsilon": 0.01}, yarn=rope(YARN),
)  # fmt: skip
family(
    "glm", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD | {"partial_rotary_factor": 0.4}, unbiased={"attention_bias": False},
    tied={"tie_word_embeddings": True}, whole={"partial_rotary_factor": 1.0},
    linear=rope({**LINEAR, "partial_rotary_factor": 0.5}),
)  # fmt: skip
family(
    "glm4", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD | {"partial_rotary_factor": 0.4}, unbiased={"attention_bias": False},
    tied={"tie_word_embeddings": True}, whole={"partial_rotary_factor": 1.0},
    linear=rope({**LINEAR, "partial_rotary_factor": 0.5}),
)  # fmt: skip
family(
    "nemotron", {**SIZES, "head_dim": 8},
    plain={}, odd=ODD | {"partial_rotary_factor": 0.4}, tied={"tie_word_embeddings": True},
    biased={"attention_bias": True, "mlp_bias": True}, silu={"hidden_act": "silu"},
    linear=rope({**LINEAR, "partial_rotary_factor": 0.5}), eps={"norm_eps": 0.01},
)  # fmt: skip
family(
    "persimmon", {key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
    plain={"hidden_size": 32}, plainer={"hidden_size": 32, "qk_layernorm": False},
    tied={"tie_word_embeddings": True, "partial_rotary_factor": 1.0},
    gelu={"hidden_act": "gelu", "partial_rotary_factor": 0.67},
    linear=rope({**LINEAR, "partial_rotary_factor": 0.34}), eps={"layer_norm_eps": 0.01,
                                                                "partial_rotary_factor": 0.67},
)  # fmt: skip
OPT: Settings = {
    "vocab_size": 17, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3,
    "ffn_dim": 10, "max_position_embeddings": 14, "pad_token_id": 1, "bos_token_id": None,
    "eos_token_id": 3, "word_embed_proj_dim": 12,
}  # fmt: skip
family(
    "opt", OPT,
    plain={}, narrow={"word_embed_proj_dim": 7}, behind={"do_layer_norm_before": False},
    no_last={"_remove_final_layer_norm": True}, unbiased={"enable_bias": False},
    plain_norms={"layer_norm_elementwise_affine": False, "activation_function": "gelu"},
    untied={"tie_word_embeddings": False, "word_embed_proj_dim": 5},
)  # fmt: skip
family(
    "gptj", {**GPT2, "n_embd": 24, "rotary_dim": 4},
    plain={}, whole={"rotary_dim": 8}, tied={"tie_word_embeddings": True, "rotary_dim": 2},
    inner={"n_inner": 7}, relu={"activation_function": "relu"}, eps={"layer_norm_epsilon": 0.01},
)  # fmt: skip
family(
    "codegen", {**GPT2, "n_embd": 48, "n_head": 4, "rotary_dim": 4, "n_ctx": 64},
    plain={}, eight={"n_head": 8, "rotary_dim": 6}, tied={"tie_word_embeddings": True},
    inner={"n_inner": 7}, relu={"activation_function": "relu"}, eps={"layer_norm_epsilon": 0.01},
)  # fmt: skip
family(
    "biogpt", {**{key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
               "pad_token_id": 1},
    plain={}, unscaled={"scale_embedding": False}, untied={"tie_word_embeddings": False},
    relu={"hidden_act": "relu"}, odd={"hidden_size": 21, "num_attention_heads": 3},
    eps={"layer_norm_eps": 0.1, "hidden_act": "gelu_new"},
)  # fmt: skip
family(
    "gpt_neo",
    {"vocab_size": 17, "max_position_embeddings": 14, "hidden_size": 12, "num_layers": 3,
     "num_heads": 3, "window_size": 3, "attention_types": [[["global", "local", "local"], 1]],
     "bos_token_id": None, "eos_token_id": 3},
    plain={}, local={"attention_types": [[["local"], 3]], "window_size": 1},
    wide={"attention_types": [[["global"], 1], [["local", "global"], 1]]},
    untied={"tie_word_embeddings": False}, inner={"intermediate_size": 7},
    relu={"activation_function": "relu", "layer_norm_epsilon": 0.01},
)  # fmt: skip
family(
    "gpt_bigcode", GPT2,
    plain={}, every={"multi_query": False}, untied={"tie_word_embeddings": False},
    unscaled={"scale_attn_weights": False}, inner={"n_inner": 7, "activation_function": "gelu"},
    odd={"n_embd": 15, "n_head": 5, "multi_query": False, "layer_norm_epsilon": 0.01},
)  # fmt: skip
family(
    "openai-gpt", GPT2,
    plain={}, odd={"n_embd": 15}, relu={"afn": "relu"}, silu={"afn": "silu"},
    untied={"tie_word_embeddings": False}, eps={"layer_norm_epsilon": 0.01, "n_head": 4},
)  # fmt: skip
BLOOM: Settings = {
    "vocab_size": 17, "hidden_size": 12, "n_layer": 3, "n_head": 4, "bos_token_id": None,
    "eos_token_id": 3,
}  # fmt: skip
family(
    "bloom", BLOOM,
    plain={}, three={"n_head": 3}, onto={"apply_residual_connection_post_layernorm": True},
    untied={"tie_word_embeddings": False}, six={"n_head": 6, "layer_norm_epsilon": 0.01},
    one={"n_head": 1},
)  # fmt: skip
FALCON: Settings = {
    "vocab_size": 17, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": 40, "bos_token_id": None, "eos_token_id": 3,
}  # fmt: skip
ALIBI: Settings = {"alibi": True, "attention": "sdpa",
                   "unlike": {"eager": "the library's eager adds the slopes twice"}}  # fmt: skip
family(
    "falcon", FALCON,
    plain={}, new={"new_decoder_architecture": True, "num_kv_heads": 2},
    one_norm={"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1, "bias": True,
              "num_kv_heads": 2},
    rw={"multi_query": False, "parallel_attn": False, "bias": True, **ALIBI},
    parallel_alibi=ALIBI, serial={"parallel_attn": False, "ffn_hidden_size": 11},
    untied={"tie_word_embeddings": False, "multi_query": False, "activation": "relu"},
    linear=rope(LINEAR), three={"new_decoder_architecture": True, "num_attention_heads": 6,
                                "num_kv_heads": 3, **ALIBI},
)  # fmt: skip
MPT: Settings = {
    "vocab_size": 17, "d_model": 12, "n_layers": 3, "n_heads": 4, "max_seq_len": 20,
    "eos_token_id": 3,
}  # fmt: skip
family(
    "mpt", MPT,
    plain={}, three={"n_heads": 3}, clipped={"attn_config": {"clip_qkv": 0.4}},
    scaled={"attn_config": {"softmax_scale": 0.7}},
    untied={"tie_word_embeddings": False}, six={"n_heads": 6, "layer_norm_epsilon": 0.01},
)  # fmt: skip
