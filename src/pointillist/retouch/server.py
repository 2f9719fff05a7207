"""The web server of the page: routes, who may ask, and what a browser is told about safety.

It listens on 127.0.0.1 alone. A request needs the token (by cookie or header) and must name this server as its host, so
that neither other users' programs nor web sites open in the same browser reach the photograph.
"""

import json
import secrets
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from pointillist.retouch.session import Busy, Session
from pointillist.retouch.tasks import Wish
from pointillist.retouch.views import View
from pointillist.system import ENDINGS, handling

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import MutableHeaders
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise ImportError("the page needs a web server: pip install 'pointillist[app]'") from error

ADDRESS = "127.0.0.1"
TOKEN_HEADER = "x-pointillist-token"
_MOST_BYTES = 4 * 1024**3
_MOST_PAINTING = 32 * 1024**2
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SAFETY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class Guard:
    """Lets through who has the token and asks this very server, and adds the headers that keep a page to itself.

    Parameters
    ----------
    app : ASGI application
    token : str
    port : int
        Where the server listens; the host that a request names must have it.
    ticket : str, optional
        Opens the page in place of the token, once. A browser is started with it, because other users of the machine can
        see with what words a program was started.
    """

    def __init__(self, app: ASGIApp, token: str, port: int, ticket: str | None = None) -> None:
        self._app, self._token, self._ticket = app, token, ticket
        self._cookie = f"pointillist-{port}"  # a browser gives cookies to every port of a host
        ends = (f":{port}", "") if port == 80 else (f":{port}",)
        self._hosts = {f"{name}{end}" for name in (ADDRESS, "localhost") for end in ends}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        invited = scope["path"] == "/" and self._invites(asked.query_params.get("token", ""))

        async def careful_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_SAFETY)
                if invited:
                    headers["set-cookie"] = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            await send(message)

        refusal = self._refusal(asked, invited)
        answer: ASGIApp = self._app if refusal is None else PlainTextResponse(refusal, 403)
        await answer(scope, receive, careful_send)

    def _refusal(self, asked: HTTPConnection, invited: bool) -> str | None:
        """Why a request is refused, if it is."""
        headers = asked.headers
        if headers.get("host", "") not in self._hosts:
            return "This address is not the one that Pointillist answers to."
        if not invited and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "Another page may not ask Pointillist for anything."
        if headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            return "Another page may not ask Pointillist for anything."
        given = (asked.cookies.get(self._cookie, ""), headers.get(TOKEN_HEADER, ""))
        if not invited and not any(_same(one, self._token) for one in given):
            return "Open the whole address that Pointillist printed when it started, with its token."
        return None

    def _invites(self, given: str) -> bool:
        if self._ticket is not None and _same(given, self._ticket):
            self._ticket = None
            return True
        return _same(given, self._token)


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


def make_app(session: Session, token: str, port: int, ticket: str | None = None) -> ASGIApp:
    """The whole application for one session; the words are those of `Guard`.

    Plain functions run in threads, so that nobody waits for a large file.
    """
    assets = {
        one.name: one.read_bytes()
        for one in (files("pointillist.retouch") / "assets").iterdir()
        if Path(one.name).suffix in _TYPES
    }

    def asset(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in assets:
            raise LookupError(f"there is no file {name}")
        return Response(assets[name], media_type=_TYPES[Path(name).suffix])

    def state(request: Request) -> Response:
        return JSONResponse(session.describe())

    async def upload(request: Request) -> Response:
        path = session.private_path(request.query_params.get("name", ""))
        try:
            await _receive(request, path)
            await run_in_threadpool(session.open, path)
        finally:
            shutil.rmtree(path.parent, ignore_errors=True)
        return state(request)

    def begin(wanted: Any) -> None:
        steps = wanted.get("steps", []) if isinstance(wanted, dict) else None
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise ValueError("the request is no JSON object with a list of steps: reload the page")
        session.mend(Wish.read(wanted), steps, wanted.get("version"))

    async def mend(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_PAINTING:
                raise ValueError("The painting has too many strokes. Clear it and use a larger brush.")
        try:
            wanted = json.loads(body)
        except ValueError:
            wanted = None
        await run_in_threadpool(begin, wanted)
        return state(request)

    def view(request: Request) -> Response:
        query = request.query_params
        content, kind = session.view(query.get("of", "before"), View.read(query))
        return Response(content, media_type=kind)

    def download(request: Request) -> Response:
        path = session.download()
        return FileResponse(path, filename=path.name)

    def acting(act: Callable[[Mapping[str, str]], None]) -> Callable[[Request], Response]:
        """A handler that does something with what was asked and answers with the state after it."""

        def handler(request: Request) -> Response:
            act(request.query_params)
            return state(request)

        return handler

    actions: dict[str, Callable[[Mapping[str, str]], None]] = {
        "find": lambda query: session.find(float(query.get("sensitivity", "0.5")), query.get("kind", "damage")),
        "estimate": lambda query: session.estimate(query.get("blur", "")),
        "cancel": lambda query: session.cancel(),
        "adopt": lambda query: session.adopt(),
        "discard": lambda query: session.discard(),
    }
    routes = [
        Route("/", asset),
        Route("/assets/{name}", asset),
        Route("/state", state),
        Route("/picture", upload, methods=["PUT"]),
        Route("/mend", mend, methods=["POST"]),
        *(Route(f"/{name}", acting(act), methods=["POST"]) for name, act in actions.items()),
        Route("/view", view),
        Route("/download", download),
    ]

    def complain(request: Request, error: Exception) -> Response:
        status = 409 if isinstance(error, Busy) else 404 if isinstance(error, LookupError) else 400
        return JSONResponse({"error": " ".join(str(error).split())}, status)

    handlers: dict[Any, Any] = dict.fromkeys((ValueError, LookupError, Busy), complain)
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token, port, ticket)


async def _receive(request: Request, path: Path) -> None:
    """Write what is uploaded to a private file."""
    size = 0
    with path.open("wb") as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > _MOST_BYTES:
                raise ValueError(f"{path.name} is too large: at most {_MOST_BYTES // 1024**3} GB can be opened.")
            file.write(chunk)
    if size == 0:
        raise ValueError(f"{path.name} is empty.")


def serve(picture: Path | None = None, *, port: int = 0, ready: Callable[[str, str], None]) -> None:
    """Serve the page until somebody interrupts it.

    Parameters
    ----------
    picture : path, optional
        A photograph to begin with.
    port : int
        Where to listen; 0 takes a free one.
    ready : callable
        Is given two addresses once connections are taken: one to print, and one that opens the page a single time, to
        start a browser with.

    Raises
    ------
    KeyboardInterrupt
        When the server was stopped by Ctrl-C, SIGTERM or the end of the terminal, and has cleaned up.
    OSError
        When the port is taken.

    Examples
    --------
    >>> from pointillist.retouch.server import serve
    >>> serve(ready=print)  # doctest: +SKIP
    """
    with _listening(port) as listener, closing(Session()) as session, handling(ENDINGS, signal.default_int_handler):
        if picture is not None:
            session.open(picture)
        token, ticket, port = secrets.token_urlsafe(24), secrets.token_urlsafe(24), listener.getsockname()[1]
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(session, token, port, ticket),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=3,
            )
        )
        page = f"http://{ADDRESS}:{port}/?token="
        ready(page + token, page + ticket)
        server.run(sockets=[listener])


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        try:
            listener.bind((ADDRESS, port))
        except OSError as error:
            raise OSError(
                f"cannot listen on port {port} ({error.strerror}): leave --port out for a free one"
            ) from error
        listener.listen()
        yield listener
