"""The HTTP server: it writes bytes that others have made, and no client can make another one wait."""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from monitor.errors import CalmonError

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"

MAX_HEAD_BYTES = 16_384
MIN_GZIP_BYTES = 1_024
GZIP_LEVEL = 4
OVERFLOW_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 21\r\nCache-Control: no-store\r\nConnection: close\r\n\r\ntoo many connections\n"
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pages:
    """What the server shows; each is called once a request, from the request's own thread, and must not block.

    Attributes:
        metrics: The rendered exposition (text format 0.0.4); the same object as long as nothing changed, so that it is compressed once.
        status_page: The HTML page at ``/``.
        ready: Whether a load balancer should send scrapes here, and one line that says why.
        healthy: Whether the process should go on living, and one line that says why.
    """

    metrics: Callable[[], bytes]
    status_page: Callable[[], bytes]
    ready: Callable[[], tuple[bool, str]]
    healthy: Callable[[], tuple[bool, str]]


class MetricsServer:
    """Serves `Pages` over HTTP/1.1, one request a connection, each in a daemon thread of its own.

    Args:
        address: Where to listen: an IPv4 or IPv6 address or a host name.
        port: TCP port; 0 takes a free one, see `port`.
        pages: What to serve.
        max_connections: Connections served at once; one more is answered 503 and closed.
        timeout_s: Seconds that a client has for sending its whole request head, and again for taking the answer.
    """

    def __init__(self, address: str, port: int, pages: Pages, *, max_connections: int = 64, timeout_s: float = 10.0) -> None:
        self._address = address.removeprefix("[").removesuffix("]")
        self._port = port
        self._pages = pages
        self._max_connections = max_connections
        self._timeout_s = timeout_s
        self._listener: _Listener | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; before `start`, the one asked for."""
        return self._port

    def start(self) -> None:
        """Listen and serve until `close`.

        Raises:
            CalmonError: The port is taken, or the address is not one of this machine's.
        """
        where = f"[{self._address}]:{self._port}" if ":" in self._address else f"{self._address}:{self._port}"
        try:
            # The port stays out of the look-up, which would wrap one above 65535 around.
            family, _, _, _, resolved = socket.getaddrinfo(self._address, None, type=socket.SOCK_STREAM)[0]
            listener = _Listener(family, (resolved[0], self._port, *resolved[2:]), self._pages, self._max_connections, self._timeout_s)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise CalmonError(f"cannot listen on {where}: {reason}; set http.address and http.port to ones that are free") from error
        self._port = listener.server_port
        self._listener = listener
        threading.Thread(target=listener.serve_forever, args=(0.1,), name="calmon-http", daemon=True).start()

    def close(self) -> None:
        """Stop listening; answers under way end with the process. Safe to call twice, or without `start`."""
        if self._listener is not None:
            self._listener.shutdown()
            self._listener.server_close()
            self._listener = None


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header asks for gzip by name.

    >>> [accepts_gzip(header) for header in ("gzip", "br, GZIP;q=0.5", "gzip; q=0", "gzip;q=0.000", "identity", "")]
    [True, True, False, False, False, False]
    """
    for item in accept_encoding.lower().split(","):
        coding, _, parameter = item.partition(";")
        if coding.strip() == "gzip":
            return parameter.replace(" ", "").rstrip("0.") != "q="
    return False


class _Listener(ThreadingHTTPServer):
    """Accepts connections up to a cap and keeps what their handlers share."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, family: socket.AddressFamily, address: Any, pages: Pages, max_connections: int, timeout_s: float) -> None:
        self.address_family = family
        self.timeout_s = timeout_s
        self.routes: dict[str, Callable[[], tuple[HTTPStatus, str, bytes]]] = {
            "/": lambda: (HTTPStatus.OK, HTML_TYPE, pages.status_page()),
            "/metrics": lambda: (HTTPStatus.OK, METRICS_TYPE, pages.metrics()),
            "/-/healthy": lambda: _verdict(pages.healthy()),
            "/-/ready": lambda: _verdict(pages.ready()),
        }
        self._slots = threading.BoundedSemaphore(max_connections)
        self._gzip_lock = threading.Lock()
        self._gzip_cache: dict[str, tuple[bytes, bytes]] = {}
        self._last_failure = ""
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without the standard library's reverse look-up of the host's name, which can hang for seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment] # the stub allows bytes, as of a Unix socket

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand the connection to a thread, or refuse it when all are busy."""
        if not self._slots.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.setblocking(False)
                request.send(OVERFLOW_ANSWER)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, then free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def shutdown_request(self, request: Any) -> None:
        """Close, having taken what the client had still sent: unread bytes would reset the connection under the answer."""
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            request.setblocking(False)
            request.recv(MAX_HEAD_BYTES)
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that went away; the default prints a traceback for each."""
        log.debug("connection failed", exc_info=True)

    def compressed(self, path: str, body: bytes) -> bytes:
        """The body in gzip, made once for each body object of a path."""
        with self._gzip_lock:
            cached = self._gzip_cache.get(path)
            if cached is None or cached[0] is not body:
                cached = self._gzip_cache[path] = (body, gzip.compress(body, GZIP_LEVEL, mtime=0))
            return cached[1]

    def report_failure(self, path: str, error: Exception) -> None:
        """Log a page that could not be made, once and not at every scrape."""
        failure = f"{path}: {type(error).__name__}: {error}"
        if failure != self._last_failure:
            self._last_failure = failure
            log.error("page failed: %s", failure, exc_info=error)


def _verdict(state: tuple[bool, str]) -> tuple[HTTPStatus, str, bytes]:
    """A health answer: 200 or 503 with its one line."""
    good, reason = state
    return HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, TEXT_TYPE, f"{reason}\n".encode()


class _HeadTooLargeError(Exception):
    """The client sent more than a request head may hold."""


class _HeadReader(io.RawIOBase):
    """A socket read up to a deadline and a size, however slowly the bytes drip in."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        self._connection = connection
        self._deadline_s = time.monotonic() + timeout_s
        self._left = MAX_HEAD_BYTES

    def readable(self) -> bool:
        """True: this is what BufferedReader asks for."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there into the buffer; 0 at the end.

        Raises:
            TimeoutError: The deadline passed.
            _HeadTooLargeError: The allowed bytes are used up.
        """
        if self._left <= 0:
            raise _HeadTooLargeError
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


class _Handler(BaseHTTPRequestHandler):
    """Answers the one request of a connection; keep-alive would let idle clients hold the places of scrapes."""

    server: _Listener
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # with 0.9, the standard library leaves the head out of its answers

    def setup(self) -> None:
        """Read through the deadline instead of the plain socket."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_HeadReader(self.connection, self.server.timeout_s))

    def handle(self) -> None:
        """Read a request head and answer it."""
        self.requestline, self.command = "", ""
        self.request_version = self.default_request_version
        try:
            self.raw_requestline = self.rfile.readline()
            if self.raw_requestline and self.parse_request():
                self._dispatch()
        except _HeadTooLargeError:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except (TimeoutError, ConnectionError):
            log.debug("client idle or gone: %s", self.client_address[0])

    def _dispatch(self) -> None:
        path = self.path.partition("?")[0]
        make = self.server.routes.get(path)
        if make is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        if self.command not in ("GET", "HEAD"):
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, TEXT_TYPE, b"only GET and HEAD\n", {"Allow": "GET, HEAD"})
            return
        try:
            status, content_type, body = make()
        except Exception as error:  # a fault in one page must not take the others with it, and the scrape must see it
            self.server.report_failure(path, error)
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, TEXT_TYPE, f"{path} failed: {type(error).__name__}\n".encode())
            return
        headers = {}
        if len(body) >= MIN_GZIP_BYTES:
            headers["Vary"] = "Accept-Encoding"
            if accepts_gzip(self.headers.get("Accept-Encoding", "")):
                headers["Content-Encoding"] = "gzip"
                body = self.server.compressed(path, body)
        self._answer(status, content_type, body, headers)

    def _answer(self, status: int, content_type: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.connection.settimeout(self.server.timeout_s)
        self.send_response_only(status)  # not send_response: it names the server's version
        self.send_header("Date", self.date_time_string())
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer an error in one line of text; `message` and `explain` may quote the client's bytes and stay out."""
        self._answer(code, TEXT_TYPE, f"{HTTPStatus(code).phrase}\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape every few seconds is not news."""
