"""The largest of several values, proven, or its candidates."""

from __future__ import annotations

from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.base import Prediction
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import Value


def predict(space: Space, row: list[Value]) -> Prediction:
    """The lowest index of the largest values; undecided where neither order nor a tie is proven."""
    best = leaders(space, row, list(range(len(row))))
    if best is None:
        return Prediction(None, None, False, candidates=candidates(space, row))
    if len(best) > 1:
        return Prediction(best[0], space.value(0), True, tied=tuple(best))
    others = leaders(space, row, [k for k in range(len(row)) if k not in best])
    margin = space.subtract(row[best[0]], row[others[0]]) if others else None
    return Prediction(best[0], margin, True)


def largest(space: Space, row: list[Value], count: int) -> tuple[list[int], bool]:
    """The indices of the `count` largest values, of equal ones the lowest; and whether that order
    decided.  Undecided where neither order nor a tie is proven."""
    chosen: list[int] = []
    while len(chosen) < count:
        rest = [k for k in range(len(row)) if k not in chosen]
        best = leaders(space, row, rest)
        if best is None:
            raise Undecided(_("which of these numbers are the largest is undecided"))
        room = count - len(chosen)
        if len(best) > room:
            return sorted([*chosen, *best[:room]]), True
        chosen += best
    return sorted(chosen), False


def leaders(space: Space, row: list[Value], among: list[int]) -> list[int] | None:
    """The indices of the largest values, a tie proven by algebra; None where it is undecided."""
    best: list[int] = []
    undecided: list[int] = []
    for k in among:
        try:
            order = space.compare(row[k], row[best[0]]) if best else 1
        except Undecided:
            undecided.append(k)
            continue
        if order > 0:
            best = [k]
        elif order == 0:
            best.append(k)
    for k in undecided:  # against the final best the order may be clear
        try:
            if space.compare(row[k], row[best[0]]) >= 0:
                return None
        except Undecided:
            return None
    return best


def candidates(space: Space, row: list[Value]) -> tuple[int, ...]:
    """The indices that no other value is proven to exceed."""

    def exceeded(k: int) -> bool:
        for j in range(len(row)):
            try:
                if j != k and space.compare(row[k], row[j]) < 0:
                    return True
            except Undecided:
                continue
        return False

    return tuple(k for k in range(len(row)) if not exceeded(k))
