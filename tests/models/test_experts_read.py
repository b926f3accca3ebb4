"""Families with experts: what their configs mean, their files old and new, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import byhand
from byhand.errors import InputError
from byhand.expression import write
from byhand.models import open_spec
from byhand.models.huggingface.deepseek import EPS
from byhand.names.families import MODULES
from byhand.parameters import learned
from byhand.spec import ModelSpec

MIXTRAL = {
    "model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "num_local_experts": 8, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02,
    "output_router_logits": False, "rope_theta": 1000000.0, "sliding_window": None,
}  # fmt: skip
QWEN2 = {
    "model_type": "qwen2_moe", "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 24,
    "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
    "decoder_sparse_step": 1, "moe_intermediate_size": 1408, "num_experts": 60,
    "num_experts_per_tok": 4, "shared_expert_intermediate_size": 5632, "norm_topk_prob": False,
    "sliding_window": 32768, "use_sliding_window": False, "max_window_layers": 21,
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "num_hidden_layers": 24,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "experts_per_token": 4,
    "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
    "initial_context_length": 4096, "max_position_embeddings": 131072, "rope_theta": 150000,
    "sliding_window": 128, "swiglu_limit": 7.0, "rope_scaling": {
        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "rope_type": "yarn",
        "original_max_position_embeddings": 4096, "truncate": False},
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "ep_size": 1,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "n_group": 8, "topk_group": 4, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "norm_topk_prob": True, "moe_layer_freq": 1,
    "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 1, "rope_theta": 10000, "max_position_embeddings": 163840,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "type": "yarn",
                     "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096},
    "auto_map": {"AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM"},
}  # fmt: skip
PUBLIC = {
    46_702_792_704: MIXTRAL,
    14_315_784_192: QWEN2,
    20_914_757_184: GPT_OSS,
    671_026_404_352: DEEPSEEK,
}


def read(tmp_path: Path, config: dict[str, Any]) -> ModelSpec:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    return open_spec(file)


@pytest.mark.parametrize(("count", "config"), PUBLIC.items())
def test_public_models_have_as_many_parameters_as_published(
    count: int, config: dict[str, Any], tmp_path: Path
) -> None:
    assert sum(each.size for each in learned(read(tmp_path, config))) == count


def test_every_setting_of_gpt_oss_is_in_its_spec(tmp_path: Path) -> None:
    spec = read(tmp_path, GPT_OSS)
    first, second = spec.blocks[:2]
    assert first.attention
    assert first.mlp
    assert second.attention
    assert (first.attention.window, second.attention.window) == (128, None)
    assert (first.attention.sinks, first.attention.q_bias, first.attention.out_bias) == (True,) * 3
    assert (first.mlp.activation, first.mlp.limit, first.mlp.hidden_plus) == ("quick_gelu", 7, 1)
    assert (first.mlp.router_bias, first.mlp.out_bias, first.mlp.chosen) == (True, True, 4)
    assert first.attention.rotary
    assert first.attention.rotary.scaling
    assert first.attention.rotary.scaling.kind == "yarn"
    without = {key: value for key, value in GPT_OSS.items() if key != "rope_scaling"}
    assert read(tmp_path, without) == spec  # the same by default


def test_every_setting_of_deepseek_v3_is_in_its_spec(tmp_path: Path) -> None:
    spec = read(tmp_path, DEEPSEEK)
    plain, sparse = spec.blocks[2].mlp, spec.blocks[3].mlp
    attention = spec.blocks[0].attention
    assert plain
    assert sparse
    assert attention
    assert attention.latent
    assert attention.rotary
    assert (plain.experts, plain.d_ff, sparse.experts, sparse.d_ff) == (None, 18432, 256, 2048)
    assert (sparse.scoring, sparse.choice_bias, sparse.normalised) == ("sigmoid", True, True)
    assert (sparse.groups, sparse.groups_chosen, sparse.group_rule) == (8, 4, "top2")
    assert (sparse.share_scale, sparse.share_eps) == (Fraction(5, 2), Fraction(1, 10**20))
    assert (sparse.shared, sparse.shared_gate) == (2048, False)
    assert (attention.latent.rank, attention.latent.query_rank) == (512, 1536)
    assert attention.latent.norm.eps == attention.latent.query_norm.eps == EPS
    assert (attention.d_head, attention.value_width, attention.rotary.width) == (192, 128, 64)
    assert attention.rotary.pairing == "interleaved"
    assert attention.scale is not None
    assert write(attention.scale) == "1/√192·(1 + 1/10·ln(40))^2"


def test_layers_that_guess_further_tokens_are_left_aside_where_the_family_has_them() -> None:
    deepseek, qwen = MODULES["deepseek"], MODULES["qwen_moe"]
    assert deepseek.is_left("model.layers.61.enorm.weight", 61)
    assert deepseek.is_left("layers.62.mlp.gate.weight", 61)
    assert not deepseek.is_left("model.layers.60.enorm.weight", 61)
    assert not qwen.is_left("model.layers.61.enorm.weight", 61)


REFUSED = (
    (DEEPSEEK, {"scoring_func": "softmax"}, "scoring_func"),
    (DEEPSEEK, {"moe_layer_freq": 2}, "moe_layer_freq"),
    (DEEPSEEK, {"num_key_value_heads": 8}, "num_key_value_heads"),
    (DEEPSEEK, {"n_group": 7}, "groups"),
    (DEEPSEEK, {"auto_map": {"AutoModel": "mine.Model"}}, "auto_map"),
    ({**DEEPSEEK, "model_type": "deepseek_v2"}, {"scoring_func": "softmax"}, "norm_topk_prob"),
    (GPT_OSS, {"swiglu_alpha": 1.5}, "swiglu_alpha"),
    (GPT_OSS, {"layer_types": ["chunked_attention"] * 24}, "layer_types"),
    (MIXTRAL, {"num_experts_per_tok": 9}, "chosen"),
    (QWEN2, {"mlp_only_layers": 3}, "mlp_only_layers"),
    (QWEN2, {"num_experts": "60"}, "num_experts"),
)


@pytest.mark.parametrize(("config", "other", "named"), REFUSED)
def test_what_changes_the_arithmetic_otherwise_is_refused_by_its_name(
    config: dict[str, Any], other: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, {**config, **other})
    assert named in f"{error.value.where} {error.value.message}"


SMALL = {
    "model_type": "qwen3_moe", "vocab_size": 5, "hidden_size": 4, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 3, "head_dim": 2,
    "moe_intermediate_size": 3, "num_experts": 3, "num_experts_per_tok": 2, "mlp_only_layers": [0],
}  # fmt: skip


def tensors() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    found = {"model.embed_tokens.weight": drawn(5, 4), "lm_head.weight": drawn(5, 4)}
    found["model.norm.weight"] = drawn(4)
    for layer in range(2):
        at = f"model.layers.{layer}"
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}.{name}.weight"] = drawn(4)
        for name, rows in (("q", 4), ("k", 2), ("v", 2), ("o", 4)):
            found[f"{at}.self_attn.{name}_proj.weight"] = drawn(rows, 4)
        found |= {f"{at}.self_attn.{name}_norm.weight": drawn(2) for name in "qk"}
    for name, sides in (("gate", (3, 4)), ("up", (3, 4)), ("down", (4, 3))):
        found[f"model.layers.0.mlp.{name}_proj.weight"] = drawn(*sides)
        for expert in range(3):
            found[f"model.layers.1.mlp.experts.{expert}.{name}_proj.weight"] = drawn(*sides)
    found["model.layers.1.mlp.gate.weight"] = drawn(3, 4)
    return found


def folder(path: Path, weights: dict[str, np.ndarray[Any, Any]]) -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(SMALL))
    save_file(weights, path / "model.safetensors")
    return path


def test_a_tensor_for_each_expert_and_one_for_all_are_the_same_model(tmp_path: Path) -> None:
    apart = tensors()
    stacked = {name: data for name, data in apart.items() if ".experts." not in name}
    at = "model.layers.1.mlp.experts"

    def every(name: str) -> np.ndarray[Any, Any]:
        return np.stack([apart[f"{at}.{expert}.{name}_proj.weight"] for expert in range(3)])

    stacked[f"{at}.gate_up_proj"] = np.concatenate((every("gate"), every("up")), axis=1)
    stacked[f"{at}.down_proj"] = every("down")
    old, new = folder(tmp_path / "old", apart), folder(tmp_path / "new", stacked)
    logits = [np.asarray(byhand.trace(path, "3 1 4", numbers="float64")["logits"])
              for path in (old, new)]  # fmt: skip
    assert np.array_equal(*logits)
    assert np.abs(logits[0]).max() > 0.1


def test_a_missing_expert_is_named(tmp_path: Path) -> None:
    weights = tensors()
    del weights["model.layers.1.mlp.experts.2.up_proj.weight"]
    with pytest.raises(InputError, match=r"mlp\.experts\.2\.up_proj\.weight is missing"):
        byhand.trace(folder(tmp_path / "one", weights), "3 1 4", numbers="float64")


def test_an_expert_too_many_is_refused(tmp_path: Path) -> None:
    weights = tensors()
    one_more = "model.layers.1.mlp.experts.3.up_proj.weight"
    weights[one_more] = weights["model.layers.1.mlp.experts.2.up_proj.weight"]
    with pytest.raises(InputError, match=r"experts\.3\.up_proj\.weight is none of"):
        byhand.trace(folder(tmp_path / "one", weights), "3 1 4", numbers="float64")
