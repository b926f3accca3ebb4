"""The decoders with experts: the reader of each model_type."""

from __future__ import annotations

from byhand.models.huggingface import deepseek, gpt_oss, mixtures
from byhand.models.huggingface.family import Family

EXPERTS: dict[str, Family] = {
    "mixtral": Family("mixtral", mixtures.read_mixtral),
    "qwen2_moe": Family("qwen_moe", mixtures.read_qwen2_moe),
    "qwen3_moe": Family("qwen_moe", mixtures.read_qwen3_moe),
    "olmoe": Family("qwen_moe", mixtures.read_olmoe),
    "granitemoe": Family("granitemoe", mixtures.read_granitemoe),
    "granitemoeshared": Family("granitemoe", mixtures.read_granitemoe),
    "dots1": Family("glm_moe", mixtures.read_dots1),
    "glm4_moe_lite": Family("deepseek", deepseek.read_glm4_lite),
    "glm4_moe": Family("glm_moe", mixtures.read_glm4_moe),
    "minimax_m2": Family("minimax_m2", mixtures.read_minimax_m2),
    "gpt_oss": Family("gpt_oss", gpt_oss.read),
    "deepseek_v2": Family("deepseek", deepseek.read_v2),
    "deepseek_v3": Family("deepseek", deepseek.read_v3),
}
