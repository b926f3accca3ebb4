"""The modules of a family of checkpoints: what its files and its torch modules are called.

One table a family, read twice: for the tensors of a folder, and for the steps of a dump.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


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
