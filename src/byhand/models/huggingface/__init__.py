"""Hugging Face folders: config.json and safetensors files → a Model, with every number as stored.

`open_checkpoint` opens a folder, `read_spec` its architecture alone (or that of a bare
config.json).  Unknown settings are refused; nothing is unpickled or executed.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from byhand.language import _
from byhand.model import Model
from byhand.models.huggingface.config import LARGEST_FILE, read_json
from byhand.models.huggingface.families import read_family
from byhand.models.huggingface.folder import (
    CONFIG,
    config_of,
    has_weights,
    is_weights,
    name_of,
    refuse_file,
    stored_tensors,
    without_weights,
)
from byhand.models.huggingface.generation import Generation
from byhand.models.huggingface.quantised import unpacked
from byhand.models.huggingface.tensors import read_weights
from byhand.spec import ModelSpec
from byhand.tokens import Ids, Tokenizer, blank_of

__all__ = ["open_checkpoint", "read_spec", "recognises"]


def recognises(path: Path) -> bool:
    """Whether this is a checkpoint or a part of one, not a model file."""
    if path.is_dir() or is_weights(path) or path.name == CONFIG:
        return True
    if path.suffix.lower() != ".json":
        return False
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return False
        text = path.read_text("utf-8", "replace")
    except OSError:
        return False
    return '"model_type"' in text and "model_type" in read_json(path)


def open_checkpoint(path: Path) -> Model:
    """The model of a folder; each tensor is opened on first use."""
    if not path.is_dir():
        raise refuse_file(path) if is_weights(path) else without_weights(path)
    config, found = config_of(path), stored_tensors(path)
    read = read_family(config, name_of(path), lambda: found)
    stored, told = unpacked(config, found, str(path), read.spec.layout == "in_out")
    weights = read_weights(read, stored, str(path))
    vocabulary, notes = _vocabulary(path, read.spec.vocab)
    settings = Generation.of(path, config, read.spec)
    return Model(
        spec=read.spec,
        weights=weights,
        vocabulary=vocabulary,
        source=str(path),
        ends=settings.ends,
        notes=(*read.notes, *told, *notes, *settings.notes),
        start=settings.start,
        never=settings.never,
        blank=blank_of(vocabulary) if read.spec.in_place else None,
        padding=read.spec.first_row - 1 if read.spec.segments and read.spec.first_row else None,
        source_words=_of_source(path, read.spec),
    )


def read_spec(path: Path) -> ModelSpec:
    """The architecture of a folder or of a bare config.json; weights are not read."""
    if not path.is_dir() and is_weights(path):
        raise refuse_file(path)

    def tensors() -> Collection[str]:
        return stored_tensors(path) if path.is_dir() and has_weights(path) else ()

    return read_family(config_of(path), name_of(path), tensors).spec


def _vocabulary(folder: Path, size: int) -> tuple[Tokenizer, tuple[str, ...]]:
    from byhand.subwords import open_tokenizer

    tokenizer = open_tokenizer(folder, size)
    if tokenizer is not None:
        return tokenizer, tuple(tokenizer.notes)
    note = _("there is no tokenizer.json: the text is ids from 0 to {last}, with blanks between")
    return Ids(size), (note.format(last=size - 1),)


def _of_source(folder: Path, spec: ModelSpec) -> Tokenizer | None:
    """The tokens of an encoder with a table of its own; None where they are the decoder's."""
    if spec.encoder is None or spec.encoder.vocab is None:
        return None
    return _vocabulary(folder, spec.encoder.vocab)[0]
