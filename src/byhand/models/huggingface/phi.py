"""phi, phi3, stablelm, starcoder2, glm, nemotron, persimmon: partial RoPE, packed matrices."""

from __future__ import annotations

from fractions import Fraction

from byhand.models.huggingface.common import SMALL, Common
from byhand.models.huggingface.config import LONGEST_CONTEXT, Config
from byhand.spec import NO_NORM, BlockSpec, ModelSpec, NormSpec

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def read_phi(config: Config, name: str) -> ModelSpec:
    """The spec of a Phi config: attention and MLP read one LayerNorm; the head has a bias."""
    common = Common(config, fixed_width=True)
    norm = common.layernorm()
    heads = norm if config.flag("qk_layernorm", False) else NO_NORM
    attention = common.attention(
        bias=True, out_bias=True, rotary=common.rope(share=HALF), q_norm=heads, k_norm=heads
    )
    mlp = common.mlp("gelu_new", gated=False, bias=True)
    block = BlockSpec(attention, mlp, norm, parallel=True, one_norm=True)
    return common.spec(name, [block] * common.layers, norm, head_bias=True)


def read_phi3(config: Config, name: str) -> ModelSpec:
    """The spec of a Phi 3 config: q, k and v packed, RoPE as such or LongRoPE."""
    common = Common(config, context=4096, fixed_width=True)
    config.whole("original_max_position_embeddings", 4096, most=LONGEST_CONTEXT)
    norm = common.rmsnorm(SMALL)
    rope = common.rope(share=Fraction(1), older=(("su", "longrope"), ("yarn", "longrope")),
                       first_length=4096, kinds=("default", "longrope"))  # fmt: skip
    attention = common.attention(rotary=rope, packed="concatenated", window=common.window(None))
    block = BlockSpec(attention, common.mlp("silu"), norm, norm)
    return common.spec(name, [block] * common.layers, norm)


def read_stablelm(config: Config, name: str) -> ModelSpec:
    """The spec of a StableLM config: LayerNorms, serial or with one norm for both sublayers."""
    common = Common(config, context=4096, kv_heads=32, fixed_width=True)
    norm = common.layernorm()
    heads = NO_NORM
    if config.flag("qk_layernorm", False):
        heads = common.layernorm(bias=False)
    attention = common.attention(
        bias=config.flag("use_qkv_bias", False),
        rotary=common.rope(share=QUARTER),
        q_norm=heads,
        k_norm=heads,
        normed="each",
    )
    parallel = config.flag("use_parallel_residual", False)
    second = NO_NORM if parallel else norm
    mlp = common.mlp("silu")
    block = BlockSpec(attention, mlp, norm, second, parallel=parallel, one_norm=parallel)
    return common.spec(name, [block] * common.layers, norm)


def read_starcoder2(config: Config, name: str) -> ModelSpec:
    """The spec of a StarCoder 2 config: LayerNorms, biases, an MLP without a gate."""
    common = Common(config, context=4096, kv_heads=2)
    norm = common.layernorm(key="norm_epsilon")
    bias = config.flag("use_bias", True)
    attention = common.attention(
        bias=bias, out_bias=bias, rotary=common.rope(), window=common.window(None)
    )
    block = BlockSpec(
        attention, common.mlp("gelu_pytorch_tanh", gated=False, bias=bias), norm, norm
    )
    return common.spec(name, [block] * common.layers, norm, tied=True)


def read_glm(config: Config, name: str) -> ModelSpec:
    """The spec of a GLM config: half of each head turns, neighbours in pairs."""
    return _glm(config, name, sandwich=False)


def read_glm4(config: Config, name: str) -> ModelSpec:
    """The spec of a GLM 4 config: as GLM, with norms behind the sublayers too."""
    return _glm(config, name, sandwich=True)


def _glm(config: Config, name: str, *, sandwich: bool) -> ModelSpec:
    common = Common(config, context=131_072, kv_heads=2, head_dim=128)
    norm = common.rmsnorm(Fraction(15625, 10**11))
    after = norm if sandwich else NO_NORM
    attention = common.attention(
        bias=config.flag("attention_bias", True),
        rotary=common.rope(share=HALF, pairing="interleaved"),
    )
    mlp = common.mlp("silu")
    block = BlockSpec(attention, mlp, norm, norm, attn_after=after, mlp_after=after)
    return common.spec(name, [block] * common.layers, norm)


def read_nemotron(config: Config, name: str) -> ModelSpec:
    """The spec of a Nemotron config: LayerNorms with gains 1 + w, relu² without a gate."""
    common = Common(config, context=4096)
    norm = common.layernorm(key="norm_eps", plus_one=True)
    bias = config.flag("attention_bias", False)
    attention = common.attention(bias=bias, out_bias=bias, rotary=common.rope(share=HALF))
    mlp = common.mlp("relu2", gated=False, bias=config.flag("mlp_bias", False))
    return common.spec(name, [BlockSpec(attention, mlp, norm, norm)] * common.layers, norm)


def read_jais2(config: Config, name: str) -> ModelSpec:
    """The spec of a Jais 2 config: LayerNorms, relu² without a gate, biases."""
    common = Common(config, context=8192)
    norm, bias = common.layernorm(), config.flag("attention_bias", True)
    attention = common.attention(bias=bias, out_bias=bias, rotary=common.rope())
    mlp = common.mlp("relu2", gated=False, bias=config.flag("mlp_bias", True))
    return common.spec(name, [BlockSpec(attention, mlp, norm, norm)] * common.layers, norm)


def read_persimmon(config: Config, name: str) -> ModelSpec:
    """The spec of a Persimmon config: q, k and v packed by head and normalised, relu²."""
    common = Common(config, context=16_384, fixed_width=True)
    norm = common.layernorm()
    heads: NormSpec = norm if config.flag("qk_layernorm", True) else NO_NORM
    attention = common.attention(
        bias=True,
        out_bias=True,
        rotary=common.rope(share=HALF),
        q_norm=heads,
        k_norm=heads,
        packed="per_head",
    )
    mlp = common.mlp("relu2", gated=False, bias=True)
    return common.spec(name, [BlockSpec(attention, mlp, norm, norm)] * common.layers, norm)
