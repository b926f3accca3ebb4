"""How the pass is doing, layer by layer: sizes of the stream and of what is added to it.

Everything is measured on a trace in float64, whatever its numbers are, and is `rounded`; nothing is
worked out again.  What is undefined (the direction of a zero vector, the entropy's share where a
query has a single key) is None, and so is what comes out of numbers that are not finite.  Patterns
of attention and units of MLPs are measured in `measures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byhand.explaining.approximations import Flags, Floats, absent, floats_near
from byhand.explaining.measures import (
    Pattern,
    Units,
    mean_of_known,
    measure_pattern,
    measure_units,
)
from byhand.explaining.projections import cosine
from byhand.tracing import Trace, Worked

__all__ = ["Health", "LayerHealth", "Pattern", "Size", "Units", "Update", "health"]


@dataclass(frozen=True, slots=True)
class Size:
    """The root mean square of each row of a step."""

    address: str
    rms: tuple[float | None, ...]  # for each position
    mean: float | None  # of these


@dataclass(frozen=True, slots=True)
class Update:
    """What a side-trip adds to the stream, beside the stream it is added to."""

    size: Size  # of what is added
    ratio: tuple[float | None, ...]  # its rms / the rms of the stream before, for each position
    cosine: tuple[float | None, ...]  # of the angle between the two; None where one is zero
    mean_ratio: float | None
    mean_cosine: float | None


@dataclass(frozen=True, slots=True)
class LayerHealth:
    """One block; what is None is not in the block, or is missing."""

    layer: int
    stream: Size | None  # what leaves the block
    attention: Update | None
    mlp: Update | None
    patterns: tuple[Pattern, ...]  # one for each head
    units: Units | None
    missing: tuple[str, ...] = ()  # steps that have no value: unknown, undecided, or not asked for
    not_finite: tuple[str, ...] = ()  # steps with an entry that is infinite or not a number


@dataclass(frozen=True, slots=True)
class Health:
    """The whole pass.  Every number is rounded."""

    entering: Size | None  # what enters the first block
    layers: tuple[LayerHealth, ...]
    missing: tuple[str, ...] = ()  # before the first block
    not_finite: tuple[str, ...] = ()


def health(trace: Trace) -> Health:
    """Sizes, entropies, ranks, dead and saturated units, from the trace."""
    first = _Reader(trace)
    entering = first.size("stream.0")
    layers = tuple(_layer(trace, layer) for layer in range(len(trace.plan.spec.blocks)))
    return Health(entering, layers, tuple(first.missing), tuple(first.not_finite))


class _Reader:
    """Reads steps as floats, and remembers which have no value and which are not finite."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.missing: dict[str, None] = {}
        self.not_finite: dict[str, None] = {}

    def worked(self, name: str) -> Worked | None:
        address = self.trace.plan.known.get(name)
        worked = None if address is None else self.trace.steps.get(address)
        if worked is None or worked.missing is not None:
            self.missing[address or name] = None
            return None
        return worked

    def masked(self, name: str) -> tuple[Floats, Flags] | None:
        """Floats near a step's entries, and which of them are absent."""
        if (worked := self.worked(name)) is None:
            return None
        near = floats_near(worked.numbers, worked.value)
        hidden = absent(worked.numbers, worked.value)
        if not np.isfinite(near[~hidden]).all():
            self.not_finite[worked.address] = None
        return near, hidden

    def floats(self, name: str) -> Floats | None:
        found = self.masked(name)
        return None if found is None else found[0]

    def size(self, name: str) -> Size | None:
        rows = self.floats(name)
        if rows is None:
            return None
        rms = tuple(root_mean_square(row) for row in rows)
        return Size(self.trace.plan[name].address, rms, mean_of_known(rms))


def _layer(trace: Trace, layer: int) -> LayerHealth:
    read, block = _Reader(trace), trace.plan.spec.blocks[layer]
    patterns: tuple[Pattern, ...] = ()
    units = None
    if block.attention and (weights := read.masked(f"block.{layer}.attn.weights")) is not None:
        patterns = tuple(
            measure_pattern(head, *both) for head, both in enumerate(zip(*weights, strict=True))
        )
    if block.mlp:
        at, unit = f"block.{layer}.mlp", "gated" if block.mlp.gated else "act"
        entering = read.floats(f"{at}.{'gate' if block.mlp.gated else 'hidden'}")
        bent, leaving = read.floats(f"{at}.act"), read.floats(f"{at}.{unit}")
        if entering is not None and bent is not None and leaving is not None:
            kind = block.mlp.activation
            units = measure_units(f"{at}.{unit}", kind, entering, bent, leaving)
    return LayerHealth(
        layer,
        read.size(f"stream.{layer + 1}"),
        _update(read, f"block.{layer}.attn") if block.attention else None,
        _update(read, f"block.{layer}.mlp") if block.mlp else None,
        patterns,
        units,
        tuple(read.missing),
        tuple(read.not_finite),
    )


def _update(read: _Reader, at: str) -> Update | None:
    """What `add` adds (y) beside what it is added to (x)."""
    if f"{at}.add" not in read.trace.plan.known:
        read.missing[f"{at}.add"] = None
        return None
    inputs = read.trace.plan[f"{at}.add"].inputs
    stream, added = read.floats(inputs["x"]), read.floats(inputs["y"])
    size = read.size(inputs["y"])
    if stream is None or added is None or size is None:
        return None
    before = tuple(root_mean_square(row) for row in stream)
    ratio = tuple(_quotient(*pair) for pair in zip(size.rms, before, strict=True))
    cosines = tuple(cosine(*pair) for pair in zip(added, stream, strict=True))
    return Update(size, ratio, cosines, mean_of_known(ratio), mean_of_known(cosines))


def root_mean_square(row: Sequence[float] | Floats) -> float | None:
    """√(mean of x²), without overflow; None where an entry is not finite."""
    x = np.asarray(row, dtype=np.float64)
    largest = float(np.max(np.abs(x), initial=0.0))
    if not np.isfinite(largest):
        return None
    return largest * float(np.sqrt(np.mean((x / largest) ** 2))) if largest else 0.0


def _quotient(top: float | None, bottom: float | None) -> float | None:
    if top is None or not bottom:
        return None
    found = top / bottom
    return found if np.isfinite(found) else None
