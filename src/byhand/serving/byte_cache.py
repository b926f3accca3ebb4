"""Answers that are kept for a while, as bytes, by the question they answer."""

from __future__ import annotations

from collections import OrderedDict


class Shelf:
    """The answers asked for last, of at most `most` bytes together and `most_each` each."""

    def __init__(self, most: int, most_each: int) -> None:
        self.most = most
        self.most_each = most_each
        self.size = 0
        self._kept: OrderedDict[object, bytes] = OrderedDict()

    def get(self, key: object) -> bytes | None:
        """The answer, which now counts as asked for last."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def put(self, key: object, answer: bytes) -> None:
        """Keeps an answer; those that were not asked for longest make room."""
        if len(answer) > self.most_each:
            return
        self.size += len(answer) - len(self._kept.pop(key, b""))
        self._kept[key] = answer
        while self.size > self.most:
            _key, old = self._kept.popitem(last=False)
            self.size -= len(old)
