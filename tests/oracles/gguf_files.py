"""GGUF files written byte by byte, for tests: whole ones, and parts to break."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NUMBERS = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10,
    "Q3_K": 11, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "IQ4_NL": 20, "IQ4_XS": 23, "F64": 28,
    "BF16": 30, "TQ1_0": 34, "TQ2_0": 35, "MXFP4": 39, "IQ2_XXS": 16, "IQ2_XS": 17, "IQ3_XXS": 18,
    "IQ1_S": 19, "IQ3_S": 21, "IQ2_S": 22, "IQ1_M": 29,
}  # fmt: skip
BLOCKS = {"F32": (1, 4), "F16": (1, 2), "F64": (1, 8), "BF16": (1, 2), "Q4_0": (32, 18),
          "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34),
          "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176),
          "Q6_K": (256, 210), "IQ4_NL": (32, 18), "IQ4_XS": (256, 136), "TQ1_0": (256, 54),
          "TQ2_0": (256, 66), "MXFP4": (32, 17), "IQ2_XXS": (256, 66), "IQ2_XS": (256, 74),
          "IQ3_XXS": (256, 98), "IQ1_S": (256, 50), "IQ3_S": (256, 110), "IQ2_S": (256, 82),
          "IQ1_M": (256, 56)}  # fmt: skip

Stored = tuple[str, Sequence[int], bytes]  # type, shape (the innermost side last), bytes


def text(words: str | bytes) -> bytes:
    """A text: its length and its bytes."""
    raw = words.encode() if isinstance(words, str) else words
    return struct.pack("<Q", len(raw)) + raw


def setting(name: str | bytes, value: Any) -> bytes:
    """A setting with the type that its value has in Python."""
    return text(name) + _value(value)


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str | bytes):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, np.ndarray):
        kind = {"f": 6, "i": 5}[value.dtype.kind]
        return struct.pack("<IIQ", 9, kind, len(value)) + value.tobytes()
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))


def tensor(name: str | bytes, kind: int, shape: Sequence[int], offset: int) -> bytes:
    """The header of a tensor."""
    sides = struct.pack(f"<{len(shape)}Q", *reversed(shape))
    return text(name) + struct.pack("<I", len(shape)) + sides + struct.pack("<IQ", kind, offset)


def head(tensors: int, settings: int, version: int = 3, magic: bytes = b"GGUF") -> bytes:
    """The first bytes of a file."""
    return magic + struct.pack("<IQQ", version, tensors, settings)


def whole(
    settings: Mapping[str, Any], tensors: Mapping[str, Stored], *, version: int = 3, align: int = 32
) -> bytes:
    """A file that is whole."""
    parts, data = [head(len(tensors), len(settings), version)], b""
    parts += [setting(name, value) for name, value in settings.items()]
    for name, (kind, shape, raw) in tensors.items():
        parts.append(tensor(name, NUMBERS[kind], shape, len(data)))
        data += raw + bytes(-len(raw) % align)
    start = b"".join(parts)
    return start + bytes(-len(start) % align) + data


def floats(values: Any) -> Stored:
    """A tensor of float32."""
    data = np.asarray(values, "<f4")
    return "F32", data.shape, data.tobytes()


def packed(kind: str, shape: Sequence[int], seed: int, scale: float = 0.02) -> Stored:
    """A tensor of random blocks whose float16 scales give numbers of about this size."""
    block, size = BLOCKS[kind]
    count = int(np.prod(shape)) // block
    generator = np.random.default_rng(seed)
    raw = generator.integers(0, 256, (count, size), dtype=np.uint8)
    largest = {"Q4_0": 8, "Q4_1": 15, "Q5_0": 16, "Q5_1": 31, "Q8_0": 127, "Q2_K": 45, "Q3_K": 128,
               "Q4_K": 945, "Q5_K": 1953, "Q6_K": 4096, "IQ4_NL": 127, "IQ4_XS": 4064,
               "IQ2_XXS": 166, "IQ2_XS": 166, "IQ2_S": 166, "IQ3_XXS": 480, "IQ3_S": 465,
               "IQ1_S": 17, "IQ1_M": 17}  # fmt: skip
    places = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2),
              "Q5_K": (0, 2), "Q6_K": (208,), "TQ1_0": (52,), "TQ2_0": (64,)}  # fmt: skip
    if kind == "MXFP4":
        raw[:, 0] = 119 + generator.integers(0, 3, count)
        return kind, tuple(shape), raw.tobytes()
    if kind == "IQ1_M":  # four bits of the scale at the top of four words
        words = (generator.uniform(0.5, 1, count) * scale / 4).astype("<f2").view("<u2")
        for place in range(4):
            at = 49 + 2 * place
            raw[:, at] = raw[:, at] & 15 | (words >> 4 * place & 15) << 4
        return kind, tuple(shape), raw.tobytes()
    for at in places.get(kind, (0,)):
        scales = generator.uniform(0.5, 1, count) * scale / largest.get(kind, 1) * 4
        minimum = at in (2, 82)
        steps = {"Q4_1": -0.5, "Q5_1": -0.5}.get(kind, 15 / 32) * largest.get(kind, 1)
        if minimum:
            scales *= steps if kind in ("Q4_1", "Q5_1") else largest[kind] / 63 / 2
        raw[:, at : at + 2] = scales.astype("<f2").reshape(-1, 1).view(np.uint8)
    return kind, tuple(shape), raw.tobytes()
