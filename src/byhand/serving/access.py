"""The guard of the server: only its own page, in a browser on this machine, gets answers.

A page from elsewhere must learn nothing and start nothing, even if its name points to this machine
(DNS rebinding).  So the Host, and the Origin if there is one, must be this server's own address.
Every response carries a policy under which a browser loads nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byhand.errors import ByhandError
from byhand.language import _
from byhand.serving.answers import error_data

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",  # bars and shades set their own widths and colours
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
OWN_SITE = ("same-origin", "none")  # none: typed into the browser, or not from a page
HTTP_PORT = 80  # browsers omit it


def refusal(
    status: int, error: ByhandError | Mapping[str, str | None], headers: Mapping[str, str] = {}
) -> Response:
    """An error as a response."""
    data = error_data(error) if isinstance(error, ByhandError) else dict(error)
    return JSONResponse({"error": data}, status, headers=dict(headers))


class Guard:
    """Lets requests through that are meant for this server and come from its own page."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        names = ("127.0.0.1", "localhost")
        self.hosts = {f"{name}:{port}" for name in names}
        self.hosts |= set(names) if port == HTTP_PORT else set()
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = {name for name, _value in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(h for h in more if h[0] not in said)]
            await send(message)

        refused = self._refused(scope)
        await (refused or self.app)(scope, receive, send_guarded)

    def _refused(self, scope: Scope) -> Response | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        host = _one(headers, b"host")
        if host is None or host.lower() not in self.hosts:
            return _foreign(421, "Host", host, self.hosts)
        origin = _one(headers, b"origin")
        if origin is not None and origin.lower() not in self.origins:
            return _foreign(403, "Origin", origin, self.origins)
        site = _one(headers, b"sec-fetch-site")
        followed = _one(headers, b"sec-fetch-mode") == "navigate" and scope["path"] == "/"
        if site is not None and site not in OWN_SITE and not followed:  # links may lead here
            return _foreign(403, "Sec-Fetch-Site", site, OWN_SITE)
        return None


def _one(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """A header; if it occurs twice, both joined, which matches no name."""
    found = [value.decode("latin-1") for key, value in headers if key == name]
    return ", ".join(found) if found else None


def _foreign(status: int, header: str, found: str | None, own: Iterable[str]) -> Response:
    error = ByhandError(
        _("this server answers its own page only"),
        where=header,
        expected=", ".join(sorted(own)),
        found=_("nothing") if found is None else found[:80],
    )
    return refusal(status, error, {"connection": "close"})
