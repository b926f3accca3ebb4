"""Tasks on workers: every result comes once, errors are raised, killed workers lose nothing."""

import os
import signal
import socket
from math import isqrt
from multiprocessing import active_children
from pathlib import Path
from threading import enumerate as enumerate_threads
from time import sleep

import pytest

from byhand.errors import InputError
from byhand.workers import Workers


def square(x: int) -> int:
    if x < 0:
        raise ValueError(x)
    return x * x


def threads(_x: int) -> str | None:
    return os.environ.get("OPENBLAS_NUM_THREADS")


def killed_once(folder: str) -> str:
    """Kills its own process the first time."""
    mark = Path(folder) / "seen"
    if not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def killed_always() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_result_comes_once_and_tasks_may_be_added_while_results_are_read(jobs: int) -> None:
    with Workers(jobs) as workers:
        for x in range(5):
            workers.submit(square, x)
        found = []
        for result in workers.results():
            found.append(result)
            if result == 16:
                workers.submit(square, 10)
        assert sorted(found) == [0, 1, 4, 9, 16, 100]
        assert workers.pending == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_task_is_raised_where_results_are_read(jobs: int) -> None:
    with Workers(jobs) as workers:
        workers.submit(square, -1)
        with pytest.raises(ValueError, match="-1"):
            list(workers.results())


def test_a_killed_worker_loses_no_task_and_a_worker_is_one_thread(tmp_path: Path) -> None:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    with Workers(2) as workers:
        workers.submit(killed_once, str(tmp_path))
        workers.submit(threads, 0)
        assert sorted(map(str, workers.results())) == ["1", "done"]
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before


def test_workers_that_are_always_killed_end_in_an_error() -> None:
    with Workers(2) as workers:
        workers.submit(killed_always)
        with pytest.raises(InputError, match="killed again and again"):
            list(workers.results())


def test_nothing_of_a_pool_is_left_behind_even_with_tasks_in_hand() -> None:
    with Workers(2) as workers:
        for _task in range(8):
            workers.submit(sleep, 60)
        workers.submit(square, 2)
        assert len(active_children()) == 2
    assert active_children() == []
    assert not [one for one in enumerate_threads() if "Executor" in type(one).__name__]


def test_a_number_of_jobs_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="no worker"):
        Workers(0)


def test_a_cluster_does_the_same() -> None:
    pytest.importorskip("ray")
    with Workers(cluster="local") as workers:
        for x in (0, 1, 4, 9):
            workers.submit(isqrt, x)
        assert sorted(workers.results()) == [0, 1, 2, 3]
        workers.submit(isqrt, -1)
        with pytest.raises(ValueError, match="nonnegative"):
            list(workers.results())


def test_where_nothing_answers_there_is_no_cluster() -> None:
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for each in (address, f"ray://{address}", "127.0.0.1:99999999"):
            with pytest.raises(InputError, match="no cluster"):
                Workers(cluster=each)


def test_without_ray_a_cluster_is_refused_with_the_way_to_get_it() -> None:
    try:
        import ray  # noqa: F401
    except ImportError:
        with pytest.raises(InputError, match="needs ray"):
            Workers(cluster="local")
