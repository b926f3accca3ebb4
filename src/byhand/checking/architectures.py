"""A model whose weights are not here: its counts can be judged all the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byhand.checking.readers import read_claims
from byhand.errors import ByhandError
from byhand.model import Model
from byhand.models import open_model, open_spec
from byhand.tokens import Ids
from byhand.weights import Weights

COUNT = "count."
_UNREAD = "0"  # a text for claims that are about none


def open_for(name: str | Path, claims: Sequence[Any]) -> Model:
    """The model; where only a config is there and only counts are claimed, it has no weights."""
    try:
        return open_model(name)
    except ByhandError:
        if not _about_counts(claims):
            raise
        return architecture(name)


def architecture(name: str | Path) -> Model:
    """A model without weights, of which only the counts are known."""
    spec = open_spec(name)
    return Model(spec, Weights({}), Ids(spec.vocab), text=_UNREAD, source=str(name))


def _about_counts(claims: Sequence[Any]) -> bool:
    entries = [entry for source in claims for entry in read_claims(source).entries]
    return bool(entries) and all(entry.name.startswith(COUNT) for entry in entries)
