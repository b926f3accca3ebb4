"""llama.cpp's products with packed matrices, in NumPy: what its kernels do, block by block.

A row is rounded to signed bytes, in blocks of 32 with a scale in float16 or of 256 with one in
float32; codes and minima are added up apart.
"""

from __future__ import annotations

import numpy as np

from byhand.files.ggml import MINIMA, TYPES, Type, unpacked

KINDS = {kind.name: kind for kind in TYPES.values()}
IN_BLOCKS_OF_256 = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "TQ1_0", "TQ2_0", "IQ1_S",
                    "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")  # fmt: skip


def in_bytes(rows: np.ndarray, block: int, narrow: bool) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of each block and its scale, which is float16 if it is narrow."""
    blocks = rows.astype(np.float32).reshape(len(rows), -1, block)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    codes = np.rint(blocks * inverse)
    scales = largest / np.float32(127)
    return codes, scales.astype(np.float16).astype(np.float32) if narrow else scales


def product(kind: Type, blocks: np.ndarray, rows: np.ndarray, *, gpu: bool = False) -> np.ndarray:
    """rows · matrixᵀ, as kernels for the processor have it, or those for a GPU (blocks of 32)."""
    wide = kind.name in IN_BLOCKS_OF_256 and not gpu
    codes, scales = in_bytes(rows, 256 if wide else 32, narrow=not wide)
    count = rows.shape[1]
    bare = blocks.copy()
    if kind.name in MINIMA:
        least = MINIMA[kind.name][1]
        bare[:, least : least + 2] = 0
    scaled = unpacked(kind, bare).reshape(-1, count).astype(np.float64)  # scale·code
    minima = unpacked(kind, blocks).reshape(-1, count) - scaled
    total = np.zeros((len(rows), len(scaled)), np.float32)
    size = codes.shape[-1]
    for place in range(codes.shape[1]):
        here = slice(place * size, (place + 1) * size)
        dots = (codes[:, place].astype(np.float64) @ scaled[:, here].T).astype(np.float32)
        total += scales[:, place] * dots
        if kind.name in MINIMA:
            total += _minima(codes[:, place], rows[:, here], minima[:, here], wide)
    return total


def _minima(codes: np.ndarray, rows: np.ndarray, minima: np.ndarray, wide: bool) -> np.ndarray:
    """Sums of each 32 entries times their minima; the sums are float16 in narrow blocks."""
    scale = np.abs(rows).max(axis=-1, keepdims=True).astype(np.float32) / np.float32(127)
    part = np.float32(0) * np.zeros((len(rows), len(minima)), np.float32)
    step = 16  # in which minima are the same, in every format
    for start in range(0, rows.shape[1], step):
        here = slice(start, start + step)
        sums = scale * codes[:, here].sum(axis=-1, keepdims=True).astype(np.float32)
        if not wide:
            sums = sums.astype(np.float16).astype(np.float32)
        part += (sums * minima[None, :, start].astype(np.float32)).astype(np.float32)
    return part
