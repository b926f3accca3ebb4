"""Bugs, and the list of them.

Each is a function that changes a correct port before it runs.  Its author states its first wrong
step and the words for its cause before anything is checked.  A mistake in code is in every layer; a
mistake about weights is in layer 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.planted.port import Port

Plant = Callable[[Port], None]
FAMILIES = ("gpt2", "llama", "qwen", "gpt_neox")
FORMATS = ("float32", "bfloat16")

# who has what, for `families`
ALL = " ".join(FAMILIES)
LAYERNORM = BIASED = PACKED = PLAIN = "gpt2 gpt_neox"
LLAMAS = GATED = "llama qwen"
ROPE = "llama qwen gpt_neox"
SERIAL = "gpt2 llama qwen"
UNTIED = "llama gpt_neox"


@dataclass(frozen=True)
class Bug:
    """One kind of mistake."""

    name: str
    what: str  # in a few words
    plant: Plant
    shows: Mapping[str, str]  # by family: the first step that is wrong
    causes: frozenset[str]  # kinds of suspects that name it
    says: Mapping[str, str]  # by family: what the sentence about it has to say
    formats: tuple[str, ...]
    padding: int = 0  # tokens before the text, in the dump of a batch


BUGS: dict[str, Bug] = {}


def bug(
    what: str,
    shows: str | Mapping[str, str],
    causes: str,
    families: str = ALL,
    formats: tuple[str, ...] = FORMATS,
    padding: int = 0,
    says: str | Mapping[str, str] = "",
) -> Callable[[Plant], Plant]:
    """A decorator that registers a function as a bug of its name.

    `shows` and `says` may differ by family; the family "" stands for those they do not name.
    """
    where = {"": shows} if isinstance(shows, str) else shows
    words = {"": says} if isinstance(says, str) else says

    def entered(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        assert name not in BUGS, name
        steps = {family: where.get(family) or where[""] for family in families.split()}
        said = {family: words.get(family, words.get("", "")) for family in steps}
        kinds = frozenset(causes.split())
        BUGS[name] = Bug(name, what, plant, steps, kinds, said, formats, padding)
        return plant

    return entered
