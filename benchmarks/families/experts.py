"""The configs of decoders with experts and latent attention."""

from __future__ import annotations

from benchmarks.families.decoders import LINEAR, LLAMA3, ODD, ONE, SIZES, YARN, Settings, rope
from benchmarks.families.registry import family

TIED: Settings = {"tie_word_embeddings": True}
SLIDING: Settings = {"use_sliding_window": True, "sliding_window": 3}
KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
MIXTRAL: Settings = {**SIZES, "num_local_experts": 5, "num_experts_per_tok": 2}
QWEN: Settings = {**SIZES, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 7}
QWEN2: Settings = {**QWEN, "shared_expert_intermediate_size": 11}
NO_GROUPS: Settings = {"n_group": 1, "topk_group": 1}
SIGMOID: Settings = {
    **SIZES, "n_routed_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 7,
    "n_shared_experts": 2, "n_group": 3, "topk_group": 2, "first_k_dense_replace": 1,
}  # fmt: skip
LATENT: Settings = {
    "num_key_value_heads": 4, "kv_lora_rank": 10, "q_lora_rank": 7, "qk_nope_head_dim": 5,
    "qk_rope_head_dim": 6, "v_head_dim": 3,
}  # fmt: skip
MSCALE: Settings = {**YARN, "mscale": 0.7, "mscale_all_dim": 1.2, "factor": 8.0}
GROUPED: Settings = {"topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 2}

family(
    "mixtral", MIXTRAL,
    plain={}, odd=ODD, tied=TIED, one_of_three={"num_local_experts": 3, "num_experts_per_tok": 1},
    all_chosen={"num_local_experts": 3, "num_experts_per_tok": 3, "hidden_act": "gelu"},
    window={"sliding_window": 3, "head_dim": 6, **rope(YARN)}, stacked={"stacked": True, **ONE},
)  # fmt: skip
family(
    "minimax_m2", {**MIXTRAL, "head_dim": 8},
    plain={}, odd=ODD, tied=TIED, one={**ONE, "num_experts_per_tok": 1},
    part=rope({"rope_type": "default", "rope_theta": 900.0, "partial_rotary_factor": 0.5}),
    yarn=rope(YARN), stacked={"stacked": True, "hidden_act": "gelu"},
)  # fmt: skip
family(
    "qwen2_moe", QWEN2,
    plain={}, normalised={"norm_topk_prob": True}, tied={**TIED, "qkv_bias": False},
    some_plain={"mlp_only_layers": [1]}, every_second={"decoder_sparse_step": 2},
    windows={**SLIDING, "max_window_layers": 2}, kinds={**SLIDING, "layer_types": KINDS},
    no_experts={"num_experts": 0}, stacked={"stacked": True, "mlp_only_layers": [0], **rope(YARN)},
)  # fmt: skip
family(
    "qwen3_moe", QWEN,
    plain={}, normalised={"norm_topk_prob": True, "head_dim": 10}, tied=TIED,
    biased={"attention_bias": True, "hidden_act": "relu"}, window=SLIDING,
    every_second={"decoder_sparse_step": 2, "mlp_only_layers": [2]}, odd=ODD,
    stacked={"stacked": True, "decoder_sparse_step": 2, **rope(LINEAR)},
)  # fmt: skip
family(
    "olmoe", {**SIZES, "num_experts": 6, "num_experts_per_tok": 3},
    plain={}, clipped={"clip_qkv": 0.6}, normalised={"norm_topk_prob": True}, tied=TIED,
    biased={"attention_bias": True, "hidden_act": "gelu_pytorch_tanh"},
    one={**ONE, **rope(LLAMA3)}, stacked={"stacked": True, "clip_qkv": 0.9, **rope(YARN)},
)  # fmt: skip
family(
    "granitemoe", {**SIZES, "num_local_experts": 5, "num_experts_per_tok": 2},
    plain={}, tied={**TIED, "embedding_multiplier": 3}, biased={"attention_bias": True},
    multiplied={"embedding_multiplier": 12.0, "logits_scaling": 8.0,
                "residual_multiplier": 0.22, "attention_multiplier": 0.015625},
    divided={"logits_scaling": 3.0, "residual_multiplier": 2.5, **rope(YARN)},
    stacked={"stacked": True, "attention_multiplier": 0.3, **ONE},
)  # fmt: skip
family(
    "glm4_moe", {**SIGMOID, "head_dim": 8},
    plain={}, no_groups=NO_GROUPS, normed={"use_qk_norm": True, "head_dim": 12},
    biased={"attention_bias": True, "norm_topk_prob": False}, tied={**TIED, "n_shared_experts": 1},
    scaled={"routed_scaling_factor": 1.7, "first_k_dense_replace": 0},
    stacked={"stacked": True, "first_k_dense_replace": 2, **rope({**YARN,
             "partial_rotary_factor": 0.5, "rope_theta": 900.0})},
)  # fmt: skip
family(
    "granitemoeshared", {**SIZES, "num_local_experts": 5, "num_experts_per_tok": 2,
                         "shared_intermediate_size": 11},
    plain={}, none={"shared_intermediate_size": 0}, tied=TIED, biased={"attention_bias": True},
    multiplied={"embedding_multiplier": 12.0, "logits_scaling": 8.0,
                "residual_multiplier": 0.22, "attention_multiplier": 0.3},
    stacked={"stacked": True, **ONE, **rope(LLAMA3)},
)  # fmt: skip
family(
    "dots1", SIGMOID,
    plain={}, normalised={"norm_topk_prob": True}, tied={**TIED, **NO_GROUPS},
    biased={"attention_bias": True, "n_shared_experts": 1}, odd={**ODD, **rope(YARN)},
    windows={"sliding_window": 3, "max_window_layers": 1}, stacked={"stacked": True,
             "sliding_window": 2, "layer_types": KINDS, "first_k_dense_replace": 2},
)  # fmt: skip
family(
    "gpt_oss", {**SIZES, "num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 8,
                "sliding_window": 3},
    plain={}, full={"layer_types": ["full_attention"] * 3}, odd=ODD, tied=TIED,
    kinds={"layer_types": KINDS[1:] + KINDS[:1], "sliding_window": 2},
    unbiased={"attention_bias": False, **rope(YARN)},
    limited={"swiglu_limit": 0.4, "num_experts_per_tok": 4},
    plain_rope=rope({"rope_type": "default"}),
)  # fmt: skip
family(
    "deepseek_v2", {**SIGMOID, **LATENT, "qk_nope_head_dim": 4},  # even, for complex numbers
    plain={}, groups={**GROUPED, "routed_scaling_factor": 2.5},
    whole_queries={"q_lora_rank": None, "first_k_dense_replace": 0}, tied=TIED,
    biased={"attention_bias": True, "mlp_bias": True, "n_shared_experts": 1},
    yarn=rope(MSCALE), stacked={"stacked": True, **GROUPED, **rope(YARN)},
)  # fmt: skip
family(
    "deepseek_v3", {**SIGMOID, **LATENT},
    plain={}, no_groups=NO_GROUPS, whole_queries={"q_lora_rank": None, "kv_lora_rank": 9},
    halves={"rope_interleave": False}, not_normalised={"norm_topk_prob": False, **TIED},
    biased={"attention_bias": True, "routed_scaling_factor": 1.0}, yarn=rope(MSCALE),
    stacked={"stacked": True, "first_k_dense_replace": 0, **rope(YARN)},
)  # fmt: skip
family(
    "glm4_moe_lite", {**SIGMOID, **LATENT},
    plain={}, kinds={"mlp_layer_types": ["sparse", "dense", "sparse"]},
    whole_queries={"q_lora_rank": None}, halves={"rope_interleave": False, **TIED},
    biased={"attention_bias": True, "routed_scaling_factor": 1.0}, yarn=rope(MSCALE),
    stacked={"stacked": True, "norm_topk_prob": False, **NO_GROUPS},
)  # fmt: skip
