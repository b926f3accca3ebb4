"""Work that nobody waits for is stopped; time and memory end; a worker that dies is replaced."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asking import state
from serving_server import Address, read_reply, served

from byhand.serving.cache import Cache
from byhand.serving.limits import Limits
from byhand.serving.workers import Asked, Refused, Workers
from patience import PATIENCE

LONG = {"state": state("minigpt", numbers="exact")}  # minutes
SHORT = {"state": state(), "only": ["logits"]}


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    with served(limits=Limits(workers=1, waiting=3, grace_seconds=0.2)) as address:
        yield address


def in_a_loop(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread: this one may have the loop of a browser that other tests use."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def busy(health: Any) -> bool:
    return bool(health["free"] == 0 and health["workers"] == 1)


def idle(health: Any) -> bool:
    return bool(health["free"] == 1 and health["waiting"] == 0)


def test_a_client_that_goes_away_stops_its_work(server: Address) -> None:
    with server.begin("look", LONG):
        server.until(busy)
    server.until(idle)
    assert server.still_answers()


def test_a_client_that_goes_away_in_the_middle_of_lines_stops_its_work(server: Address) -> None:
    connection = server.begin("look", LONG, Accept="application/x-ndjson")
    with connection, connection.makefile("rb") as lines:
        assert any(line.startswith(b'{"progress"') for line in lines)
    server.until(idle)
    assert server.still_answers()


def test_thousands_of_requests_that_are_given_up_leave_nothing_behind(server: Address) -> None:
    for number in range(2_000):
        edit = {"embed.token[0,1]": f"1/{number + 2}"}
        server.begin("look", {"state": state("journey", weights=edit)}).close()
    health = server.until(idle)
    assert health == {"workers": 1, "free": 1, "waiting": 0}
    assert server.still_answers()


def test_whoever_comes_when_too_many_wait_is_asked_to_come_again(server: Address) -> None:
    held = [server.begin("look", LONG)]
    server.until(busy)
    for waiting in range(1, 4):
        edit = {"embed.token[0,0]": str(waiting)}
        held.append(server.begin("look", {"state": state(weights=edit)}))
        server.until(lambda health, waiting=waiting: health["waiting"] == waiting)
    late = server.ask("trace", {"state": state("journey"), "only": ["next"]})
    assert late.status == 503
    assert late.headers["retry-after"] == "1"
    assert late.message == "there is too much to do just now"
    assert server.get("/").status == 200  # what needs no worker needs no turn
    held.pop(0).close()
    for connection in held:  # the others have their turn
        with connection:
            connection.settimeout(PATIENCE)
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
    server.until(idle)


def test_whoever_waits_is_told_so(server: Address) -> None:
    with server.begin("look", LONG):
        server.until(busy)
        request = {"state": state("journey"), "only": ["loss"]}
        with server.begin("trace", request, Accept="application/x-ndjson") as second:
            lines = second.makefile("rb")
            told = next(json.loads(line) for line in lines if line.startswith(b"{"))
            lines.close()
    assert told == {"progress": {"waiting": 1}}
    server.until(idle)


def test_an_answer_that_is_kept_needs_no_worker(server: Address) -> None:
    first = server.ask("trace", SHORT)
    with server.begin("look", LONG):
        server.until(busy)
        assert server.ask("trace", SHORT).body == first.body
    server.until(idle)


# ------------------------------------------------------------------ limits


def test_work_that_takes_too_long_is_refused() -> None:
    with served(limits=Limits(workers=1, work_seconds=0.5, grace_seconds=0.1)) as server:
        reply = server.ask("look", LONG)
        assert reply.status == 422
        assert reply.data["error"]["expected"] == "at most 0.5 seconds"
        spanish = {"state": {**LONG["state"], "language": "es"}}
        lines = server.ask("look", spanish, Accept="application/x-ndjson").lines
        assert [*lines[-1]] == ["error"]
        server.until(idle)


def test_work_that_needs_too_much_memory_is_refused() -> None:
    with served(limits=Limits(workers=1, memory=2**20)) as server:
        reply = server.ask("look", {"state": state("minigpt", numbers="float64")})
        assert reply.status == 422
        assert "memory" in reply.message
        assert server.still_answers()


def worker_process() -> int | None:
    """The process of the only worker: the one child of this process that runs the worker."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text("ascii").rpartition(")")[2].split()[1]
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == str(os.getpid()) and b"byhand.serving.worker" in command:
            return int(folder.name)
    return None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_worker_that_dies_is_replaced(capfd: pytest.CaptureFixture[str]) -> None:
    with served(limits=Limits(workers=1)) as server:
        first = worker_process()
        assert first is not None
        os.kill(first, signal.SIGKILL)  # while it has nothing to do
        server.until(lambda health: idle(health) and worker_process() not in (first, None))
        assert server.still_answers()
        with server.begin("look", LONG) as connection:
            server.until(busy)
            second = worker_process()
            assert second is not None
            os.kill(second, signal.SIGSEGV)
            reply = read_reply(connection)
        assert (reply.status, reply.message) == (500, "the work on this request broke off")
        assert b"Traceback" not in reply.body
        assert server.still_answers()
    assert "a worker ended in its work" in capfd.readouterr().err


def test_workers_have_the_states_they_know_and_the_others_are_free() -> None:
    async def ask_thrice() -> list[int]:
        async with Workers({}, Limits(workers=2)) as workers:
            while workers.free < 2:
                await asyncio.sleep(0.02)
            one, two = workers.workers
            first = Asked("trace", SHORT, ("a", "tiny"))
            await workers.work(first)
            while workers.free < 2:
                await asyncio.sleep(0.02)
            used = one if one.asked else two
            await workers.work(Asked("trace", SHORT, ("a", "tiny")))
            await asyncio.sleep(0)
            return [used.asked, one.asked + two.asked]

    assert in_a_loop(ask_thrice()) == [2, 2]


def test_an_error_of_a_worker_comes_with_its_status() -> None:
    async def ask_wrongly() -> Refused:
        async with Workers({}, Limits(workers=1)) as workers:
            with pytest.raises(Refused) as refused:
                await workers.work(Asked("look", {"state": state("tyni")}))
            return refused.value

    refused = in_a_loop(ask_wrongly())
    assert refused.status == 400
    assert refused.data()["hint"] == "did you mean tiny?"


# ------------------------------------------------------------------ what is kept


def test_the_cache_keeps_what_was_asked_for_last() -> None:
    cache = Cache[bytes](10, len, most_each=6)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert [cache.get(key) for key in "abc"] == [b"1234", None, b"1234"]
    assert cache.weight == 8
    cache.put("d", b"1234567")
    assert cache.get("d") is None
    cache.put("a", b"12")
    assert cache.weight == 6
