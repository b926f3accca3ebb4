"""Random regions of a model: weights and embeddings within ranges, and single choices of them.

A pass of forms covers a whole region.  Each choice of letters is one model and one text, worked out
in Arb balls of 256 bits.  Every number of that pass must lie in its form at this choice: within the
errors of  terms[0] + Σ terms[l]·ε_l,  not just between the ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.numbers.base import ABSENT, Numbers, Within
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.plan import Plan
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.architectures import Case
from oracles.sampled_forms import holds

BITS = 256


@dataclass(frozen=True)
class Region:
    """A plan, weights of which some are ranges, and moves of the embeddings by letters."""

    plan: Plan
    weights: Weights
    tokens: tuple[int, ...]
    ranges: tuple[tuple[str, tuple[int, ...]], ...]  # (name, index) of each weight with a letter
    moves: Any  # (letter, case, pos, d), letter 0 a shift of the middle


def random_region(case: Case, seed: int) -> Region:
    """Ranges in about a third of the weights, or in none; one to three letters of the text."""
    random = Random(seed)
    shape = len(case.tokens), case.spec.d_model
    plan = forward.plan(
        case.spec, shape[0], positions=case.positions, mask=case.mask, head_outputs=True
    )
    radius = Fraction(1, 10 ** random.choice((1, 2, 4, 8)))
    often = random.choice((0.0, 0.3))
    weights, ranges = {}, []
    for name, tensor in case.weights.items():
        data = tensor.data.copy()
        for index in np.ndindex(data.shape):
            entry: Any = data[index]
            if isinstance(entry, Fraction) and random.random() < often:
                data[index] = Within(entry, radius)
                ranges.append((name, index))
        weights[name] = Tensor(name, data)
    letters, cases = random.choice((0, 1, 3)), random.choice((1, 2))
    moves = np.random.default_rng(seed).normal(size=(letters + 1, cases, *shape))
    moves *= random.choice((1e-3, 0.1, 1.0))
    if letters == 0:
        moves *= 0
    return Region(plan, Weights(weights), case.tokens, tuple(ranges), moves)


def worked_in_forms(region: Region, numbers: Any) -> dict[str, Worked]:
    """One pass for the whole region."""
    admitted = Admitted(region.weights, numbers)
    for name in region.weights:
        if name.endswith("score_table"):
            admitted.table(name, region.weights[name].data.shape[-1])
        else:
            admitted[name]
    moves = numbers.given(region.moves)
    return work_out(
        region.plan, admitted, region.tokens, numbers, revise=_moved_by(numbers.add, moves, numbers)
    )


def _moved_by(add: Any, moves: Any, numbers: Numbers) -> Any:
    def revise(worked: Worked) -> Worked:
        if worked.address != "embed.token":
            return worked
        return Worked(worked.step, add(worked.value, moves), numbers)

    return revise


def choices(region: Region, seed: int, count: int) -> Iterator[list[Fraction]]:
    """Choices of all letters: many of them at an end."""
    random = Random(seed)
    for _choice in range(count):
        yield [
            Fraction(random.choice((-1, 1, Fraction(random.randrange(-100, 101), 100))))
            for _letter in range(len(region.ranges) + len(region.moves) - 1)
        ]


def worked_in_balls(region: Region, letters: list[Fraction], case: int) -> dict[str, Worked]:
    """One model of the region with one text, in balls."""
    tensors = {name: tensor.data.copy() for name, tensor in region.weights.items()}
    for letter, (name, index) in zip(letters, region.ranges, strict=False):
        known = tensors[name][index]
        tensors[name][index] = known.value + letter * known.radius
    weights = Weights({name: Tensor(name, data) for name, data in tensors.items()})
    factors = [Fraction(1), *letters[len(region.ranges) :]]
    balls = Balls(BITS)
    moves = np.empty(region.moves.shape[2:], dtype=object)
    for index in np.ndindex(moves.shape):
        moves[index] = sum(
            Fraction(float(part)) * factor
            for part, factor in zip(region.moves[:, case][(..., *index)], factors, strict=True)
        )
    return work_out(
        region.plan,
        weights,
        region.tokens,
        balls,
        revise=_moved_by(balls.add, balls.admit(moves), balls),
    )


def outside(
    region: Region, passed: dict[str, Worked], letters: list[Fraction], case: int
) -> Iterator[str]:
    """Entries of a pass of forms that do not hold the real value at this choice, as text."""
    real = worked_in_balls(region, letters, case)
    for step in region.plan:
        if step.op in ("given", "argmax"):
            continue
        form: Any = passed[step.address].value
        balls: Any = real[step.address]
        for index, ball in np.ndenumerate(balls.numbers._balls(balls.value)):
            hidden = form.absent is not None and bool(
                form.absent[min(case, len(form.absent) - 1)][index]
            )
            if hidden != (ball is ABSENT):
                yield f"{step.address}{list(index)}: masked in one pass alone"
            elif not hidden and ball.is_finite() and not holds(form, letters, case, index, ball):
                yield f"{step.address}{list(index)}: {ball} is not in its form"
