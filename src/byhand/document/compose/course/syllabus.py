"""The content of the course as data: chapters, sections and exercises, in both languages.

Each chapter is a file of `chapters/`, with English and Spanish side by side.  A sentence may hold
places for numbers, `{pass address}`, which `sentences` fills from a trace; `show` lines name the
pictures and tables that `shown` makes.  Nothing here knows a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from byhand.language import spoken

_FOLDER = Path(__file__).parent / "chapters"


@dataclass(frozen=True, slots=True)
class Both:
    """A sentence or a title in both languages."""

    en: str
    es: str

    @property
    def said(self) -> str:
        """It in the language spoken."""
        return self.es if spoken() == "es" else self.en


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass that a chapter shows: a built-in model on a text, or the config of a real one."""

    name: str
    model: str = ""
    text: str | None = None
    target: str | None = None
    float: str | None = None  # a format; without one, the model's usual numbers
    decimals: int | None = None  # every line is rounded to so many, as on paper
    step: bool = False  # a training step too
    rate: str = "1/10"  # its learning rate
    causal: bool = True  # False: the model without its mask
    scaled: bool = True  # False: without the scale of its scores
    activation: str | None = None  # another activation than the model's
    config: str | None = None  # a folder of `byhand.models.configs`, in place of a model


@dataclass(frozen=True, slots=True)
class Slip:
    """The mistake that is typical of an exercise, and how its number comes about.

    The number is that of `at`, where another one is taken, otherwise the right one; of the pass
    `of`, where given, which differs by the mistake.  It is multiplied by `times`, and `plus` is
    added.  `cause` is what `byhand check` says about it in English.
    """

    says: Both
    cause: str
    at: str | None = None
    of: str | None = None
    times: str = "1"
    plus: str = "0"
    word: str | None = None  # a token, in place of a number


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question whose answer is the number, row or token at an address of a pass."""

    ask: Both
    of: str
    address: str
    slip: Slip
    places: int | None = None  # decimals of the answer; None: it is written exactly
    # addresses of the lines that the answer is worked out from, or `config`: the model's own
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A short section of a chapter: some sentences, and what they are about."""

    title: Both
    text: tuple[Both, ...]
    show: tuple[str, ...] = ()
    lit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lesson:
    """A chapter of the course."""

    slug: str
    title: Both
    about: Both
    goals: tuple[Both, ...]
    before: tuple[Both, ...]
    passes: tuple[Pass, ...]
    main: str  # the pass whose figure stands beside the sections
    sections: tuple[Section, ...]
    summary: tuple[Both, ...]
    trying: tuple[Both, ...]  # what to do and to read next
    exercises: tuple[Exercise, ...]

    def sheets(self) -> dict[str, tuple[Exercise, ...]]:
        """Its answer sheets: the pass of each, and the exercises that it asks."""
        passes = dict.fromkeys(exercise.of for exercise in self.exercises)
        return {of: tuple(e for e in self.exercises if e.of == of) for of in passes}

    def pass_called(self, name: str) -> Pass:
        """The pass of a name."""
        return next(one for one in self.passes if one.name == name)


@cache
def syllabus() -> tuple[Lesson, ...]:
    """Every chapter, in reading order."""
    return tuple(map(_lesson, sorted(_FOLDER.glob("*.yaml"))))


def _lesson(path: Path) -> Lesson:
    told: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    passes = tuple(Pass(name, **settings) for name, settings in told["passes"].items())
    return Lesson(
        slug=path.stem.partition("-")[2],
        title=_both(told["title"]),
        about=_both(told["about"]),
        goals=_several(told["goals"]),
        before=_several(told["before"]),
        passes=passes,
        main=told.get("main", passes[0].name),
        sections=tuple(map(_section, told["sections"])),
        summary=_several(told["summary"]),
        trying=_several(told["try"]),
        exercises=tuple(map(_exercise, told["exercises"])),
    )


def _section(told: dict[str, Any]) -> Section:
    return Section(
        _both(told["title"]),
        _several(told["text"]),
        tuple(told.get("show", ())),
        tuple(told.get("lit", ())),
    )


def _exercise(told: dict[str, Any]) -> Exercise:
    slip = dict(told["slip"])
    says = _both(slip.pop("says"))
    of, _space, address = told["at"].partition(" ")
    given = tuple(told.get("given", "").split())
    return Exercise(_both(told["ask"]), of, address, Slip(says, **slip), told.get("places"), given)


def _several(told: list[dict[str, str]]) -> tuple[Both, ...]:
    return tuple(map(_both, told))


def _both(told: dict[str, str]) -> Both:
    return Both(told["en"], told["es"])
