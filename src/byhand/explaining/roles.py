"""What a head is for on this text: where its attention goes, row by row, as far as it is clear.

A role is measured over the rows of the attention weights that see two positions or more.  It is
told only if the positions it names have at least CLEAR of the weight on average, LIFT times as much
as even weights would give them, and the largest weight in at least MOST of the rows.  Floats near
the weights are compared, which proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from byhand.explaining.approximations import Floats, floats_near
from byhand.tracing import Trace

CLEAR, MOST = 0.4, 0.6
LIFT = 1.5  # times as much as even weights would give those positions
HALF, TOGETHER = 0.5, 0.75  # of the weight of one row: for one position, and for two
FEWEST = 3  # rows from which a rule is one
EVEN = 0.1  # largest distance of a row from equal weights

Wanted = Callable[[int], Sequence[int]]  # the positions that a role names for one row


@dataclass(frozen=True, slots=True)
class Role:
    """Where a head looks: `average` of its weight, and the most in `first` of `rows` rows.

    The kinds are before, itself, start, same, after_same, one (the position `key`) and even.
    """

    kind: str
    average: float
    first: int
    rows: int
    key: int | None = None


@dataclass(frozen=True, slots=True)
class HeadRole:
    """A head with its role, and with the positions that it looks at from the one explained."""

    layer: int
    head: int
    role: Role | None
    keys: tuple[int, ...]  # one with at least HALF of the weight there, or two with TOGETHER


def head_roles(trace: Trace, position: int) -> tuple[HeadRole, ...]:
    """Every head whose weights are known, with what is clear about it."""
    found = []
    for layer, block in enumerate(trace.model.spec.blocks):
        worked = trace.steps.get(f"block.{layer}.attn.weights")
        if block.attention is None or worked is None or worked.missing is not None:
            continue
        near = floats_near(trace.numbers, worked.value)
        for head in range(near.shape[0]):
            row = np.nan_to_num(near[head, position], nan=0.0)
            role = role_of(near[head], trace.tokens)
            found.append(HeadRole(layer, head, role, _looked_at(row)))
    return tuple(found)


def _looked_at(row: Floats) -> tuple[int, ...]:
    """The position that has most of the weight, or the two that have nearly all of it."""
    first, *others = (int(key) for key in np.argsort(-row, kind="stable")[:2])
    if row[first] >= HALF:
        return (first,)
    pair = (first, *others)
    return pair if len(row) > 2 and row[list(pair)].sum() >= TOGETHER else ()


def role_of(weights: Floats, tokens: Sequence[int]) -> Role | None:
    """The clearest role of one head, if there is one; `weights` are (query, key), NaN if masked."""
    seen = ~np.isnan(weights)
    rows = [place for place in range(len(weights)) if seen[place].sum() > 1]
    if len(rows) < FEWEST:
        return None
    shares = np.nan_to_num(weights, nan=0.0)
    roles = [role for role in _roles(shares, seen, rows, tokens) if role is not None]
    if roles:
        return max(roles, key=lambda role: role.average)
    return _even(shares, seen, rows)


def _roles(
    shares: Floats, seen: np.ndarray, rows: Sequence[int], tokens: Sequence[int]
) -> Iterator[Role | None]:
    def earlier(place: int) -> list[int]:
        return [at for at in range(place) if tokens[at] == tokens[place]]

    rules: dict[str, Wanted] = {
        "before": lambda place: [place - 1],
        "itself": lambda place: [place],
        "start": lambda place: [0] if place > 1 else [],
        "same": earlier,
        "after_same": lambda place: [at + 1 for at in earlier(place) if at + 1 < place],
    }
    for kind, wanted in rules.items():
        yield _measured(kind, shares, seen, rows, wanted)
    for key in range(1, shares.shape[1]):
        found = _measured("one", shares, seen, rows, lambda _place: [key])  # noqa: B023
        if found is not None and 2 * found.rows >= len(rows):
            yield Role("one", found.average, found.first, found.rows, key)


def _measured(
    kind: str, shares: Floats, seen: np.ndarray, rows: Sequence[int], wanted: Wanted
) -> Role | None:
    told = [(place, [at for at in wanted(place) if at >= 0 and seen[place, at]]) for place in rows]
    told = [(place, keys) for place, keys in told if keys]
    if len(told) < FEWEST:
        return None
    average = float(np.mean([shares[place, keys].sum() for place, keys in told]))
    first = sum(int(shares[place].argmax()) in keys for place, keys in told)
    even = float(np.mean([len(keys) / seen[place].sum() for place, keys in told]))
    clear = average >= max(CLEAR, LIFT * even) and first >= MOST * len(told)
    return Role(kind, average, first, len(told)) if clear else None


def _even(shares: Floats, seen: np.ndarray, rows: Sequence[int]) -> Role | None:
    """Equal weights for everything that is seen."""
    apart = [
        float(np.abs(shares[place][seen[place]] * seen[place].sum() - 1).max()) for place in rows
    ]
    return Role("even", max(apart), len(rows), len(rows)) if max(apart) <= EVEN else None
