"""The commands on the folder of a checkpoint, as its user types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, processors
from transformers import LlamaConfig, LlamaForCausalLM

from byhand.golden import open_trace

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little Llama of random weights, with a tokenizer that puts <s> before each text."""
    path: Path = tmp_path_factory.mktemp("checkpoints") / "little-llama"
    pieces = ["<unk>", "<s>", "</s>", "▁", "o", "n", "c", "e", "▁o", "▁on", "▁onc", "▁once"]
    merges = [("▁", "o"), ("▁o", "n"), ("▁on", "c"), ("▁onc", "e")]
    tokenizer = Tokenizer(
        models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>")
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=12, hidden_size=8, intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
        bos_token_id=1, eos_token_id=2, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def test_the_first_step_shows_pieces_ids_and_special_tokens(byhand: Call, folder: Path) -> None:
    out = byhand("trace", str(folder), "once on", "--only", "tokens").out
    assert "text     once on" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["0", "<s>", "1"] in rows
    assert ["1", "'", "once'", "11"] in rows
    assert ["2", "'", "on'", "9"] in rows
    assert "position 0 (<s>): a special token" in out


def test_floats_are_the_default_and_every_step_has_an_address(byhand: Call, folder: Path) -> None:
    shown = json.loads(byhand("trace", str(folder), "once", "--json").out)
    assert shown["numbers"] == "float32"
    assert [step["address"] for step in shown["steps"]][-3:] == ["logits", "probs", "next"]
    tokens = [(token["id"], token["text"]) for token in shown["tokens"]]
    assert tokens == [(1, "<s>"), (11, " once")]


@pytest.mark.parametrize(
    ("asked", "names", "found"),
    [
        ("block.1.attn.weights", "tl", "blocks.1.attn.hook_pattern"),
        ("blocks.1.attn.hook_pattern", "byhand", "block.1.attn.weights"),
        ("model.layers.0.mlp.act_fn", "hf", "model.layers.0.mlp.act_fn"),
    ],
)
def test_steps_are_asked_for_and_written_under_other_names(
    byhand: Call, folder: Path, asked: str, names: str, found: str
) -> None:
    call = ("trace", str(folder), "once", "--only", asked, "--names", names, "--json")
    (step,) = json.loads(byhand(*call).out)["steps"]
    assert step["address"] == found


def test_golden_files_under_other_names_answer_to_both(
    byhand: Call, folder: Path, tmp_path: Path
) -> None:
    byhand("trace", str(folder), "once", "--out", str(tmp_path / "g"), "--names", "hf")
    saved = open_trace(tmp_path / "g")
    assert saved["lm_head"] is saved["logits"]
    assert saved["logits"].values.dtype == "float32"


def test_count_and_shapes_need_the_config_alone(byhand: Call, folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_bytes((folder / "config.json").read_bytes())
    for path in (folder, config):
        assert "each of the 2 blocks" in byhand("count", str(path)).out
        assert "blocks.1.attn.hook_z" in byhand("trace", str(path), "--shapes", "--names", "tl").out


def test_generating_gives_the_tokens_that_transformers_gives(byhand: Call, folder: Path) -> None:
    shown = json.loads(byhand("generate", str(folder), "once", "-n", "5", "--json").out)
    model = LlamaForCausalLM.from_pretrained(folder)
    expected = model.generate(torch.tensor([[1, 11]]), max_new_tokens=5, do_sample=False)
    assert [token["id"] for token in shown["generated"]] == expected[0, 2:].tolist()
    assert shown["ended"] == ("end token" if expected[0, -1] == 2 else "count")


def test_a_pickled_checkpoint_is_refused_with_a_way_out(byhand: Call, tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02.")
    (tmp_path / "config.json").write_text(
        '{"model_type": "gpt2", "vocab_size": 4, "n_positions": 4, "n_embd": 4, "n_layer": 1,'
        ' "n_head": 1}'
    )
    found = byhand("trace", str(tmp_path), "1 2")
    assert found.status == 2
    assert "pytorch_model.bin is pickled" in found.err
    assert "save_pretrained" in found.err


def test_a_truncated_file_is_refused_by_name(byhand: Call, folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-8])
    found = byhand("trace", str(tmp_path), "once")
    assert found.status == 2
    assert "model.safetensors" in found.err
    assert f"{len(whole):,}" in found.err


def test_a_checkpoint_learns_and_says_that_no_model_file_holds_its_tokenizer(
    byhand: Call, folder: Path, tmp_path: Path
) -> None:
    told = json.loads(byhand("step", str(folder), "once on once", "--lr", "0.01", "--json").out)
    before, after = told["steps"][0]["loss"]["value"], told["after"]["loss"]["value"]
    assert after < before
    refused = byhand("step", str(folder), "once on once", "--out", str(tmp_path / "new.yaml"))
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("error: a model file cannot hold this tokenizer")
    assert list(tmp_path.iterdir()) == []


def test_gradients_of_a_checkpoint_have_its_own_names(byhand: Call, folder: Path) -> None:
    call = ("trace", str(folder), "once on", "--names", "hf", "--json", "--only", "grad.weight.*")
    steps = json.loads(byhand(*call).out)["steps"]
    names = {step["address"] for step in steps if ".via." not in step["byhand"]}
    state = LlamaForCausalLM.from_pretrained(folder).state_dict()
    assert names == {f"grad.{name}" for name in state if name != "lm_head.weight"}  # tied
