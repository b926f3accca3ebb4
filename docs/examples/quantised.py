"""Writes the folders of docs/quantised.md: a small random Llama, and the same in 4 bits as GPTQ has it.

    python docs/examples/quantised.py

NumPy alone: a safetensors file is a header of JSON and the data.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Data = npt.NDArray[Any]
D, FF, VOCAB, BITS, GROUP = 32, 64, 16, 4, 16
CONFIG = {
    "model_type": "llama", "hidden_size": D, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 2, "intermediate_size": FF, "vocab_size": VOCAB, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 32, "tie_word_embeddings": False,
}  # fmt: skip
SHAPES = {
    "self_attn.q_proj": (D, D), "self_attn.k_proj": (D // 2, D), "self_attn.v_proj": (D // 2, D),
    "self_attn.o_proj": (D, D), "mlp.gate_proj": (FF, D), "mlp.up_proj": (FF, D),
    "mlp.down_proj": (D, FF),
}  # fmt: skip
QUANTISED = {"quant_method": "gptq", "bits": BITS, "group_size": GROUP, "desc_act": False,
             "sym": False, "checkpoint_format": "gptq"}  # fmt: skip


def model(random: np.random.Generator) -> dict[str, Data]:
    """Random weights in float16."""
    made = {
        "model.embed_tokens.weight": random.normal(0, 1, (VOCAB, D)),
        "model.norm.weight": np.ones(D),
        "lm_head.weight": random.normal(0, 0.6, (VOCAB, D)),
    }
    for layer in range(2):
        start = f"model.layers.{layer}."
        for name, shape in SHAPES.items():
            made[f"{start}{name}.weight"] = random.normal(0, 0.6 / np.sqrt(shape[1] / 8), shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            made[f"{start}{name}.weight"] = 1 + random.normal(0, 0.1, D)
    return {name: data.astype("<f2") for name, data in made.items()}


def words(codes: Data) -> Data:
    """Codes of 4 bits, eight to a word of 32 bits along the first axis, the first one lowest."""
    eights = codes.astype("<u4").reshape(-1, 8, *codes.shape[1:])
    places = np.arange(0, 32, BITS, dtype="<u4").reshape(1, 8, *[1] * (codes.ndim - 1))
    return np.bitwise_or.reduce(eights << places, axis=1).view("<i4")


def quantised(matrix: Data) -> dict[str, Data]:
    """A matrix (out, in) rounded to 16 levels between the least and the largest of its group."""
    out, inputs = matrix.shape
    groups = matrix.astype(np.float64).T.reshape(inputs // GROUP, GROUP, out)  # (group, in, out)
    low, high = np.minimum(groups.min(axis=1), 0), np.maximum(groups.max(axis=1), 0)
    scale = ((high - low) / 15).astype("<f2")
    zero = np.clip(np.round(-low / scale.astype(np.float64)), 1, 15)
    codes = np.clip(np.round(groups / scale[:, None].astype(np.float64) + zero[:, None]), 0, 15)
    return {
        "qweight": words(codes.reshape(inputs, out)),
        "qzeros": words((zero - 1).T).T.copy(),  # of version 1: less 1
        "scales": scale,
        "g_idx": (np.arange(inputs) // GROUP).astype("<i4"),
    }


def write(folder: Path, tensors: dict[str, Data], **config: Any) -> None:
    """A folder of a config and the tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    said = json.dumps({**CONFIG, **config}, indent=1)
    (folder / "config.json").write_text(said + "\n", "utf-8")
    kinds = {"f2": "F16", "i4": "I32"}
    header, at = {}, 0
    for name, data in tensors.items():
        end = at + data.nbytes
        header[name] = {"dtype": kinds[data.dtype.str[1:]], "shape": list(data.shape),
                        "data_offsets": [at, end]}  # fmt: skip
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(data).tobytes() for data in tensors.values())
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)


def main() -> None:
    """Both folders, beside this file."""
    here = Path(__file__).with_suffix("")
    original = model(np.random.default_rng(7))
    write(here / "original", original)
    packed: dict[str, Data] = {}
    for name, data in original.items():
        if name.endswith("_proj.weight"):
            stem = name.removesuffix("weight")
            packed |= {stem + part: each for part, each in quantised(data).items()}
        else:
            packed[name] = data
    write(here / "gptq", packed, quantization_config=QUANTISED)


if __name__ == "__main__":
    main()
