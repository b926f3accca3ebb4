"""The time limits of a connection: for the head of a request, and for reading an answer.

A client that is too slow with the head of a request, or does not read its answer, is disconnected;
one connection too many is refused at once.  (`app` limits the time for a body.)
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from byhand.errors import ByhandError
from byhand.language import _
from byhand.serving.answers import error_data
from byhand.serving.limits import Limits


class Connection(H11Protocol):
    """One connection, with a time limit for the head of its next request."""

    limits: ClassVar[Limits] = Limits()
    _head_due: asyncio.TimerHandle | None = None
    _read_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the time limit for a request; refuses a connection too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._leave(503, _("there are too many connections"))
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the time limits of the connection."""
        self._unset("_head_due")
        self._unset("_read_due")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes bytes of a request."""
        if self.transport.is_closing():
            return
        if self.timeout_keep_alive_task is not None:  # a new request after a pause
            self._expect_head()
        super().data_received(data)

    def handle_events(self) -> None:
        """Handles the request, and stops its clock once the head is complete."""
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:  # the head is complete
            self._unset("_head_due")

    def pause_writing(self) -> None:
        """Starts the time limit for a client that does not read its answer."""
        super().pause_writing()
        self._unset("_read_due")
        self._read_due = self.loop.call_later(self.limits.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stops that time limit: the answer is being read again."""
        self._unset("_read_due")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is not an HTTP request."""
        self._leave(400, _("this is not an HTTP request"))

    def _expect_head(self) -> None:
        self._unset("_head_due")
        self._head_due = self.loop.call_later(self.limits.head_seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._leave(408, _("the request did not come in time"))

    def _leave(self, status: int, message: str) -> None:
        """Sends the reason, if no answer has begun, and closes."""
        self._unset("_head_due")
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            data = json.dumps({"error": error_data(ByhandError(message))}).encode()
            lines = [
                f"HTTP/1.1 {status} {h11_reason(status)}",
                "content-type: application/json",
                f"content-length: {len(data)}",
                "connection: close",
                *(["retry-after: 1"] if status == 503 else []),
            ]
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + data)
        self.transport.close()

    def _unset(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)


def h11_reason(status: int) -> str:
    """The phrase of a status."""
    from http import HTTPStatus

    return HTTPStatus(status).phrase


def limited(limits: Limits) -> type[Any]:
    """The protocol class with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
