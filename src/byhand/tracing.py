"""The trace: every step of a plan with its value, and the questions it can answer.

`evaluate` makes traces, `document` shows them.  A value is looked up by its address and has a
register.  A trace also knows where rows leave the exact numbers (a boundary) and come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand import decimals, display
from byhand.address import Address, read_address, within
from byhand.display import Shown, one_line, quoted
from byhand.errors import AddressError, ByhandError, InputError, Undecided
from byhand.gradients import Gradients
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT, REGISTERS, Note, Numbers, Prediction, nearest_float
from byhand.plan import GRAD, Plan, Step

if TYPE_CHECKING:
    from byhand.proof import Proof, Unproven

WHOLE = ("given", "argmax")  # operations whose values are ids, not numbers of the number system
ABSENT_AS = {"scores": -np.inf, "softmax": 0.0}  # what a masked entry of a pass is in floats


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a step has no value: an unknown weight, or a decision that could not be made."""

    kind: str  # "unknown" | "undecided"
    cause: str  # the weight that is unknown, or the step that could not be decided
    message: str = ""

    def error(self, address: str) -> ByhandError:
        """The error for reading the value of a missing step."""
        if self.kind == "undecided":
            return Undecided(self.message, where=self.cause)
        return InputError(
            _("{name} cannot be worked out").format(name=address),
            hint=_("{name} is unknown").format(name=self.cause),
        )


@dataclass(frozen=True, slots=True)
class Crossing:
    """One position's row leaves the exact numbers at a step, or comes back to them."""

    address: str
    position: int
    returns: bool


@dataclass(frozen=True)
class Worked(Shown):
    """A step with its value, or with the reason why it has none.

    An index gives an entry or a part of the value, `numpy.asarray` all of it in floats.

    >>> import byhand, numpy
    >>> weights = byhand.trace("tiny", "a b")["block.0.attn.weights"]
    >>> weights
    <block.0.attn.weights 1×2×2 named: [[[1, ·], [1/(1 + e), e/(1 + e)]]]>
    >>> weights[0, 1, 1], weights.register_at((0, 0, 0)), weights.step.reads
    (e/(1 + e), 'exact', ('block.0.attn.scores',))
    >>> numpy.asarray(weights).round(2).tolist()
    [[[1.0, 0.0], [0.27, 0.73]]]
    """

    step: Step
    value: Any
    numbers: Numbers
    notes: tuple[Note, ...] = ()
    missing: Missing | None = None

    @property
    def address(self) -> str:
        """The name of the step, such as block.0.attn.scores."""
        return self.step.address

    @property
    def whole(self) -> bool:
        """Whether the entries are ids, not numbers of the number system."""
        return self.step.op in WHOLE and self.step.axes in ((), ("pos",))

    @cached_property
    def array(self) -> Any:
        """The value as an array on this machine."""
        return self.numbers.entries(self.value)

    def __getitem__(self, index: Any) -> Any:
        """An entry or a part of the value; where the step is missing, the error that says why."""
        if self.missing is not None:
            raise self.missing.error(self.address)
        if self.whole:
            return self.value[index[0] if isinstance(index, tuple) else index]
        return decimals.handed_out(_absent_or(self.array[index]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Ids as int64, floats as they are, other numbers as the nearest float64; for an enclosure,
        that of its midpoint.  A masked score is -∞ and a masked attention weight 0.

        Raises the error that says why where a step is missing, or an id or a number is unknown.
        """
        if self.missing is not None:
            raise self.missing.error(self.address)
        found = self.value if self.whole else self._in_floats()
        if self.step.op == "argmax":
            found = [prediction.id for prediction in self.value]
            if None in found:
                place = f"{self.address}[{found.index(None)}]"
                raise Undecided(_("the next token is undecided"), where=place)
        return np.array(found, dtype or (np.int64 if self.whole else None), copy=copy)

    def _in_floats(self) -> np.ndarray[Any, Any]:
        if isinstance(self.array, np.ndarray) and self.array.dtype != np.dtype(object):
            data = np.array(np.ma.getdata(self.array))  # a copy: nobody writes into a trace
            if isinstance(self.array, np.ma.MaskedArray):
                data[np.ma.getmaskarray(self.array)] = self.absent
            return data
        flat = [self.absent if x is ABSENT else nearest_float(x) for _index, x in self.entries()]
        return np.asarray(flat, dtype=np.float64).reshape(self.step.shape)

    @property
    def absent(self) -> float:
        """A masked entry in floats: a score is -∞, a weight or a gradient 0, a loss no number."""
        if self.address.startswith(GRAD):
            return 0.0
        return ABSENT_AS.get(self.step.op, np.nan)

    def at(self, index: tuple[int, ...]) -> Any:
        """One entry; ABSENT where it is masked."""
        return _absent_or(self.array[index])

    def entries(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Every entry with its index; masked ones are ABSENT.  Empty where the step is missing."""
        if self.missing is None and not self.whole:
            for index in product(*map(range, self.step.shape)):
                yield index, self.at(index)

    def register_at(self, index: tuple[int, ...]) -> str | None:
        """The register of one entry; None where it is masked or missing."""
        if self.missing is not None:
            return None
        if self.whole:
            return self.register
        entry = self.at(index)
        return None if entry is ABSENT else self.numbers.register(entry)

    @cached_property
    def register(self) -> str | None:
        """The weakest register of the entries; None where the step is missing."""
        if self.missing is not None:
            return None
        if self.step.op == "given" and self.whole:
            return "exact"
        if self.numbers.uniform or self.whole:
            return self.numbers.uniform or "exact"
        return weakest(self.numbers.register(x) for _i, x in self.entries() if x is not ABSENT)

    @cached_property
    def row_registers(self) -> tuple[str, ...]:
        """The weakest register of each position's entries; empty where there are no positions."""
        axis = self.step.position_axis
        if axis is None or self.missing is not None:
            return ()
        if self.numbers.uniform or self.whole:
            return (self.register or "exact",) * self.step.shape[axis]
        rows: list[list[str]] = [[] for _row in range(self.step.shape[axis])]
        for index, entry in self.entries():
            if entry is not ABSENT:
                rows[index[axis]].append(self.numbers.register(entry))
        return tuple(map(weakest, rows))

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.step.shape))
        if self.missing is not None:
            return f"<{self.address} {shape} {self.missing.kind}: {self.missing.cause}>"
        shown = self.value if self.whole else self.array
        if self.step.op == "argmax":
            shown = ["?" if found.id is None else found.id for found in self.value]
        return f"<{self.address} {shape} {self.register}: {_short(shown)}>"


def _absent_or(entry: Any) -> Any:
    """The entry; ABSENT where NumPy has it masked."""
    return ABSENT if entry is np.ma.masked else entry


def weakest(registers: Any) -> str:
    """The weakest of some registers; "exact" where there are none."""
    return max(registers, key=REGISTERS.index, default="exact")


def _short(value: Any, width: int = 60) -> str:
    if isinstance(value, np.ndarray) and value.size > width:  # too many to fit
        first = value[(0,) * (value.ndim - 1)][:width]
        return ("[" * (value.ndim - 1) + _plain(first))[: width - 1] + "…"
    text = _plain(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return "·" if _absent_or(value) is ABSENT else str(value)


@dataclass(frozen=True)
class Trace(Mapping[str, Any], Shown):
    """The whole working of one text: a mapping from addresses to steps.

    An address with an index gives an entry, or a part of a step.

    >>> import byhand
    >>> trace = byhand.trace("tiny", "a b")
    >>> trace["logits"]
    <logits 2×3 exact: [[1, -1, 0], [1, -1, 0]]>
    >>> trace["block.0.attn.weights[0,1,1]"], trace["logits[1]"].tolist()
    (e/(1 + e), [1, -1, 0])
    >>> trace["block.0.attn.weights[0,1,1]"].places(4)
    '0.7311'
    >>> len(trace), list(trace)[:2], "loss" in trace, trace.next[-1].proven
    (31, ['tokens', 'embed.token'], False, True)
    """

    model: Model
    plan: Plan
    numbers: Numbers
    text: str
    tokens: tuple[int, ...]
    steps: Mapping[str, Worked]
    target: int | None = None
    asked: tuple[str, ...] = ()  # the steps asked for; none: all of the plan
    proof: Proof | None = None  # of enclosures: the digits asked for, and what is proven
    targets: tuple[int, ...] | None = None  # the next id after each position, or UNCOUNTED

    @property
    def digits(self) -> int | None:
        """How many significant digits were to be proven; None where no proof was asked for."""
        return None if self.proof is None else self.proof.digits

    def __getitem__(self, address: str) -> Any:
        """A step by its address or alias; with an index, an entry or a part of its value."""
        wanted = read_address(address)
        worked = self.worked(wanted)
        return worked if not wanted.index else worked[within(wanted, worked.step.shape)]

    def worked(self, address: Address) -> Worked:
        """The step of an address; an AddressError with the nearest names where there is none."""
        step = self.plan[address.name]
        if step.address not in self.steps:
            raise AddressError(
                _("{name} was not worked out").format(name=address.name),
                hint=_("it is not among the steps asked for"),
            )
        return self.steps[step.address]

    def __iter__(self) -> Iterator[str]:
        """The addresses of the steps, in the order in which they were worked out."""
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def values(self) -> ValuesView[Worked]:
        """The steps, in the order in which they were worked out."""
        return self.steps.values()

    def __contains__(self, address: object) -> bool:
        """Whether the step was worked out; with an index, whether the entry has a value."""
        if not isinstance(address, str):
            return False
        try:
            self[address]
        except ByhandError:
            return False
        return True

    def number(self, address: str) -> Any:
        """The one number at an address; a step that holds one needs no index.

        An AddressError where the address holds several numbers or none: a token, or a masked entry.
        """
        found = self[address]
        if isinstance(found, Worked) and not found.whole and found.step.shape == (1,):
            found = found[(0,)]
        if found is ABSENT or isinstance(found, Worked | Prediction | np.ndarray):
            raise AddressError(
                _("there is not one number at {address}").format(address=address),
                hint=_("an index says which, such as {example}").format(example="logits[0,0]"),
            )
        return found

    def places(self, address: str, count: int) -> str:
        """The number at an address with so many digits behind the point, whatever its kind."""
        return decimals.places(decimals.sayable(self.number(address), self.numbers), count)

    def significant(self, address: str, count: int) -> str:
        """The number at an address with so many significant digits, whatever its kind."""
        return decimals.significant(decimals.sayable(self.number(address), self.numbers), count)

    @property
    def next(self) -> list[Prediction] | None:
        """The prediction after each position; None where it was not worked out."""
        worked = self.steps.get("next")
        return None if worked is None or worked.missing else worked.value

    @property
    def loss(self) -> Any:
        """-ln of the target's probability; None where no target was given."""
        worked = self.steps.get("loss")
        return None if worked is None or worked.missing else worked[0]

    @property
    def losses(self) -> tuple[Any, ...] | None:
        """The loss at each position, None where it does not count; None where not asked for."""
        worked = self.steps.get("losses")
        if worked is None or worked.missing:
            return None
        return tuple(worked[place] for place in range(worked.step.shape[0]))

    @property
    def mean_loss(self) -> Any:
        """The mean of the losses at all positions; None where it was not asked for."""
        worked = self.steps.get("mean_loss")
        return None if worked is None or worked.missing else worked[0]

    @property
    def forward(self) -> Iterator[Worked]:
        """The steps of the forward pass alone."""
        return (worked for worked in self.values() if worked.step.stage == "forward")

    @cached_property
    def grad(self) -> Gradients:
        """The gradients of the loss, by what they are gradients of: a step, or `weight.` a name.

        >>> import byhand
        >>> trace = byhand.trace("tiny", "a b", target="c", backward=True)
        >>> trace.grad["logits"][1].tolist()
        [e^2/(1 + e + e^2), 1/(1 + e + e^2), (-1 - e^2)/(1 + e + e^2)]
        >>> trace.grad["weight.block.0.mlp.norm.gain"]
        <grad.weight.block.0.mlp.norm.gain 2 named: [-1/(1 + e + e^2), e^2/(1 + e + e^2)]>
        """
        return Gradients(self)

    @property
    def undecided(self) -> tuple[Unproven, ...]:
        """The first things that were to be proven and are not."""
        return () if self.proof is None else self.proof.undecided

    def token(self, id: int) -> str:
        """The token of an id, as people read it."""
        return self.model.vocabulary.tokens[id]

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """Where each position leaves the exact numbers and where it comes back, in spine order."""
        found: list[Crossing] = []
        if self.numbers.uniform:  # never exact: there is no boundary
            return ()
        for worked in self.forward:
            found.extend(self._crossings_at(worked, {crossing.position for crossing in found}))
        return tuple(found)

    def _crossings_at(self, worked: Worked, crossed: set[int]) -> Iterator[Crossing]:
        if worked.missing is not None or worked.whole:
            return
        for position, register in enumerate(worked.row_registers):
            own = [row for row in self._rows_read(worked, position) if row[1] == position]
            if not own and position in crossed:
                continue  # a second embedding: the sum's other term has left before
            before = weakest(self.steps[address].row_registers[row] for address, row in own)
            if before == "exact" and register not in ("exact", "rounded"):
                yield Crossing(worked.address, position, returns=False)
            if before in ("named", "enclosed") and register == "exact":
                yield Crossing(worked.address, position, returns=True)

    def _rows_read(self, worked: Worked, position: int) -> Iterator[tuple[str, int]]:
        """The rows (step, position) that a row of a step reads; k and v at every key seen."""
        for role, address in worked.step.inputs.items():
            read = self.steps.get(address)  # None: a weight
            if read is None or not read.row_registers:
                continue
            if role in ("k", "v"):
                yield from ((address, key) for key in self._seen(worked, position))
            else:
                yield address, position

    @cached_property
    def beyond_boundary(self) -> frozenset[tuple[str, int]]:
        """The rows (step, position) that read a row which has left the exact numbers."""
        beyond: set[tuple[str, int]] = set()
        for worked in self.forward:
            for position in range(len(worked.row_registers)):
                if any(
                    row in beyond or self.steps[row[0]].row_registers[row[1]] != "exact"
                    for row in self._rows_read(worked, position)
                ):
                    beyond.add((worked.address, position))
        return frozenset(beyond)

    def _seen(self, worked: Worked, position: int) -> Iterator[int]:
        """The keys that a position looks at with any head."""
        shares = worked if worked.step.op == "scores" else self.steps[worked.step.inputs["weights"]]
        heads, _queries, keys = shares.step.shape
        for key in range(keys):
            if any(shares.at((head, position, key)) is not ABSENT for head in range(heads)):
                yield key

    def stopped_at(self, position: int) -> str | None:
        """The step at which a position first leaves the exact numbers, if it does."""
        for crossing in self.crossings:
            if crossing.position == position and not crossing.returns:
                return crossing.address
        return None

    def save(self, folder: str | Path, *, names: str = "byhand") -> None:
        """Writes golden files: a folder with every number (docs/golden-files.md).

        `names` is the style of the steps' names, one of `byhand.names.STYLES`.
        """
        display.save(self, folder, names=names)

    def __repr__(self) -> str:
        told = f"{len(self.steps)} steps"
        if self.next:
            found = self.next[-1]
            word = "?" if found.id is None else quoted(self.token(found.id), 40)
            told += f", next {word}" + ", proven" * found.proven
        name, text = one_line(self.model.name), quoted(self.text, 50)
        return f"<Trace of {name} on {text} ({self.numbers.name}): {told}>"
