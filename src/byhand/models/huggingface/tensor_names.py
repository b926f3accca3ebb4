"""The names of tensors in each family, and of the activations that all families share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

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
    """The names of a family's tensors in its files.

    A module keeps a weight and perhaps a bias; of a norm, the weight is its gain.
    """

    prefix: str  # of all tensors but the head; files without a head omit it
    embedding: str
    heads: tuple[str, ...]  # possible names of the head
    outside: dict[str, str]  # byhand's name of a module → the file's
    layer: str  # before the number of a layer
    inside: dict[str, str]  # likewise, within a layer
    leftovers: re.Pattern[str]  # buffers of older versions, which are ignored

    @cached_property
    def weights_outside(self) -> dict[str, str]:
        """Weights outside the layers: byhand's name → the file's."""
        return _weights(self.outside)

    @cached_property
    def weights_inside(self) -> dict[str, str]:
        """Weights within a layer: byhand's name → the file's."""
        return _weights(self.inside)


def _weights(modules: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for ours, theirs in modules.items():
        norm = ours.endswith("norm")
        weight, bias = (f"{ours}.gain", f"{ours}.bias") if norm else (ours, f"{ours}_bias")
        found |= {weight: f"{theirs}.weight", bias: f"{theirs}.bias"}
    return found
