"""config.json, key by key: what is understood, what is refused, what is only noted."""

from __future__ import annotations

import json
import math
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from budgets import examples
from byhand.counting import count
from byhand.errors import ByhandError, InputError
from byhand.expression import Expression, Number, write
from byhand.models import open_spec
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.families import FAMILIES, read_family
from byhand.spec import AttentionSpec, ModelSpec, RotarySpec
from oracles.arb_pass import ball_of
from oracles.checkpoints import CONFIGS

LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 5, "hidden_size": 8, "num_hidden_layers": 3,
    "num_attention_heads": 2, "intermediate_size": 3, "max_position_embeddings": 64,
}  # fmt: skip
MISTRAL = {**LLAMA, "model_type": "mistral", "num_key_value_heads": 2}
QWEN2 = {**LLAMA, "model_type": "qwen2", "num_key_value_heads": 2}
QWEN3 = {**LLAMA, "model_type": "qwen3", "num_key_value_heads": 2, "head_dim": 4}
NEOX = {**LLAMA, "model_type": "gpt_neox", "hidden_size": 16}
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "vocab_size": 5, "n_positions": 8, "n_embd": 8, "n_layer": 3, "n_head": 2,
}  # fmt: skip
EVERY = [GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, NEOX]


def spec_of(folder: Path, config: Any) -> ModelSpec:
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text, "utf-8")
    return open_spec(folder / "config.json")


def attention(folder: Path, config: dict[str, Any], layer: int = 0) -> AttentionSpec:
    found = spec_of(folder, config).blocks[layer].attention
    assert found is not None
    return found


def refused(folder: Path, config: Any) -> ByhandError:
    with pytest.raises(InputError) as caught:
        spec_of(folder, config)
    return caught.value


def key_of(error: ByhandError, folder: Path) -> str:
    return (error.where or "").removeprefix(f"{folder / 'config.json'}: ")


# ------------------------------------------------------------------ numbers


def test_decimals_are_the_fractions_they_name(tmp_path: Path) -> None:
    text = json.dumps(LLAMA)[:-1] + ', "rms_norm_eps": 1e-05, "rope_theta": 10000.7}'
    spec = spec_of(tmp_path, text)
    assert spec.final_norm.eps == Fraction(1, 100_000)
    assert spec.blocks[0].attn_norm.eps == Fraction(1, 100_000)
    rotary = attention(tmp_path, json.loads(text)).rotary
    assert rotary is not None
    assert rotary.base == Fraction(100_007, 10)


@pytest.mark.parametrize("config", EVERY, ids=lambda config: config["model_type"])
def test_defaults_are_those_of_the_library(tmp_path: Path, config: dict[str, Any]) -> None:
    kind = config["model_type"]
    theirs = CONFIGS[kind](**{k: v for k, v in config.items() if k != "model_type"})
    spec = spec_of(tmp_path, config)
    block = spec.blocks[0]
    assert block.attention is not None
    assert block.mlp is not None
    eps = getattr(theirs, "rms_norm_eps", None) or getattr(
        theirs, "layer_norm_eps", None) or theirs.layer_norm_epsilon  # fmt: skip
    assert float(spec.final_norm.eps) == eps
    assert spec.tied == theirs.tie_word_embeddings
    assert spec.context == theirs.max_position_embeddings
    assert block.attention.kv_heads == getattr(theirs, "num_key_value_heads", 2)
    assert block.attention.window == (4096 if kind == "mistral" else None)
    activation = getattr(theirs, "activation_function", None) or theirs.hidden_act
    assert activation == {"gelu_tanh": "gelu_new"}.get(block.mlp.activation, block.mlp.activation)
    if kind != "gpt2":
        assert block.attention.rotary is not None
        rope = theirs.rope_parameters
        assert float(block.attention.rotary.base) == rope["rope_theta"]
        share = rope.get("partial_rotary_factor", 1)
        assert block.attention.rotary.width == int(block.attention.d_head * share)


def test_the_usual_head_of_qwen3_is_128_wide(tmp_path: Path) -> None:
    config = {key: value for key, value in QWEN3.items() if key != "head_dim"}
    assert attention(tmp_path, config).d_head == 128
    assert key_of(refused(tmp_path, {**config, "head_dim": None}), tmp_path) == "head_dim"


def test_gpt2_understands_the_names_of_the_others(tmp_path: Path) -> None:
    other = {
        "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
        "n_positions": "max_position_embeddings",
    }  # fmt: skip
    renamed = {other.get(key, key): value for key, value in GPT2.items()}
    assert spec_of(tmp_path, renamed) == spec_of(tmp_path, GPT2)
    assert spec_of(tmp_path, {**GPT2, "hidden_size": 8}) == spec_of(tmp_path, GPT2)
    error = refused(tmp_path, {**GPT2, "hidden_size": 16})
    assert key_of(error, tmp_path) == "hidden_size"
    assert (error.expected, error.found) == ("the same as n_embd, 8", "16")


# ------------------------------------------------------------------ windows


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        ({**MISTRAL, "sliding_window": 7}, [7, 7, 7]),
        ({**MISTRAL, "sliding_window": None}, [None] * 3),
        ({**QWEN2, "sliding_window": 7}, [None] * 3),
        ({**QWEN2, "use_sliding_window": True, "sliding_window": 7}, [None] * 3),
        ({**QWEN2, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2},
         [None, None, 7]),
        ({**QWEN3, "use_sliding_window": True, "max_window_layers": 0}, [4096] * 3),
        ({**QWEN3, "use_sliding_window": True, "sliding_window": None, "max_window_layers": 0},
         [None] * 3),
        ({**QWEN3, "use_sliding_window": True, "sliding_window": 5,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
         [5, None, 5]),
        ({**QWEN2, "layer_types": ["full_attention"] * 3}, [None] * 3),
    ],
)  # fmt: skip
def test_windows_are_those_of_the_library(
    tmp_path: Path, config: dict[str, Any], windows: list[int | None]
) -> None:
    found = [block.attention.window for block in spec_of(tmp_path, config).blocks
             if block.attention]  # fmt: skip
    assert found == windows


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({**QWEN2, "layer_types": ["sliding_attention"] * 3}, "layer_types"),
        ({**QWEN2, "layer_types": ["full_attention"] * 2}, "layer_types"),
        ({**QWEN2, "layer_types": ["chunked_attention"] * 3}, "layer_types"),
        ({**QWEN2, "layer_types": "full_attention"}, "layer_types"),
        ({**MISTRAL, "layer_types": ["full_attention"] * 3}, "layer_types"),
        ({**MISTRAL, "sliding_window": 0}, "sliding_window"),
        ({**LLAMA, "sliding_window": 4096}, "sliding_window"),
        ({**GPT2, "sliding_window": 4096}, "sliding_window"),
    ],
)  # fmt: skip
def test_windows_that_cannot_be_are_refused(
    tmp_path: Path, config: dict[str, Any], key: str
) -> None:
    assert key_of(refused(tmp_path, config), tmp_path) == key


# ------------------------------------------------------------------ RoPE

WIDE = {**LLAMA, "head_dim": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 512}  # fmt: skip


def rotary(folder: Path, config: dict[str, Any]) -> RotarySpec:
    found = attention(folder, config).rotary
    assert found is not None
    assert not found.given
    return found


def frequencies(folder: Path, config: dict[str, Any], length: int = 1) -> list[Expression]:
    found = rotary(folder, config)
    assert found.scaling is not None
    return list(found.scaling.frequencies(found.base, found.width, length))


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
        "rope_theta": 10000.0}  # fmt: skip
LONG = {"rope_type": "longrope", "original_max_position_embeddings": 6, "rope_theta": 10000.0,
        "short_factor": [1 + i / 8 for i in range(16)],
        "long_factor": [2 + i * i / 4 for i in range(16)]}  # fmt: skip


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 10000.0},
        {"rope_scaling": {"rope_type": "linear", "factor": 3}, "rope_theta": 500.5},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 10000.0}},
        {"rope_scaling": LLAMA3, "rope_theta": 500000.0},
        {"rope_parameters": {**LLAMA3, "rope_theta": 10000.0}},
        {"rope_parameters": {**LLAMA3, "rope_theta": 10000.0, "factor": 32.0,
                             "low_freq_factor": 0.5, "high_freq_factor": 100.0}},
        {"rope_scaling": {"type": "dynamic", "factor": 2.5}, "rope_theta": 500.5},
        {"rope_parameters": YARN},
        {"rope_parameters": {**YARN, "truncate": False}},
        {"rope_parameters": {**YARN, "truncate": False, "original_max_position_embeddings": 4096}},
        {"rope_parameters": {**YARN, "beta_fast": 8, "beta_slow": 8, "rope_theta": 50.0}},
        {"rope_parameters": {**YARN, "beta_fast": 7, "beta_slow": 7, "truncate": False}},
        {"rope_parameters": {**YARN, "beta_fast": 2, "beta_slow": 1.5, "truncate": False,
                             "rope_theta": 3.0, "original_max_position_embeddings": 1000}},
        {"rope_parameters": {**YARN, "original_max_position_embeddings": 2}},
        {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.2, "beta_fast": 3}},
        {"rope_parameters": {**YARN, "attention_factor": 0.8}},
        {"rope_parameters": {**YARN, "factor": None}},
        {"rope_parameters": LONG},
        {"rope_parameters": {**LONG, "factor": 3.5}},
        {"rope_parameters": {**LONG, "attention_factor": 1.25}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("length", [5, 21])
def test_scaled_frequencies_are_those_of_the_library(
    tmp_path: Path, rope: dict[str, Any], length: int
) -> None:
    ours = [float(ball_of(x)) for x in frequencies(tmp_path, {**WIDE, **rope}, length)]
    config = {key: value for key, value in WIDE.items() if key != "model_type"}
    theirs = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(
        transformers.LlamaConfig(**config, **json.loads(json.dumps(rope)))
    )
    theirs(torch.zeros(1), torch.arange(length)[None])  # which some kinds depend on
    assert torch.allclose(torch.tensor(ours), theirs.inv_freq, rtol=1e-5, atol=0)
    magnitude = rotary(tmp_path, {**WIDE, **rope}).magnitude
    assert (float(ball_of(magnitude)) if magnitude else 1.0) == pytest.approx(
        theirs.attention_scaling, rel=1e-14
    )


@pytest.mark.parametrize("whole", [True, False])
def test_the_blend_of_yarn_is_what_its_paper_says(tmp_path: Path, whole: bool) -> None:
    found = frequencies(tmp_path, {**WIDE, "rope_parameters": {**YARN, "truncate": whole}})
    pair = [16 * math.log(64 / (turns * 2 * math.pi)) / math.log(10000) for turns in (32, 1)]
    assert pair[0] < 0
    start, end = 0.0, float(math.ceil(pair[1])) if whole else pair[1]
    for place, tree in enumerate(found):
        share = min(1, max(0, (place - start) / (end - start)))
        rate = 10000 ** (-place / 16) * (share / 4 + 1 - share)
        assert float(ball_of(tree)) == pytest.approx(rate, rel=1e-14)


def test_scaled_frequencies_are_exact_expressions(tmp_path: Path) -> None:
    linear = {"rope_scaling": {"type": "linear", "factor": 2.5}}
    assert [write(x) for x in frequencies(tmp_path, {**LLAMA, **linear})] == [
        "2/5", "10000^(-1/2)/(5/2)",
    ]  # fmt: skip
    found = frequencies(tmp_path, {**WIDE, "rope_scaling": LLAMA3})
    assert found[0] == Number(Fraction(1))  # a short wave, as it was
    assert write(found[-1]) == "10000^(-15/16)/8"  # a long one, divided
    blended = [tree for tree in map(write, found) if "π" in tree]
    assert len(blended) == 2
    assert blended[0] == (
        "10000^(-3/8)·(((4 - 512·10000^(-3/8)/(2·π))/3)/8 + (512·10000^(-3/8)/(2·π) - 1)/3)"
    )


def test_the_blend_is_what_llama3_defines(tmp_path: Path) -> None:
    found = frequencies(tmp_path, {**WIDE, "rope_scaling": LLAMA3})
    for pair, tree in enumerate(found):
        rate = 10000 ** (-pair / 16)
        share = min(1, max(0, (512 * rate / (2 * math.pi) - 1) / 3))
        assert float(ball_of(tree)) == pytest.approx(rate * (share + (1 - share) / 8), rel=1e-14)


def test_old_and_new_keys_say_the_same(tmp_path: Path) -> None:
    old = spec_of(tmp_path, {**LLAMA, "rope_theta": 500.0, "rope_scaling": None})
    new = spec_of(tmp_path, {**LLAMA, "rope_parameters": {"rope_theta": 500.0}})
    both = spec_of(
        tmp_path,
        {**LLAMA, "rope_theta": 500, "rope_parameters":
         {"rope_theta": 500.0, "rope_type": "default"}},
    )  # fmt: skip
    assert old == new == both


def test_gpt_neox_turns_a_part_of_each_head(tmp_path: Path) -> None:
    wide = {**NEOX, "hidden_size": 64}
    for config, width in [
        (wide, 8), ({**wide, "rotary_pct": 0.5}, 16), ({**wide, "partial_rotary_factor": 0.5}, 16),
        ({**wide, "rope_parameters": {"partial_rotary_factor": 1.0}}, 32),
        ({**wide, "rotary_pct": 0.2}, 6),
    ]:  # fmt: skip
        assert rotary(tmp_path, config).width == width
    assert attention(tmp_path, {**wide, "rotary_pct": 0}).rotary is None


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({**LLAMA, "rope_scaling": {"type": "mrope", "factor": 4.0}}, "rope_scaling.type"),
        ({**LLAMA, "rope_scaling": {"rope_type": "dynamic"}}, "rope_scaling.factor"),
        ({**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 0.5}}, "rope_scaling.factor"),
        ({**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale": -1}},
         "rope_scaling.mscale"),
        ({**LLAMA, "rope_scaling": {"type": "yarn", "factor": 2}, "rope_theta": 1}, "rope_theta"),
        ({**LLAMA, "rope_scaling": {"type": "yarn", "factor": 2, "truncate": 0}},
         "rope_scaling.truncate"),
        ({**LLAMA, "rope_parameters": {"rope_type": "longrope"}}, "rope_parameters.short_factor"),
        ({**WIDE, "rope_parameters": {**LONG, "long_factor": [1.0] * 15}},
         "rope_parameters.long_factor"),
        ({**WIDE, "rope_parameters": {**LONG, "short_factor": [1.0] * 15 + [0]}},
         "rope_parameters.short_factor"),
        ({**LLAMA, "rope_parameters": {"rope_type": 3}}, "rope_parameters.rope_type"),
        ({**LLAMA, "rope_scaling": {"rope_type": "linear", "type": "yarn", "factor": 2}},
         "rope_scaling.type"),
        ({**LLAMA, "rope_scaling": {"type": "linear"}}, "rope_scaling.factor"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 0}}, "rope_scaling.factor"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": "2"}}, "rope_scaling.factor"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 1e300}}, "rope_scaling.factor"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 3}},
         "rope_scaling.beta_fast"),
        ({**LLAMA, "rope_scaling": [1]}, "rope_scaling"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 2},
          "rope_parameters": {"rope_type": "default"}}, "rope_scaling"),
        ({**LLAMA, "rope_theta": 5, "rope_parameters": {"rope_theta": 6}}, "rope_theta"),
        ({**LLAMA, "rope_theta": -1}, "rope_theta"),
        ({**LLAMA, "rope_theta": True}, "rope_theta"),
        ({**LLAMA, "partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({**LLAMA, "rotary_pct": 0.5}, "rotary_pct"),
        ({**LLAMA, "hidden_size": 6}, "head_dim"),  # heads of 3
        ({**NEOX, "rotary_pct": 0.7}, "rotary_pct"),  # 5 of 8
        ({**NEOX, "rotary_pct": 1.5}, "rotary_pct"),
        ({**NEOX, "rotary_pct": 0.5, "partial_rotary_factor": 1.0}, "rotary_pct"),
        ({**NEOX, "rotary_emb_base": 100, "rope_theta": 10000.0}, "rotary_emb_base"),
        ({**NEOX, "head_dim": 8}, "head_dim"),
        ({**LLAMA, "rope_parameters": {"full_attention": {"rope_type": "default"}}},
         "rope_parameters.full_attention"),
        ({**WIDE, "rope_scaling": {**LLAMA3, "low_freq_factor": 4.0}},
         "rope_scaling.high_freq_factor"),
        ({**WIDE, "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 0}},
         "rope_scaling.original_max_position_embeddings"),
        ({**WIDE, "rope_scaling": LLAMA3, "original_max_position_embeddings": 4},
         "original_max_position_embeddings"),
        ({**LLAMA, "head_dim": 2_000_000}, "head_dim"),
    ],
)  # fmt: skip
def test_rope_that_byhand_does_not_do_is_refused(
    tmp_path: Path, config: dict[str, Any], key: str
) -> None:
    error = refused(tmp_path, config)
    assert key_of(error, tmp_path) == key
    assert error.expected
    assert error.found


# ------------------------------------------------------------------ sizes and kinds

SIZES = [
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "num_key_value_heads", "head_dim",
]  # fmt: skip


@pytest.mark.parametrize("key", SIZES)
@pytest.mark.parametrize("bad", [0, -1, True, 2.0, 2.5, "8", [8], {}, 2**40, 2**63, 10**100])
def test_an_impossible_size_is_refused_and_named(tmp_path: Path, key: str, bad: Any) -> None:
    error = refused(tmp_path, {**LLAMA, key: bad})
    assert key_of(error, tmp_path) == key
    assert error.expected is not None
    assert error.expected.startswith("a whole number from 1 to 1")
    assert error.found == json.dumps(bad)[:79] + "…" * (len(json.dumps(bad)) > 80)


@pytest.mark.parametrize("key", SIZES[:5])
def test_a_missing_size_is_refused_and_named(tmp_path: Path, key: str) -> None:
    config = {name: value for name, value in LLAMA.items() if name != key}
    error = refused(tmp_path, config)
    assert error.message == f"{key} is missing"
    assert key_of(error, tmp_path) == key


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({**LLAMA, "attention_bias": 1}, "attention_bias"),
        ({**LLAMA, "mlp_bias": "true"}, "mlp_bias"),
        ({**LLAMA, "mlp_bias": None}, "mlp_bias"),
        ({**LLAMA, "tie_word_embeddings": 0}, "tie_word_embeddings"),
        ({**LLAMA, "hidden_act": "mish"}, "hidden_act"),
        ({**LLAMA, "hidden_act": None}, "hidden_act"),
        ({**LLAMA, "rms_norm_eps": -1e-5}, "rms_norm_eps"),
        ({**LLAMA, "rms_norm_eps": "1e-5"}, "rms_norm_eps"),
        ({**LLAMA, "rms_norm_eps": 2}, "rms_norm_eps"),
        ({**LLAMA, "num_attention_heads": 3}, "num_attention_heads"),
        ({**GPT2, "n_head": 3}, "n_head"),
        ({**NEOX, "num_attention_heads": 3}, "num_attention_heads"),
        ({**GPT2, "activation_function": "gelu_slow"}, "activation_function"),
        ({**GPT2, "n_inner": 0}, "n_inner"),
        ({**QWEN2, "max_window_layers": -1}, "max_window_layers"),
        ({**QWEN2, "use_sliding_window": None}, "use_sliding_window"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_refused(
    tmp_path: Path, config: dict[str, Any], key: str
) -> None:
    assert key_of(refused(tmp_path, config), tmp_path) == key


def test_heads_that_do_not_share_evenly_are_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, {**LLAMA, "num_attention_heads": 4, "num_key_value_heads": 3})
    assert error.where == str(tmp_path / "config.json")
    assert (error.expected, error.found) == ("a divisor of the 4 heads", "3")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "5", "{'a': 1}", '{"model_type": NaN}', "\0", '{"x": 1e999999999999}',
        '{"x": 1e-500}', '{"n": ' + "9" * 5000 + "}", "[" * 100_000,
        '{"a": ' + "[" * 900 + "]" * 900 + "}",
    ],
)  # fmt: skip
def test_what_is_no_config_is_refused(tmp_path: Path, text: str) -> None:
    error = refused(tmp_path, text)
    assert error.where == str(tmp_path / "config.json")


def test_a_config_of_absurd_length_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(InputError, match="this is not a JSON file of settings"):
        open_spec(tmp_path / "config.json")


# ------------------------------------------------------------------ keys nobody reads


@pytest.mark.parametrize("kind", ["mamba", "lama", "gemma9", "", None, 5, ["llama"]])
def test_an_unknown_model_type_is_refused_with_the_known_ones(tmp_path: Path, kind: Any) -> None:
    error = refused(tmp_path, {**LLAMA, "model_type": kind})
    assert key_of(error, tmp_path) == "model_type"
    assert error.expected == ", ".join(FAMILIES)
    assert kind != "lama" or str(error.hint).startswith("did you mean llama")


CHANGING = {
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "logit_scale": 0.0625,
    "embedding_multiplier": 12.0, "logits_scaling": 8.0,
    "residual_multiplier": 0.22, "clip_qkv": 8.0, "alibi": True, "add_cross_attention": True,
    "num_local_experts": 8, "num_experts_per_tok": 2, "pruned_heads": {"0": [1]},
    "is_encoder_decoder": True, "position_embedding_type": "relative_key", "is_causal": False,
    "query_pre_attn_scalar": 256, "attention_chunk_size": 8192, "mlp_multipliers": [1, 2],
    "auto_map": {"AutoModelForCausalLM": "modeling_x.X"},
}  # fmt: skip


@pytest.mark.parametrize("key", CHANGING)
@pytest.mark.parametrize("config", [GPT2, LLAMA, NEOX], ids=lambda config: config["model_type"])
def test_a_key_that_changes_the_arithmetic_is_refused(
    tmp_path: Path, config: dict[str, Any], key: str
) -> None:
    error = refused(tmp_path, {**config, key: CHANGING[key]})
    assert key_of(error, tmp_path) == key
    assert error.expected
    assert error.found == json.dumps(CHANGING[key])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attn_logit_softcapping", None), ("logit_scale", 1.0), ("logit_scale", 1),
        ("pruned_heads", {}), ("is_encoder_decoder", False), ("num_local_experts", 0),
        ("clip_qkv", None), ("position_embedding_type", "absolute"),
        ("auto_map", {"AutoTokenizer": ["x", None]}), ("sliding_window", None),
    ],
)  # fmt: skip
def test_at_its_neutral_value_such_a_key_is_fine(tmp_path: Path, key: str, value: Any) -> None:
    assert spec_of(tmp_path, {**LLAMA, key: value}) == spec_of(tmp_path, LLAMA)


def notes(config: dict[str, Any]) -> tuple[str, ...]:
    return read_family(Config(Path("config.json"), config), "x").notes


def test_keys_that_nobody_knows_are_noted() -> None:
    assert notes({**LLAMA, "zeal": 3, "mood": "good", "use_cache": True}) == (
        "config.json has keys byhand does not know: mood, zeal",
    )


@pytest.mark.parametrize("config", EVERY, ids=lambda config: config["model_type"])
def test_every_key_the_library_writes_is_known(config: dict[str, Any]) -> None:
    kind = config["model_type"]
    theirs = CONFIGS[kind](**{k: v for k, v in config.items() if k != "model_type"})
    written = json.loads(theirs.to_json_string(use_diff=False), parse_float=Fraction)
    assert notes(written) == ()


# ------------------------------------------------------------------ anything at all

KEYS = sorted({
    *LLAMA, *GPT2, *QWEN3, *CHANGING, "rope_scaling", "rope_parameters", "rope_theta",
    "rotary_pct", "layer_types", "sliding_window", "use_sliding_window", "rms_norm_eps",
    "hidden_act", "tie_word_embeddings", "max_window_layers", "attention_bias",
})  # fmt: skip
ODD = st.sampled_from([0, -1, 1, 2, 3, 8, 64, 2**31, 2**63, 2**64, 10**300, True, False, None, 0.5,
                       1e-5, 1e300, 1e-300, -0.0, "", "silu", "linear", "full_attention",
                       [], {}, [1], ["full_attention"] * 3])  # fmt: skip
ROPES = st.dictionaries(
    st.sampled_from(["rope_type", "type", "factor", "rope_theta", "low_freq_factor",
                     "high_freq_factor", "original_max_position_embeddings",
                     "partial_rotary_factor", "zeal"]),
    ODD | st.sampled_from(["llama3", "linear", "default", 4.0, 500.0]),
)  # fmt: skip
VALUES = ODD | ROPES | st.recursive(ODD, lambda inner: st.lists(inner, max_size=3), max_leaves=5)


@settings(max_examples=examples(400), suppress_health_check=list(HealthCheck))
@given(
    base=st.sampled_from(EVERY),
    kind=st.sampled_from(list(FAMILIES)),
    changes=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), VALUES, max_size=4),
)
def test_any_config_is_read_or_refused_and_allocates_little(
    base: dict[str, Any], kind: str, changes: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    folder = tmp_path_factory.getbasetemp()
    tracemalloc.start()
    message = ""
    try:
        spec = spec_of(folder, {**base, "model_type": kind, **changes})
        assert count(spec).total > 0
    except ByhandError as error:
        message = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    assert all(line.isprintable() for line in message.split("\n"))
