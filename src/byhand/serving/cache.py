"""A cache of recent results, up to a total weight."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """The most recently used results, with at most `most` weight in all and `most_each` each."""

    def __init__(
        self,
        most: int,
        weigh: Callable[[T], int] = lambda _made: 1,
        most_each: int | None = None,
    ) -> None:
        self.most = most
        self.most_each = most if most_each is None else most_each
        self.weigh = weigh
        self.weight = 0
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """The result of a key, which becomes the most recently used; None if it is not kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, made: T) -> None:
        """Keeps a result; the least recently used results make room."""
        weight = self.weigh(made)
        if weight > self.most_each:
            return
        with self._lock:
            if key in self._kept:
                self.weight -= self.weigh(self._kept.pop(key))
            self._kept[key] = made
            self.weight += weight
            while self.weight > self.most:
                _key, old = self._kept.popitem(last=False)
                self.weight -= self.weigh(old)

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result kept under a key, else the result of `make`, which is kept."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found
