"""Experts in floats: who is chosen, by which share, and the sum of what they answer.

An expert is worked out at the positions where it has a share.  Its other numbers are there too:
they are worked out when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from byhand.numbers.base import Array, Note
from byhand.numbers.floats import attention
from byhand.numbers.floats.each_expert import EachExpert, Places, rows_of
from byhand.numbers.floats.formats import Data, narrowed
from byhand.numbers.floats.learning import Learning
from byhand.numbers.floats.results import chosen_of, in_best_groups
from byhand.numbers.floats.system import quiet

Operation = TypeVar("Operation", bound=Callable[..., Any])


def expert_by_expert(operation: Operation) -> Operation:
    """The operation, entry by entry, on what each expert gives: when that is read."""

    @wraps(operation)
    def later(self: Experts, x: Array, *y: Array, **settings: Any) -> Array:
        read = (x, *y, *(settings.pop("y") for _one in [1] if "y" in settings))
        if not any(isinstance(each, EachExpert) for each in read):
            return operation(self, *read, **settings)

        def make(expert: int, places: Places) -> Data:
            rows = (rows_of(each, expert, places) for each in read)
            with self.silent():
                return operation(self, *rows, **settings)  # type: ignore[no-any-return]

        return EachExpert(x.shape, self.dtype, make)

    return later  # type: ignore[return-value]


class Experts(Learning):
    """expert_linear, choose, expert_shares, combine."""

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Drops notes of rows that are worked out for another step, or for the eye."""
        before = list(self.notes)
        try:
            yield
        finally:
            self.notes[:] = before

    def expert_linear(
        self, x: Array, weight: Array, *, bias: Array | None = None, layout: str
    ) -> Array:
        def make(expert: int, places: Places) -> Data:
            more = None if bias is None else bias[expert]
            rows = rows_of(x, expert, places)
            with self.silent():
                found: Data = self.linear(rows, weight[expert], bias=more, layout=layout)
            return found

        outputs = weight.shape[2 if layout == "in_out" else 1]
        return EachExpert((len(weight), x.shape[-2], outputs), self.dtype, make)

    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        scores = self._wide(x)
        tied: list[int] = []
        if groups is not None and groups_chosen is not None:
            scores, tied = in_best_groups(scores, groups, groups_chosen, group_rule)
        chosen, also_tied = chosen_of(scores, count)
        tied = sorted({*tied, *also_tied})
        self.notes += [Note("tied-experts", (position,)) for position in tied]
        return chosen.astype(self.dtype)

    @quiet(all="ignore")
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
        data, away = self._wide(x), self._wide(chosen) == 0
        if alone:
            shares = np.where(away, data.dtype.type(0), data)
            if normalised:
                total = np.add.reduce(shares, axis=-1, keepdims=True)
                shares = shares / (total if eps is None else total + self._constant(eps))
        else:
            if normalised:
                data = np.where(away, data.dtype.type(-np.inf), data)
            shares = attention.shares(data, self._room(*data.shape))
            np.copyto(shares, 0, where=away)
        if scale is not None:
            shares = shares * self._constant(scale)
        return narrowed(shares, self.dtype)

    @quiet(all="ignore")
    def combine(self, x: Array, shares: Array) -> Array:
        """The answers of experts that have a share; 0·∞ is not 0, so the others do not count."""
        weights = self._wide(shares)
        result = np.zeros(x.shape[1:], dtype=weights.dtype)
        for expert in range(len(x)):
            places = np.flatnonzero(weights[:, expert])
            if places.size:
                answers = self._wide(rows_of(x, expert, places))
                result[places] += weights[places, expert, None] * answers
        return self._give(result, shares)
