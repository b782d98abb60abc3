"""A real Alertmanager for tests, and a webhook that takes what it sends."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import ProxyHandler, Request, build_opener

from tests.services.prometheus import START_TIMEOUT_S, ServiceMissingError, free_port, stop

NAMES = ("alertmanager", "prometheus-alertmanager")
_LOCAL = build_opener(ProxyHandler({}))


def find_alertmanager() -> str:
    """Return the path of Alertmanager; Debian calls it otherwise.

    Raises:
        ServiceMissingError: It is not on PATH; the message says what to install.
    """
    for name in NAMES:
        if (path := shutil.which(name)) is not None:
            return path
    raise ServiceMissingError(
        "alertmanager is not on PATH: run deploy/local/install-services.sh as root on Debian, or install Alertmanager >= 0.25"
    )


class Webhook:
    """Takes notifications on a free port; a context manager.

    Attributes:
        posts: Path and body of each, in the order in which they came.
    """

    def __init__(self) -> None:
        self.posts: list[tuple[str, Any]] = []
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posts.append((self.path, json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, format: str, *arguments: object) -> None:
                del format, arguments

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class AlertmanagerServer:
    """An Alertmanager of one; a context manager.

    Args:
        config_file: Its configuration.
    """

    def __init__(self, config_file: Path) -> None:
        self._config_file = config_file
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self.address = ""

    def __enter__(self) -> Self:
        program = find_alertmanager()
        self._directory = tempfile.TemporaryDirectory(prefix="calmon-alertmanager-")
        folder = Path(self._directory.name)
        self.address = f"127.0.0.1:{free_port()}"
        options = [
            f"--config.file={self._config_file}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ]
        try:
            with (folder / "log").open("wb") as log:
                self._process = subprocess.Popen([program, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            self._wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            stop(self._process)
        if self._directory is not None:
            self._directory.cleanup()

    def log(self) -> str:
        """What the server has written so far."""
        return Path(self._directory.name, "log").read_text(errors="replace") if self._directory is not None else ""

    def alerts(self) -> Sequence[Any]:
        """Alerts as its interface gives them, those that are inhibited too."""
        with _LOCAL.open(f"http://{self.address}/api/v2/alerts", timeout=10) as answer:
            found: Sequence[Any] = json.load(answer)
            return found

    def send(self, alerts: Sequence[Mapping[str, str]]) -> None:
        """Tell it of alerts, as a Prometheus does."""
        body = json.dumps([{"labels": labels} for labels in alerts]).encode()
        request = Request(f"http://{self.address}/api/v2/alerts", body, {"Content-Type": "application/json"})
        with _LOCAL.open(request, timeout=10) as answer:
            assert answer.status == 200

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            assert self._process.poll() is None, f"alertmanager ended\n{self.log()}"
            try:
                with _LOCAL.open(f"http://{self.address}/-/ready", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"alertmanager not ready in {START_TIMEOUT_S:g} s\n{self.log()}")
