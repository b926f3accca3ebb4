"""Small models as GGUF files, with random numbers, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.gguf_files import BLOCKS, Stored, floats, packed, whole


def llama(
    kind: str = "F32", *, d: int = 4, d_ff: int | None = None, vocab: int = 5, layers: int = 1,
    heads: int = 1, seed: int = 0,
) -> bytes:  # fmt: skip
    """A Llama whose matrices are of one type wherever their rows are whole blocks."""
    block = BLOCKS[kind][0]
    width = d_ff or max(block, 6)
    settings: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": layers,
        "llama.context_length": 16,
        "llama.embedding_length": d,
        "llama.feed_forward_length": width,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": heads,
        "llama.rope.dimension_count": d // heads,
        "llama.attention.layer_norm_rms_epsilon": 2.0**-10,
    }
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
    return whole(settings, made)
