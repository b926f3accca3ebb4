"""The families of checkpoints: the reader and the tensor names of each model_type.

A config.json means what the modeling_*.py files of the transformers library make of it, including
defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from byhand.errors import SpecError, nearest
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface import gpt2, gpt_neox, llama
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.keys import check_unread
from byhand.models.huggingface.rope import Rope
from byhand.names.families import MODULES
from byhand.names.modules import Names
from byhand.spec import ModelSpec

Reader = Callable[[Config, str], tuple[ModelSpec, Rope | None]]
FAMILIES: dict[str, tuple[str, Reader]] = {
    "gpt2": ("gpt2", gpt2.read),
    "llama": ("llama", llama.read_llama),
    "mistral": ("llama", llama.read_mistral),
    "qwen2": ("llama", llama.read_qwen2),
    "qwen3": ("llama", llama.read_qwen3),
    "gpt_neox": ("gpt_neox", gpt_neox.read),
}


@dataclass(frozen=True)
class Read:
    """A config.json that was understood: the family's spec, RoPE and tensor names."""

    spec: ModelSpec
    family: str
    names: Names
    rope: Rope | None
    notes: tuple[str, ...]


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
    family, read = FAMILIES[kind]
    try:
        spec, rope = read(config, name)
    except SpecError as error:
        raise config.impossible(error) from None
    spec = replace(spec, family=family)
    return Read(spec, family, MODULES[family], rope, check_unread(config, kind))
