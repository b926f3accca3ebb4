"""The health of a pass, layer by layer: sizes of the stream and of its updates, attention, units.

Everything is measured on a trace in float64, whatever its numbers are, and is `rounded`; nothing is
worked out again.  Undefined values are None, such as the direction of a zero vector or the
entropy's share for a single key.  So are values of numbers that are not finite.

A pattern's entropy is -Σ p·ln p over the keys a query sees, in nats.  Its effective rank is e to
the entropy of its singular values, divided by their sum.  It is 1 where all queries look alike, and
the number of queries where each looks at a key of its own.  Mean shares of queries count only
queries that see more than one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from byhand.explaining.approximations import Flags, Floats, absent, floats_near
from byhand.explaining.projections import cosine
from byhand.tracing import Trace
from byhand.worked import Worked

QUIET = 1e-3  # of the layer's largest: a unit below it at every position is dead
SATURATED = 0.99  # the attention weight of one key above which a query is saturated
BENT = 0.01  # how near act(x)/x is to 0 (flat) or to 1 (linear)
LONGEST = 256  # positions up to which the ranks of a pattern are worked out


@dataclass(frozen=True, slots=True)
class Size:
    """The root mean square of each row of a step."""

    address: str
    rms: tuple[float | None, ...]  # for each position
    mean: float | None  # over the positions


@dataclass(frozen=True, slots=True)
class Update:
    """The update of a side-trip, compared with the stream it is added to."""

    size: Size  # of the update
    ratio: tuple[float | None, ...]  # rms of the update / rms of the stream, for each position
    cosine: tuple[float | None, ...]  # of the angle between them; None where one is zero
    mean_ratio: float | None
    mean_cosine: float | None


@dataclass(frozen=True, slots=True)
class Pattern:
    """One head's pattern of attention."""

    head: int
    entropy: tuple[float | None, ...]  # nats, for each query
    share_of_most: tuple[float | None, ...]  # entropy / ln(number of keys); None: a single key
    mean_entropy: float | None
    mean_share_of_most: float | None
    effective_rank: float | None  # None: a text of more than LONGEST positions, or not finite
    numerical_rank: int | None
    first: float | None  # mean share on the first key, over queries that see several keys
    own: float | None  # mean share on the query's own position, over the same queries
    saturated: float | None  # fraction of the same queries with more than SATURATED on one key


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one MLP: the entries of act, or of gated where the MLP is gated."""

    address: str
    count: int
    exact_zero: bool  # dead is: 0 at every position (relu); else: below QUIET of the largest
    dead: tuple[int, ...]
    flat: float | None  # fraction of units and positions with |act(x)| <= BENT·|x|
    linear: float | None  # … with |act(x) - x| <= BENT·|x|


@dataclass(frozen=True, slots=True)
class LayerHealth:
    """One block; None stands for what the block does not have or what is missing."""

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
    if block.mlp and block.mlp.experts is None:
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
    """The update y of a step `add`, compared with the stream x it is added to."""
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


# ------------------------------------------------------------------ patterns and units


def measure_pattern(head: int, weights: Floats, hidden: Flags) -> Pattern:
    """One head's weights (query, key), of which the hidden ones are absent."""
    shares = np.where(hidden, 0.0, weights)
    keys = np.count_nonzero(~hidden, axis=1)
    entropy = tuple(_entropy(row) for row in shares)
    most = tuple(
        None if found is None or count < 2 else found / float(np.log(count))
        for found, count in zip(entropy, keys, strict=True)
    )
    choosing = (keys > 1) & np.isfinite(shares).all(axis=1)
    own = np.diagonal(shares)
    effective, numerical = _ranks(shares)
    return Pattern(
        head,
        entropy,
        most,
        mean_of_known(entropy),
        mean_of_known(most),
        effective,
        numerical,
        mean_of_known(shares[choosing, 0].tolist()),
        mean_of_known(own[choosing[: len(own)]].tolist()),
        mean_of_known((shares[choosing].max(axis=1, initial=0.0) > SATURATED).tolist()),
    )


def _entropy(shares: Floats) -> float | None:
    if not np.isfinite(shares).all():
        return None
    present = shares[shares > 0]
    return abs(float(-(present * np.log(present)).sum()))  # not -0.0


def _ranks(shares: Floats) -> tuple[float | None, int | None]:
    """The effective and the numerical rank."""
    if max(shares.shape) > LONGEST or not np.isfinite(shares).all():
        return None, None
    sizes = np.linalg.svd(shares, compute_uv=False)
    if not sizes.any():
        return None, 0
    least = sizes.max() * max(shares.shape) * np.finfo(np.float64).eps
    found = _entropy(sizes / sizes.sum())
    return None if found is None else float(np.exp(found)), int(np.count_nonzero(sizes > least))


def measure_units(
    address: str, activation: str, entering: Floats, bent: Floats, units: Floats
) -> Units:
    """The measures of units (pos, d_ff), whose activation turned `entering` into `bent`."""
    sizes = np.abs(units)
    zero = activation == "relu"
    largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
    dead = (sizes == 0 if zero or not largest else sizes < QUIET * largest).all(axis=0)
    known = np.isfinite(entering) & np.isfinite(bent)
    x, y = entering[known], bent[known]
    flat = np.abs(y) <= BENT * np.abs(x)
    linear = (np.abs(y - x) <= BENT * np.abs(x)) & ~flat
    return Units(
        address,
        units.shape[1],
        zero,
        tuple(np.flatnonzero(dead).tolist()),
        mean_of_known(flat.tolist()),
        mean_of_known(linear.tolist()),
    )


def mean_of_known(found: Iterable[float | None]) -> float | None:
    """The mean of the numbers that are not None; None where there are none."""
    known = [x for x in found if x is not None]
    return float(np.mean(known)) if known else None
