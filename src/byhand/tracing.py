"""The trace: every step of a plan with its value, and the questions it can answer.

`evaluate` makes traces, `document` shows them.  A value is looked up by its address and has a
register.  A trace also knows where rows leave the exact numbers (a boundary) and come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand import decimals, display
from byhand.address import Address, read_address, within
from byhand.display import Shown, one_line, quoted
from byhand.errors import AddressError, ByhandError
from byhand.gradients import Gradients
from byhand.language import _
from byhand.model import Model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT, Numbers, Prediction
from byhand.plan import Plan
from byhand.reading import Source
from byhand.standings import Standing, mean_of, perplexity_of, standings
from byhand.worked import Worked, weakest

if TYPE_CHECKING:
    from byhand.proof import Proof, Unproven


@dataclass(frozen=True, slots=True)
class Crossing:
    """One position's row leaves the exact numbers at a step, or comes back to them."""

    address: str
    position: int
    returns: bool
    of_source: bool = False  # the position is one of the source


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
    source: Source | None = None  # what the encoder reads, where there is one
    segments: tuple[int, ...] | None = None  # the kind of each token, where one was given

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
    def logprobs(self) -> tuple[Any, ...] | None:
        """ln of the probability of the token after each position, None where none is known.

        None where they were not asked for.

        >>> import byhand
        >>> byhand.trace("tiny", "a b", logprobs=True).logprobs
        (-ln(1 + e + e^2), None)
        """
        worked = self.steps.get("logprobs")
        if worked is None or worked.missing:
            return None
        return tuple(worked[place] for place in range(worked.step.shape[0]))

    @cached_property
    def standings(self) -> tuple[Standing | None, ...] | None:
        """The standing of the token after each position: rank, margin and entropy.

        None of a position whose next token is not known.  None where none is: `logprobs`, `losses`
        and a target say which tokens come next.

        >>> import byhand
        >>> trace = byhand.trace("tiny", "a b", target="c", numbers="digits 6", logprobs=True)
        >>> [standing.rank for standing in trace.standings], trace.standings[0].margin
        ([3, 2], [1])
        >>> trace.standings[0].entropy.places(4), trace.perplexity.places(4)
        ('0.8324', '6.7369')
        """
        logits, following, targets = self.steps.get("logits"), self.next, self.targets
        if following is None or logits is None or logits.missing is not None:
            return None
        if targets is None and self.target is not None:
            targets = (*[UNCOUNTED] * (len(following) - 1), self.target)
        return None if targets is None else standings(logits, following, targets)

    @cached_property
    def mean_logprob(self) -> Any:
        """The mean of the log-probabilities that are known; None where there are none."""
        return None if self.logprobs is None else mean_of(self.steps["logprobs"])

    @cached_property
    def perplexity(self) -> Any:
        """e to the power of minus the mean log-probability; None where there is none."""
        return None if self.mean_logprob is None else perplexity_of(self.mean_logprob, self.numbers)

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

    def source_token(self, id: int) -> str:
        """The token of an id of the source, as people read it."""
        return self.model.source_vocabulary.tokens[id]

    def answer(self, id: int) -> str:
        """The word of an output's id: a next token, a target."""
        return self.model.outputs.tokens[id]

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """Where each position leaves the exact numbers and where it comes back, in spine order."""
        found: list[Crossing] = []
        if self.numbers.uniform:  # never exact: there is no boundary
            return ()
        for worked in self.forward:
            side = worked.step.of_source
            crossed = {crossing.position for crossing in found if crossing.of_source == side}
            found.extend(self._crossings_at(worked, crossed))
        return tuple(found)

    def _crossings_at(self, worked: Worked, crossed: set[int]) -> Iterator[Crossing]:
        if worked.missing is not None or worked.whole:
            return
        for position, register in enumerate(worked.row_registers):
            if worked.step.shape == (len(self.tokens),) and worked.at((position,)) is ABSENT:
                continue  # a loss that does not count
            side = worked.step.of_source
            own = [row for row in self._rows_read(worked, position)
                   if row[1] == position and self.steps[row[0]].step.of_source == side]  # fmt: skip
            if not own and position in crossed:
                continue  # a second embedding: the sum's other term has left before
            before = weakest(self.steps[address].row_registers[row] for address, row in own)
            if before == "exact" and register not in ("exact", "rounded"):
                yield Crossing(worked.address, position, returns=False, of_source=side)
            if before in ("named", "enclosed") and register == "exact":
                yield Crossing(worked.address, position, returns=True, of_source=side)

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
            here = crossing.position == position and not crossing.of_source
            if here and not crossing.returns:
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
            word = "?" if found.id is None else quoted(self.answer(found.id), 40)
            told += f", next {word}" + ", proven" * found.proven
        name, text = one_line(self.model.name), quoted(self.text, 50)
        return f"<Trace of {name} on {text} ({self.numbers.name}): {told}>"
