"""Parameters of public models from their config.json alone, to the digit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from byhand.counting import count
from byhand.models import open_model, open_spec
from oracles.checkpoints import CONFIGS

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("BYHAND_DATA", ROOT.parent / "shared" / "data"))
GPT2 = {
    "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_ctx": 1024, "n_embd": 768,
    "n_layer": 12, "n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
}  # fmt: skip
PUBLIC: dict[str, tuple[int, dict[str, Any]]] = {
    "GPT-2": (124_439_808, GPT2),
    "GPT-2 XL": (1_557_611_200, {**GPT2, "n_embd": 1600, "n_layer": 48, "n_head": 25}),
    "Pythia-70m": (70_426_624, {
        "model_type": "gpt_neox", "vocab_size": 50304, "hidden_size": 512, "num_hidden_layers": 6,
        "num_attention_heads": 8, "intermediate_size": 2048, "hidden_act": "gelu",
        "rotary_pct": 0.25, "rotary_emb_base": 10000, "max_position_embeddings": 2048,
        "use_parallel_residual": True, "tie_word_embeddings": False, "layer_norm_eps": 1e-05}),
    "Llama-2-7B": (6_738_415_616, {
        "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008,
        "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
        "rope_scaling": None, "pretraining_tp": 1, "tie_word_embeddings": False}),
    "Llama-3-8B": (8_030_261_248, {
        "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0}),
    "Llama-3.1-8B": (8_030_261_248, {
        "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
        "rope_scaling": {
            "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192, "rope_type": "llama3"}}),
    "Mistral-7B-v0.1": (7_241_732_096, {
        "model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "max_position_embeddings": 32768, "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False}),
    "Qwen2.5-0.5B": (494_032_768, {
        "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
        "max_position_embeddings": 32768, "max_window_layers": 24, "sliding_window": 32768,
        "use_sliding_window": False, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "tie_word_embeddings": True}),
    "Qwen3-0.6B": (596_049_920, {
        "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 3072, "max_position_embeddings": 40960, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000, "attention_bias": False, "tie_word_embeddings": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_the_count_is_what_the_library_reports(name: str, tmp_path: Path) -> None:
    expected, config = PUBLIC[name]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), "utf-8")
    assert count(open_spec(path)).total == expected
    settings = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(
            CONFIGS[config["model_type"]](**settings)
        )
    assert model.num_parameters() == expected


def test_scaled_frequencies_are_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLIC["Llama-3.1-8B"][1]), "utf-8")
    assert count(open_spec(path))["count.buffers"] == 0


def test_the_count_of_a_model_on_disk() -> None:
    folder = DATA / "stories260K"
    if not folder.exists():
        pytest.skip("no such folder here")
    model = open_model(folder)
    assert count(model.spec, model.weights).total == 260_032
    assert count(open_spec(folder)).total == count(open_spec(folder / "config.json")).total
    assert model.name == "stories260K"
    assert model.ends == (2,)
