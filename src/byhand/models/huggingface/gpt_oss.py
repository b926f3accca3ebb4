"""gpt_oss: sinks, windows in every second block, and experts with biases and a limited SwiGLU."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.common import SMALL, Common
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.rope import rope_table
from byhand.models.huggingface.routers import with_experts
from byhand.spec import BlockSpec, MlpSpec, ModelSpec

ALPHA, LIMIT = Fraction(1702, 1000), Fraction(7)
YARN = {
    "rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip  # where the config has none


def read(config: Config, name: str) -> ModelSpec:
    """The spec of a gpt-oss config."""
    body = Common(config, context=131_072, kv_heads=8, head_dim=64, null_width=True)
    norm, bias = body.rmsnorm(SMALL), config.flag("attention_bias", True)
    given = rope_table(config)
    table = given if given.table else Config(config.path, YARN)
    rope = body.rope(table=table, base=Fraction(150_000))
    attention = body.attention(bias=bias, out_bias=bias, rotary=rope, sinks=True)
    windows = body.windows([layer % 2 == 0 for layer in range(body.layers)], 128)
    mlp = _experts(config, body.mlp("silu", bias=True))
    blocks = [BlockSpec(replace(attention, window=each), mlp, norm, norm) for each in windows]
    return body.spec(name, blocks, norm)


def _experts(config: Config, mlp: MlpSpec) -> MlpSpec:
    """gate·sigmoid(alpha·gate) · (hidden + 1), both limited before."""
    config.asked.update(("experts_per_token", "initial_context_length"))  # the same for all of them
    if config.number("swiglu_alpha", ALPHA) != ALPHA:
        raise config.refuse("swiglu_alpha", _("1.702, or no such key"))
    most = config.number("swiglu_limit", LIMIT)
    if most <= 0:
        raise config.refuse("swiglu_limit", _("a number above 0"))
    mlp = replace(mlp, activation="quick_gelu", limit=most, hidden_plus=Fraction(1))
    names = ("num_local_experts", "num_experts")
    return with_experts(config, mlp, names, (128, 4), router_bias=True)
