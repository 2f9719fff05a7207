"""The web server of the page: routes, who may ask, and what a browser is told about safety.

It listens on 127.0.0.1 alone. A request needs the token (by cookie or header) and must name this server as its host, so
that neither other users' programs nor web sites open in the same browser reach the photograph.
"""

import mimetypes
import secrets
import shutil
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pointillist.data.photofiles import Photograph
from pointillist.retouch.session import Busy, Session
from pointillist.system import ENDINGS, handling

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp
except ImportError as error:
    raise ImportError("the page needs a web server: pip install 'pointillist[app]'") from error

ADDRESS = "127.0.0.1"
TOKEN_HEADER = "x-pointillist-token"
_MOST_PIXELS = 12_000_000
"""Pixels of a view; no screen shows more."""
_AMPLIFIED = 4
"""A found pixel that is one of four on the screen is shown in full, so that thin scratches do not fade away."""
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


def make_app(session: Session, token: str, port: int, ticket: str | None = None) -> ASGIApp:
    """The whole application for one session. Plain functions run in threads, so that nobody waits for a large file.

    Parameters
    ----------
    session : Session
    token : str
        Whoever has it, in a cookie or in a header, is let through; an address with it gives the cookie.
    port : int
        Where the server listens; the host that a request names must have it.
    ticket : str, optional
        Opens the page in place of the token, once. A browser is started with it, because other users of the machine can
        see with what words a program was started.
    """
    mimetypes.add_type("text/javascript", ".js")  # whatever the system says: browsers run no other scripts
    cookie = f"pointillist-{port}"  # a browser gives cookies to every port of a host
    hosts = {
        f"{name}{end}" for name in (ADDRESS, "localhost") for end in (f":{port}", "" if port == 80 else f":{port}")
    }
    invitations = {token, ticket}

    async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
        headers = request.headers
        host, given = headers.get("host", ""), request.query_params.get("token", "")
        invited = request.url.path == "/" and any(_same(given, one) for one in invitations if one is not None)
        if invited and not _same(given, token):
            invitations.discard(ticket)
        known = any(_same(one, token) for one in (request.cookies.get(cookie, ""), headers.get(TOKEN_HEADER, "")))
        foreign = not invited and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        refusal = None
        if host not in hosts:
            refusal = "This address is not the one that Pointillist answers to."
        elif foreign or headers.get("origin", f"http://{host}") != f"http://{host}":
            refusal = "Another page may not ask Pointillist for anything."
        elif not invited and not known:
            refusal = "Open the whole address that Pointillist printed when it started, with its token."
        answer = await call_next(request) if refusal is None else PlainTextResponse(refusal, 403)
        answer.headers.update(_SAFETY)
        if invited:
            answer.set_cookie(cookie, token, httponly=True, samesite="strict")
        return answer

    def state(request: Request) -> Response:
        return JSONResponse(session.describe())

    async def upload(request: Request) -> Response:
        path = session.private_path(request.query_params.get("name", ""))
        try:
            with path.open("wb") as file:
                async for chunk in request.stream():
                    file.write(chunk)
            await run_in_threadpool(session.open, path)
        finally:
            shutil.rmtree(path.parent, ignore_errors=True)
        return state(request)

    async def act(request: Request) -> Response:
        """Do what is asked, with the settings of a JSON object, and answer with the state after it."""
        settings = await request.json()
        await run_in_threadpool(actions[request.path_params["action"]], **settings)
        return state(request)

    def view(request: Request) -> Response:
        query = request.query_params
        of = query.get("of", "before")
        shown = session.photograph(of) if of in ("before", "after") else session.found(of)
        content, kind = picture_view(shown, query) if isinstance(shown, Photograph) else mask_view(shown, query)
        return Response(content, media_type=kind)

    def download(request: Request) -> Response:
        path = session.download()
        return FileResponse(path, filename=path.name, background=BackgroundTask(shutil.rmtree, path.parent, True))

    def complain(request: Request, error: Exception) -> Response:
        status = 409 if isinstance(error, Busy) else 404 if isinstance(error, LookupError) else 400
        return JSONResponse({"error": " ".join(str(error).split())}, status)

    actions: dict[str, Callable[..., None]] = {
        name: getattr(session, name) for name in ("find", "estimate", "mend", "cancel", "adopt", "discard")
    }
    routes = [
        Route("/state", state),
        Route("/picture", upload, methods=["PUT"]),
        Route("/view", view),
        Route("/download", download),
        Route("/{action}", act, methods=["POST"]),
        Mount("/", StaticFiles(packages=[("pointillist.retouch", "assets")], html=True)),
    ]
    handlers: dict[Any, Any] = dict.fromkeys((ValueError, TypeError, OSError, LookupError, Busy), complain)
    return Starlette(
        routes=routes, exception_handlers=handlers, middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)]
    )


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


def picture_view(photograph: Photograph, query: Mapping[str, str]) -> tuple[bytes, str]:
    """An image of a box of a photograph, and its media type.

    PNG where pixels are shown one by one or see-through, JPEG otherwise.

    Parameters
    ----------
    photograph : Photograph
    query : mapping
        ``x``, ``y``, ``w`` and ``h``: the box in pixels of the photograph, cut off where that ends; ``scale``: pixels of the
        screen for one of these, at most 1.
    """
    alpha, profile = photograph.alpha, photograph.metadata.icc
    cut, size = _cut(photograph.pixels, query)
    image = Image.fromarray(_eight_bits(cut, photograph.peak))
    if alpha is not None:
        image.putalpha(Image.fromarray(_eight_bits(_cut(alpha, query)[0], photograph.peak)))
    exact = image.size == size
    if not exact:
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    stream = BytesIO()
    if exact or alpha is not None:
        image.save(stream, "PNG", compress_level=1, icc_profile=profile)
        return stream.getvalue(), "image/png"
    image.save(stream, "JPEG", quality=92, subsampling=0, icc_profile=profile)
    return stream.getvalue(), "image/jpeg"


def mask_view(mask: NDArray[np.bool_], query: Mapping[str, str]) -> tuple[bytes, str]:
    """A PNG of a box of a mask, as in `picture_view`, that is opaque where the mask is true."""
    cut, size = _cut(mask, query)
    shown = np.asarray(Image.fromarray(cut.astype(np.uint8) * 255).resize(size, Image.Resampling.BOX), np.uint16)
    image = Image.fromarray(np.minimum(shown * _AMPLIFIED, 255).astype(np.uint8))
    stream = BytesIO()
    Image.merge("LA", (image, image)).save(stream, "PNG", compress_level=1)
    return stream.getvalue(), "image/png"


def _cut(pixels: NDArray[Any], query: Mapping[str, str]) -> tuple[NDArray[Any], tuple[int, int]]:
    """The box that a query asks for, and width and height of its image."""
    try:
        x, y, width, height = (int(query[name]) for name in "xywh")
        scale = float(query["scale"])
    except (KeyError, ValueError):
        raise ValueError("a view needs whole numbers x, y, w and h, and a scale") from None
    cut = pixels[y : y + height, x : x + width]
    if min(x, y) < 0 or cut.size == 0 or not 0 < scale <= 1 or scale**2 * cut.shape[0] * cut.shape[1] > _MOST_PIXELS:
        raise ValueError("the view must lie inside the photograph, and fit a screen by a scale of at most 1")
    return np.ascontiguousarray(cut), (max(1, round(scale * cut.shape[1])), max(1, round(scale * cut.shape[0])))


def _eight_bits(pixels: NDArray[Any], peak: float) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return pixels
    shown = np.nan_to_num(pixels.astype(np.float32) * np.float32(255 / peak))
    return np.clip(np.rint(shown), 0, 255).astype(np.uint8)


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
    try:
        listening = socket.create_server((ADDRESS, port))
    except OSError as error:
        raise OSError(f"cannot listen on port {port} ({error.strerror}): leave --port out for a free one") from error
    with listening as listener, closing(Session()) as session, handling(ENDINGS, signal.default_int_handler):
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
