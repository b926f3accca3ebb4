"""What it takes to read a family of checkpoints: a reader, a table of names, and buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from byhand.models.huggingface.config import Config
from byhand.spec import ModelSpec
from byhand.weights import Data

Reader = Callable[[Config, str], ModelSpec]
Buffers = Mapping[str, Data]  # by the last word of their names


@dataclass(frozen=True)
class Family:
    """How a model_type is read: by whose names, its config, and what no file has.

    `seen` says what the names of a folder's tensors tell besides.
    """

    names: str  # in names.families.MODULES
    read: Reader
    buffers: Callable[[Config, ModelSpec], Buffers] = lambda _config, _spec: {}
    seen: Callable[[ModelSpec, Collection[str]], ModelSpec] | None = None
