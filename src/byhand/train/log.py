"""The records of a run: log.jsonl, and event files for TensorBoard.

A line of log.jsonl depends on the run alone, never on the clock, so that equal runs have equal
logs, byte for byte.  A checkpoint stores the length and the SHA-256 of the log; later lines are cut
off when the run is resumed.  Times go to timings.jsonl.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from byhand.errors import InputError
from byhand.language import _

LOG, TIMINGS, EVENTS = "log.jsonl", "timings.jsonl", "events"
OFTEN = 1.0  # seconds between writes to the file


class Log:
    """log.jsonl, from where a checkpoint left it."""

    def __init__(self, folder: Path, size: int = 0, digest: str | None = None) -> None:
        """Keeps the first `size` bytes, which must have this SHA-256."""
        self.path = folder / LOG
        self._hash = hashlib.sha256()
        self.records: list[dict[str, Any]] = []
        kept = self.path.read_bytes()[:size] if size and self.path.exists() else b""
        self._hash.update(kept)
        if len(kept) < size or (size and self._hash.hexdigest() != digest):
            raise InputError(
                _("the log is not the one the checkpoint was saved with"),
                where=str(self.path),
                expected=_("{size} bytes with the SHA-256 {digest}").format(
                    size=f"{size:,}", digest=str(digest)[:16]
                ),
                found=_("{size} bytes with the SHA-256 {digest}").format(
                    size=f"{len(kept):,}", digest=self._hash.hexdigest()[:16]
                ),
            )
        self.records = [json.loads(line) for line in kept.splitlines()]
        self._validation: float | None = None
        for record in self.records:
            self._validation = record.get("validation_loss", self._validation)
        self.size = size
        self._waiting: list[bytes] = []
        self._written = time.monotonic()
        self._file: BinaryIO = self.path.open("r+b" if self.path.exists() else "wb")
        self._file.truncate(size)
        self._file.seek(size)

    @property
    def validation(self) -> float | None:
        """The last held-out loss."""
        return self._validation

    @property
    def digest(self) -> str:
        """The SHA-256 of all that was logged, in hexadecimal digits."""
        return self._hash.hexdigest()

    def add(self, record: dict[str, Any]) -> None:
        """One line."""
        line = (json.dumps(record, allow_nan=False) + "\n").encode()
        self.records.append(record)
        self._validation = record.get("validation_loss", self._validation)
        self._hash.update(line)
        self.size += len(line)
        self._waiting.append(line)
        if time.monotonic() - self._written > OFTEN:
            self.write()

    def write(self, *, settle: bool = False) -> None:
        """Hands the lines to the system; with `settle`, they are on the disk afterwards."""
        self._file.write(b"".join(self._waiting))
        self._waiting.clear()
        self._file.flush()
        self._written = time.monotonic()
        if settle:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # errors that matter were raised by `write`
            self._file.close()


class Events:
    """An event file for TensorBoard, written in this thread, so that a full disk is noticed here.

    A resumed run writes another file, which first says from which step on the earlier files are
    void.
    """

    def __init__(self, folder: Path, after: int) -> None:
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.record_writer import RecordWriter

        now = time.time()
        name = f"{EVENTS}.out.tfevents.{now:.0f}.{socket.gethostname()}.{after}"
        self._event = Event
        self._file = RecordWriter(str(folder / name))
        self._put(Event(wall_time=now, file_version="brain.Event:2"))
        if after:
            start = SessionLog(status=SessionLog.START)
            self._put(Event(wall_time=now, step=after + 1, session_log=start))

    def _put(self, event: Any) -> None:
        self._file.write(event.SerializeToString())

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """The values of some scalars after a step."""
        event = self._event(wall_time=time.time(), step=step)
        for name, value in scalars.items():
            event.summary.value.add(tag=name, simple_value=value)
        self._put(event)

    def write(self) -> None:
        """Writes what is buffered to the disk."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):
            self._file.close()


def add_timing(folder: Path, record: Mapping[str, Any]) -> None:
    """One line more in timings.jsonl."""
    with (folder / TIMINGS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
