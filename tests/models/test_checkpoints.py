"""Hugging Face folders of every family, against the library and against torch in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch

from byhand import forward
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.floats import Floats
from oracles.checkpoints import Found, by_hand, library, random_model, saved

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
GPT2: dict[str, Any] = {
    "vocab_size": 13, "n_positions": 9, "n_embd": 12, "n_layer": 2, "n_head": 3,
    "bos_token_id": None, "eos_token_id": 7,
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "vocab_size": 13, "max_position_embeddings": 16, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 3, "num_key_value_heads": 3, "intermediate_size": 10,
    "bos_token_id": None, "eos_token_id": 7,
}  # fmt: skip
NEOX: dict[str, Any] = {
    "vocab_size": 13, "max_position_embeddings": 16, "hidden_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 10, "bos_token_id": None, "eos_token_id": 7,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 64,  # a short wave, a blend, long
}  # fmt: skip
WIDE = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", GPT2),
    "gpt2, 3 heads of 5": ("gpt2", {**GPT2, "n_embd": 15}),
    "gpt2, untied": ("gpt2", {**GPT2, "tie_word_embeddings": False}),
    "gpt2, n_inner and gelu": ("gpt2", {**GPT2, "n_inner": 7, "activation_function": "gelu"}),
    "gpt2, relu, unscaled": (
        "gpt2", {**GPT2, "activation_function": "relu", "scale_attn_weights": False}),
    "gpt2, silu, by layer": (
        "gpt2",
        {**GPT2, "activation_function": "silu", "scale_attn_by_inverse_layer_idx": True},
    ),
    "gpt2, pytorch tanh, by layer alone": (
        "gpt2",
        {**GPT2, "activation_function": "gelu_pytorch_tanh", "scale_attn_weights": False,
         "scale_attn_by_inverse_layer_idx": True, "layer_norm_epsilon": 0.01}),
    "llama": ("llama", LLAMA),
    "llama, tied": ("llama", {**LLAMA, "tie_word_embeddings": True}),
    "llama, grouped, wide heads": (
        "llama", {**LLAMA, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6}),
    "llama, one key head": ("llama", {**LLAMA, "num_key_value_heads": 1, "rms_norm_eps": 0.01}),
    "llama, biased": ("llama", {**LLAMA, "attention_bias": True, "mlp_bias": True}),
    "llama, gelu": ("llama", {**LLAMA, "hidden_act": "gelu_pytorch_tanh"}),
    "llama, base 500000": (
        "llama", {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
    "llama, linear": (
        "llama",
        {**LLAMA, "rope_parameters":
         {"rope_type": "linear", "factor": 2.5, "rope_theta": 10000.0}}),
    "llama, llama3": ("llama", {**LLAMA, **WIDE, "rope_parameters": LLAMA3}),
    "llama, llama3, all blended or long": (
        "llama",
        {**LLAMA, **WIDE,
         "rope_parameters": {**LLAMA3, "original_max_position_embeddings": 8}}),
    "mistral, window": ("mistral", {**LLAMA, "sliding_window": 3}),
    "mistral, window of 1": ("mistral", {**LLAMA, "sliding_window": 1}),
    "mistral, no window": ("mistral", {**LLAMA, "num_key_value_heads": 1, "sliding_window": None}),
    "qwen2": ("qwen2", {**LLAMA, "num_key_value_heads": 1}),
    "qwen2, windows from layer 1": (
        "qwen2",
        {**LLAMA, "use_sliding_window": True, "sliding_window": 2, "max_window_layers": 1}),
    "qwen2, windows by type": (
        "qwen2",
        {**LLAMA, "use_sliding_window": True, "sliding_window": 4,
         "layer_types": ["sliding_attention", "full_attention"]}),
    "qwen3": ("qwen3", {**LLAMA, "head_dim": 6, "num_key_value_heads": 1}),
    "qwen3, biased, tied, windows": (
        "qwen3",
        {**LLAMA, "head_dim": 4, "attention_bias": True, "tie_word_embeddings": True,
         "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}),
    "gpt_neox": ("gpt_neox", NEOX),
    "gpt_neox, serial": ("gpt_neox", {**NEOX, "use_parallel_residual": False}),
    "gpt_neox, unbiased, half turned, tied": (
        "gpt_neox",
        {**NEOX, "attention_bias": False, "rotary_pct": 0.5, "rotary_emb_base": 1000,
         "tie_word_embeddings": True}),
    "gpt_neox, whole heads turned, relu": (
        "gpt_neox", {**NEOX, "rotary_pct": 1.0, "hidden_act": "relu", "layer_norm_eps": 0.01}),
    "gpt_neox, nothing turned": ("gpt_neox", {**NEOX, "rotary_pct": 0.0}),
    "gpt_neox, linear": (
        "gpt_neox",
        {**NEOX, "rope_parameters":
         {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0,
          "partial_rotary_factor": 0.5}}),
}  # fmt: skip


def worked(model: Model, ids: list[int] = IDS) -> Found:
    """What byhand computes in float64."""
    steps = work_out(forward.plan(model.spec, len(ids)), model.weights, ids, Floats("float64"))
    plan = forward.plan(model.spec, len(ids))

    def value(address: str) -> torch.Tensor:
        return torch.from_numpy(np.array(steps[plan[address].address].value))

    streams = [value(f"stream.{layer}") for layer in range(len(model.spec.blocks) + 1)]
    return Found(streams, value("final.norm.out"), value("logits"))


def difference(ours: Found, theirs: Found) -> float:
    """The largest difference relative to the largest number of each tensor."""
    pairs = list(zip(ours.streams, theirs.streams, strict=False))
    pairs += [(ours.normed, theirs.normed), (ours.logits, theirs.logits)]
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_gives_what_the_library_and_torch_give(case: str, tmp_path: Path) -> None:
    kind, settings = CASES[case]
    model = random_model(kind, seed=len(case), **settings)
    ours = worked(open_model(saved(model, tmp_path)))
    assert difference(ours, by_hand(model, IDS)) < 1e-12
    # The library computes RMSNorm, softmax and RoPE in float32; gpt2 has none of it.
    assert difference(ours, library(model, IDS)) < (1e-12 if kind == "gpt2" else 2e-5)


DTYPES = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox"])
def test_every_float_type_is_read_as_the_numbers_it_holds(
    kind: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    model = random_model(kind, **{"gpt2": GPT2, "llama": LLAMA, "gpt_neox": NEOX}[kind])
    opened = open_model(saved(model, tmp_path, dtype))
    data = opened.weights["block.1.mlp.out"].data
    assert data.dtype == DTYPES[dtype]
    assert difference(worked(opened), by_hand(model, IDS)) < 1e-12


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox"])
def test_shards_are_read_like_one_file(kind: str, tmp_path: Path) -> None:
    model = random_model(kind, **{"gpt2": GPT2, "llama": LLAMA, "gpt_neox": NEOX}[kind])
    saved(model, tmp_path / "one")
    saved(model, tmp_path / "many", max_shard_size=3000)
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 3
    one, many = open_model(tmp_path / "one"), open_model(tmp_path / "many")
    assert (one.spec.name, many.spec.name) == ("one", "many")
    assert list(one.weights) == list(many.weights)
    for name in one.weights:
        assert np.array_equal(one.weights[name].data, many.weights[name].data)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox"])
def test_a_model_saved_without_its_head_is_read_where_the_head_is_tied(
    kind: str, tmp_path: Path
) -> None:
    settings = {"gpt2": GPT2, "llama": LLAMA, "gpt_neox": NEOX}[kind]
    model = random_model(kind, **{**settings, "tie_word_embeddings": True})
    model.base_model.config.architectures = None
    saved(model.base_model, tmp_path)
    ours = worked(open_model(tmp_path))
    assert difference(ours, by_hand(model, IDS)) < 1e-12


def shares_memory(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    return np.shares_memory(a, b)


def test_weights_are_views_of_the_file_and_never_changed(tmp_path: Path) -> None:
    model = random_model("gpt2", **{**GPT2, "tie_word_embeddings": False})
    weights = open_model(saved(model, tmp_path)).weights
    head = weights["head"].data
    assert not head.flags.owndata
    assert not head.flags.writeable
    assert head.flags.f_contiguous  # the transpose, as a view
    assert np.array_equal(head, model.lm_head.weight.detach().numpy().T)
    with pytest.raises(ValueError, match="read-only"):
        head[0, 0] = 1
    for tensor in weights.values():
        assert not tensor.data.flags.owndata


def test_what_a_folder_says_besides_its_weights(tmp_path: Path) -> None:
    model = open_model(saved(random_model("mistral", **LLAMA), tmp_path / "small-model"))
    assert model.name == "small-model"
    assert model.family == "llama"
    assert model.ends == (7,)
    assert model.source == str(tmp_path / "small-model")
    assert model.notes == (
        "there is no tokenizer.json: the text is ids from 0 to 12, with blanks between",
    )
    assert model.vocabulary.encode("3 1 12") == (3, 1, 12)
    assert model.spec.blocks[0].attention is not None
    assert model.spec.blocks[0].attention.window == 4096


def test_scaled_frequencies_are_lines_of_the_plan_and_no_weights(tmp_path: Path) -> None:
    kind, settings = CASES["llama, llama3"]
    model = open_model(saved(random_model(kind, **settings), tmp_path))
    assert not [name for name in model.weights if name.endswith("frequencies")]
    step = forward.plan(model.spec, 3)["block.1.attn.frequencies"]
    assert (step.op, step.axes) == ("constants", ("pair",))
