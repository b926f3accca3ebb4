"""Models for commands that can do without their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byhand.errors import ByhandError

if TYPE_CHECKING:
    from byhand.model import Model
    from byhand.spec import ModelSpec
    from byhand.weights import Weights


def architecture(name: str) -> tuple[ModelSpec, Weights | None]:
    """What a model is; its weights too, where a model file has them all."""
    from byhand.models import is_checkpoint, open_spec

    spec = open_spec(name)
    model = None if is_checkpoint(name) else opened(name)
    return spec, None if model is None else model.weights


def opened(name: str) -> Model | None:
    """The whole model; None where it is an architecture alone."""
    from byhand.models import open_model

    try:
        return open_model(name)
    except ByhandError:  # what is wrong with an architecture, `open_spec` says
        return None
