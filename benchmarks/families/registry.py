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
    attention: str = "eager"  # of the library's float64 run
    unlike: Mapping[str, str] = field(default_factory=dict)  # a run that is known to be another
    stacked: bool = False  # whether its files have one tensor for all experts


OWN = ("length", "attention", "unlike", "stacked")  # settings of a case, not of its config
CASES: dict[str, list[Case]] = {}


def family(kind: str, base: Mapping[str, Any], /, **cases: Mapping[str, Any]) -> None:
    """Adds the configs of a family: what all share, and what each has besides."""
    for name, own in cases.items():
        settings = {**base, **own}
        more = {key: settings.pop(key) for key in OWN if key in settings}
        case = Case(kind, name.replace("_", " "), settings, **more)
        CASES.setdefault(kind, []).append(case)


def every(kinds: list[str] | None = None) -> list[Case]:
    """All cases, or those of some families."""
    from benchmarks.families import decoders, experts  # noqa: F401 - which register

    return [case for kind, cases in CASES.items() if not kinds or kind in kinds for case in cases]
