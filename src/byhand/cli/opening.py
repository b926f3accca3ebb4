"""Models for commands that do not need weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byhand.errors import ByhandError

if TYPE_CHECKING:
    from byhand.model import Model


def opened(name: str) -> Model | None:
    """The whole model; None for an architecture without weights."""
    from byhand.models import open_model

    try:
        return open_model(name)
    except ByhandError:  # `open_spec` reports errors of an architecture
        return None
