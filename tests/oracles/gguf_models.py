"""Small models as GGUF files, with random numbers, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from byhand.files.gguf import open_gguf
from oracles.gguf_files import BLOCKS, Stored, floats, packed, whole


def settings_of(d: int, d_ff: int, layers: int, heads: int) -> dict[str, Any]:
    """The settings of a Llama."""
    return {
        "general.architecture": "llama",
        "llama.block_count": layers,
        "llama.context_length": 16,
        "llama.embedding_length": d,
        "llama.feed_forward_length": d_ff,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": heads,
        "llama.rope.dimension_count": d // heads,
        "llama.attention.layer_norm_rms_epsilon": 2.0**-10,
    }


def llama(
    kind: str = "F32", *, d: int = 4, vocab: int = 5, layers: int = 1, heads: int = 1,
    seed: int = 0, settings: Mapping[str, Any] | None = None,
    more: Mapping[str, Stored] | None = None,
) -> bytes:  # fmt: skip
    """A Llama whose matrices are of one type wherever their rows are whole blocks."""
    width = max(BLOCKS[kind][0], 6)
    said = settings_of(d, width, layers, heads) | dict(settings or {})
    made = _tensors(kind, d, width, vocab, layers, seed) | dict(more or {})
    return whole(said, made)


def tensors_of(raw: bytes) -> dict[str, bytes]:
    """The bytes of each tensor of a file that `whole` wrote."""
    with NamedTemporaryFile(suffix=".gguf") as file:
        file.write(raw)
        file.flush()
        found = open_gguf(Path(file.name)).tensors
        return {name: each.blocks().tobytes() for name, each in found.items()}


def _tensors(
    kind: str, d: int, width: int, vocab: int, layers: int, seed: int
) -> dict[str, Stored]:
    block = BLOCKS[kind][0]
    generator = np.random.default_rng(seed)
    made: dict[str, Stored] = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        if columns % block or kind == "F32":
            made[name] = floats(np.round(generator.normal(size=(rows, columns)) * 16) / 32)
        else:
            made[name] = packed(kind, (rows, columns), seed + len(made), 0.3)

    def gain(name: str) -> None:
        made[name] = floats(1 + np.round(generator.normal(size=d) * 4) / 16)

    matrix("token_embd.weight", vocab, d)
    for layer in range(layers):
        at = f"blk.{layer}."
        gain(f"{at}attn_norm.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"{at}{name}.weight", d, d)
        gain(f"{at}ffn_norm.weight")
        matrix(f"{at}ffn_gate.weight", width, d)
        matrix(f"{at}ffn_up.weight", width, d)
        matrix(f"{at}ffn_down.weight", d, width)
    gain("output_norm.weight")
    return made
