"""One number of a State: its working, the numbers it comes from, the numbers that read it.

The plan and the working alone determine the sources of a number: its expression names other
entries, among them weights, and so on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from byhand.address import Address, read_address, within, write_index
from byhand.document.compose.working import weight_shape
from byhand.document.meanings import meaning
from byhand.document.media.html import served
from byhand.document.parts import Number
from byhand.errors import AddressError
from byhand.evaluate import Progress
from byhand.expression import Entry, leaves
from byhand.language import _
from byhand.plan import WEIGHT
from byhand.serving.states import Library
from byhand.serving.tables import weight_texts
from byhand.serving.worked_state import Pass, pass_of

MOST_ANCESTORS = 2_000
MOST_READERS = 400
MOST_SEARCHED = 6_000  # entries of steps that are checked for reading a number

Index = tuple[int, ...]


def number(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> Any:
    """One number by its address, with its working."""
    found = pass_of(asked["state"], library, None, progress)
    name, index = entry_named(found, asked["address"])
    address = name + write_index(index)
    lit = list(_ancestors(found, name, index))
    steps = dict.fromkeys(one.partition("[")[0] for one in lit)
    own = [step for step in (name, *steps) if not step.startswith(WEIGHT)]
    return {
        "address": address,
        "meaning": meaning(found.trace, name, index),
        "html": _told(found, name, index),
        "weight": _weight_text(found, name, index),
        "ancestors": lit,
        "ancestor_steps": list(steps),
        "nodes": list(found.spine.lit(tuple(own))),
        "readers": list(_readers(found, name, index)),
        "passage": _passage(found, name),
    }


# ------------------------------------------------------------------ which number


def entry_named(found: Pass, text: str) -> tuple[str, Index]:
    """The step or weight, and the index of one entry of it."""
    wanted = read_address(text)
    if wanted.name.startswith(WEIGHT):
        name, shape = wanted.name, weight_shape(wanted.name, found.trace.model.weights)
    else:
        worked = found.trace.worked(wanted)
        name, shape = worked.address, worked.step.shape
    index = within(wanted, shape)
    whole = tuple(place for place in index if isinstance(place, int))
    if len(whole) != len(shape):
        raise _not_one(wanted, shape)
    return name, whole


def _not_one(wanted: Address, shape: tuple[int, ...]) -> AddressError:
    example = wanted.name + write_index((0,) * len(shape))
    return AddressError(
        _("this is not the address of one number"),
        where=str(wanted)[:80],
        expected=_("an address such as {example}").format(example=example),
    )


def _passage(found: Pass, name: str) -> str | None:
    """The passage in which the number is worked out; for a weight, where it is first read."""
    from byhand.serving.passages import passage_id

    step = name
    if name.startswith(WEIGHT):
        step = found.edition.first_reader.get(name.removeprefix(WEIGHT), "")
    topic = found.topic_of.get(step)
    return None if topic is None else passage_id(found, topic)


# ------------------------------------------------------------------ its working


def _told(found: Pass, name: str, index: Index) -> str:
    showing = found.in_full
    address = name + write_index(index)
    if name.startswith(WEIGHT):
        figure = Number(address, showing.inside.weight_cell(name, index))
    else:
        figure = showing.number(found.trace.steps[name], index)
    return served.working(figure, decimals=found.by_decimals)


def _weight_text(found: Pass, name: str, index: Index) -> dict[str, str] | None:
    """A weight as a model file writes it, for editing."""
    if not name.startswith(WEIGHT):
        return None
    own = name.removeprefix(WEIGHT)
    tensor = found.model.weights[own]
    (text,) = weight_texts(tensor, [tensor.data[index]])
    return {"address": own + write_index(index), "text": text}


# ------------------------------------------------------------------ what it comes from


def made_of(found: Pass, name: str, index: Index) -> Iterator[tuple[str, Index]]:
    """The entries in an entry's expression; for a prediction, the logits."""
    if name.startswith(WEIGHT):
        return
    step = found.trace.plan[name]
    if step.op == "argmax":
        read = step.reads[0]
        yield from ((read, (*index, i)) for i in range(found.trace.plan[read].shape[-1]))
        return
    tree = found.working.of(name, index)
    if tree is not None:
        yield from ((leaf.address, leaf.index) for leaf in leaves(tree) if isinstance(leaf, Entry))


def _ancestors(found: Pass, name: str, index: Index) -> Iterator[str]:
    """The addresses of all numbers that a number depends on, the nearest first."""
    seen: set[tuple[str, Index]] = {(name, index)}
    waiting = deque([(name, index)])
    while waiting:
        for one in made_of(found, *waiting.popleft()):
            if one in seen:
                continue
            if len(seen) > MOST_ANCESTORS:
                return
            seen.add(one)
            yield one[0] + write_index(one[1])
            waiting.append(one)


def _readers(found: Pass, name: str, index: Index) -> Iterator[str]:
    """The entries that read this number; with many steps, only the first ones."""
    searched = count = 0
    for step in found.trace.plan:
        if name not in step.reads or step.op == "given":
            continue
        searched += prod(step.shape)
        if searched > MOST_SEARCHED:
            return
        for at in product(*map(range, step.shape)):
            if (name, index) in made_of(found, step.address, at):
                count += 1
                if count > MOST_READERS:
                    return
                yield step.address + write_index(at)
