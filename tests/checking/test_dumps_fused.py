"""What fused modules give is judged step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.families import registry, runs
from benchmarks.families.lifted import lifted

import byhand
from byhand.names.derived import fused_in

registry.every()
NEW = next(case for case in registry.CASES["falcon"] if case.name == "new")
QKV = "transformer.h.1.self_attention.query_key_value"
GATE = "model.layers.1.mlp.gate_up_proj"


def captured(pair: runs.Pair) -> dict[str, Any]:
    import torch

    with lifted():
        return dict(byhand.capture(pair.theirs, torch.tensor([pair.ids])).arrays)


@pytest.mark.parametrize(
    ("case", "module", "column", "step"),
    [
        (NEW, QKV, 0, "q"),
        (NEW, QKV, 2 * 6, "k"),  # two queries of six, a key and a value for each key head
        (NEW, QKV, 3 * 6 + 1, "v"),
        (NEW, QKV, 4 * 6, "q"),
        (registry.CASES["phi3"][0], GATE, 14, "gate"),
        (registry.CASES["phi3"][0], GATE, 15, "hidden"),
    ],
)
def test_a_mistake_in_a_column_is_one_of_its_step(
    case: registry.Case, module: str, column: int, step: str
) -> None:
    with runs.pair(case) as pair:
        arrays = captured(pair)
        spoilt = np.array(arrays[module])
        spoilt[0, 3, column] += 0.01
        claims = {"tokens": np.array([pair.ids]), module: spoilt}
        marking = byhand.check(pair.ours, claims, suspects=False)
    assert marking.first_error is not None
    part = "attn" if step in "qkv" else "mlp"
    assert marking.first_error.claim.address == f"block.1.{part}.{step}"
    right = [line.claim.address.rpartition(".")[2] for line in marking if line.verdict.follows]
    assert {*right, step} == ({"q", "k", "v"} if part == "attn" else {"gate", "hidden"})


def test_only_fused_modules_are_cut() -> None:
    assert [address for address, _source in fused_in("falcon", QKV)] == [
        "block.1.attn.q", "block.1.attn.k", "block.1.attn.v",
    ]  # fmt: skip
    assert fused_in("falcon", "transformer.h.1.mlp.dense_h_to_4h") == []
    assert fused_in("llama", "model.layers.0.self_attn.q_proj") == []
    assert fused_in("", QKV) == []
