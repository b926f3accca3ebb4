"""One question over one connection: the answer, its progress, or the cancelled work.

If the client disconnects during the work, the work is stopped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from byhand.errors import ByhandError
from byhand.language import speaking
from byhand.serving.answers import error_data
from byhand.serving.limits import PACE, PATIENCE
from byhand.serving.workers import Refused, Tell

JSON, NDJSON = "application/json", "application/x-ndjson"
RETRY = {"retry-after": "1"}
ASKED_WRONGLY = (400, 422)


class Exchange:
    """The response to a question, as an ASGI application.

    `work` gives the answer as JSON, or Refused.  With `lines`, the answer is the last of several
    lines; those before report progress.
    """

    def __init__(
        self, work: Callable[[Tell | None], Awaitable[bytes]], *, lines: bool, language: str
    ) -> None:
        self.work = work
        self.lines = lines
        self.language = language
        self.told: dict[str, Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.ensure_future(self.work(self._tell if self.lines else None))
        left = asyncio.ensure_future(_left(receive))
        try:
            begun = False
            while not await _either(work, left, self._pause(begun)):
                if not begun:
                    await send(_start(200, NDJSON))
                    begun = True
                if self.told is not None:
                    progress, self.told = self.told, None
                    await send(_piece(_line("progress", _json(progress))))
            if not work.done():
                return  # the client has gone
            status, name, data = self._outcome(work)
            if begun:
                await send(_piece(_line(name, data), last=True))
                return
            await _whole(status, name, data, self.lines)(scope, receive, send)
        finally:
            work.cancel()
            left.cancel()
            await asyncio.gather(work, left, return_exceptions=True)

    def _tell(self, progress: dict[str, Any]) -> None:
        self.told = progress

    def _pause(self, begun: bool) -> float | None:
        if not self.lines:
            return None
        return PACE if begun else PATIENCE

    def _outcome(self, work: asyncio.Future[bytes]) -> tuple[int, str, bytes]:
        """The status, its name, and the JSON."""
        try:
            return 200, "result", work.result()
        except Refused as refused:
            with speaking(self.language):
                return refused.status, "error", _json(refused.data())


def wants_lines(request: Request) -> bool:
    """Whether a client accepts an answer as lines."""
    return NDJSON in request.headers.get("accept", "")


def wrong(request: Request, error: ByhandError) -> Response:
    """The response to an invalid request."""
    return _whole(400, "error", _json(error_data(error)), wants_lines(request))


def _whole(status: int, name: str, data: bytes, lines: bool) -> Response:
    """An answer or a refusal that comes in one piece.

    Among lines, a refusal has status 200 too: its line says what it is, since a status may already
    have been sent.
    """
    headers = RETRY if status == 503 else None
    if lines:
        return Response(
            _line(name, data), 200 if status in ASKED_WRONGLY else status, headers, NDJSON
        )
    body = data if name == "result" else b'{"error":' + data + b"}"
    return Response(body, status, headers, JSON)


async def _either(
    work: asyncio.Future[Any], left: asyncio.Future[Any], seconds: float | None
) -> bool:
    """Whether one of the two is done within some seconds."""
    done, _open = await asyncio.wait(
        {work, left}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
    )
    return bool(done)


async def _left(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _line(name: str, data: bytes) -> bytes:
    return b'{"%s":%s}\n' % (name.encode(), data)


def _start(status: int, kind: str) -> dict[str, Any]:
    headers = [(b"content-type", kind.encode())]
    return {"type": "http.response.start", "status": status, "headers": headers}


def _piece(body: bytes, *, last: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": not last}
