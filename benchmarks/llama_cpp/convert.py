"""A Llama folder → a GGUF file, as llama.cpp's converter lays it out, with the gguf package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from byhand.files.mapped import Stored
from byhand.models.huggingface.folder import stored_tensors

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def convert(folder: Path, path: Path) -> None:
    """Writes the folder's model with every number as it is, in float32."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name(folder.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _tokenizer(writer, json.loads((folder / "tokenizer.json").read_text()), config)
    heads = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    for name, stored in stored_tensors(folder).items():
        _tensor(writer, name, stored, heads)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensor(writer: gguf.GGUFWriter, name: str, stored: Stored, heads: dict[str, int]) -> None:
    data = np.asarray(stored.array(), np.float32)
    outside = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm",
               "lm_head.weight": "output"}  # fmt: skip
    if name in outside:
        writer.add_tensor(f"{outside[name]}.weight", data)
        return
    layer, module = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
    if module in ("self_attn.q_proj", "self_attn.k_proj"):
        data = interleaved(data, heads[module[10]])
    writer.add_tensor(f"blk.{layer}.{NAMES[module]}.weight", data)


def interleaved(data: np.ndarray, heads: int) -> np.ndarray:
    """Rows reordered so that RoPE's pairs are neighbours."""
    return data.reshape(heads, 2, -1, data.shape[1]).swapaxes(1, 2).reshape(data.shape)


def _tokenizer(writer: gguf.GGUFWriter, table: dict[str, Any], config: dict[str, Any]) -> None:
    vocab: dict[str, int] = table["model"]["vocab"]
    signs = {token["id"] for token in table["added_tokens"]}
    tokens = sorted(vocab, key=vocab.__getitem__)
    spaced = table["model"]["byte_fallback"]
    writer.add_tokenizer_model("llama" if spaced else "gpt2")
    writer.add_token_list(tokens)
    kinds = [3 if id in signs else 6 if spaced and token.startswith("<0x") else 1
             for id, token in enumerate(tokens)]  # fmt: skip
    if spaced:
        rank: dict[str, int] = {}
        for place, (left, right) in enumerate(table["model"]["merges"]):
            rank.setdefault(left + right, place)
        kinds[0] = 2
        writer.add_token_scores([-float(rank.get(token, 1_000_000)) for token in tokens])
    else:
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges([" ".join(pair) for pair in table["model"]["merges"]])
        writer.add_add_bos_token(False)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
