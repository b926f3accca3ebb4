"""The block formats of GGUF: every number a block stands for, exactly."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from byhand.files.ggml import TYPES, unpacked
from oracles.ggml_by_hand import BY_HAND

KINDS = {kind.name: kind for kind in TYPES.values() if kind.unpack is not None}
RECORDED = json.loads((Path(__file__).parent / "ggml_blocks.json").read_text())
SCALES = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2),
          "Q5_K": (0, 2), "Q6_K": (208,), "MXFP4": (), "TQ1_0": (52,), "TQ2_0": (64,),
          "IQ1_M": ()}  # fmt: skip


def finite_blocks(name: str, count: int, seed: int) -> np.ndarray:
    blocks = np.random.default_rng(seed).integers(0, 256, (count, KINDS[name].bytes), np.uint8)
    for at in SCALES.get(name, (0,)):
        blocks[:, at + 1] &= 0xFB  # a bit of the exponent is 0: no scale is infinite
    if name == "IQ1_M":
        blocks[:, 55] &= 0xBF
    if name == "MXFP4":
        blocks[:, 0] %= 250
    return blocks


def test_every_format_has_a_slow_decoder_and_recorded_blocks() -> None:
    assert set(KINDS) == set(BY_HAND) == set(RECORDED)


@pytest.mark.parametrize("name", KINDS)
def test_every_number_is_the_one_worked_out_bit_by_bit(name: str) -> None:
    kind, blocks = KINDS[name], finite_blocks(name, 3, seed=1)
    numbers = unpacked(kind, blocks)
    assert numbers.dtype == kind.dtype
    for block, row in zip(blocks, numbers, strict=True):
        raw = block.tobytes()
        for place in range(kind.block):
            assert Fraction(float(row[place])) == BY_HAND[name](raw, place), place


@pytest.mark.parametrize("name", KINDS)
def test_the_largest_and_the_smallest_scales_lose_no_bit(name: str) -> None:
    kind, blocks = KINDS[name], finite_blocks(name, 8, seed=2)
    extremes = np.array([0x7BFF, 0x0001, 0xFBFF, 0x8001, 0x03FF, 0x7800], "<u2")
    for place, at in enumerate(SCALES.get(name, (0,))):
        chosen = np.roll(np.resize(extremes, 8), place).view(np.uint8).reshape(8, 2)
        blocks[:, at : at + 2] = chosen
    numbers = unpacked(kind, blocks)
    for block, row in zip(blocks, numbers, strict=True):
        raw = block.tobytes()
        for place in range(0, kind.block, 7):
            assert Fraction(float(row[place])) == BY_HAND[name](raw, place), place


@pytest.mark.parametrize("name", KINDS)
def test_the_numbers_are_those_that_the_gguf_package_gave(name: str) -> None:
    """Recorded by benchmarks/ggml_blocks.py; the package rounds each number once to float32."""
    kind = KINDS[name]
    for recorded in RECORDED[name]:
        block = np.frombuffer(bytes.fromhex(recorded["block"]), np.uint8)[None]
        row = unpacked(kind, block)[0].astype("<f4") + np.float32(0)
        assert row[:6].tolist() == recorded["first"]
        assert hashlib.sha256(row.tobytes()).hexdigest()[:32] == recorded["digest"]
        assert np.any(row)
