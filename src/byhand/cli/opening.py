"""Models for commands that do not need weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byhand.errors import ByhandError

if TYPE_CHECKING:
    from byhand.model import Model
    from byhand.spec import ModelSpec
    from byhand.weights import Weights


def architecture(name: str) -> tuple[ModelSpec, Weights | None]:
    """The architecture of a model, and its weights if a model file has them all."""
    from byhand.models import is_checkpoint, open_spec

    spec = open_spec(name)
    model = None if is_checkpoint(name) else opened(name)
    return spec, None if model is None else model.weights


def opened(name: str) -> Model | None:
    """The whole model; None for an architecture without weights."""
    from byhand.models import open_model

    try:
        return open_model(name)
    except ByhandError:  # `open_spec` reports errors of an architecture
        return None
