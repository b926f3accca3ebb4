"""Models in GGUF files: opened, traced exactly, proven, counted, generated from, refused."""

from __future__ import annotations

import contextlib
import pickle
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import ByhandError, InputError
from byhand.models import open_model, open_spec
from byhand.models.gguf.architectures import KINDS
from byhand.names.families import MODULES
from byhand.numbers.exact import Exact
from oracles.ggml_by_hand import BY_HAND
from oracles.gguf_files import BLOCKS, floats, packed, whole
from oracles.gguf_models import llama, settings_of, tensors_of

PACKED = tuple(BY_HAND)


def opened(folder: Path, raw: bytes) -> byhand.Model:
    path = folder / "m.gguf"
    path.write_bytes(raw)
    return open_model(path)


@pytest.mark.parametrize("kind", PACKED)
def test_a_llama_of_every_type_is_traced_exactly_and_its_next_token_proven(
    tmp_path: Path, kind: str
) -> None:
    model = opened(tmp_path, llama(kind))
    weight = model.weights["block.0.mlp.out"]
    block, size = BLOCKS[kind]
    assert (weight.stored, weight.bits) == (kind, Fraction(8 * size, block))
    raw = tensors_of(llama(kind))["blk.0.ffn_down.weight"]
    assert [Fraction(float(x)) for x in weight.data[0, :8]] == [
        BY_HAND[kind](raw[:size], place) for place in range(8)
    ]
    exact = byhand.trace(model, "1", numbers=Exact(), only="next")
    proven = byhand.trace(model, "1 2", digits=12)
    rounded = byhand.trace(model, "1 2", numbers="float64")
    first, *_rest = proven["next"].value
    assert [each.proven for each in (*exact["next"].value, *proven["next"].value)] == [True] * 3
    assert exact["next"].value[0].id == first.id
    assert [each.id for each in rounded["next"].value] == [each.id for each in proven["next"].value]


def test_the_numbers_of_a_file_are_unpacked_once_for_a_trace_and_not_kept(tmp_path: Path) -> None:
    model = opened(tmp_path, llama("Q4_K"))
    weight = model.weights["block.0.mlp.out"]
    assert weight.dtype == np.float64
    assert weight._data is None
    byhand.trace(model, "1 2", numbers="float64")
    assert weight._data is None


def test_another_process_opens_the_file_instead_of_being_sent_its_numbers(tmp_path: Path) -> None:
    weight = opened(tmp_path, llama("Q4_K")).weights["block.0.mlp.out"]
    sent = pickle.dumps(weight)
    assert len(sent) < 2000 < weight.data.nbytes
    there = pickle.loads(sent)
    assert np.array_equal(there.data, weight.data)
    assert (there.stored, there.bits, there.shape) == ("Q4_K", Fraction(9, 2), weight.shape)
    assert there.addends is not None
    assert weight.addends is not None
    assert np.array_equal(there.addends(), weight.addends())


@pytest.mark.parametrize("seed", range(10))
def test_a_mutated_model_gives_only_our_errors(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    whole_file = llama("Q8_0", settings={"tokenizer.ggml.model": "llama"})
    for _each in range(8):
        raw = bytearray(whole_file)
        for _flip in range(chance.randrange(1, 4)):
            at, size = chance.randrange(1200), chance.choice((1, 2, 4, 8))
            value = chance.choice((0, 1, (1 << 8 * size) - 1, chance.randrange(1 << 8 * size)))
            raw[at : at + size] = value.to_bytes(size, "little")
        with contextlib.suppress(ByhandError):
            byhand.trace(opened(tmp_path, bytes(raw)), "1", numbers="float64")


def test_a_file_is_counted_and_continued_like_any_model(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(llama("Q8_0", d=32, vocab=7))
    inventory = byhand.count(path)
    assert inventory["count.embedding"] == 7 * 32
    assert inventory["count.block.0"] == 4 * 32 * 32 + 3 * 32 * 32 + 2 * 32
    chosen = [step.id for step in byhand.generate(path, "1 2", count=3)]
    assert len(chosen) == 3
    assert chosen[0] == byhand.trace(path, "1 2", numbers="float32")["next"].value[-1].id
    assert open_spec(path).blocks[0].attention == open_model(path).spec.blocks[0].attention


def test_rope_pairs_are_neighbours_where_the_converter_made_them_so(tmp_path: Path) -> None:
    attention = opened(tmp_path, llama(d=8, heads=2)).spec.blocks[0].attention
    assert attention is not None
    assert attention.rotary is not None
    assert (attention.rotary.pairing, attention.rotary.width) == ("interleaved", 4)


def test_the_epsilon_of_a_norm_is_the_float32_that_the_file_holds(tmp_path: Path) -> None:
    raw = llama(settings={"llama.attention.layer_norm_rms_epsilon": 1e-5})
    assert opened(tmp_path, raw).spec.final_norm.eps == Fraction(float(np.float32(1e-5)))


def test_divisors_of_the_angles_are_read_as_they_are(tmp_path: Path) -> None:
    raw = llama(d=8, more={"rope_freqs.weight": floats([1.0, 2.0, 4.0, 8.0])})
    attention = opened(tmp_path, raw).spec.blocks[0].attention
    assert attention is not None
    assert attention.rotary is not None
    assert attention.rotary.scaling is not None
    plain = opened(tmp_path, llama(d=8))
    turned = byhand.trace(open_model(tmp_path / "m.gguf"), "1 2", numbers="float64")
    assert attention.rotary.scaling.short_factors == (1, 2, 4, 8)
    (tmp_path / "m.gguf").write_bytes(raw)
    scaled = byhand.trace(tmp_path / "m.gguf", "1 2", numbers="float64")
    keys = "block.0.attn.k_rotated"
    assert np.array_equal(scaled[keys].array[:, :, :2], turned[keys].array[:, :, :2])
    assert not np.array_equal(scaled[keys].array[:, :, 2:], turned[keys].array[:, :, 2:])
    assert plain.spec.blocks[0].attention != attention


def test_experts_of_a_file_are_stacked_and_chosen(tmp_path: Path) -> None:
    settings = settings_of(d=4, d_ff=32, layers=1, heads=1) | {
        "llama.expert_count": 3, "llama.expert_used_count": 2,
    }  # fmt: skip
    generator = np.random.default_rng(0)
    stored: dict[str, Any] = {
        "token_embd.weight": floats(generator.normal(size=(5, 4))),
        "output_norm.weight": floats(np.ones(4)),
        "blk.0.attn_norm.weight": floats(np.ones(4)),
        "blk.0.ffn_norm.weight": floats(np.ones(4)),
        "blk.0.ffn_gate_inp.weight": floats(generator.normal(size=(3, 4))),
        "blk.0.ffn_gate_exps.weight": floats(generator.normal(size=(3, 32, 4))),
        "blk.0.ffn_up_exps.weight": floats(generator.normal(size=(3, 32, 4))),
        "blk.0.ffn_down_exps.weight": packed("MXFP4", (3, 4, 32), seed=0),
    }
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        stored[f"blk.0.{name}.weight"] = floats(generator.normal(size=(4, 4)))
    model = opened(tmp_path, whole(settings, stored))
    assert model.weights["block.0.mlp.out"].shape == (3, 4, 32)
    chosen = byhand.trace(model, "1 2", numbers="float64")["block.0.mlp.chosen"].array
    assert chosen.sum(axis=1).tolist() == [2, 2]


# ------------------------------------------------------------------ tokenizers


def test_pieces_with_scores_are_merged_best_first_and_the_rest_is_bytes(tmp_path: Path) -> None:
    words = ["<unk>", "<s>", "<0x21>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁a", "▁ab"]
    scores = [0, 0, 0, 0, 0, -9, -8, -7, -2, -1, -3]
    kinds = [2, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1]
    model = opened(tmp_path, llama(vocab=11, settings={
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": np.array(scores, "<f4"),
        "tokenizer.ggml.token_type": np.array(kinds, "<i4"), "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 0,
    }))  # fmt: skip
    encode = model.vocabulary.encode
    assert encode("ab a!é") == (1, 10, 9, 2, 3, 4)
    assert model.vocabulary.decode(encode("ab a!é")) == "ab a!é"
    assert model.vocabulary.tokens[10] == " ab"
    assert model.ends == (0,)


def test_byte_level_merges_follow_the_cuts_of_their_pattern(tmp_path: Path) -> None:
    words = ["<|end|>", "1", "2", "3", "4", "a", "Ġ", "Ġa", "12", "34", "23"]
    said = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.merges": ["Ġ a", "2 3", "1 2", "3 4"],
        "tokenizer.ggml.token_type": np.array([3] + [1] * 10, "<i4"),
    }  # fmt: skip
    cut: dict[str, tuple[int, ...]] = {}
    for pre in ("gpt-2", "llama-bpe", "smollm"):
        raw = llama(vocab=11, settings=said | {"tokenizer.ggml.pre": pre})
        cut[pre] = opened(tmp_path, raw).vocabulary.encode("1234 a<|end|>")
    assert cut == {
        "gpt-2": (1, 10, 4, 7, 0),  # 1234 is one word: 23 is merged first
        "llama-bpe": (1, 10, 4, 7, 0),  # 123, then 4
        "smollm": (1, 2, 3, 4, 7, 0),  # each digit alone
    }


def test_other_tokenizers_are_ids_with_a_note(tmp_path: Path) -> None:
    model = opened(tmp_path, llama())
    assert model.notes == ("the file has no tokenizer: the text is ids from 0 to 4",)
    model = opened(tmp_path, llama(settings={"tokenizer.ggml.model": "bert"}))
    assert "does not read its tokenizer (bert)" in model.notes[0]
    assert model.vocabulary.encode("3 1") == (3, 1)


# ------------------------------------------------------------------ what is refused

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown architecture": ({"general.architecture": "mamba"}, "models of type mamba"),
    "a setting nobody reads": ({"llama.attention.temperature_scale": 2.0}, "does not know the"),
    "no heads": ({"llama.attention.head_count": 0}, "llama.attention.head_count cannot be 0"),
    "a negative epsilon": ({"llama.attention.layer_norm_rms_epsilon": -1.0}, "cannot be"),
    "a scaling it lacks": ({"llama.rope.scaling.type": "other"}, "llama.rope.scaling.type"),
    "another width": ({"llama.embedding_length": 8}, "another shape than the settings say"),
    "more layers": ({"llama.block_count": 2}, "is missing"),
    "scores of a text": ({"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a"],
                          "tokenizer.ggml.scores": "x"}, "tokenizer of this file"),
    "a word for a list": ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": "a",
                           "tokenizer.ggml.pre": "gpt-2"}, "tokenizer of this file"),
    "no number": ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "cannot be"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    changed, reason = REFUSED[name]
    with pytest.raises(InputError) as caught:
        opened(tmp_path, llama(settings=changed))
    assert reason in caught.value.message
    assert str(tmp_path) in (caught.value.where or "")


def test_a_tensor_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is none of a llama model"):
        opened(tmp_path, llama(more={"blk.0.attn_q.scale": floats([1.0])}))


def test_every_architecture_of_the_list_is_known() -> None:
    assert {kind.family for kind in KINDS.values()} <= set(MODULES)
    assert set(KINDS) == {
        "llama", "qwen2", "qwen3", "qwen2moe", "qwen3moe", "gemma", "gemma2", "gemma3", "phi2",
        "phi3", "gpt2", "gptneox", "falcon", "starcoder2", "stablelm", "olmo", "olmo2", "command-r",
        "granite", "gpt-oss", "deepseek2",
    }  # fmt: skip
