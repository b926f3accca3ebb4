"""MXFP4 as gpt-oss folders have it: 4-bit floats, 32 of them times one power of 2.

`X_blocks` are the codes (expert, out, block, byte), the lower half of a byte first, and `X_scales`
the exponents; the model's tensor X is (expert, in, out).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from byhand.files.mapped import Stored
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.quantised.codes import EXPONENTS, F32, FP4, exchanged, halves
from byhand.models.huggingface.quantised.matrix import Parts, Quantised, fitting, flat, scales
from byhand.weights import Data

BLOCKS, SCALES = "_blocks", "_scales"
BYTES = 16  # of a block


def read_mxfp4(_config: Config, parts: Parts) -> Iterator[Quantised]:
    """Every tensor of 4-bit floats with its exponents."""
    for name, codes in parts.named(BLOCKS):
        exponents = parts.need(name + SCALES, codes)
        yield _experts(name, codes, exponents)


def _experts(name: str, codes: Stored, exponents: Stored) -> Quantised:
    flat(codes, 4)
    experts, out, groups, _size = codes.shape
    fitting(codes, (experts, out, groups, BYTES), ("U8",), "(expert × out × block × byte)")
    fitting(exponents, (experts, out, groups), EXPONENTS, "(expert × out × block)")

    def opening(swapped: bool = False) -> Data:
        found = halves(codes.octets())
        numbers = FP4[exchanged(found) if swapped else found]
        numbers = numbers * scales(exponents, F32)[..., None]
        return np.swapaxes(numbers.reshape(experts, out, groups * 2 * BYTES), 1, 2)

    shape = (experts, groups * 2 * BYTES, out)
    mistakes = {"nibbles": partial(opening, swapped=True)}
    return Quantised(name, "MXFP4", shape, F32, (codes, exponents), opening, mistakes)
