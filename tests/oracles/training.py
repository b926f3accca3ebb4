"""Small models with a whole training step: forward, backward and an optimizer's update.

The cases are those of `architectures`; targets, optimizer and clipping change from case to case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any

from byhand import backward, forward, optimizer
from byhand.evaluate import work_out
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Numbers
from byhand.plan import Plan
from byhand.worked import Worked
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, EntryMaker, spread

CLIPS = (None, Fraction(1, 2), Fraction(10**6))


@dataclass(frozen=True)
class Lesson:
    """A case, the ids that should come, and the rule by which it learns."""

    case: Case
    targets: tuple[int, ...] | None  # None: the last position's target alone
    rule: optimizer.Rule

    @cached_property
    def plan(self) -> Plan:
        case = self.case
        pass_ = forward.plan(
            case.spec,
            len(case.tokens),
            positions=case.positions,
            mask=case.mask,
            target=True,
            losses=self.targets is not None,
        )
        return optimizer.update(backward.adjoint(pass_), self.rule)

    def work(self, numbers: Numbers, plan: Plan | None = None) -> dict[str, Worked]:
        """The whole step in a number system."""
        case = self.case
        return work_out(
            plan or self.plan,
            case.weights,
            case.tokens,
            numbers,
            target=case.target,
            targets=self.targets,
        )

    def oracle(self) -> ArbPass:
        """The whole step in Arb, through the expressions of `byhand.working`."""
        case = self.case
        return ArbPass(self.plan, case.weights, case.tokens, case.target, targets=self.targets)


def lessons(
    count: int, *, seed: int, entry: EntryMaker | None = None, **more: Any
) -> Iterator[Lesson]:
    """So many cases, each with an optimizer and targets of its own; always the same ones."""
    for number, case in enumerate(spread(count, seed=seed, among=3, entry=entry, **more)):
        random = Random(1000 * seed + number)
        vocab, length = case.spec.vocab, len(case.tokens)
        free = [UNCOUNTED, *range(vocab)]
        drawn = (*(random.choice(free) for _place in range(length - 1)), random.randrange(vocab))
        rule = optimizer.Rule(
            kind=optimizer.OPTIMIZERS[number % 4],
            clip=CLIPS[number % 3],
            decay=Fraction(number % 2, 10),
        )
        yield Lesson(case, drawn if number % 5 else None, rule)
