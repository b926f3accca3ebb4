"""Hugging Face folders: config.json and safetensors files → a Model, with every number as stored.

`open_checkpoint` opens a folder, `read_spec` its architecture alone (or that of a bare
config.json).  Unknown settings are refused; nothing is unpickled or executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from byhand.language import _
from byhand.model import Model
from byhand.models.huggingface.config import LARGEST_FILE, Config, read_json
from byhand.models.huggingface.families import read_family
from byhand.models.huggingface.folder import (
    CONFIG,
    config_of,
    is_weights,
    name_of,
    refuse_file,
    stored_tensors,
    without_weights,
)
from byhand.models.huggingface.quantised import unpacked
from byhand.models.huggingface.tensors import read_weights
from byhand.spec import ModelSpec
from byhand.tokens import Ids, Tokenizer

__all__ = ["open_checkpoint", "read_spec", "recognises"]

GENERATION = "generation_config.json"


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
    config = config_of(path)
    read = read_family(config, name_of(path))
    turned = read.spec.layout == "in_out"
    tensors, told = unpacked(config, stored_tensors(path), str(path), turned)
    weights = read_weights(read, tensors, str(path))
    vocabulary, notes = _vocabulary(path, read.spec.vocab)
    return Model(
        spec=read.spec,
        weights=weights,
        vocabulary=vocabulary,
        source=str(path),
        ends=_ends(path, config),
        notes=(*read.notes, *told, *notes),
    )


def read_spec(path: Path) -> ModelSpec:
    """The architecture of a folder or of a bare config.json; weights are not read."""
    if not path.is_dir() and is_weights(path):
        raise refuse_file(path)
    return read_family(config_of(path), name_of(path)).spec


def _vocabulary(folder: Path, size: int) -> tuple[Tokenizer, tuple[str, ...]]:
    from byhand.subwords import open_tokenizer

    tokenizer = open_tokenizer(folder, size)
    if tokenizer is not None:
        return tokenizer, tuple(tokenizer.notes)
    note = _("there is no tokenizer.json: the text is ids from 0 to {last}, with blanks between")
    return Ids(size), (note.format(last=size - 1),)


def _ends(folder: Path, config: Config) -> tuple[int, ...]:
    """The ids that end a text, from generation_config.json, else from config.json."""
    path = folder / GENERATION
    said = Config(path, read_json(path)) if path.exists() else config
    for at in (said, config):
        _key, found = at.value("eos_token_id", None)
        if found is not None:
            every: list[Any] = found if isinstance(found, list) else [found]
            if not all(type(id) is int and id >= 0 for id in every):
                raise at.refuse("eos_token_id", _("an id, a list of ids, or null"))
            return tuple(dict.fromkeys(every))
    return ()
