"""Answers kept for a while: the last few results, by what they are the result of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """The results of the last questions, as many as weigh at most `most` together.

    What weighs more than that by itself is not kept, and nothing is kept of an error.
    """

    def __init__(self, most: int, weigh: Callable[[T], int] = lambda _made: 1) -> None:
        self.most = most
        self.weigh = weigh
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was kept under a key, else what `make` gives, which is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        made = make()
        weight = self.weigh(made)
        with self._lock:
            if weight <= self.most and key not in self._kept:
                self._kept[key] = (made, weight)
                self._weight += weight
            while self._weight > self.most:
                _key, (_old, less) = self._kept.popitem(last=False)
                self._weight -= less
        return made

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._kept.clear()
            self._weight = 0
