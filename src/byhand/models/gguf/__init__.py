"""GGUF files → a Model, with every number as stored: what llama.cpp makes of the file, exactly.

`open_file` opens one, or all its parts; `read_spec` reads the architecture alone.
"""

from __future__ import annotations

from pathlib import Path

from byhand.files.gguf import open_gguf
from byhand.model import Model
from byhand.models.gguf.architectures import spec_of
from byhand.models.gguf.tensors import read_weights
from byhand.models.gguf.vocabulary import ends_of, vocabulary_of
from byhand.spec import ModelSpec

__all__ = ["open_file", "read_spec"]


def open_file(path: Path) -> Model:
    """The model of a file; each tensor is unpacked when it is needed."""
    contents = open_gguf(path)
    spec = spec_of(contents, path.stem)
    weights = read_weights(contents, spec)
    vocabulary, notes = vocabulary_of(contents, spec.vocab)
    return Model(
        spec=spec,
        weights=weights,
        vocabulary=vocabulary,
        source=str(path),
        ends=ends_of(contents, spec.vocab),
        notes=notes,
    )


def read_spec(path: Path) -> ModelSpec:
    """The architecture of a file; its tensors are not unpacked."""
    return spec_of(open_gguf(path), path.stem)
