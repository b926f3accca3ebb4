"""Every family of decoders beside the transformers library, one config each.

`benchmarks.families` has more configs and comparisons; docs/families.md shows what they found.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.families import registry, report, runs
from safetensors.numpy import load_file, save_file

import byhand
from byhand.errors import InputError
from byhand.expression import write
from byhand.models import open_spec
from byhand.models.huggingface import alibi
from byhand.models.huggingface.decoders import DECODERS
from byhand.models.huggingface.families import FAMILIES
from byhand.spec import ModelSpec

KINDS = sorted({case.kind for case in registry.every()} & DECODERS.keys())
OTHERS = ("gemma3",)  # wraps gemma3_text
OLDER = ("gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3")  # in test_checkpoints


def test_every_decoder_has_at_least_six_configs() -> None:
    assert set(KINDS) >= DECODERS.keys() - {*OTHERS}
    assert [kind for kind in KINDS if len(registry.CASES[kind]) < 6] == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OLDER])
def test_float64_and_the_count_are_those_of_the_library(kind: str) -> None:
    with runs.pair(registry.richest(kind), seed=1) as pair:
        assert runs.distance(pair) < registry.NEAR
        ours, theirs = runs.counts(pair)
        assert ours == theirs
        assert not [note for note in pair.ours.notes if "keys byhand does not know" in note]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("gemma2", "plain"), ("olmo2", "plain"), ("phi3", "plain"), ("gptj", "plain"),
     ("opt", "narrow"), ("stablelm", "normed"), ("falcon", "new")],
)  # fmt: skip
def test_a_float32_run_of_the_library_raises_no_alarm(kind: str, name: str) -> None:
    case = next(each for each in registry.CASES[kind] if each.name == name)
    with runs.pair(case, seed=2) as pair:
        judged = runs.judged(pair, "eager")
    assert judged is not None
    assert judged.wrong == ()
    assert judged.unmatched == ()
    assert judged.lines >= 11 * 3  # of three layers


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [("gemma3_text", "plain", {}), ("phi", "normed", {}),
     ("deepseek_v3", "plain", {"kv_lora_rank": 6})],
)  # fmt: skip
def test_sides_of_the_same_length_are_not_mixed_up(
    kind: str, name: str, settings: dict[str, Any]
) -> None:
    """As many positions as heads; a latent as wide as the part of the keys beside it."""
    case = next(each for each in registry.CASES[kind] if each.name == name)
    one = {"num_hidden_layers": 1, "layer_types": None, "first_k_dense_replace": 0}
    smaller = {key: value for key, value in one.items() if key in {*case.settings, next(iter(one))}}
    heads = case.settings["num_attention_heads"]
    case = replace(case, settings={**case.settings, **smaller, **settings}, length=heads)
    with runs.pair(case, seed=3) as pair:
        judged = runs.judged(pair, "eager")
    assert judged is not None
    assert (judged.wrong, judged.unmatched) == ((), ())


def test_the_record_has_every_family_and_nothing_wrong() -> None:
    record = json.loads(report.RECORD.read_text("utf-8"))
    assert set(record["families"]) >= DECODERS.keys() - {*OTHERS}
    for family in record["families"].values():
        assert len(family["configs"]) >= 6
        assert [each for each in family["configs"] if each["wrong"]] == []


@pytest.mark.parametrize(
    ("prefix", "head"),
    [("model.language_model.", ""), ("language_model.model.", "language_model.")],
)
def test_gemma3_with_images_is_read_as_its_text_model(
    tmp_path: Path, prefix: str, head: str
) -> None:
    case = next(each for each in registry.CASES["gemma3_text"] if each.name == "untied")
    with runs.pair(case) as pair:
        tensors = load_file(pair.folder / "model.safetensors")
        config = json.loads((pair.folder / "config.json").read_text("utf-8"))
        expected = runs.by_hand(pair)[1]
    renamed = {
        head + name if name == "lm_head.weight" else name.replace("model.", prefix, 1): tensor
        for name, tensor in tensors.items()
    }
    images = {"vision_tower.vision_model.embeddings.weight": np.zeros(3, np.float32)}
    save_file({**renamed, **images}, tmp_path / "model.safetensors")
    outer = {"model_type": "gemma3", "text_config": config, "vision_config": {"hidden_size": 8},
             "mm_tokens_per_image": 4, "tie_word_embeddings": False}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(outer), "utf-8")
    model = byhand.open_model(tmp_path)
    found = byhand.trace(model, " ".join(map(str, pair.ids)), float="float64")["logits"]
    assert np.array_equal(np.asarray(found), expected)
    assert len(model.notes) == 1  # on the missing tokenizer


# ------------------------------------------------------------------ single keys


def spec_of(folder: Path, kind: str, **settings: Any) -> ModelSpec:
    case = registry.CASES[kind][0]
    config = {**case.settings, "model_type": kind, **settings}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return open_spec(folder / "config.json")


@pytest.mark.parametrize(
    ("kind", "settings", "key"),
    [
        ("gemma", {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ("gemma", {"hidden_activation": "relu"}, "hidden_activation"),
        ("gemma2", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar"),
        ("gemma2", {"attn_logit_softcapping": -1}, "attn_logit_softcapping"),
        ("gemma2", {"sliding_window": None}, "layer_types"),
        ("gemma3_text", {"rope_parameters": {"rope_theta": 5.0}}, "rope_parameters.rope_theta"),
        ("gemma3", {}, "text_config"),
        ("phi3", {"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling.type"),
        ("glm", {"head_dim": None}, "head_dim"),
        ("gptj", {"rotary_dim": 10}, "rotary_dim"),
        ("gptj", {"rotary_dim": None}, "rotary_dim"),
        ("gpt_neo", {"attention_types": [[["global"], 2]]}, "attention_types"),
        ("gpt_neo", {"attention_types": [[["global"], 10**18]]}, "attention_types"),
        ("gpt_neo", {"attention_layers": ["local"] * 3}, "attention_layers"),
        ("gpt_bigcode", {"num_key_value_heads": 2}, "num_key_value_heads"),
        ("falcon", {"multi_query": False, "num_kv_heads": 2}, "num_kv_heads"),
        ("falcon", {"new_decoder_architecture": True, "parallel_attn": False,
                    "num_ln_in_parallel_attn": 1}, "parallel_attn"),
        ("mpt", {"attn_config": {"alibi": False}}, "attn_config.alibi"),
        ("mpt", {"attn_config": {"alibi_bias_max": 5}}, "attn_config.alibi_bias_max"),
        ("mpt", {"attn_config": {"qk_ln": True}}, "attn_config.qk_ln"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers"),
        ("granite", {"logits_scaling": 0}, "logits_scaling"),
        ("exaone4", {"layer_types": ["full_attention"]}, "layer_types"),
        ("bloom", {"n_head": 5}, "n_head"),
        ("codegen", {"n_head": 6}, "n_head"),
        ("olmo3", {"rope_theta": 1000.0}, "rope_theta"),
        ("hunyuan_v1_dense", {"rope_parameters": {"rope_type": "dynamic", "alpha": -1.0}},
         "rope_parameters.alpha"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "alpha": 5.0}},
         "rope_parameters.alpha"),
        ("cohere", {"head_dim": 7}, "head_dim"),
    ],
)  # fmt: skip
def test_what_a_family_does_not_do_is_refused_by_its_name(
    tmp_path: Path, kind: str, settings: dict[str, Any], key: str
) -> None:
    registry.CASES.setdefault("gemma3", [registry.Case("gemma3", "empty", {})])
    with pytest.raises(InputError) as caught:
        spec_of(tmp_path, kind, **settings)
    assert str(caught.value.where).endswith(f"config.json: {key}")
    assert caught.value.expected


def test_slopes_are_floats_where_they_can_be_and_else_exact_powers() -> None:
    def shown(heads: int) -> list[str]:
        return [write(slope) for slope in alibi.slopes(heads)]

    assert shown(4) == ["1/4", "1/16", "1/64", "1/256"]
    assert shown(3) == ["1/16", "1/256", "1/4"]
    assert shown(16)[:3] == ["2^(-1/2)", "1/2", "2^(-3/2)"]
    assert [write(slope) for slope in alibi.mpt_slopes(3)] == ["1/16", "1/256", "1/4"]
    case = registry.CASES["bloom"][0]
    with runs.pair(case) as pair:
        assert pair.ours.weights["block.0.attn.slopes"].dtype == np.float32


def test_older_spellings_say_the_same(tmp_path: Path) -> None:
    def same(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        assert spec_of(tmp_path, kind, **old) == spec_of(tmp_path, kind, **new)

    linear = {"rope_type": "linear", "factor": 8.0}
    local, whole = {"rope_theta": 300.0}, {**linear, "rope_theta": 9000.0}
    same("gemma3_text",
         {"rope_scaling": linear, "rope_theta": 9000.0, "rope_local_base_freq": 300.0},
         {"rope_parameters": {"sliding_attention": local, "full_attention": whole}})  # fmt: skip
    long = {"short_factor": [1.0, 1.5, 2.0], "long_factor": [2.0, 3.0, 4.0]}
    same("phi3", {"rope_scaling": {"type": "su", **long}, "rope_theta": 500.0},
         {"rope_parameters": {"rope_type": "longrope", **long, "rope_theta": 500.0}})  # fmt: skip
    same("gemma", {"hidden_act": "gelu"}, {"hidden_act": "gelu_pytorch_tanh"})
    same(
        "phi", {"partial_rotary_factor": 0.25}, {"rope_parameters": {"partial_rotary_factor": 0.25}}
    )


def test_every_model_type_has_a_table_of_names() -> None:
    from byhand.names.families import MODULES

    assert {family.names for family in FAMILIES.values()} <= MODULES.keys()


@pytest.mark.parametrize("page", ["README.md", "README.es.md", "CHANGELOG.md"])
def test_the_number_of_compared_families_is_the_one_that_pages_tell(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text("utf-8")
    told = re.findall(r"(\d+) (?:families|familias)", text)
    record = json.loads(report.RECORD.read_text("utf-8"))
    assert told
    assert set(told) == {str(len(record["families"]))}
