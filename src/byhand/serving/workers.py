"""The pool of worker processes: free workers, waiting requests, stopped work.

Each request has its own worker.  If its answer is no longer wanted, or takes too long, the worker
is asked to stop, which it does between two steps.  If it does not stop soon, it is ended and
replaced.  A request goes to a free worker that has seen its State before, if there is one, since it
may have cached the pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from byhand.errors import ByhandError
from byhand.language import _
from byhand.serving import frames
from byhand.serving.answers import error_data
from byhand.serving.limits import Limits

RECENT = 16  # States that a worker may have cached
PAUSE = 2.0  # seconds before the next start, if a worker failed to start
LEAVING = 1.0  # seconds for a process that has closed its pipe to end
STARVED = (-signal.SIGABRT, -signal.SIGKILL)  # exit codes of FLINT and of a system without memory
# The same import path as this process, never the current folder.
_START = "import sys; sys.path[:] = {path!r}; from byhand.serving.worker import main; main()"

Tell = Callable[[dict[str, Any]], None]
ErrorData = dict[str, str | None]


class Refused(Exception):
    """No answer: the status and the error for the client.

    An error is worded when it is sent, in the language of the request; a worker's error is already
    worded.
    """

    def __init__(self, status: int, error: Callable[[], ByhandError] | ErrorData) -> None:
        super().__init__(status)
        self.status = status
        self._error = error

    def data(self) -> ErrorData:
        """The error as data for JSON."""
        return error_data(self._error()) if callable(self._error) else self._error


class Gone(Exception):
    """The worker has ended during its work."""


@dataclass(frozen=True)
class Asked:
    """A question for a worker.  `known_by` lists what a worker may have cached of it."""

    question: str
    request: Mapping[str, Any]
    known_by: tuple[str, ...] = ()  # the most specific first: the State, the model


class Worker:
    """One process, from its start to its end."""

    def __init__(self, process: Process, edition: object) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._in = process.stdin
        self._out = frames.Frames(process.stdout)
        self.edition = edition  # of the files at its start
        self.asked = 0
        self._gone = False  # it has closed its pipe
        self._knows: OrderedDict[str, None] = OrderedDict()

    @classmethod
    async def start(cls, files: Mapping[str, Path], edition: object, limits: Limits) -> Worker:
        """A ready worker; raises Gone if it could not start."""
        environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **os.environ}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _START.format(path=sys.path),
            stdin=PIPE,
            stdout=PIPE,
            env=environment,
            limit=limits.body,
        )
        worker = cls(process, edition)
        named = {name: str(path.resolve()) for name, path in files.items()}
        setting = {"files": named, "memory": limits.memory}
        try:
            await worker._send(frames.SET, json.dumps(setting).encode())
            async with asyncio.timeout(limits.start_seconds):
                kind, _data = await worker._next()
        except (TimeoutError, Gone):
            await worker.end()
            raise Gone from None
        except asyncio.CancelledError:
            await worker.end()
            raise
        assert kind == frames.READY
        return worker

    async def ask(self, asked: Asked, tell: Tell | None) -> tuple[bytes, bytes]:
        """The message that ends the work on a question; progress goes to `tell`."""
        self.asked += 1
        for name in reversed(asked.known_by):
            self._knows[name] = None
            self._knows.move_to_end(name)
        while len(self._knows) > RECENT:
            self._knows.popitem(last=False)
        said = [self.asked, asked.question, asked.request]
        await self._send(frames.ASK, json.dumps(said).encode())
        return await self.last(tell)

    async def last(self, tell: Tell | None = None) -> tuple[bytes, bytes]:
        """The message that ends the current work."""
        while True:
            kind, data = await self._next()
            if kind != frames.TOLD:
                return kind, data
            if tell is not None:
                tell(json.loads(data))

    async def stop(self, seconds: float) -> bool:
        """Whether the current work ends within some seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._send(frames.STOP, str(self.asked).encode())
                kind, data = await self.last()
        except (TimeoutError, Gone):
            return False
        ends = kind == frames.REFUSED and json.loads(data)["ends"]
        return kind != frames.FAILED and not ends

    async def end(self) -> int:
        """Ends the process; returns its exit code, also if it had already ended."""
        self._in.close()  # an idle worker ends by itself; the pipe must not stay open
        try:
            async with asyncio.timeout(LEAVING if self._gone else 0):
                await self.process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()
        return await self.process.wait()

    def knows(self, asked: Asked) -> int:
        """How much of a question this worker may have cached: more is better."""
        places = [at for at, name in enumerate(asked.known_by) if name in self._knows]
        return len(asked.known_by) - places[0] if places else 0

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self.process.returncode is None

    @property
    def size(self) -> int:
        """Bytes in memory; 0 if the system does not tell."""
        try:
            pages = Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    async def _send(self, kind: bytes, data: bytes) -> None:
        try:
            self._in.write(frames.framed(kind, data))
            await self._in.drain()
        except OSError:
            raise Gone from None

    async def _next(self) -> tuple[bytes, bytes]:
        try:
            return await self._out.next()
        except (asyncio.IncompleteReadError, OSError):
            self._gone = True
            raise Gone from None


class Workers:
    """All workers, and the requests that wait for one."""

    def __init__(self, files: Mapping[str, Path], limits: Limits) -> None:
        self.files = dict(files)
        self.limits = limits
        self.workers: set[Worker] = set()
        self._free: list[Worker] = []
        self._waiting: deque[tuple[asyncio.Future[Worker], Asked]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False

    async def __aenter__(self) -> Workers:
        for _one in range(self.limits.workers):
            self._later(self._add())
        return self

    async def __aexit__(self, *_why: object) -> None:
        self._ending = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.end() for worker in self.workers))
        self.workers.clear()

    @property
    def waiting(self) -> int:
        """The number of requests without a worker."""
        return len(self._waiting)

    @property
    def free(self) -> int:
        """The number of idle workers."""
        return len(self._free)

    def edition(self) -> tuple[tuple[str, int, int], ...]:
        """The state of the named files; workers that have read older ones are replaced."""
        found = []
        for name, path in self.files.items():
            try:
                about = path.stat()
                found.append((name, about.st_mtime_ns, about.st_size))
            except OSError:
                found.append((name, 0, 0))
        return tuple(found)

    async def work(self, asked: Asked, tell: Tell | None = None) -> bytes:
        """The answer as JSON; Refused if there is none.  If cancelled, it stops its worker."""
        worker = await self._worker_for(asked, tell)
        try:
            async with asyncio.timeout(self.limits.work_seconds):
                kind, data = await worker.ask(asked, tell)
        except TimeoutError:
            self._later(self._stop(worker))
            raise Refused(422, partial(_too_long, self.limits.work_seconds)) from None
        except Gone:
            raise await self._gone(worker) from None
        except asyncio.CancelledError:
            self._later(self._stop(worker))
            raise
        if kind == frames.FAILED:
            self._later(self._replace(worker))
            raise Refused(500, _broken)
        if kind == frames.REFUSED:
            refused = json.loads(data)
            self._later(self._replace(worker) if refused["ends"] else self._recover(worker))
            raise Refused(refused["status"], refused["error"])
        self._later(self._recover(worker))
        return data

    async def _gone(self, worker: Worker) -> Refused:
        """The refusal for a request whose worker ended during the work."""
        self._later(self._replace(worker))
        status = await worker.end()
        print(f"byhand: a worker ended in its work (status {status})", file=sys.stderr)
        if status in STARVED:
            return Refused(422, _starved)
        return Refused(500, _broken)

    # -------------------------------------------------------------- who works

    async def _worker_for(self, asked: Asked, tell: Tell | None) -> Worker:
        edition = self.edition() if self.files else ()
        while self._free:
            worker = max(self._free, key=lambda one: one.knows(asked))
            self._free.remove(worker)
            if worker.alive and worker.edition == edition:
                return worker
            self._later(self._replace(worker))
        if len(self._waiting) >= self.limits.waiting:
            raise Refused(503, _busy)
        turn: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, asked))
        try:
            if tell is not None:
                tell({"waiting": len(self._waiting)})
            async with asyncio.timeout(self.limits.wait_seconds):
                return await turn
        except TimeoutError:
            raise Refused(503, _busy) from None
        finally:
            self._waiting = deque(one for one in self._waiting if one[0] is not turn)
            if turn.done() and not turn.cancelled() and sys.exc_info()[0] is not None:
                self._offer(turn.result())  # a worker arrived just as the request was cancelled

    def _offer(self, worker: Worker) -> None:
        """Gives a free worker to the longest waiting request."""
        while self._waiting:
            turn, _asked = self._waiting.popleft()
            if not turn.done():
                turn.set_result(worker)
                return
        self._free.append(worker)

    async def _recover(self, worker: Worker) -> None:
        """Frees a worker after an answer, unless it has ended or grown too large."""
        fit = worker.alive and worker.size <= self.limits.worker_size
        if fit and (not self.files or worker.edition == self.edition()):
            self._offer(worker)
        else:
            await self._replace(worker)

    async def _stop(self, worker: Worker) -> None:
        if await worker.stop(self.limits.grace_seconds):
            await self._recover(worker)
        else:
            await self._replace(worker)

    async def _replace(self, worker: Worker) -> None:
        self.workers.discard(worker)
        await worker.end()
        await self._add()

    async def _add(self) -> None:
        """Starts one more worker, and tries until it works."""
        while not self._ending:
            edition = self.edition() if self.files else ()
            try:
                worker = await Worker.start(self.files, edition, self.limits)
            except (Gone, OSError) as error:
                print(f"byhand: a worker did not start: {error!r}", file=sys.stderr)
                await asyncio.sleep(PAUSE)
                continue
            self.workers.add(worker)
            self._later(self._watch(worker))
            self._offer(worker)
            return

    async def _watch(self, worker: Worker) -> None:
        """Replaces a worker that ends while idle."""
        await worker.process.wait()
        if worker in self._free:
            self._free.remove(worker)
            await self._replace(worker)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _busy() -> ByhandError:
    return ByhandError(_("there is too much to do just now"), hint=_("ask again in a moment"))


def _too_long(seconds: float) -> ByhandError:
    return ByhandError(
        _("this takes longer than a request may take"),
        expected=_("at most {count} seconds").format(count=f"{seconds:g}"),
        hint=_("a shorter text, a smaller model, or float64 instead of exact numbers"),
    )


def _starved() -> ByhandError:
    return ByhandError(
        _("the work on this request broke off, most likely for lack of memory"),
        hint=_("a shorter text, a smaller model, or float64 instead of exact numbers"),
    )


def _broken() -> ByhandError:
    return ByhandError(
        _("the work on this request broke off"),
        hint=_("what happened stands where byhand serve was started"),
    )
