"""What families call things: their tensors, and the activations that all of them share."""

from __future__ import annotations

import re
from dataclasses import dataclass

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "linear": "identity",
}


@dataclass(frozen=True)
class Names:
    """What the tensors of a family are called in its files."""

    prefix: str  # of all but the head; files saved without the head go without
    embedding: str
    heads: tuple[str, ...]  # the head, under any of these
    outside: dict[str, str]  # byhand's name → the file's
    layer: str  # before the number of a layer
    inside: dict[str, str]  # likewise, within a layer
    leftovers: re.Pattern[str]  # buffers of older versions, which nothing reads
