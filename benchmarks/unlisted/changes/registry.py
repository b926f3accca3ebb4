"""Changes, the list of them, and what is true of each: stated before anything is checked.

`says` are regular expressions.  Each is a fact, so that a sentence in which one is found tells
something true about the mistake itself; `where` are those that only tell its place.  In both,
{0.9} stands for a number within two thousandths of 0.9, however it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.planted.port import Port

Plant = Callable[[Port], None]
FORMATS = ("float32", "bfloat16")
FLOAT32 = ("float32",)


@dataclass(frozen=True)
class Part:
    """One planted mistake: its first wrong step, by family, and what is true of it."""

    shows: Mapping[str, str]
    says: tuple[str, ...]
    where: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One kind of change, or two at once."""

    name: str
    what: str  # in a few words
    plant: Plant
    parts: tuple[Part, ...]
    families: tuple[str, ...]
    formats: tuple[str, ...] = FORMATS

    @property
    def paired(self) -> bool:
        return len(self.parts) > 1


CHANGES: dict[str, Change] = {}


def change(
    what: str,
    shows: str | Mapping[str, str],
    families: str,
    *says: str,
    where: str = "",
    formats: tuple[str, ...] = FORMATS,
) -> Callable[[Plant], Plant]:
    """A decorator that registers a function as a change of its name.

    The family "" of `shows` stands for those it does not name.
    """
    steps = {"": shows} if isinstance(shows, str) else shows

    def entered(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        assert name not in CHANGES, name
        own = {family: steps.get(family) or steps[""] for family in families.split()}
        part = Part(own, says, (where,) if where else ())
        CHANGES[name] = Change(name, what, plant, (part,), tuple(own), formats)
        return plant

    return entered


def pair(first: str, second: str, families: str) -> None:
    """Registers two changes at once; the second is planted after the first."""
    both = (CHANGES[first], CHANGES[second])

    def plant(port: Port) -> None:
        for each in both:
            each.plant(port)

    own = tuple(families.split())
    assert all(set(own) <= set(each.parts[0].shows) for each in both), (first, second)
    parts = tuple(part for each in both for part in each.parts)
    formats = tuple(each for each in FORMATS if all(each in one.formats for one in both))
    name = f"{first}+{second}"
    assert name not in CHANGES, name
    CHANGES[name] = Change(name, " + ".join(e.what for e in both), plant, parts, own, formats)
