"""Suspects of a checkpoint's weights: what is named with a model file is named with a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from suspected import own_pass, stored, suspected

from byhand.models import open_model
from oracles.checkpoints import random_model, saved

VOCAB, D = 19, 24
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": VOCAB, "n_positions": 16, "n_embd": D, "n_layer": 1, "n_head": 4},
    "llama": {
        "vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": 4,
        "intermediate_size": 40, "max_position_embeddings": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("tied", [True, False])
def test_a_head_that_is_read_without_being_transposed_is_named(
    family: str, tied: bool, tmp_path: Path
) -> None:
    theirs = random_model(
        family, tie_word_embeddings=tied, bos_token_id=None, eos_token_id=7, **SIZES[family]
    )
    model = open_model(saved(theirs, tmp_path, torch.float32))
    x = own_pass(model)["final.norm.out"]
    head = theirs.lm_head.weight.detach().numpy()  # as the file has it: vocab × d
    found = suspected(model, "logits", stored(x @ head.reshape(D, VOCAB)))
    assert found[0].kind == "weight-transposed"
    assert f"{D} × {VOCAB}" in found[0].sentence
    assert found[0].change.startswith("transpose embed.token" if tied else "transpose head")


def test_a_square_matrix_that_is_transposed_is_named(tmp_path: Path) -> None:
    theirs = random_model("gpt2", bos_token_id=None, eos_token_id=7, **SIZES["gpt2"])
    model = open_model(saved(theirs, tmp_path, torch.float32))
    mixed = own_pass(model)["block.0.attn.mixed"].transpose(1, 0, 2).reshape(-1, D)
    part = theirs.transformer.h[0].attn.c_proj
    matrix, bias = (x.detach().numpy() for x in (part.weight, part.bias))
    found = suspected(model, "block.0.attn.out", stored(mixed @ matrix.T + bias))
    assert found[0].kind == "weight-transposed"
    assert np.shape(matrix) == (D, D)
