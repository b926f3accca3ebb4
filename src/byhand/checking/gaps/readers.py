"""What readers see in an inferred line, as edits to try and as places that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from byhand.checking.claims import Floats, Truths
from byhand.checking.differences import Description, Difference, readings
from byhand.checking.differences.told import numbered
from byhand.checking.gaps.inferred import Inferred
from byhand.checking.gaps.search import Search
from byhand.checking.gaps.values import Values
from byhand.checking.suspects.catalogue import placed
from byhand.checking.suspects.scenes import Around, Edit, Scene
from byhand.language import _

LARGEST = 64.0  # × the usual rounding error: what an inferred line is allowed at most
FEW = 0.5  # share of the slices of a line: fewer that differ are worth a sentence
LEFT = 1.5  # × the usual rounding error: what may be left if only a part differs


@dataclass(frozen=True)
class _Inside:
    """The numbers around a line that was inferred: the model's, and that line."""

    values: Values
    outside: Around | None

    @property
    def claimed_steps(self) -> Sequence[str]:
        return () if self.outside is None else self.outside.claimed_steps

    def claimed(self, address: str) -> Floats | None:
        return None if self.outside is None else self.outside.claimed(address)

    def expected(self, address: str) -> Floats | None:
        return None if self.outside is None else self.outside.expected(address)

    def read(self, address: str) -> Floats | None:
        if address not in self.values.replay.plan.known and not address.startswith("weight."):
            return None
        return self.values.read(address)

    def elsewhere(self, address: str) -> Sequence[Floats]:
        return ()


def difference_of(search: Search, scene: Scene, line: Inferred) -> Difference:
    """The difference between an inferred line and what the model gives there."""
    expected = search.values.read(line.step.address)
    context = replace(
        scene.context,
        index=(),
        values=line.claimed,
        expected=expected,
        allowed=LARGEST * line.usual,
        usual=line.usual,
        slack=0.0,
        around=_Inside(search.values, scene.context.around),
    )
    inner = replace(scene, region=(line.step,), target=line.step, context=context)
    return Difference(
        inner,
        line.claimed,
        expected,
        LARGEST * line.usual,
        line.usual,
        np.isfinite(line.claimed),
    )


def seen_in(search: Search, scene: Scene, line: Inferred) -> Iterator[Edit | Description]:
    """The edits that readers find in an inferred line, and the part of it that alone differs."""
    difference = difference_of(search, scene, line)
    for reading in readings(difference):
        if isinstance(reading, Edit):
            edit = placed(scene, reading)
            yield replace(edit, unlikely=edit.unlikely + 1)
    yield from _parts(search, difference)


def _parts(search: Search, difference: Difference) -> Iterator[Description]:
    """The slices of a line that alone need to differ, where they are few."""
    step, wrong = difference.target, difference.wrong
    for axis, name in enumerate(step.axes):
        rest = tuple(other for other in range(wrong.ndim) if other != axis)
        some = np.asarray(wrong.any(axis=rest))
        if not 0 < some.mean() <= FEW or not _enough(search, difference, some, axis):
            continue
        places = numbered(np.flatnonzero(some).tolist())
        sentence = _("it follows if {address} differs in {axis} {places} (of {count}) alone")
        told = sentence.format(address=step.address, axis=name, places=places, count=len(some))
        yield Description(told, 2)


def _enough(search: Search, difference: Difference, some: Truths, axis: int) -> bool:
    """Whether the claim follows if only these slices differ from the model."""
    shape = [1] * difference.expected.ndim
    shape[axis] = some.size
    patched = np.where(some.reshape(shape), difference.claimed, difference.expected)
    address = difference.target.address
    steps = search.values.after(address)
    if not steps:
        return False
    return search.distance(search.values.onward(address, patched, steps)) <= LEFT
