"""`byhand.prove` and `byhand.verify`: a property of every text of a domain, proven and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from byhand.api import as_model
from byhand.model import Model
from byhand.models import called

if TYPE_CHECKING:
    from byhand.proving.outcome import Outcome
    from byhand.proving.properties import Property

Progress = Callable[[float, int], None]  # the share of the domain decided, and the cases so far


class Simple(TypedDict, total=False):
    """What a property file says, as options for the simple cases."""

    texts: str | Iterable[str]
    up_to: int
    of: str | Iterable[str]
    next: Any
    continuation: str
    agree: str | Path | Model
    constant: bool
    unmoved: bool
    printed: int
    within: Any
    rounded_to: str
    moved: Any


def prove(
    model: str | Path | Model,
    property: str | Path | Mapping[str, Any] | Property | None = None,
    *,
    jobs: int | None = None,
    seconds: float | None = None,
    resume: str | Path | Outcome | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    **simple: Unpack[Simple],
) -> Outcome:
    """A property of every text of a domain: proven, refuted by a text, or open.
    """
    from byhand.proving.search import prove as search

    opened = as_model(model)
    found = search(_read(opened, property, simple), jobs=jobs, seconds=seconds, progress=progress)
    return replace(found, called=called(model))


def _read(
    model: Model, property: str | Path | Mapping[str, Any] | Property | None, simple: Simple
) -> Property:
    raise NotImplementedError


def verify(model: str | Path | Model, certificate: str | Path, *, jobs: int | None = None, progress: Progress | None = None) -> Any:
    """A certificate, checked."""
