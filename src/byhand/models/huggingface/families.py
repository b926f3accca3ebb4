"""The families of checkpoints: the reader and the tensor names of each model_type.

A config.json means what the modeling_*.py files of the transformers library make of it, including
defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from byhand.errors import SpecError, nearest
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.decoders import DECODERS
from byhand.models.huggingface.encoders import ENCODERS
from byhand.models.huggingface.experts import EXPERTS
from byhand.models.huggingface.family import Buffers, Family
from byhand.models.huggingface.keys import check_unread
from byhand.names.families import MODULES
from byhand.names.modules import Names
from byhand.spec import ModelSpec

Tensors = Callable[[], Collection[str]]
FAMILIES: dict[str, Family] = {**DECODERS, **EXPERTS, **ENCODERS}


@dataclass(frozen=True)
class Read:
    """A config.json that was understood: the family's spec, tensor names and buffers."""

    spec: ModelSpec
    family: str
    names: Names
    notes: tuple[str, ...]
    buffers: Buffers = field(default_factory=dict)


def read_family(config: Config, name: str, tensors: Tensors = tuple) -> Read:
    """What the config describes; an InputError that names the key of anything unsupported.

    `tensors` tells the names of a folder's tensors, none where there is no folder.
    """
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
        spec = family.read(config, name)
        spec = replace(spec, family=spec.family or family.names)
        if family.seen is not None and (there := tensors()):
            spec = family.seen(spec, there)
    except SpecError as error:
        raise config.impossible(error) from None
    buffers = family.buffers(config, spec)
    notes = check_unread(config, kind)
    return Read(spec, spec.family, MODULES[spec.family], notes, buffers)
