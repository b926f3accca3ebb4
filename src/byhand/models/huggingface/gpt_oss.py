"""gpt_oss: sinks, windows in every second block, and experts with biases and a limited SwiGLU."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.config import LONGEST_CONTEXT, Config
from byhand.models.huggingface.mixtures import SMALL, Body, biased, windows_of
from byhand.models.huggingface.rope import Keys
from byhand.models.huggingface.routers import plain_mlp, with_experts
from byhand.spec import AttentionSpec, MlpSpec, ModelSpec

ALPHA, LIMIT = Fraction(1702, 1000), Fraction(7)
ROPE = Keys(base=Fraction(150_000), context=131_072)
YARN = {
    "rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip  # where the config has none


def read(config: Config, name: str) -> ModelSpec:
    """The spec of a gpt-oss config."""
    if config.within("rope_parameters") is None and config.within("rope_scaling") is None:
        said, config = config, Config(config.path, {**config.table, "rope_parameters": YARN})
        config.asked = said.asked
    body = Body.of(config, kv_heads=8, eps=SMALL, rope=ROPE, head_dim=True, d_head=64)
    bias = config.flag("attention_bias", True)
    attention = replace(biased(body.attention, bias, bias), sinks=True)
    window = config.whole_or_none("sliding_window", 128, most=LONGEST_CONTEXT)
    windows = windows_of(config, [layer % 2 == 0 for layer in range(body.layers)], window)
    mlp = _experts(config)

    def layer_of(layer: int) -> tuple[AttentionSpec, MlpSpec]:
        return replace(attention, window=windows[layer]), mlp

    return body.spec(config, name, 131_072, layer_of)


def _experts(config: Config) -> MlpSpec:
    """gate·sigmoid(alpha·gate) · (hidden + 1), both limited before."""
    config.asked.update(("experts_per_token", "initial_context_length"))  # the same for all of them
    if config.number("swiglu_alpha", ALPHA) != ALPHA:
        raise config.refuse("swiglu_alpha", _("1.702, or no such key"))
    limit = config.number("swiglu_limit", LIMIT)
    if limit <= 0:
        raise config.refuse("swiglu_limit", _("a number above 0"))
    mlp = replace(
        plain_mlp(config, bias=True),
        activation="quick_gelu",
        limit=limit,
        hidden_plus=Fraction(1),
    )
    names = ("num_local_experts", "num_experts")
    return with_experts(config, mlp, names, (128, 4), router_bias=True)
