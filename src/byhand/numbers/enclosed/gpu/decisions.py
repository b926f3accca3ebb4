"""Decisions of the host about numbers on a device, kept from one pass for the next.

How many limbs a result gets, on which grid it stands and where a product is split is decided by the
host, from numbers on the device: the largest row norm, the smallest radius.  Each such question
makes the host wait.  A pass of the same plan asks the same questions in the same order, so answers
can be kept (`Noting`) and given again without looking (`Repeating`).  They are not trusted then:

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

ROOM = 2.0  # the usual: texts of hundreds of tokens differ by less


class CannotRepeat(ByhandError):
    """A pass that takes a way which needs the host: it is worked out as usual, each time."""


class Answers(ABC):
    """Who answers questions about numbers on a device."""

    room = 1.0  # so many times larger may numbers of other tokens be

    @abstractmethod
    def decide(
        self, choose: Callable[[float], Kept], claims: Callable[[Kept], Sequence[Claim]]
    ) -> Kept:
        """What `choose` decides, which looks at the device; it holds while its claims do."""

    def bounds(
        self, values: Array, widened: Callable[[float, float], float] | None = None
    ) -> list[float]:
        """Numbers that those of a row do not exceed; `widened` says what becomes of one with
        room."""

        def choose(room: float) -> list[float]:
            found: list[float] = values.tolist()
            if room == 1.0:
                return found
            if widened is not None:
                return [widened(value, room) for value in found]
            return [value * room if value > 0 else value / room for value in found]

        return self.decide(choose, lambda kept: [(values, kept)])

    def guess(self, value: Array) -> float:
        """About this number; no proof may rest on it."""
        return self.decide(lambda room: float(value), lambda kept: [])

    def holds(self, condition: Array) -> bool:
        """True only if the condition does, everywhere; False says nothing."""

        def choose(room: float) -> bool:
            return bool(condition.all())

        def claims(kept: bool) -> Sequence[Claim]:
            return [((~condition).any()[None].double(), [0.0])] if kept else []

        return self.decide(choose, claims)

    @abstractmethod
    def read_by_host(self) -> None:
        """Said before the host reads what it cannot ask for again."""


class Now(Answers):
    """Looks each time."""

    def decide(
        self, choose: Callable[[float], Kept], claims: Callable[[Kept], Sequence[Claim]]
    ) -> Kept:
        return choose(self.room)

    def read_by_host(self) -> None:
        pass


class Noting(Answers):
    """Looks, with room to spare, and keeps what it has answered."""

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
    """Answers as before, without looking; what that claims is compared on the device."""

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
    """Who answers now."""
    return _answers[-1]


@contextmanager
def answered_by(who: Answers) -> Iterator[Answers]:
    """Lets somebody else answer inside the block."""
    _answers.append(who)
    try:
        yield who
    finally:
        _answers.pop()


def outside_the_pass(make: Callable[[], Kept]) -> Kept:
    """make(), whose result is kept for ever: what is asked on the way belongs to no pass."""
    if isinstance(answers(), Repeating):
        raise CannotRepeat("something was not there before")
    with answered_by(Now()):
        return make()
