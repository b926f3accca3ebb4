"""Decisions of the host about numbers on a device, kept for later passes.

The host decides how many limbs a result gets, on which grid it stands and where a product is split.
It decides from numbers on the device: the largest row norm, the smallest radius.  Each such
question makes the host wait.  A pass of the same plan asks the same questions in the same order.
So answers can be kept (`Noting`) and given again without reading the device (`Repeating`).  They
are not trusted then:

    bounds    what a proof rests on (no entry is larger than this, this limb is empty, no checksum
              differs) is compared, on the device, with what this pass really has; all comparisons
              are made in the end, at once, and where one fails the pass is void.
    choices   what no proof rests on (a grid) is taken as it was.

While noting, bounds get some room, so that other tokens keep within them.  Engines ask `answers()`;
NumPy's does not ask at all.  Passes that are done again as a whole are in `repeated_pass`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from byhand.errors import ByhandError

Array = Any
Kept = TypeVar("Kept")
Claim = tuple[Array, Sequence[float]]  # numbers on the device, and what they must not exceed

ROOM = 2.0  # the usual factor: texts of hundreds of tokens differ by less


class CannotRepeat(ByhandError):
    """A pass that needs the host on the way: it is worked out as usual each time."""


class Answers(ABC):
    """A source of answers to questions about numbers on a device."""

    room = 1.0  # the factor by which numbers of other tokens may be larger

    @abstractmethod
    def decide(
        self, choose: Callable[[float], Kept], claims: Callable[[Kept], Sequence[Claim]]
    ) -> Kept:
        """The decision of `choose`, which reads the device; it is valid while its claims hold."""

    def bounds(
        self, values: Array, widened: Callable[[float, float], float] | None = None
    ) -> list[float]:
        """Upper bounds of the numbers of a row; `widened` adds the room to a bound."""

        def choose(room: float) -> list[float]:
            found: list[float] = values.tolist()
            if room == 1.0:
                return found
            if widened is not None:
                return [widened(value, room) for value in found]
            return [value * room if value > 0 else value / room for value in found]

        return self.decide(choose, lambda kept: [(values, kept)])

    def guess(self, value: Array) -> float:
        """An estimate of this number; no proof may rest on it."""
        return self.decide(lambda room: float(value), lambda kept: [])

    def holds(self, condition: Array) -> bool:
        """True only if the condition holds everywhere; False says nothing."""

        def choose(room: float) -> bool:
            return bool(condition.all())

        def claims(kept: bool) -> Sequence[Claim]:
            return [((~condition).any()[None].double(), [0.0])] if kept else []

        return self.decide(choose, claims)

    @abstractmethod
    def read_by_host(self) -> None:
        """Called before the host reads numbers that a repeated pass cannot ask for."""


class Now(Answers):
    """Reads the device each time."""

    def decide(
        self, choose: Callable[[float], Kept], claims: Callable[[Kept], Sequence[Claim]]
    ) -> Kept:
        return choose(self.room)

    def read_by_host(self) -> None:
        pass


class Noting(Answers):
    """Reads the device, adds room, and keeps the answers."""

    def __init__(self, room: float = ROOM) -> None:
        self.room = room
        self.kept: list[Any] = []

    def decide(
        self, choose: Callable[[float], Kept], claims: Callable[[Kept], Sequence[Claim]]
    ) -> Kept:
        self.kept.append(choose(self.room))
        made: Kept = self.kept[-1]
        return made

    def read_by_host(self) -> None:
        raise CannotRepeat("the host has to look at all numbers")


class Repeating(Answers):
    """Repeats the kept answers; their claims are checked on the device."""

    def __init__(self, noted: Noting) -> None:
        self._left = iter(noted.kept)
        self._values: list[Array] = []
        self._most: list[float] = []

    def decide(
        self, choose: Callable[[float], Kept], claims: Callable[[Kept], Sequence[Claim]]
    ) -> Kept:
        try:
            kept: Kept = next(self._left)
        except StopIteration:
            raise CannotRepeat("more was asked than before") from None
        for values, most in claims(kept):
            if any(bound != float("inf") for bound in most):
                self._values.append(values.reshape(-1))
                self._most += most
        return kept

    def claimed(self) -> tuple[list[Array], list[float]]:
        """Rows of numbers on the device, and what each number must not exceed."""
        if next(self._left, None) is not None:
            raise CannotRepeat("less was asked than before")
        return self._values, self._most

    def read_by_host(self) -> None:
        raise CannotRepeat("the host has to look at all numbers")


_answers: list[Answers] = [Now()]


def answers() -> Answers:
    """The current source of answers."""
    return _answers[-1]


@contextmanager
def answered_by(who: Answers) -> Iterator[Answers]:
    """Sets the source of answers inside the block."""
    _answers.append(who)
    try:
        yield who
    finally:
        _answers.pop()


def outside_the_pass(make: Callable[[], Kept]) -> Kept:
    """The result of make(), which is kept for ever: its questions belong to no pass."""
    if isinstance(answers(), Repeating):
        raise CannotRepeat("something was not there before")
    with answered_by(Now()):
        return make()
