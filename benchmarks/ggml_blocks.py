"""Every block format of GGUF against the gguf package: equal to the bit, rounded once to float32.

`python -m benchmarks.ggml_blocks [--seed N] [--blocks N] [--record FILE]` compares random blocks,
and blocks with every float16 there is as a scale: normal, subnormal, negative, infinite.  It ends
with an error if one number differs.  The package works in float32; its last operation alone rounds,
so byhand's exact number rounded once is its number.  `--record` writes the blocks of the tests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import gguf
import numpy as np

from byhand.files.ggml import TYPES, Type, unpacked

# where a block keeps its float16 scales
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82),
    "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,),
    "MXFP4": (), "TQ1_0": (52,), "TQ2_0": (64,), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,),
    "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "IQ1_M": (),
}  # fmt: skip


def every_scale(kind: Type, seed: int) -> np.ndarray:
    """One block for each float16 there is, at each place of a scale; the rest is random."""
    words = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    blocks = random_blocks(kind, len(words), seed)
    generator = np.random.default_rng(seed)
    for at in SCALES[kind.name]:
        blocks[:, at : at + 2] = words[generator.permutation(len(words))]
    return blocks


def random_blocks(kind: Type, count: int, seed: int) -> np.ndarray:
    """Blocks of random bytes."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (count, kind.bytes), dtype=np.uint8)


def finite_blocks(kind: Type, count: int, seed: int) -> np.ndarray:
    """Blocks of random bytes with finite scales, the first of them subnormal and negative."""
    blocks = random_blocks(kind, count, seed)
    for at in SCALES[kind.name]:
        blocks[:, at + 1] &= 0xFB  # a bit of the exponent is 0
        blocks[0, at + 1] = 0x80 | blocks[0, at + 1] & 3
    if kind.name == "IQ1_M":
        blocks[:, 55] &= 0xBF  # the scale's exponent is spread over four words
        blocks[0, 55] |= 0x80
    if kind.name == "MXFP4":
        blocks[:, 0] %= 250
        blocks[0, 0] = 0
    return blocks


def differing(kind: Type, number: int, blocks: np.ndarray) -> int:
    """How many numbers of these blocks are others in the package."""
    with np.errstate(all="ignore"):
        ours = unpacked(kind, blocks).astype(np.float32)
        theirs = gguf.dequantize(blocks, gguf.GGMLQuantizationType(number))
    same = ours.view(np.uint32) == theirs.view(np.uint32)
    same |= (ours == 0) & (theirs == 0)  # the sign of 0
    same |= np.isnan(ours) & np.isnan(theirs)
    return int((~same).sum())


def record(path: Path) -> None:
    """Writes two blocks of each format, the package's first numbers and a digest of all."""
    table = {}
    for number, kind in TYPES.items():
        if kind.unpack is None:
            continue
        blocks = finite_blocks(kind, 2, seed=0)
        numbers = gguf.dequantize(blocks, gguf.GGMLQuantizationType(number)) + np.float32(0)
        table[kind.name] = [
            {
                "block": block.tobytes().hex(),
                "first": [float(x) for x in row[:6]],
                "digest": hashlib.sha256(row.astype("<f4").tobytes()).hexdigest()[:32],
            }
            for block, row in zip(blocks, numbers.reshape(2, -1), strict=True)
        ]
    path.write_text(json.dumps(table, indent=1) + "\n")


def main() -> None:
    """Compares every format."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    if asked.record:
        record(asked.record)
        return
    wrong = 0
    for number, kind in TYPES.items():
        if kind.unpack is None:
            continue
        every = (random_blocks(kind, asked.blocks, asked.seed), every_scale(kind, asked.seed))
        found = [differing(kind, number, blocks) for blocks in every]
        total = sum(len(blocks) for blocks in every) * kind.block
        print(f"{kind.name:7} {total:>12,} numbers  {sum(found)} differ")
        wrong += sum(found)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
