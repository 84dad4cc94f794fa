"""Serves the pages of a capture: on loopback, to those who know the token.

    GET  /TOKEN/                      the page; /TOKEN/app.js … its files
    GET  /TOKEN/ask/NAME?key=value    an answer: JSON, or a PNG file
    POST /TOKEN/edit                  an edit as JSON; the answer has the number of the edition

A page of another origin cannot know the token; a name that leads to this address is refused all the
same (Host, Origin). The page is there before the simulator is: it is imported when something is asked.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JSON = "application/json"
Reply = tuple[int, str, bytes]
"""Status, kind of media, bytes."""
LOOPBACK = "127.0.0.1"
MOST_BODY = 24 << 20
"""Bytes of a request's body."""
LONGEST_PATH = 2000
SECONDS = 30
"""For which a connection may be silent."""
MOST_CONNECTIONS = 64
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
SCRIPTS = (
    "dom.js", "source.js", "place.js", "canvas.js", "events.js", "history.js", "lanes.js", "state.js",
    "lists.js", "shader.js", "mesh.js", "textures.js", "times.js", "app.js",
)  # fmt: skip
"""The page's scripts, in the order in which they are read."""


class Answers(Protocol):
    """Answers questions about a capture, and takes edits: each time with status, kind of media, bytes."""

    def answer(self, name: str, values: Mapping[str, str]) -> Reply:
        """Answer a question."""

    def edit(self, wanted: Any) -> Reply:
        """Make an edition, of JSON of any shape."""


@cache
def page_file(name: str) -> str:
    """Return a file of the page as text."""
    return (files("vc4lab.viewer.inside") / "page" / name).read_text(encoding="utf-8")


def server_page() -> str:
    """Return the page that asks a server."""
    scripts = "\n".join(f'<script src="{name}"></script>' for name in SCRIPTS)
    style = '<link rel="stylesheet" href="style.css">'
    return page_file("index.html").replace("<!-- style -->", style).replace("<!-- scripts -->", scripts)


class Server(ThreadingHTTPServer):
    """Listens on a port of 127.0.0.1; 0: any that is free.

    Parameters
    ----------
    make
        Makes the part that answers, when it is needed.
    first
        Gives a picture for the time before anything can answer, as a PNG file; None: there is none.

    Attributes
    ----------
    token
        The first part of every path.
    """

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self, make: Callable[[], Answers], port: int = 0, first: Callable[[], bytes | None] | None = None
    ) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self._make = make
        self.first = first or (lambda: None)
        self._making = threading.Lock()
        self._answers: Answers | None = None
        self.token = secrets.token_urlsafe(24)
        self._open = 0

    @property
    def answers(self) -> Answers:
        """Return the part that answers, made when it is needed first."""
        with self._making:
            if self._answers is None:
                self._answers = self._make()
            return self._answers

    def warm_up(self) -> None:
        """Import the simulator and open the capture, in a thread of its own."""
        threading.Thread(target=lambda: self.answers.answer("capture", {}), daemon=True).start()

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> frozenset[str]:
        """The names that a request may call this server by."""
        return frozenset(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse connections beyond those that a page needs."""
        return self._open < MOST_CONNECTIONS

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection."""
        self._open += 1
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the connection was broken by the other side."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "vc4lab", ""
    timeout = SECONDS

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed: the path has the token."""

    def do_GET(self) -> None:
        self._respond(self._get)

    def do_POST(self) -> None:
        self._respond(self._post)

    def _respond(self, answer: Any) -> None:
        """Answer, whatever was asked."""
        try:
            status, kind, data = answer()
        except _Status as error:
            status, kind, data = error.status, JSON, json.dumps({"error": error.text}).encode()
        except OSError:
            self.close_connection = True
            return
        if status != HTTPStatus.OK and self.command == "POST":
            self.close_connection = True  # its body may not have been read
        self._send(status, kind, data)

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Content-Security-Policy", POLICY)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _path(self) -> tuple[str, str]:
        """The path after the token, and the query. Raises _Status."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            raise _Status(HTTPStatus.FORBIDDEN, "this server is another one: Host is wrong")
        if origin is not None and origin not in {f"http://{name}" for name in self.server.hosts}:
            raise _Status(HTTPStatus.FORBIDDEN, "pages of other origins are refused")
        if len(self.path) > LONGEST_PATH:
            raise _Status(HTTPStatus.REQUEST_URI_TOO_LONG, "the path is too long")
        try:
            parts = urlsplit(self.path)
        except ValueError:
            raise _Status(HTTPStatus.BAD_REQUEST, "this is no path") from None
        token, _, rest = parts.path.lstrip("/").partition("/")
        if not secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            raise _Status(HTTPStatus.FORBIDDEN, "the token in the address is missing or wrong")
        return rest, parts.query

    def _get(self) -> Reply:
        rest, query = self._path()
        if rest == "":
            return HTTPStatus.OK, KINDS["html"], server_page().encode()
        if rest in (*SCRIPTS, "style.css"):
            return HTTPStatus.OK, KINDS[rest.rpartition(".")[2]], page_file(rest).encode()
        if rest == "first.png":
            picture = self.server.first()
            status = HTTPStatus.NO_CONTENT if picture is None else HTTPStatus.OK
            return status, "image/png", picture or b""
        kind, _, name = rest.partition("/")
        if kind != "ask":
            raise _Status(HTTPStatus.NOT_FOUND, "there is no such page")
        try:
            values = parse_qsl(query, keep_blank_values=True, max_num_fields=20, errors="replace")
        except ValueError:
            raise _Status(HTTPStatus.BAD_REQUEST, "these are no values") from None
        return self.server.answers.answer(name, dict(values))

    def _post(self) -> Reply:
        rest, _query = self._path()
        if rest != "edit":
            raise _Status(HTTPStatus.NOT_FOUND, "there is no such page")
        if self.headers.get("Content-Type", "").partition(";")[0] != JSON:
            raise _Status(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"an edit is {JSON}")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= MOST_BODY):
            raise _Status(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an edit has at most {MOST_BODY} bytes")
        data = self.rfile.read(int(length))
        try:
            wanted = json.loads(data)
        except (ValueError, RecursionError):
            raise _Status(HTTPStatus.BAD_REQUEST, "this is no JSON") from None
        return self.server.answers.edit(wanted)


class _Status(Exception):  # noqa: N818 - an answer to a request
    """A request that is refused."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text
