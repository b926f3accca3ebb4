"""The settings of one architecture in a GGUF file, each read as a required kind of value.

Floats are exact: 1e-05 is the float32 nearest to it, which is what the file holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.models.huggingface.config import NEEDED, Config

MOST_SHOWN = 64  # entries of an array that are read as a list
# settings that change no arithmetic, or repeat what tensors tell
HARMLESS = frozenset({
    "vocab_size", "rope.scaling.finetuned", "attention.key_length", "attention.value_length",
    "rope.dimension_count", "context_length", "feed_forward_length", "tensor_data_layout",
    "expert_feed_forward_length", "leading_dense_block_count", "expert_shared_count",
    "expert_shared_feed_forward_length", "use_parallel_residual",
})  # fmt: skip
ABSENT: tuple[Any, ...] = (0, False, "", [])


class Settings(Config):
    """Settings whose names begin with a prefix; errors name them in full."""

    def __init__(self, path: Path, table: Mapping[str, Any], prefix: str) -> None:
        own = {
            key.removeprefix(prefix): _plain(value)
            for key, value in table.items()
            if key.startswith(prefix)
        }
        super().__init__(path, own, prefix)

    def each(self, key: str, count: int, default: Any = NEEDED) -> Sequence[int]:
        """One whole number for each layer: the same for all, or a list."""
        _name, found = self.value(key, default)
        if not isinstance(found, list | tuple):
            return [self.whole(key, default)] * count
        if len(found) < count or not all(type(x) is int and x >= 1 for x in found):
            expected = _("a list of {count}, each of {names}").format(count=count, names="1, 2, …")
            raise self.refuse(key, expected, found)
        return found[:count]

    def epsilon(self, key: str, default: Any = NEEDED) -> Fraction:
        """A number from 0 to 1; without a default it must be there."""
        if default is NEEDED:
            self.value(key)
        return super().epsilon(key, Fraction(0) if default is NEEDED else default)

    def pattern(self, key: str, default: int, count: int) -> list[bool]:
        """Which layers have a window: a list, or all but every so many-th."""
        _name, found = self.value(key, default)
        if isinstance(found, list):
            if len(found) < count or not all(x in (0, 1) for x in found):
                expected = _("a list of {count}, each of {names}").format(count=count, names="0, 1")
                raise self.refuse(key, expected, found)
            return [bool(x) for x in found[:count]]
        every = self.whole(key, default, least=0)
        return [every == 0 or layer % every < every - 1 for layer in range(count)]

    def nothing_unread(self) -> None:
        """Refuses settings that nobody read: they may change what the model computes."""
        for key, value in self.table.items():
            if key not in self.asked and key not in HARMLESS and value not in ABSENT:
                raise InputError(
                    _("byhand does not know the setting {key}").format(key=self.prefix + key),
                    where=f"{self.path}: {self.prefix}{key}",
                    found=str(value)[:80],
                )


def _plain(value: Any) -> Any:
    """Floats as fractions, short arrays as lists; what is no finite number stays as it is."""
    if isinstance(value, np.ndarray):
        short = value[: 1 << 14].tolist()
        return [_plain(entry) for entry in short]
    if isinstance(value, float):
        return Fraction(value) if isfinite(value) else str(value)
    return value
