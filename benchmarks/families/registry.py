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
    source: int | None = None  # of the text that an encoder reads
    masked: bool = False  # an encoder, which says the word at each place
    own_head: bool = False  # a head of its own, whatever the config ties


NEAR = 1e-10  # how far float64 may be from float64, relative to the largest number
OWN = (  # settings of a case, not of its config
    "length", "attention", "unlike", "stacked", "source", "masked", "own_head",
)  # fmt: skip
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
    from benchmarks.families import decoders, encoders, experts  # noqa: F401 - which register

    return [case for kind, cases in CASES.items() if not kinds or kind in kinds for case in cases]


def richest(kind: str) -> Case:
    """The config of a family with the most settings."""
    every([kind])
    return max(CASES[kind], key=lambda case: len(case.settings))
