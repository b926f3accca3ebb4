"""Dumps of models in GGUF files: what llama.cpp rounds is no error, a wrong layout is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.files.ggml_slips import LAYOUTS
from byhand.weights import Tensor, Weights
from oracles.gguf_files import BLOCKS
from oracles.gguf_models import llama

TEXT = "1 5 3 2 9 14 7 11 4 8 6 12"
CLAIMED = (
    "block.0.attn.add",
    "block.0.mlp.hidden",
    "block.0.mlp.gated",
    "block.0.mlp.out",
    "logits",
)
NAME = "block.0.mlp.out"
# one mistake for each type; benchmarks/llama_cpp/planted.py plants them all
PLANTED = {
    "Q4_0": "nibbles", "Q4_1": "sign", "Q5_0": "upper", "Q5_1": "minima", "Q8_0": "before",
    "Q2_K": "exchanged", "Q3_K": "groups", "Q4_K": "sign", "Q5_K": "upper", "Q6_K": "offset",
    "IQ4_NL": "pairs", "IQ4_XS": "behind", "MXFP4": "nibbles", "TQ1_0": "before",
    "TQ2_0": "nibbles", "IQ1_S": "before", "IQ1_M": "behind", "IQ2_XXS": "behind",
    "IQ2_XS": "groups", "IQ2_S": "upper", "IQ3_XXS": "before", "IQ3_S": "groups",
}  # fmt: skip
WORDS = {
    "nibbles": "with the codes of each byte exchanged",
    "pairs": "with the two codes of each byte side by side",
    "before": "with each scale of the block before",
    "behind": "with each scale of the block behind",
    "groups": "with the scales of its groups moved by one",
    "upper": "without the upper bits of its codes",
    "sign": "with the sign of the minima turned round",
    "minima": "without its minima",
    "exchanged": "with the scales of codes and of minima exchanged",
    "offset": "without what is taken from each code",
}


def opened(folder: Path, kind: str) -> byhand.Model:
    path = folder / "m.gguf"
    path.write_bytes(llama(kind, d=32 if BLOCKS[kind][0] == 32 else 16, vocab=16))
    return byhand.open_model(path)


def dumped(model: byhand.Model) -> dict[str, Any]:
    trace = byhand.trace(model, TEXT, numbers="float32")
    return {address: np.asarray(trace[address].array) for address in CLAIMED}


def test_every_type_has_a_planted_mistake() -> None:
    assert set(PLANTED) == set(LAYOUTS)
    assert set(PLANTED.values()) == set(WORDS)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_of_unpacking_is_named(tmp_path: Path, kind: str) -> None:
    model, slip = opened(tmp_path, kind), PLANTED[kind]
    misread = model.weights[NAME].misread
    assert misread is not None
    wrong = dict(model.weights) | {NAME: Tensor(NAME, np.asarray(dict(misread())[slip]))}
    claims = dumped(replace(model, weights=Weights(wrong)))
    marking = byhand.check(model, claims, text=TEXT, precision="float32+ggml")
    assert marking.first_error is not None
    assert marking.first_error.address == NAME
    cause = marking.texts[0].causes[0]
    assert cause.kind == "weight-packing"
    assert cause.sentence == (f"it follows if {NAME}, which is {kind}, is unpacked {WORDS[slip]}")


def test_right_numbers_in_the_names_of_llama_cpp_are_judged_as_it_works(tmp_path: Path) -> None:
    model = opened(tmp_path, "Q4_K")
    right = dumped(model)
    dump = {
        "ffn_inp-0": right["block.0.attn.add"], "ffn_up-0": right["block.0.mlp.hidden"],
        "ffn_swiglu-0": right["block.0.mlp.gated"], "ffn_out-0": right[NAME],
        "result_output": right["logits"], "attn_out-0": np.zeros((12, 16), np.float32),
    }  # fmt: skip
    marking = byhand.check(model, dump, text=TEXT, suspects=False)
    assert marking.texts[0].precision == "float32+ggml+flash"
    dump["kq_soft_max-0"] = np.ones((1, 12, 12), np.float32)
    marking = byhand.check(model, dump, text=TEXT, suspects=False)
    assert marking.texts[0].precision == "float32+ggml"
    by_line = {line.address: line.verdict.value for line in marking.texts[0].lines}
    assert by_line[NAME] == "right"
