"""What lies in a folder: parts that are missing, extra, misshapen, tied wrongly, or not for us."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from byhand.errors import ByhandError, InputError, ShapeError
from byhand.models import open_model, open_spec

D, VOCAB = 4, 5
LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 3, "max_position_embeddings": 8,
}  # fmt: skip
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "vocab_size": VOCAB, "n_positions": 8, "n_embd": D, "n_layer": 1,
    "n_head": 2,
}  # fmt: skip
NEOX: dict[str, Any] = {
    "model_type": "gpt_neox", "vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": 1,
    "num_attention_heads": 1, "intermediate_size": 3, "rotary_pct": 0.5,
}  # fmt: skip
Arrays = dict[str, np.ndarray[Any, np.dtype[np.float32]]]


def drawn(*shapes: tuple[str, tuple[int, ...]]) -> Arrays:
    noise = np.random.default_rng(5)
    return {name: noise.normal(size=shape).astype(np.float32) for name, shape in shapes}


def llama() -> Arrays:
    at = "model.layers.0."
    return drawn(
        ("model.embed_tokens.weight", (VOCAB, D)), ("model.norm.weight", (D,)),
        ("lm_head.weight", (VOCAB, D)), (at + "input_layernorm.weight", (D,)),
        (at + "post_attention_layernorm.weight", (D,)),
        *((f"{at}self_attn.{name}_proj.weight", (D, D)) for name in "qkvo"),
        (at + "mlp.gate_proj.weight", (3, D)), (at + "mlp.up_proj.weight", (3, D)),
        (at + "mlp.down_proj.weight", (D, 3)),
    )  # fmt: skip


def gpt2() -> Arrays:
    at = "h.0."
    return drawn(
        ("wte.weight", (VOCAB, D)), ("wpe.weight", (8, D)),
        *((f"{name}.{kind}", (D,)) for name in ("ln_f", at + "ln_1", at + "ln_2")
          for kind in ("weight", "bias")),
        (at + "attn.c_attn.weight", (D, 3 * D)), (at + "attn.c_attn.bias", (3 * D,)),
        (at + "attn.c_proj.weight", (D, D)), (at + "attn.c_proj.bias", (D,)),
        (at + "mlp.c_fc.weight", (D, 4 * D)), (at + "mlp.c_fc.bias", (4 * D,)),
        (at + "mlp.c_proj.weight", (4 * D, D)), (at + "mlp.c_proj.bias", (D,)),
    )  # fmt: skip


def neox() -> Arrays:
    at = "layers.0."
    return drawn(
        ("embed_in.weight", (VOCAB, D)), ("embed_out.weight", (VOCAB, D)),
        *((f"{name}.{kind}", (D,)) for kind in ("weight", "bias") for name in
          ("final_layer_norm", at + "input_layernorm", at + "post_attention_layernorm")),
        (at + "attention.query_key_value.weight", (3 * D, D)),
        (at + "attention.query_key_value.bias", (3 * D,)),
        (at + "attention.dense.weight", (D, D)), (at + "attention.dense.bias", (D,)),
        (at + "mlp.dense_h_to_4h.weight", (3, D)), (at + "mlp.dense_h_to_4h.bias", (3,)),
        (at + "mlp.dense_4h_to_h.weight", (D, 3)), (at + "mlp.dense_4h_to_h.bias", (D,)),
    )  # fmt: skip


def folder(path: Path, config: dict[str, Any] | None, arrays: Arrays | None) -> Path:
    path.mkdir(exist_ok=True)
    if config is not None:
        (path / "config.json").write_text(json.dumps(config), "utf-8")
    if arrays is not None:
        save_file(arrays, path / "model.safetensors")
    return path


def refused(path: Path, kind: type[ByhandError] = InputError) -> ByhandError:
    with pytest.raises(kind) as caught:
        open_model(path)
    return caught.value


# ------------------------------------------------------------------ names


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {name if "embed_out" in name else prefix + name: x for name, x in arrays.items()}


def bare(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): x for name, x in arrays.items()}


@pytest.mark.parametrize(
    ("config", "arrays"),
    [
        (GPT2, gpt2()), (GPT2, prefixed("transformer.", gpt2())),
        (LLAMA, llama()), (LLAMA, bare("model.", llama())),
        (NEOX, neox()), (NEOX, prefixed("gpt_neox.", neox())),
        (NEOX, {n.replace("embed_out", "lm_head"): x for n, x in neox().items()}),
    ],
)  # fmt: skip
def test_names_with_and_without_the_prefix_are_read(
    tmp_path: Path, config: dict[str, Any], arrays: Arrays
) -> None:
    model = open_model(folder(tmp_path, config, arrays))
    assert all(tensor.data.size == tensor.size for tensor in model.weights.values())
    ours = np.sort(np.concatenate([np.ravel(t.data) for t in model.weights.values()]))
    assert np.array_equal(ours, np.sort(np.concatenate([np.ravel(x) for x in arrays.values()])))


@pytest.mark.parametrize(
    ("config", "arrays", "leftovers"),
    [
        (GPT2, gpt2(), ["h.0.attn.bias", "h.0.attn.masked_bias"]),
        (LLAMA, llama(), ["model.layers.0.self_attn.rotary_emb.inv_freq",
                          "model.rotary_emb.inv_freq"]),
        (NEOX, neox(), ["layers.0.attention.bias", "layers.0.attention.masked_bias",
                        "layers.0.attention.rotary_emb.inv_freq"]),
    ],
)  # fmt: skip
def test_buffers_of_older_versions_are_left_alone(
    tmp_path: Path, config: dict[str, Any], arrays: Arrays, leftovers: list[str]
) -> None:
    extra = {name: np.ones(3, np.uint8) for name in leftovers}
    model = open_model(folder(tmp_path, config, {**arrays, **extra}))  # type: ignore[dict-item]
    assert sum(tensor.size for tensor in model.weights.values()) == sum(
        x.size for x in arrays.values()
    )


def test_a_tensor_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    extra = drawn(("model.layers.0.self_attn.q_proj.bias", (D,)))
    error = refused(folder(tmp_path, LLAMA, {**llama(), **extra}))
    assert error.message == (
        "the tensor model.layers.0.self_attn.q_proj.bias is none of a llama model "
        "with this config.json"
    )
    assert error.where == str(tmp_path)
    assert error.found == "model.layers.0.self_attn.q_proj.bias"


@pytest.mark.parametrize("name", ["h.0.attn.bias_more", "my.h.0.attn.bias", "h.x.attn.bias"])
def test_what_only_looks_like_an_old_buffer_is_refused(tmp_path: Path, name: str) -> None:
    error = refused(folder(tmp_path, GPT2, {**gpt2(), **drawn((name, (1,)))}))
    assert error.found == name


def test_a_layer_beyond_the_config_is_refused(tmp_path: Path) -> None:
    extra = {n.replace("layers.0", "layers.1"): x for n, x in llama().items() if "layers" in n}
    assert "model.layers.1." in refused(folder(tmp_path, LLAMA, {**llama(), **extra})).message


def test_missing_tensors_are_all_told(tmp_path: Path) -> None:
    arrays = llama()
    del arrays["model.layers.0.mlp.up_proj.weight"], arrays["model.norm.weight"]
    error = refused(folder(tmp_path, LLAMA, arrays))
    assert error.message == "the tensor model.layers.0.mlp.up_proj.weight is missing"
    assert error.expected == "model.layers.0.mlp.up_proj.weight 3×4"
    assert error.hint == "missing too: model.norm.weight"


def test_a_wrong_shape_is_refused_with_expected_and_found(tmp_path: Path) -> None:
    arrays = {**llama(), **drawn(("model.layers.0.mlp.up_proj.weight", (D, 3)))}
    error = refused(folder(tmp_path, LLAMA, arrays), ShapeError)
    assert error.where == (f"{tmp_path / 'model.safetensors'}: model.layers.0.mlp.up_proj.weight")
    assert (error.expected, error.found) == ("3×4 (d_ff × d)", "4×3")
    arrays = {**llama(), **drawn(("model.layers.0.mlp.up_proj.weight", (D, 2)))}
    assert refused(folder(tmp_path, LLAMA, arrays), ShapeError).hint is None


def test_a_transposed_matrix_is_said_to_be_so_and_which_others_may_be(tmp_path: Path) -> None:
    arrays = llama()
    for name in ("gate", "down"):
        file = f"model.layers.0.mlp.{name}_proj.weight"
        arrays[file] = np.ascontiguousarray(arrays[file].T)
    error = refused(folder(tmp_path, LLAMA, arrays), ShapeError)
    assert error.message.startswith("the tensor model.layers.0.mlp.gate_proj.weight has another")
    assert error.hint is not None
    fits, others, square = error.hint.split("; ")
    assert fits == "it fits when transposed: rows are d_ff here"
    assert others == "so do model.layers.0.mlp.down_proj.weight"
    at = "model.layers.0.self_attn."
    names = ", ".join(f"{at}{each}_proj.weight" for each in "qkvo")
    assert square == f"no shape tells whether square ones are transposed too: {names}"


def test_a_transposed_head_is_said_to_be_so_whatever_the_layout_of_the_family(
    tmp_path: Path,
) -> None:
    """GPT-2's matrices are input × output, its head is not."""
    head = drawn(("lm_head.weight", (D, VOCAB)))
    for config, arrays in ((LLAMA, llama()), (GPT2, gpt2())):
        untied = {**config, "tie_word_embeddings": False}
        error = refused(folder(tmp_path, untied, {**arrays, **head}), ShapeError)
        assert (error.expected, error.found) == ("5×4 (vocab × d)", "4×5")
        assert error.hint is not None
        assert error.hint.startswith("it fits when transposed: rows are vocab here")


def test_integers_are_refused_when_the_folder_is_opened(tmp_path: Path) -> None:
    arrays: Any = {**llama(), "model.norm.weight": np.ones(D, np.int8)}
    error = refused(folder(tmp_path, LLAMA, arrays))
    assert error.where == f"{tmp_path / 'model.safetensors'}: model.norm.weight"
    assert (error.expected, error.found) == ("F64, F32, F16, BF16", "I8")


# ------------------------------------------------------------------ when data is used


def test_what_is_not_a_number_is_found_when_the_tensor_is_used(tmp_path: Path) -> None:
    arrays = llama()
    arrays["model.layers.0.mlp.down_proj.weight"][2, 1] = np.nan
    model = open_model(folder(tmp_path, LLAMA, arrays))
    assert model.weights["block.0.mlp.out"].shape == (D, 3)
    with pytest.raises(InputError) as caught:
        _ = model.weights["block.0.mlp.out"].data
    assert caught.value.message == "model.layers.0.mlp.down_proj.weight[2,1] is not a number"
    assert caught.value.where == str(tmp_path / "model.safetensors")
    assert (caught.value.expected, caught.value.found) == ("a finite number", "nan")


def test_a_transposed_head_is_looked_at_like_the_others(tmp_path: Path) -> None:
    head = drawn(("lm_head.weight", (VOCAB, D)))
    head["lm_head.weight"][4, 1] = np.inf
    config = {**GPT2, "tie_word_embeddings": False}
    model = open_model(folder(tmp_path, config, {**gpt2(), **head}))
    assert model.weights["head"].shape == (D, VOCAB)
    with pytest.raises(InputError, match=r"lm_head\.weight\[4,1\] is not a number"):
        _ = model.weights["head"].data


def test_a_tied_head_in_the_file_must_be_the_embedding(tmp_path: Path) -> None:
    arrays, config = llama(), {**LLAMA, "tie_word_embeddings": True}
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"].copy()
    model = open_model(folder(tmp_path, config, arrays))
    assert "head" not in model.weights
    assert np.array_equal(model.weights["embed.token"].data, arrays["lm_head.weight"])
    arrays["lm_head.weight"][3, 2] += 1
    model = open_model(folder(tmp_path, config, arrays))
    with pytest.raises(InputError) as caught:
        _ = model.weights["embed.token"].data
    assert caught.value.where == f"{tmp_path / 'model.safetensors'}: lm_head.weight[3,2]"
    assert float(caught.value.found or 0) - float(caught.value.expected or 0) == pytest.approx(1)


def test_a_missing_head_asks_for_the_tie(tmp_path: Path) -> None:
    arrays = llama()
    del arrays["lm_head.weight"]
    error = refused(folder(tmp_path, LLAMA, arrays))
    assert error.message == "the tensor lm_head.weight is missing"
    assert error.hint == (
        "if the head is tied to the embedding, config.json says tie_word_embeddings"
    )


# ------------------------------------------------------------------ shards


def sharded(path: Path, change: Callable[[dict[str, Any]], None] = lambda index: None) -> Path:
    folder(path, LLAMA, None)
    arrays = llama()
    halves = {"a.safetensors": list(arrays)[:5], "b.safetensors": list(arrays)[5:]}
    for file, names in halves.items():
        save_file({name: arrays[name] for name in names}, path / file)
    index = {"weight_map": {name: file for file, names in halves.items() for name in names}}
    change(index)
    (path / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    return path


def test_shards_are_found_through_the_index(tmp_path: Path) -> None:
    model = open_model(sharded(tmp_path))
    assert np.array_equal(model.weights["block.0.mlp.out"].data,
                          llama()["model.layers.0.mlp.down_proj.weight"])  # fmt: skip


@pytest.mark.parametrize(
    "file", ["../a.safetensors", "/etc/a.safetensors", "x/a.safetensors", "a.bin", "..", "",
             "a\\b.safetensors", "a\0.safetensors", 5, None, "x" * 300 + ".safetensors"],
)  # fmt: skip
def test_an_index_names_files_of_its_own_folder_only(tmp_path: Path, file: Any) -> None:
    def change(index: dict[str, Any]) -> None:
        index["weight_map"]["model.norm.weight"] = file

    error = refused(sharded(tmp_path, change))
    assert error.where == (
        f"{tmp_path / 'model.safetensors.index.json'}: weight_map.model.norm.weight"
    )
    assert error.expected == "a safetensors file name without a folder"


def test_a_tensor_must_be_where_the_index_says(tmp_path: Path) -> None:
    def swap(index: dict[str, Any]) -> None:
        index["weight_map"]["model.norm.weight"] = "b.safetensors"

    error = refused(sharded(tmp_path, swap))
    assert error.message == "the tensor model.norm.weight is not in its file"
    assert error.where == str(tmp_path / "b.safetensors")

    def forget(index: dict[str, Any]) -> None:
        del index["weight_map"]["model.norm.weight"]

    error = refused(sharded(tmp_path, forget))
    assert error.message == "the tensor model.norm.weight is not in the index"
    assert error.where == str(tmp_path / "a.safetensors")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    (sharded(tmp_path) / "b.safetensors").unlink()
    error = refused(tmp_path)
    assert error.where == str(tmp_path / "b.safetensors")
    assert error.message == "the file cannot be read: No such file or directory"


@pytest.mark.parametrize("index", [[], {}, {"weight_map": []}, {"weight_map": {}}, 5])
def test_an_index_without_a_map_is_refused(tmp_path: Path, index: Any) -> None:
    (sharded(tmp_path) / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    assert (refused(tmp_path).where or "").startswith(
        str(tmp_path / "model.safetensors.index.json")
    )


# ------------------------------------------------------------------ what is not for us


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was opened",))


PICKLED = ["pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "consolidated.00.pth",
           "last.ckpt", "weights.pkl"]  # fmt: skip
OTHER = ["tf_model.h5", "flax_model.msgpack", "model.ggml"]


@pytest.mark.parametrize("name", [*PICKLED, *OTHER])
def test_other_formats_are_refused_with_a_way_out(tmp_path: Path, name: str) -> None:
    folder(tmp_path, LLAMA, None)
    (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    given = [tmp_path / name] if "index" in name else [tmp_path, tmp_path / name]
    for path in given:
        error = refused(path)
        assert error.where == str(tmp_path / name)
        assert ("pickled" in error.message) == (name in PICKLED)
        assert error.expected == "….safetensors"
        assert error.hint == (
            "convert it where you trust it, with transformers: "
            f"AutoModelForCausalLM.from_pretrained({str(tmp_path)!r})"
            ".save_pretrained('converted')"
        )
    assert open_spec(tmp_path).d_model == D  # the architecture needs no weights


def test_a_folder_with_a_gguf_file_says_to_give_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert refused(tmp_path).hint == f"give the file: {tmp_path / 'model.gguf'}"
    folder(tmp_path, LLAMA, None)
    assert refused(tmp_path).hint == f"give the file: {tmp_path / 'model.gguf'}"


def test_pickled_weights_beside_safetensors_are_left_alone(tmp_path: Path) -> None:
    folder(tmp_path, LLAMA, llama())
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    assert open_model(tmp_path).spec.d_model == D


def test_weights_alone_are_refused_with_their_folder(tmp_path: Path) -> None:
    folder(tmp_path, LLAMA, llama())
    error = refused(tmp_path / "model.safetensors")
    assert error.message == "these are weights without a config.json"
    assert error.hint == f"give the folder: {tmp_path}"
    with pytest.raises(InputError, match="these are weights without"):
        open_spec(tmp_path / "model.safetensors")


def test_a_config_alone_is_an_architecture_without_weights(tmp_path: Path) -> None:
    folder(tmp_path, LLAMA, None)
    (tmp_path / "config.json").rename(tmp_path / "small.json")
    assert open_spec(tmp_path / "small.json").d_model == D
    assert open_spec(tmp_path / "small.json").name == tmp_path.name
    error = refused(tmp_path / "small.json")
    assert error.message == "this is an architecture without weights"
    assert error.hint == "byhand count and byhand trace --shapes need no weights"


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    error = refused(folder(tmp_path, LLAMA, None))
    assert error.message == "this folder has no weights"
    assert error.found == "config.json"


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    error = refused(folder(tmp_path, None, llama()))
    assert error.message == "this folder has no config.json"
    assert error.found == "model.safetensors"
    with pytest.raises(InputError, match=r"this folder has no config\.json"):
        open_spec(tmp_path)


def test_an_adapter_is_refused_with_a_way_out(tmp_path: Path) -> None:
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_text("{}")
    error = refused(tmp_path)
    assert error.found == "adapter_config.json, adapter_model.safetensors"
    assert error.hint == (
        "this is an adapter: merge it into its model first (merge_and_unload in peft)"
    )


def test_a_cache_leads_to_its_snapshots(tmp_path: Path) -> None:
    (tmp_path / "snapshots").mkdir()
    assert refused(tmp_path).hint == "this is a cache: give one of the folders under snapshots"


def test_a_model_file_in_json_is_still_a_model_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({
        "vocabulary": ["a", "b"],
        "model": {"d_model": 2, "layers": 0, "attention": "none", "mlp": "none"},
        "weights": {"embed.token": [[1, 0], [0, 1]]},
    }), "utf-8")  # fmt: skip
    assert open_model(path).vocabulary.tokens == ("a", "b")


# ------------------------------------------------------------------ the end of a text


@pytest.mark.parametrize(
    ("config", "generation", "ends"),
    [
        ({}, None, ()), ({"eos_token_id": 2}, None, (2,)), ({"eos_token_id": [4, 2]}, None, (4, 2)),
        ({"eos_token_id": None}, None, ()), ({"eos_token_id": 2}, {"eos_token_id": [3, 1]}, (3, 1)),
        ({"eos_token_id": 2}, {}, (2,)), ({"eos_token_id": 2}, {"eos_token_id": None}, (2,)),
        ({"eos_token_id": 0}, {"eos_token_id": 3}, (3,)),
    ],
)  # fmt: skip
def test_generation_ends_where_the_folder_says(
    tmp_path: Path, config: dict[str, Any], generation: dict[str, Any] | None, ends: tuple[int, ...]
) -> None:
    folder(tmp_path, {**LLAMA, **config}, llama())
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation), "utf-8")
    assert open_model(tmp_path).ends == ends


@pytest.mark.parametrize("bad", [-1, 1.5, True, "2", [2, None], {}])
def test_an_end_that_is_no_id_is_refused(tmp_path: Path, bad: Any) -> None:
    folder(tmp_path, LLAMA, llama())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": bad}), "utf-8")
    error = refused(tmp_path)
    assert error.where == f"{tmp_path / 'generation_config.json'}: eos_token_id"


def test_arrays_read_back_what_was_saved(tmp_path: Path) -> None:
    """The names of every tensor of one family, one by one."""
    model = open_model(folder(tmp_path, NEOX, neox()))
    stored = load_file(tmp_path / "model.safetensors")
    pairs = {
        "embed.token": "embed_in.weight", "head": "embed_out.weight",
        "block.0.attn.qkv": "layers.0.attention.query_key_value.weight",
        "block.0.attn.out_bias": "layers.0.attention.dense.bias",
        "block.0.mlp.norm.gain": "layers.0.post_attention_layernorm.weight",
        "block.0.mlp.hidden": "layers.0.mlp.dense_h_to_4h.weight",
        "final.norm.bias": "final_layer_norm.bias",
    }  # fmt: skip
    for ours, theirs in pairs.items():
        assert np.array_equal(model.weights[ours].data, stored[theirs])
