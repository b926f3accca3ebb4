"""The messages between server and workers: a kind, a length, and that many bytes.

To a worker:    SET (files and limits), ASK (a question), STOP (the answer is no longer wanted).
From a worker:  READY, TOLD (progress), and for every ASK one of ANSWER, REFUSED, FAILED, STOPPED.
"""

from __future__ import annotations

from asyncio import StreamReader
from struct import Struct
from typing import BinaryIO

SET, ASK, STOP = b"c", b"q", b"s"
READY, TOLD, ANSWER, REFUSED, FAILED, STOPPED = b"R", b"P", b"A", b"E", b"F", b"S"
_HEAD = Struct("!cI")


def framed(kind: bytes, data: bytes = b"") -> bytes:
    """A message as bytes."""
    return _HEAD.pack(kind, len(data)) + data


def read_frame(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """The next message, after waiting for it; None at the end of the stream."""
    head = _exactly(stream, _HEAD.size)
    if head is None:
        return None
    kind, length = _HEAD.unpack(head)
    data = _exactly(stream, length)
    return None if data is None else (kind, data)


def _exactly(stream: BinaryIO, count: int) -> bytes | None:
    data = stream.read(count)
    return data if len(data) == count else None


class Frames:
    """The messages of a stream.  Waiting may be cancelled at any moment without losing bytes."""

    def __init__(self, stream: StreamReader) -> None:
        self.stream = stream
        self._head: bytes | None = None  # of a message that is still incomplete

    async def next(self) -> tuple[bytes, bytes]:
        """The next message; asyncio's IncompleteReadError if the other side has gone."""
        if self._head is None:
            self._head = await self.stream.readexactly(_HEAD.size)
        kind, length = _HEAD.unpack(self._head)
        data = await self.stream.readexactly(length)
        self._head = None
        return kind, data
