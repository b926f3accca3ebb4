"""The running server: a socket on this machine alone, uvicorn, and an orderly end."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.errors import UsageError
from byhand.language import _
from byhand.serving.limits import Limits

if TYPE_CHECKING:
    from uvicorn import Server

HOST = "127.0.0.1"
LEAVING = 2  # seconds for open requests when the server ends


def bound(port: int) -> socket.socket:
    """A socket on this machine's loopback address; port 0 takes a free port."""
    # asyncio sends small pieces at once only where it sees that it has TCP: else the end of every
    # answer waits 40 ms for the client to confirm its beginning.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":  # on Windows it would let two servers share a port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise _not_bound(port, error) from None
    return listening


def server_for(port: int, files: Mapping[str, Path], limits: Limits | None = None) -> Server:
    """The server of some models at this port; it is not running yet."""
    from uvicorn import Config, Server

    from byhand.serving.app import application
    from byhand.serving.connections import limited

    limits = limits or Limits()
    log = logging.getLogger("uvicorn.error")
    log.setLevel(logging.ERROR)
    log.addFilter(_not_of_the_end)
    config = Config(
        application(port, files, limits),
        http=limited(limits),
        ws="none",
        lifespan="on",
        loop="asyncio",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=LEAVING,
    )
    return Server(config)


def _not_of_the_end(record: logging.LogRecord) -> bool:
    """A log filter: cut-off requests at the end of the server are not reported."""
    return not record.getMessage().startswith("Cancel ")


def run(server: Server, listening: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Serves until SIGINT or SIGTERM; calls `ready` once requests are answered."""

    async def serve() -> None:
        serving = asyncio.ensure_future(server.serve([listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready()
        await serving

    try:
        asyncio.run(serve())
    finally:
        listening.close()


def _not_bound(port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            _("port {port} is in use").format(port=port),
            hint=_("another --port, or none: then a free one is taken"),
        )
    return UsageError(
        _("port {port} cannot be used").format(port=port),
        found=error.strerror,
        hint=_("another --port, or none: then a free one is taken"),
    )
