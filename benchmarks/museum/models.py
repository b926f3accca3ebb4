"""Small models that the bugs of the museum can happen in: shapes of well-known families.

Gains are not 1, biases are not 0, heads share keys, and the width of a head is not d_model / heads:
what real models have, and what hides or shows a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from benchmarks.museum import packing
from byhand.expression import Call, Number, Quotient
from byhand.model import Model
from byhand.parameters import Parameter, parameters
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

LAYERS, LENGTH, VOCABULARY, CONTEXT = 2, 12, 61, 512
WINDOW = 5
OUTLIER = 300.0
EXPERTS, CHOSEN = 6, 2
YARN, YARN_SCALE = "1.3466", "1.5896"  # 0.1·ln 32 + 1, and (0.0707·ln 40 + 1)²
EPS = Fraction(1, 100_000)
GAIN, BIAS, EMBEDDING = 0.3, 0.2, 0.5  # how far gains are from 1, biases and embeddings from 0
SCALED_FROM, FACTOR, LOW, HIGH = 32, 8.0, 1.0, 4.0  # Llama 3.1's rope_scaling, for short texts


def _llama(name: str, *, layers: int = LAYERS, **changes: Any) -> ModelSpec:
    """As Llama 3: grouped queries, RoPE on halves, RMSNorm, a gated MLP, an untied head."""
    norm = NormSpec("rmsnorm", EPS, bias=False)
    attention = AttentionSpec(
        6, 16, 2, over_root(16), rotary=RotarySpec(16, Fraction(500_000), "half")
    )
    mlp = MlpSpec(128, changes.pop("activation", "silu"), gated=True)
    blocks = (BlockSpec(replace(attention, **changes), mlp, norm, norm),) * layers
    return ModelSpec(
        name, VOCABULARY, 64, CONTEXT, blocks, final_norm=norm, tied=False, layout="out_in"
    )


def llama() -> ModelSpec:
    """Llama 3 itself."""
    return _llama("llama")


def llama_long() -> ModelSpec:
    """One block of Llama, for a text of hundreds of tokens."""
    return _llama("llama_long", layers=1)


def outliers() -> ModelSpec:
    """Llama with one channel of the residual stream far larger than the rest."""
    return _llama("outliers")


def llama31() -> ModelSpec:
    """As Llama 3.1: the frequencies of RoPE are scaled by their wavelength."""
    return _llama("llama31", rotary=RotarySpec(16, Fraction(500_000), "half", given=True))


def interleaved() -> ModelSpec:
    """As Llama before its conversion: RoPE turns neighbours."""
    return _llama("interleaved", rotary=RotarySpec(16, Fraction(10_000), "interleaved"))


def mistral() -> ModelSpec:
    """As Mistral: a query sees itself and the few keys before it."""
    return _llama("mistral", window=WINDOW)


def glm() -> ModelSpec:
    """As GLM-4: half of each head is turned."""
    return _llama("glm", rotary=RotarySpec(8, Fraction(10_000), "half"))


def qwen2() -> ModelSpec:
    """As Qwen 2: biases on q, k and v; the head is tied to the embedding."""
    spec = _llama("qwen2", q_bias=True, k_bias=True, v_bias=True)
    return replace(spec, tied=True)


def qwen3() -> ModelSpec:
    """As Qwen 3: q and k of each head are normalised."""
    norm = NormSpec("rmsnorm", EPS, bias=False)
    return _llama("qwen3", q_norm=norm, k_norm=norm)


def gemma() -> ModelSpec:
    """As Gemma: GELU by tanh in the gate, scaled embeddings, a tied head."""
    spec = _llama(
        "gemma", activation="gelu_tanh", heads=4, d_head=24, scale=over_root(24),
        rotary=RotarySpec(24),
    )  # fmt: skip
    return replace(spec, tied=True, embed_scale=Call("sqrt", Number(Fraction(spec.d_model))))


def mpt() -> ModelSpec:
    """As MPT: slopes instead of positions, and a number of heads that is no power of two."""
    return _llama("mpt", rotary=None, alibi=True)


def deepseek() -> ModelSpec:
    """As DeepSeek V2: scores are scaled by YaRN's factor, squared, over the root of the width."""
    return _llama("deepseek", scale=Quotient(Number(Fraction(YARN_SCALE)), Number(Fraction(4))))


def yarn() -> ModelSpec:
    """As gpt-oss and others with YaRN: what RoPE turns is scaled as well."""
    rotary = RotarySpec(16, Fraction(150_000), "half", magnitude=Number(Fraction(YARN)))
    return _llama("yarn", rotary=rotary)


def gpt_oss() -> ModelSpec:
    """As gpt-oss: each head has a sink; the router and the experts have biases."""
    return _with_experts("gpt_oss", biased=True, sinks=True)


def mixtral() -> ModelSpec:
    """As Mixtral: two of the experts answer, and their shares are 1 together."""
    return _with_experts("mixtral")


def _with_experts(
    name: str, *, normalised: bool = True, biased: bool = False, **changes: Any
) -> ModelSpec:
    spec = _llama(name, **changes)
    mlp = MlpSpec(
        32, "silu", gated=True, experts=EXPERTS, chosen=CHOSEN, normalised=normalised,
        router_bias=biased, gate_bias=biased, hidden_bias=biased, out_bias=biased,
    )  # fmt: skip
    return replace(spec, blocks=tuple(replace(block, mlp=mlp) for block in spec.blocks))


def olmoe() -> ModelSpec:
    """As OLMoE: the shares of the chosen experts are those among all experts."""
    return _with_experts("olmoe", normalised=False)


def gpt2() -> ModelSpec:
    """As GPT-2: learned positions, layernorm, packed q, k, v, GELU by tanh, a tied head."""
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        4, 16, 4, over_root(16), q_bias=True, k_bias=True, v_bias=True, packed="concatenated",
        out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(128, "gelu_tanh", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm),) * LAYERS
    return ModelSpec("gpt2", VOCABULARY, 64, CONTEXT, blocks, "learned", final_norm=norm)


def gpt_neox() -> ModelSpec:
    """As Pythia: attention and MLP in parallel, RoPE on a quarter of each head, q, k, v packed
    head by head.  The head has a bias, as Phi's has."""
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        4, 16, 4, over_root(16), rotary=RotarySpec(4), q_bias=True, k_bias=True, v_bias=True,
        packed="per_head", out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(128, "gelu", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm, parallel=True),) * LAYERS
    return ModelSpec(
        "gpt_neox", VOCABULARY, 64, CONTEXT, blocks, final_norm=norm, tied=False, head_bias=True,
        layout="out_in",
    )  # fmt: skip


def redpajama() -> ModelSpec:
    """As RedPajama: GPT-NeoX with attention first and the MLP after it."""
    spec = gpt_neox()
    blocks = tuple(replace(block, parallel=False) for block in spec.blocks)
    return replace(spec, name="redpajama", blocks=blocks)


SPECS: dict[str, Callable[[], ModelSpec]] = {
    make.__name__: make
    for make in (
        llama, llama_long, outliers, llama31, interleaved, mistral, glm, qwen2, qwen3, gemma, mpt,
        deepseek, yarn, gpt_oss, mixtral, olmoe, gpt2, gpt_neox, redpajama,
    )
}  # fmt: skip


def model(family: str, packed: str = "", seed: int = 0) -> Model:
    """A model of this family; its weights follow from the seed.

    `packed` names a way of `packing`: then the matrices of the MLPs are the numbers that such
    blocks hold.
    """
    return _made(family, packed, seed)[0]


def blocks(family: str, packed: str, seed: int = 0) -> dict[str, dict[str, Any]]:
    """The packed matrices of a model, by name."""
    return _made(family, packed, seed)[1]


@cache
def _made(family: str, packed: str, seed: int) -> tuple[Model, dict[str, dict[str, Any]]]:
    spec = SPECS[family]()
    rng = np.random.default_rng([seed, sum(map(ord, family))])
    drawn, blocks = {}, {}
    for each in parameters(spec):
        data = _drawn(spec, each, rng)
        if packed and each.part == "mlp":
            blocks[each.name] = packing.WAYS[packed].pack(data)
            data = packing.WAYS[packed].unpack(blocks[each.name])
        drawn[each.name] = Tensor(each.name, data)
    return Model(spec, Weights(drawn), Ids(spec.vocab)), blocks


def some_ids(length: int = LENGTH, seed: int = 0) -> list[int]:
    """A text in which one token comes twice."""
    ids: list[int] = np.random.default_rng([seed, 1]).integers(0, VOCABULARY, length).tolist()
    ids[length // 2] = ids[length // 4]
    return ids


def _drawn(spec: ModelSpec, parameter: Parameter, rng: np.random.Generator) -> Any:
    noise = rng.standard_normal(parameter.shape)
    if parameter.name.endswith(".slopes"):
        return slopes(parameter.shape[0])
    if parameter.name.endswith(".frequencies"):
        return scaled_frequencies(2 * parameter.shape[0], 500_000.0)
    if parameter.kind == "gain":
        data = 1 + GAIN * noise
    elif parameter.kind == "bias":
        data = BIAS * noise
    elif parameter.part in ("embedding", "position"):
        data = EMBEDDING * noise
        if spec.name == "outliers":
            data[:, 5] = OUTLIER
    else:
        data = noise / np.sqrt(parameter.shape[0 if spec.layout == "in_out" else 1])
    return data.astype(np.float32)


def slopes(heads: int) -> Any:
    """ALiBi's slopes: a geometric sequence for the power of two below the number of heads, and
    every other one of the sequence for twice as many for the heads that are left."""
    whole = 2 ** int(np.log2(heads))
    first = 2.0 ** (-8.0 * np.arange(1, whole + 1) / whole)
    between = 2.0 ** (-8.0 * np.arange(1, 2 * whole + 1, 2) / (2 * whole))
    return np.concatenate([first, between[: heads - whole]]).astype(np.float32)


def scaled_frequencies(width: int, base: float) -> Any:
    """Llama 3.1's: long waves slowed down by the factor, short ones left, a passage between."""
    rates = base ** (-np.arange(0, width, 2) / width)
    waves = 2 * np.pi / rates
    share = np.clip((SCALED_FROM / waves - LOW) / (HIGH - LOW), 0, 1)
    return (rates * (share + (1 - share) / FACTOR)).astype(np.float32)
