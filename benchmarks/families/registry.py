"""The configs of each family: odd sizes, every option that the config has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One config: a model_type of the transformers library and its settings."""

    kind: str
    name: str
    settings: Mapping[str, Any]
    length: int = 9  # of the text
    unlike: Mapping[str, str] = field(default_factory=dict)  # a run that is known to be another


CASES: dict[str, list[Case]] = {}


def family(kind: str, base: Mapping[str, Any], /, **cases: Mapping[str, Any]) -> None:
    """Adds the configs of a family: what all share, and what each has besides."""
    for name, settings in cases.items():
        words = name.replace("_", " ")
        settings = dict(settings)
        more = {key: settings.pop(key) for key in ("length", "unlike") if key in settings}
        CASES.setdefault(kind, []).append(Case(kind, words, {**base, **settings}, **more))


def every(kinds: list[str] | None = None) -> list[Case]:
    """All cases, or those of some families."""
    from benchmarks.families import decoders  # noqa: F401 - which registers

    return [case for kind, cases in CASES.items() if not kinds or kind in kinds for case in cases]
