"""The server as an ASGI application: its paths, and how a request is read.

    GET  /  /assets/…                the page            GET /openapi.json, /healthz
    GET  /api/models                 POST /api/QUESTION  the table of `questions`

The `workers` compute; this process only reads, waits and sends.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from byhand.document.glossary import glossary
from byhand.document.media.html.style import style, text_of
from byhand.errors import ByhandError, InputError, nearest
from byhand.language import LANGUAGES, _, speaking
from byhand.serving import openapi
from byhand.serving.access import Guard, refusal
from byhand.serving.answers import language_of
from byhand.serving.cache import Cache
from byhand.serving.exchange import Exchange, wants_lines, wrong
from byhand.serving.limits import Limits
from byhand.serving.page.words import words
from byhand.serving.questions import ASKED, MODELS, Question, canonical, read_body, read_request
from byhand.serving.states import Library, State
from byhand.serving.workers import Asked, Tell, Workers

PAGE = Path(__file__).parent / "page"
SHARED = ("book.css", "proof.css")  # with pages that stand by themselves
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
WORDS = {f"words-{language}.json": language for language in LANGUAGES}
GLOSSARIES = {f"glossary-{language}.json": language for language in LANGUAGES}
CLOSE = {"connection": "close"}
DRAINED = 8  # × the body limit: what is read to its end, so that the client reads the refusal


class Answers:
    """Asks the workers, and keeps their answers."""

    def __init__(self, files: Mapping[str, Path], limits: Limits) -> None:
        self.limits = limits
        self.workers = Workers(files, limits)
        self.kept: Cache[bytes] = Cache(limits.kept, len, limits.kept_each)

    def exchange(self, request: Request, asked: Asked) -> Exchange:
        """The response to a question that was read."""
        key = (self.workers.edition(), canonical(asked.question, asked.request))

        async def work(tell: Tell | None) -> bytes:
            answer = self.kept.get(key)
            if answer is None:
                answer = await self.workers.work(asked, tell)
                self.kept.put(key, answer)
            return answer

        language = language_of(asked.request)
        return Exchange(work, lines=wants_lines(request), language=language)


class Models:
    """GET /api/models"""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    async def __call__(self, request: Request) -> ASGIApp:
        said = request.query_params.multi_items()
        data = dict(said)
        with speaking(language_of(data)):
            try:
                if len(data) < len(said):
                    raise InputError(_("the key {key} comes twice").format(key=repr(said[0][0])))
                read_request(MODELS, data)
            except ByhandError as error:
                return wrong(request, error)
        return self.answers.exchange(request, Asked("models", data))


class Ask:
    """POST /api/QUESTION, for one question."""

    def __init__(self, answers: Answers, name: str, question: Question) -> None:
        self.answers = answers
        self.name = name
        self.question = question

    async def __call__(self, request: Request) -> ASGIApp:
        body = await self._body(request)
        if not isinstance(body, bytes):
            return body
        try:
            data = read_body(body, self.answers.limits.depth)
        except ByhandError as error:
            return wrong(request, error)
        with speaking(language_of(data)):
            try:
                values = read_request(self.question, data)
            except ByhandError as error:
                return wrong(request, error)
        states = [data[key] for key, value in values.items() if isinstance(value, State)]
        known_by = [*states, *(state["model"] for state in states)]
        names = tuple(canonical("", one) for one in known_by)
        return self.answers.exchange(request, Asked(self.name, data, names))

    async def _body(self, request: Request) -> bytes | Response:
        """The whole body within the limits; else a refusal, after which the connection closes."""
        limits = self.answers.limits
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            error = InputError(
                _("a request is JSON"),
                where="Content-Type",
                expected="application/json",
                found=kind[:80] or _("nothing"),
            )
            return refusal(415, error, CLOSE)
        length = request.headers.get("content-length", "0")
        size = int(length) if len(length) < 20 and length.isdecimal() else DRAINED * limits.body + 1
        pieces = request.stream()
        body, read = bytearray(), 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                while size <= DRAINED * limits.body:
                    piece = await anext(pieces, None)
                    if piece is None:
                        break
                    read += len(piece)
                    size = max(size, read)
                    if size <= limits.body:
                        body += piece
        except TimeoutError:
            return refusal(408, InputError(_("the request did not come in time")), CLOSE)
        if size > limits.body:
            error = InputError(
                _("this request is too large"),
                expected=_("at most {count} bytes").format(count=f"{limits.body:,}"),
            )
            return refusal(413, error, CLOSE)
        return bytes(body)


def application(port: int, files: Mapping[str, Path], limits: Limits) -> Starlette:
    """The application; browsers reach it at `port`."""
    answers = Answers(files, limits)
    description = openapi.document(Library(files).names)

    async def describe(_request: Request) -> Response:
        return JSONResponse(description)

    async def health(_request: Request) -> Response:
        workers = answers.workers
        counts = {"workers": len(workers.workers), "free": workers.free, "waiting": workers.waiting}
        return JSONResponse(counts)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with answers.workers:
            yield

    questions = [
        Route(f"/api/{name}", Ask(answers, name, question).__call__, methods=["POST"])
        for name, question in ASKED.items()
    ]
    routes: list[BaseRoute] = [
        Route("/", _page),
        Route("/assets/{name}", _asset),
        Route("/openapi.json", describe),
        Route("/healthz", health),
        Route("/api/models", Models(answers).__call__),
        *questions,
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, port=port), Middleware(Failing)],
        exception_handlers={HTTPException: _no_such_path},
    )
    app.router.redirect_slashes = False
    return app


class Failing:
    """Reports unexpected errors on stderr; the client only learns that there was one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting(message: Any) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            if begun:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                ended = ByhandError(_("the server has stopped"), hint="byhand serve")
                await refusal(503, ended, CLOSE)(scope, receive, send)
        except Exception:
            if scope["type"] != "http":
                raise
            traceback.print_exc(file=sys.stderr)
            error = ByhandError(
                _("the work on this request broke off"),
                hint=_("what happened stands where byhand serve was started"),
            )
            if not begun:
                await refusal(500, error, CLOSE)(scope, receive, send)


# ------------------------------------------------------------------ what is not worked out


def assets() -> dict[str, Path]:
    """The files that the page may load, by name: a table, so that no name can lead elsewhere."""
    own = [path for path in PAGE.glob("*") if path.suffix in KINDS and path.suffix != ".html"]
    return {path.name: path for path in own}


async def _page(_request: Request) -> Response:
    return Response((PAGE / "index.html").read_bytes(), media_type=KINDS[".html"])


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name in WORDS:
        return JSONResponse(words(WORDS[name]))
    if name in GLOSSARIES:
        with speaking(GLOSSARIES[name]):
            return JSONResponse([asdict(entry) for entry in glossary()])
    if name in SHARED:
        text = style(name) if name == SHARED[0] else text_of(name)  # the palette comes once
        return Response(text, media_type=KINDS[".css"])
    path = assets().get(name)
    if path is None:
        raise HTTPException(404)
    return Response(path.read_bytes(), media_type=KINDS[path.suffix])


async def _no_such_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:80]
    known = ["/", "/api/models", *(f"/api/{name}" for name in ASKED), "/openapi.json", "/healthz"]
    if error.status_code == 405:
        said = InputError(
            _("{path} cannot be asked like this").format(path=path),
            expected=(error.headers or {}).get("Allow"),
            found=request.method[:20],
        )
    else:
        said = InputError(
            _("there is nothing at {path}").format(path=path), hint=nearest(path, known)
        )
    return refusal(error.status_code, said, error.headers or {})
