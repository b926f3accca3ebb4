"""Workers: tasks on the cores of this machine or on a Ray cluster, results as they come.

A task is a function of a module with arguments that can be pickled.  Further tasks may be submitted
while results are read, so a task that was too large can hand back its rest.  A task whose worker
was killed is done again.  With one job and no cluster, tasks are worked out right here.

Workers may begin with something that takes long to make, such as a model with its weights: each
makes it once and holds it, and every task is given it before its own arguments.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from types import ModuleType, TracebackType
from typing import Any

from byhand.errors import InputError
from byhand.language import _

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # a worker is one core
PATIENCE = 10.0  # seconds until a cluster must answer
ATTEMPTS = 3  # times in a row that workers may be killed before any of them gives a result

Task = tuple[Callable[..., Any], tuple[Any, ...]]


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system tells
        return os.cpu_count() or 1


class Workers:
    """Some workers; leaving the context stops them, and tasks that are not done are dropped."""

    def __init__(
        self,
        jobs: int = 1,
        cluster: str | None = None,
        *,
        begin: Task | None = None,
        apart: bool = False,
        gpus: bool = False,
    ) -> None:
        """`begin` makes what each worker holds.  With `apart`, one job is a process as well: of one
        thread, as all are, and nothing of this process can change its results.  With `gpus`, each
        worker of a cluster has a GPU of its own, else a core."""
        if jobs < 1:
            raise InputError(
                _("there is no worker"), expected=_("at least one job"), found=str(jobs)
            )
        self._engine: _Here | _Processes | _Ray | _Holders
        if cluster is not None:
            self._engine = _Ray(cluster) if begin is None else _Holders(cluster, begin, gpus)
        else:
            here = jobs == 1 and not apart
            self._engine = _Here(begin) if here else _Processes(jobs, begin)

    @property
    def count(self) -> int:
        """How many tasks are worked out at the same time."""
        return self._engine.count

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Hands in a task."""
        self._engine.submit((function, arguments))

    def results(self) -> Iterator[Any]:
        """The results as they come, until no task is left; an error of a task is raised here."""
        while self._engine.pending:
            yield from self._engine.some()

    @property
    def pending(self) -> int:
        """How many tasks have no result yet."""
        return self._engine.pending

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.stop()


class _Here:
    """This process, one task after the other."""

    count = 1

    def __init__(self, begin: Task | None = None) -> None:
        self._tasks: deque[Task] = deque()
        self._held = _Held(begin)

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def some(self) -> list[Any]:
        return [self._held.work(self._tasks.popleft())]

    def stop(self) -> None:
        self._tasks.clear()


class _Held:
    """What a worker holds, made when its first task comes."""

    def __init__(self, begin: Task | None) -> None:
        self.begin = begin
        self.made: tuple[Any, ...] | None = None if begin else ()

    def there(self) -> None:
        """Answers, so that somebody knows of this worker."""

    def work(self, task: Task) -> Any:
        """The result of a task."""
        if self.made is None:
            assert self.begin is not None
            function, arguments = self.begin
            self.made = (function(*arguments),)
        function, arguments = task
        return function(*self.made, *arguments)


_here = _Held(None)  # what this process holds, where it is a worker


def _begin(begin: Task | None) -> None:
    """In a new worker: Ctrl-C is the parent's to answer, and nobody works for a killed parent."""
    global _here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _here = _Held(begin)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Task) -> Any:
    return _here.work(task)


@contextmanager
def _starting() -> Iterator[None]:
    """While workers start: they have one thread each, and do not run the caller's script again.

    A new process imports the module `__main__` unless there is nothing to import.
    """
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    script = sys.modules["__main__"]
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read when a worker starts
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Processes:
    """Processes of this machine, each with one thread."""

    def __init__(self, jobs: int, begin: Task | None = None) -> None:
        self.count = jobs
        self._begin = begin
        self._tasks: dict[Future[Any], Task] = {}
        self._barren = 0  # how often workers were killed since the last result
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.count, get_context("spawn"), initializer=_begin, initargs=(self._begin,)
        )

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def submit(self, task: Task) -> None:
        try:
            self._hand_in(task)
        except BrokenProcessPool:  # a worker was killed since the last result was taken
            self._start_again()
            self.submit(task)

    def _hand_in(self, task: Task) -> None:
        with _starting():
            self._tasks[self._pool.submit(_work, task)] = task

    def some(self) -> list[Any]:
        done, _rest = wait(self._tasks, return_when=FIRST_COMPLETED)
        found: list[Any] = []
        for future in done:
            try:
                found.append(future.result())
            except BrokenProcessPool:
                self._start_again()
                return found
            self._barren = 0
            del self._tasks[future]
        return found

    def _start_again(self) -> None:
        """A worker was killed: all tasks without a result are handed in once more."""
        lost = list(self._tasks.values())
        self._barren += 1
        if self._barren >= ATTEMPTS:
            raise _killed_again()
        self.stop()
        self._pool = self._start()
        for task in lost:
            self.submit(task)

    def stop(self) -> None:
        self._tasks.clear()
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        for process in processes:
            process.terminate()
        # waits for the pool's thread, which would else close its pipe while Python ends
        self._pool.shutdown(wait=True, cancel_futures=True)


def _killed_again() -> InputError:
    return InputError(
        _("the workers are killed again and again"),
        hint=_("there may be too little memory; fewer jobs need less"),
    )


class _Cluster:
    """A Ray cluster that this process is connected with; byhand must be installed there."""

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError:
            raise InputError(_("a cluster needs ray"), hint="pip install 'byhand[ray]'") from None
        self._ray: Any = ray
        self._own = not self._ray.is_initialized()
        if self._own:
            _refuse_unless_there(address)
            try:
                self._ray.init(
                    address=None if address == "local" else address,
                    log_to_driver=False,
                    logging_level="ERROR",
                    include_dashboard=False if address == "local" else None,
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise _no_cluster(address, error) from None

    def how_many(self, kind: str) -> int:
        """How many cores or GPUs the cluster has."""
        return max(1, int(self._ray.cluster_resources().get(kind, 1)))

    def leave(self) -> None:
        """Ends the connection, where it was made here."""
        if self._own:
            self._ray.shutdown()


def _refuse_unless_there(address: str) -> None:
    """Raises an InputError where nothing answers at an address: Ray itself waits for minutes."""
    host, _colon, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return  # local, auto
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _no_cluster(address, error) from None


def _no_cluster(address: str, error: Exception) -> InputError:
    return InputError(
        _("there is no cluster at {address}").format(address=address),
        expected=_("the address of a Ray cluster, or local"),
        found=str(error).partition("\n")[0],
    )


class _Ray(_Cluster):
    """Tasks wherever the cluster has a core."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.count = self.how_many("CPU")
        self._remote = self._ray.remote(max_retries=ATTEMPTS)(_done)
        self._tasks: list[Any] = []

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(self._remote.remote(*task))

    def some(self) -> list[Any]:
        done, self._tasks = self._ray.wait(self._tasks, num_returns=1)
        try:
            return [self._ray.get(one) for one in done]
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def stop(self) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        self._tasks = []
        self.leave()


class _Holders(_Cluster):
    """One worker on each core or GPU of the cluster, which holds what it begins with.

    A worker gets a task when it is ready and has none.  One whose machine is gone leaves its task
    to the others; a new one stands by until there is room for it.
    """

    def __init__(self, address: str, begin: Task, gpus: bool) -> None:
        super().__init__(address)
        self.count = self.how_many("GPU" if gpus else "CPU")
        needs: dict[str, Any] = {"num_gpus": 1, "num_cpus": 0} if gpus else {"num_cpus": 1}
        threads = {"env_vars": dict.fromkeys(ONE_THREAD, "1")}
        made: Any = self._ray.remote(max_restarts=0, runtime_env=threads, **needs)(_Held)
        self._make: Callable[[], Any] = lambda: made.remote(begin)
        self._waiting: deque[Task] = deque()
        self._ready: list[Any] = []
        self._busy: dict[Any, tuple[Any, Task | None]] = {}  # result → worker, task
        self._barren = 0
        for _worker in range(self.count):
            self._add()

    def _add(self) -> None:
        """A new worker: what it answers first is that it is there."""
        worker = self._make()
        self._busy[worker.there.remote()] = worker, None

    @property
    def pending(self) -> int:
        return len(self._waiting) + sum(task is not None for _worker, task in self._busy.values())

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def some(self) -> list[Any]:
        while self._ready and self._waiting:
            worker, task = self._ready.pop(), self._waiting.popleft()
            self._busy[worker.work.remote(task)] = worker, task
        done, _rest = self._ray.wait(list(self._busy), num_returns=1)
        found = []
        for result in done:
            worker, given = self._busy.pop(result)
            try:
                value = self._ray.get(result)
            except self._ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except self._ray.exceptions.RayActorError:
                self._lost(given)
                continue
            self._ready.append(worker)
            if given is not None:
                self._barren = 0
                found.append(value)
        return found

    def _lost(self, task: Task | None) -> None:
        """A worker was killed: its task is handed in once more, before the others."""
        self._barren += 1
        if self._barren >= ATTEMPTS * self.count:
            raise _killed_again()
        if task is not None:
            self._waiting.appendleft(task)
        self._add()

    def stop(self) -> None:
        for worker, _task in self._busy.values():
            self._ray.kill(worker)
        for worker in self._ready:
            self._ray.kill(worker)
        self._busy, self._ready = {}, []
        self._waiting.clear()
        self.leave()


def _done(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)
