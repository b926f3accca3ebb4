"""Suspects that look at what was written: a coarser format, and slips of the pen.

Conversions are torch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from suspected import SPECS, Judge, own_pass, random_model, stored, suspected

from byhand.checking.suspects import Edit
from byhand.checking.suspects.casts import rounded_to
from byhand.model import Model

Data = npt.NDArray[Any]
GPT2, LLAMA = "gpt2", "llama"
MODELS = {family: random_model(SPECS[family]()) for family in (GPT2, LLAMA)}
AT = "block.1"


def weight(model: Model, name: str) -> Data:
    return np.asarray(model.weights[name].data, dtype=np.float64)


# ------------------------------------------------------------------------ precision


@pytest.mark.parametrize(
    ("format", "dtype"),
    [("bfloat16", torch.bfloat16), ("float16", torch.float16),
     ("float8_e4m3", torch.float8_e4m3fn), ("float8_e5m2", torch.float8_e5m2)],
)  # fmt: skip
def test_rounding_is_that_of_torch(format: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(4000) * 2.0 ** rng.integers(-20, 6, 4000)
    ours = rounded_to(format, x.astype(np.float32).astype(np.float64))
    theirs = torch.tensor(x, dtype=torch.float32).to(dtype).double().numpy()
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn])
@pytest.mark.parametrize("address", [f"{AT}.attn.norm.out", f"{AT}.attn.weights", f"{AT}.mlp.out"])
def test_a_result_that_was_cast_is_explained_by_its_precision(
    dtype: torch.dtype, address: str
) -> None:
    model = MODELS[GPT2]
    right = own_pass(model)[address]
    cast = torch.tensor(right).to(dtype).double().numpy()
    judge = Judge(model, {**own_pass(model), address: cast})
    found, judged = judge.suspects(address)[0]
    assert judged.times is None or judged.times < 3  # also where either neighbour is possible
    assert found.kind == "precision"
    assert str(dtype).removeprefix("torch.").removesuffix("fn") in found.sentence


def test_weights_packed_into_bytes_are_explained_by_their_precision() -> None:
    model = MODELS[LLAMA]
    x, matrix = own_pass(model)[f"{AT}.mlp.gated"], weight(model, f"{AT}.mlp.out")
    step = np.abs(matrix).max(axis=1, keepdims=True) / 127
    packed = stored(x @ (np.round(matrix / step) * step).T)
    found = suspected(model, f"{AT}.mlp.out", packed)[0]
    assert found.kind == "precision"
    assert "int8" in found.sentence


def test_products_of_tf32_are_explained_by_their_precision() -> None:
    model = MODELS[LLAMA]
    x, matrix = own_pass(model)[f"{AT}.mlp.gated"], weight(model, f"{AT}.mlp.out")

    def tf32(data: Data) -> Data:
        bits = data.astype(np.float32).view(np.int32).astype(np.int64)
        bits = bits + 0xFFF + ((bits >> 13) & 1) & ~0x1FFF
        return bits.astype(np.int32).view(np.float32).astype(np.float64)

    found = suspected(model, f"{AT}.mlp.out", stored(tf32(x) @ tf32(matrix).T))[0]
    assert found.kind == "precision"
    assert "tf32" in found.sentence


# ------------------------------------------------------------------------ slips of the pen


def by_hand(change: Callable[[Data], None], places: int = 2) -> list[Edit]:
    """Who is suspected where a line of decimals is changed."""
    model = MODELS[GPT2]
    lines = {name: np.round(x, places) for name, x in own_pass(model).items()}
    judge = Judge(model, lines, precision="exact", slack=0.5 * 10.0**-places, by_hand=True)
    at = f"{AT}.attn.add"
    wrong = np.round(lines["block.0.mlp.add"] + lines[f"{AT}.attn.out"], places)
    change(wrong)
    judge.dump = {**lines, at: wrong}
    return [edit for edit, _judged in judge.suspects(at)]


def test_one_sign_that_slipped() -> None:
    def slip(x: Data) -> None:
        x[2, 5] *= -1

    found = by_hand(slip)[0]
    assert found.kind == "sign-slip"
    assert found.sentence == "it follows if block.1.attn.add[2,5] has the wrong sign"


def test_a_decimal_point_that_slipped() -> None:
    def slip(x: Data) -> None:
        x[1, 3] *= 10

    found = by_hand(slip)[0]
    assert found.kind == "decimal-point"
    assert found.sentence == "it follows if the decimal point of block.1.attn.add[1,3] slipped by 1"


def test_two_digits_that_are_exchanged() -> None:
    where = None

    def slip(x: Data) -> None:
        nonlocal where
        for index in np.ndindex(*x.shape):
            text = f"{abs(x[index]):.2f}"
            if len(set(text[-2:])) == 2 and abs(int(text[-2]) - int(text[-1])) > 2:
                where = (
                    index,
                    float(np.copysign(float(text[:-2] + text[-1] + text[-2]), x[index])),
                )
                x[index] = where[1]
                return

    found = by_hand(slip)[0]
    assert found.kind == "digits-exchanged"
    assert where is not None
    assert f"block.1.attn.add[{where[0][0]},{where[0][1]}]" in found.sentence


def test_two_positions_that_are_exchanged() -> None:
    def slip(x: Data) -> None:
        x[[1, 4]] = x[[4, 1]]

    found = by_hand(slip)[0]
    assert found.kind == "order"
    assert found.sentence == "it follows if pos 1 and 4 are exchanged"


def test_digits_cut_off_instead_of_rounded() -> None:
    model = MODELS[GPT2]
    lines = {name: np.round(x, 2) for name, x in own_pass(model).items()}
    at = f"{AT}.attn.norm.mean"
    exact = lines["block.0.mlp.add"].mean(-1)
    lines[at] = np.trunc(exact * 100) / 100
    lines["block.0.mlp.add"] = lines["block.0.mlp.add"].copy()
    judge = Judge(model, lines, precision="exact", slack=0.005, by_hand=True)
    kinds = {edit.kind for edit, _judged in judge.suspects(at)}
    assert "digits-cut-off" in kinds


def test_lines_in_between_that_were_rounded_though_nobody_sees_them() -> None:
    model = MODELS[GPT2]
    stream = np.round(own_pass(model)["block.0.mlp.add"], 4)
    mean = np.round(stream.mean(-1), 2)
    centered = np.round(stream - mean[:, None], 2)
    variance = np.round((centered**2).mean(-1), 2)
    std = np.round(np.sqrt(variance + 1e-5), 2)
    lines = {
        "block.0.mlp.add": stream,
        f"{AT}.attn.norm.normalized": np.round(centered / std[:, None], 4),
    }
    judge = Judge(model, lines, precision="exact", slack=0.5e-4, by_hand=True)
    found = judge.suspects(f"{AT}.attn.norm.normalized")[0][0]
    assert found.kind == "rounded-early"
    assert "rounded to 2 decimals" in found.sentence
