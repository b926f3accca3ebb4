"""The families of checkpoints: the reader and the tensor names of each model_type.

A config.json means what the modeling_*.py files of the transformers library make of it, including
defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from byhand.errors import SpecError, nearest
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.decoders import DECODERS
from byhand.models.huggingface.family import Buffers, Family
from byhand.models.huggingface.keys import check_unread
from byhand.names.families import MODULES
from byhand.names.modules import Names
from byhand.spec import ModelSpec

FAMILIES: dict[str, Family] = {**DECODERS}


@dataclass(frozen=True)
class Read:
    """A config.json that was understood: the family's spec, tensor names and buffers."""

    spec: ModelSpec
    family: str
    names: Names
    notes: tuple[str, ...]
    buffers: Buffers = field(default_factory=dict)


def read_family(config: Config, name: str) -> Read:
    """What the config describes; an InputError that names the key of anything unsupported."""
    _key, kind = config.value("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        words = kind[:80] if isinstance(kind, str) else ""
        raise config.refuse(
            "model_type",
            ", ".join(FAMILIES),
            kind,
            message=_("byhand does not know models of type {kind}").format(kind=shown(kind)),
            hint=nearest(words, FAMILIES),
        )
    family = FAMILIES[kind]
    try:
        spec = replace(family.read(config, name), family=family.names)
    except SpecError as error:
        raise config.impossible(error) from None
    buffers = family.buffers(config, spec)
    notes = check_unread(config, kind)
    return Read(spec, family.names, MODULES[family.names], notes, buffers)
