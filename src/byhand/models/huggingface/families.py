"""The families of checkpoints: the reader and the tensor names of each model_type.

A config.json means what the modeling_*.py files of the transformers library make of it, including
defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from byhand.errors import SpecError, nearest
from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface import gpt2, gpt_neox, llama
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.keys import check_unread
from byhand.models.huggingface.rope import Rope
from byhand.models.huggingface.tensor_names import Names
from byhand.spec import ModelSpec

Reader = Callable[[Config, str], tuple[ModelSpec, Rope | None]]
FAMILIES: dict[str, tuple[str, Names, Reader]] = {
    "gpt2": ("gpt2", gpt2.NAMES, gpt2.read),
    "llama": ("llama", llama.NAMES, llama.read_llama),
    "mistral": ("llama", llama.NAMES, llama.read_mistral),
    "qwen2": ("llama", llama.NAMES, llama.read_qwen2),
    "qwen3": ("llama", llama.NAMES, llama.read_qwen3),
    "gpt_neox": ("gpt_neox", gpt_neox.NAMES, gpt_neox.read),
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
    family, names, read = FAMILIES[kind]
    try:
        spec, rope = read(config, name)
    except SpecError as error:
        raise config.impossible(error) from None
    return Read(spec, family, names, rope, check_unread(config, kind))
