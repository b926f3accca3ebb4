"""A server in a thread of the tests, and ways to ask it: properly, byte by byte, or not at all."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Event, Thread
from typing import Any

from byhand.serving.limits import Limits
from byhand.serving.server import HOST, bound, run, server_for
from patience import PATIENCE, until

ONE_WORKER = Limits(workers=1)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        message: str = self.data["error"]["message"]
        return message

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    port: int

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request over a connection of its own."""
        connection = HTTPConnection(HOST, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(headers or {}))
            return _read(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, headers=headers)

    def ask(self, question: str, request: Any, **headers: str) -> Reply:
        """A question, with its request as JSON."""
        said = {"Content-Type": "application/json", **headers}
        return self.send("POST", f"/api/{question}", json.dumps(request).encode(), said)

    def raw(self) -> socket.socket:
        """A connection on which nothing was said yet."""
        return socket.create_connection((HOST, self.port), timeout=PATIENCE)

    def begin(self, question: str, request: Any, **headers: str) -> socket.socket:
        """A question whose answer nobody reads yet."""
        body = json.dumps(request).encode()
        connection = self.raw()
        start = head("POST", f"/api/{question}", self.port, len(body), **headers)
        connection.sendall(start + body)
        return connection

    def healthy(self) -> Any:
        return self.get("/healthz").data

    def until(self, true: Callable[[Any], bool]) -> Any:
        """The health of the server, once it is as it should be."""
        health: Any = None

        def so() -> bool:
            nonlocal health
            health = self.healthy()
            return "error" not in health and true(health)

        until(so)
        return health

    def still_answers(self) -> bool:
        """Whether the server goes on: a question that is worked out, not one that is kept."""
        fraction = f"1/{time.monotonic_ns()}"
        state = {"model": {"name": "tiny"}, "weights": {"embed.token[0,1]": fraction}}
        return self.ask("trace", {"state": state, "only": ["embed.token"]}).status == 200


def head(method: str, path: str, port: int, length: int, **headers: str) -> bytes:
    lines = (
        f"{method} {path} HTTP/1.1",
        f"Host: {HOST}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    )
    return "\r\n".join([*lines, "", ""]).encode()


def _read(reply: HTTPResponse) -> Reply:
    said = {name.lower(): value for name, value in reply.getheaders()}
    return Reply(reply.status, said, reply.read())


def read_reply(connection: socket.socket) -> Reply:
    """One answer, however many pieces it comes in."""
    reply = HTTPResponse(connection)
    reply.begin()
    return _read(reply)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


@contextmanager
def served(
    files: Mapping[str, Path] | None = None, limits: Limits | None = None
) -> Iterator[Address]:
    """A server while the tests need it, with all of its workers there."""
    listening = bound(0)
    port = listening.getsockname()[1]
    limits = replace(limits or ONE_WORKER, start_seconds=PATIENCE, wait_seconds=PATIENCE)
    server = server_for(port, files or {}, limits)
    ready = Event()
    thread = Thread(target=run, args=(server, listening, ready.set))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        address = Address(port)
        address.until(lambda health: health["free"] == limits.workers)
        yield address
    finally:
        server.should_exit = True
        thread.join()
