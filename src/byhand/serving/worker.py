"""A worker process: it answers one question at a time, in the messages of `frames`.

It checks for a stop only between two steps of a pass, since exact numbers have tables that must not
be left half written.  For the same reason a worker ends after running out of memory or after an
unexpected error; another replaces it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, BinaryIO

from byhand.errors import ByhandError, Undecided
from byhand.language import _, speaking
from byhand.plan import Step
from byhand.serving import frames
from byhand.serving.answers import answer, error_data, language_of
from byhand.serving.limits import PACE, PATIENCE
from byhand.serving.states import Library

WARM = (("look", "tiny"), ("look", "journey"), ("number", "tiny"))  # asked first, to load modules


class Stopped(Exception):
    """The answer is no longer wanted."""


class Unwanted:
    """The questions that need no answer any more: all up to a number, counted by the server."""

    def __init__(self) -> None:
        self.latest = -1


class Telling:
    """Reports the progress of one request; raises Stopped if it is to stop."""

    def __init__(self, out: BinaryIO, number: int, unwanted: Unwanted) -> None:
        self.out = out
        self.number = number
        self.unwanted = unwanted
        self.due = monotonic() + PATIENCE
        self.seen: set[str] = set()  # steps of this pass; a proof may take several passes
        self.passes = 1

    def __call__(self, step: Step) -> None:
        if self.number <= self.unwanted.latest:
            raise Stopped
        if step.address in self.seen:
            self.seen.clear()
            self.passes += 1
        self.seen.add(step.address)
        if monotonic() >= self.due:
            self.due = monotonic() + PACE
            told = {"address": step.address, "count": len(self.seen), "pass": self.passes}
            _send(self.out, frames.TOLD, _json(told))


def main() -> None:
    """Answers questions until the server goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C
    source, out = sys.stdin.buffer, _private_output()
    setting = frames.read_frame(source)
    if setting is None:
        return
    given = json.loads(setting[1])
    library = Library(given["files"])
    _warm_up(library)
    asked: SimpleQueue[bytes] = SimpleQueue()
    unwanted = Unwanted()
    Thread(target=_listen, args=(source, asked, unwanted), daemon=True).start()
    _limit_memory(given["memory"])
    _send(out, frames.READY)
    while True:
        _work(library, asked.get(), out, unwanted)


def _work(library: Library, data: bytes, out: BinaryIO, unwanted: Unwanted) -> None:
    """Answers one question with the one message that ends it."""
    number, question, request = json.loads(data)
    try:
        found = answer(library, question, request, Telling(out, number, unwanted))
        kind, said = frames.ANSWER, _json(found)
    except Stopped:
        kind, said = frames.STOPPED, b""
    except ByhandError as error:
        status = 422 if isinstance(error, Undecided) else 400
        refused = {"status": status, "error": error_data(error), "ends": False}
        kind, said = frames.REFUSED, _json(refused)
    except (MemoryError, RecursionError):
        refused = {"status": 422, "error": _too_large(request), "ends": True}
        _send(out, frames.REFUSED, _json(refused))
        os._exit(1)
    except BaseException:
        traceback.print_exc()
        _send(out, frames.FAILED)
        os._exit(1)
    _send(out, kind, said)


def _listen(source: BinaryIO, asked: SimpleQueue[bytes], unwanted: Unwanted) -> None:
    """Reads messages during the work; ends the process if the server has gone."""
    while (message := frames.read_frame(source)) is not None:
        kind, data = message
        if kind == frames.STOP:
            unwanted.latest = int(data)
        else:
            asked.put(data)
    os._exit(0)


def _warm_up(library: Library) -> None:
    """Loads what the first questions need; errors are ignored, since they recur when asked."""
    for question, name in WARM:
        with suppress(Exception):
            request: dict[str, Any] = {"state": {"model": {"name": name}}}
            if question == "number":
                request["address"] = "stream.0[0,0]"
            answer(library, question, request)


def _limit_memory(extra: int) -> None:
    """Limits the address space to its current size and `extra` bytes, where supported."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as pages:
            now = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + extra, now + extra))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):  # not Linux: only the time limit remains
        return


def _too_large(request: Any) -> dict[str, str | None]:
    with speaking(language_of(request)):
        return error_data(
            ByhandError(
                _("this needs more memory than a request may take"),
                hint=_("a shorter text, a smaller model, or float64 instead of exact numbers"),
            )
        )


def _private_output() -> BinaryIO:
    """The stream to the server; all other output goes to stderr."""
    mine = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(mine, "wb")


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _send(out: BinaryIO, kind: bytes, data: bytes = b"") -> None:
    try:
        out.write(frames.framed(kind, data))
        out.flush()
    except OSError:  # the server has gone
        os._exit(0)
