"""A proxy in front of a Prometheus that does to writes what networks and busy servers do."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

PASS, CUT, LOST, STALL = "pass", "cut", "lost", "stall"
"""To pass a write on; to hang up before it was passed on; to pass it on and hang up without the answer; to say nothing for long."""


class Front:
    """Listens on a free port; a context manager.

    Args:
        url: The Prometheus behind it.
        faults: What happens to each write in turn, by name or as a status to answer; later ones pass.
        authorization: Header without which it answers 401.

    Attributes:
        writes: Writes that have come.
        pauses: `Retry-After` that refusals carry.
    """

    def __init__(self, url: str, faults: Iterable[str | int] = (), authorization: str = "", retry_after: str = "") -> None:
        front = self
        upstream = urlsplit(url)
        left = iter(faults)
        self.writes = 0
        self.stalled = threading.Event()
        self._ended = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fault: str | int = PASS
                if self.path == "/api/v1/write":
                    front.writes += 1
                    fault = next(left, PASS)
                if authorization and self.headers.get("Authorization") != authorization:
                    fault = 401
                if isinstance(fault, int):
                    self._answer(fault, b"not now")
                    return
                if fault == STALL:
                    front.stalled.set()
                    front._ended.wait()
                if fault in (CUT, STALL):
                    self.close_connection = True
                    return
                status, answer = self._passed_on(body)
                if fault == LOST:
                    self.close_connection = True
                    return
                self._answer(status, answer)

            def _passed_on(self, body: bytes) -> tuple[int, bytes]:
                connection = http.client.HTTPConnection(str(upstream.hostname), upstream.port, timeout=30)
                try:
                    connection.request("POST", self.path, body, dict(self.headers))
                    answer = connection.getresponse()
                    return answer.status, answer.read()
                finally:
                    connection.close()

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if retry_after:
                    self.send_header("Retry-After", retry_after)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                del words

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
