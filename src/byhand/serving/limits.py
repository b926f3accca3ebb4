"""The limits of requests, connections and workers, in one table."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Seconds, bytes and counts; the documentation states these."""

    # one request
    body: int = 6 * MIB  # bytes; a posted model file may have 4 Mi characters
    depth: int = 32  # of JSON inside JSON
    work_seconds: float = 120.0  # after a worker has received it
    memory: int = 2048 * MIB  # bytes that a worker may allocate beyond its start
    wait_seconds: float = 60.0  # for a free worker
    # all requests
    workers: int = 2
    waiting: int = 64  # requests without a worker; more are refused
    kept: int = 8 * MIB  # bytes of answers that are kept
    kept_each: int = 2 * MIB  # bytes of one answer that is kept
    worker_size: int = 1024 * MIB  # bytes in memory after which an idle worker is replaced
    # one connection
    head_seconds: float = 10.0  # until the head of a request is complete
    body_seconds: float = 20.0  # until its body is
    idle_seconds: float = 5.0  # between two requests
    unread_seconds: float = 30.0  # with an answer that nobody reads
    # all connections
    connections: int = 400
    # what a worker is given to stop by itself before it is ended
    grace_seconds: float = 1.0
    start_seconds: float = 60.0  # until a new worker is ready


# Progress during a computation
PATIENCE = 0.25  # seconds before the first progress line
PACE = 0.2  # seconds between two lines
