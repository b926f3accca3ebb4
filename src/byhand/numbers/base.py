"""The interface of every number system: the operations of a transformer, by name.

A step of the plan names one of these methods; its inputs arrive as keyword arguments under their
roles, its attributes as further keyword arguments.  A number system knows no addresses, no models
and no files.  Values are arrays of any kind that can be indexed like a NumPy array.  A masked score
or weight is `ABSENT`.

Axes, in this order: scores and weights (head, query, key); q, k, v and mixed (head, pos, d_head);
inside experts (expert, pos, width); everything else (pos, width).  A matrix is stored as its model
writes it: layout "in_out" is x·W, "out_in" is W·x.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any, ClassVar, Never

import numpy as np

from byhand.display import Shown
from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.adjoints import Adjoints

Array = Any
ABSENT = None
REGISTERS = ("exact", "named", "enclosed", "rounded")  # from the strongest to the weakest


def nearest_float(entry: Any) -> float:
    """`float(entry)`, rounded to nearest; beyond the range infinite, as floats are.

    For a named value this is proven, unless it lies too near the middle between two floats.
    """
    try:
        return float(entry)
    except OverflowError:
        return inf if entry > 0 else -inf


@dataclass(frozen=True, slots=True)
class Unknown:
    """A weight entry whose value is not known."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A weight entry known only as a decimal rounded to `places`: it lies within half a unit."""

    value: Fraction
    places: int

    @property
    def radius(self) -> Fraction:
        """Half a unit of the last place."""
        return Fraction(10) ** -self.places / 2


@dataclass(frozen=True, slots=True)
class Within:
    """A weight entry known only to lie within `radius` of `value`."""

    value: Fraction
    radius: Fraction


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader should know about one entry of a step: a limit taken, a sign left open."""

    kind: str  # "zero-variance" | "undecided-sign" | "not-finite" | "tied-experts"
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prediction(Shown):
    """The next token after one position: the lowest id among the largest logits.

    >>> import byhand
    >>> byhand.trace("tiny", "a b").next[1]
    Prediction(id=0, margin=1, proven=True, tied=(), candidates=())
    """

    id: int | None  # None: undecided
    margin: Any  # largest logit minus the next smaller one (ties count as 0); None if undecided
    proven: bool
    tied: tuple[int, ...] = ()  # all ids that share the largest logit, where there are several
    candidates: tuple[int, ...] = ()  # where undecided: the ids that may be the largest


@dataclass(repr=False)
class Numbers(Adjoints, ABC):
    """One number system.  `notes` collects the notes of operations; the reader clears it.

    docs/number-systems.md makes one that works out slopes, in NumPy.

    >>> import byhand
    >>> byhand.trace("tiny", numbers="decimals 3").numbers
    <Pencil: decimals 3>
    """

    uniform: ClassVar[str | None] = None  # the register of all entries, if they share one
    notes: list[Note] = field(default_factory=list, init=False)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in JSON: "exact", "decimals 2", …"""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"

    # ----------------------------------------------------------------------- values in and out

    @abstractmethod
    def admit(self, data: Any) -> Array:
        """The array of weights: entries are Fraction, Expression, Printed, Within, ABSENT or
        floats."""

    def admit_frequencies(self, data: Any) -> Array:
        """Given frequencies of RoPE; floats keep them finer, for products with large positions."""
        return self.admit(data)

    def admit_weight(
        self, data: Any, stored: str | None = None, addends: Callable[[], Any] | None = None
    ) -> Array:
        """A weight whose file keeps it in the format `stored`, such as F16 or Q4_K.

        `addends` gives the sums of the sizes of an entry's two terms, where it has two.
        """
        return self.admit(data)

    @abstractmethod
    def register(self, entry: Any) -> str:
        """The register of one entry, a name of REGISTERS."""

    def entries(self, value: Array) -> Array:
        """The value as an array on this machine, to be indexed; masked entries are ABSENT or
        masked as NumPy masks them."""
        return value

    # ----------------------------------------------------------------------- parts of values

    def take_rows(self, x: Array, places: Sequence[int]) -> Array:
        """The rows at these places along the last axis but one; with one axis, the entries."""
        return x[..., list(places), :] if x.ndim > 1 else x[list(places)]

    def take_columns(self, x: Array, places: Sequence[int]) -> Array:
        """The entries of each row at these places."""
        return x[..., list(places)]

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        """The rows of all parts, one below the other; those of (head, pos, width) head by head."""
        return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])

    def stack(self, parts: Sequence[Array]) -> Array:
        """The parts along a new first axis."""
        return np.stack(parts)

    # ----------------------------------------------------------------------- the operations

    @abstractmethod
    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        """Rows of the table, times the scale."""

    @abstractmethod
    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        """sin and cos of position / base^(2i/width), at entries 2i and 2i + 1.

        pairing "half": all sines, then all cosines.
        """

    @abstractmethod
    def add(self, x: Array, y: Array) -> Array:
        """x + y, entry by entry."""

    @abstractmethod
    def multiply(self, x: Array, y: Array) -> Array:
        """x · y, entry by entry."""

    @abstractmethod
    def mean(self, x: Array) -> Array:
        """The mean over the last axis, which goes away."""

    @abstractmethod
    def center(self, x: Array, mean: Array) -> Array:
        """x - mean, where `mean` is the mean of x."""

    @abstractmethod
    def mean_square(self, x: Array) -> Array:
        """The mean of x² over the last axis, which goes away."""

    @abstractmethod
    def root(self, x: Array, *, eps: Fraction) -> Array:
        """√(x + eps)."""

    @abstractmethod
    def normalize(self, x: Array, by: Array) -> Array:
        """x / by, row by row.  A row of zeros over zero is zero: the limit eps → 0, with a note."""

    @abstractmethod
    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        """x · gain + bias, each of them where given; with `plus_one` x · (1 + gain) + bias.

        A gain of (head, 1, d_head) has a row for each head of x.
        """

    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        """by · x + plus, each of them where given, entry by entry."""
        raise self._not_known(_("a factor of a whole line"))

    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        """cap · tanh(x / cap), entry by entry."""
        raise self._not_known(_("a soft cap"))

    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        """x, or the limit that it is beyond, entry by entry."""
        raise self._not_known(_("limits of a line"))

    def weigh(self, x: Array, by: Array) -> Array:
        """Each row of x times its one number in `by`, which is (pos, 1)."""
        raise self._not_known(_("rows times a number each"))

    def beside(self, x: Array, y: Array) -> Array:
        """(head, pos, a) and (head or 1, pos, b) → (head, pos, a + b); a y of one head is all's."""
        raise self._not_known(_("parts of heads side by side"))

    def constants(self, *, values: Sequence[Expression]) -> Array:
        """Angles per position of RoPE's pairs, which the plan itself gives."""
        data = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            data[place] = value
        return self.admit_frequencies(data)

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        """table[bucket of query and key, head], as (head, query, key)."""
        raise self._not_known(_("scores by distance"))

    @abstractmethod
    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        """x times a matrix, plus bias.

        An x of three axes (head, pos, d_head) is read with its heads side by side, as `merge_heads`
        lays them.  With `heads`, the result is split into (head, pos, width/heads).
        """

    @abstractmethod
    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        """(pos, any) → (head, pos, width); head h is columns start + h·stride onwards."""

    @abstractmethod
    def merge_heads(self, x: Array) -> Array:
        """(head, pos, d_head) → (pos, head·d_head)."""

    @abstractmethod
    def join(self, x: Array, y: Array) -> Array:
        """The positions of x and then those of y: (head, pos, d_head), both."""

    @abstractmethod
    def rotate(
        self,
        x: Array,
        *,
        frequencies: Array | None = None,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str,
        magnitude: Expression | None = None,
    ) -> Array:
        """RoPE on the first `width` entries of each head; the others pass through.

        Pair i turns by position · frequency_i, where frequency_i = base^(-2i/width) or is given.
        pairing "half": entries (i, i + width/2); "interleaved": entries (2i, 2i + 1).
        (a, b) becomes (a·cos - b·sin, a·sin + b·cos), times the magnitude.
        """

    @abstractmethod
    def scores(
        self,
        q: Array,
        k: Array,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        bias: Array | None = None,
        scale: Expression | None = None,
        cap: Fraction | None = None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        """scale·(q·k) - slope·|query position - key position| + table[head, query, key].

        With a cap c, c·tanh(x/c) of x = scale·(q·k) stands in its place.  `bias` (head, query, key)
        is added as it stands.  Query head h reads key head h // (heads / kv_heads).  ABSENT where
        the mask is False or the table has ABSENT.  `queries` and `keys` are positions, and index
        the table.
        """

    def table_scores(
        self,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        bias: Array | None = None,
        heads: int,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        """table[head, query, key] - slope·|query position - key position|, or 0 without either.

        These are `scores` of queries and keys that are 0.
        """
        q, k = (self.admit(np.zeros((heads, len(rows), 1))) for rows in (queries, keys))
        beside: dict[str, Any] = {"table": table, "slopes": slopes}
        if bias is not None:
            beside["bias"] = bias
        return self.scores(q, k, **beside, mask=mask, queries=queries, keys=keys)

    @abstractmethod
    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        """Softmax over the last axis; ABSENT entries stay absent, and so does a row of them.

        `sinks` (head,) are one more score in each row of a head.  It takes its share of the row,
        which is not in the result.
        """

    @abstractmethod
    def mix(self, weights: Array, v: Array) -> Array:
        """Σ_key weights[head, query, key] · v[kv_head, key]; 0 where all weights are ABSENT."""

    @abstractmethod
    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        """Each head through its slice of the output matrix (identity where there is none)."""

    def expert_linear(
        self, x: Array, weight: Array, *, bias: Array | None = None, layout: str
    ) -> Array:
        """x times the matrix of each expert, plus its bias: (expert, pos, width).

        x is (pos, any), the same for all experts, or (expert, pos, any).  Matrices and biases have
        the experts as their first axis.
        """
        return self.stack(
            [
                self.linear(
                    x if x.ndim == 2 else x[expert],
                    weight[expert],
                    bias=None if bias is None else bias[expert],
                    layout=layout,
                )
                for expert in range(len(weight))
            ]
        )

    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        """1 for the `count` largest of each row, 0 for the others; of equal ones the first count.

        With `groups`, a row is so many groups of neighbours.  Those `groups_chosen` of them count
        whose largest entry is largest, or with the rule "top2" the sum of the two largest.  Where
        the order is not proven, an enclosure of 0 and 1, or Undecided.
        """
        self._no_experts()

    def expert_shares(
        self,
        x: Array,
        chosen: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Array:
        """Softmax over the chosen of each row, or over all of them; 0 for those not chosen.

        `chosen` is 1 or 0.  With `normalised` the shares of a row are 1 together.  With `alone`, x
        itself stands in the place of e^x: it is divided by its sum over the chosen, plus eps, or
        not at all.  The shares are multiplied by the scale.
        """
        self._no_experts()

    def combine(self, x: Array, shares: Array) -> Array:
        """Σ_expert shares[pos, expert] · x[expert, pos]."""
        self._no_experts()

    def _no_experts(self) -> Never:
        raise self._not_known(_("a choice among experts"))

    def _not_known(self, what: str) -> InputError:
        """The error of a number system that does not have an operation, or a part of it."""
        return InputError(
            _("{numbers} cannot work out {what}").format(numbers=type(self).__name__, what=what),
            hint=_("use exact numbers, floats or Arb balls"),
        )

    @abstractmethod
    def activate(self, x: Array, *, kind: str) -> Array:
        """One of `sublayer_specs.ACTIVATIONS`, entry by entry."""

    @abstractmethod
    def argmax(self, x: Array) -> list[Prediction]:
        """The next token at each position."""

    @abstractmethod
    def loss(self, probs: Array, *, target: int) -> Array:
        """-ln probs[last position, target]: an array of one value, shape (1,)."""
