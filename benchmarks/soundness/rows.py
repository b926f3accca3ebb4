"""What is said of rows of logits: log-probabilities, entropies, ranks, leads and ties.

The logits are enclosed; the true ones stand at the rim of their enclosures, all to one side or each
to its own, and Arb works out the rest.  Words may have equal logits, or nearly equal ones, and one
may have all but 10^-300 of the probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, fmpq

from benchmarks.soundness.counts import Count
from benchmarks.soundness.drawn import RIM, Drawn, enclosed
from benchmarks.soundness.truth import balls, place_of_largest
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.standing import ahead, enclosed_entropies


def logits(drawn: Drawn) -> tuple[Any, Any]:
    """A row of logits and their radii; 0 where they are known exactly."""
    width = drawn.one_of((1, 2, 3, 5, 8))
    row = drawn.random.standard_normal(width) * 10.0 ** drawn.random.uniform(-3, 3)
    if drawn.yes(0.3):
        row[drawn.whole(0, width - 1)] += drawn.one_of((690.0, 2000.0, 1e6, 40.0))
    if width > 1 and drawn.yes(0.4):  # ties, and what is nearly one
        row[0] = row[-1]
        if drawn.yes(0.7):
            row[0] += abs(row[0]) * drawn.one_of((2.0**-52, -(2.0**-52), 1e-9))
    radii = 10.0 ** drawn.random.uniform(-25, 0, width) * drawn.one_of((1.0, 1e-9, 10.0))
    if drawn.yes(0.25):
        radii[:] = 0.0
    elif drawn.yes(0.3):
        radii[:] = radii[0]
    return row, radii


def reals(drawn: Drawn, row: Any, radii: Any, samples: int, own: int) -> Any:
    """Distances of true logits from the middles: at the rim, most of them as bad as can be."""
    signs = drawn.random.choice([-1.0, 1.0], (samples, row.size))
    signs[::3] = drawn.random.uniform(-1, 1, signs[::3].shape)
    signs[0] = 1.0
    signs[1 % samples] = -1.0
    signs[2 % samples, own], signs[3 % samples, own] = -1.0, 1.0
    signs[3 % samples, np.arange(row.size) != own] = -1.0
    return signs * radii * RIM


def ball_of(number: Any) -> tuple[arb, float]:
    """The middle of an enclosure and its radius."""
    mid = arb(fmpq(number.mid.numerator, number.mid.denominator))
    return mid, float(number.rad) * (1 + 2.0**-52)


def logprob_case(drawn: Drawn, count: Count, samples: int) -> None:
    """ln p of one word, and the entropy of the row."""
    row, radii = logits(drawn)
    own = drawn.whole(0, row.size - 1)
    numbers = Limbs(drawn.one_of((40, 90, 200)))
    x = enclosed(row[None], radii[None])
    said, room = ball_of(numbers.entries(numbers.logprobs(x, (own,)))[0])
    entropy, off = (float(one[0]) for one in enclosed_entropies(numbers, x, (1, row.size)))
    here = balls(row)
    for away in reals(drawn, row, radii, samples, own):
        true = [a + b for a, b in zip(here, balls(away), strict=True)]
        logs = logs_of(true)
        count.add(room, [abs(logs[own] - said)], "ln p")
        found = -sum((p.exp() * p for p in logs), arb(0))
        count.add(off, [abs(found - arb(entropy))], "entropy")


def logs_of(row: Sequence[arb]) -> list[arb]:
    most = max(row, key=float)
    whole = sum(((x - most).exp() for x in row), arb(0)).log()
    return [x - most - whole for x in row]


def rank_case(drawn: Drawn, count: Count, samples: int) -> None:
    """Which words are surely likelier, which is the likeliest and by how much; each claim is a
    sample whose distance is 0 where it holds and 2 where it does not."""
    row, radii = logits(drawn)
    own = drawn.whole(0, row.size - 1)
    x = enclosed(row[None], radii[None])
    numbers = Limbs(90)
    near, off = numbers.in_floats(x)
    certain, perhaps = (one[0] for one in ahead(near, off, np.array([own])))
    (found,) = numbers.argmax(x)
    here = balls(row)
    for away in reals(drawn, row, radii, samples, own):
        true = [a + b for a, b in zip(here, balls(away), strict=True)]
        for token, each in enumerate(true):
            if token != own:
                holds = each > true[own] if certain[token] else perhaps[token] or each < true[own]
                count.add(1.0, [arb(0 if holds else 2)], f"rank of {own} beside {token}")
        count.add(1.0, [arb(0 if _holds(found, true) else 2)], f"{found} of {true}")
        if found.margin is not None and not found.tied:
            lead, room = ball_of(found.margin)
            others = [each for token, each in enumerate(true) if token != found.id]
            count.add(room, [abs(true[found.id] - others[place_of_largest(others)] - lead)], "lead")
    if not radii.any():
        count.nearest = 1.0  # of exact numbers everything is decided


def _holds(found: Any, true: Sequence[arb]) -> bool:
    """Whether what is said of the likeliest word is so."""
    if not found.proven:
        best = place_of_largest(true)
        return any(not true[k] < true[best] for k in found.candidates)
    if found.tied:
        return all(not true[k] > true[found.id] for k in range(len(true))) and all(
            (true[k] - true[found.id]).contains(arb(0)) for k in found.tied
        )
    return all(true[k] < true[found.id] for k in range(len(true)) if k != found.id)
