"""Workers: tasks on the cores of this machine or on a Ray cluster, results as they come.

A task is a function of a module with arguments that can be pickled.  Further tasks may be submitted
while results are read, so a task that was too large can hand back its rest.  A task whose worker
was killed is done again.  With one job and no cluster, tasks are worked out right here.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Any

from byhand.errors import InputError
from byhand.language import _

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # a worker is one core
ATTEMPTS = 3  # times that a task may lose its worker

Task = tuple[Callable[..., Any], tuple[Any, ...]]


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system tells
        return os.cpu_count() or 1


class Workers:
    """Some workers; leaving the context stops them, and tasks that are not done are dropped."""

    def __init__(self, jobs: int = 1, cluster: str | None = None) -> None:
        if jobs < 1:
            raise InputError(
                _("there is nobody to work"), expected=_("at least one job"), found=str(jobs)
            )
        self._engine: _Here | _Processes | _Ray
        if cluster is not None:
            self._engine = _Ray(cluster)
        else:
            self._engine = _Here() if jobs == 1 else _Processes(jobs)

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

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def some(self) -> list[Any]:
        function, arguments = self._tasks.popleft()
        return [function(*arguments)]

    def stop(self) -> None:
        self._tasks.clear()


def _begin() -> None:
    """In a new worker: Ctrl-C is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Processes:
    """Processes of this machine, each with one thread."""

    def __init__(self, jobs: int) -> None:
        self.count = jobs
        self._tasks: dict[Future[Any], tuple[Task, int]] = {}  # with the attempts made
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.count, get_context("spawn"), initializer=_begin)

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def submit(self, task: Task, attempts: int = 0) -> None:
        function, arguments = task
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read when a worker starts
        try:
            self._tasks[self._pool.submit(function, *arguments)] = task, attempts
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def some(self) -> list[Any]:
        done, _rest = wait(self._tasks, return_when=FIRST_COMPLETED)
        found: list[Any] = []
        for future in done:
            try:
                found.append(future.result())
            except BrokenProcessPool:
                self._start_again()
                return found
            del self._tasks[future]
        return found

    def _start_again(self) -> None:
        """A worker was killed: all tasks without a result are handed in once more."""
        lost = list(self._tasks.values())
        if any(attempts + 1 >= ATTEMPTS for _task, attempts in lost):
            raise InputError(
                _("the workers are killed again and again"),
                hint=_("there may be too little memory; fewer jobs need less"),
            )
        self.stop()
        self._pool = self._start()
        for task, attempts in lost:
            self.submit(task, attempts + 1)

    def stop(self) -> None:
        self._tasks.clear()
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


class _Ray:
    """The machines of a Ray cluster; byhand must be installed on them."""

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError:
            raise InputError(_("a cluster needs ray"), hint="pip install 'byhand[ray]'") from None
        self._ray = ray
        self._own = not ray.is_initialized()
        if self._own:
            try:
                ray.init(
                    address=None if address == "local" else address,
                    log_to_driver=False,
                    logging_level="ERROR",
                    include_dashboard=False if address == "local" else None,
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(
                    _("there is no cluster at {address}").format(address=address),
                    expected=_("the address of a Ray cluster, or local"),
                    found=str(error).partition("\n")[0],
                ) from None
        self.count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._remote = ray.remote(max_retries=ATTEMPTS)(_done)
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
        if self._own:
            self._ray.shutdown()


def _done(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)
